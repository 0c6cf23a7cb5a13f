package engine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
)

// ruby makes expressions with what Go's regexp lacks. No loop's inside can be empty: about those the engines differ.
func (m maker) ruby(depth int) string {
	if depth == 0 {
		return m.pick([]string{"a", "b", "c", "ab", "[ab]", "[^a]", ".", `\d`, `\w`, "é", "1", " ", `\S`})
	}
	sub := func() string { return m.ruby(m.r.IntN(depth)) }
	switch m.r.IntN(14) {
	case 0, 1:
		return sub() + "|" + sub()
	case 2:
		return "(?>" + sub() + ")" + sub()
	case 3:
		return "(?>" + m.atomOf() + m.pick([]string{"+", "*", "{1,2}", "?"}) + ")" + sub()
	case 4:
		return m.atomOf() + m.pick([]string{"++", "*+", "?+"}) + sub()
	case 5:
		return "(?<![" + m.pick([]string{"a", "ab", "^a", `\d`, `^\w`, `\s`}) + "])" + sub()
	case 6:
		return sub() + "(?![" + m.pick([]string{"a", "ab", "^a", `\d`, `^\w`, `\s`}) + "])"
	case 7:
		return m.pick([]string{`(?=a)`, `(?=[ab]|$)`, `(?!ab)`, `(?!\s|\z)`, `(?<=b)`, `(?<=\A|a)`, `(?=a.*)`, `(?<!\w)`, `(?!1\d)`, `\b`, `^`}) + sub()
	case 8:
		return "(" + sub() + ")" + sub()
	case 9:
		return "(?:" + m.atomOf() + sub() + ")" + m.pick([]string{"+", "*", "?", "{2}", "+?", "*?"}) + m.atomOf()
	case 10:
		return "(?>" + sub() + "|" + sub() + ")" + m.pick([]string{"", "{1,2}"}) + sub()
	default:
		return sub() + sub()
	}
}

func (m maker) atomOf() string {
	return m.pick([]string{"a", "b", "[ab]", "[^a]", ".", `\d`, `\w`, "é", " "})
}

// Look-around and proven atomic groups are those of a backtracking engine.
func TestAgainstRegexp2(t *testing.T) {
	count := *iterations
	if count == 0 {
		count = 3000
	}
	m := maker{rand.New(rand.NewPCG(uint64(count), 2))}
	natives, total := 0, 0
	letters := []string{"a", "b", "c", "1", " ", "é", "\n", "ab", "aa"}
	for range count {
		src := m.ruby(1 + m.r.IntN(4))
		tr, err := translate(src, false)
		if err != nil || tr.plain() {
			continue
		}
		r, err := Compile(src)
		if err != nil || r.native == nil {
			continue
		}
		natives++
		back, err := translate(src, true)
		if err != nil {
			t.Fatal(err)
		}
		re := &Regex{Groups: r.Groups}
		if err := re.useRegexp2(back.text, ""); err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		b := re.Matcher()
		var ms []Matcher
		for _, p := range paths {
			ms = append(ms, newPath(r.native, p))
		}
		got, want := make([]int, 2*(r.Groups+1)), make([]int, 2*(r.Groups+1))
		for range 20 {
			var text strings.Builder
			for range m.r.IntN(9) {
				text.WriteString(m.pick(letters))
			}
			in := []byte(text.String())
			found, err := b.Match(in, want)
			if err != nil {
				continue
			}
			for i, n := range ms {
				ok, err := n.Match(in, got)
				if total++; err != nil || ok != found || ok && !slices.Equal(got, want) {
					t.Errorf("%q on %q, %s: %v %v %v, regexp2 %v %v (%s)", src, in, paths[i], ok, got, err, found, want, back.text)
				}
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d expressions, %d comparisons", natives, total)
	if natives < count/10 {
		t.Errorf("only %d of %d expressions are native", natives, count)
	}
}

// What a gate stands for is in every text that a backtracking expression matches.
func TestBackGate(t *testing.T) {
	for src, text := range map[string]string{`(?=xy)x`: "xy", `(?!abc)ab\d`: "ab1", `(?<q>["'])b\k<q>`: `"b"`, `(?<!foo)bar`: "bar", `(?:(?=ab))?c`: "c", `(?=ab)*x`: "x", `(?>a|ab)c`: "ac"} {
		r, err := Compile(src)
		if err != nil || r.Engine != "regexp2" {
			t.Fatalf("%s: %v %v", src, r, err)
		}
		if ok, err := r.Matcher().Match([]byte(text), nil); !ok || err != nil {
			t.Errorf("%s doesn't match %s: %v", src, text, err)
		}
		if _, err := regexp2.Compile(src, 0); err != nil {
			t.Error(err)
		}
	}
}
