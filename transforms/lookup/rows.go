package lookup

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/rsetl/rsetl/record"
)

// rows are a file's rows by key, in little more memory than the file: one piece of bytes, and an open-addressed index of it.
//
// A row is the length of its key, the key, twice the number of its cells (plus one where it is a single value), their columns,
// the length of their values, and these as record.AppendValue writes them; all numbers are varints.
type rows struct {
	data  []byte
	at    []int    // where each row begins
	index []uint32 // number of row + 1; 0 is free
	seed  maphash.Seed
	b     *record.Batch // what values are made in; nil once all are there
	vals  []byte
}

func newRows() rows {
	return rows{seed: maphash.MakeSeed(), b: record.NewBatch(record.NewTable())}
}

// put adds a row; a later one of the same key takes its place.
func (r *rows) put(key string, one row) {
	at := len(r.data)
	r.data = binary.AppendUvarint(r.data, uint64(len(key)))
	r.data = append(r.data, key...)
	n := uint64(len(one.cells)) << 1
	if one.single {
		n |= 1
	}
	r.data = binary.AppendUvarint(r.data, n)
	r.b.Reset()
	r.vals = r.vals[:0]
	for i := range one.cells {
		r.data = binary.AppendUvarint(r.data, uint64(one.cells[i].column))
		r.vals = r.b.AppendValue(r.vals, one.cells[i].value(r.b))
	}
	r.data = binary.AppendUvarint(r.data, uint64(len(r.vals)))
	r.data = append(r.data, r.vals...)
	if 4*(len(r.at)+1) > 3*len(r.index) {
		r.grow()
	}
	i := r.slot([]byte(key))
	if n := r.index[i]; n > 0 {
		r.at[n-1] = at
		return
	}
	r.at = append(r.at, at)
	r.index[i] = uint32(len(r.at))
}

// done gives back what only putting needs.
func (r *rows) done() {
	r.b, r.vals = nil, nil
	if cap(r.data)-len(r.data) > len(r.data)/8 {
		r.data = append(make([]byte, 0, len(r.data)), r.data...)
	}
}

func (r *rows) grow() {
	r.index = make([]uint32, max(16, 2*len(r.index)))
	for n, at := range r.at {
		key, _ := text(r.data[at:])
		r.index[r.slot(key)] = uint32(n + 1)
	}
}

// slot is where the key's row stands in the index, or would.
func (r *rows) slot(key []byte) int {
	mask := uint64(len(r.index) - 1)
	i := maphash.Bytes(r.seed, key) & mask
	for ; r.index[i] != 0; i = (i + 1) & mask {
		if k, _ := text(r.data[r.at[r.index[i]-1]:]); string(k) == string(key) {
			break
		}
	}
	return int(i)
}

func text(p []byte) (t, rest []byte) {
	n, w := binary.Uvarint(p)
	return p[w : w+int(n)], p[w+int(n):]
}

// found is one row: columns are the cells' as varints, values what record.DecodeValues takes.
type found struct {
	columns, values []byte
	n               int
	single          bool
}

// get gives the row of a key.
func (r *rows) get(key []byte) (f found, ok bool) {
	if len(r.at) == 0 {
		return f, false
	}
	n := r.index[r.slot(key)]
	if n == 0 {
		return f, false
	}
	_, rest := text(r.data[r.at[n-1]:])
	head, w := binary.Uvarint(rest)
	f.n, f.single, f.columns = int(head>>1), head&1 == 1, rest[w:]
	rest = f.columns
	for range f.n {
		_, w := binary.Uvarint(rest)
		rest = rest[w:]
	}
	f.values, _ = text(rest)
	return f, true
}
