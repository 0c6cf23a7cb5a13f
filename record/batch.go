package record

import (
	"math/big"
)

// Batch is some hundred records of one split. One goroutine owns it at a time:
// the source that fills it, the worker that runs the steps, then the lane's
// ordered end, which resets it for the source. Nothing made from it may be kept
// past that.
type Batch struct {
	Table *Table
	Split *Split
	// Start and End are the split's positions before and after this batch; at
	// End reading goes on after a restart.
	Start, End Position

	Buf   []byte  // constants, block, arena; append to it, never change what is there
	Elems []Value // elements of arrays and maps, constants first

	// Sel are the numbers of the records that are still alive, ascending.
	// Steps compact it in place.
	Sel []int32
	// Fails are the records that failed since the runner last looked; they are
	// no longer in Sel once the step that failed them has returned.
	Fails []Failure
	// Made and Absorbed count records that steps created and took in.
	Filtered, Made, Absorbed int

	Size  int // the bytes of the budget that this batch holds; the runner's
	Owner any // the runner's own, kept by Reset

	n     int
	width int
	slots []Value
	pos   []Position
	raw   []Value
	over  []overflow
	head  []int32 // per record: 1 + number of the first overflow field, 0 for none
	tail  []int32
}

// Failure is one record that a step, or the source, could not handle.
type Failure struct {
	Rec    int32
	Reason string
}

type overflow struct {
	name Value
	val  Value
	next int32 // 1 + number of the next, 0 at the end
}

// NewBatch makes an empty batch and freezes the table.
func NewBatch(t *Table) *Batch {
	if !t.frozen { // batches of a plan in use are made by several goroutines
		t.frozen = true
	}
	b := &Batch{Table: t, width: len(t.names)}
	b.Buf = append(b.Buf, t.consts...)
	b.Elems = append(b.Elems, t.elems...)
	return b
}

// Reset empties the batch for use with another block. Memory is kept.
func (b *Batch) Reset() {
	b.Split, b.Start, b.End = nil, Position{}, Position{}
	b.Buf = b.Buf[:len(b.Table.consts)]
	b.Elems = b.Elems[:len(b.Table.elems)]
	b.Sel, b.pos, b.raw, b.slots = b.Sel[:0], b.pos[:0], b.raw[:0], b.slots[:0]
	clear(b.Fails)
	b.Fails = b.Fails[:0]
	b.over, b.head, b.tail = b.over[:0], b.head[:0], b.tail[:0]
	b.Filtered, b.Made, b.Absorbed, b.Size, b.n = 0, 0, 0, 0, 0
}

// Cap is the memory in bytes that the batch keeps when it is reset.
func (b *Batch) Cap() int {
	return cap(b.Buf) + 16*(cap(b.slots)+cap(b.Elems)+cap(b.pos)+cap(b.raw)) + 4*(cap(b.Sel)+cap(b.head)+cap(b.tail)) + 40*cap(b.over)
}

// Len is the number of records that were added, dead and filtered ones included.
func (b *Batch) Len() int { return b.n }

// Add appends a record at that position whose raw form (for dead letters) is
// raw, and returns its number. All its fields are Missing.
func (b *Batch) Add(pos Position, raw Value) int {
	i := b.add(pos, raw)
	b.Sel = append(b.Sel, int32(i))
	return i
}

func (b *Batch) add(pos Position, raw Value) int {
	i := b.n
	b.n++
	b.pos = append(b.pos, pos)
	b.raw = append(b.raw, raw)
	n := len(b.slots)
	if n+b.width <= cap(b.slots) {
		b.slots = b.slots[:n+b.width]
		clear(b.slots[n:])
	} else {
		b.slots = append(b.slots, make([]Value, b.width)...)
	}
	return i
}

// Clone appends a record like i, at its position, and returns its number. Sel is the caller's to change.
func (b *Batch) Clone(i int) int {
	j := b.add(b.pos[i], b.raw[i])
	copy(b.Row(j), b.Row(i))
	if b.HasOverflow(i) {
		for name, v := range b.Overflow(i) {
			b.AddOverflow(j, name, v)
		}
	}
	return j
}

// SetPos gives record i another position: for steps that make several records of one.
func (b *Batch) SetPos(i int, p Position) { b.pos[i] = p }

// Row is the slots of record i. It is valid until the next Add.
func (b *Batch) Row(i int) []Value { return b.slots[i*b.width : (i+1)*b.width : (i+1)*b.width] }

func (b *Batch) Pos(i int) Position { return b.pos[i] }

// Raw is the record as the source read it.
func (b *Batch) Raw(i int) Value { return b.raw[i] }

// SetRaw changes the raw form.
func (b *Batch) SetRaw(i int, v Value) { b.raw[i] = v }

func (b *Batch) Get(i, slot int) Value    { return b.slots[i*b.width+slot] }
func (b *Batch) Set(i, slot int, v Value) { b.slots[i*b.width+slot] = v }

// Bytes is the text of a String or Bytes, or a big Decimal's number. It must not be changed
// and is valid until the batch is reset, also when Buf grows meanwhile.
func (b *Batch) Bytes(v Value) []byte { return b.Buf[v.x : v.x+uint64(v.n) : v.x+uint64(v.n)] }

// Items are the elements of an Array, or the keys and values of a Map in turn.
func (b *Batch) Items(v Value) []Value {
	n := int(v.n)
	if v.kind == Map {
		n *= 2
	}
	return b.Elems[v.Off() : v.Off()+n : v.Off()+n]
}

// PutBytes copies p into the arena.
func (b *Batch) PutBytes(p []byte) Value {
	off := len(b.Buf)
	b.Buf = append(b.Buf, p...)
	return MakeRef(String, off, len(p))
}

// PutString copies s into the arena.
func (b *Batch) PutString(s string) Value {
	off := len(b.Buf)
	b.Buf = append(b.Buf, s...)
	return MakeRef(String, off, len(s))
}

// Since is the text appended to Buf since it had the length off.
func (b *Batch) Since(off int) Value { return MakeRef(String, off, len(b.Buf)-off) }

// PutItems copies the elements of an Array, or the keys and values of a Map.
func (b *Batch) PutItems(k Kind, vs []Value) Value {
	off := len(b.Elems)
	b.Elems = append(b.Elems, vs...)
	n := len(vs)
	if k == Map {
		n /= 2
	}
	return MakeRef(k, off, n)
}

// BigDecimal makes the decimal unscaled / 10^scale of any size.
func (b *Batch) BigDecimal(unscaled *big.Int, scale int) Value {
	if unscaled.IsInt64() {
		return MakeDecimal(unscaled.Int64(), scale)
	}
	off := len(b.Buf)
	b.Buf = appendTwos(b.Buf, unscaled)
	return Value{kind: Decimal, x: uint64(off), n: uint32(len(b.Buf) - off), aux: uint16(scale)}
}

// Unscaled is a Decimal's unscaled value.
func (b *Batch) Unscaled(v Value) *big.Int {
	if !v.IsBig() {
		return big.NewInt(v.Int())
	}
	return fromTwos(b.Bytes(v))
}

// Fail marks record i as failed. Only the step (or source) that owns the batch
// calls it, and takes i out of Sel itself; Each does both.
func (b *Batch) Fail(i int, reason string) {
	b.Fails = append(b.Fails, Failure{int32(i), reason})
}

// Outcome is what a step decided about one record.
type Outcome uint8

const (
	Keep   Outcome = iota
	Drop           // filtered: counted, not a failure
	Failed         // Fail was called
	Gone           // absorbed or otherwise accounted for by the step
)

// Each runs f over the living records in order and takes those out that it doesn't keep.
func (b *Batch) Each(f func(i int) Outcome) {
	keep := b.Sel[:0]
	for _, i := range b.Sel {
		switch f(int(i)) {
		case Keep:
			keep = append(keep, i)
		case Drop:
			b.Filtered++
		}
	}
	b.Sel = keep
}

// FailRecord takes record i, the last one added, out of Sel and marks it as failed:
// for sources, whose records fail before any step.
func (b *Batch) FailRecord(i int, reason string) {
	if n := len(b.Sel); n > 0 && int(b.Sel[n-1]) == i {
		b.Sel = b.Sel[:n-1]
	}
	b.Fail(i, reason)
}

func appendTwos(dst []byte, x *big.Int) []byte {
	if x.Sign() >= 0 {
		p := x.Bytes()
		if len(p) == 0 || p[0]&0x80 != 0 {
			dst = append(dst, 0)
		}
		return append(dst, p...)
	}
	n := uint(x.BitLen()/8 + 1)
	t := new(big.Int).Lsh(big.NewInt(1), 8*n)
	return append(dst, t.Add(t, x).Bytes()...)
}

func fromTwos(p []byte) *big.Int {
	x := new(big.Int).SetBytes(p)
	if len(p) > 0 && p[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(p))))
	}
	return x
}
