package kv

import (
	"bytes"

	"github.com/rsetl/rsetl/record"
)

// next is where an expression matches next, found once for a stretch of the text.
type next struct{ from, to int }

// cursor finds matches of an expression from rising places on.
type cursor struct {
	re interface{ FindIndex([]byte) []int }
	at next
	ok bool // at holds
}

// find gives the match that begins at or behind i; from is len(in)+1 where there is none.
func (c *cursor) find(in []byte, i int) next {
	if c.ok && c.at.from >= i {
		return c.at
	}
	c.ok = true
	if loc := c.re.FindIndex(in[i:]); loc != nil {
		c.at = next{i + loc[0], i + loc[1]}
	} else {
		c.at = next{len(in) + 1, len(in) + 1}
	}
	return c.at
}

// byPattern parses pairs whose separators are expressions. Keys and unquoted values don't go beyond their line.
func (s *step) byPattern(in []byte, src record.Value) bool {
	fs, vs := cursor{re: s.fsRE}, cursor{re: s.vsRE}
	line := func(i int) int {
		if n := bytes.IndexByte(in[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(in)
	}
	for at := 0; at < len(in); {
		f, v := fs.find(in, at), vs.find(in, at)
		if v.from > len(in) {
			return true
		}
		end := min(f.from, v.from, line(at))
		switch {
		case end == at && f.from == at:
			at = max(f.to, at+1)
			continue
		case end == at && v.from == at: // a separator without a key
			at = max(v.to, at+1)
			continue
		case end == at:
			at++
			continue
		case end != v.from || end == f.from && f.to >= v.to && f.from < v.from: // a word without a value
			at = end
			continue
		}
		from, to, escaped := v.to, v.to, false
		next := v.to
		if q0, q1, x, e, ok := s.quoted(in, v.to); ok {
			from, to, next, escaped = q0, q1, x, e
			if after := fs.find(in, next); after.from == next {
				next = after.to
			}
		} else if from < len(in) {
			after := fs.find(in, from)
			to = min(after.from, line(from))
			next = to
			if after.from == to {
				next = after.to
			}
		}
		if !s.pair(in, src, at, end, from, min(to, len(in)), escaped) {
			return false
		}
		at = max(next, at+1)
	}
	return true
}

// object parses a value into a map; ok is false where it has no pairs.
func (s *step) object(v record.Value, depth int) (m record.Value, ok bool) {
	in := s.b.Bytes(v)
	if !s.vs.any(in) && !s.patterns {
		return v, false
	}
	sub := &inner{step: s, depth: depth}
	sub.parse(v)
	if len(sub.items) == 0 {
		return v, false
	}
	return s.b.PutItems(record.Map, sub.items), true
}

// inner collects the pairs of a value: those of a map, without the record's names.
type inner struct {
	*step
	depth int
	items []record.Value
}

func (x *inner) parse(v record.Value) {
	outer := x.step
	// The same walk as for the record, with a step that puts pairs into items.
	w := *outer
	w.key, w.folded, w.full = nil, nil, nil
	w.sink = func(in []byte, src record.Value, k0, k1, v0, v1 int, escaped bool) bool {
		if v0 == v1 && !w.empty {
			return true
		}
		if len(x.items) >= 2*w.max {
			return false
		}
		key := outer.b.PutBytes(w.keyOf(in[k0:k1]))
		val := w.valueOf(in, src, v0, v1, escaped, x.depth)
		for i := 0; i < len(x.items) && i < 2*64; i += 2 {
			if bytes.Equal(outer.b.Bytes(x.items[i]), outer.b.Bytes(key)) {
				old := x.items[i+1]
				vals := []record.Value{old, val}
				if old.Kind() == record.Array {
					vals = append(append(vals[:0:0], outer.b.Items(old)...), val)
				}
				x.items[i+1] = outer.b.PutItems(record.Array, vals)
				return true
			}
		}
		x.items = append(x.items, key, val)
		return true
	}
	w.text(v)
}
