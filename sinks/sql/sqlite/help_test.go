package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

// plan is what a pipeline knows of the fields: `name TYPE, name, …`, and whether there may be others.
type plan struct {
	fields string
	open   bool
}

var types = map[string]expr.TypeKind{"": expr.TAny, "BIGINT": expr.TBigInt, "DOUBLE": expr.TDouble, "STRING": expr.TVarchar, "BOOLEAN": expr.TBoolean,
	"DECIMAL": expr.TDecimal, "BYTES": expr.TVarbinary, "TIMESTAMP": expr.TTimestamp, "DATE": expr.TDate, "ARRAY": expr.TArray}

// built is a sink with the table of its records.
type built struct {
	sinks.Sink
	table *record.Table
	path  string
}

// try builds a sink from the keys beside path.
func try(path, keys string, p plan) (*built, error) {
	var doc yaml.Node
	text := fmt.Sprintf("{path: %q, %s}", path, keys)
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	c := &Config{}
	errs := &config.Errors{File: "test", Lines: strings.Split(text, "\n")}
	d := &config.Context{Errs: errs, Lookup: func(string) (string, bool) { return "", false }}
	d.In("sqlite", func() { d.Decode(doc.Content[0], c) })
	if errs.Failed() {
		return nil, errs.Err()
	}
	decl := steps.Decl{Errs: errs, Node: doc.Content[0]}
	c.Declare(&decl)
	if errs.Failed() {
		return nil, errs.Err()
	}
	table := record.NewTable()
	byName := map[string]expr.Type{}
	var ship []string
	for _, f := range strings.Split(p.fields, ",") {
		name, typ, _ := strings.Cut(strings.TrimSpace(f), " ")
		if name != "" {
			table.Slot(name)
			ship = append(ship, name)
			byName[name] = expr.Type{Kind: types[typ]}
		}
	}
	typeOf := func(f string) expr.Type { return byName[f] }
	b := steps.Build{Decl: decl, Table: table, Pipeline: "ns/p", Name: "s", Ship: ship, OpenEnded: p.open, TypeOf: typeOf,
		Compiler: &expr.Compiler{Table: table, TypeOf: typeOf}}
	s, err := c.Build(&b)
	if err == nil {
		err = errs.Err()
	}
	return &built{s, table, path}, err
}

func build(t testing.TB, path, keys string, p plan) *built {
	t.Helper()
	s, err := try(path, keys, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *built) start(fresh bool) error {
	return s.Sink.(sinks.Starter).Start(ctx, &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: fresh})
}

func (s *built) stop() { s.Sink.(sinks.Starter).Stop(ctx) }

// started builds and starts a sink on a new file.
func started(t testing.TB, keys string, p plan) *built {
	t.Helper()
	return startedOn(t, filepath.Join(t.TempDir(), "dir", "x.db"), keys, p, true)
}

func startedOn(t testing.TB, path, keys string, p plan, fresh bool) *built {
	t.Helper()
	s := build(t, path, keys, p)
	t.Cleanup(s.stop)
	if err := s.start(fresh); err != nil {
		t.Fatal(err)
	}
	return s
}

var split = &record.Split{ID: "split-1", Path: "/a"}

// part encodes JSON objects as the records of a split from an offset on.
func (s *built) part(t testing.TB, sp *record.Split, offset int64, recs ...string) sinks.Part {
	t.Helper()
	p := sinks.Part{Split: sp}
	for i, r := range recs {
		b := record.NewBatch(s.table)
		steptest.Put(t, b, b.Add(record.Position{Offset: offset + int64(i)}, record.Value{}), r)
		var err error
		if p.Data, err = s.Encode(p.Data, b, 0); err != nil {
			t.Fatal(err)
		}
		p.Ends = append(p.Ends, len(p.Data))
		p.Pos = append(p.Pos, b.Pos(0))
	}
	return p
}

// result is what a delivery came to.
type result struct {
	skipped int
	rejects []string // part/row: reason
	err     error
}

func (s *built) send(ctx context.Context, parts ...sinks.Part) (out result) {
	c := &sinks.Chunk{Parts: parts}
	c.Letters = func(rs []sinks.Reject) error {
		for _, r := range rs {
			out.rejects = append(out.rejects, fmt.Sprintf("%d/%d: %s", r.Part, r.Row, r.Reason))
		}
		return nil
	}
	rejects, err := s.Deliver(ctx, c)
	if len(rejects) > 0 {
		err = fmt.Errorf("a transactional sink returned rejects: %v", rejects)
	}
	out.skipped, out.err = c.Skipped, err
	return out
}

// put delivers records that must go in, from an offset on.
func (s *built) put(t testing.TB, offset int64, recs ...string) {
	t.Helper()
	if r := s.send(ctx, s.part(t, split, offset, recs...)); r.err != nil || r.rejects != nil || r.skipped != 0 {
		t.Fatalf("%+v", r)
	}
}

// query gives the rows that another connection sees, values joined by |, in SQL literal form.
func query(t testing.TB, path, text string) string {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.BusyTimeout(5e9)
	st, _, err := c.Prepare(text)
	if err != nil {
		t.Fatal(text, err)
	}
	defer st.Close()
	var rows []string
	for st.Step() {
		var row []string
		for i := range st.ColumnCount() {
			switch st.ColumnType(i) {
			case sqlite3.NULL:
				row = append(row, "NULL")
			case sqlite3.TEXT:
				row = append(row, fmt.Sprintf("%q", st.ColumnText(i)))
			case sqlite3.BLOB:
				row = append(row, fmt.Sprintf("x%x", st.ColumnBlob(i, nil)))
			default:
				row = append(row, st.ColumnText(i))
			}
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	if err := st.Err(); err != nil {
		t.Fatal(text, err)
	}
	return strings.Join(rows, "\n")
}

func execute(t testing.TB, path, text string) {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.BusyTimeout(5e9)
	if err := c.Exec(text); err != nil {
		t.Fatal(text, err)
	}
}

func want(t testing.TB, path, text, rows string) {
	t.Helper()
	if got := query(t, path, text); got != rows {
		t.Errorf("%s\n got %s\nwant %s", text, got, rows)
	}
}
