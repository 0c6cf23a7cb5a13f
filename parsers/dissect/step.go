package dissect

import (
	"bytes"
	"fmt"

	"github.com/rsetl/rsetl/internal/numbers"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

type ruleStep struct {
	field int
	pat   *pattern
	slots []int // per field; -1: nothing reads it
	over  []int // per field: its number in the Overwriter
}

type conversion struct {
	slot int
	to   convertTarget
}

type maker struct {
	rules    []ruleStep
	converts []conversion
}

type span struct{ from, to int }

type step struct {
	*maker
	names *steps.Names
	over  *steps.Overwriter
	each  func(int) record.Outcome
	b     *record.Batch
	spans []span
	all   []span // of all rules
	srcs  []record.Value
	buf   []byte
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.names.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	s.all, s.srcs = s.all[:0], s.srcs[:0]
	for k := range s.rules {
		r := &s.rules[k]
		src := b.Get(i, r.field)
		switch src.Kind() {
		case record.String, record.Bytes:
			src = src.As(record.String)
		case record.Missing, record.Null:
			b.Fail(i, "dissect: the field is missing")
			return record.Failed
		default:
			s.buf = b.AppendPlain(s.buf[:0], src)
			src = b.PutBytes(s.buf)
		}
		if miss := s.cut(b.Bytes(src), r.pat); miss != nil {
			b.Fail(i, fmt.Sprintf("dissect: the delimiter %q is missing in %.80q", miss, b.Bytes(src)))
			return record.Failed
		}
		s.all = append(s.all, s.spans...)
		s.srcs = append(s.srcs, src)
	}
	from := 0
	for k := range s.rules {
		r := &s.rules[k]
		n := len(r.pat.parts)
		s.set(i, r, s.srcs[k], s.all[from:from+n])
		from += n
	}
	for _, c := range s.converts {
		s.convert(i, c)
	}
	return record.Keep
}

// cut finds the parts' stretches. It gives the delimiter that is missing.
func (s *step) cut(in []byte, p *pattern) (missing []byte) {
	s.spans = s.spans[:0]
	if !bytes.HasPrefix(in, p.prefix) {
		return p.prefix
	}
	if len(in) == 0 {
		return p.parts[0].after
	}
	at := len(p.prefix)
	for k := range p.parts {
		x := &p.parts[k]
		if len(x.after) == 0 {
			s.spans = append(s.spans, span{at, len(in)})
			at = len(in)
			continue
		}
		n := 0
		if len(x.after) == 1 {
			n = bytes.IndexByte(in[at:], x.after[0])
		} else {
			n = bytes.Index(in[at:], x.after)
		}
		if n < 0 {
			return x.after
		}
		s.spans = append(s.spans, span{at, at + n})
		at += n + len(x.after)
		if x.pad {
			for bytes.HasPrefix(in[at:], x.after) {
				at += len(x.after)
			}
		}
	}
	return nil
}

func (s *step) set(i int, r *ruleStep, src record.Value, spans []span) {
	b, p := s.b, r.pat
	in := b.Bytes(src)
	for k := range p.parts {
		x := &p.parts[k]
		if x.field < 0 || r.slots[x.field] < 0 {
			continue
		}
		v := src.Sub(spans[k].from, spans[k].to)
		if len(p.appends) > 0 {
			if list := p.appends[x.field]; list != nil {
				if k != list[len(list)-1] && x.append || !x.append { // set once, with the last
					if list[len(list)-1] != k {
						continue
					}
				}
				off := len(b.Buf)
				for n, part := range list {
					if n > 0 {
						b.Buf = append(b.Buf, p.parts[part].joint(p)...)
					}
					b.Buf = append(b.Buf, in[spans[part].from:spans[part].to]...)
				}
				v = b.Since(off)
			}
		}
		s.over.Clear(b, i, r.over[x.field])
		b.Set(i, r.slots[x.field], v)
	}
	if !p.indirect {
		return
	}
	s.names.Begin()
	s.names.Open(i)
	for k := range p.parts {
		if x := &p.parts[k]; x.refer {
			key := spans[p.keyOf[k]]
			if key.from == key.to {
				continue
			}
			s.names.Put(i, s.names.Find(in[key.from:key.to]), src.Sub(spans[k].from, spans[k].to))
		}
	}
}

// joint is what an appended part is joined with.
func (x *part) joint(p *pattern) []byte {
	if len(x.before) > 0 && &p.parts[0] != x {
		return x.before
	}
	return []byte(" ")
}

func (s *step) convert(i int, c conversion) {
	v := s.b.Get(i, c.slot)
	if v.Kind() != record.String {
		return
	}
	if c.to == "int" {
		v, _ = numbers.Int(s.b, v)
	} else {
		v, _ = numbers.Float(s.b, v)
	}
	s.b.Set(i, c.slot, v)
}
