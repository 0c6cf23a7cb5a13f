package expr

import (
	"math/rand/v2"
	"testing"
)

// naiveLike is LIKE by its definition.
func naiveLike(s, p []rune) bool {
	if len(p) == 0 {
		return len(s) == 0
	}
	switch p[0] {
	case '%':
		for i := 0; i <= len(s); i++ {
			if naiveLike(s[i:], p[1:]) {
				return true
			}
		}
		return false
	case '_':
		return len(s) > 0 && naiveLike(s[1:], p[1:])
	case '!':
		if len(p) > 1 {
			return len(s) > 0 && s[0] == p[1] && naiveLike(s[1:], p[2:])
		}
	}
	return len(s) > 0 && s[0] == p[0] && naiveLike(s[1:], p[1:])
}

func TestLikeAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(set []rune, n int) []rune {
		out := make([]rune, r.IntN(n))
		for i := range out {
			out[i] = set[r.IntN(len(set))]
		}
		return out
	}
	hits := 0
	for range 200000 {
		s := pick([]rune("abé%"), 9)
		p := pick([]rune("abé%%%_!"), 7)
		l, err := parseLike([]byte(string(p)), '!')
		if err != nil {
			continue
		}
		want := naiveLike(s, p)
		if got := l.match([]byte(string(s))); got != want {
			t.Fatalf("%q LIKE %q: got %v, want %v", string(s), string(p), got, want)
		}
		if want {
			hits++
		}
	}
	if hits < 1000 {
		t.Errorf("only %d matches: the test says little", hits)
	}
}
