package engine

import (
	"testing"
)

func TestPartial(t *testing.T) {
	for _, c := range []struct {
		src, text string
		from, to  int
		wants     string
	}{
		{`(?<a>\d+) (?<b>\w+)!`, "x 12 ab?", 2, 7, `[!0-9A-Z_a-z]`},
		{`a(?:bc|de)f`, "abx", 0, 2, `"c"`},
		{`^a+$`, "aab", 0, 2, `[\na] or the end`},
		{`é.x`, "aé世y", 1, 6, `"x"`},
		{`a\n?b`, "a", 0, 1, `[\nb]`},
		{`[^"]*"x`, "ab", 0, 2, "."},
		{`a.b`, "a\xff\xff", 0, 2, `"b"`},
		{`(a)(?!b)c`, "ab", 0, 1, `"c"`},
	} {
		r, err := Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := r.Partial([]byte(c.text))
		if !ok || p.From != c.from || p.To != c.to || p.Wants != c.wants {
			t.Errorf("%s on %q: %+v %v", c.src, c.text, p, ok)
		}
	}
	r, _ := Compile(`(?<a>\d+) (?<b>\w+)!`)
	if p, _ := r.Partial([]byte("12 ab?")); p.Caps[2] != 0 || p.Caps[3] != 2 || p.Caps[4] != 3 || p.Caps[5] != -1 {
		t.Errorf("the groups are %v", p.Caps)
	}
	for _, text := range []string{"12 ab!", "", "?"} {
		if p, ok := r.Partial([]byte(text)); ok {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

// A matcher's memory stays within its budget, whatever it is given; what the budget is too small for is answered all the same.
func TestBudget(t *testing.T) {
	r, err := Compile(`(?:a|b)*a(?:a|b){14}(c?)`)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Matcher()
	text := make([]byte, 1<<16)
	x := uint32(7)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = 'a' + byte(x>>31)
	}
	caps := make([]int, 4)
	for i := range 20 {
		ok, err := m.Match(text[i*100:], caps)
		if !ok || err != nil || caps[0] != 0 {
			t.Fatal(ok, err, caps)
		}
	}
	s := StatsOf(m)
	if s.Bytes > DefaultBudget*3/2+1<<16 || s.Flushes == 0 && s.Fallbacks == 0 {
		t.Errorf("%+v", s)
	}
	if before := cached.Load(); before < int64(s.States) || before > MaxTotal {
		t.Errorf("all automatons have %d bytes", before)
	}
}

// A small budget changes no answer.
func TestMatcherWithin(t *testing.T) {
	r, err := Compile(`(?<a>[ab]*)(?<b>b[ab]{5})c`)
	if err != nil {
		t.Fatal(err)
	}
	for _, budget := range []int{1, 3000, 1 << 20} {
		m := r.MatcherWithin(budget)
		for range 50 {
			caps := make([]int, 6)
			if ok, err := m.Match([]byte("xaababbabbabaabc"), caps); !ok || err != nil || caps[1] != 16 || caps[4] != 9 {
				t.Fatal(budget, ok, err, caps)
			}
		}
		if s := StatsOf(m); s.Bytes > 4*budget+100_000 {
			t.Errorf("budget %d: %+v", budget, s)
		}
	}
}

// A text that matches, or doesn't, costs no allocation once the matcher is warm.
func TestAllocs(t *testing.T) {
	r, err := Compile(`^(?<ip>\d+\.\d+) "(?<q>[^"]*)" (?<rest>.*)$`)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Matcher()
	caps := make([]int, 2*(r.Groups+1))
	lines := [][]byte{[]byte(`12.5 "GET /index.html?x=1&y=2 HTTP/1.1 and so on" the rest of it`), []byte(`12.5 "no`), []byte(``)}
	run := func() {
		for _, l := range lines {
			m.Match(l, caps)
		}
	}
	for range 200 {
		run()
	}
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
