package pipeline_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline"
)

// A record goes to the first branch that takes it, through its steps and into its sinks; the ledger adds up.
func TestRoute(t *testing.T) {
	e := newEnv(t)
	e.write("in", `{"k":"a","n":1}
{"k":"b","n":2}
{"k":"a","n":"x"}
{"k":"c","n":4}
{"k":"d","n":5}
{"k":"ab","n":6}
`)
	name := t.Name()
	rep := e.once(strings.ReplaceAll(`
source: {file: {paths: [DIR/in]}, codec: json}
workers: 2
steps:
  - set: {all: n}
  - route:
      first:
        when: k LIKE 'a%'
        steps:
          - convert: {n: integer}
            name: number
          - drop: n = 6
          - set: {seen: "'first'"}
          - remove: all
        sinks:
          - collect: {into: NAME-a}
          - collect: {into: NAME-number}
            from: number
      second:
        when: k IN ('a', 'b')
        steps:
          - set: {k: "UPPER(k)"}
          - add: {via: '%{@branch}'}
        sinks: [collect: {into: NAME-b}]
      third:
        when: k = 'd'
        sinks: [collect: {into: NAME-d}]
`, "NAME", name))
	if rep.In != 6 || rep.Out != 3 || rep.Filtered != 2 || rep.Dead != 1 {
		t.Errorf("%+v", rep)
	}
	for sink, want := range map[string][]string{
		"-a":      {`{"n":1,"seen":"first","k":"a"}`},
		"-number": {`{"n":1,"all":1,"k":"a"}`, `{"n":6,"all":6,"k":"ab"}`},
		"-b":      {`{"n":2,"all":2,"k":"B","via":"second"}`},
		"-d":      {`{"n":5,"all":5,"k":"d"}`},
	} {
		if got := rowsOf(name + sink).all(); !sameRows(got, want) {
			t.Errorf("%s: %q, want %q", sink, got, want)
		}
	}
}

func sameRows(got, want []string) bool {
	return slices.EqualFunc(got, want, func(a, b string) bool {
		// the order of members is the plan's
		split := func(s string) []string {
			l := strings.Split(strings.Trim(s, "{}"), ",")
			slices.Sort(l)
			return l
		}
		return slices.Equal(split(a), split(b))
	})
}

// The rest takes what is left, and the pipeline's own sinks all that there is; several records made of one stay in their branch.
func TestRouteRest(t *testing.T) {
	e := newEnv(t)
	e.write("in", `{"k":"a","l":[1,2]}
{"k":"b","l":[3]}
{"k":"c","l":[4,5]}
`)
	name := t.Name()
	rep := e.once(strings.ReplaceAll(`
source: {file: {paths: [DIR/in]}, codec: json}
route:
  many: {when: k = 'a', steps: [unnest: l], sinks: [collect: {into: NAME-a}]}
  rest: {steps: [set: {rest: 'TRUE'}], sinks: [collect: {into: NAME-r}]}
sinks: [collect: {into: NAME-all}]
`, "NAME", name))
	if rep.In != 3 || rep.Made != 2 || rep.Absorbed != 1 || rep.Out != 4 {
		t.Errorf("%+v", rep)
	}
	for sink, want := range map[string][]string{
		"-a":   {`{"k":"a","l":1}`, `{"k":"a","l":2}`},
		"-r":   {`{"k":"b","l":[3],"rest":true}`, `{"k":"c","l":[4,5],"rest":true}`},
		"-all": {`{"k":"a","l":1}`, `{"k":"a","l":2}`, `{"k":"b","l":[3],"rest":true}`, `{"k":"c","l":[4,5],"rest":true}`},
	} {
		if got := rowsOf(name + sink).all(); !sameRows(got, want) {
			t.Errorf("%s: %q, want %q", sink, got, want)
		}
	}
}

// Windows in branches take the records of theirs, and what they fire stays there.
func TestRouteWindows(t *testing.T) {
	e := newEnv(t)
	e.add("a.log", row("10:00:01", "a", 1)+row("10:00:02", "b", 2)+row("10:00:03", "a", 3)+row("10:01:30", "b", 4)+row("10:00:04", "x", 5))
	name := t.Name()
	rep := e.once(strings.ReplaceAll(`
source: {file: {paths: [DIR/a.log]}, codec: json}
steps:
  - date: {field: t, formats: ['yyyy-MM-dd HH:mm:ss']}
  - route:
      a:
        when: k = 'a'
        steps:
          - window: {tumble: 1m, time: '@timestamp', by: [k], select: {s: SUM(v)}}
          - add: {day: '%{+yyyy-MM-dd}'}
        sinks: [collect: {into: NAME-a}]
      b:
        when: k = 'b'
        steps:
          - window: {tumble: 1m, time: '@timestamp', by: [k], select: {n: COUNT(*)}}
          - set: {n: n * 10}
        sinks: [collect: {into: NAME-b}]
      rest:
        sinks: [collect: {into: NAME-r}]
`, "NAME", name))
	if rep.In != 5 || rep.Absorbed != 4 || rep.Made != 3 || rep.Out != 4 || rep.Dead != 0 {
		t.Errorf("%+v", rep)
	}
	for sink, want := range map[string][]string{
		"-a": {`{"k":"a","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","s":4,"day":"2024-01-01"}`},
		"-b": {`{"k":"b","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","n":10}`, `{"k":"b","window_start":"2024-01-01T10:01:00Z","window_end":"2024-01-01T10:02:00Z","n":10}`},
		"-r": {`{"t":"2024-01-01 10:00:04","k":"x","v":5,"@timestamp":"2024-01-01T10:00:04Z"}`},
	} {
		if got := rowsOf(name + sink).all(); !sameRows(got, want) {
			t.Errorf("%s: %q, want %q", sink, got, want)
		}
	}
}

// A letter of a branch's step is replayed from the start, and takes the branch again.
func TestRouteReplay(t *testing.T) {
	e := newEnv(t)
	e.write("in.log", `{"k":"a","n":"x"}
{"k":"a","n":"1"}
{"k":"b","n":"y"}
`)
	yaml := strings.ReplaceAll(`
source: {file: {paths: ['DIR/in.log']}}
steps:
  - json: {replace: true}
route:
  a: {when: k = 'a', steps: [STEP], sinks: [collect: {into: NAME-a}]}
  rest: {sinks: [collect: {into: NAME-r}]}
`, "NAME", t.Name())
	rep := e.once(strings.Replace(yaml, "STEP", "convert: {n: integer}", 1))
	if rep.Dead != 1 || rep.Out != 2 {
		t.Fatalf("%+v", rep)
	}
	yaml = strings.Replace(yaml, "STEP", "add: {mended: true}", 1)
	f, err := pipeline.Load("p.yaml", []byte(strings.ReplaceAll(yaml, "DIR", e.dir)), pipeline.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Compile(f, pipeline.CompileOptions{Once: true})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := pipeline.ReplayLetters(context.Background(), e.store, p, filepath.Join(e.dir, "dead.ndjson"), &deadletter.Filter{}); err != nil || out.Replayed != 1 {
		t.Fatalf("%+v %v", out, err)
	}
	rep = e.once(yaml)
	if rep.Made != 1 || rep.Out != 3 {
		t.Errorf("%+v", rep)
	}
	if got, want := rowsOf(t.Name()+"-a").all(), []string{`{"k":"a","n":1}`, `{"k":"a","n":"x","mended":true}`}; !sameRows(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := rowsOf(t.Name() + "-r").all(); len(got) != 1 {
		t.Errorf("rest: %q", got)
	}
}

func TestRouteMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"steps: [route: {a: {when: message = 'x', steps: [set: {b: c}]}, rest: {sinks: [stdout: {}]}}]":                         "no step before makes a field c",
		"steps: [route: {a: {when: message = 'x', steps: [set: {b: '1'}], sinks: [stdout: {}]}, rest: {steps: [set: {c: b}]}}]": "no step before makes a field b",
		"steps: [route: {a: {sinks: [stdout: {}]}}, remove: message]":                                                           "a step behind route",
		"steps: [route: {a: {sinks: [stdout: {}]}, b: {}}]":                                                                     "has no when, so nothing comes here",
		"steps: [route: {a: {steps: [route: {b: {}}], sinks: [stdout: {}]}}]":                                                   "a route within a branch",
		"steps: [route: {a: {wen: x, sinks: [stdout: {}]}}]":                                                                    `unknown key "wen"`,
		"steps: [route: []]":               "want branches",
		"steps: [route: {a: {}}]":          `key "sinks" is missing`,
		"route: {'a b': {}}":               "is not a branch's name",
		"route: {a: {sinks: [stdot: {}]}}": `did you mean "stdout"`,
		"steps: [add: {x: y}, {route: {a: {sinks: [{stdout: {}, from: add}]}}}]": `"add" is no step of the branch a`,
		"steps: [{route: {a: {sinks: [{stdout: {}}]}}, when: message = 'x'}]":    "a route takes every record",
	} {
		f, err := pipeline.Load("p.yaml", []byte("source: {stdin: {}}\n"+text+"\n"), pipeline.LoadOptions{})
		if err == nil {
			_, err = pipeline.Compile(f, pipeline.CompileOptions{Once: true})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
