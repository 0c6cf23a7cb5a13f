package json

import (
	"strings"

	"github.com/rsetl/rsetl/record"
)

// leaf is one field that the data has named: where it goes. A worker learns them as they come.
type leaf struct {
	name  string
	slot  int          // -1: overflow
	live  bool         // something reads or ships it
	text  record.Value // the name in the batch's buffer, for the overflow
	batch uint64       // the batch that text belongs to
	rec   uint64       // the record that set it last
	at    int          // where in found that was
}

// member is one key of one object as the data has it: its field, and the object below where there is one.
type member struct {
	key   string
	leaf  *leaf
	child *object
}

// object is the keys seen so far at one path, in the order in which they first came: the next key of a
// record is most often the one after the last.
type object struct {
	prefix  string
	members []*member
	byKey   map[string]*member // where there are many
}

// maxLearnt bounds what a worker learns; past it names are looked up each time.
const maxLearnt = 10_000

type field struct {
	leaf *leaf
	val  record.Value
}

type step struct {
	*maker
	root   *object
	paths  map[string]*leaf
	learnt int
	each   func(int) record.Outcome

	b      *record.Batch
	gen    uint64 // of batches
	rec    uint64 // of records
	found  []field
	values []record.Value // scratch: open arrays' elements
	p      parser
	src    record.Value
}

func (s *step) object(prefix string) *object { return &object{prefix: prefix} }

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.gen++
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	s.src = b.Get(i, s.field)
	switch s.src.Kind() {
	case record.String, record.Bytes:
	case record.Missing, record.Null:
		b.Fail(i, "json: the field is missing")
		return record.Failed
	default:
		b.Fail(i, "json: the field is no text but "+s.src.Kind().String())
		return record.Failed
	}
	s.rec++
	s.found, s.values = s.found[:0], s.values[:0]
	s.p = parser{in: b.Bytes(s.src)}
	if !s.document() {
		b.Fail(i, s.p.failure())
		return record.Failed
	}
	if s.replace {
		b.Set(i, s.field, record.Value{})
	}
	fresh := !b.HasOverflow(i)
	for k := range s.found {
		f := &s.found[k]
		switch l := f.leaf; {
		case l.slot >= 0:
			b.Set(i, l.slot, f.val)
		case fresh:
			b.AddOverflow(i, s.text(l), f.val)
		default:
			b.SetOverflow(i, s.text(l), f.val)
		}
	}
	return record.Keep
}

// text is the leaf's name in this batch's buffer.
func (s *step) text(l *leaf) record.Value {
	if l.batch != s.gen {
		l.batch, l.text = s.gen, s.b.PutString(l.name)
	}
	return l.text
}

func (s *step) document() bool {
	p := &s.p
	p.space()
	if p.peek() == '{' {
		if !s.members(s.root, 1) {
			return false
		}
		if s.target != "" && len(s.found) == 0 {
			s.set(s.path(s.target), record.MakeRef(record.Map, 0, 0))
		}
	} else if s.target == "" {
		return p.fail("the value is no object; give a target to keep it")
	} else {
		l := s.path(s.target)
		v, ok := s.value(1, l.live)
		if !ok {
			return false
		}
		s.set(l, v)
	}
	p.space()
	if p.at < len(p.in) {
		return p.fail("something follows the value")
	}
	return true
}

func (s *step) set(l *leaf, v record.Value) {
	if !l.live {
		return
	}
	if l.rec == s.rec {
		s.found[l.at].val = v
		return
	}
	l.rec, l.at = s.rec, len(s.found)
	s.found = append(s.found, field{l, v})
}

// members parses an object into fields.
func (s *step) members(o *object, depth int) bool {
	p := &s.p
	if depth > s.depth {
		return p.fail("nested too deeply")
	}
	p.at++ // {
	p.space()
	if p.peek() == '}' {
		p.at++
		return true
	}
	for guess := 0; ; guess++ {
		if p.peek() != '"' {
			return p.fail("expected a key in quotes")
		}
		key, escaped, ok := p.str()
		if !ok {
			return false
		}
		if escaped {
			if key, ok = p.unescape(nil, key); !ok {
				return false
			}
		}
		m := s.member(o, key, &guess)
		p.space()
		if p.peek() != ':' {
			return p.fail("expected a colon")
		}
		p.at++
		p.space()
		if p.peek() == '{' {
			before := len(s.found)
			start := p.at
			if m.child == nil {
				m.child = s.object(o.prefix + m.key + ".")
			}
			if !s.members(m.child, depth+1) {
				return false
			}
			if len(s.found) == before && p.empty(start) {
				s.set(m.leaf, record.MakeRef(record.Map, 0, 0))
			}
		} else {
			v, ok := s.value(depth, m.leaf.live)
			if !ok {
				return false
			}
			s.set(m.leaf, v)
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.space()
		case '}':
			p.at++
			return true
		default:
			return p.fail("expected a comma or }")
		}
	}
}

// member finds the key in the object, at the place where it is expected first.
func (s *step) member(o *object, key []byte, guess *int) *member {
	if g := *guess; g < len(o.members) && o.members[g].key == string(key) {
		return o.members[g]
	}
	if o.byKey != nil {
		if m, ok := o.byKey[string(key)]; ok {
			return m
		}
	} else {
		for i, m := range o.members {
			if m.key == string(key) {
				*guess = i
				return m
			}
		}
	}
	m := &member{key: string(key)}
	name := o.prefix + m.key
	if o.prefix == "" && record.IsMeta(name) {
		name = "at_" + name[1:]
	}
	m.leaf = s.path(name)
	if s.learnt++; s.learnt > maxLearnt {
		return m
	}
	o.members = append(o.members, m)
	if len(o.members) > 16 {
		if o.byKey == nil {
			o.byKey = map[string]*member{}
			for _, m := range o.members {
				o.byKey[m.key] = m
			}
		}
		o.byKey[m.key] = m
	}
	return m
}

// path is the leaf of a dotted path. Two spellings of one path (nested, or with a dot in the key) share it.
func (s *step) path(name string) *leaf {
	if l, ok := s.paths[name]; ok {
		return l
	}
	l := &leaf{name: strings.Clone(name), slot: s.table.Find(name), live: s.live(name)}
	if len(s.paths) < maxLearnt {
		s.paths[l.name] = l
	}
	return l
}

// value parses any value. Where keep is false it is checked and nothing is made of it.
func (s *step) value(depth int, keep bool) (v record.Value, ok bool) {
	p := &s.p
	switch c := p.peek(); c {
	case '"':
		text, escaped, ok := p.str()
		if !ok {
			return v, false
		}
		if escaped {
			return s.unescaped(text)
		}
		from := p.at - 1 - len(text)
		return s.src.Sub(from, from+len(text)).As(record.String), true
	case '{', '[':
		return s.nested(depth+1, keep)
	case 't':
		return record.MakeBool(true), p.word("true")
	case 'f':
		return record.MakeBool(false), p.word("false")
	case 'n':
		return record.MakeNull(), p.word("null")
	default:
		if c == '-' || c >= '0' && c <= '9' {
			return s.number()
		}
		return v, p.fail("expected a value")
	}
}

func (s *step) unescaped(text []byte) (record.Value, bool) {
	off := len(s.b.Buf)
	buf, ok := s.p.unescape(s.b.Buf, text)
	if !ok {
		return record.Value{}, false
	}
	s.b.Buf = buf
	return s.b.Since(off), true
}

// nested parses an array, or an object within one, into a value.
func (s *step) nested(depth int, keep bool) (v record.Value, ok bool) {
	p := &s.p
	if depth > s.depth {
		return v, p.fail("nested too deeply")
	}
	kind, end := record.Array, byte(']')
	if p.peek() == '{' {
		kind, end = record.Map, '}'
	}
	p.at++
	base := len(s.values)
	p.space()
	if p.peek() == end {
		p.at++
		return record.MakeRef(kind, 0, 0), true
	}
	for {
		if kind == record.Map {
			if p.peek() != '"' {
				return v, p.fail("expected a key in quotes")
			}
			k, ok := s.value(depth, keep)
			if !ok {
				return v, false
			}
			s.values = append(s.values, k)
			p.space()
			if p.peek() != ':' {
				return v, p.fail("expected a colon")
			}
			p.at++
			p.space()
		}
		e, ok := s.value(depth, keep)
		if !ok {
			return v, false
		}
		if keep {
			s.values = append(s.values, e)
		} else {
			s.values = s.values[:base]
		}
		p.space()
		switch p.peek() {
		case ',':
			p.at++
			p.space()
			continue
		case end:
			p.at++
		default:
			return v, p.fail("expected a comma or " + string(end))
		}
		break
	}
	items := s.values[base:]
	if kind == record.Map {
		items = s.distinct(items)
	}
	v = s.b.PutItems(kind, items)
	s.values = s.values[:base]
	return v, true
}

// maxDistinct bounds the objects within arrays whose keys are compared with one another.
const maxDistinct = 64

// distinct takes out all but the last of a key that comes twice.
func (s *step) distinct(kv []record.Value) []record.Value {
	if len(kv) > 2*maxDistinct {
		return kv
	}
	out := kv[:0]
next:
	for i := 0; i < len(kv); i += 2 {
		key := s.b.Bytes(kv[i])
		for j := 0; j < len(out); j += 2 {
			if string(s.b.Bytes(out[j])) == string(key) {
				out[j+1] = kv[i+1]
				continue next
			}
		}
		out = append(out, kv[i], kv[i+1])
	}
	return out
}
