package add

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestAdd(t *testing.T) {
	for _, c := range []struct{ step, in, want string }{
		{`add: {env: prod, v: 2, f: 1.5, t: true, n: null, q: '2', e: ''}`, `{}`, `{"env":"prod","v":2,"f":1.5,"t":true,"n":null,"q":"2","e":""}`},
		{`add: {a: 0x1f, b: 1_000, c: -7, d: 1e3, e: 1_000.5, f: .inf, g: .nan, h: False, i: ~}`, `{}`, `{"a":31,"b":1000,"c":-7,"d":1000,"e":1000.5,"f":null,"g":null,"h":false,"i":null}`},
		{`add: {day: 2026-02-24, no: no, x: "é€ \" \\"}`, `{}`, `{"day":"2026-02-24","no":"no","x":"é€ \" \\"}`},
		{`add: {a.b: 1, a.c: [1, two, true, 2.5, null]}`, `{"a":{"b":0,"d":9}}`, `{"a":{"b":1,"c":[1,"two",true,2.5,null],"d":9}}`},
		{`add: {title: 'error on %{host} at %{a.b}'}`, `{"host":"h1","a":{"b":5}}`, `{"host":"h1","a":{"b":5},"title":"error on h1 at 5"}`},
		{`add: {x: '%{y}', y: '%{x}'}`, `{"x":"1","y":"2"}`, `{"x":"2","y":"1"}`}, // the record as it was before
		{`add: {x: '%{x}!'}`, `{"x":"1"}`, `{"x":"1!"}`},
		{`add: {x: 'a %{y}', z: 1}`, `{"x":"old"}`, `{"x":"old","z":1}`}, {`add: {x: 'a %{y}'}`, `{"y":null}`, `{"y":null}`}, {`add: {x: '%{y}'}`, `{"y":""}`, `{"y":"","x":""}`},
		{`add: {x: '%{+yyyy.MM.dd}'}`, `{"@timestamp":{"$time":"2026-02-24T23:13:42Z"}}`, `{"@timestamp":"2026-02-24T23:13:42.000000000Z","x":"2026.02.24"}`},
		{`add: {a: 1}`, `{"a":{"b":2,"c":{"d":3}},"ab":4}`, `{"a":1,"ab":4}`}, {`add: {a: 'x %{y}'}`, `{"a":{"b":2}}`, `{"a":{"b":2}}`}, {`add: {a: '%{a.b}'}`, `{"a":{"b":"q"}}`, `{"a":"q"}`},
		{`add: {'@timestamp': now}`, `{}`, `{"@timestamp":"now"}`},
	} {
		s := steptest.New(t, c.step, steptest.Options{})
		s.Want(t, c.in, c.want)
		if !s.Decl.Pure {
			t.Error("add is pure")
		}
	}
}

func TestSeveralRecords(t *testing.T) {
	s := steptest.New(t, `add: {x: '%{y}', c: 1}`, steptest.Options{})
	b := s.Batch(t, `{"y":"a"}`, `{}`, `{"y":"c"}`)
	b.Sel = b.Sel[1:] // the first is dead
	s.Apply(b)
	for i, want := range []string{`{"y":"a"}`, `{"c":1}`, `{"y":"c","x":"c","c":1}`} {
		if got := s.JSON(b, i); !steptest.SameJSON(got, want) {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
}

func TestTypes(t *testing.T) {
	s := steptest.New(t, `add: {i: 1, f: 1.5, b: true, s: x, t: '%{i}', l: [1], n: null}`, steptest.Options{})
	want := map[string]expr.TypeKind{"i": expr.TBigInt, "f": expr.TDouble, "b": expr.TBoolean, "s": expr.TVarchar, "t": expr.TVarchar}
	for _, f := range s.Decl.WriteFields {
		if f.Type.Kind != want[f.Name] {
			t.Errorf("%s is %v", f.Name, f.Type)
		}
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`add: {a: {b: 1}}`:     `write dotted names instead`,
		`add: {a: [[1]]}`:      `a list within a list`,
		`add: {a: ['%{b}']}`:   `a template within a list`,
		`add: {'@path': x}`:    `names with @ are metadata`,
		`add: {a: '%{b'}`:      ``,
		`add: [a]`:             `want a mapping`,
		`add: {a..b: 1}`:       ``,
		`add: {a: '%{1 + +}'}`: ``,
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

func TestLive(t *testing.T) {
	s := steptest.New(t, `add: {a: 1, b: '%{c}'}`, steptest.Options{Live: func(f string) bool { return f == "a" }})
	s.Want(t, `{"c":"x"}`, `{"c":"x","a":1}`)
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, `add: {env: prod, title: 'on %{host}'}`, steptest.Options{})
	slot := s.Table.Slot("host")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 50 {
			v := b.PutString("h")
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}
