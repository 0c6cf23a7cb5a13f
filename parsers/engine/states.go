package engine

import "slices"

// begin gives the state at a place whose byte before is of that kind.
func (d *dfa) begin(kind uint8) int32 {
	if !d.p.prevs[d.entry] {
		kind = 0
	}
	if s := d.begins[kind]; s >= 0 {
		return s
	}
	d.cfgs = append(d.cfgs[:0], cfg{d.entry})
	d.vers = d.vers[:0]
	for range d.slots {
		d.vers = append(d.vers, 0)
	}
	d.makeKey(kind)
	s := d.newState(kind)
	d.begins[kind] = s
	return s
}

func (d *dfa) makeKey(kind uint8) {
	k := append(d.key[:0], kind)
	for _, c := range d.cfgs {
		k = append(k, byte(c.pc), byte(c.pc>>8), byte(c.pc>>16), byte(c.pc>>24))
	}
	d.key = append(k, d.vers...)
}

func (d *dfa) newState(kind uint8) int32 {
	n := int32(len(d.states))
	st := state{cfgs: slices.Clone(d.cfgs), vers: slices.Clone(d.vers), kind: kind}
	st.final = d.isFinal(&st)
	if k := len(st.cfgs); k > 0 && st.cfgs[k-1].pc < 0 {
		for t, v := range st.vers[len(st.vers)-len(d.slots):] {
			st.regs = append(st.regs, uint16(int(v)*len(d.slots)+t))
		}
	}
	d.states = append(d.states, st)
	d.skips = append(d.skips, skip{})
	for range d.classes {
		d.table = append(d.table, unknown)
	}
	shape := string(d.key[:len(d.key)-len(d.vers)])
	d.shapes[shape] = append(d.shapes[shape], n)
	d.charge(int(d.classes)*4 + len(st.cfgs)*4 + len(st.vers) + len(d.key) + 200)
	return n
}

// isFinal: no thread is left that could change what is asked for.
func (d *dfa) isFinal(s *state) bool {
	n := len(s.cfgs)
	if d.goal == goalRule {
		for _, c := range s.cfgs[1:] {
			if c.pc >= 0 && d.p.ruleOf[c.pc] != d.p.ruleOf[max(0, s.cfgs[0].pc)] {
				return false
			}
		}
		return d.p.ruleOf[max(0, s.cfgs[0].pc)] >= 0
	}
	if n == 0 || s.cfgs[n-1].pc >= 0 {
		return false
	}
	switch d.goal {
	case goalAny:
		return true
	case goalStart:
		for _, v := range s.vers[1:] {
			if v != s.vers[0] {
				return false
			}
		}
		return true
	}
	return n == 1
}

// step makes what leads from state s on class cls, and gives what the table holds for it. ok is false where the budget is
// spent.
func (d *dfa) step(s int32, cls int) (t uint32, ok bool) {
	p := d.p
	st := &d.states[s]
	nt := len(d.slots)
	if d.gen++; d.gen == 0 {
		clear(d.seen)
		clear(d.seenOut)
		d.gen = 1
	}
	d.cfgs, d.vers = d.cfgs[:0], d.vers[:0]
	look := int(st.kind)*(p.classes+1) + cls
	for k, c := range st.cfgs {
		copy(d.work, st.vers[k*nt:(k+1)*nt])
		if c.pc < 0 {
			d.cfgs = append(d.cfgs, c)
			d.vers = append(d.vers, d.work...)
			break
		}
		if d.add(c.pc, cls, look) {
			break
		}
	}
	at := uint32(s)*d.classes + uint32(cls)
	if len(d.cfgs) == 0 {
		d.table[at] = dead
		return dead, true
	}
	kind := uint8(0)
	if cls < p.classes {
		for _, c := range d.cfgs {
			if c.pc >= 0 && p.prevs[c.pc] {
				kind = p.kindOf[cls]
				break
			}
		}
	}
	next, m, ok := d.intern(kind)
	if !ok {
		return 0, false
	}
	t = uint32(next) * d.classes
	if final := d.states[next].final; len(m.sets) > 0 || len(m.copies) > 0 || final {
		t = d.moveID(t, m, final)
	}
	d.table[at] = t
	return t, true
}

func (d *dfa) moveID(next uint32, m more, final bool) uint32 {
	slices.Sort(m.sets)
	k := make([]byte, 0, 8+2*len(m.sets)+2*len(m.copies))
	k = append(k, byte(next), byte(next>>8), byte(next>>16), byte(next>>24), byte(len(m.sets)), byte(len(m.sets)>>8))
	for _, v := range m.sets {
		k = append(k, byte(v), byte(v>>8))
	}
	for _, v := range m.copies {
		k = append(k, byte(v), byte(v>>8))
	}
	if id, ok := d.same[string(k)]; ok {
		return id
	}
	mv := move{next: next, n: uint8(min(len(m.sets), fewSets))}
	copy(mv.sets[:], m.sets)
	if len(m.copies) > 0 || len(m.sets) > fewSets {
		mv.kind = moveMore
	}
	if final {
		mv.kind = moveStop
	}
	id := isMove | uint32(len(d.moves))
	d.moves = append(d.moves, mv)
	d.mores = append(d.mores, m)
	d.same[string(k)] = id
	d.charge(128 + 2*len(k))
	return id
}

// intern finds, or makes, the state of d.cfgs and d.vers, and the registers that are set on the way.
func (d *dfa) intern(kind uint8) (next int32, m more, ok bool) {
	nt := len(d.slots)
	n := len(d.cfgs)
	// Which versions live on, by tag.
	var fresh []int
	for t := range nt {
		for k := range n {
			if d.vers[k*nt+t] == newVer {
				fresh = append(fresh, t)
				break
			}
		}
	}
	d.makeKey(kind)
	same := d.shapes[string(d.key[:len(d.key)-len(d.vers)])]
	// A state whose old versions are these and whose new ones nothing else holds.
	for _, s := range same {
		if sets, ok := d.fits(&d.states[s], fresh); ok {
			return s, more{sets: sets}, true
		}
	}
	if len(same) >= maxVariant {
		for _, s := range same {
			if m, ok := d.renames(&d.states[s]); ok {
				return s, m, true
			}
		}
	}
	for _, t := range fresh {
		var used [manyVers + 1]bool
		for k := range n {
			if v := d.vers[k*nt+t]; v != newVer {
				used[v] = true
			}
		}
		v := slices.Index(used[:], false)
		if v < 0 || v >= d.maxVers {
			return 0, m, false
		}
		for k := range n {
			if d.vers[k*nt+t] == newVer {
				d.vers[k*nt+t] = uint8(v)
			}
		}
		m.sets = append(m.sets, uint16(v*nt+t))
	}
	if d.used > d.budget || d.used > leastBudget && cached.Load() > MaxTotal {
		return 0, m, false
	}
	d.makeKey(kind)
	return d.newState(kind), m, true
}

func (d *dfa) fits(st *state, fresh []int) (sets []uint16, ok bool) {
	nt := len(d.slots)
	for i, v := range d.vers {
		if v != newVer && st.vers[i] != v {
			return nil, false
		}
	}
	for _, t := range fresh {
		to := -1
		for i := t; i < len(d.vers); i += nt {
			if d.vers[i] == newVer {
				if to >= 0 && int(st.vers[i]) != to {
					return nil, false
				}
				to = int(st.vers[i])
			}
		}
		for i := t; i < len(d.vers); i += nt {
			if d.vers[i] != newVer && int(st.vers[i]) == to {
				return nil, false
			}
		}
		sets = append(sets, uint16(to*nt+t))
	}
	return sets, true
}

// renames finds the copies that make the registers those of the state.
func (d *dfa) renames(st *state) (m more, ok bool) {
	nt := len(d.slots)
	for t := range nt {
		var to [256]int16
		var from [256]int16
		for i := range to {
			to[i], from[i] = -1, -1
		}
		for i := t; i < len(d.vers); i += nt {
			a, b := d.vers[i], st.vers[i]
			if to[a] < 0 && from[b] < 0 {
				to[a], from[b] = int16(b), int16(a)
				switch {
				case a == newVer:
					m.sets = append(m.sets, uint16(int(b)*nt+t))
				case a != b:
					m.copies = append(m.copies, uint16(int(b)*nt+t), uint16(int(a)*nt+t))
				}
			} else if to[a] != int16(b) || from[b] != int16(a) {
				return m, false
			}
		}
	}
	return m, true
}

// add follows pc up to the instructions that read a byte of class cls. It gives true where a match ends here: nothing
// after it counts.
func (d *dfa) add(pc int32, cls, look int) bool {
	p := d.p
	for {
		if d.seen[pc] == d.gen {
			return false
		}
		d.seen[pc] = d.gen
		in := &p.insts[pc]
		switch in.op {
		case opFail:
			return false
		case opNop:
			pc = in.out
		case opSplit:
			if pc == p.search && d.entry == p.search {
				// Every place may be the beginning, the earlier ones first.
				if d.goal == goalStart {
					old := d.work[0]
					d.work[0] = newVer
					if d.add(in.out, cls, look) {
						return true
					}
					d.work[0] = old
				} else if d.add(in.out, cls, look) {
					return true
				}
				pc = in.arg
				continue
			}
			if d.add(in.out, cls, look) {
				return true
			}
			pc = in.arg
		case opCapture:
			t := d.tagOf[in.arg]
			if t < 0 {
				pc = in.out
				continue
			}
			old := d.work[t]
			d.work[t] = newVer
			r := d.add(in.out, cls, look)
			d.work[t] = old
			return r
		case opAssert:
			if !p.asserts[in.arg].ok[look] {
				return false
			}
			pc = in.out
		case opMatch:
			d.cfgs = append(d.cfgs, cfg{-1 - in.arg})
			d.vers = append(d.vers, d.work...)
			if d.endAt >= 0 {
				d.vers[len(d.vers)-len(d.work)+d.endAt] = newVer
			}
			return true
		case opBytes:
			for _, e := range in.edges {
				if p.bySet[e.set][cls] {
					if d.seenOut[e.out] != d.gen {
						d.seenOut[e.out] = d.gen
						d.cfgs = append(d.cfgs, cfg{e.out})
						d.vers = append(d.vers, d.work...)
					}
					return false
				}
			}
			return false
		}
	}
}
