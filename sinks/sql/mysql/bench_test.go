package mysql

import (
	"context"
	stdsql "database/sql"
	"strconv"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/test/services"
)

const benchColumns = "client VARCHAR(40), ident VARCHAR(20), method VARCHAR(10), url VARCHAR(500), version VARCHAR(5), status INT, bytes BIGINT, took DOUBLE, referrer VARCHAR(500), agent VARCHAR(500), " +
	"host VARCHAR(100), ok BOOLEAN, zone VARCHAR(40), id BIGINT, `@timestamp` DATETIME(6)"

// benchSink is a sink for 15-field records on the table t.
func benchSink(b *testing.B, dsn string) *sinktest.Built {
	b.Helper()
	execute(b, dsn, "CREATE TABLE t ("+benchColumns+")")
	return sinktest.Build(b, &Config{}, "{dsn: '"+dsn+"', table: t}", sinktest.Plan{Fields: sinktest.AccessFields}).Start(b, true)
}

const benchRows = 5000

// BenchmarkReal writes 15-field records to a real server. cpu-ns/record is this process' time, user-ns/record that
// outside of the kernel; making the records (BenchmarkRecords) is in both.
func BenchmarkReal(b *testing.B) {
	s := benchSink(b, services.MySQL(b))
	deliver(b, s)
}

func deliver(b *testing.B, s *sinktest.Built) {
	batch := record.NewBatch(s.Table)
	p := sinks.Part{Split: split}
	at, turn := int64(0), 0
	cpu, user := sinktest.CPU(b)
	for b.Loop() {
		batch.Reset()
		batch.Split = split
		p.Data, p.Ends, p.Pos = p.Data[:0], p.Ends[:0], p.Pos[:0]
		for range benchRows {
			at++
			i := sinktest.AccessRow(batch, at)
			p.Data, _ = s.Encode(p.Data, batch, i)
			p.Ends = append(p.Ends, len(p.Data))
			p.Pos = append(p.Pos, batch.Pos(i))
		}
		if _, err := s.Deliver(ctx, &sinks.Chunk{Parts: []sinks.Part{p}}); err != nil {
			b.Fatal(err)
		}
		if turn++; turn%40 == 0 {
			b.StopTimer()
			c, u := sinktest.CPU(b)
			execute(b, dialectOf(&built{Sink: s.Sink}).cfg.FormatDSN(), "TRUNCATE t")
			c2, u2 := sinktest.CPU(b)
			cpu, user = cpu+c2-c, user+u2-u
			b.StartTimer()
		}
	}
	rows := float64(b.N) * benchRows
	c, u := sinktest.CPU(b)
	b.ReportMetric(float64(c-cpu)/rows, "cpu-ns/record")
	b.ReportMetric(float64(u-user)/rows, "user-ns/record")
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkByHand is the best loop by hand: multi-row statements of literals, one transaction for as many rows. Numbers
// are the rows of a statement.
func BenchmarkByHand(b *testing.B) {
	for _, size := range []int{100, 500, 1000, 2500, 5000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			dsn := services.MySQL(b)
			execute(b, dsn, "CREATE TABLE t ("+benchColumns+")")
			db := open(b, dsn)
			defer db.Close()
			conn, err := db.Conn(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			turn := 0
			var buf []byte
			n := int64(0)
			for b.Loop() {
				run(b, conn, "START TRANSACTION")
				for left := benchRows; left > 0; left -= size {
					buf = append(buf[:0], "INSERT INTO t VALUES "...)
					for k := range size {
						n++
						if k > 0 {
							buf = append(buf, ',')
						}
						buf = append(buf, "('203.0.113.9','-','GET','/static/img/logo-large.png?v=17&lang=en','1.1',"...)
						buf = strconv.AppendInt(buf, 200+n%300, 10)
						buf = strconv.AppendInt(append(buf, ','), n*31%100_000, 10)
						buf = strconv.AppendFloat(append(buf, ','), float64(n%1000)/8, 'f', -1, 64)
						buf = append(buf, ",'https://shop.example.com/cart','Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Safari/537.36','web-07.example.com',"...)
						buf = strconv.AppendInt(buf, n%2, 10)
						buf = append(buf, ",'eu-central-1b',"...)
						buf = strconv.AppendInt(buf, n, 10)
						buf = append(buf, ",'2026-02-25 06:13:20.123000')"...)
					}
					run(b, conn, string(buf))
				}
				run(b, conn, "COMMIT")
				if turn++; turn%40 == 0 {
					b.StopTimer()
					execute(b, dsn, "TRUNCATE t")
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func run(b *testing.B, conn *stdsql.Conn, text string) {
	if _, err := conn.ExecContext(context.Background(), text); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecords is what making the benchmarks' records costs.
func BenchmarkRecords(b *testing.B) {
	s := sinktest.Build(b, &Config{}, "{dsn: 'u@tcp(h:1)/d', table: t}", sinktest.Plan{Fields: sinktest.AccessFields})
	batch := record.NewBatch(s.Table)
	for b.Loop() {
		batch.Reset()
		for i := range 1000 {
			sinktest.AccessRow(batch, int64(i))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}

// BenchmarkRows is the sink's work on a row up to the driver: encoding it, and making a statement of it.
func BenchmarkRows(b *testing.B) {
	s := sinktest.Build(b, &Config{}, "{dsn: 'u@tcp(h:1)/d', table: t}", sinktest.Plan{Fields: sinktest.AccessFields})
	batch := record.NewBatch(s.Table)
	const n = 1000
	for i := range n {
		sinktest.AccessRow(batch, int64(i))
	}
	var p sinks.Part
	encode := func() {
		p.Data, p.Ends = p.Data[:0], p.Ends[:0]
		for i := range n {
			p.Data, _ = s.Encode(p.Data, batch, i)
			p.Ends = append(p.Ends, len(p.Data))
		}
	}
	d := dialectOf(&built{Sink: s.Sink})
	d.t = &sql.Table{Options: &sql.Options{Table: "t", Mode: "insert"}}
	var table []column
	for _, f := range strings.Split(sinktest.AccessFields, ",") {
		f, typ, _ := strings.Cut(strings.TrimSpace(f), " ")
		d.t.Columns = append(d.t.Columns, sql.Column{Name: f})
		table = append(table, column{name: f, as: map[string]class{"STRING": textual, "BIGINT": integer, "TIMESTAMP": temporal}[typ]})
	}
	d.setTable(table)
	d.maxStmt, d.maxPacket = stmtBytes, 16<<20
	t := &tx{d: d}
	row := s.Sink.(*sql.Sink).NewRow()
	insert := func() {
		t.buf, t.ends, t.ops, t.rows = t.buf[:0], t.ends[:0], t.ops[:0], 0
		for i := range n {
			row.Decode(p.Row(i), len(d.t.Columns))
			if err := t.Insert(row); err != nil {
				b.Fatal(err)
			}
		}
	}
	encode()
	for _, c := range []struct {
		name string
		f    func()
	}{{"encode", encode}, {"statement", insert}, {"both", func() { encode(); insert() }}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}
