package steps

import (
	"github.com/rsetl/rsetl/record"
)

// Found are the fields of one record that a parser finds in the data, put into the record together when all is read. It
// belongs to one step instance.
type Found struct {
	Names *Names
	// Arrays: a name that comes again makes an array of all its values; else the last counts.
	Arrays bool
	// Max bounds the fields of one record.
	Max int

	target string
	below  *Below
	b      *record.Batch
	rec    uint64
	list   []found
	more   []again
	vals   []record.Value
	path   []byte
	count  int
}

type found struct {
	name  *Name
	val   record.Value
	first int32 // 1 + number in more
	last  int32
}

type again struct {
	val  record.Value
	next int32
}

// NewFound prepares for fields below target; "" is the record itself. Make it in a Maker.
func NewFound(b *Build, target string, max int) *Found {
	f := &Found{target: target, Max: max}
	path := FieldName
	if target != "" {
		path = func(key []byte) string { return target + "." + string(key) }
		f.below = NewBelow(b.Table, target)
	}
	f.Names = NewNames(b.Table, b.Live, path)
	return f
}

// Batch is called before the records of a batch.
func (f *Found) Batch(b *record.Batch) {
	f.b = b
	f.Names.Batch(b)
}

// Begin is called before a record's fields.
func (f *Found) Begin() {
	f.rec++
	f.list, f.more, f.count = f.list[:0], f.more[:0], 0
	f.Names.Begin()
}

// Len is the number of fields that the record has so far.
func (f *Found) Len() int { return f.count }

// Live tells whether anything reads the field of a key, which then is the next to Add.
func (f *Found) Live(key []byte) bool { return f.Names.Find(key).Live }

// Add gives the record a field; false where it has too many.
func (f *Found) Add(key []byte, v record.Value) bool {
	if f.count++; f.count > f.Max {
		return false
	}
	n := f.Names.Find(key)
	if !n.Live {
		return true
	}
	if n.Seen != f.rec {
		n.Seen, n.At = f.rec, len(f.list)
		f.list = append(f.list, found{name: n, val: v})
		return true
	}
	x := &f.list[n.At]
	if !f.Arrays {
		x.val = v
		return true
	}
	f.more = append(f.more, again{val: v})
	at := int32(len(f.more))
	if x.first == 0 {
		x.first = at
	} else {
		f.more[x.last-1].next = at
	}
	x.last = at
	return true
}

// AddObject adds a Map's entries by their paths below key, nested ones too; other values as they are.
func (f *Found) AddObject(key []byte, v record.Value) bool {
	f.path = append(f.path[:0], key...)
	return f.object(v, 0)
}

func (f *Found) object(v record.Value, depth int) bool {
	if v.Kind() != record.Map || v.Len() == 0 || depth > 512 {
		return f.Add(f.path, v)
	}
	from := len(f.path)
	kv := f.b.Items(v)
	for k := 0; k+1 < len(kv); k += 2 {
		if f.path = f.path[:from]; from > 0 {
			f.path = append(f.path, '.')
		}
		f.path = f.b.AppendPlain(f.path, kv[k])
		if !f.object(kv[k+1], depth+1) {
			return false
		}
	}
	f.path = f.path[:from]
	return true
}

// Put gives record i what was added, in place of what the target had.
func (f *Found) Put(i int) {
	if f.below != nil && len(f.list) > 0 {
		f.below.Clear(f.b, i)
	}
	f.Names.Open(i)
	for k := range f.list {
		x := &f.list[k]
		v := x.val
		if x.first != 0 {
			f.vals = append(f.vals[:0], v)
			for at := x.first; at != 0; at = f.more[at-1].next {
				f.vals = append(f.vals, f.more[at-1].val)
			}
			v = f.b.PutItems(record.Array, f.vals)
		}
		f.Names.Put(i, x.name, v)
	}
}

// DeclareTarget declares fields that the data names, below target or in the record itself.
func DeclareTarget(d *Decl, target string) {
	if target == "" {
		d.WriteAny = true
		return
	}
	d.WriteUnder = append(d.WriteUnder, target)
}

// Text gives a field's text; the message, which begins with step, tells why there is none.
func Text(b *record.Batch, i, slot int, step string) (v record.Value, msg string) {
	v = b.Get(i, slot)
	switch v.Kind() {
	case record.String, record.Bytes:
		return v.As(record.String), ""
	case record.Missing, record.Null:
		return v, step + ": the field is missing"
	}
	return v, step + ": the field is no text but " + v.Kind().String()
}
