package mysql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/steps/steptest"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) {
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
	dsn   string
}

// try builds a sink from the keys beside dsn.
func try(dsn, keys string, p plan) (*built, error) {
	var doc yaml.Node
	text := fmt.Sprintf("{dsn: %q, %s}", dsn, keys)
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	c := &Config{}
	errs := &config.Errors{File: "test", Lines: strings.Split(text, "\n")}
	d := &config.Context{Errs: errs, Lookup: func(string) (string, bool) { return "", false }}
	d.In("mysql", func() { d.Decode(doc.Content[0], c) })
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
	return &built{s, table, dsn}, err
}

func build(t testing.TB, dsn, keys string, p plan) *built {
	t.Helper()
	s, err := try(dsn, keys, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *built) start(fresh bool) error {
	return s.Sink.(sinks.Starter).Start(ctx, &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: fresh})
}

func (s *built) stop() { s.Sink.(sinks.Starter).Stop(ctx) }

// started builds and starts a sink on a new database.
func started(t testing.TB, keys string, p plan) *built {
	t.Helper()
	return startedOn(t, services.MySQL(t), keys, p, true)
}

func startedOn(t testing.TB, dsn, keys string, p plan, fresh bool) *built {
	t.Helper()
	s := build(t, dsn, keys, p)
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
		t.Fatalf("%+v (%v)", r, r.err)
	}
}

// open is another connection to the database.
func open(t testing.TB, dsn string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// query gives the rows that another connection sees, values joined by |.
func query(t testing.TB, dsn, text string) string {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(text, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var out []string
	for rows.Next() {
		cells, ptrs := make([]stdsql.RawBytes, len(names)), make([]any, len(names))
		for i := range cells {
			ptrs[i] = &cells[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, c := range cells {
			if c == nil {
				row = append(row, "NULL")
			} else {
				row = append(row, string(c))
			}
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(text, err)
	}
	return strings.Join(out, "\n")
}

func execute(t testing.TB, dsn string, texts ...string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(text, err)
		}
	}
}

func want(t testing.TB, dsn, text, rows string) {
	t.Helper()
	if got := query(t, dsn, text); got != rows {
		t.Errorf("%s\n got %s\nwant %s", text, got, rows)
	}
}
