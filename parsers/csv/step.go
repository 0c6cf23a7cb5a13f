package csv

import (
	"bytes"
	"strconv"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

type column struct {
	name string
	slot int // -1: nothing reads it
	over int // its number in the Overwriter
	to   target
}

type maker struct {
	field                                 int
	sep                                   []byte
	quote, escape                         int
	skipHeader, skipEmpty, skipRows, auto bool
	exact                                 bool // more columns than are listed are a failure
	max                                   int
	target                                string
	columns                               []column
	convert                               map[string]target
	zone                                  *time.Location
}

type step struct {
	*maker
	names *steps.Names
	below *steps.Below
	over  *steps.Overwriter
	each  func(int) record.Outcome
	b     *record.Batch
	vals  []record.Value
	key   []byte
	head  *headed // with autodetect_column_names
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.names.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	src := b.Get(i, s.field)
	switch src.Kind() {
	case record.String, record.Bytes:
		src = src.As(record.String)
	case record.Missing, record.Null:
		b.Fail(i, "csv: the field is missing")
		return record.Failed
	default:
		b.Fail(i, "csv: the field is no text but "+src.Kind().String())
		return record.Failed
	}
	in := b.Bytes(src)
	if len(in) == 0 || in[0] == '\n' || in[0] == '\r' && (len(in) == 1 || in[1] == '\n') {
		if s.skipRows {
			return record.Keep
		}
		b.Fail(i, "csv: the row is empty (skip_empty_rows leaves such records as they are)")
		return record.Failed
	}
	if msg := s.row(in, src); msg != "" {
		b.Fail(i, msg)
		return record.Failed
	}
	if s.head != nil {
		if s.head.header(i) {
			return record.Drop
		}
		if s.below != nil {
			s.below.Clear(b, i)
		}
		s.head.named(i)
		return record.Keep
	}
	if s.skipHeader && s.isHeader() {
		return record.Drop
	}
	if s.exact && len(s.vals) > len(s.columns) {
		b.Fail(i, "csv: the row has "+strconv.Itoa(len(s.vals))+" columns, "+strconv.Itoa(len(s.columns))+" are listed (autogenerate_column_names: true names the others, false leaves them out)")
		return record.Failed
	}
	if s.below != nil {
		s.below.Clear(b, i)
	}
	n := min(len(s.vals), len(s.columns))
	for k := range n {
		c := &s.columns[k]
		v := s.vals[k]
		if c.slot < 0 || s.skipEmpty && empty(v) {
			continue
		}
		if c.to != "" {
			v = s.to(v, c.to)
		}
		s.over.Clear(b, i, c.over)
		b.Set(i, c.slot, v)
	}
	if n < len(s.vals) && s.auto {
		s.more(i, n)
	}
	return record.Keep
}

// more sets the columns that have no name, from number n on.
func (s *step) more(i, n int) {
	s.names.Begin()
	s.names.Open(i)
	for k := n; k < len(s.vals); k++ {
		v := s.vals[k]
		if s.skipEmpty && empty(v) {
			continue
		}
		s.key = strconv.AppendInt(append(s.key[:0], "column"...), int64(k+1), 10)
		f := s.names.Find(s.key)
		if len(s.convert) > 0 {
			if to, ok := s.convert[f.Key]; ok {
				v = s.to(v, to)
			}
		}
		s.names.Put(i, f, v)
	}
}

func empty(v record.Value) bool { return v.Kind() == record.Null || v.Len() == 0 }

func (s *step) isHeader() bool {
	if len(s.vals) != len(s.columns) {
		return false
	}
	for k, v := range s.vals {
		if v.Kind() == record.Null || string(s.b.Bytes(v)) != s.columns[k].name {
			return false
		}
	}
	return true
}

// row cuts a row into vals: Null for an empty column. The message tells what is wrong with it.
func (s *step) row(in []byte, src record.Value) string {
	s.vals = s.vals[:0]
	sep, single := s.sep[0], len(s.sep) == 1
	quote := s.quote
	for at := 0; ; {
		if len(s.vals) >= s.max {
			return "csv: more than max_columns columns"
		}
		if quote >= 0 {
			q := at
			for q < len(in) && (in[q] == ' ' || in[q] == '\t') && in[q] != sep {
				q++
			}
			if q < len(in) && in[q] == byte(quote) {
				next, msg := s.quoted(in, src, q+1)
				if msg != "" {
					return msg
				}
				if next < 0 {
					return ""
				}
				at = next
				continue
			}
		}
		end := at
		if single {
			for end < len(in) {
				c := in[end]
				if c == sep || c == '\n' {
					break
				}
				if int(c) == quote {
					return s.stray(end)
				}
				end++
			}
		} else {
			for end < len(in) && in[end] != '\n' && !(in[end] == sep && bytes.HasPrefix(in[end:], s.sep)) {
				if int(in[end]) == quote {
					return s.stray(end)
				}
				end++
			}
		}
		to, last := end, end == len(in) || in[end] == '\n'
		if last && to > at && in[to-1] == '\r' {
			to--
		}
		if to == at {
			s.vals = append(s.vals, record.MakeNull())
		} else {
			s.vals = append(s.vals, src.Sub(at, to))
		}
		if last {
			return ""
		}
		at = end + len(s.sep)
	}
}

func (s *step) stray(at int) string {
	return "csv: a quote within an unquoted value, at byte " + strconv.Itoa(at+1)
}

// quoted takes a value from behind its opening quote; next is where the next column begins, -1 at the row's end.
func (s *step) quoted(in []byte, src record.Value, at int) (next int, msg string) {
	q := byte(s.quote)
	from := at
	double, escapes := false, false
	for {
		n := bytes.IndexByte(in[at:], q)
		if n < 0 {
			return 0, "csv: the quote at byte " + strconv.Itoa(from) + " is not closed"
		}
		at += n
		if s.escape >= 0 && s.escape != s.quote {
			k := at
			for k > from && in[k-1] == byte(s.escape) {
				k--
			}
			if escapes = escapes || k < at; (at-k)%2 == 1 {
				at++
				continue
			}
		}
		if at+1 < len(in) && in[at+1] == q {
			double = true
			at += 2
			continue
		}
		break
	}
	v := src.Sub(from, at)
	if double || escapes {
		off := len(s.b.Buf)
		p := in[from:at]
		for i := 0; i < len(p); i++ {
			if i+1 < len(p) && (double && p[i] == q && p[i+1] == q || escapes && int(p[i]) == s.escape && (p[i+1] == q || int(p[i+1]) == s.escape)) {
				i++
			}
			s.b.Buf = append(s.b.Buf, p[i])
		}
		v = s.b.Since(off)
	}
	s.vals = append(s.vals, v)
	at++
	for at < len(in) && (in[at] == ' ' || in[at] == '\t' || in[at] == '\r') && in[at] != s.sep[0] {
		at++
	}
	switch {
	case at == len(in) || in[at] == '\n':
		return -1, ""
	case bytes.HasPrefix(in[at:], s.sep):
		return at + len(s.sep), ""
	}
	return 0, "csv: something follows the closing quote, at byte " + strconv.Itoa(at+1)
}
