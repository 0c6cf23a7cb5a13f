package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A list gives what trying one after the other gives.
func TestSet(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 8))}
	joined := 0
	for range 400 {
		var list []*Regex
		for range 2 + m.r.IntN(6) {
			src := m.pick([]string{`\A`, `\A`, `^`, `\A(?:`, ``}) + m.expr(1+m.r.IntN(3))
			if src[len(src)-1] == '(' || len(src) > 4 && src[:5] == `\A(?:` {
				src += ")"
			}
			r, err := CompileGo(src)
			if err != nil {
				continue
			}
			list = append(list, r)
		}
		s := NewSet(list)
		joined += s.Joined()
		sm := s.Matcher()
		var got, want [][]int
		var each []Matcher
		for _, r := range list {
			got, want = append(got, make([]int, 2*(r.Groups+1))), append(want, make([]int, 2*(r.Groups+1)))
			each = append(each, r.Matcher())
		}
		for range 20 {
			text := []byte(m.text())
			first := slices.IndexFunc(each, func(e Matcher) bool {
				i := slices.Index(each, e)
				ok, _ := e.Match(text, want[i])
				return ok
			})
			k, err := sm.Match(text, got)
			if k != first || err != nil || k >= 0 && !slices.Equal(got[k], want[k]) {
				var srcs []string
				for _, r := range list {
					srcs = append(srcs, r.Source)
				}
				t.Fatalf("%q on %q: %d %v, want %d", srcs, text, k, err, first)
			}
		}
	}
	if joined < 500 {
		t.Errorf("only %d expressions were joined", joined)
	}
}
