package pipeline

import (
	"slices"

	"github.com/rsetl/rsetl/record"
)

// expand runs a step that may make several records of one. Afterwards the living records are in the split's order, their
// numbers ascend as everywhere, and those of one offset have the indices 0, 1, 2 ….
func (w *worker) expand(it *item, n *Node, s interface{ Apply(*record.Batch) }) {
	b := it.b
	w.rest = w.rest[:0]
	sel := append([]int32(nil), b.Sel...)
	if n.When != nil || n.branch != nil {
		w.env.B = b
		keep := sel[:0]
		for _, i := range b.Sel {
			if w.takes(n, b, int(i)) {
				keep = append(keep, i)
			} else {
				w.rest = append(w.rest, i)
			}
		}
		sel = keep
	}
	before := b.Len()
	b.Sel = sel
	s.Apply(b)
	after := append([]int32(nil), b.Sel...)
	b.Sel = b.Sel[:0]
	if len(b.Fails) > 0 {
		w.settle(it, n) // what is kept comes back into Sel
	}
	after = append(append(after, b.Sel...), w.rest...)
	if b.Len() == before {
		slices.Sort(after)
		b.Sel = after
		return
	}
	// Records that were made of one have its position still, so that they stay together.
	slices.SortStableFunc(after, func(x, y int32) int { return b.Pos(int(x)).Compare(b.Pos(int(y))) })
	last := int32(-1)
	next := record.Position{Offset: -1}
	for k, i := range after {
		if i < last {
			i = int32(b.Clone(int(i)))
			after[k] = i
		}
		last = i
		if p := b.Pos(int(i)); p.Offset != next.Offset {
			next = record.Position{Offset: p.Offset}
		}
		b.SetPos(int(i), next)
		next.Index++
	}
	b.Sel = after
}
