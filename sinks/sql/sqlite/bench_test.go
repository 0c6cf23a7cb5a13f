package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

const benchRows = 5000

func benchRow(i int) string {
	return fmt.Sprintf(`{"host": "10.0.%d.%d", "status": %d, "bytes": %d, "path": "/a/path/of/usual/length/%d.html", "took": %d.5}`, i%256, i/256%256, 200+i%300, i*31, i, i%7)
}

func BenchmarkDeliver(b *testing.B) {
	const fields = "host STRING, status BIGINT, bytes BIGINT, path STRING, took DOUBLE"
	for _, c := range []struct {
		name, keys string
		p          plan
	}{
		{"known", create, plan{Fields: fields}},
		{"dynamic", create, plan{Open: true}},
		{"upsert", create + ", mode: upsert, key: [path]", plan{Fields: fields}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := started(b, c.keys, c.p)
			var recs []string
			for i := range benchRows {
				recs = append(recs, benchRow(i))
			}
			p := s.Part(b, split, 0, recs...)
			chunk := &sinks.Chunk{Parts: []sinks.Part{p}}
			b.ReportAllocs()
			b.SetBytes(int64(len(p.Data)))
			at := int64(0)
			for b.Loop() {
				at += benchRows
				for i := range p.Pos {
					p.Pos[i] = record.Position{Offset: at + int64(i)}
				}
				if _, err := s.Deliver(ctx, chunk); err != nil {
					b.Fatal(err)
				}
				if at%(20*benchRows) == 0 { // the size of the file is not what is measured
					b.StopTimer()
					if err := dialectOf(s).c.Exec(`DELETE FROM t`); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkByHand is the least that a program does for the same rows.
func BenchmarkByHand(b *testing.B) {
	c, err := sqlite3.Open("file:" + filepath.Join(b.TempDir(), "x.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (host TEXT, status INTEGER, bytes INTEGER, path TEXT, took REAL)`); err != nil {
		b.Fatal(err)
	}
	st, _, err := c.PrepareFlags(`INSERT INTO t VALUES (?, ?, ?, ?, ?)`, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	var hosts, paths []string
	for i := range benchRows {
		hosts = append(hosts, fmt.Sprintf("10.0.%d.%d", i%256, i/256%256))
		paths = append(paths, fmt.Sprintf("/a/path/of/usual/length/%d.html", i))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		c.Exec(`BEGIN IMMEDIATE`)
		for i := range benchRows {
			st.BindText(1, hosts[i])
			st.BindInt64(2, int64(200+i%300))
			st.BindInt64(3, int64(i*31))
			st.BindText(4, paths[i])
			st.BindFloat(5, float64(i%7)+0.5)
			if err := st.Exec(); err != nil {
				b.Fatal(err)
			}
		}
		if err := c.Exec(`COMMIT`); err != nil {
			b.Fatal(err)
		}
		if n++; n%20 == 0 {
			b.StopTimer()
			c.Exec(`DELETE FROM t`)
			b.StartTimer()
		}
	}
	b.ReportMetric(float64(benchRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
