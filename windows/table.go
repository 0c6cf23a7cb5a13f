package windows

import (
	"bytes"
	"hash/maphash"

	"github.com/rsetl/rsetl/expr"
)

// table holds groups: rows of words by key. A row's first word says where its key is, the second holds flags and the
// number of firings; the aggregates' words follow. Rows keep their numbers until reset; none is taken out alone.
type table struct {
	width int
	index []uint64 // open addressing: the hash's upper half, and the row's number + 1; 0 is free
	rows  [][]uint64
	n     int
	keys  [][]byte // chunks
	mem   expr.Mem
	dirty []uint32 // rows to be stored
	fresh []uint32 // rows that have changed since they fired; used where windows fire more than once

	encoded int // about how long a row's entry in the store is
}

const (
	chunkShift = 8
	chunkRows  = 1 << chunkShift
	firstRows  = 8
	firstKeys  = 256
	mostKeys   = 256 << 10
	maxKey     = 1<<24 - 1

	headWords = 2

	flagDirty  = 1 << 0 // in dirty
	flagStored = 1 << 1 // the store has it
	flagFresh  = 1 << 2 // in fresh
	flagGone   = 1 << 3 // fired for good
	flagPart   = 1 << 4 // partial: what came since; the store may have what was before
	firingBit  = 8      // above: the number of firings
)

func (t *table) row(r uint32) []uint64 {
	at := int(r&(chunkRows-1)) * t.width
	return t.rows[r>>chunkShift][at : at+t.width : at+t.width]
}

func (t *table) key(row []uint64) []byte {
	w := row[0]
	off := w >> 24 & 0xfffff
	return t.keys[w>>44][off : off+w&maxKey]
}

// find gives the row of a key, making a zero one where there is none.
func (t *table) find(key []byte, hash uint64) (r uint32, made bool) {
	if 4*(t.n+1) > 3*len(t.index) {
		t.grow()
	}
	mask := uint64(len(t.index) - 1)
	tag := hash >> 32 << 32
	for i := hash & mask; ; i = (i + 1) & mask {
		e := t.index[i]
		if e == 0 {
			r = t.add(key)
			t.index[i] = tag | uint64(r+1)
			return r, true
		}
		if e>>32<<32 == tag {
			r = uint32(e) - 1
			if bytes.Equal(t.key(t.row(r)), key) {
				return r, false
			}
		}
	}
}

// lookup gives the row of a key, -1 where there is none.
func (t *table) lookup(key []byte, hash uint64) int {
	if t.n == 0 {
		return -1
	}
	mask := uint64(len(t.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := t.index[i]
		if e == 0 {
			return -1
		}
		if e>>32 == hash>>32 && bytes.Equal(t.key(t.row(uint32(e)-1)), key) {
			return int(uint32(e) - 1)
		}
	}
}

func (t *table) grow() { t.resize(max(16, 2*len(t.index))) }

// reserve makes room for n rows, so that the index doesn't grow step by step. n may be of the store: what is damaged takes no memory.
func (t *table) reserve(n int) {
	size := 16
	for n = min(n, 1<<22); 3*size < 4*n; {
		size *= 2
	}
	if size > len(t.index) {
		t.resize(size)
	}
}

func (t *table) resize(n int) {
	old := t.index
	t.index = make([]uint64, n)
	mask := uint64(len(t.index) - 1)
	for _, e := range old {
		if e == 0 {
			continue
		}
		// The lower half of the hash is not kept; the key gives it again.
		h := hashOf(t.key(t.row(uint32(e) - 1)))
		i := h & mask
		for t.index[i] != 0 {
			i = (i + 1) & mask
		}
		t.index[i] = e
	}
}

func (t *table) add(key []byte) uint32 {
	r := t.n
	t.n++
	switch {
	case r>>chunkShift == len(t.rows):
		n := chunkRows
		if r == 0 { // most slices of many have few rows
			n = firstRows
		}
		t.rows = append(t.rows, make([]uint64, n*t.width))
	case (r+1)*t.width > len(t.rows[0]) && r < chunkRows:
		t.rows[0] = append(t.rows[0], make([]uint64, len(t.rows[0]))...)
	}
	row := t.row(uint32(r))
	row[0] = t.store(key)
	return uint32(r)
}

func (t *table) store(key []byte) uint64 {
	last := len(t.keys) - 1
	if last < 0 || cap(t.keys[last])-len(t.keys[last]) < len(key) {
		size := firstKeys
		if last >= 0 {
			size = min(2*cap(t.keys[last]), mostKeys)
		}
		t.keys = append(t.keys, make([]byte, 0, max(size, len(key))))
		last++
	}
	off := len(t.keys[last])
	t.keys[last] = append(t.keys[last], key...)
	return uint64(last)<<44 | uint64(off)<<24 | uint64(len(key))
}

// reset empties the table and keeps its rows' memory.
func (t *table) reset() {
	clear(t.index)
	for i := range t.rows {
		if i<<chunkShift >= t.n {
			break
		}
		clear(t.rows[i])
	}
	if len(t.keys) > 0 {
		last := len(t.keys) - 1
		t.keys = append(t.keys[:0], t.keys[last][:0])
	}
	t.n, t.mem, t.encoded = 0, expr.Mem{}, 0
	t.dirty, t.fresh = t.dirty[:0], t.fresh[:0]
}

// bytes is about the memory that the table takes.
func (t *table) bytes() int {
	n := 8*cap(t.index) + 4*(cap(t.dirty)+cap(t.fresh)) + t.mem.Bytes()
	for _, c := range t.rows {
		n += 8 * len(c)
	}
	for _, k := range t.keys {
		n += cap(k)
	}
	// Lists and sets grow after they were made; how much is known of those that were stored last.
	return n + t.n*max(0, t.encoded-8*t.width)
}

var seed = maphash.MakeSeed()

func hashOf(key []byte) uint64 { return maphash.Bytes(seed, key) }
