package expr

import (
	"bytes"

	"github.com/rsetl/rsetl/record"
)

// valueAgg keeps one of the values: the smallest, largest, first or last. Its words are the value, or the number of the
// blob that holds it, its kind (0: none yet) and, for first and last, when it came.
type valueAgg struct {
	pick pick
}

type pick uint8

const (
	pickMin pick = iota
	pickMax
	pickFirst
	pickLast
)

func (a *valueAgg) words() int {
	if a.pick >= pickFirst {
		return 3
	}
	return 2
}

// refers tells whether a value's bytes are outside of it.
func refers(v record.Value) bool {
	switch v.Kind() {
	case record.String, record.Bytes, record.Array, record.Map:
		return true
	}
	return v.IsBig()
}

func (a *valueAgg) add(env *Env, m *Mem, w []uint64, v record.Value) {
	if w[1] != 0 {
		switch a.pick {
		case pickFirst:
			return
		case pickLast:
		default:
			c, ok := a.compare(env, m, w, v)
			if !ok || (a.pick == pickMin) == (c >= 0) {
				return
			}
		}
	}
	a.set(env, m, w, v)
	if a.pick >= pickFirst {
		w[2] = env.Arrival
	}
}

// compare compares v with what is kept.
func (a *valueAgg) compare(env *Env, m *Mem, w []uint64, v record.Value) (int, bool) {
	k := record.Kind(w[1] >> 48)
	if k == v.Kind() {
		switch k {
		case record.Int:
			return cmpInt(v.Int(), int64(w[0])), true
		case record.String, record.Bytes:
			return bytes.Compare(env.bytes(v), m.blobs[w[0]]), true
		}
	}
	return compare(env, v, a.get(env, m, w))
}

func (a *valueAgg) set(env *Env, m *Mem, w []uint64, v record.Value) {
	var blob uint64
	if old := record.FromWords(0, w[1]); w[1] != 0 && refers(old) {
		blob = w[0]
	}
	if !refers(v) {
		m.dropBlob(blob)
		w[0], w[1] = v.Words()
		return
	}
	_, w[1] = v.Words()
	switch v.Kind() {
	case record.String, record.Bytes:
		w[0] = m.put(blob, env.bytes(v))
	default:
		env.tmp = env.B.AppendValue(env.tmp[:0], v)
		w[0] = m.put(blob, env.tmp)
	}
}

// get puts the value into env.B.
func (a *valueAgg) get(env *Env, m *Mem, w []uint64) record.Value {
	if w[1] == 0 {
		return null
	}
	v := record.FromWords(w[0], w[1])
	if !refers(v) {
		return v
	}
	p := m.blobs[w[0]]
	switch k := v.Kind(); k {
	case record.String, record.Bytes:
		return env.B.PutBytes(p).As(k)
	}
	vs, err := record.DecodeValues(env.B, p, 1, nil)
	if err != nil {
		return null
	}
	return vs[0]
}

func (a *valueAgg) merge(env *Env, m *Mem, w []uint64, om *Mem, o []uint64) {
	if o[1] == 0 {
		return
	}
	if w[1] != 0 {
		switch a.pick {
		case pickFirst:
			if w[2] <= o[2] {
				return
			}
		case pickLast:
			if w[2] >= o[2] {
				return
			}
		default:
			c, ok := a.compare(env, m, w, a.get(env, om, o))
			if !ok || (a.pick == pickMin) == (c >= 0) {
				return
			}
		}
	}
	a.set(env, m, w, a.get(env, om, o))
	if a.pick >= pickFirst {
		w[2] = o[2]
	}
}

func (a *valueAgg) result(env *Env, m *Mem, w []uint64) record.Value { return a.get(env, m, w) }

func (a *valueAgg) append(dst []byte, m *Mem, w []uint64) []byte {
	dst = appendWord(dst, w[1])
	if w[1] == 0 {
		return dst
	}
	if refers(record.FromWords(0, w[1])) {
		dst = appendBlock(dst, func(p []byte) []byte { return append(p, m.blobs[w[0]]...) })
	} else {
		dst = appendWord(dst, w[0])
	}
	if a.pick >= pickFirst {
		dst = appendWord(dst, w[2])
	}
	return dst
}

func (a *valueAgg) read(m *Mem, w []uint64, p []byte) (rest []byte, ok bool) {
	if w[1], p, ok = readWord(p); !ok || w[1] == 0 {
		return p, ok
	}
	if v := record.FromWords(0, w[1]); v.Kind() > record.Map {
		return nil, false
	} else if refers(v) {
		block, rest, ok := readBlock(p)
		if !ok {
			w[1] = 0
			return nil, false
		}
		w[0], p = m.put(0, block), rest
	} else if w[0], p, ok = readWord(p); !ok {
		return nil, false
	}
	if a.pick >= pickFirst {
		w[2], p, ok = readWord(p)
	}
	return p, ok
}

func (a *valueAgg) drop(m *Mem, w []uint64) {
	if w[1] != 0 && refers(record.FromWords(0, w[1])) {
		m.dropBlob(w[0])
	}
}
