package mysql

import (
	stdsql "database/sql"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
			execute(b, dialectOf(&built{Built: s}).cfg.FormatDSN(), "TRUNCATE t")
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

// byHand is a loop by hand: multi-row statements of literals, one transaction for as many rows as the sink's.
type byHand struct {
	size int // rows of a statement
	conn *stdsql.Conn
	buf  []byte
	n    int64
}

func (h *byHand) write(b *testing.B) {
	run(b, h.conn, "START TRANSACTION")
	for left := benchRows; left > 0; left -= h.size {
		buf := append(h.buf[:0], "INSERT INTO byhand VALUES "...)
		for k := range h.size {
			h.n++
			n := h.n
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
		h.buf = buf
		run(b, h.conn, string(buf))
	}
	run(b, h.conn, "COMMIT")
}

// BenchmarkAgainstHand writes the same rows by turns through the sink and by loops by hand with statements of several sizes.
// of-best is the sink's rows/s as a share of the best loop's: of what delivers, since lanes encode meanwhile; encoded-of-best
// has the encoding in it.
func BenchmarkAgainstHand(b *testing.B) {
	dsn := services.MySQL(b)
	s := benchSink(b, dsn)
	execute(b, dsn, "CREATE TABLE byhand ("+benchColumns+")")
	db := open(b, dsn)
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	var hands []*byHand
	for _, size := range []int{500, 1000, 2500} {
		hands = append(hands, &byHand{size: size, conn: conn})
	}
	took := make([]time.Duration, len(hands)+1)
	encoding := time.Duration(0)
	batch := record.NewBatch(s.Table)
	p := sinks.Part{Split: split}
	at, turn := int64(0), 0
	for b.Loop() {
		batch.Reset()
		batch.Split = split
		for range benchRows {
			at++
			sinktest.AccessRow(batch, at)
		}
		begun := time.Now()
		p.Data, p.Ends, p.Pos = p.Data[:0], p.Ends[:0], p.Pos[:0]
		for i := range benchRows {
			p.Data, _ = s.Encode(p.Data, batch, i)
			p.Ends = append(p.Ends, len(p.Data))
			p.Pos = append(p.Pos, batch.Pos(i))
		}
		encoding += time.Since(begun)
		begun = time.Now()
		if _, err := s.Deliver(ctx, &sinks.Chunk{Parts: []sinks.Part{p}}); err != nil {
			b.Fatal(err)
		}
		took[0] += time.Since(begun)
		for i, h := range hands {
			begun := time.Now()
			h.write(b)
			took[i+1] += time.Since(begun)
		}
		if turn++; turn%20 == 0 {
			execute(b, dsn, "TRUNCATE t", "TRUNCATE byhand")
		}
	}
	best := slices.Min(took[1:])
	b.ReportMetric(float64(b.N)*benchRows/took[0].Seconds(), "rows/s")
	b.ReportMetric(float64(b.N)*benchRows/best.Seconds(), "best-by-hand-rows/s")
	b.ReportMetric(best.Seconds()/took[0].Seconds(), "of-best")
	b.ReportMetric(best.Seconds()/(took[0]+encoding).Seconds(), "encoded-of-best")
}

func run(b *testing.B, conn *stdsql.Conn, text string) {
	if _, err := conn.ExecContext(ctx, text); err != nil {
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
	d := dialectOf(&built{Built: s})
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
