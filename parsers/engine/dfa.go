package engine

import (
	"runtime"
	"sync/atomic"
)

// dfa is a tagged automaton that is built while it runs. A state is the list of the program's threads, by priority, as they
// are before the next byte is known; offsets are kept in registers, and a thread knows the register of each. What leads
// from one state to the next says which registers take the present place.
//
// It is for one goroutine. What it allocates is bounded by its budget: when that is spent, it begins anew.
type dfa struct {
	p     *prog
	entry int32
	goal  goal
	tagOf []int16 // by place among the offsets; -1 where it is not kept
	slots []int   // by tag
	endAt int     // the tag of the match's end; -1

	classes uint32
	table   []uint32 // by state number + class: see below
	states  []state
	moves   []move
	mores   []more // by move
	shapes  map[string][]int32
	same    map[string]uint32 // moves by what they do
	begins  []int32           // by kind of the byte before: the state at the beginning; -1
	maxVers int               // versions of a tag
	regs    []int             // places + 1; 0 for none
	skips   []skip            // by state

	traces      []traced
	beginTraces []uint32 // by kind of the byte before
	tracesMade  int
	cold        int // matches that met places where no trace begins
	matches     uint32

	used    int // bytes
	account *atomic.Int64
	budget  int
	eager   bool // skips and traces from the first time on: for tests
	flushes int
	read    int // bytes since the last flush, roughly

	// of the step that is being taken
	seen    []uint32
	seenOut []uint32
	gen     uint32
	work    []uint8
	cfgs    []cfg
	vers    []uint8
	key     []byte
	tmp     []int
}

// goal is what a run is to find.
type goal uint8

const (
	goalAll   goal = iota // the match and the offsets of its groups
	goalStart             // where the leftmost match begins
	goalAny               // whether there is one
	goalRule              // which of many expressions, at the given place, may be the first to match: at most two are left
)

type cfg struct{ pc int32 } // -1-rule: a match that ended

type state struct {
	cfgs  []cfg
	vers  []uint8 // by cfg and tag
	kind  uint8
	regs  []uint16 // of a state with a match: its registers, by tag
	final bool     // nothing can change the match any more
}

// move leads to a state and sets registers: those of sets take the place, or more where there are too many.
type move struct {
	next  uint32 // the state's first place in the table
	trace uint32 // where a trace goes on behind it; 0 where none does
	n     uint8
	kind  moveKind
	sets  [fewSets]uint16
}

// more is what few moves have; it is beside them.
type more struct {
	sets   []uint16
	copies []uint16 // to and from in turn
}

const fewSets = 3

type moveKind uint8

const (
	moveFew moveKind = iota
	moveMore
	moveStop // the match is complete; as moveMore
)

// What the table holds: the next state's first place in it; or isMove and a move's number, of which two have a meaning of
// their own.
const (
	isMove  = 1 << 31
	unknown = isMove
	dead    = isMove | 1
)

const (
	newVer     = 255 // this place's
	maxVers    = 24
	manyVers   = 250
	maxRegs    = 1<<16 - 2
	maxVariant = 3
)

// skip is, for a state, which bytes lead back to it in the same way.
type skip struct {
	t    uint32
	seen uint32 // how often it was of no use
	on   bool
	set  nibbles
}

func (n *native) newDFA(entry int32, g goal, budget int) *dfa {
	p := n.p
	d := &dfa{p: p, eager: n.eager, entry: entry, goal: g, classes: uint32(p.classes + 1), endAt: -1, budget: budget}
	d.tagOf = make([]int16, 2*(p.groups+1))
	for i := range d.tagOf {
		d.tagOf[i] = -1
	}
	switch g {
	case goalAll:
		for i := 1; i < len(d.tagOf); i++ {
			d.tagOf[i] = int16(len(d.slots))
			d.slots = append(d.slots, i)
		}
		d.endAt = 0
	case goalStart:
		d.slots = []int{0}
		d.tagOf[0] = 0
	}
	d.seen = make([]uint32, len(p.insts))
	d.seenOut = make([]uint32, len(p.insts)+p.rules)
	d.work = make([]uint8, len(d.slots))
	d.account = new(atomic.Int64)
	runtime.AddCleanup(d, func(a *atomic.Int64) { cached.Add(-a.Load()) }, d.account)
	if d.maxVers = min(maxVers, maxRegs/max(1, len(d.slots))); len(d.slots) == 1 {
		d.maxVers = manyVers // as many beginnings as may be open
	}
	d.regs = make([]int, d.maxVers*len(d.slots)+1) // the last is one that nothing reads
	d.reset()
	return d
}

// MaxTotal bounds the memory of all automatons of the process, in bytes; each may have leastBudget all the same.
const MaxTotal = 256 << 20

const leastBudget = 64 << 10

// cached is what they have.
var cached atomic.Int64

// charge counts memory as used, until the automaton is reset or collected.
func (d *dfa) charge(n int) {
	d.used += n
	cached.Add(int64(n))
	d.account.Add(int64(n))
}

func (d *dfa) reset() {
	d.table, d.states, d.skips = d.table[:0], d.states[:0], d.skips[:0]
	clear(d.mores)
	d.moves = append(d.moves[:0], move{}, move{})
	d.mores = append(d.mores[:0], more{}, more{})
	d.shapes, d.same = map[string][]int32{}, map[string]uint32{}
	d.begins = make([]int32, d.p.kinds)
	for i := range d.begins {
		d.begins[i] = -1
	}
	d.charge(-d.used)
	d.read = 0
	d.traces, d.tracesMade, d.cold = d.traces[:0], 0, 0
	d.beginTraces = make([]uint32, d.p.kinds)
	d.flushes++
}

// result of a run.
type result uint8

const (
	missed result = iota
	found
	gaveUp
)

// minBytes is how many bytes a state must have been worth, on average, for states to be made anew when the budget is spent.
const minBytes = 10

// match runs over text from a place on. found: st is the state whose last thread is the match, and the registers hold.
func (d *dfa) match(text []byte, from int) (res result, st int32) {
	kind := uint8(0)
	if d.p.prevs[d.entry] {
		kind = d.p.kindAt(text, from)
	}
	begin := d.begin(kind)
	clear(d.regs[:len(d.slots)])
	s := uint32(begin) * d.classes
	class := &d.p.class
	table, regs := d.table, d.regs
	last, cold, flushes := from, 0, d.flushes
	i := from
	d.matches++
	if k := d.beginTraces[kind]; k != 0 {
		i, s = d.follow(text, i, k)
	}
	for i < len(text) {
		t := table[s+uint32(class[text[i]])]
		if t == s {
			i = d.run(text, i+1, s, t)
			continue
		}
		if t < isMove {
			s = t
			i++
			continue
		}
		if t == unknown {
			cls := int(class[text[i]])
			var ok bool
			if t, ok = d.step(int32(s/d.classes), cls); !ok {
				if d.read+i-last < minBytes*len(d.states) {
					return gaveUp, 0
				}
				d.flush(&s)
				last = i
				if t, ok = d.step(int32(s/d.classes), cls); !ok {
					return gaveUp, 0
				}
			}
			table = d.table
			if t < isMove {
				s = t
				i++
				continue
			}
		}
		if t == dead {
			return missed, 0
		}
		m := &d.moves[t&^isMove]
		at := i
		i++
		if m.next == s && m.kind != moveStop && len(d.mores[t&^isMove].copies) == 0 {
			// The last of a run says what the registers are.
			i = d.run(text, i, s, t)
			at = i - 1
		}
		s = m.next
		if m.kind == moveFew {
			for _, r := range m.sets[:m.n] {
				regs[r] = at + 1
			}
			if m.trace != 0 {
				i, s = d.follow(text, i, m.trace)
			} else {
				cold++
			}
			continue
		}
		d.apply(&d.mores[t&^isMove], at)
		if m.kind == moveStop {
			d.matched(text, from, begin, kind, cold, flushes)
			return found, int32(s / d.classes)
		}
	}
	t := table[s+uint32(d.p.classes)]
	if t == unknown {
		var ok bool
		if t, ok = d.step(int32(s/d.classes), d.p.classes); !ok {
			d.flush(&s)
			if t, ok = d.step(int32(s/d.classes), d.p.classes); !ok {
				return gaveUp, 0
			}
		}
	}
	d.read += len(text) - last
	if t == dead {
		return missed, 0
	}
	d.matched(text, from, begin, kind, cold, flushes)
	if t < isMove {
		return found, int32(t / d.classes)
	}
	d.apply(&d.mores[t&^isMove], len(text))
	return found, int32(d.moves[t&^isMove].next / d.classes)
}

// matched has a trace recorded where many matches met places without one.
func (d *dfa) matched(text []byte, from int, begin int32, kind uint8, cold, flushes int) {
	if cold > 0 && d.goal == goalAll && flushes == d.flushes { // else begin is no state any more
		if d.cold++; d.cold >= coldTraces || d.eager {
			d.record(text, from, begin, kind)
		}
	}
}

func (d *dfa) apply(m *more, at int) {
	if len(m.copies) > 0 {
		d.tmp = d.tmp[:0]
		for k := 1; k < len(m.copies); k += 2 {
			d.tmp = append(d.tmp, d.regs[m.copies[k]])
		}
		for k := 0; k < len(m.copies); k += 2 {
			d.regs[m.copies[k]] = d.tmp[k/2]
		}
	}
	regs := d.regs
	for _, r := range m.sets {
		regs[r] = at + 1
	}
}

// flush forgets all states but s.
func (d *dfa) flush(s *uint32) {
	st := d.states[*s/d.classes]
	d.reset()
	d.cfgs = append(d.cfgs[:0], st.cfgs...)
	d.vers = append(d.vers[:0], st.vers...)
	d.makeKey(st.kind)
	*s = uint32(d.newState(st.kind)) * d.classes
}

// offsets writes what a run found to caps, but for the match's beginning.
func (d *dfa) offsets(st int32, caps []int) {
	of := d.states[st].regs
	caps = caps[1 : len(of)+1]
	for t, r := range of {
		caps[t] = d.regs[r] - 1
	}
}

// from is the match's beginning, where that is what the automaton looks for.
func (d *dfa) from(st int32) int { return d.regs[d.states[st].regs[0]] - 1 }

// rules are the expressions that are left, in order: one that may match still, and the one that does; -1 for none.
func (d *dfa) rules(st int32) (may, does int) {
	c := d.states[st].cfgs
	may, does = -1, -1
	if c[0].pc >= 0 {
		may = int(d.p.ruleOf[c[0].pc])
	}
	if k := c[len(c)-1].pc; k < 0 {
		does = int(-1 - k)
	}
	return may, does
}
