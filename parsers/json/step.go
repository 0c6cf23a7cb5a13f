package json

import (
	"slices"
	"strings"

	"github.com/rsetl/rsetl/parsers/date"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// leaf is one field that the data has named: where it goes. A worker learns them as they come.
type leaf struct {
	name  string
	slot  int          // -1: overflow
	live  bool         // something reads or ships it, or what lies below it
	text  record.Value // the name in the batch's buffer, for the overflow
	batch uint64       // the batch that text belongs to
	rec   uint64       // the record that set it last
	at    int          // where in found that was
}

// member is one key of one object as the data has it: its field, and the object below where there is one.
type member struct {
	key    string
	quoted string // as it stands in the text: with its quotes, escapes and the colon
	leaf   *leaf
	child  *object
	next   *member // the key that came after this one the last time
	rec    uint64  // the record that had it last
	from   int     // what the object below has added to found in that record
	to     int
}

// object is the keys seen so far at one path. A record's keys most often follow each other as in the record before.
type object struct {
	prefix  string
	first   *member
	members []*member
	byKey   map[string]*member // where there are many
}

// maxLearnt is how many keys a worker knows when it forgets them all, between two records.
const maxLearnt = 10_000

type field struct {
	leaf *leaf
	val  record.Value
}

type step struct {
	*maker
	clear  []int // slots at and below the target
	below  func(name []byte) bool
	root   *object
	paths  map[string]*leaf
	learnt int
	each   func(int) record.Outcome

	b      *record.Batch
	gen    uint64 // of batches
	rec    uint64 // of records
	found  []field
	values []record.Value // scratch: open arrays' elements
	src    record.Value
	key    []byte // scratch
	digits []byte // scratch
	msg    string
	msgAt  int
}

// forget makes the worker learn anew.
func (s *step) forget() {
	prefix := ""
	if s.target != "" {
		prefix = s.target + "."
	}
	s.root, s.paths, s.learnt = &object{prefix: prefix}, map[string]*leaf{}, 0
}

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
	if s.learnt > maxLearnt {
		s.forget()
	}
	s.rec++
	s.found, s.values, s.msg = s.found[:0], s.values[:0], ""
	in := b.Bytes(s.src)
	if !s.document(in) {
		b.Fail(i, s.failure(in))
		return record.Failed
	}
	if s.checks {
		if msg := s.check(); msg != "" {
			b.Fail(i, msg)
			return record.Failed
		}
	}
	if s.replace {
		b.Set(i, s.field, record.Value{})
	}
	if s.target != "" {
		for _, slot := range s.clear {
			b.Set(i, slot, record.Value{})
		}
		if b.HasOverflow(i) {
			b.UnsetOverflow(i, s.below)
		}
	}
	fresh := !b.HasOverflow(i)
	row := b.Row(i)
	for k := range s.found {
		f := &s.found[k]
		switch l := f.leaf; {
		case f.val.Kind() == record.Missing:
		case l.slot >= 0:
			row[l.slot] = f.val
		case fresh:
			b.AddOverflow(i, s.text(l), f.val)
		default:
			b.SetOverflow(i, s.text(l), f.val)
		}
	}
	return record.Keep
}

// check does what event_checks says.
func (s *step) check() string {
	for k := range s.found {
		f := &s.found[k]
		switch f.leaf.name {
		case "@timestamp":
			if v := f.val; v.Kind() > record.Null && (v.Kind() != record.String || !date.IsISO8601(s.b.Bytes(v))) {
				f.leaf = s.path("_@timestamp")
			}
		case "tags":
			texts := f.val.Kind() <= record.Null || f.val.Kind() == record.String
			if f.val.Kind() == record.Array {
				texts = !slices.ContainsFunc(s.b.Items(f.val), func(e record.Value) bool { return e.Kind() != record.String })
			}
			if !texts {
				return "json: tags is no text and no array of texts"
			}
		}
	}
	return ""
}

// text is the leaf's name in this batch's buffer.
func (s *step) text(l *leaf) record.Value {
	if l.batch != s.gen {
		l.batch, l.text = s.gen, s.b.PutString(l.name)
	}
	return l.text
}

func (s *step) document(in []byte) bool {
	at := space(in, 0)
	if at < len(in) && in[at] == '{' {
		var empty bool
		if at, empty = s.members(in, at+1, s.root, 1); at < 0 {
			return false
		}
		if s.target != "" && empty {
			s.set(s.path(s.target), record.MakeRef(record.Map, 0, 0))
		}
	} else if s.target == "" {
		if _, end := s.value(in, at, 0); end < 0 || space(in, end) < len(in) {
			s.msg, s.msgAt = "", 0
			s.fail(at, "this is no JSON: an object is expected")
		} else {
			s.fail(at, "the value is no object (the json step keeps such values below a target)")
		}
		return false
	} else {
		var v record.Value
		if v, at = s.value(in, at, 0); at < 0 {
			return false
		}
		s.set(s.path(s.target), v)
	}
	if at = space(in, at); at < len(in) {
		s.fail(at, "something follows the value")
		return false
	}
	return true
}

func (s *step) set(l *leaf, v record.Value) {
	if l.rec == s.rec {
		s.found[l.at].val = v
		return
	}
	if !l.live {
		return
	}
	l.rec, l.at = s.rec, len(s.found)
	s.found = append(s.found, field{l, v})
}

// again takes back what a key has given that comes a second time in its object.
func (s *step) again(m *member) {
	if m.leaf.rec == s.rec {
		s.found[m.leaf.at].val = record.Value{}
	}
	for k := m.from; k < m.to; k++ {
		s.found[k].val = record.Value{}
	}
	m.from, m.to = 0, 0
}

// members parses an object, from behind its brace, into fields.
func (s *step) members(in []byte, at int, o *object, depth int) (next int, empty bool) {
	if depth > s.depth {
		return s.fail(at-1, "nested too deeply"), false
	}
	if at = space(in, at); at < len(in) && in[at] == '}' {
		return at + 1, true
	}
	m := o.first
	var before *member
	for {
		if m != nil && len(in)-at >= len(m.quoted) && string(in[at:at+len(m.quoted)]) == m.quoted {
			at += len(m.quoted)
		} else if m, at = s.member(in, at, o, before); at < 0 {
			return -1, false
		}
		at = space(in, at)
		if m.rec == s.rec {
			s.again(m)
		}
		m.rec, m.from, m.to = s.rec, 0, 0
		switch {
		case !m.leaf.live:
			at = s.skip(in, at, depth)
		case at < len(in) && in[at] == '{':
			if m.child == nil {
				m.child = &object{prefix: m.leaf.name + "."}
			}
			from := len(s.found)
			var empty bool
			if at, empty = s.members(in, at+1, m.child, depth+1); empty {
				s.set(m.leaf, record.MakeRef(record.Map, 0, 0))
			} else {
				m.from, m.to = from, len(s.found)
			}
		default:
			var v record.Value
			if v, at = s.value(in, at, depth); at >= 0 {
				s.set(m.leaf, v)
			}
		}
		if at < 0 {
			return -1, false
		}
		if len(s.found) > s.fields {
			return s.fail(at, "more than max_fields members"), false
		}
		if at < len(in) && in[at] == ',' {
			at++
		} else if at = space(in, at); at < len(in) && in[at] == ',' {
			at++
		} else if at < len(in) && in[at] == '}' {
			return at + 1, false
		} else {
			return s.fail(at, "expected a comma or }"), false
		}
		at = space(in, at)
		before, m = m, m.next
	}
}

// member reads a key that is not the expected one, with its colon, and notes that it follows before.
func (s *step) member(in []byte, at int, o *object, before *member) (*member, int) {
	if at >= len(in) || in[at] != '"' {
		return nil, s.fail(at, "expected a key in quotes")
	}
	end, escaped := s.str(in, at+1)
	if end < 0 {
		return nil, -1
	}
	colon := space(in, end+1)
	if colon >= len(in) || in[colon] != ':' {
		return nil, s.fail(colon, "expected a colon")
	}
	key := in[at+1 : end]
	if escaped {
		s.key = unescape(s.key[:0], key)
		key = s.key
	}
	m := o.find(key)
	if m == nil {
		m = &member{key: string(key), quoted: string(in[at:end+1]) + ":"}
		name := o.prefix + m.key
		if o.prefix == "" {
			name = steps.FieldName(key)
		}
		m.leaf = s.path(name)
		o.add(m)
		s.learnt++
	}
	if before == nil {
		o.first = m
	} else {
		before.next = m
	}
	return m, colon + 1
}

// fewMembers are looked through one by one.
const fewMembers = 16

func (o *object) find(key []byte) *member {
	if o.byKey != nil {
		return o.byKey[string(key)]
	}
	for _, m := range o.members {
		if m.key == string(key) {
			return m
		}
	}
	return nil
}

func (o *object) add(m *member) {
	if o.byKey != nil {
		o.byKey[m.key] = m
		return
	}
	if o.members = append(o.members, m); len(o.members) > fewMembers {
		o.byKey = map[string]*member{}
		for _, m := range o.members {
			o.byKey[m.key] = m
		}
		o.members = nil
	}
}

// path is the leaf of a dotted path. Two spellings of one path (nested, or with a dot in the key) share it.
func (s *step) path(name string) *leaf {
	if l, ok := s.paths[name]; ok {
		return l
	}
	l := &leaf{name: strings.Clone(name), slot: s.table.Find(name), live: s.live(name)}
	s.paths[l.name] = l
	return l
}

// value parses any value; an object, within an array or as the document's, into a map.
func (s *step) value(in []byte, at, depth int) (v record.Value, next int) {
	if at >= len(in) {
		return v, s.fail(at, "expected a value")
	}
	switch c := in[at]; c {
	case '"':
		end, escaped := s.str(in, at+1)
		if end < 0 {
			return v, -1
		}
		if escaped {
			off := len(s.b.Buf)
			s.b.Buf = unescape(s.b.Buf, in[at+1:end])
			return s.b.Since(off), end + 1
		}
		return s.src.Sub(at+1, end).As(record.String), end + 1
	case '{', '[':
		return s.nested(in, at, depth+1)
	case 't':
		return record.MakeBool(true), s.word(in, at, "true")
	case 'f':
		return record.MakeBool(false), s.word(in, at, "false")
	case 'n':
		return record.MakeNull(), s.word(in, at, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return s.number(in, at)
		}
		return v, s.fail(at, "expected a value")
	}
}

// nested parses an array, or an object within one, into a value.
func (s *step) nested(in []byte, at, depth int) (v record.Value, next int) {
	if depth > s.depth {
		return v, s.fail(at, "nested too deeply")
	}
	kind, end := record.Array, byte(']')
	if in[at] == '{' {
		kind, end = record.Map, '}'
	}
	base := len(s.values)
	if at = space(in, at+1); at < len(in) && in[at] == end {
		return record.MakeRef(kind, 0, 0), at + 1
	}
	for {
		if kind == record.Map {
			if at >= len(in) || in[at] != '"' {
				return v, s.fail(at, "expected a key in quotes")
			}
			var k record.Value
			if k, at = s.value(in, at, depth); at < 0 {
				return v, -1
			}
			s.values = append(s.values, k)
			if at = space(in, at); at >= len(in) || in[at] != ':' {
				return v, s.fail(at, "expected a colon")
			}
			at = space(in, at+1)
		}
		var e record.Value
		if e, at = s.value(in, at, depth); at < 0 {
			return v, -1
		}
		s.values = append(s.values, e)
		if at = space(in, at); at < len(in) && in[at] == ',' {
			at = space(in, at+1)
			continue
		}
		if at < len(in) && in[at] == end {
			break
		}
		return v, s.fail(at, "expected a comma or "+string(end))
	}
	items := s.values[base:]
	if kind == record.Map {
		items = s.distinct(items)
	}
	v = s.b.PutItems(kind, items)
	s.values = s.values[:base]
	return v, at + 1
}

// fewPairs are compared with one another.
const fewPairs = 32

// distinct takes out all but the last of a key that comes twice; the key stays where it came first.
func (s *step) distinct(kv []record.Value) []record.Value {
	out := kv[:0]
	if len(kv) > 2*fewPairs {
		where := make(map[string]int, len(kv)/2)
		for i := 0; i < len(kv); i += 2 {
			key := s.b.Bytes(kv[i])
			if j, ok := where[string(key)]; ok {
				out[j+1] = kv[i+1]
				continue
			}
			where[string(key)] = len(out)
			out = append(out, kv[i], kv[i+1])
		}
		return out
	}
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
