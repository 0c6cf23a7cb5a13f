package pipeline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/text"
	"github.com/rsetl/rsetl/steps"
)

// TestResult is how one inline test ended; Diff is empty where it passed.
type TestResult struct {
	Pipeline, Name string
	File           string
	Line           int
	Diff           []string
}

// Passed tells whether the test passed.
func (t *TestResult) Passed() bool { return len(t.Diff) == 0 }

// RunTests runs a file's inline tests, each on a plan of its own with the clock at the test's `at`.
// It reads from no source and writes to no sink.
func RunTests(load func() (*File, error)) ([]TestResult, error) {
	f, err := load()
	if err != nil {
		return nil, err
	}
	var out []TestResult
	for i := range f.Tests {
		f, err := load() // a plan changes its file's configs when it is built
		if err != nil {
			return nil, err
		}
		t := &f.Tests[i]
		at, _ := time.Parse(time.RFC3339Nano, t.At)
		p, err := Compile(f, CompileOptions{Once: true, Now: func() time.Time { return at }})
		if err != nil {
			return nil, err
		}
		diff, err := runTest(p, t)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: test %q: %w", f.Path, t.node.Line, t.Name, err)
		}
		out = append(out, TestResult{Pipeline: f.Name, Name: t.Name, File: f.Path, Line: t.node.Line, Diff: diff})
	}
	return out, nil
}

func runTest(p *Plan, t *Test) ([]string, error) {
	bare := *p
	bare.Sinks = nil
	r := &Runner{plan: &bare, now: p.now, first: len(p.Nodes), stages: map[int]Stage{}}
	for i, n := range p.Nodes {
		if n.Stage {
			st, ok := n.Make().(Stage)
			if !ok {
				return nil, fmt.Errorf("step %s is no stage", n.Name)
			}
			r.stages[i] = st
		}
	}
	r.findHears()
	w := newWorker(r)
	it := &item{b: record.NewBatch(p.Table)}
	it.b.Owner = it
	it.b.Split = &record.Split{ID: "test", Path: "test"}
	r.watching(func(w SplitWatcher) { w.SplitOpened(it.b.Split) })
	if len(t.Records) > 0 {
		for k := range t.Records {
			if err := putRecord(it.b, &t.Records[k], int64(k)); err != nil {
				return nil, err
			}
		}
		w.run(it, afterCodec(p), len(p.Nodes))
	} else {
		if err := putLines(p, it.b, t.Lines); err != nil {
			return nil, err
		}
		w.run(it, 0, len(p.Nodes))
	}

	enc := record.NewEncoder(p.Table, nil, true)
	var got []map[string]any
	take := func(b *record.Batch) error {
		for _, i := range b.Sel {
			m, err := decodeObject(enc.Append(nil, b, int(i)))
			if err != nil {
				return err
			}
			got = append(got, m)
		}
		return nil
	}
	if err := take(it.b); err != nil {
		return nil, err
	}
	letters := it.letters
	for i := range p.Nodes { // as when the source has ended: what a stage holds fires and goes on
		st := r.stages[i]
		if st == nil {
			continue
		}
		if e, ok := st.(Ender); ok {
			e.End()
		}
		for more := true; more; more = st.Due() {
			out := &item{b: record.NewBatch(p.Table)}
			out.b.Owner, out.fired = out, &p.Nodes[i].Name
			out.b.Split = &record.Split{ID: "test:" + p.Nodes[i].Name, Path: "test"}
			st.Checkpoint(out.b)
			w.run(out, i+1, len(p.Nodes))
			letters = append(letters, out.letters...)
			if err := take(out.b); err != nil {
				return nil, err
			}
		}
	}
	var diff []string
	diff = append(diff, compareRecords(t.Expect, got)...)
	if t.ExpectDead != nil || len(letters) > 0 {
		var dead []map[string]any
		for i := range letters {
			l := &letters[i]
			m := map[string]any{"step": l.Step, "reason": l.Reason, "raw": string(l.Raw)}
			if len(l.Record) > 0 {
				if rec, err := decodeObject(l.Record); err == nil {
					m["record"] = rec
				}
			}
			dead = append(dead, m)
		}
		diff = append(diff, compareDead(t.ExpectDead, dead)...)
	}
	return diff, nil
}

// afterCodec is the place where records enter: behind the step that `codec: json` stands for.
func afterCodec(p *Plan) int {
	if len(p.Nodes) > 0 && p.Nodes[0].Name == codecStep {
		return 1
	}
	return 0
}

// putLines cuts a test's lines into records as the source would; they are UTF-8 whatever its encoding.
func putLines(p *Plan, b *record.Batch, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	src := p.File.Source.Common
	src.Encoding = "utf-8"
	if !p.File.Source.Spec.Lines {
		src.Multiline = nil
	}
	f, err := text.FromBuild(&sources.Build{Build: steps.Build{Name: "source"}, Common: src, Clock: p.now, CompilePattern: p.File.compilePattern}, 16<<20)
	if err != nil {
		return err
	}
	data := strings.Join(lines, "\n") + "\n"
	c := f.NewCutter(p.Table, "test", "test", 0, nil)
	n := copy(c.Begin(b, len(data)), data)
	c.Cut(b, n, text.Final)
	return nil
}

func decodeObject(text []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	err := d.Decode(&m)
	return m, err
}

func putRecord(b *record.Batch, n *yaml.Node, offset int64) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a record is a mapping of fields", n.Line)
	}
	i := b.Add(record.Position{Offset: offset}, record.Value{})
	return putFields(b, i, "", n)
}

func putFields(b *record.Batch, i int, prefix string, n *yaml.Node) error {
	for k := 0; k+1 < len(n.Content); k += 2 {
		name := prefix + n.Content[k].Value
		v := config.Resolve(n.Content[k+1])
		if v.Kind == yaml.MappingNode && len(v.Content) > 0 {
			if err := putFields(b, i, name+".", v); err != nil {
				return err
			}
			continue
		}
		val, err := yamlValue(b, v)
		if err != nil {
			return err
		}
		b.SetNamed(i, b.PutString(name), val)
	}
	return nil
}

// yamlValue is a YAML value as a record's: texts stay texts, a quoted time is one.
func yamlValue(b *record.Batch, n *yaml.Node) (record.Value, error) {
	switch n.Kind {
	case yaml.SequenceNode:
		var vs []record.Value
		for _, e := range n.Content {
			v, err := yamlValue(b, config.Resolve(e))
			if err != nil {
				return record.Value{}, err
			}
			vs = append(vs, v)
		}
		return b.PutItems(record.Array, vs), nil
	case yaml.MappingNode:
		var vs []record.Value
		for k := 0; k+1 < len(n.Content); k += 2 {
			v, err := yamlValue(b, config.Resolve(n.Content[k+1]))
			if err != nil {
				return record.Value{}, err
			}
			vs = append(vs, b.PutString(n.Content[k].Value), v)
		}
		return b.PutItems(record.Map, vs), nil
	}
	switch n.Tag {
	case "!!null":
		return record.MakeNull(), nil
	case "!!bool":
		return record.MakeBool(strings.EqualFold(n.Value, "true")), nil
	case "!!int":
		if x, ok := new(big.Int).SetString(n.Value, 0); ok {
			if x.IsInt64() {
				return record.MakeInt(x.Int64()), nil
			}
			return b.BigDecimal(x, 0), nil
		}
	case "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			return record.MakeFloat(f), nil
		}
	case "!!timestamp":
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02"} {
			if t, err := time.Parse(layout, n.Value); err == nil {
				digits := 0
				if _, frac, ok := strings.Cut(n.Value, "."); ok {
					digits = len(frac) - len(strings.TrimLeft(frac, "0123456789"))
				}
				return record.MakeTime(t.Unix(), uint32(t.Nanosecond()), digits), nil
			}
		}
	}
	return b.PutString(n.Value), nil
}

func compareRecords(want []yaml.Node, got []map[string]any) (diff []string) {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			diff = append(diff, fmt.Sprintf("record %d: expected %s, got none", i+1, compact(&want[i])))
		case i >= len(want):
			diff = append(diff, fmt.Sprintf("record %d: not expected: %s", i+1, compactJSON(got[i])))
		default:
			for _, d := range compareFields(&want[i], got[i], "") {
				diff = append(diff, fmt.Sprintf("record %d: %s", i+1, d))
			}
		}
	}
	return diff
}

func compareDead(want []yaml.Node, got []map[string]any) (diff []string) {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			diff = append(diff, fmt.Sprintf("dead letter %d: expected %s, got none", i+1, compact(&want[i])))
		case i >= len(want):
			diff = append(diff, fmt.Sprintf("dead letter %d: not expected: step %s: %s (raw: %q)", i+1, got[i]["step"], got[i]["reason"], got[i]["raw"]))
		case want[i].Kind == yaml.ScalarNode:
			if !strings.Contains(got[i]["reason"].(string), want[i].Value) {
				diff = append(diff, fmt.Sprintf("dead letter %d: reason: expected something with %q, got %q", i+1, want[i].Value, got[i]["reason"]))
			}
		default:
			w := want[i]
			if r := valueOf(&w, "reason"); r != nil && strings.Contains(got[i]["reason"].(string), r.Value) {
				got[i]["reason"] = r.Value // the part that is expected
			}
			for _, d := range compareFields(&w, got[i], "") {
				diff = append(diff, fmt.Sprintf("dead letter %d: %s", i+1, d))
			}
		}
	}
	return diff
}

// compareFields compares the fields that want names; a name may be a dotted path.
func compareFields(want *yaml.Node, got map[string]any, prefix string) (diff []string) {
	if want.Kind != yaml.MappingNode {
		return []string{fmt.Sprintf("line %d: expect a mapping of fields", want.Line)}
	}
	for k := 0; k+1 < len(want.Content); k += 2 {
		name, w := want.Content[k].Value, config.Resolve(want.Content[k+1])
		g, ok := lookupPath(got, name)
		if !ok && w.Tag == "!!null" {
			continue
		}
		if m, isMap := g.(map[string]any); isMap && w.Kind == yaml.MappingNode {
			diff = append(diff, compareFields(w, m, prefix+name+".")...)
			continue
		}
		if !ok {
			diff = append(diff, fmt.Sprintf("%s: expected %s, the field is missing", prefix+name, compact(w)))
		} else if !sameValue(w, g) {
			diff = append(diff, fmt.Sprintf("%s: expected %s, got %s", prefix+name, compact(w), compactJSON(g)))
		}
	}
	return diff
}

// lookupPath finds a dotted path; a key that holds the dots itself counts too.
func lookupPath(m map[string]any, path string) (any, bool) {
	if v, ok := m[path]; ok {
		return v, true
	}
	for i := 0; i < len(path); i++ {
		if path[i] != '.' {
			continue
		}
		if sub, ok := m[path[:i]].(map[string]any); ok {
			if v, ok := lookupPath(sub, path[i+1:]); ok {
				return v, true
			}
		}
	}
	return nil, false
}

func sameValue(w *yaml.Node, g any) bool {
	switch w.Kind {
	case yaml.SequenceNode:
		l, ok := g.([]any)
		if !ok || len(l) != len(w.Content) {
			return false
		}
		for i, e := range w.Content {
			if !sameValue(config.Resolve(e), l[i]) {
				return false
			}
		}
		return true
	case yaml.MappingNode:
		m, ok := g.(map[string]any)
		return ok && len(compareFields(w, m, "")) == 0
	}
	switch g := g.(type) {
	case nil:
		return w.Tag == "!!null"
	case bool:
		return w.Tag == "!!bool" && strings.EqualFold(w.Value, strconv.FormatBool(g))
	case json.Number:
		if w.Tag != "!!int" && w.Tag != "!!float" {
			return false
		}
		a, ok1 := new(big.Rat).SetString(strings.ReplaceAll(w.Value, "_", ""))
		b, ok2 := new(big.Rat).SetString(g.String())
		return ok1 && ok2 && a.Cmp(b) == 0
	case string:
		if w.Tag == "!!null" || w.Tag == "!!bool" || w.Tag == "!!int" && w.Style == 0 || w.Tag == "!!float" && w.Style == 0 && !strings.Contains(w.Value, ":") {
			return false
		}
		return w.Value == g
	}
	return false
}

func compact(n *yaml.Node) string {
	var v any
	if n.Kind == yaml.ScalarNode && n.Tag == "!!timestamp" {
		return strconv.Quote(n.Value)
	}
	if n.Decode(&v) != nil {
		return n.Value
	}
	return compactJSON(v)
}

func compactJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
