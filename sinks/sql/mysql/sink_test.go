package mysql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/test/services"
)

const create = "table: t, create_table: true"

func dialectOf(s *built) *dialect { return s.Sink.(*sql.Sink).Dialect().(*dialect) }

func TestTypes(t *testing.T) {
	s := started(t, create, plan{Fields: "i BIGINT, f DOUBLE, s STRING, b BOOLEAN, d DECIMAL, y BYTES, t TIMESTAMP, day DATE, a ARRAY, any, gone"})
	b := record.NewBatch(s.Table)
	large, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	for _, v := range []struct {
		f, s, b, d, y, any record.Value
		i                  int64
	}{
		{record.MakeFloat(1.5), b.PutString("héllo'\"\\\n\x1a\r😀"), record.MakeBool(true), record.MakeDecimal(12340, 3), b.PutString("\x00\xff'").As(record.Bytes), record.MakeNull(), math.MinInt64},
		{record.MakeFloat(math.MaxFloat64), b.PutString("a\x00b"), record.MakeBool(false), b.BigDecimal(large, 2), b.PutString("").As(record.Bytes), record.MakeDecimal(15, 1), math.MaxInt64},
		{record.MakeFloat(5e-324), b.PutString(""), record.MakeNull(), record.MakeDecimal(1, 0), record.MakeNull(), record.MakeInt(150), 0},
	} {
		i := b.Add(record.Position{}, record.Value{})
		set := func(name string, v record.Value) { b.SetNamed(i, b.PutString(name), v) }
		set("i", record.MakeInt(v.i))
		set("f", v.f)
		set("s", v.s)
		set("b", v.b)
		set("d", v.d)
		set("y", v.y)
		set("t", record.MakeTime(1772000000, 123456789, 9))
		set("day", record.MakeDate(-1))
		set("a", b.PutItems(record.Array, []record.Value{record.MakeInt(1), b.PutString("x\"y"), b.PutItems(record.Map, []record.Value{b.PutString("k"), record.MakeNull()})}))
		set("any", v.any)
	}
	p := sinks.Part{Split: split}
	for i := range b.Len() {
		p.Data, _ = s.Encode(p.Data, b, i)
		p.Ends = append(p.Ends, len(p.Data))
		p.Pos = append(p.Pos, record.Position{Offset: int64(i)})
	}
	if r := s.send(ctx, p); r.Err != nil || r.Rejects != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
	want(t, s.dsn, `SELECT i, f, s, HEX(s), b, CAST(d AS DECIMAL(40,4)), HEX(y), t, day, a, any FROM t ORDER BY d`, strings.Join([]string{
		`9223372036854775807|1.7976931348623157e+308|` + "a\x00b|610062" + `|0|-1234567890123456789012345678.9000||2026-02-25 06:13:20.123456|1969-12-31|[1,"x\"y",{"k":null}]|1.500000000000000000000000000000`,
		`0|5e-324|||NULL|1.0000|NULL|2026-02-25 06:13:20.123456|1969-12-31|[1,"x\"y",{"k":null}]|150.000000000000000000000000000000`,
		`-9223372036854775808|1.5|` + "héllo'\"\\\n\x1a\r😀|68C3A96C6C6F27225C0A1A0DF09F9880" + `|1|12.3400|00FF27|2026-02-25 06:13:20.123456|1969-12-31|[1,"x\"y",{"k":null}]|NULL`,
	}, "\n"))
	// `gone` never had a value, so it is no column.
	want(t, s.dsn, `SELECT GROUP_CONCAT(CONCAT(column_name, ' ', data_type) ORDER BY ordinal_position) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't'`,
		"i bigint,f double,s longtext,b tinyint,d decimal,y longblob,t datetime,day date,a longtext,any decimal")
	for k, v := range []float64{math.NaN(), math.Inf(-1)} {
		b.Reset()
		i := b.Add(record.Position{}, record.Value{})
		b.SetNamed(i, b.PutString("f"), record.MakeFloat(v))
		row, _ := s.Encode(nil, b, i)
		r := s.send(ctx, sinks.Part{Split: &record.Split{ID: "nan"}, Data: row, Ends: []int{len(row)}, Pos: []record.Position{{Offset: 9 + int64(k)}}})
		if r.Err != nil || len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], "column f: ") {
			t.Errorf("%v: %+v", v, r)
		}
	}
}

func TestColumns(t *testing.T) {
	s := started(t, create+", columns: {Name: a, twice: 'n * 2', text: UPPER(a), short: CAST(a AS VARCHAR(3))}", plan{Fields: "a STRING, n BIGINT, other"})
	s.put(t, 1, `{"a": "x", "n": 4, "other": 9}`, `{"n": 5}`, `{"a": "long"}`)
	want(t, s.dsn, `SELECT * FROM t`, `x|8|X|x`+"\n"+`NULL|10|NULL|NULL`+"\n"+`long|NULL|LONG|lon`)
	want(t, s.dsn, `SELECT column_type FROM information_schema.columns WHERE table_schema = DATABASE() AND column_name = 'short'`, "varchar(3)")
	m := s.Sink.(sinks.Mapper)
	if f, ok := m.FieldOf("Name"); f != "a" || !ok {
		t.Error(f, ok)
	}
	if f, ok := m.FieldOf("twice"); ok {
		t.Error(f, ok)
	}
}

func TestDynamic(t *testing.T) {
	for _, fields := range []string{"", "a BIGINT"} {
		s := started(t, create, plan{Fields: fields, Open: true})
		s.put(t, 1, `{"a": 1}`, `{"a": 2, "b": "x", "c.d": 1.5}`, `{"c.d": 2, "b": null, "a": 3, "never": null}`, `{"B": "the same column", "a": 4}`)
		want(t, s.dsn, "SELECT a, b, `c.d` FROM t", "1|NULL|NULL\n2|x|1.5\n3|NULL|2\n4|the same column|NULL")
		s.stop()
		s = startedOn(t, s.dsn, create, plan{Fields: fields, Open: true}, false)
		s.put(t, 10, `{"a": 6, "b": "y", "e": 1}`)
		want(t, s.dsn, `SELECT a, b, e FROM t WHERE a = 6`, `6|y|1`)
		want(t, s.dsn, `SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 't'`, "4")
	}
}

func TestNames(t *testing.T) {
	s := started(t, create, plan{Fields: "id BIGINT", Open: true})
	long := strings.Repeat("ñ", 64)
	r := s.send(ctx, s.Part(t, split, 1,
		`{"id": 1, "a\"b": 1, "x'y": 2, "semi; DROP TABLE t": 3, "sp ace": 4, "select": 5, "]": 6, "`+"`"+`": 7, "?1": 8, "row id": 9, "`+long+`": 10}`,
		`{"id": 2, "nul\u0000": 1}`, `{"id": 3, "": 1}`, `{"id": 4, "`+long+`x": 1}`, `{"id": 5, "k": 1, "K": 2}`, `{"id": 6, "ID": 7}`, `{"id": 8}`, `{"id": 9, "space ": 1}`, `{"id": 10, "😀": 1}`))
	if r.Err != nil || len(r.Rejects) != 7 {
		t.Fatalf("%d rejects: %+v", len(r.Rejects), r)
	}
	want(t, s.dsn, "SELECT id, `a\"b`, `x'y`, `semi; DROP TABLE t`, `sp ace`, `select`, `]`, ````, `?1`, `"+long+"` FROM t", "1|1|2|3|4|5|6|7|8|10\n8"+strings.Repeat("|NULL", 9))
}

// TestRefused has rows that can't go among rows that can, for each reason.
func TestRefused(t *testing.T) {
	dsn := services.MySQL(t)
	execute(t, dsn, `CREATE TABLE parent (id INT PRIMARY KEY)`, `INSERT INTO parent VALUES (1)`,
		`CREATE TABLE t (id INT PRIMARY KEY, txt VARCHAR(5), n TINYINT UNSIGNED, d DECIMAL(4,2), at DATETIME, e ENUM('a','b'), must INT NOT NULL DEFAULT 0, p INT, CHECK (p <> 7), FOREIGN KEY (p) REFERENCES parent (id))`)
	const p = "id BIGINT, txt STRING, n, d, at, e, must, p"
	bad := []struct{ rec, reason string }{
		{`"txt": "toolong"`, "too long"},
		{`"txt": "abcd     "`, "Data truncated"}, // spaces: the server only notes it
		{`"n": 256`, "Out of range"}, {`"n": -1`, "Out of range"}, {`"n": "x"`, "Incorrect"}, {`"n": 1.5`, "rounded"}, {`"n": "1.5"`, "rounded"},
		{`"d": 1.239`, "truncated"}, {`"d": 100`, "Out of range"},
		{`"at": "yesterday"`, "Incorrect datetime"}, {`"at": "2024-02-30"`, "Incorrect datetime"}, {`"at": "0000-00-00"`, "Incorrect datetime"},
		{`"e": "c"`, "truncated"}, {`"must": null`, "cannot be null"}, {`"p": 7`, "CONSTRAINT"}, {`"p": 2`, "foreign key"},
	}
	for _, size := range []int{0, 150} { // in one statement, in several
		s := startedOn(t, dsn, "table: t", plan{Fields: p}, true)
		dialectOf(s).testStmt = size
		s.start(false)
		execute(t, dsn, `DELETE FROM t`)
		var recs []string
		n := 0
		for _, b := range bad {
			n++
			recs = append(recs, fmt.Sprintf(`{"id": %d, "must": 1}`, n))
			n++
			rec := fmt.Sprintf(`{"id": %d, "must": 1, %s}`, n, b.rec)
			if strings.Contains(b.rec, "must") {
				rec = fmt.Sprintf(`{"id": %d, %s}`, n, b.rec)
			}
			recs = append(recs, rec)
		}
		recs = append(recs, `{"id": 1, "must": 1}`) // a duplicate
		sp := &record.Split{ID: fmt.Sprint("s", size)}
		r := s.send(ctx, s.Part(t, sp, 1, recs...))
		if r.Err != nil || r.Skipped != 0 || len(r.Rejects) != len(bad)+1 {
			t.Fatalf("%d rejects of %d: %+v", len(r.Rejects), len(bad)+1, r)
		}
		for _, b := range bad {
			found := 0
			for i := range recs {
				if strings.Contains(recs[i], b.rec) {
					for _, line := range r.Rejects {
						if strings.HasPrefix(line, fmt.Sprintf("0/%d: ", i)) {
							found++
							if !strings.Contains(strings.ToLower(line), strings.ToLower(b.reason)) {
								t.Errorf("%s: %s, want %s", b.rec, line, b.reason)
							}
						}
					}
				}
			}
			if found != 1 {
				t.Errorf("%s: %d letters", b.rec, found)
			}
		}
		if line := strings.Join(r.Rejects, "\n"); !strings.Contains(line, fmt.Sprintf("0/%d: Duplicate entry '1'", len(recs)-1)) {
			t.Error("no duplicate in", line)
		}
		want(t, dsn, `SELECT COUNT(*), SUM(id % 2) FROM t`, fmt.Sprintf("%d|%d", len(bad), len(bad)))
		want(t, dsn, `SELECT pos FROM rsetl_positions WHERE split = 's`+fmt.Sprint(size)+`'`, fmt.Sprint(len(recs)))
		s.stop()
	}
}

func TestModes(t *testing.T) {
	type test struct{ mode, want string }
	recs := []string{`{"k": 1, "v": "a", "w": "w"}`, `{"k": 2, "v": "b"}`, `{"k": 1, "v": "c"}`, `{"k": null, "v": "n1", "w": "w"}`, `{"v": "n2"}`, `{"k": 2, "v": null}`}
	for _, fields := range []string{"k BIGINT, v STRING, w STRING", ""} {
		tests := []test{
			{"upsert, key: [k]", "1|c|NULL\n2|NULL|NULL\nNULL|n2|NULL"},
			{"replace, key: [k]", "1|c|NULL\n2|NULL|NULL\nNULL|n2|NULL"},
			{"ignore, key: [k]", "1|a|w\n2|b|NULL\nNULL|n1|w"},
			{"upsert, key: [k, v]", "1|a|w\n1|c|NULL\n2|b|NULL\n2|NULL|NULL\nNULL|n1|w\nNULL|n2|NULL"},
			{"insert", "1|a|w\n1|c|NULL\n2|b|NULL\n2|NULL|NULL\nNULL|n1|w\nNULL|n2|NULL"},
		}
		if fields == "" { // a field that a record doesn't have is left alone
			tests[0].want = "1|c|w\n2|NULL|NULL\nNULL|n2|w"
		}
		for _, c := range tests {
			t.Run(c.mode+" "+fields, func(t *testing.T) {
				s := started(t, create+", mode: "+c.mode, plan{Fields: fields, Open: fields == ""})
				s.put(t, 1, recs...)
				const q = `SELECT k, v, w FROM t ORDER BY k IS NULL, k, v IS NULL, v`
				want(t, s.dsn, q, c.want)
				s.put(t, 100, recs...) // after the last position: the same rows again
				if c.mode != "insert" {
					want(t, s.dsn, `SELECT COUNT(*) FROM t`, fmt.Sprint(strings.Count(c.want, "\n")+1))
				}
			})
		}
	}
}

// TestKeys: texts of the key compare by their bytes, and a value that the key refuses leaves the old row.
func TestKeys(t *testing.T) {
	s := started(t, create+", mode: upsert, key: [k]", plan{Fields: "k STRING, n BIGINT"})
	s.put(t, 1, `{"k": "a", "n": 1}`, `{"k": "A", "n": 2}`, `{"k": "á", "n": 3}`, `{"k": "a ", "n": 4}`, `{"k": "", "n": 5}`, `{"k": "a", "n": 6}`)
	want(t, s.dsn, `SELECT GROUP_CONCAT(n ORDER BY n) FROM t`, "2,3,4,5,6")
	dsn := services.MySQL(t)
	execute(t, dsn, `CREATE TABLE t (k INTEGER UNIQUE, v VARCHAR(3) NOT NULL)`, `INSERT INTO t VALUES (NULL, 'old'), (1, 'one')`)
	for _, mode := range []string{"replace", "upsert"} {
		s := startedOn(t, dsn, "table: t, key: [k], mode: "+mode, plan{Fields: "k BIGINT, v STRING"}, true)
		r := s.send(ctx, s.Part(t, &record.Split{ID: mode}, 1, `{"k": null, "v": null}`, `{"k": null, "v": "long"}`, `{"k": 1, "v": "two"}`))
		if r.Err != nil || len(r.Rejects) != 2 || !strings.Contains(r.Rejects[0], "null") || !strings.Contains(r.Rejects[1], "too long") {
			t.Errorf("%s: %+v", mode, r)
		}
		want(t, dsn, `SELECT k, v FROM t ORDER BY k`, "NULL|old\n1|two")
		s.stop()
	}
}

// TestTables has tables that the sink must not take.
func TestTables(t *testing.T) {
	dsn := services.MySQL(t)
	execute(t, dsn, `CREATE TABLE noindex (k INT, v INT)`, `CREATE TABLE two (k INT UNIQUE, v INT UNIQUE)`, `CREATE TABLE part (k VARCHAR(20), v INT, UNIQUE (k(3)))`,
		`CREATE TABLE counter (id INT AUTO_INCREMENT PRIMARY KEY, k INT UNIQUE, v INT)`, `CREATE TABLE old (k INT UNIQUE, v INT) ENGINE=MyISAM`, `CREATE VIEW seen AS SELECT 1 AS k, 2 AS v`)
	for table, reason := range map[string]string{
		"none": "there is no table none", "noindex": "needs a unique index", "two": "another unique index", "part": "needs a unique index",
		"old": "no transactions", "seen": "is a view", "rsetl_positions": "reserved", "counter": "",
	} {
		s := build(t, dsn, "mode: upsert, key: [k], table: "+table, plan{Fields: "k BIGINT, v BIGINT"})
		err := s.start(true)
		s.stop()
		if reason == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), reason) || !sinks.IsPermanent(err)) {
			t.Errorf("%s: %v, want %s", table, err, reason)
		}
	}
	s := build(t, dsn, "table: counter", plan{Fields: "k BIGINT, x BIGINT"})
	if err := s.start(true); err == nil || !strings.Contains(err.Error(), "no column x (it has id, k, v)") {
		t.Error(err)
	}
	s.stop()
	for _, c := range []struct{ dsn, want string }{{"nonsense", "not a DSN"}, {"root@tcp(h:1)/", "names no database"}} {
		if _, err := try(c.dsn, "table: t", plan{Fields: "a"}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.dsn, err)
		}
	}
	_, err := try("u:hush@tcp(h:1)/x", "table: ''", plan{Fields: "a"})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}

func TestIfExists(t *testing.T) {
	dsn := services.MySQL(t)
	p := plan{Fields: "a BIGINT"}
	first := startedOn(t, dsn, create+", if_exists: fail", p, true)
	first.put(t, 5, `{"a": 1}`)
	if err := first.start(true); err != nil {
		t.Errorf("a reconnect: %v", err)
	}
	first.stop()
	if err := build(t, dsn, create+", if_exists: fail", p).start(true); err == nil || !sinks.IsPermanent(err) {
		t.Error("it took the table", err)
	}
	again := startedOn(t, dsn, create+", if_exists: fail", p, false)
	if r := again.send(ctx, again.Part(t, split, 5, `{"a": 1}`, `{"a": 2}`)); r.Err != nil || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	again.stop()
	anew := startedOn(t, dsn, create+", if_exists: replace", p, true)
	anew.put(t, 1, `{"a": 3}`)
	want(t, dsn, `SELECT a FROM t`, "3")
	want(t, dsn, `SELECT split, pos FROM rsetl_positions`, "split-1|1")
}

func TestFenced(t *testing.T) {
	old := started(t, create, plan{Fields: "a BIGINT"})
	old.put(t, 1, `{"a": 1}`)
	now := startedOn(t, old.dsn, create, plan{Fields: "a BIGINT"}, false)
	mine := &record.Split{ID: split.ID}
	if r := now.send(ctx, now.Part(t, mine, 1, `{"a": 1}`, `{"a": 2}`)); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	if r := old.send(ctx, old.Part(t, split, 2, `{"a": 2}`, `{"a": 9}`)); !errors.Is(r.Err, sql.ErrFenced) {
		t.Errorf("%+v", r)
	}
	// Two writers at once: the second waits for the first's lock and finds the position moved.
	d := dialectOf(now)
	tx, err := d.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, ok, err := tx.Position(split.ID)
	if err != nil || !ok || p.Offset != 2 {
		t.Fatal(p, ok, err)
	}
	execute(t, old.dsn, `UPDATE rsetl_positions SET pos = 7`)
	tx.Advance(mine, p, ok, record.Position{Offset: 3})
	if _, err := tx.(sql.Flusher).Flush(); !errors.Is(err, sql.ErrFenced) {
		t.Error(err)
	}
	tx.Rollback()
	want(t, old.dsn, `SELECT a FROM t`, "1\n2")
}

func TestEpochs(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	first, second := &record.Split{ID: "q", Epoch: 1}, &record.Split{ID: "q", Epoch: 2}
	if r := s.send(ctx, s.Part(t, first, 100, `{"a": 1}`)); r.Err != nil {
		t.Fatal(r)
	}
	if r := s.send(ctx, s.Part(t, second, 10, `{"a": 2}`)); r.Err != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
	if r := s.send(ctx, s.Part(t, second, 10, `{"a": 2}`, `{"a": 3}`)); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	want(t, s.dsn, `SELECT epoch, pos, recent FROM rsetl_positions`, `2|11|10/0 11/0`)
	if r := s.send(ctx, s.Part(t, first, 101, `{"a": 9}`)); !errors.Is(r.Err, sql.ErrFenced) {
		t.Errorf("the writer of before the reset: %+v", r)
	}
}

// TestPacket has a server that takes small statements only.
func TestPacket(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT, x STRING"})
	d := dialectOf(s)
	d.maxPacket, d.maxStmt = 20_000, 16_000
	var recs []string
	for i := range 100 {
		recs = append(recs, fmt.Sprintf(`{"a": %d, "x": %q}`, i, strings.Repeat("x", 1000)))
	}
	recs[50] = fmt.Sprintf(`{"a": 50, "x": %q}`, strings.Repeat("x", 17_000))
	r := s.send(ctx, s.Part(t, split, 1, recs...))
	if r.Err != nil || len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], "max_allowed_packet of 20000") {
		t.Fatalf("%+v", r)
	}
	if n := len(d.tx.ops); n != 7 {
		t.Errorf("%d statements", n)
	}
	want(t, s.dsn, `SELECT COUNT(*), SUM(a) FROM t`, "99|4900")
}

// TestLocked: another transaction has a lock. A deadlock, too, is tried again as a whole.
func TestLocked(t *testing.T) {
	s := started(t, create+", mode: upsert, key: [a]", plan{Fields: "a BIGINT, n BIGINT"})
	s.put(t, 1, `{"a": 1, "n": 1}`, `{"a": 2, "n": 1}`)
	db := open(t, s.dsn)
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`UPDATE t SET n = 5 WHERE a = 2`); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	p := s.Part(t, split, 3, `{"a": 1, "n": 2}`, `{"a": 2, "n": 2}`)
	begun := time.Now()
	if r := s.send(short, p); !errors.Is(r.Err, context.DeadlineExceeded) || sinks.IsPermanent(r.Err) || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", r.Err, time.Since(begun))
	}
	// Now a deadlock: the sink has a=1 and wants a=2, the other the reverse. The server ends one of them.
	done := make(chan sinktest.Result)
	go func() { done <- s.send(ctx, p) }()
	for query(t, s.dsn, `SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`) == "0" {
		time.Sleep(5 * time.Millisecond)
	}
	_, err = tx.Exec(`UPDATE t SET n = 5 WHERE a = 1`)
	tx.Commit()
	r := <-done
	if (err == nil) == (r.Err == nil) {
		t.Errorf("the other: %v, the sink: %v", err, r.Err)
	}
	if r.Err != nil && mysqlconn.Number(r.Err) != erLockDeadlock {
		t.Error(r.Err)
	}
	if r.Err != nil {
		r = s.send(ctx, p)
	}
	if r.Err != nil || r.Skipped != 0 || r.Rejects != nil {
		t.Errorf("%+v", r)
	}
	want(t, s.dsn, `SELECT n FROM t ORDER BY a`, "2\n2")
}

// TestKilled: the server ends the session between deliveries, and while one is under way.
func TestKilled(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT, x STRING", Open: true})
	s.put(t, 1, `{"a": 1}`)
	kill := func() {
		for _, id := range strings.Fields(query(t, s.dsn, `SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()`)) {
			execute(t, s.dsn, "KILL "+id)
		}
	}
	kill()
	s.put(t, 2, `{"a": 2}`) // it connects anew at once
	p := s.Part(t, split, 3, `{"a": 3, "new": 1}`, `{"a": 4, "x": 1}`, `{"a": 5, "nul\u0000": 1}`)
	c := &sinks.Chunk{Parts: []sinks.Part{p}, Letters: func([]sinks.Reject) error { kill(); return nil }}
	if _, err := s.Deliver(ctx, c); err == nil || sinks.IsPermanent(err) {
		t.Error(err)
	}
	want(t, s.dsn, `SELECT COUNT(*) FROM t`, "2")
	if r := s.send(ctx, p); r.Err != nil || r.Skipped != 0 || len(r.Rejects) != 1 {
		t.Errorf("%+v", r)
	}
	want(t, s.dsn, `SELECT a, x, new FROM t`, "1|NULL|NULL\n2|NULL|NULL\n3|NULL|1\n4|1|NULL")
}

// TestSchemaChanges are another client's changes to the table while the sink is open.
func TestSchemaChanges(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT", Open: true})
	s.put(t, 1, `{"a": 1, "b": 1}`)
	execute(t, s.dsn, "ALTER TABLE t ADD COLUMN c INT, DROP COLUMN b")
	p := s.Part(t, split, 2, `{"a": 2, "b": 2, "c": 2}`)
	if r := s.send(ctx, p); r.Err != nil { // it is told of by the server, and reads the columns anew
		if r = s.send(ctx, p); r.Err != nil || r.Rejects != nil {
			t.Errorf("%+v", r)
		}
	}
	want(t, s.dsn, `SELECT a, b, c FROM t`, "1|NULL|NULL\n2|2|2")
	fixed := startedOn(t, s.dsn, "table: t", plan{Fields: "a BIGINT", Open: true}, false)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "f"}, 1, `{"a": 3, "e": 3}`)); len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], `no column "e"`) {
		t.Errorf("%+v", r)
	}
	execute(t, s.dsn, `ALTER TABLE t ADD COLUMN e INT`)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "g"}, 1, `{"a": 3, "e": 3}`)); r.Err != nil || len(r.Rejects) != 0 {
		t.Errorf("%+v", r)
	}
	execute(t, s.dsn, `DROP TABLE t`)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "h"}, 1, `{"a": 4}`)); r.Err == nil || !strings.Contains(r.Err.Error(), "doesn't exist") {
		t.Errorf("%+v", r)
	}
}

// TestSession: what the server's defaults and the DSN say of mode, zone and character set doesn't matter.
func TestSession(t *testing.T) {
	dsn := services.MySQL(t)
	s := startedOn(t, dsn+"?sql_mode=''&time_zone='%2B05:00'&charset=latin1&multiStatements=true", create, plan{Fields: "a STRING, t TIMESTAMP, n BIGINT"}, true)
	b := record.NewBatch(s.Table)
	i := b.Add(record.Position{Offset: 1}, record.Value{})
	b.SetNamed(i, b.PutString("a"), b.PutString("é😀"))
	b.SetNamed(i, b.PutString("t"), record.MakeTime(1772000000, 0, 0))
	row, _ := s.Encode(nil, b, i)
	if r := s.send(ctx, sinks.Part{Split: split, Data: row, Ends: []int{len(row)}, Pos: []record.Position{b.Pos(i)}}); r.Err != nil || r.Rejects != nil {
		t.Fatalf("%+v", r)
	}
	want(t, dsn, `SELECT HEX(a), t FROM t`, "C3A9F09F9880|2026-02-25 06:13:20.000000")
}
