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
	lines  bool    // some of joined may match at later lines as well
}

// NewSet makes a list. Without two expressions that can be taken together, they are tried one after the other.
func NewSet(list []*Regex) *Set {
	s := &Set{list: list}
	var progs []*syntax.Prog
	var marks [][]mark
	for i, r := range list {
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
	s.in, s.single = nil, s.single[:0]
	for i := range list {
		s.single = append(s.single, i)
	}
	return s
}

// Joined is how many of the expressions are told apart in one pass.
func (s *Set) Joined() int { return len(s.in) }

// SetMatcher is one goroutine's matcher of a list.
type SetMatcher struct {
	*Set
	each []Matcher
	dfa  *dfa
	rest int
}

// Matcher makes a matcher for one goroutine.
func (s *Set) Matcher() *SetMatcher {
	m := &SetMatcher{Set: s}
	for _, r := range s.list {
		m.each = append(m.each, r.Matcher())
	}
	return m
}

// Match gives the place in the list of the first expression that matches, -1 where none does, and writes the offsets to its
// element of caps, which are as for Matcher. On an error, the place is that of the expression that gave up.
func (m *SetMatcher) Match(text []byte, caps [][]int) (int, error) {
	may, does := -1, -1
	if m.joined != nil {
		if m.rest > 0 || isHigh(text) && !utf8.Valid(text) || m.lines && bytes.IndexByte(text, '\n') >= 0 {
			m.rest = max(0, m.rest-1)
			return m.oneByOne(text, caps)
		}
		if m.dfa == nil {
			m.dfa = m.joined.newDFA(m.joined.p.start, goalRule, m.joined.budget)
		}
		res, st := m.dfa.match(text, 0)
		switch res {
		case gaveUp:
			m.dfa.reset()
			m.rest = 1000
			return m.oneByOne(text, caps)
		case found:
			if may, does = m.dfa.rules(st); may >= 0 {
				may = m.in[may]
			}
			if does >= 0 {
				does = m.in[does]
			}
		}
	}
	k := 0
	for _, c := range [2]int{may, does} {
		if c < 0 {
			continue
		}
		for ; k < len(m.single) && m.single[k] < c; k++ {
			if ok, err := m.each[m.single[k]].Match(text, caps[m.single[k]]); ok || err != nil {
				return m.single[k], err
			}
		}
		if ok, err := m.each[c].Match(text, caps[c]); ok || err != nil {
			return c, err
		}
	}
	for ; k < len(m.single); k++ {
		if ok, err := m.each[m.single[k]].Match(text, caps[m.single[k]]); ok || err != nil {
			return m.single[k], err
		}
	}
	return -1, nil
}

func (m *SetMatcher) oneByOne(text []byte, caps [][]int) (int, error) {
	for i, e := range m.each {
		if ok, err := e.Match(text, caps[i]); ok || err != nil {
			return i, err
		}
	}
	return -1, nil
}
