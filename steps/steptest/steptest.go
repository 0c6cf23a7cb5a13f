// Package steptest runs one step outside a pipeline: for the tests of parsers and transforms.
package steptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// Options are what a pipeline would give the step.
type Options struct {
	Slots []string             // fields that the plan names besides the step's own
	Live  func(string) bool    // nil: everything is read or shipped later
	Types map[string]expr.Type // static types of fields
	Zone  *time.Location       // UTC by default
	Now   time.Time            // 2026-03-01T12:00:00Z by default
}

// S is a built step with its table.
type S struct {
	Table  *record.Table
	Config steps.Config
	Decl   steps.Decl
	Errs   *config.Errors
	Maker  steps.Maker
	Clock  time.Time // may be set

	enc  *record.Encoder
	step steps.Step
}

// Try builds a step from YAML such as `json: message`. err is what the loader would report.
func Try(text string, o Options) (*S, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode || len(doc.Content[0].Content) != 2 {
		return nil, fmt.Errorf("%q is no step", text)
	}
	kind, body := doc.Content[0].Content[0].Value, doc.Content[0].Content[1]
	spec, ok := steps.Registry.Get(kind)
	if !ok {
		return nil, fmt.Errorf("no step %q is registered", kind)
	}
	s := &S{Config: spec.New(), Table: record.NewTable(), Errs: &config.Errors{File: "test", Lines: strings.Split(text, "\n")}}
	c := &config.Context{Errs: s.Errs, Lookup: func(string) (string, bool) { return "", false }}
	c.In(kind, func() { c.Decode(body, s.Config) })
	if s.Errs.Failed() {
		return nil, s.Errs.Err()
	}
	s.Decl = steps.Decl{Errs: s.Errs, Node: body}
	s.Config.Declare(&s.Decl)
	if s.Errs.Failed() {
		return nil, s.Errs.Err()
	}
	for _, f := range o.Slots {
		s.Table.Slot(f)
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Now.IsZero() {
		o.Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	}
	s.Clock = o.Now
	now := func() time.Time { return s.Clock }
	typeOf := func(f string) expr.Type { return o.Types[f] }
	b := steps.Build{Decl: s.Decl, Table: s.Table, Pipeline: "test", Name: kind, Zone: o.Zone, Now: now, LiveFn: o.Live,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), TypeOf: typeOf,
		Compiler: &expr.Compiler{Table: s.Table, TypeOf: typeOf, Zone: o.Zone, Now: now}}
	for _, f := range s.Decl.ReadFields {
		s.Table.Slot(f)
	}
	m, err := s.Config.Build(&b)
	if err != nil {
		return nil, err
	}
	if s.Errs.Failed() {
		return nil, s.Errs.Err()
	}
	s.Maker = m
	s.enc = record.NewEncoder(s.Table, nil, true)
	s.step = m()
	return s, nil
}

// New is Try for a step that must build.
func New(t testing.TB, text string, o Options) *S {
	t.Helper()
	s, err := Try(text, o)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s
}

// Batch makes a batch of records given as JSON objects. What is beyond JSON is written `{"$bytes": "…"}`,
// `{"$time": "RFC 3339"}`, `{"$map": {…}}`.
func (s *S) Batch(t testing.TB, recs ...string) *record.Batch {
	t.Helper()
	b := record.NewBatch(s.Table)
	for i, r := range recs {
		Put(t, b, b.Add(record.Position{Offset: int64(i)}, record.Value{}), r)
	}
	return b
}

// Put sets a record's fields to those of a JSON object.
func Put(t testing.TB, b *record.Batch, i int, object string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	d.UseNumber()
	n, err := read(d)
	if err != nil || n.keys == nil {
		t.Fatalf("%s is no object: %v", object, err)
	}
	put(t, b, i, "", n)
}

// node is a JSON value with its members in order.
type node struct {
	keys []string // not nil: an object
	kids []node
	list bool
	leaf any
}

func read(d *json.Decoder) (n node, err error) {
	tok, err := d.Token()
	if err != nil {
		return n, err
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return node{leaf: tok}, nil
	}
	if n.list = open == '['; !n.list {
		n.keys = []string{}
	}
	for d.More() {
		if !n.list {
			key, err := d.Token()
			if err != nil {
				return n, err
			}
			n.keys = append(n.keys, key.(string))
		}
		kid, err := read(d)
		if err != nil {
			return n, err
		}
		n.kids = append(n.kids, kid)
	}
	_, err = d.Token()
	return n, err
}

func put(t testing.TB, b *record.Batch, i int, prefix string, n node) {
	for k, key := range n.keys {
		name, v := prefix+key, n.kids[k]
		if len(v.keys) > 0 && !strings.HasPrefix(v.keys[0], "$") {
			put(t, b, i, name+".", v)
			continue
		}
		b.SetNamed(i, b.PutString(name), value(t, b, v))
	}
}

func value(t testing.TB, b *record.Batch, n node) record.Value {
	t.Helper()
	switch {
	case n.list:
		var vs []record.Value
		for _, e := range n.kids {
			vs = append(vs, value(t, b, e))
		}
		return b.PutItems(record.Array, vs)
	case n.keys != nil && len(n.keys) == 0:
		return b.PutItems(record.Map, nil)
	case n.keys != nil:
		text, _ := n.kids[0].leaf.(string)
		switch n.keys[0] {
		case "$bytes":
			return b.PutString(text).As(record.Bytes)
		case "$time":
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				t.Fatal(err)
			}
			return record.MakeTime(at.Unix(), uint32(at.Nanosecond()), 9)
		case "$map":
			var vs []record.Value
			for k, key := range n.kids[0].keys {
				vs = append(vs, b.PutString(key), value(t, b, n.kids[0].kids[k]))
			}
			return b.PutItems(record.Map, vs)
		}
		t.Fatalf(`an object within a list is written {"$map": …}`)
	}
	switch x := n.leaf.(type) {
	case bool:
		return record.MakeBool(x)
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return record.MakeInt(i)
		}
		f, err := x.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return record.MakeFloat(f)
	case string:
		return b.PutString(x)
	}
	return record.MakeNull()
}

// Apply runs the step.
func (s *S) Apply(b *record.Batch) { s.step.Apply(b) }

// JSON is record i as it would be shipped.
func (s *S) JSON(b *record.Batch, i int) string { return string(s.enc.Append(nil, b, i)) }

// One runs the step on one record. fail is why it failed, "filtered" where it was dropped; out is the record in any case.
func (s *S) One(t testing.TB, rec string) (out, fail string) {
	t.Helper()
	b := s.Batch(t, rec)
	s.Apply(b)
	switch {
	case len(b.Fails) > 0:
		fail = b.Fails[0].Reason
		if len(b.Sel) != 0 || len(b.Fails) != 1 {
			t.Fatalf("a failed record is still alive, or failed twice: %v", b.Fails)
		}
	case len(b.Sel) == 0:
		fail = "filtered"
		if b.Filtered != 1 {
			t.Fatalf("a record is gone and counted nowhere")
		}
	}
	return s.JSON(b, 0), fail
}

// Want runs the step on rec and compares the record with want, field by field; the text of numbers counts.
func (s *S) Want(t testing.TB, rec, want string) {
	t.Helper()
	got, fail := s.One(t, rec)
	if fail != "" {
		t.Errorf("%s\n failed: %s\n want %s", rec, fail, want)
		return
	}
	if !SameJSON(got, want) {
		t.Errorf("%s\n got  %s\n want %s", rec, got, want)
	}
}

// WantFail runs the step on rec, which must fail with a reason that has part in it, and stay as it was.
func (s *S) WantFail(t testing.TB, rec, part string) {
	t.Helper()
	got, fail := s.One(t, rec)
	if fail == "" || fail == "filtered" || !strings.Contains(fail, part) {
		t.Errorf("%s\n got  %s, %q\n want a failure with %q", rec, got, fail, part)
	}
	if b := s.Batch(t, rec); got != s.JSON(b, 0) {
		t.Errorf("%s\n the failed record has become %s", rec, got)
	}
}

// SameJSON compares two JSON values; numbers by their text.
func SameJSON(a, b string) bool {
	return reflect.DeepEqual(decode(a), decode(b))
}

func decode(s string) any {
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	return v
}

// NoAllocs tells whether the step allocates on a batch it has seen before. fill adds the records.
func (s *S) NoAllocs(t testing.TB, fill func(b *record.Batch)) {
	t.Helper()
	b := record.NewBatch(s.Table)
	run := func() {
		b.Reset()
		fill(b)
		s.Apply(b)
	}
	run()
	run()
	if n := testing.AllocsPerRun(20, run); n > 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}
