// Package filters compares rsetl's filter expressions with expr-lang/expr and cel-go on the same records.
package filters

import (
	"fmt"
	"testing"

	exprlang "github.com/expr-lang/expr"
	"github.com/google/cel-go/cel"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
)

// Record is what all three filter: some pass each condition, few all of them.
type Record struct {
	Status int64  `expr:"status"`
	URL    string `expr:"url"`
	Agent  string `expr:"agent"`
}

func records() []Record {
	agents := []string{
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/121.0 Safari/537.36",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "curl/8.5.0", "kube-probe/1.30",
	}
	var out []Record
	for i := range 1000 {
		r := Record{Status: []int64{200, 404, 500, 503}[i%4], URL: fmt.Sprintf("/api/v1/orders/%d", i), Agent: agents[i/4%4]}
		if i%7 == 0 {
			r.URL = "/healthz"
		}
		out = append(out, r)
	}
	return out
}

type filter struct {
	name string
	make func(tb testing.TB, rs []Record) (match func(i int) bool)
}

var filters = []filter{
	{"rsetl", func(tb testing.TB, rs []Record) func(int) bool {
		e, err := expr.Parse("status >= 500 AND url NOT LIKE '/health%' AND agent REGEXP '(?i)bot'")
		if err != nil {
			tb.Fatal(err)
		}
		t := record.NewTable()
		p, err := (&expr.Compiler{Table: t}).Compile(e)
		if err != nil {
			tb.Fatal(err)
		}
		b := record.NewBatch(t)
		for _, r := range rs {
			i := b.Add(record.Position{}, record.Value{})
			b.Set(i, t.Find("status"), record.MakeInt(r.Status))
			b.Set(i, t.Find("url"), b.PutString(r.URL))
			b.Set(i, t.Find("agent"), b.PutString(r.Agent))
		}
		env := &expr.Env{B: b}
		return func(i int) bool { return p.True(env, i) }
	}},
	{"expr-lang", func(tb testing.TB, rs []Record) func(int) bool {
		p, err := exprlang.Compile(`status >= 500 && not (url startsWith "/health") && agent matches "(?i)bot"`, exprlang.Env(Record{}), exprlang.AsBool())
		if err != nil {
			tb.Fatal(err)
		}
		return func(i int) bool {
			v, err := exprlang.Run(p, rs[i])
			if err != nil {
				tb.Fatal(err)
			}
			return v.(bool)
		}
	}},
	{"cel-go", func(tb testing.TB, rs []Record) func(int) bool {
		env, err := cel.NewEnv(cel.Variable("status", cel.IntType), cel.Variable("url", cel.StringType), cel.Variable("agent", cel.StringType))
		if err != nil {
			tb.Fatal(err)
		}
		ast, iss := env.Compile(`status >= 500 && !url.startsWith("/health") && agent.matches("(?i)bot")`)
		if iss.Err() != nil {
			tb.Fatal(iss.Err())
		}
		p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			tb.Fatal(err)
		}
		vars := make([]map[string]any, len(rs))
		for i, r := range rs {
			vars[i] = map[string]any{"status": r.Status, "url": r.URL, "agent": r.Agent}
		}
		return func(i int) bool {
			v, _, err := p.Eval(vars[i])
			if err != nil {
				tb.Fatal(err)
			}
			return v.Value().(bool)
		}
	}},
}

// TestSame: all three choose the same records.
func TestSame(t *testing.T) {
	rs := records()
	want := filters[0].make(t, rs)
	n := 0
	for _, f := range filters[1:] {
		match := f.make(t, rs)
		for i := range rs {
			if match(i) != want(i) {
				t.Fatalf("%s: record %d %+v: %v", f.name, i, rs[i], match(i))
			}
			if want(i) {
				n++
			}
		}
	}
	if n == 0 {
		t.Error("no record passes")
	}
}

func BenchmarkFilter(b *testing.B) {
	rs := records()
	for _, f := range filters {
		b.Run("by="+f.name, func(b *testing.B) {
			match := f.make(b, rs)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				match(i)
				if i++; i == len(rs) {
					i = 0
				}
			}
		})
	}
}
