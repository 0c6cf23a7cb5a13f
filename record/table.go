package record

import (
	"fmt"
	"strings"
)

// Table is a plan's field table: every field the plan names has a slot. It also
// owns the plan's constants, which every batch's buffer begins with, so that a
// constant's Value is valid in each of them. It is filled while the plan is
// built and frozen by the first NewBatch; after that it is read-only and shared.
type Table struct {
	names  []string
	index  map[string]int
	consts []byte
	elems  []Value
	frozen bool
}

func NewTable() *Table { return &Table{index: map[string]int{}} }

// Slot finds the slot of the field with that dotted path, adding it where it is new.
func (t *Table) Slot(name string) int {
	if i, ok := t.index[name]; ok {
		return i
	}
	if t.frozen {
		panic(fmt.Sprintf("record: field %q added to a frozen table", name))
	}
	i := len(t.names)
	t.names = append(t.names, name)
	t.index[name] = i
	return i
}

// Find finds the slot of a field, -1 where the plan doesn't name it.
func (t *Table) Find(name string) int {
	if i, ok := t.index[name]; ok {
		return i
	}
	return -1
}

// FindBytes is Find without a conversion; for keys that come with the data.
func (t *Table) FindBytes(name []byte) int {
	if i, ok := t.index[string(name)]; ok {
		return i
	}
	return -1
}

func (t *Table) Name(slot int) string { return t.names[slot] }
func (t *Table) Len() int             { return len(t.names) }

// Names are all fields in slot order. The caller must not change it.
func (t *Table) Names() []string { return t.names }

// Const stores a constant text and returns its value, valid in every batch of this table.
func (t *Table) Const(s string) Value {
	if t.frozen {
		panic("record: constant added to a frozen table")
	}
	off := len(t.consts)
	t.consts = append(t.consts, s...)
	return MakeRef(String, off, len(s))
}

// ConstElems stores a constant array's or map's elements and returns the offset of the first.
func (t *Table) ConstElems(vs []Value) int {
	if t.frozen {
		panic("record: constant added to a frozen table")
	}
	off := len(t.elems)
	t.elems = append(t.elems, vs...)
	return off
}

// metaNames are the metadata that sources give.
var metaNames = map[string]bool{"@path": true, "@offset": true, "@split": true, "@received": true, "@source": true, "@host": true,
	"@topic": true, "@broker": true, "@queue": true, "@keys": true, "@tags": true, "@properties": true, "@born": true, "@stored": true, "@branch": true}

// IsMeta tells whether a field is metadata (`@path`, `@offset`, ...): usable in
// expressions, never shipped. `@timestamp`, and other names with an @ that come with
// the data, are ordinary fields.
func IsMeta(name string) bool {
	if len(name) == 0 || name[0] != '@' {
		return false
	}
	if i := strings.IndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	return metaNames[name]
}
