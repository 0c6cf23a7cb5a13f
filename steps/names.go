package steps

import (
	"strings"

	"github.com/rsetl/rsetl/record"
)

// Name is a field that the data has named: where its values go.
type Name struct {
	Key  string // as the data has it, before the prefix
	Path string // the field
	Slot int    // -1: it has no slot, the overflow takes it
	Live bool   // something later reads or ships it, or what lies below it
	// Seen is the caller's: the number of the record that had it last, and where.
	Seen uint64
	At   int

	next  *Name // the one that came after it the last time
	batch uint64
	text  record.Value
	there uint64 // the record, as Names counts them, that has it
}

// Names are the fields that one worker has met in the data. It belongs to one step instance. A record's keys most often
// follow each other as in the record before, which Find makes use of; no map is asked then.
type Names struct {
	// Path makes a field of a key; called once for each that is new.
	Path func(key []byte) string
	// Limit is how many are remembered; DefaultNames where it is 0. Beyond, all are forgotten at the next Begin.
	Limit int

	table *record.Table
	live  func(string) bool
	byKey map[string]*Name
	paths map[string]*Name
	first *Name
	last  *Name
	gen   uint64
	rec   uint64
	fresh bool // the record had no field without a slot
	at    int  // the record that is open, -1: none
	b     *record.Batch
}

// DefaultNames bounds what the names in the data may take of memory.
const DefaultNames = 10_000

// NewNames makes Names for a table that is complete: call it in a Maker. live tells whether a field is read later.
func NewNames(t *record.Table, live func(string) bool, path func(key []byte) string) *Names {
	n := &Names{Path: path, Limit: DefaultNames, table: t, live: live}
	n.forget()
	return n
}

func (n *Names) forget() {
	n.byKey, n.paths, n.first, n.last = map[string]*Name{}, map[string]*Name{}, nil, nil
}

// Batch is called before the records of a batch.
func (n *Names) Batch(b *record.Batch) {
	n.b = b
	n.gen++
}

// Begin is called before a record's keys. Names from before it must not be used any more.
func (n *Names) Begin() {
	if len(n.byKey) > n.Limit {
		n.forget()
	}
	n.last, n.at = nil, -1
}

// Find gives the name of a key, in the order that the record has them.
func (n *Names) Find(key []byte) *Name {
	guess := n.first
	if n.last != nil {
		guess = n.last.next
	}
	if guess != nil && guess.Key == string(key) {
		n.last = guess
		return guess
	}
	f := n.byKey[string(key)]
	if f == nil {
		f = n.learn(key)
	}
	if n.last == nil {
		n.first = f
	} else {
		n.last.next = f
	}
	n.last = f
	return f
}

func (n *Names) learn(key []byte) *Name {
	f := &Name{Key: string(key)}
	f.Path = f.Key
	if n.Path != nil {
		f.Path = n.Path(key)
	}
	if same := n.paths[f.Path]; same != nil { // two keys of one field
		n.byKey[f.Key] = same
		return same
	}
	n.paths[f.Path] = f
	f.Slot, f.Live = n.table.Find(f.Path), n.live == nil || n.live(f.Path)
	n.byKey[f.Key] = f
	if n.at >= 0 && !n.fresh {
		for name := range n.b.OverflowNames(n.at) {
			if string(n.b.Bytes(name)) == f.Path {
				f.there = n.rec
				break
			}
		}
	}
	return f
}

// Open is called before a record's fields are set with Put, and after all that removes fields of it.
func (n *Names) Open(i int) {
	n.rec++
	n.at = i
	if n.fresh = !n.b.HasOverflow(i); n.fresh {
		return
	}
	for name := range n.b.OverflowNames(i) {
		if f := n.paths[string(n.b.Bytes(name))]; f != nil {
			f.there = n.rec
		}
	}
}

// Put gives record i the field.
func (n *Names) Put(i int, f *Name, v record.Value) {
	switch {
	case !f.Live:
		return
	case f.Slot >= 0:
		n.b.Set(i, f.Slot, v)
		return
	}
	if f.batch != n.gen {
		f.batch, f.text = n.gen, n.b.PutString(f.Path)
	}
	if f.there == n.rec {
		n.b.SetOverflow(i, f.text, v)
		return
	}
	f.there = n.rec
	n.b.AddOverflow(i, f.text, v)
}

// Get is the field's value in record i.
func (n *Names) Get(i int, f *Name) record.Value {
	if f.Slot >= 0 {
		return n.b.Get(i, f.Slot)
	}
	return n.b.Lookup(i, f.Path)
}

// FieldName makes a key that comes with the data a field at the record's top: metadata's names are kept apart, and `[a][b]`,
// as Logstash writes names, is a.b.
func FieldName(key []byte) string {
	if len(key) > 2 && key[0] == '[' && key[len(key)-1] == ']' {
		if name := unbracket(key); name != "" {
			key = []byte(name)
		}
	}
	if record.IsMeta(string(key)) {
		return "at_" + string(key[1:])
	}
	return string(key)
}

// unbracket gives the path of a name that is all parts in brackets, "" where it is none.
func unbracket(key []byte) string {
	var b strings.Builder
	for _, part := range strings.Split(string(key[1:len(key)-1]), "][") {
		if part == "" || strings.ContainsAny(part, "[]") {
			return ""
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// Below takes away a path, and all that lies below it, from records: for steps that put an object there.
type Below struct {
	path  string
	slots []int
	match func(name []byte) bool
}

// NewBelow prepares for a path; make it in a Maker.
func NewBelow(t *record.Table, path string) *Below {
	return &Below{path: path, slots: SlotsUnder(t, path), match: func(name []byte) bool { return record.Under(name, path) }}
}

// Clear takes them away from record i.
func (x *Below) Clear(b *record.Batch, i int) {
	for _, s := range x.slots {
		b.Set(i, s, record.Value{})
	}
	if b.HasOverflow(i) {
		b.UnsetOverflow(i, x.match)
	}
}
