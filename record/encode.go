package record

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// Encoder writes records as JSON objects. It is immutable after NewEncoder: any number
// of goroutines may use it at once.
//
// Dotted paths are nested. Order is the order of the fields, then that of the overflow,
// but each object is written once, where its first field stands. Where a field is both a
// value and a prefix of others (`a` and `a.b`), the others are written beside it under
// their dotted names. No object has a key twice.
type Encoder struct {
	open  bool // write the overflow too
	slots []encSlot
	flat  bool // no field has a dot
	// collides: a field is a prefix of another, so that what is nested depends on the record.
	collides bool
	roots    map[string]bool // first parts of the dotted fields
}

type encSlot struct {
	slot int
	name []byte // the path
	key  []byte // `"last part":`; flat: with a comma before it
	// heads[n] is what stands before the value where the n outermost of its objects are open: `"part":{` of the others, and the key.
	heads  [][]byte
	shared int // how many outermost objects the slot before lies in too
}

// NewEncoder makes an encoder for those fields, in that order; nil: all fields of the
// table that are not metadata. Metadata is left out in any case. openEnded adds each
// record's overflow. Fields that the table doesn't have yet get slots.
func NewEncoder(t *Table, fields []string, openEnded bool) *Encoder {
	e := &Encoder{open: openEnded, flat: true, roots: map[string]bool{}}
	if fields == nil {
		fields = t.Names()
	}
	given := map[string]bool{}
	var names []string
	for _, f := range fields {
		if !IsMeta(f) && !given[f] {
			given[f] = true
			names = append(names, f)
		}
	}
	var before []string // the objects that the name before lies in
	for _, f := range grouped(names) {
		var objects []string
		var opens [][]byte
		s := encSlot{slot: t.Slot(f), name: []byte(f)}
		for from := 0; ; {
			n := strings.IndexByte(f[from:], '.')
			if n < 0 {
				s.key = append(AppendJSONString(nil, []byte(f[from:])), ':')
				break
			}
			prefix := f[:from+n]
			e.collides = e.collides || given[prefix]
			if from == 0 {
				e.roots[prefix] = true
			}
			objects = append(objects, prefix)
			opens = append(opens, append(AppendJSONString(nil, []byte(f[from:from+n])), ':', '{'))
			from += n + 1
			e.flat = false
		}
		for n := range len(opens) + 1 {
			s.heads = append(s.heads, append(bytes.Join(opens[n:], nil), s.key...))
		}
		for s.shared < min(len(objects), len(before)) && objects[s.shared] == before[s.shared] {
			s.shared++
		}
		before = objects
		e.slots = append(e.slots, s)
	}
	if e.flat {
		for i := range e.slots {
			e.slots[i].key = append([]byte{','}, e.slots[i].key...)
		}
	}
	return e
}

// grouped orders names so that those below one prefix follow each other, each group
// where its first name is.
func grouped(names []string) []string {
	first := map[string]int{} // prefix or name: number of the first name at or below it
	ranks := make(map[string][]int, len(names))
	for i, name := range names {
		for at := range len(name) + 1 {
			if at < len(name) && name[at] != '.' {
				continue
			}
			if _, ok := first[name[:at]]; !ok {
				first[name[:at]] = i
			}
			ranks[name] = append(ranks[name], first[name[:at]])
		}
	}
	out := append([]string(nil), names...)
	sort.SliceStable(out, func(a, b int) bool {
		x, y := ranks[out[a]], ranks[out[b]]
		for i := 0; i < len(x) && i < len(y); i++ {
			if x[i] != y[i] {
				return x[i] < y[i]
			}
		}
		return len(x) < len(y)
	})
	return out
}

// Append appends record i of b as one JSON object.
func (e *Encoder) Append(dst []byte, b *Batch, i int) []byte {
	over := int32(0)
	if e.open && b.HasOverflow(i) {
		over = b.head[i]
	}
	return e.append(dst, b, b.Row(i), over)
}

// AppendValues is Append for a row of values that isn't a record's: row has a value for each slot
// of the encoder's table, which may be another than b's; what they refer to is in b.
func (e *Encoder) AppendValues(dst []byte, b *Batch, row []Value) []byte {
	return e.append(dst, b, row, 0)
}

// append writes row and the overflow fields from number over-1 on, none where it is 0.
func (e *Encoder) append(dst []byte, b *Batch, row []Value, over int32) []byte {
	if e.collides {
		return e.appendTree(dst, b, row, over)
	}
	start := len(dst)
	if e.flat {
		dst = e.appendFlat(dst, b, row)
	} else {
		dst = e.appendNested(dst, b, row)
	}
	if over != 0 {
		var ok bool
		if dst, ok = e.appendOverflow(dst, start, b, row, over); !ok {
			return e.appendTree(dst[:start], b, row, over)
		}
	}
	if len(dst) == start {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// appendFlat writes the slots, nothing where all are missing, without the closing brace.
func (e *Encoder) appendFlat(dst []byte, b *Batch, row []Value) []byte {
	start := len(dst)
	for k := range e.slots {
		s := &e.slots[k]
		v := row[s.slot]
		if v.kind == Missing {
			continue
		}
		dst = append(dst, s.key...)
		dst = b.appendScalar(dst, v)
	}
	if len(dst) > start {
		dst[start] = '{' // in place of the first key's comma
	}
	return dst
}

// appendScalar is AppendJSON with what is frequent first.
func (b *Batch) appendScalar(dst []byte, v Value) []byte {
	switch v.kind {
	case String:
		return AppendJSONString(dst, b.Bytes(v))
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	}
	return b.AppendJSON(dst, v)
}

// appendNested is appendFlat for slots of which some are nested.
func (e *Encoder) appendNested(dst []byte, b *Batch, row []Value) []byte {
	start := len(dst)
	depth, shared := 0, 0 // objects that are open, and how many of them the slot lies in
	for k := range e.slots {
		s := &e.slots[k]
		shared = min(shared, s.shared)
		v := row[s.slot]
		if v.kind == Missing {
			continue
		}
		if len(dst) == start {
			dst = append(dst, '{')
		} else {
			for n := depth; n > shared; n-- {
				dst = append(dst, '}')
			}
			dst = append(dst, ',')
		}
		dst = append(dst, s.heads[shared]...)
		dst = b.appendScalar(dst, v)
		depth = len(s.heads) - 1
		shared = depth
	}
	for range depth {
		dst = append(dst, '}')
	}
	return dst
}

// appendOverflow writes the overflow behind the slots where that can be done in one go:
// where the fields of each object follow each other and no field is another's prefix.
func (e *Encoder) appendOverflow(dst []byte, start int, b *Batch, row []Value, over int32) ([]byte, bool) {
	var seen objects
	var last []byte // the name before, up to its last dot: the objects that are open
	depth := 0
	dots := false
	for at := over; at != 0; {
		f := &b.over[at-1]
		at = f.next
		if f.val.kind == Missing {
			continue
		}
		name := b.Bytes(f.name)
		if isMetaBytes(name) {
			continue
		}
		leaf := bytes.LastIndexByte(name, '.')
		if leaf == 0 || leaf < 0 && len(e.roots) > 0 && e.roots[string(name)] {
			return dst, false // an empty first part looks like none here
		}
		if leaf >= 0 || depth > 0 {
			// Close the objects that the name isn't in, open the others.
			dir := name[:max(leaf, 0)]
			same := commonObjects(last, dir)
			closes := bytes.Count(last[same:], dotByte)
			if same == 0 && len(last) > 0 {
				closes++
			}
			for range closes {
				dst = append(dst, '}')
			}
			depth -= closes
			from := same
			if same > 0 {
				from++ // the dot
			}
			for len(dir) > same && from <= len(dir) {
				n := bytes.IndexByte(dir[from:], '.')
				end := len(dir)
				if n >= 0 {
					end = from + n
				}
				if from == 0 && e.roots[string(dir[:end])] || !seen.open(dir[:end]) {
					return dst, false
				}
				if len(dst) == start {
					dst = append(dst, '{')
				} else if dst[len(dst)-1] != '{' {
					dst = append(dst, ',')
				}
				dst = AppendJSONString(dst, dir[from:end])
				dst = append(dst, ':', '{')
				depth++
				from = end + 1
			}
			last = dir
			dots = true
		}
		if len(dst) == start {
			dst = append(dst, '{')
		} else if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = AppendJSONString(dst, name[leaf+1:])
		dst = append(dst, ':')
		dst = b.appendScalar(dst, f.val)
	}
	for range depth {
		dst = append(dst, '}')
	}
	// A field may come before the object of its name: only now are all of them known.
	if dots && e.leafIsObject(b, row, over, &seen) {
		return dst, false
	}
	return dst, true
}

func isMetaBytes(name []byte) bool { return len(name) > 0 && name[0] == '@' && IsMeta(string(name)) }

var dotByte = []byte{'.'}

// leafIsObject tells whether a field of the record has the path of one of the objects.
func (e *Encoder) leafIsObject(b *Batch, row []Value, over int32, seen *objects) bool {
	for at := over; at != 0; at = b.over[at-1].next {
		if f := &b.over[at-1]; f.val.kind != Missing && seen.has(b.Bytes(f.name)) {
			return true
		}
	}
	for k := range e.slots {
		if s := &e.slots[k]; row[s.slot].kind != Missing && seen.has(s.name) {
			return true
		}
	}
	return false
}

// commonObjects is the length of the longest path that both a and b are or lie below; 0 where there is none.
func commonObjects(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if (n == len(a) || a[n] == '.') && (n == len(b) || b[n] == '.') {
		return n
	}
	return max(bytes.LastIndexByte(a[:n], '.'), 0)
}

// objects are the paths of the objects that a record has opened.
type objects struct {
	path [32][]byte
	bits uint64 // a Bloom filter over the paths
	n    int
}

func (*objects) bit(p []byte) uint64 {
	if len(p) == 0 {
		return 1
	}
	return 1 << ((len(p) + 7*int(p[len(p)-1])) & 63)
}

func (o *objects) has(p []byte) bool {
	if o.bits&o.bit(p) == 0 {
		return false
	}
	for _, q := range o.path[:o.n] {
		if bytes.Equal(p, q) {
			return true
		}
	}
	return false
}

// open notes an object; false where it was there before, or there are too many to look through.
func (o *objects) open(p []byte) bool {
	if o.n == len(o.path) || o.has(p) {
		return false
	}
	o.bits |= o.bit(p)
	o.path[o.n] = p
	o.n++
	return true
}

// tree is the scratch of appendTree: a record's fields by path, in time linear in their length.
type tree struct {
	nodes []treeNode
	table []int32 // open addressing: 1 + number of the node
	used  []int32 // filled entries of table
}

type treeNode struct {
	name                       []byte // a path that the node is or lies above
	from, to                   int32  // the node's own part of it
	parent, first, last, after int32
	val                        Value
}

var trees = sync.Pool{New: func() any { return new(tree) }}

var treeSeed = maphash.MakeSeed()

// appendTree writes any record.
func (e *Encoder) appendTree(dst []byte, b *Batch, row []Value, over int32) []byte {
	t := trees.Get().(*tree)
	t.nodes = append(t.nodes[:0], treeNode{})
	for k := range e.slots {
		s := &e.slots[k]
		if v := row[s.slot]; v.kind != Missing {
			t.add(s.name, v)
		}
	}
	for at := over; at != 0; at = b.over[at-1].next {
		f := &b.over[at-1]
		if name := b.Bytes(f.name); f.val.kind != Missing && !isMetaBytes(name) {
			t.add(name, f.val)
		}
	}
	dst = t.write(dst, b)
	for _, at := range t.used {
		t.table[at] = 0
	}
	t.used = t.used[:0]
	clear(t.nodes)
	if cap(t.nodes) <= 1<<14 {
		trees.Put(t)
	}
	return dst
}

func (t *tree) add(name []byte, v Value) {
	parent := int32(0)
	for from := 0; from <= len(name); {
		to := len(name)
		if n := bytes.IndexByte(name[from:], '.'); n >= 0 {
			to = from + n
		}
		parent = t.child(parent, name, from, to)
		from = to + 1
	}
	n := &t.nodes[parent]
	n.name, n.val = name, v
}

// child finds or makes the node below parent for that part of name.
func (t *tree) child(parent int32, name []byte, from, to int) int32 {
	if 2*(len(t.used)+1) > len(t.table) {
		t.growTable()
	}
	part := name[from:to]
	mask := uint64(len(t.table) - 1)
	at := t.hash(parent, part) & mask
	for ; t.table[at] != 0; at = (at + 1) & mask {
		id := t.table[at] - 1
		if n := &t.nodes[id]; n.parent == parent && bytes.Equal(n.name[n.from:n.to], part) {
			return id
		}
	}
	id := int32(len(t.nodes))
	t.table[at] = id + 1
	t.used = append(t.used, int32(at))
	t.nodes = append(t.nodes, treeNode{name: name, from: int32(from), to: int32(to), parent: parent})
	p := &t.nodes[parent]
	if p.first == 0 {
		p.first = id
	} else {
		t.nodes[p.last].after = id
	}
	p.last = id
	return id
}

func (t *tree) hash(parent int32, part []byte) uint64 {
	return maphash.Bytes(treeSeed, part) ^ uint64(parent)*0x9E3779B97F4A7C15
}

func (t *tree) growTable() {
	n := max(2*len(t.table), 64)
	t.table = make([]int32, n)
	t.used = t.used[:0]
	mask := uint64(n - 1)
	for id := 1; id < len(t.nodes); id++ {
		d := &t.nodes[id]
		at := t.hash(d.parent, d.name[d.from:d.to]) & mask
		for t.table[at] != 0 {
			at = (at + 1) & mask
		}
		t.table[at] = int32(id + 1)
		t.used = append(t.used, int32(at))
	}
}

// write walks the tree without recursion: paths may be as deep as they are long.
func (t *tree) write(dst []byte, b *Batch) []byte {
	dst = append(dst, '{')
	at := t.nodes[0].first
	beside := int32(0) // the node whose value shadows what is below it, which is written dotted
	for at != 0 {
		n := &t.nodes[at]
		if n.val.kind != Missing {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			from := n.from
			if beside != 0 {
				from = t.nodes[beside].from
			}
			dst = AppendJSONString(dst, n.name[from:n.to])
			dst = append(dst, ':')
			dst = b.AppendJSON(dst, n.val)
		}
		if n.first != 0 {
			if n.val.kind != Missing {
				if beside == 0 {
					beside = at
				}
			} else if beside == 0 {
				if dst[len(dst)-1] != '{' {
					dst = append(dst, ',')
				}
				dst = AppendJSONString(dst, n.name[n.from:n.to])
				dst = append(dst, ':', '{')
			}
			at = n.first
			continue
		}
		for at != 0 && t.nodes[at].after == 0 {
			at = t.nodes[at].parent
			switch {
			case at == 0:
			case at == beside:
				beside = 0
			case beside == 0:
				dst = append(dst, '}')
			}
		}
		if at != 0 {
			at = t.nodes[at].after
		}
	}
	return append(dst, '}')
}

// word is the 8 bytes of s from i on, the first the lowest.
func word(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }
