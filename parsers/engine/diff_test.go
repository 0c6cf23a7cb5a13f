package engine

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// paths are the ways to an answer: the usual one; the simulation; the automaton with a cache that is soon full; with one that is
// full at once; searching even where the match is at the beginning; with traces and skips from the first text on.
var paths = []string{"native", "simulation", "flushing", "small", "located", "tracing", "tracing, flushing"}

// newPath makes a matcher that takes one of them.
func newPath(n *native, path string) Matcher {
	c := *n
	switch path {
	case "flushing":
		c.budget = 6000
	case "small":
		c.budget = 1
	case "tracing":
		c.eager = true
	case "tracing, flushing":
		c.eager, c.budget = true, 12_000
	}
	m := c.matcher()
	switch path {
	case "simulation":
		m.rest = 1 << 60
	case "located":
		return located{m}
	case "flushing", "tracing, flushing":
		return flushing{m}
	}
	return m
}

// located searches where the usual way would try the beginning first.
type located struct{ m *matcher }

func (l located) Each(text []byte, caps []int, f func() bool) error { return l.m.Each(text, caps, f) }

func (l located) Match(text []byte, caps []int) (bool, error) {
	m := l.m
	if !utf8.Valid(text) {
		return m.Match(text, caps)
	}
	if m.start == nil {
		m.start, m.all = m.newDFA(m.p.search, goalStart, m.budget), m.newDFA(m.p.start, goalAll, m.budget)
	}
	res, st := m.start.match(text, 0)
	if res == gaveUp {
		return m.Match(text, caps)
	}
	if any, _ := m.Match(text, nil); any != (res == found) {
		return false, fmt.Errorf("the probe says %v", any)
	}
	if res == missed {
		return false, nil
	}
	if len(caps) == 0 {
		return true, nil
	}
	caps[0] = m.start.from(st)
	if res, st = m.all.match(text, caps[0]); res != found {
		return false, fmt.Errorf("no match at the place that was found")
	}
	m.all.offsets(st, caps)
	return true, nil
}

// flushing doesn't rest after an automaton has given up.
type flushing struct{ m *matcher }

func (f flushing) Each(text []byte, caps []int, g func() bool) error { return f.m.Each(text, caps, g) }

func (f flushing) Match(text []byte, caps []int) (bool, error) {
	f.m.rest = 0
	return f.m.Match(text, caps)
}

var iterations = flag.Int("iterations", 0, "expressions that TestAgainstGo makes; 0: some, as many as a short test has time for")

// letters are what expressions and texts are made of: characters of one to four bytes, those that fold to ASCII, bytes that no
// UTF-8 has.
var letters = []string{"a", "b", "c", "A", "B", "k", "K", "\u212a", "s", "ſ", "é", "É", "世", "😀", "\n", " ", "-", "_", "1", "\u0080", "\ufffd"}

type maker struct{ r *rand.Rand }

func (m maker) pick(s []string) string { return s[m.r.IntN(len(s))] }

func (m maker) atom() string {
	switch m.r.IntN(12) {
	case 0:
		return m.pick([]string{`\d`, `\w`, `\s`, `\S`, `\W`, `\D`, `.`, `.`, `(?s:.)`, `\pL`, `\PL`, `\p{Greek}`, `[[:alpha:]]`, `[[:^alpha:]]`})
	case 1:
		return m.pick([]string{`[ab]`, `[^a]`, `[^\n]`, `[a-é]`, `[é-世]`, `[^é]`, `[^世a]`, `[\d_]`, `[k]`, `[^k]`, `[a-z]`, `[世😀]`, `[^\x00-\x7f]`, `[\x{80}-\x{10ffff}]`, `[^😀]`})
	case 2:
		return m.pick([]string{`^`, `$`, `\b`, `\B`, `\A`, `\z`})
	default:
		return strings.ReplaceAll(m.pick(letters), "-", `\-`)
	}
}

func (m maker) expr(depth int) string {
	if depth == 0 {
		return m.atom()
	}
	switch m.r.IntN(10) {
	case 0, 1:
		return m.expr(depth-1) + "|" + m.expr(depth-1)
	case 2, 3:
		return "(" + m.expr(depth-1) + ")"
	case 4:
		return "(?:" + m.expr(depth-1) + ")" + m.pick([]string{"*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,3}?", "{2,}", "{0}"})
	case 5:
		return "(" + m.expr(depth-1) + ")" + m.pick([]string{"*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}"})
	case 6:
		return m.pick([]string{"(?i:", "(?m:", "(?s:", "(?im:", "(?U:", "(?-s:"}) + m.expr(depth-1) + ")"
	case 7:
		return m.atom() + m.pick([]string{"*", "+", "?", "*?", "+?", "??", "{3}", "{1,2}"}) + m.expr(depth-1)
	default:
		return m.expr(depth-1) + m.expr(depth-1)
	}
}

func (m maker) text() string {
	var b strings.Builder
	n := m.r.IntN(9)
	if m.r.IntN(20) == 0 {
		n = 40 + m.r.IntN(60) // long enough for runs
	}
	few := m.r.IntN(4) == 0
	for range n {
		switch k := m.r.IntN(60); {
		case k == 0:
			b.WriteString(m.pick([]string{"\xff", "\xe4", "\xb8\xad", "\xf0\x9f", "\xc3", "\xc0\x80", "\xed\xa0\x80"}))
		case few:
			b.WriteString(m.pick(letters[:3]))
		default:
			b.WriteString(m.pick(letters))
		}
	}
	return b.String()
}

// differ runs all paths and gives the number of comparisons, and what differs from Go's regexp.
func differ(re *regexp.Regexp, ms []Matcher, text string) (n int, msg string) {
	want := re.FindStringSubmatchIndex(text)
	caps := make([]int, 2*(re.NumSubexp()+1))
	for i, m := range ms {
		for j := range caps {
			caps[j] = -7
		}
		ok, err := m.Match([]byte(text), caps)
		n++
		if err != nil || ok != (want != nil) || ok && !slices.Equal(caps, want) {
			return n, fmt.Sprintf("%q on %q, %s: %v %v %v, Go %v", re, text, paths[i], ok, caps, err, want)
		}
		if strings.HasPrefix(paths[i], "tracing") { // what was recorded is followed now
			ok, _ := m.Match([]byte(text), caps)
			if n++; ok != (want != nil) || ok && !slices.Equal(caps, want) {
				return n, fmt.Sprintf("%q on %q, traced: %v %v, Go %v", re, text, ok, caps, want)
			}
		}
		if i == 0 || paths[i] == "flushing" {
			var every [][]int
			m.Each([]byte(text), caps, func() bool { every = append(every, slices.Clone(caps)); return true })
			n++
			if want := re.FindAllStringSubmatchIndex(text, -1); !slices.EqualFunc(every, want, slices.Equal) {
				return n, fmt.Sprintf("%q on %q, %s, each: %v, Go %v", re, text, paths[i], every, want)
			}
			n++
			if ok, err := m.Match([]byte(text), nil); err != nil || ok != (want != nil) {
				return n, fmt.Sprintf("%q on %q, yes or no: %v %v, Go %v", re, text, ok, err, want)
			}
		}
	}
	return n, ""
}

func allPaths(src string) (*regexp.Regexp, []Matcher) {
	re, err := regexp.Compile(src)
	if err != nil {
		return nil, nil
	}
	tree, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, nil
	}
	n, _, err := compileNative(tree, nil)
	if err != nil {
		return nil, nil
	}
	n.p.groups = re.NumSubexp()
	var ms []Matcher
	for _, p := range paths {
		ms = append(ms, newPath(n, p))
	}
	return re, ms
}

// Every path gives Go's answer: all offsets, on expressions and texts by chance.
func TestAgainstGo(t *testing.T) {
	count := *iterations
	if count == 0 {
		count = 1500
	}
	m := maker{rand.New(rand.NewPCG(uint64(count), 8))}
	total := 0
	for range count {
		src := m.expr(1 + m.r.IntN(5))
		re, ms := allPaths(src)
		if re == nil {
			continue
		}
		for range 12 {
			n, msg := differ(re, ms, m.text())
			if total += n; msg != "" {
				t.Error(msg)
				break
			}
		}
	}
	t.Logf("%d comparisons", total)
}

func FuzzAgainstGo(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.src, c.text)
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 100 || len(text) > 300 {
			return
		}
		re, ms := allPaths(src)
		if re == nil {
			return
		}
		if _, msg := differ(re, ms, text); msg != "" {
			t.Error(msg)
		}
	})
}

// All paths give the simulation's answer for the dialect's expressions, those with look-around too; none panics.
func FuzzPaths(f *testing.F) {
	for _, c := range corpus {
		f.Add(c.src, c.text)
	}
	for _, s := range []string{`(?<![a])(?>[0-9]+)(?!b)x?`, `(?=(?<a>.*))b*`, quoted, `(?!<[0-9])[0-9]:`, `(?<=\A|x)a*+b`} {
		f.Add(s, "a1b\"c\"")
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 150 || len(text) > 300 {
			return
		}
		r, err := Compile(src)
		if err != nil || r.native == nil {
			return
		}
		want, got := make([]int, 2*(r.Groups+1)), make([]int, 2*(r.Groups+1))
		found, _ := newPath(r.native, "simulation").Match([]byte(text), want)
		for _, p := range paths {
			if len(r.native.toEnd) > 0 && p == "located" {
				continue
			}
			m := newPath(r.native, p)
			for range 2 {
				if ok, err := m.Match([]byte(text), got); err != nil || ok != found || ok && !slices.Equal(got, want) {
					t.Fatalf("%q on %q, %s: %v %v %v, simulation %v %v", src, text, p, ok, got, err, found, want)
				}
			}
		}
		r.Partial([]byte(text))
	})
}

// One expression serves any number of goroutines, each with a matcher of its own.
func TestParallel(t *testing.T) {
	r, err := Compile(`(?<a>\w+)=(?<b>"[^"]*"|\d+)(?: |$)(?<rest>.*)`)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{`key=12 and more of a text that is long enough`, `x y="a b c" z`, `no match here at all, whatever is tried`, `é=1 é=2`, "k=\"\xff\""}
	var want []string
	for _, s := range texts {
		caps := make([]int, 8)
		ok, _ := r.Matcher().Match([]byte(s), caps)
		want = append(want, fmt.Sprint(ok, ok && caps[2] >= 0, caps))
	}
	done := make(chan string)
	for range 4 {
		go func() {
			m := r.Matcher()
			for range 300 {
				for i, s := range texts {
					caps := make([]int, 8)
					ok, _ := m.Match([]byte(s), caps)
					if got := fmt.Sprint(ok, ok && caps[2] >= 0, caps); got != want[i] {
						done <- got + ", want " + want[i]
						return
					}
				}
			}
			done <- ""
		}()
	}
	for range 4 {
		if msg := <-done; msg != "" {
			t.Error(msg)
		}
	}
}
