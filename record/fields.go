package record

import (
	"bytes"
	"iter"
)

// The overflow: fields whose names the plan doesn't know, in the order they came.

// SetNamed sets the field whose name is the text of name: in its slot where the
// table has one, else in the overflow, replacing an earlier value there.
func (b *Batch) SetNamed(i int, name Value, v Value) {
	key := b.Bytes(name)
	if s := b.Table.FindBytes(key); s >= 0 {
		b.Set(i, s, v)
		return
	}
	b.SetOverflow(i, name, v)
}

// SetOverflow is SetNamed for a name that is known to have no slot.
func (b *Batch) SetOverflow(i int, name Value, v Value) {
	if f := b.findOverflow(i, b.Bytes(name)); f != nil {
		f.val = v
		return
	}
	b.AddOverflow(i, name, v)
}

// AddOverflow appends a field to the overflow without looking whether it is
// there already: for parsers that know their names to be distinct.
func (b *Batch) AddOverflow(i int, name Value, v Value) {
	for len(b.head) < b.n {
		b.head = append(b.head, 0)
		b.tail = append(b.tail, 0)
	}
	b.over = append(b.over, overflow{name: name, val: v})
	at := int32(len(b.over))
	if b.head[i] == 0 {
		b.head[i] = at
	} else {
		b.over[b.tail[i]-1].next = at
	}
	b.tail[i] = at
}

func (b *Batch) findOverflow(i int, key []byte) *overflow {
	if i >= len(b.head) {
		return nil
	}
	for at := b.head[i]; at != 0; at = b.over[at-1].next {
		if f := &b.over[at-1]; bytes.Equal(b.Bytes(f.name), key) {
			return f
		}
	}
	return nil
}

// HasOverflow tells whether record i has fields without a slot (set or unset).
func (b *Batch) HasOverflow(i int) bool { return i < len(b.head) && b.head[i] != 0 }

// Overflow yields name and value of record i's fields without a slot, in order.
func (b *Batch) Overflow(i int) iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if i >= len(b.head) {
			return
		}
		for at := b.head[i]; at != 0; at = b.over[at-1].next {
			if f := b.over[at-1]; f.val.kind != Missing && !yield(f.name, f.val) {
				return
			}
		}
	}
}

// OverflowNames yields the names of record i's fields without a slot, those that were unset included.
func (b *Batch) OverflowNames(i int) iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if i >= len(b.head) {
			return
		}
		for at := b.head[i]; at != 0; at = b.over[at-1].next {
			if !yield(b.over[at-1].name) {
				return
			}
		}
	}
}

// Lookup gives the field of that name, Missing where there is none.
func (b *Batch) Lookup(i int, name string) Value {
	if s := b.Table.Find(name); s >= 0 {
		return b.Get(i, s)
	}
	if f := b.findOverflow(i, []byte(name)); f != nil {
		return f.val
	}
	return Value{}
}

// Under tells whether the dotted path name is path itself or lies below it.
func Under[T ~string | ~[]byte](name T, path string) bool {
	return len(name) >= len(path) && string(name[:len(path)]) == path && (len(name) == len(path) || name[len(path)] == '.')
}

// UnsetOverflow removes those of record i's overflow fields that match selects.
func (b *Batch) UnsetOverflow(i int, match func(name []byte) bool) {
	if i >= len(b.head) {
		return
	}
	for at := b.head[i]; at != 0; at = b.over[at-1].next {
		if f := &b.over[at-1]; match(b.Bytes(f.name)) {
			f.val = Value{}
		}
	}
}

// RenameOverflow gives record i's overflow fields that rename accepts another name, all at once.
func (b *Batch) RenameOverflow(i int, rename func(name []byte) (string, bool)) {
	if i >= len(b.head) {
		return
	}
	type moved struct {
		to  string
		val Value
	}
	var moves []moved
	for at := b.head[i]; at != 0; at = b.over[at-1].next {
		f := &b.over[at-1]
		if f.val.kind == Missing {
			continue
		}
		if to, ok := rename(b.Bytes(f.name)); ok {
			moves = append(moves, moved{to, f.val})
			f.val = Value{}
		}
	}
	for _, m := range moves {
		b.SetNamed(i, b.PutString(m.to), m.val)
	}
}
