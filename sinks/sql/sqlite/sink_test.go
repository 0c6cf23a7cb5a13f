package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
)

const create = "table: t, create_table: true"

func TestTypes(t *testing.T) {
	s := started(t, create, plan{Fields: "i BIGINT, f DOUBLE, s STRING, b BOOLEAN, d DECIMAL, y BYTES, t TIMESTAMP, day DATE, a ARRAY, any, gone"})
	want(t, s.path, `SELECT sql FROM sqlite_schema WHERE name = 't'`,
		`"CREATE TABLE \"t\" (\"i\" INTEGER, \"f\" REAL, \"s\" TEXT, \"b\" BOOLEAN, \"d\" TEXT, \"y\" BLOB, \"t\" TEXT, \"day\" TEXT, \"a\" TEXT, \"any\", \"gone\")"`)
	b := record.NewBatch(s.Table)
	large, _ := new(big.Int).SetString("-123456789012345678901234567890", 10)
	for _, v := range []struct {
		f, s, b, d, y, any record.Value
		i                  int64
	}{
		{record.MakeFloat(1.5), b.PutString("héllo'\"\n"), record.MakeBool(true), record.MakeDecimal(12340, 3), b.PutString("\x00\xff").As(record.Bytes), record.MakeInt(7), math.MinInt64},
		{record.MakeFloat(math.Inf(1)), b.PutString("a\x00b"), record.MakeBool(false), b.BigDecimal(large, 5), b.PutString("").As(record.Bytes), b.PutString("7"), math.MaxInt64},
		{record.MakeFloat(math.NaN()), b.PutString(""), record.MakeNull(), record.MakeDecimal(1, 0), record.MakeNull(), record.MakeDecimal(150, 2), 0},
	} {
		i := b.Add(record.Position{}, record.Value{})
		set := func(name string, v record.Value) { b.SetNamed(i, b.PutString(name), v) }
		set("i", record.MakeInt(v.i))
		set("f", v.f)
		set("s", v.s)
		set("b", v.b)
		set("d", v.d)
		set("y", v.y)
		set("t", record.MakeTime(1772000000, 123456789, 6))
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
	first := string(s.Sink.(sinks.Describer).Describe(nil, p.Row(0)))
	if wantJSON := `{"i":-9223372036854775808,"f":1.5,"s":"héllo'\"\n","b":true,"d":12.340,"y":"AP8=","t":"2026-02-25T06:13:20.123456Z","day":"1969-12-31","a":[1,"x\"y",{"k":null}],"any":7}`; first != wantJSON {
		t.Errorf("described as\n%s, want\n%s", first, wantJSON)
	}
	// Offset 0 is a split's start: a record there has never been committed.
	if r := s.send(ctx, p); r.Err != nil || r.Rejects != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
	want(t, s.path, `SELECT i, f, s, length(CAST(s AS BLOB)), b, d, y, t, day, a, any, typeof(any), gone FROM t`, strings.Join([]string{
		`-9223372036854775808|1.5|"héllo'\"\n"|9|1|"12.340"|x00ff|"2026-02-25T06:13:20.123456Z"|"1969-12-31"|"[1,\"x\\\"y\",{\"k\":null}]"|7|"integer"|NULL`,
		`9223372036854775807|Inf|"a\x00b"|3|0|"-1234567890123456789012345.67890"|x|"2026-02-25T06:13:20.123456Z"|"1969-12-31"|"[1,\"x\\\"y\",{\"k\":null}]"|"7"|"text"|NULL`,
		`0|NULL|""|0|NULL|"1"|NULL|"2026-02-25T06:13:20.123456Z"|"1969-12-31"|"[1,\"x\\\"y\",{\"k\":null}]"|"1.50"|"text"|NULL`,
	}, "\n"))
	if fi, err := os.Stat(s.path); err != nil || fi.Mode().Perm()&0o007 != 0 {
		t.Errorf("the file's mode is %v, %v", fi.Mode(), err)
	}
}

func TestColumns(t *testing.T) {
	s := started(t, create+", columns: {Name: a, twice: 'n * 2', text: UPPER(a)}", plan{Fields: "a STRING, n BIGINT, other"})
	s.put(t, 1, `{"a": "x", "n": 4, "other": 9}`, `{"n": 5}`)
	want(t, s.path, `SELECT * FROM t`, `"x"|8|"X"`+"\n"+`NULL|10|NULL`)
	want(t, s.path, `SELECT group_concat(name || ' ' || type) FROM pragma_table_info('t')`, `"Name TEXT,twice INTEGER,text TEXT"`)
}

func TestDynamic(t *testing.T) {
	for _, fields := range []string{"", "a BIGINT"} {
		s := started(t, create, plan{Fields: fields, Open: true})
		s.put(t, 1, `{"a": 1}`, `{"a": 2, "b": "x", "c.d": 1.5}`, `{"c.d": 2, "b": null, "a": 3}`, `{"B": "the same column", "a": 4}`, `{"é": 1, "É": 2, "a": 5}`)
		want(t, s.path, `SELECT a, b, "c.d", "é", "É" FROM t`, "1|NULL|NULL|NULL|NULL\n2|\"x\"|1.5|NULL|NULL\n3|NULL|2|NULL|NULL\n4|\"the same column\"|NULL|NULL|NULL\n5|NULL|NULL|1|2")
		s.stop()
		s = startedOn(t, s.path, create, plan{Fields: fields, Open: true}, false)
		s.put(t, 10, `{"a": 6, "b": "y", "e": 1}`)
		want(t, s.path, `SELECT a, b, e FROM t WHERE a = 6`, `6|"y"|1`)
	}
}

// TestNames has the names that no column can have, and odd ones that can.
func TestNames(t *testing.T) {
	s := started(t, create, plan{Fields: "id BIGINT", Open: true})
	long := strings.Repeat("n", 255)
	r := s.send(ctx, s.Part(t, split, 1,
		`{"id": 1, "a\"b": 1, "x'y": 2, "semi; DROP TABLE t": 3, "sp ace": 4, "select": 5, "]": 6, "`+"`"+`": 7, "?1": 8, "row id": 9, "`+long+`": 10}`,
		`{"id": 2, "nul\u0000": 1}`, `{"id": 3, "": 1}`, `{"id": 4, "`+long+`x": 1}`, `{"id": 5, "k": 1, "K": 2}`, `{"id": 6, "ID": 7}`, `{"id": 8}`,
		`{"id": 9, "new1": 1, "new2": 2, "rowid": 3}`, `{"id": 10, "new2": 1}`))
	if r.Err != nil || len(r.Rejects) != 6 {
		t.Fatalf("%+v", r)
	}
	for i, text := range []string{`0/1: a field's name can't be a column: "nul\x00" (4 bytes)`, `0/2: a field's name`, `0/3: a field's name`, `0/4: fields "k" and "K" are one column to SQLite`, `0/5: fields "id" and "ID" are one column`, `0/7: add column "rowid": SQL logic error`} {
		if !strings.HasPrefix(r.Rejects[i], text) {
			t.Errorf("%s, want %s", r.Rejects[i], text)
		}
	}
	want(t, s.path, `SELECT id, "a""b", "x'y", "semi; DROP TABLE t", "sp ace", "select", "]", "`+"`"+`", "?1", "`+long+`" FROM t`, "1|1|2|3|4|5|6|7|8|10\n8"+strings.Repeat("|NULL", 9)+"\n10"+strings.Repeat("|NULL", 9))
	want(t, s.path, `SELECT count(*), group_concat(name) FILTER (WHERE name LIKE 'new%') FROM pragma_table_info('t')`, `12|"new2"`) // a refused row leaves no column
	odd := started(t, `table: "a\"b; --", create_table: true`, plan{Fields: `x"y BIGINT`})
	odd.put(t, 1, `{"x\"y": 1}`)
	want(t, odd.path, `SELECT "x""y" FROM "a""b; --"`, "1")
}

func TestTooManyColumns(t *testing.T) {
	s := started(t, create, plan{Fields: "id BIGINT", Open: true})
	var wide strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&wide, `, "c%d": %d`, i, i)
	}
	r := s.send(ctx, s.Part(t, split, 1, `{"id": 1}`, `{"id": 2`+wide.String()+`}`, `{"id": 3}`, `{"id": 4, "c1": 5}`))
	if r.Err != nil || len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], "too many columns") {
		t.Fatalf("%+v", r)
	}
	want(t, s.path, `SELECT id, c1 FROM t`, "1|NULL\n3|NULL\n4|5")
	want(t, s.path, `SELECT count(*) FROM pragma_table_info('t')`, "2")
}

func TestManyShapes(t *testing.T) {
	s := started(t, create, plan{Fields: "id BIGINT", Open: true})
	var recs []string
	for i := range 300 {
		recs = append(recs, fmt.Sprintf(`{"id": %d, "c%d": %d, "c%d": 1}`, i, i%100, i, 100+i%7))
	}
	s.put(t, 1, recs...)
	want(t, s.path, `SELECT count(*), sum(c99), sum(c106) FROM t`, "300|597|42")
}

func TestModes(t *testing.T) {
	type test struct{ mode, want string }
	recs := []string{`{"k": 1, "v": "a", "w": "w"}`, `{"k": 2, "v": "b"}`, `{"k": 1, "v": "c"}`, `{"k": null, "v": "n1", "w": "w"}`, `{"v": "n2"}`, `{"k": 2, "v": null}`}
	for _, fields := range []string{"k BIGINT, v STRING, w STRING", ""} {
		tests := []test{
			{"upsert, key: [k]", `1|"c"|NULL` + "\n" + `2|NULL|NULL` + "\n" + `NULL|"n2"|NULL`},
			{"replace, key: [k]", `1|"c"|NULL` + "\n" + `2|NULL|NULL` + "\n" + `NULL|"n2"|NULL`},
			{"ignore, key: [k]", `1|"a"|"w"` + "\n" + `2|"b"|NULL` + "\n" + `NULL|"n1"|"w"`},
			{"upsert, key: [k, v]", `1|"a"|"w"` + "\n" + `1|"c"|NULL` + "\n" + `2|"b"|NULL` + "\n" + `2|NULL|NULL` + "\n" + `NULL|"n1"|"w"` + "\n" + `NULL|"n2"|NULL`},
			{"insert", `1|"a"|"w"` + "\n" + `1|"c"|NULL` + "\n" + `2|"b"|NULL` + "\n" + `2|NULL|NULL` + "\n" + `NULL|"n1"|"w"` + "\n" + `NULL|"n2"|NULL`},
		}
		if fields == "" { // a field that a record doesn't have is left alone
			tests[0].want = strings.ReplaceAll(tests[0].want, `"c"|NULL`, `"c"|"w"`)
			tests[0].want = strings.ReplaceAll(tests[0].want, `"n2"|NULL`, `"n2"|"w"`)
		}
		for _, c := range tests {
			t.Run(c.mode+" "+fields, func(t *testing.T) {
				s := started(t, create+", mode: "+c.mode, plan{Fields: fields, Open: fields == ""})
				s.put(t, 1, recs...)
				want(t, s.path, `SELECT k, v, w FROM t ORDER BY k IS NULL, k, v IS NULL, v`, c.want)
				s.put(t, 100, recs...) // after the last position: the same rows again
				if c.mode != "insert" {
					if n := query(t, s.path, `SELECT count(*) FROM t`); n != fmt.Sprint(strings.Count(c.want, "\n")+1) {
						t.Errorf("%s rows after the same rows again", n)
					}
				}
			})
		}
	}
}

// TestNullKeyIsWhole refuses the new row of a replacement: the old one must stay.
func TestNullKeyIsWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	execute(t, path, `CREATE TABLE t (k INTEGER UNIQUE, v TEXT NOT NULL); INSERT INTO t VALUES (NULL, 'old'), (1, 'one')`)
	for _, mode := range []string{"replace", "upsert"} {
		s := startedOn(t, path, "table: t, key: [k], mode: "+mode, plan{Fields: "k BIGINT, v STRING"}, true)
		r := s.send(ctx, s.Part(t, &record.Split{ID: mode}, 1, `{"k": null, "v": null}`, `{"k": 1, "v": "two"}`))
		if r.Err != nil || len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], "NOT NULL") {
			t.Errorf("%s: %+v", mode, r)
		}
		want(t, path, `SELECT k, v FROM t ORDER BY k`, `NULL|"old"`+"\n"+`1|"two"`)
		s.stop()
	}
}

func TestDynamicKey(t *testing.T) {
	s := started(t, create+", mode: upsert, key: [Host, day]", plan{Fields: "day DATE", Open: true})
	s.put(t, 1, `{"host": "a", "day": "x", "n": 1}`, `{"host": "a", "day": "x", "n": 2}`, `{"host": "b", "day": "x", "n": 3}`, `{"day": "x", "n": 4}`, `{"day": "x", "n": 5, "m": 6}`)
	want(t, s.path, `SELECT host, n, m FROM t ORDER BY n`, `"a"|2|NULL`+"\n"+`"b"|3|NULL`+"\n"+`NULL|5|6`)
}

func TestIfExists(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	p := plan{Fields: "a BIGINT"}
	first := startedOn(t, path, create+", if_exists: fail", p, true)
	first.put(t, 5, `{"a": 1}`)
	if err := first.start(true); err != nil {
		t.Errorf("a reconnect: %v", err)
	}
	first.stop()
	startedOn(t, path, create+", if_exists: fail", p, false).stop()
	if err := build(t, path, create+", if_exists: fail", p).start(true); !sinks.IsPermanent(err) || !strings.Contains(err.Error(), "if_exists: fail") {
		t.Errorf("fail: %v", err)
	}
	// Append, also to state that begins anew: what is there is known.
	s := startedOn(t, path, create, p, true)
	if r := s.send(ctx, s.Part(t, &record.Split{ID: split.ID}, 5, `{"a": 1}`, `{"a": 2}`)); r.Err != nil || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	s.stop()
	want(t, path, `SELECT a FROM t`, "1\n2")
	// Replace doesn't act at later starts.
	startedOn(t, path, create+", if_exists: replace", p, false).stop()
	want(t, path, `SELECT a FROM t`, "1\n2")
	execute(t, path, `INSERT INTO rsetl_positions VALUES ('ns/p', 'other', 'x', 0, 1, 0, '', ''), ('ns/p2', 's', 'x', 0, 1, 0, '', '')`)
	// At the first it does, once, and forgets the positions.
	s = startedOn(t, path, create+", if_exists: replace", plan{Fields: "a BIGINT, b STRING"}, true)
	want(t, path, `SELECT pipeline, sink, (SELECT count(*) FROM t) FROM rsetl_positions ORDER BY 1`, `"ns/p"|"other"|0`+"\n"+`"ns/p2"|"s"|0`)
	s.put(t, 5, `{"a": 3, "b": "x"}`)
	s.stop()
	if err := s.start(true); err != nil {
		t.Fatal(err)
	}
	want(t, path, `SELECT a, b FROM t`, `3|"x"`)
	s.stop()
	// A table that is gone takes its positions with it where the state begins anew.
	execute(t, path, `DROP TABLE t`)
	s = startedOn(t, path, create, p, true)
	s.put(t, 5, `{"a": 4}`)
	want(t, path, `SELECT a FROM t`, "4")
}

// TestReplaceAfterFailedStart: a start that failed has replaced nothing, so the next one must.
func TestReplaceAfterFailedStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	execute(t, path, `CREATE TABLE t (a); INSERT INTO t VALUES (1)`)
	s := build(t, path, create+", if_exists: replace, mode: upsert, key: [a]", plan{Fields: "a BIGINT"})
	t.Cleanup(s.stop)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Sink.(sinks.Starter).Start(ended, &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: true}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	want(t, path, `SELECT a FROM t`, "1")
	if err := s.start(true); err != nil {
		t.Fatal(err)
	}
	want(t, path, `SELECT count(*) FROM t`, "0")
}

func TestOutboxPositionsBeginAnew(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	outbox := &record.Split{ID: "outbox:s"}
	if r := s.send(ctx, s.Part(t, outbox, 1, `{"a": 1}`), s.Part(t, split, 1, `{"a": 2}`)); r.Err != nil {
		t.Fatal(r)
	}
	s.stop()
	s = startedOn(t, s.path, create, plan{Fields: "a BIGINT"}, true)
	r := s.send(ctx, s.Part(t, &record.Split{ID: outbox.ID}, 1, `{"a": 3}`), s.Part(t, &record.Split{ID: split.ID}, 1, `{"a": 2}`))
	if r.Err != nil || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	want(t, s.path, `SELECT a FROM t`, "1\n2\n3")
}

func TestPermanent(t *testing.T) {
	dir := t.TempDir()
	have := filepath.Join(dir, "have.db")
	execute(t, have, `CREATE TABLE t (a, b); CREATE VIEW v AS SELECT * FROM t; CREATE TABLE u (a, b, UNIQUE (a, b))`)
	text := filepath.Join(dir, "text")
	os.WriteFile(text, []byte(strings.Repeat("not a database ", 100)), 0o640)
	for _, c := range []struct{ path, keys, text string }{
		{have, "table: rsetl_positions", "reserved"},
		{have, "table: RSETL_Positions, create_table: true", "reserved"},
		{have, "table: sqlite_stuff, create_table: true", "reserved"},
		{have, "table: none", "no table none"},
		{have, "table: v", "v is a view"},
		{have, "table: u, columns: {c: a}", "no column c (it has a, b)"},
		{have, "table: t, mode: upsert, key: [a]", "unique index of table t on exactly (a)"},
		{have, "table: u, mode: upsert, key: [a]", "unique index"},
		{have, "table: t, mode: replace, key: [a]", "unique index"},
		{have, "table: t, mode: ignore, key: [a]", "unique index"},
		{have, "table: t, if_exists: fail", "if_exists: fail"},
		{text, create, "not a SQLite database"},
	} {
		s := build(t, c.path, c.keys, plan{Fields: "a BIGINT"})
		err := s.start(true)
		if !sinks.IsPermanent(err) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v", c.keys, err)
		}
		s.stop()
	}
	want(t, have, `SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'`, "3") // nothing was made
	for keys, text := range map[string]string{
		"table: t, mode: upsert":                          "needs `key:",
		"table: ' '":                                      "table is empty",
		"table: t, if_exists: replace":                    "create_table: true",
		"table: t, mode: upsert, key: [none]":             "no column is named",
		"table: t, columns: {a: a, A: a}":                 "differ in case only",
		"table: t, columns: {a: a}, mode: upsert, key: b": "",
	} {
		if _, err := try(have, keys, plan{Fields: "a BIGINT"}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", keys, err)
		}
	}
	// Upsert goes with the order of the index' columns.
	s := startedOn(t, have, "table: u, mode: upsert, key: [B, a]", plan{Fields: "a BIGINT, b"}, true)
	s.put(t, 1, `{"a": 1, "b": 2}`, `{"a": 1, "b": 2}`)
	want(t, have, `SELECT a, b FROM u`, "1|2")
}

func TestRejects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	execute(t, path, `CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n < 100), u TEXT UNIQUE, s INTEGER) STRICT`)
	s := startedOn(t, path, "table: t", plan{Fields: "id, n, u, s"}, true)
	c := &sinks.Chunk{Parts: []sinks.Part{
		s.Part(t, split, 10, `{"id": 1, "n": 1, "u": "a"}`, `{"id": 2, "u": "b"}`, `{"id": 3, "n": 100}`, `{"id": 4, "n": 2, "u": "a"}`, `{"id": 1, "n": 3}`),
		s.Part(t, &record.Split{ID: "2"}, 20, `{"id": "x", "n": 4}`, `{"id": 6, "n": 5, "s": "text"}`, `{"id": 7, "n": 6}`),
	}}
	var got []sinks.Reject
	broken := errors.New("the disk of the dead letters is full")
	var fail error = broken
	c.Letters = func(rs []sinks.Reject) error {
		got = append([]sinks.Reject(nil), rs...)
		if n := query(t, path, `SELECT count(*) FROM t`); n != "0" {
			t.Errorf("%s rows are committed before the letters", n)
		}
		return fail
	}
	if _, err := s.Deliver(ctx, c); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	want(t, path, `SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM rsetl_positions)`, "0|0")
	fail = nil
	if _, err := s.Deliver(ctx, c); err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range got {
		text = append(text, fmt.Sprintf("%d/%d %s", r.Part, r.Row, r.Reason))
	}
	if want := `0/1 constraint failed: NOT NULL constraint failed: t.n
0/2 constraint failed: CHECK constraint failed: n < 100
0/3 constraint failed: UNIQUE constraint failed: t.u
0/4 constraint failed: UNIQUE constraint failed: t.id
1/0 datatype mismatch
1/1 constraint failed: cannot store TEXT value in INTEGER column t.s`; strings.Join(text, "\n") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(text, "\n"), want)
	}
	want(t, path, `SELECT id FROM t ORDER BY id`, "1\n7")
	want(t, path, `SELECT split, "offset" FROM rsetl_positions ORDER BY split`, `"2"|22`+"\n"+`"split-1"|14`) // past the rejects too
	// A column that the table doesn't have.
	dyn := startedOn(t, path, "table: t", plan{Fields: "id, n", Open: true}, true)
	if r := dyn.send(ctx, dyn.Part(t, &record.Split{ID: "3"}, 1, `{"id": 30, "n": 1, "nope": 1}`, `{"id": 31, "n": 1, "u": "z"}`)); r.Err != nil || len(r.Rejects) != 1 || !strings.Contains(r.Rejects[0], `no column "nope"`) {
		t.Errorf("%+v", r)
	}
	want(t, path, `SELECT id, u FROM t WHERE id >= 30`, `31|"z"`)
}

// TestRollingBackConstraints: such a constraint would leave the rows after it outside any transaction.
func TestRollingBackConstraints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	execute(t, path, `CREATE TABLE t (id INTEGER UNIQUE ON CONFLICT ROLLBACK)`)
	s := startedOn(t, path, "table: t", plan{Fields: "id BIGINT"}, true)
	for range 2 {
		r := s.send(ctx, s.Part(t, split, 1, `{"id": 1}`, `{"id": 1}`, `{"id": 2}`))
		if r.Err == nil || !strings.Contains(r.Err.Error(), "rolled back the whole transaction") {
			t.Fatalf("%+v", r)
		}
		want(t, path, `SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM rsetl_positions)`, "0|0")
	}
	s.put(t, 1, `{"id": 3}`)
}

func TestSkips(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	two := &record.Split{ID: "two"}
	a := s.Part(t, split, 10, `{"a": 1}`, `{"a": 2}`, `{"a": 3}`)
	for i, wantSkipped := range []int{0, 3} {
		if r := s.send(ctx, a); r.Err != nil || r.Skipped != wantSkipped {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	if r := s.send(ctx, s.Part(t, split, 12, `{"a": 3}`, `{"a": 4}`), s.Part(t, two, 1, `{"a": 5}`)); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	want(t, s.path, `SELECT a FROM t`, "1\n2\n3\n4\n5")
	want(t, s.path, `SELECT pipeline, sink, split, epoch, "offset", idx, recent, path FROM rsetl_positions`,
		`"ns/p"|"s"|"split-1"|0|13|0|"12/0 13/0"|"/a"`+"\n"+`"ns/p"|"s"|"two"|0|1|0|"1/0"|""`)
	// The index within an offset counts too.
	p := s.Part(t, split, 13, `{"a": 6}`, `{"a": 7}`)
	p.Pos[0], p.Pos[1] = record.Position{Offset: 13}, record.Position{Offset: 13, Index: 1}
	if r := s.send(ctx, p); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	for i := range int64(40) {
		s.put(t, 100+i, `{"a": 0}`)
	}
	if n := len(strings.Fields(query(t, s.path, `SELECT recent FROM rsetl_positions WHERE split = 'split-1'`))); n != 16 {
		t.Errorf("%d positions are kept", n)
	}
}

func TestFencing(t *testing.T) {
	old := started(t, create, plan{Fields: "a BIGINT"})
	old.put(t, 10, `{"a": 1}`, `{"a": 2}`)
	now := startedOn(t, old.path, create, plan{Fields: "a BIGINT"}, false)
	mine := &record.Split{ID: split.ID} // the new owner's
	if r := now.send(ctx, now.Part(t, mine, 11, `{"a": 2}`, `{"a": 3}`, `{"a": 4}`)); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	// The late writer has read further, from its own last position on or with a gap, and other splits with it.
	for _, from := range []int64{12, 14, 50} {
		r := old.send(ctx, old.Part(t, &record.Split{ID: "other"}, 1, `{"a": 9}`), old.Part(t, split, from, `{"a": 8}`, `{"a": 8}`, `{"a": 8}`))
		if !errors.Is(r.Err, sql.ErrFenced) {
			t.Errorf("from %d: %+v", from, r)
		}
	}
	want(t, old.path, `SELECT a FROM t`, "1\n2\n3\n4")
	want(t, old.path, `SELECT split, "offset" FROM rsetl_positions`, `"split-1"|13`)
	if r := now.send(ctx, now.Part(t, mine, 14, `{"a": 5}`)); r.Err != nil || r.Skipped != 0 {
		t.Errorf("the owner: %+v", r)
	}
	// The late writer gets the split back, in good order.
	if r := old.send(ctx, old.Part(t, &record.Split{ID: split.ID}, 14, `{"a": 5}`, `{"a": 6}`)); r.Err != nil || r.Skipped != 1 {
		t.Errorf("the split came back: %+v", r)
	}
	// A position that someone removed.
	execute(t, old.path, `DELETE FROM rsetl_positions`)
	if r := now.send(ctx, now.Part(t, mine, 20, `{"a": 7}`)); !errors.Is(r.Err, sql.ErrFenced) {
		t.Errorf("removed: %+v", r)
	}
}

func TestEpochs(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	first, second := &record.Split{ID: "q", Epoch: 1}, &record.Split{ID: "q", Epoch: 2}
	if r := s.send(ctx, s.Part(t, first, 100, `{"a": 1}`)); r.Err != nil {
		t.Fatal(r)
	}
	// A reset went back: what has a smaller offset is new.
	if r := s.send(ctx, s.Part(t, second, 10, `{"a": 2}`)); r.Err != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
	if r := s.send(ctx, s.Part(t, second, 10, `{"a": 2}`, `{"a": 3}`)); r.Err != nil || r.Skipped != 1 {
		t.Fatalf("%+v", r)
	}
	want(t, s.path, `SELECT epoch, "offset", recent FROM rsetl_positions`, `2|11|"10/0 11/0"`)
	for _, sp := range []*record.Split{first, {ID: "q", Epoch: 1}} {
		if r := s.send(ctx, s.Part(t, sp, 101, `{"a": 9}`)); !errors.Is(r.Err, sql.ErrFenced) {
			t.Errorf("the writer of before the reset: %+v", r)
		}
	}
	want(t, s.path, `SELECT a FROM t`, "1\n2\n3")
	// Another instance, whose store hasn't seen the reset, takes a shared split over: it goes on in the sink's epoch.
	shared := &record.Split{ID: "q", Epoch: 1, Shared: true}
	if r := s.send(ctx, s.Part(t, shared, 11, `{"a": 3}`, `{"a": 4}`)); r.Err != nil || r.Skipped != 1 {
		t.Errorf("%+v", r)
	}
	if r := s.send(ctx, s.Part(t, shared, 13, `{"a": 5}`)); r.Err != nil || r.Skipped != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.send(ctx, s.Part(t, second, 12, `{"a": 4}`)); !errors.Is(r.Err, sql.ErrFenced) {
		t.Errorf("the one that had it before: %+v", r)
	}
	want(t, s.path, `SELECT epoch, "offset", recent FROM rsetl_positions`, `2|13|"10/0 11/0 12/0 13/0"`)
	want(t, s.path, `SELECT a FROM t`, "1\n2\n3\n4\n5")
}

func TestLocked(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	c, err := sqlite3.Open("file:" + s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Exec(`BEGIN IMMEDIATE; INSERT INTO t VALUES (0)`); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	r := s.send(short, s.Part(t, split, 1, `{"a": 1}`))
	if !errors.Is(r.Err, context.DeadlineExceeded) || sinks.IsPermanent(r.Err) || time.Since(begun) > 2*time.Second {
		t.Errorf("%v after %v", r.Err, time.Since(begun))
	}
	if err := s.start(false); err == nil || sinks.IsPermanent(err) || !strings.Contains(err.Error(), "locked") { // waits for the whole time
		t.Errorf("start: %v", err)
	}
	if err := c.Exec(`COMMIT`); err != nil {
		t.Fatal(err)
	}
	s.put(t, 1, `{"a": 1}`)
	want(t, s.path, `SELECT a FROM t`, "0\n1")
}

func TestReadOnly(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	s.put(t, 1, `{"a": 1}`)
	s.stop()
	os.Chmod(s.path, 0o400)
	err := s.start(false)
	if os.Getuid() == 0 {
		t.Skip("root may write everything")
	}
	if !errors.Is(err, os.ErrPermission) || sinks.IsPermanent(err) {
		t.Errorf("%v", err)
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a b?mode=ro#x.db", "100%25.db", "ünï'\".db"} {
		s := startedOn(t, filepath.Join(dir, name), create, plan{Fields: "a BIGINT"}, true)
		s.put(t, 1, `{"a": 1}`)
		s.stop()
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := build(t, dir, create, plan{Fields: "a"}).start(true); err == nil {
		t.Error("a directory is taken")
	}
	if _, err := try(":memory:", create, plan{Fields: "a"}); err == nil {
		t.Error("memory is taken")
	}
}

// TestFull has a limit on the file's pages, as a full disk has.
func TestFull(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT, x STRING", Open: true})
	s.put(t, 1, `{"a": 1}`)
	d := dialectOf(s)
	if err := d.c.Exec(`PRAGMA max_page_count=20`); err != nil {
		t.Fatal(err)
	}
	var recs []string
	for i := range 200 {
		recs = append(recs, fmt.Sprintf(`{"a": %d, "x": %q, "new": 1}`, 2+i, strings.Repeat("x", 2000)))
	}
	p := s.Part(t, split, 2, recs...)
	for range 2 {
		r := s.send(ctx, p)
		if !errors.Is(r.Err, sqlite3.FULL) || sinks.IsPermanent(r.Err) || len(r.Rejects) > 0 || !strings.Contains(r.Err.Error(), "make room") {
			t.Fatalf("%+v", r)
		}
		want(t, s.path, `SELECT count(*), (SELECT "offset" FROM rsetl_positions), (SELECT count(*) FROM pragma_table_info('t')) FROM t`, "1|1|2")
	}
	if err := d.c.Exec(`PRAGMA max_page_count=100000`); err != nil {
		t.Fatal(err)
	}
	if r := s.send(ctx, p); r.Err != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
	want(t, s.path, `SELECT count(*), sum(new), (SELECT "offset" FROM rsetl_positions) FROM t`, "201|200|201")
}

func dialectOf(s *built) *dialect {
	return s.Sink.(interface{ Dialect() sql.Dialect }).Dialect().(*dialect)
}

// TestRollback undoes a delivery that has added columns: what the sink knows of the table must be what is there.
func TestRollback(t *testing.T) {
	for _, fields := range []string{"a BIGINT", ""} {
		s := started(t, create, plan{Fields: fields, Open: true})
		no := errors.New("no")
		c := &sinks.Chunk{Parts: []sinks.Part{s.Part(t, split, 1, `{"a": 1, "b": 2}`, `{"a": 1, "B": 2, "c": 3}`, `{"nul\u0000": 1}`)}, Letters: func([]sinks.Reject) error { return no }}
		for range 3 {
			if _, err := s.Deliver(ctx, c); !errors.Is(err, no) {
				t.Fatal(err)
			}
			if n := query(t, s.path, `SELECT count(*) FROM pragma_table_info('t')`); n != fmt.Sprint(len(strings.Fields(fields))/2) {
				t.Errorf("%s columns are left", n)
			}
		}
		c.Letters = func([]sinks.Reject) error { return nil }
		if _, err := s.Deliver(ctx, c); err != nil {
			t.Fatal(err)
		}
		want(t, s.path, `SELECT a, b, c FROM t`, "1|2|NULL\n1|2|3")
	}
}

// TestSchemaChanges are another process' changes to the table while the sink is open.
func TestSchemaChanges(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT", Open: true})
	s.put(t, 1, `{"a": 1, "b": 1}`)
	execute(t, s.path, `ALTER TABLE t ADD COLUMN c; ALTER TABLE t DROP COLUMN b; ALTER TABLE t ADD COLUMN "D"`)
	s.put(t, 2, `{"a": 2, "b": 2, "c": 2, "d": 2}`)
	want(t, s.path, `SELECT a, b, c, "D" FROM t`, "1|NULL|NULL|NULL\n2|2|2|2")
	fixed := startedOn(t, s.path, "table: t", plan{Fields: "a BIGINT", Open: true}, false)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "f"}, 1, `{"a": 3, "e": 3}`)); len(r.Rejects) != 1 {
		t.Errorf("%+v", r)
	}
	execute(t, s.path, `ALTER TABLE t ADD COLUMN e`)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "g"}, 1, `{"a": 3, "e": 3}`)); r.Err != nil || len(r.Rejects) != 0 {
		t.Errorf("%+v", r)
	}
	execute(t, s.path, `DROP TABLE t`)
	if r := fixed.send(ctx, fixed.Part(t, &record.Split{ID: "h"}, 1, `{"a": 4}`)); r.Err == nil || !strings.Contains(r.Err.Error(), "gone") {
		t.Errorf("%+v", r)
	}
}

// TestReplacedFile: a file that was removed under the sink must not swallow rows.
func TestReplacedFile(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT"})
	s.put(t, 1, `{"a": 1}`)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		os.Remove(s.path + suffix)
	}
	if r := s.send(ctx, s.Part(t, split, 2, `{"a": 2}`)); !errors.Is(r.Err, sql.ErrFenced) {
		t.Errorf("rows went on as if nothing had happened: %+v", r)
	}
	if r := s.send(ctx, s.Part(t, &record.Split{ID: "new"}, 1, `{"a": 3}`)); r.Err != nil {
		t.Errorf("%+v", r)
	}
	want(t, s.path, `SELECT a FROM t`, "3")
}

func TestCancel(t *testing.T) {
	s := started(t, create, plan{Fields: "a BIGINT", Open: true})
	ended, cancel := context.WithCancel(ctx)
	p := s.Part(t, split, 1, `{"a": 1, "b": 1}`, `{"nul\u0000": 1}`)
	c := &sinks.Chunk{Parts: []sinks.Part{p}, Letters: func([]sinks.Reject) error { cancel(); return nil }} // in the midst of it
	if _, err := s.Deliver(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := s.Deliver(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	want(t, s.path, `SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM rsetl_positions), (SELECT count(*) FROM pragma_table_info('t'))`, "0|0|1")
	if r := s.send(ctx, p); r.Err != nil || r.Skipped != 0 {
		t.Errorf("%+v", r)
	}
	want(t, s.path, `SELECT a, b FROM t`, "1|1")
}
