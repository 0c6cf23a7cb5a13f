package kv

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/letters"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// layout is how a text is made of pairs.
type layout struct {
	fs, vs                                     charset
	patterns                                   bool
	fsRE, vsRE, fsHere                         *regexp.Regexp // fsHere: fsRE at the text's beginning
	strict, spaced, brackets, empty, recursive bool
	trimKey, trimValue, removeKey, removeValue charset
	caseKey, caseValue                         string
	max                                        int

	class [256]uint8 // what each byte may be to byChars
	bare  bool       // no option changes keys or values
}

// Bits of class.
const (
	isField   = 1 << iota // separates pairs
	isValue               // separates a key from its value
	isEscape              // may keep the blank behind it
	isWide                // begins a character that may separate
	isOpening             // a quote or bracket
)

// classify fills class.
func (l *layout) classify() {
	for c := range 256 {
		var k uint8
		if l.fs.ascii[c] {
			k |= isField
		}
		if l.vs.ascii[c] {
			k |= isValue
		}
		if c == '\\' {
			k |= isEscape
		}
		if c >= 0x80 && l.fs.other+l.vs.other != "" {
			k |= isWide
		}
		switch c {
		case '"', '\'', '(', '[', '<':
			k |= isOpening
		}
		l.class[c] = k
	}
	l.bare = !l.trimKey.on && !l.trimValue.on && !l.removeKey.on && !l.removeValue.on && l.caseKey == "" && l.caseValue == "" && !l.recursive
}

type deflt struct {
	key  string
	tmpl *expr.TemplateProgram
}

type maker struct {
	layout
	field            int
	target           string
	liveAll          bool
	dups             bool
	checks           bool
	prefix           string
	prefixTmpl       *expr.TemplateProgram
	include, exclude filter
	defaults         []deflt
	table            *record.Table
	live             func(string) bool
}

// found is one field of the record: its value, and further ones where its key has come again.
type found struct {
	name  *steps.Name
	val   record.Value
	first int32 // 1 + number in more, 0: none
	last  int32
}

type more struct {
	val  record.Value
	next int32
}

type step struct {
	*maker
	names  *steps.Names
	below  *steps.Below
	each   func(int) record.Outcome
	b      *record.Batch
	env    expr.Env
	i      int
	rec    uint64
	found  []found
	more   []more
	vals   []record.Value
	buf    []byte
	key    []byte
	pre    []byte
	folded []byte
	full   []byte
	bad    []byte // a key that event_checks fails
	pairs  int
	// sink takes pairs in place of the record: within a value.
	open   [6]bool // by kind of quote or bracket: the rest of the text has none that closes
	direct bool    // keys and values are taken as they are
	sink   func(in []byte, src record.Value, k0, k1, v0, v1 int, escaped bool) bool
}

func newStep(m *maker) *step {
	s := &step{maker: m}
	path := func(key []byte) string { return steps.FieldName(key) }
	if m.target != "" {
		path = func(key []byte) string { return m.target + "." + string(key) }
		s.below = steps.NewBelow(m.table, m.target)
	}
	s.names = steps.NewNames(m.table, m.live, path)
	s.each = s.one
	s.direct = m.bare && !m.checks && !m.include.on && !m.exclude.on && m.prefix == "" && m.prefixTmpl == nil
	return s
}

func (s *step) Apply(b *record.Batch) {
	s.b, s.env.B = b, b
	s.names.Batch(b)
	b.Each(s.each)
	s.b = nil
}

// eventName tells whether a Logstash event takes a text under that name.
func eventName(key []byte) bool {
	switch {
	case string(key) == "@timestamp" || string(key) == "@metadata":
		return false
	case bytes.IndexByte(key, '[') < 0 && bytes.IndexByte(key, ']') < 0:
		return true
	}
	return steps.FieldName(key) != string(key)
}

const tooMany = "kv: more than max_fields pairs"

func (s *step) one(i int) record.Outcome {
	b := s.b
	src := b.Get(i, s.field)
	s.names.Begin()
	s.rec++
	s.i, s.pairs = i, 0
	s.found, s.more, s.bad = s.found[:0], s.more[:0], s.bad[:0]
	s.pre = append(s.pre[:0], s.prefix...)
	if s.prefixTmpl != nil {
		s.pre, _ = s.prefixTmpl.Append(s.pre, &s.env, i)
	}
	ok := true
	switch src.Kind() {
	case record.String, record.Bytes:
		ok = s.text(src.As(record.String))
	case record.Array:
		for _, e := range b.Items(src) {
			if e.Kind() == record.String {
				ok = ok && s.text(e)
			}
		}
	case record.Missing, record.Null:
		b.Fail(i, "kv: the field is missing")
		return record.Failed
	default:
		b.Fail(i, "kv: the field is no text but "+src.Kind().String())
		return record.Failed
	}
	if len(s.bad) > 0 {
		b.Fail(i, fmt.Sprintf("kv: %.80q is no name for a field of an event", s.bad))
		return record.Failed
	}
	if !ok {
		b.Fail(i, tooMany)
		return record.Failed
	}
	if len(s.found) == 0 && s.pairs == 0 && len(s.defaults) == 0 {
		b.Fail(i, fmt.Sprintf("kv: no pair in %.80q", b.AppendPlain(nil, src)))
		return record.Failed
	}
	for k := range s.defaults {
		s.addDefault(i, &s.defaults[k])
	}
	if s.below != nil && len(s.found) > 0 {
		s.below.Clear(b, i)
	}
	s.names.Open(i)
	for k := range s.found {
		f := &s.found[k]
		v := f.val
		if f.first != 0 {
			s.vals = append(s.vals[:0], v)
			for at := f.first; at != 0; at = s.more[at-1].next {
				s.vals = append(s.vals, s.more[at-1].val)
			}
			v = b.PutItems(record.Array, s.vals)
		}
		s.names.Put(i, f.name, v)
	}
	return record.Keep
}

func (s *step) addDefault(i int, d *deflt) {
	s.key = append(s.key[:0], d.key...)
	n := s.names.Find(s.key)
	if n.Seen == s.rec {
		return
	}
	var ok bool
	if s.buf, ok = d.tmpl.Append(s.buf[:0], &s.env, i); ok {
		s.add(n, s.b.PutBytes(s.buf))
	}
}

// text parses one text's pairs; false where there are too many.
func (s *step) text(src record.Value) bool {
	in := s.b.Bytes(src)
	s.open = [6]bool{}
	if s.patterns {
		return s.byPattern(in, src)
	}
	return s.byChars(in, src)
}

// run is the end of a key or an unquoted value that begins at p[i]: the first character of a set that has no backslash before
// a blank. stop has isField, and isValue for a key.
func (s *step) run(p []byte, i int, stop uint8) int {
	mask := stop | isEscape | isWide
	for i < len(p) {
		k := s.class[p[i]] & mask
		if k == 0 {
			i++
			continue
		}
		switch {
		case k&isEscape != 0 && i+1 < len(p) && p[i+1] == ' ':
			i += 2
		case k&stop != 0:
			return i
		case k&isWide != 0 && (s.fs.at(p, i) > 0 || stop&isValue != 0 && s.vs.at(p, i) > 0):
			return i
		default:
			i++
		}
	}
	return i
}

func blanks(p []byte, i int) int {
	for i < len(p) && p[i] == ' ' {
		i++
	}
	return i
}

// byChars parses pairs whose separators are characters.
func (s *step) byChars(in []byte, src record.Value) bool {
	for at := 0; at < len(in); {
		end := s.run(in, at, isField|isValue)
		if end == at { // a separator
			n := s.fs.at(in, at)
			if n == 0 {
				n = s.vs.at(in, at)
			}
			at += n
			continue
		}
		v := end
		if !s.strict {
			v = blanks(in, v)
		}
		n := 0
		if v < len(in) {
			n = s.vs.at(in, v)
		}
		if n == 0 { // a word without a value
			at = end
			continue
		}
		v += n
		if !s.strict {
			v = blanks(in, v)
		}
		from, to, next := v, v, v
		escaped := false
		if s.spaced {
			from, to, next, escaped = s.spacedValue(in, v)
		} else if v < len(in) && s.class[in[v]]&isOpening == 0 {
			to = s.run(in, v, isField)
			next = to
		} else if f, t, x, e, ok := s.quoted(in, v); ok {
			from, to, next, escaped = f, t, x, e
		} else {
			to = s.run(in, v, isField)
			next = to
		}
		if next < len(in) {
			next += s.fs.at(in, next)
		}
		if !s.pair(in, src, at, end, from, to, escaped) {
			return false
		}
		at = next
	}
	return true
}

// spacedValue is a value that goes on to the blank before the next key.
func (s *step) spacedValue(in []byte, at int) (from, to, next int, escaped bool) {
	if f, t, x, e, ok := s.quoted(in, at); ok {
		return f, t, x, e
	}
	last := -1 // the last separator of pairs
	for i := at; i < len(in); {
		if in[i] == '\\' && i+1 < len(in) {
			i += 2
			continue
		}
		if n := s.fs.at(in, i); n > 0 {
			last = i
			i += n
			continue
		}
		if n := s.vs.at(in, i); n > 0 && last >= 0 && i > last+1 {
			to = last
			for to > at && in[to-1] == ' ' {
				to--
			}
			return at, to, last, false
		}
		i++
	}
	to = len(in)
	for to > at && in[to-1] == ' ' {
		to--
	}
	return at, to, len(in), false
}

// quoted is a value in quotes or brackets at in[at], with what must follow it: a separator, or the line's end.
func (s *step) quoted(in []byte, at int) (from, to, next int, escaped, ok bool) {
	if at >= len(in) {
		return
	}
	var end byte
	kind := 0
	switch in[at] {
	case '"':
		end, kind = '"', 1
	case '\'':
		end, kind = '\'', 2
	case '(':
		end, kind = ')', 3
	case '[':
		end, kind = ']', 4
	case '<':
		end, kind = '>', 5
	default:
		return
	}
	if s.open[kind] || kind > 2 && !s.brackets {
		return
	}
	if kind <= 2 {
		if to = closing(in, at+1, end); to >= 0 && s.ends(in, to+1) {
			return at + 1, to, to + 1, bytes.IndexByte(in[at+1:to], '\\') >= 0, true
		}
	}
	n := bytes.IndexByte(in[at+1:], end)
	if n < 0 {
		s.open[kind] = true
		return
	}
	if !s.ends(in, at+n+2) {
		return
	}
	return at + 1, at + 1 + n, at + n + 2, false, true
}

// closing finds the quote that ends a value, backslashes regarded; -1 where there is none.
func closing(in []byte, at int, quote byte) int {
	for {
		n := bytes.IndexByte(in[at:], quote)
		if n < 0 {
			return -1
		}
		at += n
		odd := false
		for k := at - 1; k >= 0 && in[k] == '\\'; k-- {
			odd = !odd
		}
		if !odd {
			return at
		}
		at++
	}
}

// ends tells whether a value may end before in[at].
func (s *step) ends(in []byte, at int) bool {
	if at >= len(in) || in[at] == '\n' {
		return true
	}
	if s.patterns {
		return s.fsHere.Match(in[at:])
	}
	return s.fs.at(in, at) > 0
}

// pair takes one pair; false where there are too many.
func (s *step) pair(in []byte, src record.Value, k0, k1, v0, v1 int, escaped bool) bool {
	if s.sink != nil {
		return s.sink(in, src, k0, k1, v0, v1, escaped)
	}
	s.pairs++
	if v0 == v1 && !s.empty {
		return true
	}
	key := in[k0:k1]
	if s.direct && !escaped { // the common case
		n := s.names.Find(key)
		if len(s.found)+len(s.more) >= s.max {
			return false
		}
		if n.Live {
			s.add(n, src.Sub(v0, v1))
		}
		return true
	}
	if key = s.keyOf(key); len(key) == 0 {
		return true
	}
	if s.include.on && !s.include.has(key, s, s.i) || s.exclude.on && s.exclude.has(key, s, s.i) {
		return true
	}
	if s.checks && len(s.pre) == 0 && !eventName(key) {
		s.bad = append(s.bad[:0], key...)
	}
	if len(s.pre) > 0 {
		s.full = append(append(s.full[:0], s.pre...), key...)
		key = s.full
	}
	n := s.names.Find(key)
	if len(s.found)+len(s.more) >= s.max {
		return false
	}
	if !n.Live {
		return true
	}
	s.add(n, s.valueOf(in, src, v0, v1, escaped, 0))
	return true
}

// maxDepth bounds recursive values.
const maxDepth = 32

// keyOf is a key as the options want it.
func (s *step) keyOf(key []byte) []byte {
	if s.trimKey.on {
		from, to := s.trimKey.trim(key)
		key = key[from:to]
	}
	if s.removeKey.on && s.removeKey.any(key) {
		s.key = s.removeKey.remove(s.key[:0], key)
		key = s.key
	}
	if s.caseKey != "" {
		s.folded = letters.Append(s.folded[:0], key, s.caseKey)
		return s.folded
	}
	return key
}

// valueOf is a value as the options want it.
func (s *step) valueOf(in []byte, src record.Value, from, to int, escaped bool, depth int) record.Value {
	b := s.b
	if s.trimValue.on {
		f, t := s.trimValue.trim(in[from:to])
		from, to = from+f, from+t
	}
	v := src.Sub(from, to)
	if escaped {
		off := len(b.Buf)
		p := in[from:to]
		for i := 0; i < len(p); i++ {
			if p[i] == '\\' && i+1 < len(p) && (p[i+1] == '"' || p[i+1] == '\'') {
				i++
			}
			b.Buf = append(b.Buf, p[i])
		}
		v = b.Since(off)
	}
	if s.removeValue.on && s.removeValue.any(b.Bytes(v)) {
		off := len(b.Buf)
		b.Buf = s.removeValue.remove(b.Buf, b.Bytes(v))
		v = b.Since(off)
	}
	if s.caseValue != "" {
		off := len(b.Buf)
		b.Buf = letters.Append(b.Buf, b.Bytes(v), s.caseValue)
		v = b.Since(off)
	}
	if s.recursive && depth < maxDepth {
		if m, ok := s.object(v, depth+1); ok {
			return m
		}
	}
	return v
}

// add gives the record a value of a field.
func (s *step) add(n *steps.Name, v record.Value) {
	if n.Seen != s.rec {
		n.Seen, n.At = s.rec, len(s.found)
		s.found = append(s.found, found{name: n, val: v})
		return
	}
	f := &s.found[n.At]
	if !s.dups && s.has(f, v) {
		return
	}
	s.more = append(s.more, more{val: v})
	at := int32(len(s.more))
	if f.first == 0 {
		f.first = at
	} else {
		s.more[f.last-1].next = at
	}
	f.last = at
}

// has tells whether a field has that text already.
func (s *step) has(f *found, v record.Value) bool {
	text := s.b.Bytes
	if v.Kind() != record.String {
		return false
	}
	same := func(w record.Value) bool {
		return w.Kind() == record.String && w.Len() == v.Len() && bytes.Equal(text(w), text(v))
	}
	if same(f.val) {
		return true
	}
	for at := f.first; at != 0; at = s.more[at-1].next {
		if same(s.more[at-1].val) {
			return true
		}
	}
	return false
}
