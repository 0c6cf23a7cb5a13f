// Package record holds the unit of work: values, records and batches.
//
// A Batch owns one growing buffer: the plan's constants, then the block that the
// source read, then what steps append (the arena). A Value is 16 bytes and free
// of pointers: a kind, and a number or an offset and a length into that buffer.
package record

import "math"

// Kind is the run-time type of a Value. The names follow Flink SQL's types.
type Kind uint8

const (
	Missing  Kind = iota // the record has no such field; NULL to expressions, not shipped
	Null                 // the field is there and NULL
	Bool                 // BOOLEAN
	Int                  // all integer types: 64 bits, signed
	Float                // FLOAT and DOUBLE: 64 bits
	Decimal              // DECIMAL: see MakeDecimal
	String               // UTF-8 text
	Bytes                // VARBINARY
	Date                 // days since 1970-01-01
	Clock                // TIME: nanoseconds since midnight
	Time                 // TIMESTAMP: an instant in UTC, seconds and nanoseconds
	Months               // INTERVAL YEAR TO MONTH: months
	Duration             // INTERVAL DAY TO SECOND: nanoseconds
	Array                // n values in Batch.Elems
	Map                  // n pairs, key before value, in Batch.Elems
)

var kindNames = [...]string{"missing", "null", "boolean", "bigint", "double", "decimal", "string",
	"bytes", "date", "time", "timestamp", "interval month", "interval second", "array", "map"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Value is one field of one record. The zero Value is Missing. What a String,
// Bytes, big Decimal, Array or Map refers to lives in the Batch that the value
// was made for, and is valid until that batch is reset.
type Value struct {
	x    uint64 // the number, or the offset of the first byte (element)
	n    uint32 // length in bytes (Array: elements, Map: pairs); Time: nanoseconds
	aux  uint16 // Decimal: scale; Time, Clock: digits of the fraction to show
	kind Kind
}

func (v Value) Kind() Kind { return v.kind }

// IsNull tells whether the value is Missing or Null: what SQL calls NULL.
func (v Value) IsNull() bool { return v.kind <= Null }

func MakeNull() Value { return Value{kind: Null} }

func MakeBool(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.x = 1
	}
	return v
}

func MakeInt(i int64) Value     { return Value{kind: Int, x: uint64(i)} }
func MakeFloat(f float64) Value { return Value{kind: Float, x: math.Float64bits(f)} }
func MakeDate(days int64) Value { return Value{kind: Date, x: uint64(days)} }
func MakeMonths(m int64) Value  { return Value{kind: Months, x: uint64(m)} }

// MakeDuration makes an interval of ns nanoseconds.
func MakeDuration(ns int64) Value { return Value{kind: Duration, x: uint64(ns)} }

// MakeClock makes a time of day, ns nanoseconds after midnight, shown with digits (0 to 9) of fraction.
func MakeClock(ns int64, digits int) Value {
	return Value{kind: Clock, x: uint64(ns), aux: uint16(digits)}
}

// MakeTime makes an instant: sec seconds since 1970 in UTC and nsec (0 to 999,999,999)
// nanoseconds after it, shown with digits (0 to 9) of fraction.
func MakeTime(sec int64, nsec uint32, digits int) Value {
	return Value{kind: Time, x: uint64(sec), n: nsec, aux: uint16(digits)}
}

// MakeDecimal makes a decimal whose unscaled value fits 64 bits: unscaled / 10^scale.
// Larger ones are made by Batch.BigDecimal.
func MakeDecimal(unscaled int64, scale int) Value {
	return Value{kind: Decimal, x: uint64(unscaled), aux: uint16(scale)}
}

func (v Value) Bool() bool     { return v.x != 0 }
func (v Value) Int() int64     { return int64(v.x) } // Int, Date, Clock, Months, Duration, small Decimal (unscaled)
func (v Value) Float() float64 { return math.Float64frombits(v.x) }
func (v Value) Sec() int64     { return int64(v.x) }
func (v Value) Nsec() uint32   { return v.n }

// Digits is how many digits of fraction a Time or Clock shows.
func (v Value) Digits() int { return int(v.aux) }

// Scale is a Decimal's number of digits after the point.
func (v Value) Scale() int { return int(v.aux) }

// IsBig tells whether a Decimal's unscaled value is in the batch's buffer
// (big-endian two's complement, Batch.Bytes gives it) instead of in Int.
func (v Value) IsBig() bool { return v.kind == Decimal && v.n != 0 }

// Len is the length in bytes of a String or Bytes, the number of elements of an Array and of pairs of a Map.
func (v Value) Len() int { return int(v.n) }

// Off is the offset of a String's or Bytes' first byte in Batch.Buf, or of the
// first element of an Array or Map in Batch.Elems.
func (v Value) Off() int { return int(v.x) }

// MakeRef makes a String, Bytes, Array or Map value over what is already in the batch:
// off and n as Off and Len give them.
func MakeRef(k Kind, off, n int) Value { return Value{kind: k, x: uint64(off), n: uint32(n)} }

// As returns the same reference under another kind: String as Bytes and back.
func (v Value) As(k Kind) Value { v.kind = k; return v }

// Sub is the part [from, to) in bytes of a String or Bytes, without copying.
func (v Value) Sub(from, to int) Value {
	v.x += uint64(from)
	v.n = uint32(to - from)
	return v
}

// Words are a value that refers to nothing as two numbers, for memory that outlives a batch; FromWords makes it again.
func (v Value) Words() (x, rest uint64) {
	return v.x, uint64(v.n) | uint64(v.aux)<<32 | uint64(v.kind)<<48
}

// FromWords is the value that Words took apart.
func FromWords(x, rest uint64) Value {
	return Value{x: x, n: uint32(rest), aux: uint16(rest >> 32), kind: Kind(rest >> 48)}
}
