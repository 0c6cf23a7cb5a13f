package expr

import (
	"math"
	"math/big"
	"strconv"
	"unsafe"

	"github.com/rsetl/rsetl/record"
)

// view is p as a string without copying; it must not outlive p's bytes.
func view(p []byte) string { return unsafe.String(unsafe.SliceData(p), len(p)) }

func isSpace(c byte) bool { return c <= ' ' }

func trimSpace(p []byte) []byte {
	for len(p) > 0 && isSpace(p[0]) {
		p = p[1:]
	}
	for len(p) > 0 && isSpace(p[len(p)-1]) {
		p = p[:len(p)-1]
	}
	return p
}

// ParseNumber reads a number in SQL's notation: digits with an optional sign,
// fraction and exponent. Whole numbers that fit 64 bits are Int, those with a
// fraction and no exponent a small Decimal where they fit one, all others
// Float. ok is false unless all of p is a number; blanks are not allowed.
func ParseNumber(p []byte) (record.Value, bool) {
	i, n := 0, len(p)
	if n == 0 {
		return record.Value{}, false
	}
	neg := false
	if p[0] == '-' || p[0] == '+' {
		neg = p[0] == '-'
		i++
	}
	var u uint64
	digits, scale, big, point := 0, 0, false, false
	for ; i < n; i++ {
		c := p[i]
		if c >= '0' && c <= '9' {
			digits++
			if u > (math.MaxInt64-9)/10 {
				big = true
			} else {
				u = u*10 + uint64(c-'0')
			}
			if point {
				scale++
			}
			continue
		}
		if c == '.' && !point {
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return record.Value{}, false
	}
	if i == n {
		if !big {
			x := int64(u)
			if neg {
				x = -x
			}
			if scale == 0 {
				return record.MakeInt(x), true
			}
			return record.MakeDecimal(x, scale), true
		}
		if !point {
			if x, err := strconv.ParseInt(view(p), 10, 64); err == nil {
				return record.MakeInt(x), true
			}
		}
	} else {
		if p[i] != 'e' && p[i] != 'E' {
			return record.Value{}, false
		}
		i++
		if i < n && (p[i] == '-' || p[i] == '+') {
			i++
		}
		if i == n {
			return record.Value{}, false
		}
		for ; i < n; i++ {
			if p[i] < '0' || p[i] > '9' {
				return record.Value{}, false
			}
		}
	}
	f, ok := parseFloat(p)
	return record.MakeFloat(f), ok
}

// parseFloat reads a float; one too large is infinite, as in Java.
func parseFloat(p []byte) (float64, bool) {
	f, err := strconv.ParseFloat(view(p), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// number gives a run-time value as a number: text is parsed, blanks around it
// ignored. ok is false where it is none.
func (env *Env) number(v record.Value) (record.Value, bool) {
	switch v.Kind() {
	case record.Int, record.Float, record.Decimal:
		return v, true
	case record.String:
		p := trimSpace(env.bytes(v))
		n, ok := ParseNumber(p)
		if ok {
			return n, true
		}
		switch string(p) {
		case "NaN":
			return record.MakeFloat(math.NaN()), true
		case "Infinity", "+Infinity":
			return record.MakeFloat(math.Inf(1)), true
		case "-Infinity":
			return record.MakeFloat(math.Inf(-1)), true
		}
	}
	return v, false
}

// float gives a number as a float; v must be Int, Float or Decimal.
func (env *Env) float(v record.Value) float64 {
	switch v.Kind() {
	case record.Int:
		return float64(v.Int())
	case record.Float:
		return v.Float()
	}
	return decFloat(env.B, v)
}

// parseDecimal reads a decimal of any size, with an optional exponent.
func parseDecimal(p []byte) (u *big.Int, scale int, ok bool) {
	exp := 0
	for i, c := range p {
		if c == 'e' || c == 'E' {
			x, err := strconv.Atoi(string(p[i+1:]))
			if err != nil || x > 1000 || x < -1000 {
				return nil, 0, false
			}
			exp, p = x, p[:i]
			break
		}
	}
	if len(p) == 0 || len(p) > 2000 {
		return nil, 0, false
	}
	buf := make([]byte, 0, len(p))
	digits, point := 0, false
	for i, c := range p {
		switch {
		case c >= '0' && c <= '9':
			digits++
			if point {
				scale++
			}
			buf = append(buf, c)
		case c == '.' && !point:
			point = true
		case (c == '-' || c == '+') && i == 0:
			buf = append(buf, c)
		default:
			return nil, 0, false
		}
	}
	if digits == 0 {
		return nil, 0, false
	}
	u, ok = new(big.Int).SetString(string(buf), 10)
	if !ok {
		return nil, 0, false
	}
	scale -= exp
	if scale < 0 {
		u.Mul(u, bigTen(-scale))
		scale = 0
	}
	return u, scale, true
}

// appendFloat writes a float as Java's Double.toString and Float.toString do:
// plain from 10^-3 to 10^7, else with an exponent, always with a fraction.
func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case f != f:
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0:
		if math.Signbit(f) {
			return append(dst, "-0.0"...)
		}
		return append(dst, "0.0"...)
	}
	a := math.Abs(f)
	if a >= 1e-3 && a < 1e7 {
		n := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, size)
		for _, c := range dst[n:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, '.', '0')
	}
	var tmp [32]byte
	p := strconv.AppendFloat(tmp[:0], f, 'e', -1, size)
	e := len(p) - 1
	for p[e] != 'e' {
		e--
	}
	m, x := p[:e], p[e+1:]
	dst = append(dst, m...)
	point := false
	for _, c := range m {
		point = point || c == '.'
	}
	if !point {
		dst = append(dst, '.', '0')
	}
	dst = append(dst, 'E')
	if x[0] == '-' {
		dst = append(dst, '-')
	}
	x = x[1:]
	for len(x) > 1 && x[0] == '0' {
		x = x[1:]
	}
	return append(dst, x...)
}
