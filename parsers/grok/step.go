package grok

import (
	"strconv"

	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/record"
)

type pattern struct {
	*Pattern
	slots []int  // per capture
	again []bool // per capture: one before has the same field
}

type maker struct {
	kind     string
	field    int
	patterns []pattern
	set      *engine.Set
	fields   []int  // all slots that captures go to
	over     []bool // beside fields: the old value is replaced
	reason   string
}

type step struct {
	*maker
	match *engine.SetMatcher
	caps  [][]int
	each  func(int) record.Outcome
	b     *record.Batch
	old   []record.Value
	many  []record.Value
}

func newStep(m *maker) *step {
	s := &step{maker: m, match: m.set.Matcher(), old: make([]record.Value, len(m.fields))}
	for i := range m.patterns {
		s.caps = append(s.caps, make([]int, 2*(m.patterns[i].Regex.Groups+1)))
	}
	s.each = s.one
	return s
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	src := b.Get(i, s.field)
	if k := src.Kind(); k != record.String && k != record.Bytes {
		if src.IsNull() {
			b.Fail(i, s.kind+": the field is missing")
		} else {
			b.Fail(i, s.kind+": the field is no text but "+k.String())
		}
		return record.Failed
	}
	text := b.Bytes(src)
	k, err := s.match.Match(text, s.caps)
	if err != nil {
		b.Fail(i, s.kind+": "+err.Error()+": "+short(s.patterns[k].Source))
		return record.Failed
	}
	if k >= 0 {
		s.take(i, src, &s.patterns[k], s.caps[k])
		return record.Keep
	}
	b.Fail(i, s.reason)
	return record.Failed
}

func short(pattern string) string {
	if r := []rune(pattern); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return pattern
}

// take puts the captures into their slots.
func (s *step) take(i int, src record.Value, p *pattern, caps []int) {
	b := s.b
	row := b.Row(i)
	for k, slot := range s.fields {
		s.old[k] = row[slot]
		row[slot] = record.Value{}
	}
	for k, slot := range p.slots {
		from, to := caps[2*k+2], caps[2*k+3]
		if from < 0 || from == to {
			continue
		}
		v := Cast(b, src.Sub(from, to).As(record.String), p.Captures[k].Cast)
		if p.again[k] && row[slot].Kind() != record.Missing {
			v = s.join(row[slot], v)
		}
		row[slot] = v
	}
	for k, slot := range s.fields {
		switch old := s.old[k]; {
		case old.Kind() == record.Missing:
		case old.Kind() == record.Null && row[slot].Kind() != record.Missing: // NULL is no value to keep
		case row[slot].Kind() == record.Missing:
			row[slot] = old
		case !s.over[k]:
			row[slot] = s.join(old, row[slot])
		}
	}
}

// join makes an array of a, or its elements, and b, or its elements.
func (s *step) join(a, b record.Value) record.Value {
	s.many = s.many[:0]
	for _, v := range [2]record.Value{a, b} {
		if v.Kind() == record.Array {
			s.many = append(s.many, s.b.Items(v)...)
		} else {
			s.many = append(s.many, v)
		}
	}
	return s.b.PutItems(record.Array, s.many)
}

// Cast converts a captured text as `:int`, `:float` and `:boolean` do: like Ruby, it takes the number that the text
// begins with, 0 where there is none.
func Cast(b *record.Batch, v record.Value, to string) record.Value {
	switch to {
	case "int":
		return record.MakeInt(leadingInt(b.Bytes(v)))
	case "float":
		return record.MakeFloat(leadingFloat(b.Bytes(v)))
	case "boolean":
		t := string(b.Bytes(v))
		return record.MakeBool(t == "true" || t == "t" || t == "yes" || t == "y" || t == "1")
	}
	return v
}

func leadingInt(p []byte) int64 {
	var n uint64
	i, neg := 0, false
	if len(p) > 0 && (p[0] == '-' || p[0] == '+') {
		neg = p[0] == '-'
		i++
	}
	for ; i < len(p) && p[i]-'0' <= 9; i++ {
		if n > (1<<63-1)/10 {
			n = 1<<63 - 1
			break
		}
		n = n*10 + uint64(p[i]-'0')
	}
	n = min(n, 1<<63-1)
	if neg {
		return -int64(n)
	}
	return int64(n)
}

func leadingFloat(p []byte) float64 {
	n := 0
	for n < len(p) && (p[n]-'0' <= 9 || p[n] == '.' || p[n] == '-' || p[n] == '+' || p[n] == 'e' || p[n] == 'E') {
		n++
	}
	for ; n > 0; n-- {
		if f, err := strconv.ParseFloat(string(p[:n]), 64); err == nil {
			return f
		}
	}
	return 0
}

// Take puts the captures of a match into record i's fields, by name: for the debugger and functions. src is the
// text that was matched, a value of b.
func (p *Pattern) Take(b *record.Batch, i int, src record.Value, caps []int) {
	for k, c := range p.Captures {
		from, to := caps[2*k+2], caps[2*k+3]
		if from < 0 || from == to {
			continue
		}
		slot := b.Table.Find(c.Field)
		v := Cast(b, src.Sub(from, to).As(record.String), c.Cast)
		switch old := b.Get(i, slot); old.Kind() {
		case record.Missing:
		case record.Array:
			v = b.PutItems(record.Array, append(append([]record.Value(nil), b.Items(old)...), v))
		default:
			v = b.PutItems(record.Array, []record.Value{old, v})
		}
		b.Set(i, slot, v)
	}
}
