package engine

// A trace is the way that some text took through the automaton, as a list of expectations. Following it, the next state is
// known before the table has been asked: what the table says is only compared, so that bytes don't wait for each other.
// Where the table says otherwise, the trace is left for the usual way, in the same state; so it changes no answer.
type traced struct {
	s, t   uint32 // in state s the table is expected to say t
	kind   traceKind
	long   bool      // of a run: it was long
	sets   [2]uint16 // registers that take the place; the last register of all takes it for nothing
	missed uint16    // how often it was otherwise
	born   uint32    // how many matches there had been when it was recorded
}

type traceKind uint8

const (
	traceByte traceKind = iota // one byte
	traceSets                  // one byte, and registers take the place
	traceEnd                   // leave
	traceMany                  // one byte, and all registers of the move take the place
	traceRun                   // any number of bytes that all lead from s back to it
)

const (
	maxTraces = 12
	maxTraced = 4000 // in one trace
	// coldTraces is how many matches must have met places where no trace begins, for one of them to be recorded.
	coldTraces = 48
)

// follow follows a trace from its part k on. It gives the place and the state where it was left.
func (d *dfa) follow(text []byte, i int, k uint32) (int, uint32) {
	table, regs, class := d.table, d.regs, &d.p.class
	parts := d.traces[k:]
	for n := 0; ; n++ {
		// Nothing is called in here.
		var o *traced
		for {
			o = &parts[n]
			if o.kind > traceSets {
				break
			}
			if uint(i) >= uint(len(text)) {
				return i, o.s
			}
			if table[o.s+uint32(class[text[i]])] != o.t {
				d.strayed(o)
				return i, o.s
			}
			i++
			if o.kind == traceSets {
				regs[o.sets[0]] = i
				regs[o.sets[1]] = i
			}
			n++
		}
		if o.kind == traceEnd {
			return i, o.s
		}
		if o.kind == traceMany {
			if i >= len(text) || table[o.s+uint32(class[text[i]])] != o.t {
				return i, o.s
			}
			d.apply(&d.mores[o.t&^isMove], i)
			i++
			continue
		}
		from := i
		if o.long {
			i = d.skip(text, i, o.s, o.t)
		} else {
			i = d.run(text, i, o.s, o.t)
		}
		if i > from {
			regs[o.sets[0]] = i
			regs[o.sets[1]] = i
		}
	}
}

// strayed notes that a part was not as expected, and gives up on one that seldom is.
func (d *dfa) strayed(o *traced) {
	if o.missed++; o.missed >= 32 {
		if uint32(o.missed)*4 > d.matches-o.born {
			o.kind = traceEnd
		}
		if o.missed == 1<<15 {
			o.missed, o.born = 0, d.matches
		}
	}
}

// record makes a trace of the way that a text takes, which matched from there. Traces begin behind each of its moves.
func (d *dfa) record(text []byte, from int, begin int32, kind uint8) {
	d.cold = 0
	if d.tracesMade++; d.tracesMade > maxTraces {
		return
	}
	if len(d.traces) == 0 {
		d.traces = append(d.traces, traced{})
	}
	had := len(d.traces)
	none := uint16(len(d.regs) - 1)
	s := uint32(begin) * d.classes
	if d.beginTraces[kind] == 0 {
		d.beginTraces[kind] = uint32(len(d.traces))
	}
	for i, n := from, 0; i < len(text) && n < maxTraced; n++ {
		t := d.table[s+uint32(d.p.class[text[i]])]
		if t == unknown || t == dead {
			break
		}
		o := traced{s: s, t: t, kind: traceByte, sets: [2]uint16{none, none}, born: d.matches}
		next := t
		var m *move
		if t >= isMove {
			m = &d.moves[t&^isMove]
			if m.kind == moveStop {
				break
			}
			next = m.next
			switch sets, copies := d.mores[t&^isMove].sets, d.mores[t&^isMove].copies; {
			case len(copies) > 0 || next == s && len(sets) > 2:
				d.traces = append(d.traces, traced{s: s, kind: traceEnd})
				if m.trace == 0 {
					m.trace = uint32(len(d.traces))
				}
				s = next
				i++
				continue
			case len(sets) > 2:
				o.kind = traceMany
			case len(sets) > 0:
				o.kind = traceSets
				o.sets[0], o.sets[1] = sets[0], sets[len(sets)-1]
			}
		}
		at := i
		i++
		if next == s {
			for i < len(text) && d.table[s+uint32(d.p.class[text[i]])] == t {
				i++
			}
			o.kind, o.long = traceRun, i-at >= minSkip
		}
		d.traces = append(d.traces, o)
		if m != nil && m.trace == 0 && next != s {
			m.trace = uint32(len(d.traces))
		}
		s = next
	}
	d.traces = append(d.traces, traced{s: s, kind: traceEnd})
	d.charge(24 * (len(d.traces) - had))
}
