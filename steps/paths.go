package steps

import "github.com/rsetl/rsetl/record"

// SlotsUnder are the slots of a path and of all fields below it. Call it when the table is
// complete: in a Maker, not in Build.
func SlotsUnder(t *record.Table, path string) []int {
	var out []int
	for i, n := range t.Names() {
		if record.Under(n, path) {
			out = append(out, i)
		}
	}
	return out
}

// Overwriter clears what lies below fields that get a value of their own: a record can't have both `a` and `a.b`.
// Make it in a Maker.
type Overwriter struct {
	slots [][]int
	names []string
}

// NewOverwriter prepares for fields, by number.
func NewOverwriter(t *record.Table, fields []string) *Overwriter {
	o := &Overwriter{names: fields}
	for _, f := range fields {
		var below []int
		for _, s := range SlotsUnder(t, f) {
			if t.Name(s) != f {
				below = append(below, s)
			}
		}
		o.slots = append(o.slots, below)
	}
	return o
}

// Clear takes away what lies below field k in record i.
func (o *Overwriter) Clear(b *record.Batch, i, k int) {
	for _, s := range o.slots[k] {
		b.Set(i, s, record.Value{})
	}
	if b.HasOverflow(i) {
		b.UnsetOverflow(i, func(name []byte) bool { return len(name) > len(o.names[k]) && record.Under(name, o.names[k]) })
	}
}
