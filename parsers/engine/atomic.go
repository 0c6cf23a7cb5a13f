package engine

import "encoding/binary"

// atomicGroup is the beginning of an atomic group's copy.
type atomicGroup struct {
	at   int32
	mark int
	what string
}

const (
	// maxProof bounds the states of one proof.
	maxProof = 2000
	// maxSteps bounds the work of all proofs of an expression.
	maxSteps = 10_000_000
)

// guard is the place of a negative look-ahead: where nothing that follows reads a byte with which its text begins, a
// match goes on only where it holds.
type guard struct {
	at    int32
	first set257
	what  string
}

// unproven gives the first atomic group, or guard, that is not shown to be like any other, "" where all are.
//
// An atomic group is harmless where its longest match goes before all shorter ones, and no shorter one can be followed by
// what comes after the group: wherever the group could end and could also read on, what follows can't begin with that
// byte. Assertions count as true where any byte before could make them so, which only makes a proof fail.
func (p *prog) unproven() string {
	if len(p.atomics)+len(p.guards) == 0 {
		return ""
	}
	w := &prover{p: p, seen: make([]uint32, len(p.insts)), out: make([]uint32, len(p.insts))}
	w.possible = make([][]bool, len(p.asserts))
	for i := range w.possible {
		w.possible[i] = make([]bool, p.classes+1)
		for c := range w.possible[i] {
			for k := 1; k < p.kinds; k++ {
				if p.asserts[i].ok[k*(p.classes+1)+c] {
					w.possible[i][c] = true
				}
			}
		}
	}
	for _, g := range p.guards {
		for b := range 256 {
			if !g.first.has(b) {
				continue
			}
			if _, takes := w.follow(p.insts[g.at].out, int32(p.class[b])); takes {
				return g.what
			}
		}
	}
	for _, a := range p.atomics {
		if !w.prove(a) {
			return a.what
		}
	}
	return ""
}

type prover struct {
	p        *prog
	possible [][]bool // by assertion and class of the byte behind
	seen     []uint32
	out      []uint32
	gen      uint32

	mark  int
	ended int32 // the group's last instruction, once it was reached
	late  bool  // a byte is read with a lower priority than the end
	reads bool
	next  []int32
	steps int
}

func (w *prover) prove(a atomicGroup) bool {
	w.mark = a.mark
	todo := [][]int32{{w.p.insts[a.at].out}}
	known := map[string]bool{}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for c := range w.p.classes {
			if w.steps > maxSteps {
				return false
			}
			w.gen++
			w.ended, w.late, w.reads, w.next = -1, false, false, nil
			for _, pc := range s {
				w.add(pc, c)
			}
			if w.ended >= 0 && w.reads {
				free, takes := w.follow(w.p.insts[w.ended].out, int32(c))
				if !free && (w.late || takes) {
					return false
				}
			}
			if len(w.next) == 0 {
				continue
			}
			key := make([]byte, 0, 4*len(w.next))
			for _, pc := range w.next {
				key = binary.LittleEndian.AppendUint32(key, uint32(pc))
			}
			if !known[string(key)] {
				if len(known) >= maxProof {
					return false
				}
				known[string(key)] = true
				todo = append(todo, w.next)
			}
		}
	}
	return true
}

func (w *prover) add(pc int32, c int) {
	for {
		if w.seen[pc] == w.gen {
			return
		}
		w.seen[pc] = w.gen
		w.steps++
		in := &w.p.insts[pc]
		if m, ok := w.p.ends[pc]; ok && m == w.mark {
			w.ended = pc
			return
		}
		switch in.op {
		case opFail, opMatch:
			return
		case opNop, opCapture:
			pc = in.out
		case opAssert:
			if !w.possible[in.arg][c] {
				return
			}
			pc = in.out
		case opSplit:
			w.add(in.out, c)
			pc = in.arg
		case opBytes:
			for _, e := range in.edges {
				if w.p.bySet[e.set][c] {
					w.reads = true
					if w.ended >= 0 {
						w.late = true
					}
					if w.out[e.out] != w.gen {
						w.out[e.out] = w.gen
						w.next = append(w.next, e.out)
					}
				}
			}
			return
		}
	}
}

// follow tells what comes after the group before a byte of class c: free, that the whole expression matches then without
// more; takes, that something may read the byte or end there.
func (w *prover) follow(pc, c int32) (free, takes bool) {
	var walk func(pc int32, sure bool)
	var seen [2]map[int32]bool
	seen[0], seen[1] = map[int32]bool{}, map[int32]bool{}
	walk = func(pc int32, sure bool) {
		k := 0
		if sure {
			k = 1
		}
		if seen[k][pc] || seen[1][pc] {
			return
		}
		seen[k][pc] = true
		w.steps++
		in := &w.p.insts[pc]
		switch in.op {
		case opNop, opCapture:
			walk(in.out, sure)
		case opSplit:
			walk(in.out, sure)
			walk(in.arg, sure)
		case opAssert:
			if w.possible[in.arg][c] {
				walk(in.out, false)
			}
		case opMatch:
			free = free || sure
			takes = true
		case opBytes:
			for _, e := range in.edges {
				if w.p.bySet[e.set][c] {
					takes = true
				}
			}
		}
	}
	walk(pc, true)
	return free, takes
}
