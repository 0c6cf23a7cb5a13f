package expr

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/rsetl/rsetl/record"
)

var pow10 = func() (t [19]int64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return
}()

var bigPow10 = func() (t [100]*big.Int) {
	t[0] = big.NewInt(1)
	for i := 1; i < len(t); i++ {
		t[i] = new(big.Int).Mul(t[i-1], big.NewInt(10))
	}
	return
}()

func bigTen(n int) *big.Int {
	if n < len(bigPow10) {
		return bigPow10[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func digits64(x int64) int {
	u := uint64(x)
	if x < 0 {
		u = -u
	}
	n := 1
	for u >= 10 {
		u /= 10
		n++
	}
	return n
}

func digitsBig(x *big.Int) int {
	if x.Sign() == 0 {
		return 1
	}
	n := int(float64(x.BitLen()-1)*math.Log10(2)) + 1
	if x.CmpAbs(bigTen(n)) >= 0 {
		n++
	}
	return n
}

func mul64(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(abs64(a)), uint64(abs64(b)))
	if hi != 0 {
		return 0, false
	}
	if (a < 0) != (b < 0) {
		if lo > 1<<63 {
			return 0, false
		}
		return -int64(lo), true
	}
	if lo > math.MaxInt64 {
		return 0, false
	}
	return int64(lo), true
}

func abs64(a int64) int64 { // of MinInt64: itself, whose bits are right as uint64
	if a < 0 {
		return -a
	}
	return a
}

func add64(a, b int64) (int64, bool) {
	c := a + b
	return c, (c > a) == (b > 0)
}

// divHalfUp divides by a positive divisor, rounding half away from zero.
func divHalfUp(a, b int64) int64 {
	q, r := a/b, a%b
	if r < 0 {
		r = -r
	}
	if r >= b-r {
		if a < 0 {
			return q - 1
		}
		return q + 1
	}
	return q
}

func bigDivHalfUp(a, b *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	r.Lsh(r.Abs(r), 1)
	if r.CmpAbs(b) >= 0 {
		if a.Sign()*b.Sign() < 0 {
			q.Sub(q, bigPow10[0])
		} else {
			q.Add(q, bigPow10[0])
		}
	}
	return q
}

// asDec gives an Int or Decimal as unscaled value and scale; ok is false for big ones.
func asDec(v record.Value) (u int64, scale int, ok bool) {
	switch v.Kind() {
	case record.Int:
		return v.Int(), 0, true
	case record.Decimal:
		if v.IsBig() {
			return 0, v.Scale(), false
		}
		return v.Int(), v.Scale(), true
	}
	return 0, 0, false
}

func bigDec(b *record.Batch, v record.Value) (*big.Int, int) {
	if v.Kind() == record.Int {
		return big.NewInt(v.Int()), 0
	}
	return b.Unscaled(v), v.Scale()
}

// rescale64 changes the scale, rounding half up.
func rescale64(u int64, from, to int) (int64, bool) {
	switch {
	case to == from:
		return u, true
	case to > from:
		if to-from >= len(pow10) {
			return 0, u == 0
		}
		return mul64(u, pow10[to-from])
	case from-to >= len(pow10):
		return 0, from-to > len(pow10)
	}
	return divHalfUp(u, pow10[from-to]), true
}

func rescaleBig(u *big.Int, from, to int) *big.Int {
	if to >= from {
		return new(big.Int).Mul(u, bigTen(to-from))
	}
	return bigDivHalfUp(u, bigTen(from-to))
}

// fitDecimal rounds an Int or Decimal to DECIMAL(p, s); NULL where it has too many digits.
func fitDecimal(env *Env, v record.Value, p, s int) record.Value {
	if u, sc, ok := asDec(v); ok {
		if u, ok = rescale64(u, sc, s); ok {
			if p < 19 && (u >= pow10[min(p, 18)] || u <= -pow10[min(p, 18)]) {
				return env.overflow()
			}
			return record.MakeDecimal(u, s)
		}
	}
	u, sc := bigDec(env.B, v)
	return fitBig(env, rescaleBig(u, sc, s), p, s)
}

func fitBig(env *Env, u *big.Int, p, s int) record.Value {
	if digitsBig(u) > p {
		return env.overflow()
	}
	return env.B.BigDecimal(u, s)
}

func decFloat(b *record.Batch, v record.Value) float64 {
	if !v.IsBig() {
		u, s := v.Int(), v.Scale()
		if s == 0 {
			return float64(u)
		}
		if s <= 15 && u < 1<<53 && u > -1<<53 {
			return float64(u) / float64(pow10[s]) // both exact, so correctly rounded
		}
	}
	var tmp [64]byte
	f, _ := parseFloat(appendDecimal(tmp[:0], b, v))
	return f
}

// decInt is a decimal without its fraction.
func decInt(b *record.Batch, v record.Value) (int64, bool) {
	if !v.IsBig() {
		if v.Scale() >= len(pow10) {
			return 0, true
		}
		return v.Int() / pow10[v.Scale()], true
	}
	q := new(big.Int).Quo(b.Unscaled(v), bigTen(v.Scale()))
	return q.Int64(), q.IsInt64()
}

func decCompare(b *record.Batch, x, y record.Value) int {
	u, s, ok1 := asDec(x)
	w, t, ok2 := asDec(y)
	if ok1 && ok2 {
		if s < t {
			u, ok1 = rescale64(u, s, t)
		} else {
			w, ok1 = rescale64(w, t, s)
		}
		if ok1 {
			switch {
			case u < w:
				return -1
			case u > w:
				return 1
			}
			return 0
		}
	}
	p, s := bigDec(b, x)
	q, t := bigDec(b, y)
	if s < t {
		p = rescaleBig(p, s, t)
	} else {
		q = rescaleBig(q, t, s)
	}
	return p.Cmp(q)
}

// decArith computes x op y exactly (division: to scale s, rounded half up); s < 0: the natural scale.
func decArith(env *Env, op byte, x, y record.Value, p, s int) record.Value {
	if s < 0 {
		p = 38
	}
	u, sx, ok1 := asDec(x)
	w, sy, ok2 := asDec(y)
	if op == '/' || op == '%' {
		if ok2 && w == 0 {
			return null
		}
	}
	if ok1 && ok2 {
		if r, rs, ok := decArith64(op, u, sx, w, sy); ok {
			if s < 0 {
				return fitDecimal(env, record.MakeDecimal(r, rs), p, rs)
			}
			return fitDecimal(env, record.MakeDecimal(r, rs), p, s)
		}
	}
	a, sx := bigDec(env.B, x)
	c, sy := bigDec(env.B, y)
	sc := max(sx, sy)
	r := new(big.Int)
	switch op {
	case '+', '-', '%':
		a, c = rescaleBig(a, sx, sc), rescaleBig(c, sy, sc)
		switch op {
		case '+':
			r.Add(a, c)
		case '-':
			r.Sub(a, c)
		default:
			r.Rem(a, c)
		}
	case '*':
		sc = sx + sy
		r.Mul(a, c)
	case '/':
		sc = s
		if s < 0 {
			sc = min(max(6, sx+digitsBig(c)+1), 38)
		}
		// a/10^sx / (c/10^sy) = a*10^(sc+sy-sx) / c / 10^sc
		if k := sc + sy - sx; k >= 0 {
			r = bigDivHalfUp(new(big.Int).Mul(a, bigTen(k)), c)
		} else {
			r = bigDivHalfUp(a, new(big.Int).Mul(c, bigTen(-k)))
		}
	}
	if s < 0 {
		s = sc
		if sc > 38 {
			s = 38
		}
		if over := digitsBig(r) - 38; over > 0 {
			s = max(sc-over, min(sc, 6))
		}
	}
	return fitBig(env, rescaleBig(r, sc, s), p, s)
}

func decArith64(op byte, u int64, su int, w int64, sw int) (int64, int, bool) {
	var ok bool
	switch op {
	case '*':
		r, ok := mul64(u, w)
		return r, su + sw, ok && su+sw <= 38
	case '/':
		return 0, 0, false
	}
	s := max(su, sw)
	if u, ok = rescale64(u, su, s); !ok {
		return 0, 0, false
	}
	if w, ok = rescale64(w, sw, s); !ok {
		return 0, 0, false
	}
	switch op {
	case '+':
		u, ok = add64(u, w)
	case '-':
		if w == math.MinInt64 {
			return 0, 0, false
		}
		u, ok = add64(u, -w)
	case '%':
		if w == -1 {
			return 0, s, true
		}
		u = u % w
	}
	return u, s, ok
}

func appendDecimal(dst []byte, b *record.Batch, v record.Value) []byte {
	var tmp [64]byte
	var p []byte
	neg := false
	if v.IsBig() {
		u := b.Unscaled(v)
		neg = u.Sign() < 0
		p = new(big.Int).Abs(u).Append(tmp[:0], 10)
	} else {
		neg = v.Int() < 0
		u := uint64(abs64(v.Int()))
		i := len(tmp)
		for {
			i--
			tmp[i] = byte('0' + u%10)
			if u /= 10; u == 0 {
				break
			}
		}
		p = tmp[i:]
	}
	if neg {
		dst = append(dst, '-')
	}
	s := v.Scale()
	if s == 0 {
		return append(dst, p...)
	}
	if len(p) <= s {
		dst = append(dst, '0', '.')
		for k := len(p); k < s; k++ {
			dst = append(dst, '0')
		}
		return append(dst, p...)
	}
	dst = append(dst, p[:len(p)-s]...)
	dst = append(dst, '.')
	return append(dst, p[len(p)-s:]...)
}
