package windows

import "slices"

// block is slices put together, kept so that the next windows needn't do it again. Its slices are frozen: what comes for them
// later is in others.
type block struct {
	start int64 // a place
	from  []*slice
	t     *table
}

// blockSlices is how many slices a block has. A window of n slices is then put together of about n/8 + 14 tables, and a
// slice goes into one block.
const blockSlices = 8

// together puts a closed window's slices together.
func (a *aligned) together(p *pending) *table {
	if len(p.from) == 1 {
		return p.from[0].t
	}
	if a.grow {
		return a.onward(p)
	}
	t := a.newTable()
	most := 0
	for _, s := range p.from {
		most = max(most, s.t.n)
	}
	t.reserve(most)
	p.own = true
	span := blockSlices * a.every
	if a.size < 2*span {
		for _, s := range p.from {
			a.mergeTable(t, s.t)
		}
		return t
	}
	for i := 0; i < len(p.from); {
		start := floorTo(p.from[i].start, span, a.offset)
		j := i + 1
		for j < len(p.from) && p.from[j].start >= start { // the newest come first
			j++
		}
		part := p.from[i:j]
		i = j
		if start < p.start || start+span > p.end {
			for _, s := range part {
				a.mergeTable(t, s.t)
			}
			continue
		}
		b := a.blocks[start]
		if b == nil || len(part)-len(b.from) > a.beside() {
			b = &block{start: start, from: slices.Clone(part), t: a.newTable()}
			for _, s := range part {
				a.mergeTable(b.t, s.t)
			}
			if a.blocks == nil {
				a.blocks = map[int64]*block{}
			}
			a.blocks[start] = b
		}
		a.mergeTable(t, b.t)
		for _, s := range part {
			if !slices.Contains(b.from, s) {
				a.mergeTable(t, s.t)
			}
		}
	}
	return t
}

// have tells whether the table that a window's slice i is to be found in is there already, so that the slice isn't needed.
func (a *aligned) have(p *pending, i int) bool {
	if len(p.from) == 1 {
		return false
	}
	if a.grow {
		b := a.prefix
		return b != nil && b.start == p.start && i < len(b.from) && len(b.from) <= len(p.from) && slices.Equal(b.from, p.from[:len(b.from)])
	}
	span := blockSlices * a.every
	if a.size < 2*span {
		return false
	}
	start := floorTo(p.from[i].start, span, a.offset)
	b := a.blocks[start]
	if b == nil || start < p.start || start+span > p.end || !slices.Contains(b.from, p.from[i]) {
		return false
	}
	n := 0
	for _, s := range p.from {
		if s.start >= start && s.start < start+span {
			n++
		}
	}
	return n-len(b.from) <= a.beside()
}

// beside is how many slices that came later may stay outside of a block: none where the order shows, which would be another
// without the block, as after a start.
func (a *aligned) beside() int {
	if a.inOrder {
		return 0
	}
	return blockSlices
}

// onward adds to what the cumulating window before had what has come since.
func (a *aligned) onward(p *pending) *table {
	b := a.prefix
	if b == nil || b.start != p.start || len(b.from) > len(p.from) || !slices.Equal(b.from, p.from[:len(b.from)]) {
		b = &block{start: p.start, t: a.newTable()}
		a.prefix = b
	}
	for _, s := range p.from[len(b.from):] {
		a.mergeTable(b.t, s.t)
	}
	b.from = slices.Clone(p.from)
	return b.t
}

// mergeTable takes all groups of another table in.
func (a *aligned) mergeTable(into, from *table) {
	for r := range uint32(from.n) {
		row := from.row(r)
		key := from.key(row)
		to, _ := into.find(key, hashOf(key))
		a.merge(&into.mem, into.row(to)[headWords:], &from.mem, row[headWords:])
	}
}
