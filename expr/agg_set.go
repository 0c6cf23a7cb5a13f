package expr

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/rsetl/rsetl/record"
)

// maxGroup bounds the bytes that one aggregate keeps of one group's values. What goes beyond makes its result NULL, counted.
const maxGroup = 16 << 20

var errState = errors.New("not the state of this aggregate")

// valueList keeps encoded values in the order they came: ARRAY_AGG, LISTAGG and the JSON aggregates.
type valueList struct {
	data []byte
	n    int
	over bool
	make func(env *Env, vs []record.Value) record.Value
	cols int // values that belong together
}

var _ Accumulator = (*valueList)(nil)

func (l *valueList) Add(env *Env, args []record.Value) {
	if l.over {
		return
	}
	for _, v := range args[:l.cols] {
		l.data = env.B.AppendValue(l.data, v)
	}
	l.n++
	l.check()
}

func (l *valueList) check() {
	if len(l.data) > maxGroup {
		l.over, l.data, l.n = true, nil, 0
	}
}

func (l *valueList) Merge(_ *Env, other Accumulator) {
	o := other.(*valueList)
	l.over = l.over || o.over
	if l.over {
		l.data, l.n = nil, 0
		return
	}
	l.data, l.n = append(l.data, o.data...), l.n+o.n
	l.check()
}

func (l *valueList) Result(env *Env) record.Value {
	if l.over {
		return env.overflow()
	}
	vs, err := record.DecodeValues(env.B, l.data, l.n*l.cols, nil)
	if err != nil {
		return null
	}
	return l.make(env, vs)
}

func (l *valueList) AppendBinary(dst []byte) []byte {
	over := byte(0)
	if l.over {
		over = 1
	}
	dst = append(dst, 1, over)
	return append(binary.AppendUvarint(dst, uint64(l.n)), l.data...)
}

func (l *valueList) Restore(p []byte) error {
	if len(p) < 3 || p[0] != 1 {
		return errState
	}
	l.over = p[1] == 1
	n, rest, ok := readWord(p[2:])
	if !ok || n > uint64(len(rest)) {
		return errState
	}
	l.n, l.data = int(n), append([]byte(nil), rest...)
	return nil
}

func (l *valueList) Size() int { return 64 + cap(l.data) }

// bag keeps distinct values, each with its number, in the order they came first.
type bag struct {
	index map[string]int
	keys  []string // encoded values
	count []uint64
	bytes int
	over  bool
	make  func(env *Env, b *bag) record.Value
}

var _ Accumulator = (*bag)(nil)

func (s *bag) Add(env *Env, args []record.Value) {
	env.tmp = env.B.AppendValue(env.tmp[:0], args[0])
	s.put(env.tmp, 1)
}

func (s *bag) put(key []byte, n uint64) {
	if i, ok := s.index[string(key)]; ok {
		s.count[i] += n
		return
	}
	if s.bytes += len(key) + 60; s.bytes > maxGroup || s.over {
		s.over, s.index, s.keys, s.count = true, nil, nil, nil
		return
	}
	if s.index == nil {
		s.index = map[string]int{}
	}
	k := string(key)
	s.index[k] = len(s.keys)
	s.keys, s.count = append(s.keys, k), append(s.count, n)
}

func (s *bag) Merge(_ *Env, other Accumulator) {
	o := other.(*bag)
	if s.over = s.over || o.over; s.over {
		s.index, s.keys, s.count = nil, nil, nil
		return
	}
	for i, k := range o.keys {
		s.put([]byte(k), o.count[i])
	}
}

func (s *bag) Result(env *Env) record.Value {
	if s.over {
		return env.overflow()
	}
	return s.make(env, s)
}

// each calls f with the values.
func (s *bag) each(env *Env, f func(v record.Value, n uint64)) {
	for i, k := range s.keys {
		if vs, err := record.DecodeValues(env.B, []byte(k), 1, nil); err == nil {
			f(vs[0], s.count[i])
		}
	}
}

func (s *bag) AppendBinary(dst []byte) []byte {
	over := byte(0)
	if s.over {
		over = 1
	}
	dst = append(dst, 1, over)
	dst = binary.AppendUvarint(dst, uint64(len(s.keys)))
	for i, k := range s.keys {
		dst = binary.AppendUvarint(dst, s.count[i])
		dst = append(binary.AppendUvarint(dst, uint64(len(k))), k...)
	}
	return dst
}

func (s *bag) Restore(p []byte) error {
	if len(p) < 3 || p[0] != 1 {
		return errState
	}
	s.over = p[1] == 1
	n, p, ok := readWord(p[2:])
	for i := uint64(0); ok && i < n; i++ {
		var c uint64
		var key []byte
		if c, p, ok = readWord(p); ok {
			if key, p, ok = readBlock(p); ok {
				s.put(key, c)
			}
		}
	}
	if !ok || len(p) != 0 {
		return errState
	}
	return nil
}

func (s *bag) Size() int { return 96 + s.bytes }

// newDistinct makes an aggregate over the distinct values of the group.
func newDistinct(inner aggregate, count bool) func() Accumulator {
	return func() Accumulator {
		return &bag{make: func(env *Env, s *bag) record.Value {
			if count {
				return record.MakeInt(int64(len(s.keys)))
			}
			var m Mem
			w := make([]uint64, inner.words())
			s.each(env, func(v record.Value, _ uint64) { inner.add(env, &m, w, v) })
			return inner.result(env, &m, w)
		}}
	}
}

// newCollect makes a map from each value to its number.
func newCollect(*Call) (func() Accumulator, error) {
	return func() Accumulator {
		return &bag{make: func(env *Env, s *bag) record.Value {
			kv := make([]record.Value, 0, 2*len(s.keys))
			s.each(env, func(v record.Value, n uint64) { kv = append(kv, v, record.MakeInt(int64(n))) })
			return env.B.PutItems(record.Map, kv)
		}}
	}, nil
}

func newArrayAgg(*Call) (func() Accumulator, error) {
	return func() Accumulator {
		return &valueList{cols: 1, make: func(env *Env, vs []record.Value) record.Value {
			if len(vs) == 0 {
				return null
			}
			return env.B.PutItems(record.Array, vs)
		}}
	}, nil
}

func newListAgg(c *Call) (func() Accumulator, error) {
	sep := ","
	if c.Len() > 1 {
		s, ok := c.ConstText(1)
		if !ok {
			return nil, c.Errorf(1, "the separator is a constant text")
		}
		sep = s
	}
	return func() Accumulator {
		return &valueList{cols: 1, make: func(env *Env, vs []record.Value) record.Value {
			if len(vs) == 0 {
				return null
			}
			var out []byte
			for i, v := range vs {
				if i > 0 {
					out = append(out, sep...)
				}
				out = append(out, env.bytes(v)...)
			}
			return env.B.PutBytes(out)
		}}
	}, nil
}

// absent tells whether NULL values are left out; def is what holds without a clause.
func absent(c *Call, def bool) bool {
	if o := c.Node.Opts["ON NULL"]; o != nil {
		return o.Name == "ABSENT"
	}
	return def
}

func newJSONArrayAgg(c *Call) (func() Accumulator, error) {
	skip := absent(c, true)
	return func() Accumulator {
		return &valueList{cols: 1, make: func(env *Env, vs []record.Value) record.Value {
			out := []byte{'['}
			for _, v := range vs {
				if v.IsNull() && skip {
					continue
				}
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = env.B.AppendJSON(out, v)
			}
			return env.B.PutBytes(append(out, ']'))
		}}
	}, nil
}

func newJSONObjectAgg(c *Call) (func() Accumulator, error) {
	skip := absent(c, false)
	return func() Accumulator {
		return &valueList{cols: 2, make: func(env *Env, vs []record.Value) record.Value {
			out := []byte{'{'}
			for i := 0; i+1 < len(vs); i += 2 {
				if vs[i].IsNull() || vs[i+1].IsNull() && skip {
					continue
				}
				if len(out) > 1 {
					out = append(out, ',')
				}
				out = append(env.B.AppendJSON(out, vs[i]), ':')
				out = env.B.AppendJSON(out, vs[i+1])
			}
			return env.B.PutBytes(append(out, '}'))
		}}
	}, nil
}

// shares reads the constant shares of PERCENTILE.
func shares(c *Call) (ps []float64, array bool, err error) {
	v, ok := c.Const(1)
	bad := c.Errorf(1, "the share is a constant from 0 to 1, or an array of them")
	if !ok {
		return nil, false, bad
	}
	vs := []record.Value{v}
	if array = v.Kind() == record.Array; array {
		vs = c.Batch().Items(v)
	}
	for _, v := range vs {
		if !isNum(v.Kind()) {
			return nil, false, bad
		}
		p, err := strconv.ParseFloat(string(AppendText(nil, c.Batch(), v)), 64)
		if err != nil || p < 0 || p > 1 {
			return nil, false, bad
		}
		ps = append(ps, p)
	}
	return ps, array, nil
}
