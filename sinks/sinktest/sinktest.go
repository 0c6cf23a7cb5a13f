// Package sinktest builds sinks and feeds them, for the tests of kinds of sinks.
package sinktest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/steps/steptest"
)

// Plan is what a pipeline knows of the fields: `name TYPE, name, …`, and whether there may be others.
type Plan struct {
	Fields string
	Open   bool
}

var types = map[string]expr.TypeKind{"": expr.TAny, "BIGINT": expr.TBigInt, "DOUBLE": expr.TDouble, "STRING": expr.TVarchar, "BOOLEAN": expr.TBoolean,
	"DECIMAL": expr.TDecimal, "BYTES": expr.TVarbinary, "TIMESTAMP": expr.TTimestamp, "DATE": expr.TDate, "ARRAY": expr.TArray}

// Built is a sink with the table of its records.
type Built struct {
	sinks.Sink
	Table *record.Table
}

// Try builds the sink that c is the empty configuration of from its YAML.
func Try(c sinks.Config, text string, p Plan) (*Built, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	errs := &config.Errors{File: "test", Lines: strings.Split(text, "\n")}
	d := &config.Context{Errs: errs, Lookup: func(string) (string, bool) { return "", false }}
	d.In("sink", func() { d.Decode(doc.Content[0], c) })
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
	for _, f := range strings.Split(p.Fields, ",") {
		name, typ, _ := strings.Cut(strings.TrimSpace(f), " ")
		if name != "" {
			table.Slot(name)
			ship = append(ship, name)
			byName[name] = expr.Type{Kind: types[typ]}
		}
	}
	typeOf := func(f string) expr.Type { return byName[f] }
	b := steps.Build{Decl: decl, Table: table, Pipeline: "ns/p", Name: "s", Ship: ship, OpenEnded: p.Open, TypeOf: typeOf,
		Compiler: &expr.Compiler{Table: table, TypeOf: typeOf}}
	s, err := c.Build(&b)
	if err == nil {
		err = errs.Err()
	}
	return &Built{s, table}, err
}

// Build is Try for what must be right.
func Build(t testing.TB, c sinks.Config, text string, p Plan) *Built {
	t.Helper()
	s, err := Try(c, text, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Start starts the sink, and stops it at the test's end.
func (s *Built) Start(t testing.TB, fresh bool) *Built {
	t.Helper()
	st, ok := s.Sink.(sinks.Starter)
	if !ok {
		return s
	}
	t.Cleanup(func() { st.Stop(context.Background()) })
	if err := st.Start(context.Background(), &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: fresh}); err != nil {
		t.Fatal(err)
	}
	return s
}

// Part encodes JSON objects as the records of a split from an offset on.
func (s *Built) Part(t testing.TB, sp *record.Split, offset int64, recs ...string) sinks.Part {
	t.Helper()
	p := sinks.Part{Split: sp}
	for i, r := range recs {
		b := record.NewBatch(s.Table)
		b.Split = sp
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

// Result is what a delivery came to.
type Result struct {
	Skipped int
	Rejects []string // part/row: reason
	Err     error
}

// Chunk makes a chunk of parts whose dead letters go to rejects.
func Chunk(rejects *[]string, parts ...sinks.Part) *sinks.Chunk {
	c := &sinks.Chunk{Parts: parts}
	c.Letters = func(rs []sinks.Reject) error {
		for _, r := range rs {
			*rejects = append(*rejects, fmt.Sprintf("%d/%d: %s", r.Part, r.Row, r.Reason))
		}
		return nil
	}
	return c
}

// Send delivers the parts once.
func (s *Built) Send(ctx context.Context, parts ...sinks.Part) (out Result) {
	c := Chunk(&out.Rejects, parts...)
	rejects, err := s.Deliver(ctx, c)
	if err == nil {
		err = c.Letters(rejects)
	}
	out.Skipped, out.Err = c.Skipped, err
	return out
}
