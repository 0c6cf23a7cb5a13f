package engine

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// Set is an ordered list of expressions, of which the first that matches counts. Those that can only match at a text's
// beginning are told apart in one pass over as much of the text as that takes. It is immutable.
type Set struct {
	list   []*Regex
	joined *native // of those in one; may be nil
	in     []int   // by rule of joined: the place in the list
	single []int   // the other places
	all    []int   // all places
	lines  bool    // some of joined may match at later lines as well
}

// NewSet makes a list. Without two expressions that can be taken together, they are tried one after the other.
func NewSet(list []*Regex) *Set {
	s := &Set{list: list}
	var progs []*syntax.Prog
	var marks [][]mark
	for i, r := range list {
		s.all = append(s.all, i)
		if n := r.native; n != nil && (n.onlyStart || n.onlyLine) {
			if p, m, err := r.again(); err == nil {
				progs, marks = append(progs, p), append(marks, m)
				s.in = append(s.in, i)
				s.lines = s.lines || !n.onlyStart
				continue
			}
		}
		s.single = append(s.single, i)
	}
	if len(progs) > 1 {
		if p, err := newProg(progs, marks); err == nil {
			p.skipNops()
			s.joined = &native{p: p, budget: DefaultBudget}
			return s
		}
	}
	s.in, s.single = nil, s.all
	return s
}

// Joined is how many of the expressions are told apart in one pass.
func (s *Set) Joined() int { return len(s.in) }

// SetMatcher is one goroutine's matcher of a list.
type SetMatcher struct {
	*Set
	each    []Matcher
	natives []*matcher // beside each; nil for other engines
	dfa     *dfa
	rest    int
}

// Matcher makes a matcher for one goroutine.
func (s *Set) Matcher() *SetMatcher {
	m := &SetMatcher{Set: s}
	for _, r := range s.list {
		e := r.Matcher()
		n, _ := e.(*matcher)
		m.each, m.natives = append(m.each, e), append(m.natives, n)
	}
	return m
}

// Match gives the place in the list of the first expression that matches, -1 where none does, and writes the offsets to its
// element of caps, which are as for Matcher. On an error, the place is that of the expression that gave up.
func (m *SetMatcher) Match(text []byte, caps [][]int) (int, error) {
	clean := !isHigh(text) || utf8.Valid(text)
	if len(m.each) == 1 {
		if ok, err := m.likely(0, text, caps, clean); ok || err != nil {
			return 0, err
		}
		return -1, nil
	}
	may, does := -1, -1
	single := m.single
	switch {
	case m.joined == nil:
	case m.rest > 0 || !clean || m.lines && bytes.IndexByte(text, '\n') >= 0:
		m.rest = max(0, m.rest-1)
		single = m.all
	default:
		if m.dfa == nil {
			m.dfa = m.joined.newDFA(m.joined.p.start, goalRule, m.joined.budget)
		}
		switch res, st := m.dfa.match(text, 0); res {
		case gaveUp:
			m.dfa.reset()
			m.rest = 1000
			single = m.all
		case found:
			may, does = m.dfa.rules(st)
		}
	}
	k := 0
	for _, c := range [2]int{may, does} {
		if c < 0 {
			continue
		}
		c = m.in[c]
		for ; k < len(single) && single[k] < c; k++ {
			if ok, err := m.unlikely(single[k], text, caps, clean); ok || err != nil {
				return single[k], err
			}
		}
		if ok, err := m.likely(c, text, caps, clean); ok || err != nil {
			return c, err
		}
	}
	for ; k < len(single); k++ {
		if ok, err := m.unlikely(single[k], text, caps, clean); ok || err != nil {
			return single[k], err
		}
	}
	return -1, nil
}

func (m *SetMatcher) likely(k int, text []byte, caps [][]int, clean bool) (bool, error) {
	if n := m.natives[k]; n != nil && clean {
		if len(text) > 0 && !n.first[text[0]] && n.lacks(text) {
			return false, nil
		}
		return n.answer(n.match(text, 0, caps[k]))
	}
	return m.each[k].Match(text, caps[k])
}

// unlikely looks for what the text must have first.
func (m *SetMatcher) unlikely(k int, text []byte, caps [][]int, clean bool) (bool, error) {
	if n := m.natives[k]; n != nil && n.gate != nil && !n.gate.Contains(text) {
		return false, nil
	}
	return m.likely(k, text, caps, clean)
}
