package expr

import (
	"math"

	"github.com/rsetl/rsetl/record"
)

// Key reads the fields that records are grouped by. Equal values have equal bytes: an object is put together of the fields
// below it, times and zeros are brought to one form, and so are, where the type isn't known, whole numbers. It is one
// goroutine's; Own copies it for another.
type Key struct {
	env    Env
	fields []keyField
}

type keyField struct {
	slot  int
	f     EvalFunc
	whole bool // whole floats count as integers
}

// NewKey makes a Key of the fields paths.
func NewKey(c *Compiler, paths []string) Key {
	var k Key
	for _, p := range paths {
		known := c.TypeOf != nil && c.TypeOf(p).Kind != TAny
		k.fields = append(k.fields, keyField{c.Table.Slot(p), fieldFunc(c.Table, p), !known})
	}
	return k
}

// Own is a copy with an environment of its own.
func (k *Key) Own() Key { return Key{fields: k.fields} }

// Len is the number of fields.
func (k *Key) Len() int { return len(k.fields) }

// Append appends record i's key, the values one after the other as AppendValue writes them.
func (k *Key) Append(dst []byte, b *record.Batch, i int) []byte {
	for n := range k.fields {
		dst = b.AppendValue(dst, k.Value(b, i, n))
	}
	return dst
}

// Value is field n of record i's key.
func (k *Key) Value(b *record.Batch, i, n int) record.Value {
	f := &k.fields[n]
	v := b.Get(i, f.slot)
	switch v.Kind() {
	case record.Missing:
		k.env.B = b
		return f.f(&k.env, i)
	case record.Float:
		x := v.Float()
		if x == 0 {
			v, x = record.MakeFloat(0), 0
		}
		if f.whole && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return record.MakeInt(int64(x))
		}
	case record.Time:
		if p := v.Digits(); p > 0 {
			nanos := v.Nsec()
			q := 9
			for q > 0 && nanos%10 == 0 {
				nanos, q = nanos/10, q-1
			}
			if nanos == 0 {
				q = 0
			}
			if q < p {
				return record.MakeTime(v.Sec(), v.Nsec(), q)
			}
		}
	}
	return v
}
