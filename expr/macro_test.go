package expr

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
)

func macros(t *testing.T, defs ...string) Macros {
	t.Helper()
	ms := Macros{}
	for i := 0; i < len(defs); i += 2 {
		m, err := ParseMacro(defs[i], defs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		ms[strings.ToUpper(m.Name)] = m
	}
	return ms
}

func TestMacros(t *testing.T) {
	ms := macros(t, "twice(x)", "x + x", "quad(x)", "twice(twice(x))", "seven()", "7", "long_url(u, n)", "CHAR_LENGTH(u.path) > n",
		"loop(x)", "knot(x)", "knot(x)", "loop(x)")
	f := func(src, want string) {
		t.Helper()
		e, err := Parse(src)
		if err == nil {
			e, err = ms.Expand(e)
		}
		var p *Program
		table := record.NewTable()
		if err == nil {
			p, err = (&Compiler{Table: table}).Compile(e)
		}
		if err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", src, err, want)
			}
			return
		}
		b := record.NewBatch(table)
		env := &Env{B: b}
		i := b.Add(record.Position{}, record.Value{})
		got := string(b.AppendPlain(nil, p.Eval(env, i)))
		if got != want {
			t.Errorf("%s = %s, want %s", src, got, want)
		}
	}
	f("twice(1 + 2) * 2", "12") // the body and the argument keep together
	f("Quad(2)", "8")
	f("seven() - 1", "6")
	f("long_url(url, 3) IS NULL", "true")
	f("twice(1, 2)", "at 0: twice takes one argument, not 2")
	f("1 + loop(1)", "calls itself")
	f("long_url('x', 3)", "needs a field")
	f("1 + twice(nosuch(1))", "at 10: there is no function NOSUCH")
	deep := "1"
	for range 14 {
		deep = "twice(" + deep + ")"
	}
	f(deep, "more than 10000 parts")
	for _, bad := range [][2]string{{"f", "1"}, {"f(a, a)", "1"}, {"upper(x)", "x"}, {"f(1)", "1"}, {"f(x)", "x +"}, {"f(a,)", "a"}} {
		if _, err := ParseMacro(bad[0], bad[1]); err == nil {
			t.Errorf("%s: %s is taken", bad[0], bad[1])
		}
	}
}
