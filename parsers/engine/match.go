package engine

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/rsetl/rsetl/internal/find"
)

// native is an expression that this package's own automaton runs.
type native struct {
	p         *prog
	gate      *find.Finder // a text without which there is no match; may be nil
	gateText  string
	prefix    *find.Finder // what each match begins with; may be nil
	onlyStart bool         // a match begins at the text's beginning
	onlyLine  bool         // at that of a line
	first     [256]bool    // by a text's first byte: a match may begin there; true beyond ASCII
	budget    int
	toEnd     []int // groups that end where the text does
	eager     bool
}

// DefaultBudget bounds the memory of one matcher's automatons, in bytes.
const DefaultBudget = 2 << 20

// compileNative makes the program of an expression. unproven is what atomic group isn't harmless, if any.
func compileNative(re *syntax.Regexp, marks []mark) (n *native, unproven string, err error) {
	if size(re) > maxInsts {
		return nil, "", errBig
	}
	gate := required(re)
	sp, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, "", err
	}
	p, err := newProg([]*syntax.Prog{sp}, [][]mark{marks})
	if err != nil {
		return nil, "", err
	}
	if u := p.unproven(); u != "" {
		return nil, u, nil
	}
	p.skipNops()
	n = &native{p: p, budget: DefaultBudget, gateText: gate}
	if gate != "" {
		n.gate = find.New([]byte(gate))
	}
	if prefix, _ := sp.Prefix(); len(prefix) > 1 {
		n.prefix = find.New([]byte(prefix))
	}
	n.onlyStart, n.onlyLine = p.places()
	for c := range n.first {
		n.first[c] = c >= utf8.RuneSelf || p.begins(int(p.kindOf[p.classes]), int(p.class[c]))
	}
	for _, m := range marks {
		if m.toEnd {
			n.toEnd = append(n.toEnd, m.group)
		}
	}
	return n, "", nil
}

// size is about how many instructions an expression becomes; at most a little more than maxInsts.
func size(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += size(sub); n > maxInsts {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxInsts+1)
}

// places tells whether a match can only begin at the text's beginning, or there and at that of a line.
func (p *prog) places() (onlyStart, onlyLine bool) {
	onlyStart, onlyLine = true, true
	can := make([]bool, p.kinds)
	for k := range can {
		can[k] = p.canBegin(k)
	}
	for c := range 256 {
		if can[p.kindOf[p.class[c]]] {
			onlyStart = false
			onlyLine = onlyLine && c == '\n'
		}
	}
	return
}

// begins tells whether a match can begin behind a byte of that kind and before one of that class.
func (p *prog) begins(kind, class int) bool {
	seen := map[int32]bool{}
	var walk func(pc int32) bool
	walk = func(pc int32) bool {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		in := &p.insts[pc]
		switch in.op {
		case opSplit:
			return walk(in.out) || walk(in.arg)
		case opNop, opCapture:
			return walk(in.out)
		case opAssert:
			return p.asserts[in.arg].ok[kind*(p.classes+1)+class] && walk(in.out)
		case opBytes:
			for _, e := range in.edges {
				if p.bySet[e.set][class] {
					return true
				}
			}
		case opMatch:
			return true
		}
		return false
	}
	return walk(p.start)
}

func (p *prog) canBegin(kind int) bool {
	seen := make([]bool, len(p.insts))
	var walk func(pc int32) bool
	walk = func(pc int32) bool {
		if seen[pc] {
			return false
		}
		seen[pc] = true
		in := &p.insts[pc]
		switch in.op {
		case opSplit:
			return walk(in.out) || walk(in.arg)
		case opNop, opCapture:
			return walk(in.out)
		case opAssert:
			for c := range p.classes + 1 {
				if p.asserts[in.arg].ok[kind*(p.classes+1)+c] {
					return walk(in.out)
				}
			}
			return false
		case opBytes, opMatch:
			return true
		}
		return false
	}
	return walk(p.start)
}

// matcher is one goroutine's matcher of a native expression.
type matcher struct {
	*native
	all, start, any *dfa
	nfa             *nfa
	rest            int // matches left that the NFA simulation answers
	gaveUps         int
	tired           bool   // the simulation gave up
	clean           []byte // a text made UTF-8
	offs            []int
}

func (n *native) matcher() *matcher { return &matcher{native: n} }

func (m *matcher) Match(text []byte, caps []int) (bool, error) {
	// Most texts of another kind are known by their first byte, and by what they lack.
	if len(text) > 0 && !m.first[text[0]] && m.lacks(text) {
		return false, nil
	}
	if isHigh(text) && !utf8.Valid(text) {
		m.tidy(text)
		ok := m.match(m.clean, 0, caps)
		if ok {
			m.untidy(caps)
		}
		m.forget()
		return m.answer(ok)
	}
	return m.answer(m.match(text, 0, caps))
}

func (m *matcher) answer(ok bool) (bool, error) {
	if m.tired {
		m.tired = false
		return false, ErrWork
	}
	return ok, nil
}

// lacks tells whether a text that doesn't match at its beginning is known not to match elsewhere.
func (n *native) lacks(text []byte) bool {
	return n.onlyStart || n.onlyLine && bytes.IndexByte(text, '\n') < 0 || n.gate != nil && !n.gate.Contains(text)
}

func (m *matcher) Each(text []byte, caps []int, f func() bool) error {
	if !isHigh(text) || utf8.Valid(text) {
		m.each(text, caps, f)
		_, err := m.answer(true)
		return err
	}
	m.tidy(text)
	m.each(m.clean, caps, func() bool {
		m.untidy(caps)
		return f()
	})
	m.forget()
	_, err := m.answer(true)
	return err
}

// each follows Go's rule: an empty match right behind another doesn't count.
func (m *matcher) each(text []byte, caps []int, f func() bool) {
	for at, last := 0, -1; at <= len(text) && m.match(text, at, caps); {
		from, to := caps[0], caps[1]
		ok := true
		if to == at {
			ok = from != last
			_, n := utf8.DecodeRune(text[at:])
			at += max(n, 1)
		} else {
			at = to
		}
		last = to
		if ok && !f() {
			return
		}
	}
}

// isHigh tells whether there are bytes beyond ASCII.
func isHigh(text []byte) bool {
	if hasRun && len(text) >= 32 {
		return high(text)
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// maxClean bounds the memory that is kept for texts that are no UTF-8.
const maxClean = 1 << 16

// tidy makes m.clean the text with each byte that is no UTF-8 made U+FFFD, as Go's regexp reads it.
func (m *matcher) tidy(text []byte) {
	m.clean, m.offs = m.clean[:0], m.offs[:0]
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		w := len(m.clean)
		m.clean = utf8.AppendRune(m.clean, r)
		for k := range len(m.clean) - w {
			m.offs = append(m.offs, i+min(k, n))
		}
		i += n
	}
	m.offs = append(m.offs, len(text))
}

// untidy makes offsets in m.clean those of the text.
func (m *matcher) untidy(caps []int) {
	for i, c := range caps {
		if c >= 0 {
			caps[i] = m.offs[c]
		}
	}
}

func (m *matcher) forget() {
	if cap(m.clean) > maxClean {
		m.clean, m.offs = nil, nil
	}
}

// gateFirst is the length from which a text is looked through for what it must have before anything else is tried.
const gateFirst = 1 << 10

// prefixTries bounds how often a text is tried from a place where it only begins as a match does.
const prefixTries = 8

// match finds the leftmost match that begins at `at` or behind it.
func (m *matcher) match(text []byte, at int, caps []int) bool {
	ok := m.find(text, at, caps)
	if ok && m.toEnd != nil && len(caps) > 0 {
		for _, g := range m.toEnd {
			if caps[2*g] >= 0 {
				caps[2*g+1] = len(text)
			}
		}
	}
	return ok
}

func (m *matcher) find(text []byte, at int, caps []int) bool {
	if (m.rest > 0 || len(text)-at > gateFirst) && m.gate != nil && !m.gate.Contains(text[at:]) {
		return false
	}
	if m.rest > 0 {
		m.rest--
		return m.simulate(text, at, false, caps)
	}
	if len(caps) == 0 {
		return m.probe(text, at)
	}
	if m.all == nil {
		m.all = m.newDFA(m.p.start, goalAll, m.budget)
	}
	// Most texts match from their beginning, and a match there is the leftmost one.
	switch res, st := m.all.match(text, at); res {
	case found:
		caps[0] = at
		m.all.offsets(st, caps)
		return true
	case gaveUp:
		m.spent(m.all)
		if m.gate != nil && !m.gate.Contains(text[at:]) {
			return false
		}
		return m.simulate(text, at, m.onlyStart, caps)
	}
	if m.onlyStart || m.onlyLine && bytes.IndexByte(text[at:], '\n') < 0 {
		return false
	}
	if m.prefix != nil {
		// Where it begins as a match does, there mostly is one.
		for range prefixTries {
			if at >= len(text) {
				return false
			}
			k := m.prefix.Index(text[at+1:])
			if k < 0 {
				return false
			}
			at += k + 1
			switch res, st := m.all.match(text, at); res {
			case found:
				caps[0] = at
				m.all.offsets(st, caps)
				return true
			case gaveUp:
				m.spent(m.all)
				return m.simulate(text, at, false, caps)
			}
		}
	}
	if !m.probe(text, at) {
		return false
	}
	if m.rest > 0 {
		return m.simulate(text, at, false, caps)
	}
	if m.start == nil {
		m.start = m.newDFA(m.p.search, goalStart, m.budget/4)
	}
	res, st := m.start.match(text, at)
	if res == missed {
		return false
	}
	if res == gaveUp {
		m.spent(m.start)
		return m.simulate(text, at, false, caps)
	}
	from := m.start.from(st)
	res, st = m.all.match(text, from)
	if res == gaveUp {
		m.spent(m.all)
		return m.simulate(text, from, true, caps)
	}
	caps[0] = from
	m.all.offsets(st, caps)
	return true
}

// probe tells whether there is such a match.
func (m *matcher) probe(text []byte, at int) bool {
	if m.gate != nil && !m.gate.Contains(text[at:]) {
		return false
	}
	if m.any == nil {
		entry := m.p.search
		if m.onlyStart {
			entry = m.p.start
		}
		m.any = m.newDFA(entry, goalAny, m.budget/4)
	}
	switch res, _ := m.any.match(text, at); res {
	case found:
		return true
	case gaveUp:
		m.spent(m.any)
		return m.simulate(text, at, m.onlyStart, nil)
	}
	return false
}

// spent notes that an automaton gave up: the next texts, ever more of them, go to the simulation at once.
func (m *matcher) spent(d *dfa) {
	d.reset()
	m.rest = 1 << min(m.gaveUps, 10)
	m.gaveUps++
}

func (m *matcher) simulate(text []byte, from int, pinned bool, caps []int) bool {
	if m.nfa == nil {
		m.nfa = newNFA(m.p)
	}
	ok := m.nfa.match(text, from, pinned, caps) >= 0
	m.tired = m.tired || m.nfa.tired
	return ok
}
