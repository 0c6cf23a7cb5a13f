package expr

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/rsetl/rsetl/record"
)

// countAgg counts values.
type countAgg struct{}

func (countAgg) words() int                                           { return 1 }
func (countAgg) add(_ *Env, _ *Mem, w []uint64, _ record.Value)       { w[0]++ }
func (countAgg) merge(_ *Env, _ *Mem, w []uint64, _ *Mem, o []uint64) { w[0] += o[0] }
func (countAgg) result(_ *Env, _ *Mem, w []uint64) record.Value       { return record.MakeInt(int64(w[0])) }
func (countAgg) append(dst []byte, _ *Mem, w []uint64) []byte         { return appendWords(dst, w[:1]) }
func (countAgg) read(_ *Mem, w []uint64, p []byte) ([]byte, bool)     { return readWords(w[:1], p) }
func (countAgg) drop(*Mem, []uint64)                                  {}

// sumAgg sums exactly: integers and decimals in 128 bits, floats apart. Its words are low, high, meta, float.
type sumAgg struct {
	t   Type
	avg bool // the fifth word counts, the result is the average
}

// meta: the scale in the low 8 bits, then
const (
	sumSeen = 1 << (8 + iota)
	sumDecimal
	sumFloat
	sumOverflow
)

func (s *sumAgg) words() int {
	if s.avg {
		return 5
	}
	return 4
}

func (s *sumAgg) add(env *Env, _ *Mem, w []uint64, v record.Value) {
	if s.avg {
		w[4]++
	}
	w[2] |= sumSeen
	switch v.Kind() {
	case record.Int:
		x := v.Int()
		if w[2]&0xff == 0 {
			addWide(w, uint64(x), uint64(x>>63))
			return
		}
		addScaled(w, uint64(x), uint64(x>>63), 0)
	case record.Float:
		w[2] |= sumFloat
		w[3] = math.Float64bits(math.Float64frombits(w[3]) + v.Float())
	case record.Decimal:
		w[2] |= sumDecimal
		if !v.IsBig() {
			addScaled(w, uint64(v.Int()), uint64(v.Int()>>63), v.Scale())
			return
		}
		u := env.B.Unscaled(v)
		lo, hi, ok := wideOf(u)
		if !ok {
			w[2] |= sumOverflow
			return
		}
		addScaled(w, lo, hi, v.Scale())
	}
}

// addWide adds a number of the sum's scale.
func addWide(w []uint64, lo, hi uint64) {
	before := w[1]
	var c uint64
	w[0], c = bits.Add64(w[0], lo, 0)
	w[1], _ = bits.Add64(before, hi, c)
	if int64(before^hi) >= 0 && int64(before^w[1]) < 0 {
		w[2] |= sumOverflow
	}
}

// addScaled brings the number and the sum to the larger scale of both first.
func addScaled(w []uint64, lo, hi uint64, scale int) {
	at := int(w[2] & 0xff)
	switch {
	case scale > 76:
		w[2] |= sumOverflow
		return
	case scale > at:
		ok := true
		if w[0], w[1], ok = scaleWide(w[0], w[1], scale-at); !ok {
			w[2] |= sumOverflow
		}
		w[2] = w[2]&^0xff | uint64(scale)
	case scale < at:
		ok := true
		if lo, hi, ok = scaleWide(lo, hi, at-scale); !ok {
			w[2] |= sumOverflow
		}
	}
	addWide(w, lo, hi)
}

// scaleWide multiplies by 10^n.
func scaleWide(lo, hi uint64, n int) (uint64, uint64, bool) {
	if lo == 0 && hi == 0 {
		return 0, 0, true
	}
	neg := int64(hi) < 0
	if neg {
		lo, hi = negWide(lo, hi)
	}
	for n > 0 {
		k := min(n, 18)
		n -= k
		f := uint64(pow10[k])
		over, h := bits.Mul64(hi, f)
		carry, l := bits.Mul64(lo, f)
		var c uint64
		if h, c = bits.Add64(h, carry, 0); over != 0 || c != 0 || int64(h) < 0 {
			return 0, 0, false
		}
		lo, hi = l, h
	}
	if neg {
		lo, hi = negWide(lo, hi)
	}
	return lo, hi, true
}

func negWide(lo, hi uint64) (uint64, uint64) {
	lo, c := bits.Add64(^lo, 1, 0)
	return lo, ^hi + c
}

func wideOf(u *big.Int) (lo, hi uint64, ok bool) {
	if u.BitLen() > 127 {
		return 0, 0, false
	}
	a := new(big.Int).Abs(u)
	lo = new(big.Int).And(a, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi = new(big.Int).Rsh(a, 64).Uint64()
	if u.Sign() < 0 {
		lo, hi = negWide(lo, hi)
	}
	return lo, hi, true
}

func bigOf(lo, hi uint64) *big.Int {
	x := new(big.Int).Lsh(big.NewInt(int64(hi)), 64)
	return x.Add(x, new(big.Int).SetUint64(lo))
}

func (s *sumAgg) merge(_ *Env, _ *Mem, w []uint64, _ *Mem, o []uint64) {
	if o[2]&sumSeen == 0 {
		return
	}
	if w[2]&0xff == o[2]&0xff {
		addWide(w, o[0], o[1])
	} else {
		addScaled(w, o[0], o[1], int(o[2]&0xff))
	}
	w[2] |= o[2] &^ 0xff
	w[3] = math.Float64bits(math.Float64frombits(w[3]) + math.Float64frombits(o[3]))
	if s.avg {
		w[4] += o[4]
	}
}

func (s *sumAgg) result(env *Env, _ *Mem, w []uint64) record.Value {
	meta := w[2]
	scale := int(meta & 0xff)
	switch {
	case meta&sumSeen == 0:
		return null
	case meta&sumOverflow != 0:
		return env.overflow()
	case meta&sumFloat != 0 || s.t.isFloat():
		x := math.Float64frombits(w[3])
		if w[0] != 0 || w[1] != 0 {
			f, _ := new(big.Float).SetInt(bigOf(w[0], w[1])).Float64()
			x += f / math.Pow10(scale)
		}
		if s.avg {
			x /= float64(w[4])
		}
		if s.t.Kind == TFloat {
			x = float64(float32(x))
		}
		return record.MakeFloat(x)
	case meta&sumDecimal != 0 || s.t.Kind == TDecimal:
		u := bigOf(w[0], w[1])
		if s.t.Kind == TDecimal && !s.avg {
			return fitBig(env, rescaleBig(u, scale, s.t.Scale), s.t.Prec, s.t.Scale)
		}
		if !s.avg {
			return fitBig(env, u, 38, scale)
		}
		to := max(scale, 6)
		if s.t.Kind == TDecimal {
			to = s.t.Scale
		}
		n := new(big.Int).SetUint64(w[4])
		if to >= scale {
			u = bigDivHalfUp(u.Mul(u, bigTen(to-scale)), n)
		} else {
			u = bigDivHalfUp(u, n.Mul(n, bigTen(scale-to)))
		}
		return fitBig(env, u, 38, to)
	}
	lo, hi := w[0], w[1]
	if s.avg {
		q := new(big.Int).Quo(bigOf(lo, hi), new(big.Int).SetUint64(w[4]))
		return fitInt(env, q.Int64(), s.t.Kind)
	}
	if hi != uint64(int64(lo)>>63) {
		return env.overflow()
	}
	return fitInt(env, int64(lo), s.t.Kind)
}

func (s *sumAgg) append(dst []byte, _ *Mem, w []uint64) []byte {
	// Small numbers are short: the sign goes to the lowest bit.
	lo, hi := w[0], w[1]
	dst = appendWord(dst, w[2])
	dst = appendWord(dst, lo<<1^uint64(int64(lo)>>63))
	dst = appendWord(dst, hi^uint64(int64(lo)>>63))
	dst = appendWord(dst, bits.ReverseBytes64(w[3]))
	if s.avg {
		dst = appendWord(dst, w[4])
	}
	return dst
}

func (s *sumAgg) read(_ *Mem, w []uint64, p []byte) ([]byte, bool) {
	var x [5]uint64
	p, ok := readWords(x[:s.words()], p)
	if !ok {
		return nil, false
	}
	lo := x[1]>>1 ^ -(x[1] & 1)
	w[0], w[1], w[2], w[3] = lo, x[2]^uint64(int64(lo)>>63), x[0], bits.ReverseBytes64(x[3])
	if s.avg {
		w[4] = x[4]
	}
	return p, true
}

func (s *sumAgg) drop(*Mem, []uint64) {}

// momentAgg is variance and standard deviation by Welford's method, merged by Chan's. Its words are the number, the
// mean and the sum of squared differences from it.
type momentAgg struct {
	sample, root bool
}

func (*momentAgg) words() int { return 3 }

func (*momentAgg) add(env *Env, _ *Mem, w []uint64, v record.Value) {
	x := env.float(v)
	w[0]++
	mean, m2 := math.Float64frombits(w[1]), math.Float64frombits(w[2])
	d := x - mean
	mean += d / float64(w[0])
	m2 += d * (x - mean)
	w[1], w[2] = math.Float64bits(mean), math.Float64bits(m2)
}

func (*momentAgg) merge(_ *Env, _ *Mem, w []uint64, _ *Mem, o []uint64) {
	if o[0] == 0 {
		return
	}
	if w[0] == 0 {
		copy(w[:3], o[:3])
		return
	}
	n, m := float64(w[0]), float64(o[0])
	d := math.Float64frombits(o[1]) - math.Float64frombits(w[1])
	w[1] = math.Float64bits(math.Float64frombits(w[1]) + d*m/(n+m))
	w[2] = math.Float64bits(math.Float64frombits(w[2]) + math.Float64frombits(o[2]) + d*d*n*m/(n+m))
	w[0] += o[0]
}

func (a *momentAgg) result(_ *Env, _ *Mem, w []uint64) record.Value {
	n := w[0]
	if a.sample && n > 0 {
		n--
	}
	if n == 0 {
		return null
	}
	x := math.Float64frombits(w[2]) / float64(n)
	if a.root {
		x = math.Sqrt(x)
	}
	return record.MakeFloat(x)
}

func (*momentAgg) append(dst []byte, _ *Mem, w []uint64) []byte {
	dst = appendWord(dst, w[0])
	return appendWord(appendWord(dst, bits.ReverseBytes64(w[1])), bits.ReverseBytes64(w[2]))
}

func (*momentAgg) read(_ *Mem, w []uint64, p []byte) ([]byte, bool) {
	p, ok := readWords(w[:3], p)
	w[1], w[2] = bits.ReverseBytes64(w[1]), bits.ReverseBytes64(w[2])
	return p, ok
}

func (*momentAgg) drop(*Mem, []uint64) {}
