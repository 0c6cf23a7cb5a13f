package engine

// nfa runs a program as Go's regexp does its own: all threads at once, by priority. It needs no cache: it answers where the
// automaton's budget is spent. It is for one goroutine.
type nfa struct {
	p         *prog
	run, next threads
	spare     [][]int
	work      int                         // instructions of this match
	tired     bool                        // they were too many
	watch     func(at int, list []thread) // of the threads that have read what is before a place; may be nil
}

type threads struct {
	seen []uint32 // by instruction: the generation in which it was added
	gen  uint32
	list []thread
}

type thread struct {
	pc   int32
	caps []int
}

func newNFA(p *prog) *nfa {
	m := &nfa{p: p}
	m.run.seen = make([]uint32, len(p.insts))
	m.next.seen = make([]uint32, len(p.insts))
	return m
}

func (t *threads) clear() {
	t.list = t.list[:0]
	if t.gen++; t.gen == 0 {
		clear(t.seen)
		t.gen = 1
	}
}

// maxWork bounds the simulation of one text: instructions, a second's or two. It takes an expression of thousands of
// threads and a text of tens of thousands of bytes to get there. Tests lower it.
var maxWork = 150_000_000

// match finds the leftmost match at `from` or behind it, or with pinned the one at `from`. caps may have no place, or those
// of all groups. rule is what matched, -1 for nothing.
func (m *nfa) match(text []byte, from int, pinned bool, caps []int) (rule int) {
	p := m.p
	m.run.clear()
	m.work, m.tired = 0, false
	rule = -1
	n := len(caps)
	got := m.alloc(n)
	tmp := m.alloc(n)
	defer func() {
		for _, t := range m.run.list {
			m.free(t.caps)
		}
		m.run.list = m.run.list[:0]
		m.free(got)
		m.free(tmp)
	}()
	for i := from; ; i++ {
		cls := p.classes
		if i < len(text) {
			cls = int(p.class[text[i]])
		}
		if m.work > maxWork {
			m.tired = true
			return -1
		}
		kind := p.kindAt(text, i)
		if rule < 0 && (i == from || !pinned) && (i == len(text) || text[i]&0xc0 != 0x80 || i == from) {
			c := m.alloc(n)
			for k := range c {
				c[k] = -1
			}
			if n > 0 {
				c[0] = i
			}
			m.run.list = append(m.run.list, thread{p.start, c})
		}
		if len(m.run.list) == 0 && (rule >= 0 || pinned) {
			break
		}
		m.next.clear()
		// run.seen is the closure's: instructions reached from this place.
		if m.run.gen++; m.run.gen == 0 {
			clear(m.run.seen)
			m.run.gen = 1
		}
		for k, t := range m.run.list {
			copy(tmp, t.caps)
			r := m.add(t.pc, i, cls, int(kind)*(p.classes+1)+cls, tmp)
			m.free(t.caps)
			if r >= 0 {
				rule = r
				copy(got, tmp)
				for _, t := range m.run.list[k+1:] {
					m.free(t.caps)
				}
				break
			}
		}
		m.run.list = m.run.list[:0]
		m.run.list, m.next.list = m.next.list, m.run.list
		if i >= len(text) {
			break
		}
		if m.watch != nil {
			m.watch(i+1, m.run.list)
		}
	}
	if rule >= 0 {
		copy(caps, got)
	}
	return rule
}

// add follows pc up to the instructions that read the byte behind place i, of class cls, and adds what comes after them
// to next. It gives the rule where a match ends here; its offsets are in caps then.
func (m *nfa) add(pc int32, i, cls, look int, caps []int) int {
	p := m.p
	for {
		if m.run.seen[pc] == m.run.gen {
			return -1
		}
		m.run.seen[pc] = m.run.gen
		m.work++
		in := &p.insts[pc]
		switch in.op {
		case opFail:
			return -1
		case opNop:
			pc = in.out
		case opSplit:
			if r := m.add(in.out, i, cls, look, caps); r >= 0 {
				return r
			}
			pc = in.arg
		case opCapture:
			if int(in.arg) >= len(caps) {
				pc = in.out
				continue
			}
			old := caps[in.arg]
			caps[in.arg] = i
			r := m.add(in.out, i, cls, look, caps)
			if r < 0 {
				caps[in.arg] = old
			}
			return r
		case opAssert:
			if !p.asserts[in.arg].ok[look] {
				return -1
			}
			pc = in.out
		case opMatch:
			if len(caps) > 1 {
				caps[1] = i
			}
			return int(in.arg)
		case opBytes:
			for _, e := range in.edges {
				if p.bySet[e.set][cls] {
					if m.next.seen[e.out] != m.next.gen {
						m.next.seen[e.out] = m.next.gen
						c := m.alloc(len(caps))
						copy(c, caps)
						m.next.list = append(m.next.list, thread{e.out, c})
					}
					return -1
				}
			}
			return -1
		}
	}
}

func (m *nfa) alloc(n int) []int {
	if n == 0 {
		return nil
	}
	if k := len(m.spare); k > 0 && cap(m.spare[k-1]) >= n {
		c := m.spare[k-1][:n]
		m.spare = m.spare[:k-1]
		return c
	}
	return make([]int, n)
}

func (m *nfa) free(c []int) {
	if c != nil {
		m.spare = append(m.spare, c)
	}
}
