package engine

import (
	"fmt"
	"strings"
)

// Partial is how far a text came that doesn't match: the longest piece of it that is the beginning of a match.
type Partial struct {
	From, To int
	Caps     []int  // offsets as of a match; of a group that had begun only, the end is -1
	Wants    string // what could have come at To, as a class of bytes: `[0-9.]`; with `$` where the text could have ended
}

// Partial looks for the longest beginning of a match, the first of several. ok is false where the text matches, where no
// byte of it begins a match, and for expressions that the native engine doesn't run. It is slow: for messages, not for records.
func (r *Regex) Partial(text []byte) (p Partial, ok bool) {
	if r.native == nil {
		return p, false
	}
	m := r.native.matcher()
	in := text
	if isHigh(text) {
		m.tidy(text)
		in = m.clean
	}
	s := newNFA(r.native.p)
	var pcs []int32
	s.watch = func(at int, list []thread) {
		if len(list) == 0 || at-list[0].caps[0] <= p.To-p.From {
			return
		}
		p.From, p.To = list[0].caps[0], at
		p.Caps = append(p.Caps[:0], list[0].caps...)
		pcs = pcs[:0]
		for _, t := range list {
			if t.caps[0] == p.From {
				pcs = append(pcs, t.pc)
			}
		}
	}
	caps := make([]int, 2*(r.Groups+1))
	if s.match(in, 0, false, caps) >= 0 || len(pcs) == 0 {
		return Partial{}, false
	}
	p.Wants = s.wants(in, p.To, pcs)
	if isHigh(text) {
		at := []int{p.From, p.To}
		m.untidy(at)
		m.untidy(p.Caps)
		p.From, p.To = at[0], at[1]
	}
	return p, true
}

// wants gives the bytes that threads at a place could read.
func (m *nfa) wants(text []byte, at int, pcs []int32) string {
	p := m.p
	var want set257
	kind := int(p.kindAt(text, at)) * (p.classes + 1)
	for c := range p.classes + 1 {
		m.next.clear()
		if m.run.gen++; m.run.gen == 0 {
			clear(m.run.seen)
			m.run.gen = 1
		}
		can := false
		for _, pc := range pcs {
			can = m.add(pc, at, c, kind+c, nil) >= 0 || can
		}
		if !can && len(m.next.list) == 0 {
			continue
		}
		if c == p.classes {
			want.add(edgeOfText)
		}
		for b := range 256 {
			if int(p.class[b]) == c {
				want.add(b)
			}
		}
	}
	m.next.clear()
	return want.String()
}

// String writes the set as a class.
func (s set257) String() string {
	char := func(c int) string {
		switch {
		case c >= 0x80:
			return `\u{80}-`
		case c == ']' || c == '\\' || c == '^' || c == '-':
			return `\` + string(rune(c))
		case c < ' ' || c == 0x7f:
			q := fmt.Sprintf("%q", rune(c))
			return q[1 : len(q)-1]
		}
		return string(rune(c))
	}
	var b strings.Builder
	n, last := 0, 0
	for c := 0; c < 0x80; c++ {
		if !s.has(c) {
			continue
		}
		from := c
		for c+1 < 0x80 && s.has(c+1) {
			c++
		}
		n, last = n+c-from+1, c
		b.WriteString(char(from))
		if c > from+1 {
			b.WriteByte('-')
		}
		if c > from {
			b.WriteString(char(c))
		}
	}
	high := s.has(0xc3) || s.has(0xe4)
	if high {
		b.WriteString("…")
	}
	out := "[" + b.String() + "]"
	switch {
	case n == 0x80 && high:
		out = "."
	case n == 1 && !high:
		out = fmt.Sprintf("%q", string(rune(last)))
	case n == 0 && !high:
		out = ""
	}
	if s.has(edgeOfText) {
		if out != "" {
			out += " or "
		}
		out += "the end"
	}
	return out
}

// Stats are figures of a compiled expression and of what one matcher has made of it.
type Stats struct {
	Instructions int    // of the program
	Classes      int    // kinds of bytes that it tells apart
	Literal      string // a text without which there is no match
	States       int    // of the matcher's automatons
	Bytes        int    // that they take
	Flushes      int    // how often they were full
	Fallbacks    int    // how often the simulation took over
}

// StatsOf gives the figures of a native expression's matcher; those of others are 0.
func StatsOf(r Matcher) (s Stats) {
	m, ok := r.(*matcher)
	if !ok {
		return s
	}
	s = Stats{Instructions: len(m.p.insts), Classes: m.p.classes, Literal: m.gateText, Fallbacks: m.gaveUps}
	for _, d := range []*dfa{m.all, m.start, m.any} {
		if d != nil {
			s.States += len(d.states)
			s.Bytes += d.used + 8*len(d.regs) + 8*len(d.seen)
			s.Flushes += d.flushes - 1
		}
	}
	return s
}
