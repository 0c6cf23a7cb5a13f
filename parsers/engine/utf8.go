package engine

import "unicode"

// shape is a class of characters as steps on bytes: a node's edges lead to other nodes or, with -1, out.
type shape struct{ nodes [][]shapeEdge }

type shapeEdge struct {
	set byteSet256
	to  int
}

// rune writes at the instruction `at` (and behind the last) what reads one character of the set. Texts are UTF-8.
func (b *builder) rune(at int32, s set, out int32) {
	var ascii byteSet256
	var key []byte
	for i := 0; i+1 < len(s); i += 2 {
		if s[i] < 0x80 {
			ascii.add(int(s[i]), int(min(s[i+1], 0x7f)))
		}
		key = append(key, byte(s[i]), byte(s[i]>>8), byte(s[i]>>16), byte(s[i+1]), byte(s[i+1]>>8), byte(s[i+1]>>16))
	}
	var edges []edge
	if ascii != (byteSet256{}) {
		edges = append(edges, edge{b.set(ascii), out})
	}
	if n := len(s); n > 0 && s[n-1] >= 0x80 {
		high := s.intersect(set{0x80, unicode.MaxRune})
		if fullHigh(high) {
			// A first byte, then any number of continuations; no other instruction reads one of those first.
			cont := b.emit(inst{op: opBytes})
			end := b.emit(inst{op: opAssert, out: out, arg: b.assert(cond{everything, noContByte})})
			again := b.emit(inst{op: opSplit, out: cont, arg: end})
			var c, l byteSet256
			c.add(0x80, 0xbf)
			l.add(0xc0, 0xff)
			b.p.insts[cont].edges = []edge{{b.set(c), again}}
			edges = append(edges, edge{b.set(l), again})
		} else {
			sh := b.shapes[string(key)]
			if sh == nil {
				sh = newShape(high)
				b.shapes[string(key)] = sh
			}
			base := int32(len(b.p.insts))
			for range sh.nodes[1:] {
				b.emit(inst{op: opBytes})
			}
			for k, node := range sh.nodes {
				var es []edge
				for _, e := range node {
					to := out
					if e.to >= 0 {
						to = base + int32(e.to) - 1
					}
					es = append(es, edge{b.set(e.set), to})
				}
				if k == 0 {
					edges = append(edges, es...)
				} else {
					b.p.insts[base+int32(k)-1].edges = es
				}
			}
		}
	}
	if len(edges) == 0 {
		b.p.insts[at] = inst{op: opFail}
		return
	}
	b.p.insts[at] = inst{op: opBytes, edges: edges}
}

// newShape makes the steps for a set of characters beyond ASCII. Node 0 is the first byte's.
func newShape(s set) *shape {
	sh := &shape{nodes: [][]shapeEdge{nil}}
	// The 64 characters of a block differ in their last byte only.
	k := 0
	block := func(lo rune) (m uint64) {
		for k > 0 && s[2*k-1] >= lo {
			k--
		}
		for ; 2*k < len(s) && s[2*k+1] < lo; k++ {
		}
		for j := k; 2*j < len(s) && s[2*j] < lo+64; j++ {
			a, z := max(s[2*j], lo)-lo, min(s[2*j+1], lo+63)-lo
			m |= ^uint64(0) >> (63 - (z - a)) << a
		}
		return m
	}
	known := map[string]int{}
	// node gives a node that reads the bytes of lo on, by the target of each: depth bytes are left to read.
	var node func(lo rune, depth int) int // -2: none match
	node = func(lo rune, depth int) int {
		if depth == 1 {
			m := block(lo)
			if m == 0 {
				return -2
			}
			key := "1" + string(append([]byte(nil), byte(m), byte(m>>8), byte(m>>16), byte(m>>24), byte(m>>32), byte(m>>40), byte(m>>48), byte(m>>56)))
			if n, ok := known[key]; ok {
				return n
			}
			var bs byteSet256
			bs[2] = m
			sh.nodes = append(sh.nodes, []shapeEdge{{bs, -1}})
			known[key] = len(sh.nodes) - 1
			return len(sh.nodes) - 1
		}
		size := rune(1) << (6 * (depth - 1))
		var es []shapeEdge
		by := map[int]int{}
		for c := range rune(64) {
			first := lo + c*size
			if first > unicode.MaxRune || depth == 2 && first >= 0xd800 && first < 0xe000 {
				continue
			}
			to := node(first, depth-1)
			if to == -2 {
				continue
			}
			i, ok := by[to]
			if !ok {
				i = len(es)
				by[to] = i
				es = append(es, shapeEdge{to: to})
			}
			es[i].set.add(0x80+int(c), 0x80+int(c))
		}
		if len(es) == 0 {
			return -2
		}
		key := []byte{'0' + byte(depth)}
		for _, e := range es {
			key = append(key, byte(e.to), byte(e.to>>8))
			for _, w := range e.set {
				key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
			}
		}
		if n, ok := known[string(key)]; ok {
			return n
		}
		sh.nodes = append(sh.nodes, es)
		known[string(key)] = len(sh.nodes) - 1
		return len(sh.nodes) - 1
	}
	var es []shapeEdge
	by := map[int]int{}
	lead := func(b int, to int) {
		if to == -2 {
			return
		}
		i, ok := by[to]
		if !ok {
			i = len(es)
			by[to] = i
			es = append(es, shapeEdge{to: to})
		}
		es[i].set.add(b, b)
	}
	for b := 0xc2; b < 0xe0; b++ {
		lead(b, node(rune(b&0x1f)<<6, 1))
	}
	// Overlong forms are in none of the sets' way: no valid text has them.
	for b := 0xe0; b < 0xf0; b++ {
		lead(b, node(rune(b&0xf)<<12, 2))
	}
	for b := 0xf0; b < 0xf5; b++ {
		lead(b, node(rune(b&7)<<18, 3))
	}
	sh.nodes[0] = es
	return sh
}
