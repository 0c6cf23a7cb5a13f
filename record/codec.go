package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The binary form of a record, for the outbox: a version byte, the number of fields, then
// each field's name and value. Numbers are varints (signed ones zigzag), texts have their length
// before them, a value begins with its kind. It describes itself: a table with other
// slots can read it. What is written stays readable: a change needs another version.
//
//	record = version(1) count { name value }
//	name   = length bytes
//	value  = kind ...
//	  Null -; Bool byte; Int, Date, Months, Duration signed; Float 8 bytes little-endian
//	  Decimal scale signed | Decimal scale+bigScale length bytes (big-endian two's complement)
//	  String, Bytes length bytes; Clock digits signed; Time digits nanoseconds signed(seconds)
//	  Array count { value }; Map pairs { value value }

const (
	codecVersion = 1
	bigScale     = 1 << 16 // added to the scale of a Decimal that is a text of bytes
	maxDepth     = 1000
)

// AppendRecord appends record i in binary form: all fields that are not Missing, metadata
// included; not its position and raw form.
func AppendRecord(dst []byte, b *Batch, i int) []byte {
	dst = append(dst, codecVersion)
	n := 0
	row := b.Row(i)
	for _, v := range row {
		if v.kind != Missing {
			n++
		}
	}
	for range b.Overflow(i) {
		n++
	}
	dst = binary.AppendUvarint(dst, uint64(n))
	for s, v := range row {
		if v.kind != Missing {
			dst = binary.AppendUvarint(dst, uint64(len(b.Table.names[s])))
			dst = append(dst, b.Table.names[s]...)
			dst = b.appendBinary(dst, v)
		}
	}
	for name, v := range b.Overflow(i) {
		dst = appendText(dst, b.Bytes(name))
		dst = b.appendBinary(dst, v)
	}
	return dst
}

func appendText(dst, p []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

func (b *Batch) appendBinary(dst []byte, v Value) []byte {
	if v.kind == Missing { // in an array
		v.kind = Null
	}
	dst = append(dst, byte(v.kind))
	switch v.kind {
	case Bool:
		return append(dst, byte(v.x))
	case Int, Date, Months, Duration:
		return binary.AppendVarint(dst, v.Int())
	case Float:
		return binary.LittleEndian.AppendUint64(dst, v.x)
	case Decimal:
		if v.IsBig() {
			dst = binary.AppendUvarint(dst, bigScale+uint64(v.aux))
			return appendText(dst, b.Bytes(v))
		}
		return binary.AppendVarint(binary.AppendUvarint(dst, uint64(v.aux)), v.Int())
	case String, Bytes:
		return appendText(dst, b.Bytes(v))
	case Clock:
		return binary.AppendVarint(append(dst, byte(min(v.aux, 9))), v.Int())
	case Time:
		dst = append(dst, byte(min(v.aux, 9)))
		return binary.AppendVarint(binary.AppendUvarint(dst, uint64(v.n)), v.Sec())
	case Array, Map:
		dst = binary.AppendUvarint(dst, uint64(v.n))
		for _, e := range b.Items(v) {
			dst = b.appendBinary(dst, e)
		}
	}
	return dst
}

// ErrCodec: the bytes are no record in binary form.
var ErrCodec = errors.New("not an encoded record")

// DecodeRecord adds the record that AppendRecord wrote to b, at that position, and returns its
// number. After an error b has no record more, but may have grown.
func DecodeRecord(b *Batch, data []byte, pos Position) (i int, err error) {
	d := decoder{b: b, shift: len(b.Buf), p: data, off: 1}
	switch {
	case len(data) == 0:
		return 0, fmt.Errorf("%w: it is empty", ErrCodec)
	case data[0] != codecVersion:
		return 0, fmt.Errorf("%w: version %d, this rsetl knows %d", ErrCodec, data[0], codecVersion)
	}
	b.Buf = append(b.Buf, data...) // texts refer to this copy
	n := d.count(2)
	var room [64]Value
	fields := room[:0]
	for range n {
		name := d.text(String)
		fields = append(fields, name, d.value(0))
		if d.bad {
			break
		}
	}
	if d.bad || d.off != len(data) {
		return 0, fmt.Errorf("%w: damaged at byte %d of %d", ErrCodec, d.off, len(data))
	}
	i = b.Add(pos, Value{})
	var seen map[string]bool
	if len(fields) > 64 {
		seen = map[string]bool{}
	}
	for k := 0; k < len(fields); k += 2 {
		key := b.Bytes(fields[k])
		s := b.Table.FindBytes(key)
		switch {
		case s >= 0:
			b.Set(i, s, fields[k+1])
		case seen == nil:
			b.SetOverflow(i, fields[k], fields[k+1])
		case seen[string(key)]:
		default:
			seen[string(key)] = true
			b.AddOverflow(i, fields[k], fields[k+1])
		}
	}
	return i, nil
}

// decoder reads p, of which b.Buf has a copy at shift.
type decoder struct {
	b     *Batch
	shift int
	p     []byte
	off   int
	bad   bool
}

func (d *decoder) fail() { d.bad = true }

func (d *decoder) uvarint() uint64 {
	x, n := binary.Uvarint(d.p[d.off:])
	if n <= 0 || d.bad {
		d.fail()
		return 0
	}
	d.off += n
	return x
}

func (d *decoder) varint() int64 {
	x := d.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

// count reads a number of things of which each takes at least size bytes.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64((len(d.p)-d.off)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) text(k Kind) Value {
	n := d.count(1)
	v := MakeRef(k, d.shift+d.off, n)
	d.off += n
	return v
}

// below reads a number that must be at most most.
func (d *decoder) below(most uint64) uint64 {
	x := d.uvarint()
	if x > most {
		d.fail()
		return 0
	}
	return x
}

func (d *decoder) value(depth int) Value {
	if d.bad || d.off >= len(d.p) || depth > maxDepth {
		d.fail()
		return Value{}
	}
	k := Kind(d.p[d.off])
	d.off++
	switch k {
	case Null:
		return MakeNull()
	case Bool:
		return MakeBool(d.below(1) == 1)
	case Int, Date, Months, Duration:
		return Value{kind: k, x: uint64(d.varint())}
	case Float:
		if len(d.p)-d.off < 8 {
			d.fail()
			return Value{}
		}
		f := binary.LittleEndian.Uint64(d.p[d.off:])
		d.off += 8
		return MakeFloat(math.Float64frombits(f))
	case Decimal:
		scale := d.below(bigScale + math.MaxUint16)
		if scale < bigScale {
			return MakeDecimal(d.varint(), int(scale))
		}
		v := d.text(Decimal)
		if v.n == 0 {
			d.fail()
		}
		v.aux = uint16(scale - bigScale)
		return v
	case String, Bytes:
		return d.text(k)
	case Clock:
		digits := d.below(9)
		return MakeClock(d.varint(), int(digits))
	case Time:
		digits := d.below(9)
		ns := d.below(999_999_999)
		return MakeTime(d.varint(), uint32(ns), int(digits))
	case Array, Map:
		n := d.count(1 + int(k-Array))
		if k == Map {
			n *= 2
		}
		// The elements of an array are together: room for them first, then the elements of theirs.
		at := len(d.b.Elems)
		d.b.Elems = append(d.b.Elems, make([]Value, n)...)
		for i := 0; i < n && !d.bad; i++ {
			v := d.value(depth + 1)
			d.b.Elems[at+i] = v
		}
		if k == Map {
			n /= 2
		}
		return MakeRef(k, at, n)
	}
	d.fail()
	return Value{}
}

// AppendValue appends one value as AppendRecord writes it; Missing as Null.
func (b *Batch) AppendValue(dst []byte, v Value) []byte { return b.appendBinary(dst, v) }

// DecodeValues appends to vs the n values that AppendValue wrote one after the other; they are all of data. What they refer
// to is copied into b.
func DecodeValues(b *Batch, data []byte, n int, vs []Value) ([]Value, error) {
	d := decoder{b: b, shift: len(b.Buf), p: data}
	b.Buf = append(b.Buf, data...)
	for range n {
		vs = append(vs, d.value(0))
	}
	if d.bad || d.off != len(data) {
		return vs, fmt.Errorf("%w: damaged values", ErrCodec)
	}
	return vs, nil
}
