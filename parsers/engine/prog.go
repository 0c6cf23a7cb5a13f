package engine

import (
	"errors"
	"regexp/syntax"
	"unicode"
)

// prog is an expression as instructions on bytes. The order of a split's ways is their priority, as Go's regexp has it.
type prog struct {
	insts   []inst
	start   int32 // a match that begins at the given place
	search  int32 // one that begins there or later; the earlier goes first
	groups  int   // capturing groups; the match itself not counted
	asserts []assertion

	sets    []byteSet256
	classes int           // classes of bytes that no set tells apart; the class `classes` is the text's end
	class   [256]uint8    // a byte's
	kinds   int           // kinds of bytes before a place that no assertion tells apart; kind 0 is any of them for places where none asks
	kindOf  []uint8       // by class; by `classes` for the text's beginning
	bySet   [][]bool      // by set and class
	ends    map[int32]int // the last instructions of atomic groups: the group's mark
	guards  []guard
	atomics []atomicGroup
	prevs   []bool  // by instruction: what follows it, before the next byte, asks for the byte before
	ruleOf  []int32 // by instruction; -1 for those of all
	rules   int
}

type inst struct {
	op       opcode
	out, arg int32 // split: the ways; capture: arg is the place among the offsets; assert: arg is its number; match: arg is the rule
	edges    []edge
}

type edge struct {
	set int32
	out int32
}

type opcode uint8

const (
	opFail opcode = iota
	opBytes
	opSplit
	opCapture
	opAssert
	opMatch
	opNop
)

type byteSet256 [4]uint64

func (s *byteSet256) add(lo, hi int) {
	for ; lo <= hi; lo++ {
		s[lo>>6] |= 1 << (lo & 63)
	}
}
func (s *byteSet256) has(b int) bool { return s[b>>6]>>(b&63)&1 != 0 }

type assertion struct {
	conds []cond // one of them must hold
	ok    []bool // by kind and class of the byte behind
}

// errBig: the program would be too big; another engine compiles to less.
var errBig = errors.New("the expression is too big for this engine")

const (
	// maxInsts bounds a program: 40 bytes each, and the NFA simulation needs as many threads.
	maxInsts = 100_000
	// maxOffsets bounds the groups: 2 for each, and the match's own.
	maxOffsets = 30_000
	// maxClasses: with the text's end they fit a byte.
	maxClasses = 250
)

type builder struct {
	p      *prog
	setIDs map[byteSet256]int32
	shapes map[string]*shape
	single map[cond]int32 // assertions of one condition
	empty  map[syntax.EmptyOp]int32
}

// newProg makes the program of some expressions: one that matches any of them, the first in the order of the list going
// before the others, where each begins at the same place.
func newProg(list []*syntax.Prog, marks [][]mark) (*prog, error) {
	b := &builder{p: &prog{}, setIDs: map[byteSet256]int32{}, shapes: map[string]*shape{}, single: map[cond]int32{}, empty: map[syntax.EmptyOp]int32{}}
	p := b.p
	p.rules = len(list)
	p.start = -1
	var starts []int32
	for k, sp := range list {
		first, err := b.add(sp, marks[k], int32(k))
		if err != nil {
			return nil, err
		}
		starts = append(starts, first)
		for len(p.ruleOf) < len(p.insts) {
			p.ruleOf = append(p.ruleOf, int32(k))
		}
	}
	p.start = starts[len(starts)-1]
	for k := len(starts) - 2; k >= 0; k-- {
		p.start = b.emit(inst{op: opSplit, out: starts[k], arg: p.start})
	}
	any := b.emit(inst{op: opBytes})
	p.search = b.emit(inst{op: opSplit, out: p.start, arg: any})
	b.rune(any, set{0, unicode.MaxRune}, p.search)
	for len(p.ruleOf) < len(p.insts) {
		p.ruleOf = append(p.ruleOf, -1)
	}
	if len(p.insts) > maxInsts || 2*p.groups+2 > maxOffsets {
		return nil, errBig
	}
	if !b.classes() {
		return nil, errBig
	}
	p.needPrevs()
	return p, nil
}

func (b *builder) emit(i inst) int32 {
	b.p.insts = append(b.p.insts, i)
	return int32(len(b.p.insts) - 1)
}

func (b *builder) set(s byteSet256) int32 {
	id, ok := b.setIDs[s]
	if !ok {
		id = int32(len(b.p.sets))
		b.setIDs[s] = id
		b.p.sets = append(b.p.sets, s)
	}
	return id
}

func (b *builder) assert(conds ...cond) int32 {
	if len(conds) == 1 {
		if id, ok := b.single[conds[0]]; ok {
			return id
		}
		b.single[conds[0]] = int32(len(b.p.asserts))
	}
	b.p.asserts = append(b.p.asserts, assertion{conds: conds})
	return int32(len(b.p.asserts) - 1)
}

// add appends an expression's instructions and gives its first.
func (b *builder) add(sp *syntax.Prog, marks []mark, rule int32) (int32, error) {
	base := int32(len(b.p.insts))
	b.p.insts = append(b.p.insts, make([]inst, len(sp.Inst))...)
	groups := 0
	for i, in := range sp.Inst {
		out := base + int32(in.Out)
		at := base + int32(i)
		var x inst
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			x = inst{op: opSplit, out: out, arg: base + int32(in.Arg)}
		case syntax.InstCapture:
			k, end := int(in.Arg/2), int32(in.Arg%2)
			x = inst{op: opNop, out: out}
			m := mark{kind: markGroup, group: k}
			if marks != nil && k > 0 {
				m = marks[k-1]
			}
			switch {
			case m.kind == markGroup:
				groups = max(groups, m.group)
				x = inst{op: opCapture, out: out, arg: 2*int32(m.group) + end}
			case m.kind == markAtomic && end == 0:
				b.p.atomics = append(b.p.atomics, atomicGroup{at, k, m.what})
			case m.kind == markAtomic:
				if b.p.ends == nil {
					b.p.ends = map[int32]int{}
				}
				b.p.ends[at] = k
			case m.kind == markGuard && end == 0:
				b.p.guards = append(b.p.guards, guard{at, m.look.next, m.what})
			case m.kind == markLook && end == 0:
				x = inst{op: opAssert, out: out, arg: b.assert(*m.look)}
			}
		case syntax.InstEmptyWidth:
			x = inst{op: opAssert, out: out, arg: b.emptyWidth(syntax.EmptyOp(in.Arg))}
		case syntax.InstMatch:
			x = inst{op: opMatch, arg: rule}
		case syntax.InstFail:
			x = inst{op: opFail}
		case syntax.InstNop:
			x = inst{op: opNop, out: out}
		case syntax.InstRuneAny:
			b.rune(at, set{0, unicode.MaxRune}, out)
			continue
		case syntax.InstRuneAnyNotNL:
			b.rune(at, set{0, '\n' - 1, '\n' + 1, unicode.MaxRune}, out)
			continue
		case syntax.InstRune1:
			b.rune(at, set{in.Rune[0], in.Rune[0]}, out)
			continue
		case syntax.InstRune:
			if len(in.Rune) == 1 {
				b.rune(at, literalSet(in.Rune[0], syntax.Flags(in.Arg)&syntax.FoldCase != 0), out)
			} else {
				b.rune(at, set(in.Rune), out)
			}
			continue
		}
		b.p.insts[at] = x
		if len(b.p.insts) > maxInsts {
			return 0, errBig
		}
	}
	b.p.groups = max(b.p.groups, groups)
	return base + int32(sp.Start), nil
}

var (
	wordSet    = func() (s set257) { s[0], s[1] = 0x3ff<<48, 0x7fffffe87fffffe; return }()
	textEdge   = func() (s set257) { s.add(edgeOfText); return }()
	lineEdge   = func() (s set257) { s.add('\n'); s.add(edgeOfText); return }()
	noContByte = func() (s set257) {
		s = everything
		s[2] = 0
		return
	}()
)

func (b *builder) emptyWidth(op syntax.EmptyOp) int32 {
	if id, ok := b.empty[op]; ok {
		return id
	}
	c := []cond{{everything, everything}}
	and := func(o ...cond) {
		var out []cond
		for _, x := range c {
			for _, y := range o {
				out = append(out, cond{x.prev.and(y.prev), x.next.and(y.next)})
			}
		}
		c = out
	}
	if op&syntax.EmptyBeginLine != 0 {
		and(cond{lineEdge, everything})
	}
	if op&syntax.EmptyEndLine != 0 {
		and(cond{everything, lineEdge})
	}
	if op&syntax.EmptyBeginText != 0 {
		and(cond{textEdge, everything})
	}
	if op&syntax.EmptyEndText != 0 {
		and(cond{everything, textEdge})
	}
	if op&syntax.EmptyWordBoundary != 0 {
		and(cond{wordSet, wordSet.not()}, cond{wordSet.not(), wordSet})
	}
	if op&syntax.EmptyNoWordBoundary != 0 {
		and(cond{wordSet, wordSet}, cond{wordSet.not(), wordSet.not()})
	}
	b.empty[op] = b.assert(c...)
	return b.empty[op]
}

// classes finds the classes of bytes and the kinds of bytes before, and fills what is looked up by them.
func (b *builder) classes() bool {
	p := b.p
	n := 1
	var class [257]int // of bytes, and of the text's edge
	split := func(has func(int) bool) {
		seen := map[[2]int]int{}
		used := map[int]bool{}
		for c := range class {
			k := [2]int{class[c], 0}
			if has(c) {
				k[1] = 1
			}
			id, ok := seen[k]
			if !ok {
				id = class[c]
				if used[id] {
					id = n
					n++
				}
				used[id] = true
				seen[k] = id
			}
			class[c] = id
		}
	}
	for i := range p.sets {
		split(func(c int) bool { return c < 256 && p.sets[i].has(c) })
	}
	type pair = set257
	done := map[pair]bool{}
	var prevs []set257
	for _, a := range p.asserts {
		for _, c := range a.conds {
			for _, s := range []set257{c.prev, c.next} {
				if !done[s] {
					done[s] = true
					split(func(c int) bool { return s.has(c) })
				}
			}
			if c.prev != everything {
				prevs = append(prevs, c.prev)
			}
		}
	}
	split(func(c int) bool { return c == edgeOfText })
	if n > maxClasses {
		return false
	}
	// The edge's class becomes the last.
	last := class[256]
	for c := range class {
		switch class[c] {
		case last:
			class[c] = n - 1
		case n - 1:
			class[c] = last
		}
	}
	p.classes = n - 1
	rep := make([]int, n)
	for c, id := range class {
		if c < 256 {
			p.class[c] = uint8(id)
		}
		rep[id] = c
	}
	p.bySet = make([][]bool, len(p.sets))
	for i := range p.sets {
		p.bySet[i] = make([]bool, n)
		for c := range 256 {
			if p.sets[i].has(c) {
				p.bySet[i][class[c]] = true
			}
		}
	}
	// Kinds: classes that no set of bytes before tells apart.
	p.kindOf = make([]uint8, n)
	kinds := map[string]int{}
	kindRep := []int{0}
	for id := range n {
		key := make([]byte, len(prevs))
		for i := range prevs {
			if prevs[i].has(rep[id]) {
				key[i] = 1
			}
		}
		k, ok := kinds[string(key)]
		if !ok {
			k = len(kinds) + 1
			kinds[string(key)] = k
			kindRep = append(kindRep, rep[id])
		}
		p.kindOf[id] = uint8(k)
	}
	p.kinds = len(kindRep)
	for i := range p.asserts {
		a := &p.asserts[i]
		a.ok = make([]bool, p.kinds*n)
		for k := range p.kinds {
			for id := range n {
				for _, c := range a.conds {
					if c.prev.has(kindRep[k]) && c.next.has(rep[id]) {
						a.ok[k*n+id] = true
					}
				}
			}
		}
	}
	return true
}

func (p *prog) skipNops() {
	skip := func(i int32) int32 {
		for n := 0; p.insts[i].op == opNop && n < len(p.insts); n++ {
			i = p.insts[i].out
		}
		return i
	}
	for i := range p.insts {
		in := &p.insts[i]
		switch in.op {
		case opSplit:
			in.out, in.arg = skip(in.out), skip(in.arg)
		case opCapture, opAssert:
			in.out = skip(in.out)
		case opBytes:
			for k := range in.edges {
				in.edges[k].out = skip(in.edges[k].out)
			}
		}
	}
	p.start, p.search = skip(p.start), skip(p.search)
}

// needPrevs marks the instructions from which, before the next byte, an assertion that asks for the byte before is reached.
func (p *prog) needPrevs() {
	p.prevs = make([]bool, len(p.insts))
	from := make([][]int32, len(p.insts))
	var todo []int32
	for i, in := range p.insts {
		switch in.op {
		case opSplit:
			from[in.out] = append(from[in.out], int32(i))
			from[in.arg] = append(from[in.arg], int32(i))
		case opCapture, opAssert, opNop:
			from[in.out] = append(from[in.out], int32(i))
			if in.op == opAssert {
				for _, c := range p.asserts[in.arg].conds {
					if c.prev != everything && !p.prevs[i] {
						p.prevs[i] = true
						todo = append(todo, int32(i))
					}
				}
			}
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, f := range from[i] {
			if !p.prevs[f] {
				p.prevs[f] = true
				todo = append(todo, f)
			}
		}
	}
}

// kindAt is the kind of the byte before place i, for a program that asks for it at pc.
func (p *prog) kindAt(text []byte, i int) uint8 {
	if i == 0 {
		return p.kindOf[p.classes]
	}
	return p.kindOf[p.class[text[i-1]]]
}

func (p *prog) bytes() int {
	n := 0
	for i := range p.insts {
		n += 48 + 8*len(p.insts[i].edges)
	}
	return n + len(p.sets)*32 + len(p.bySet)*(p.classes+1)
}
