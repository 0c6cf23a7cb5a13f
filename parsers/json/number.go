package json

import (
	"math/big"
	"strconv"
	"unsafe"

	"github.com/rsetl/rsetl/record"
)

// maxDigits bounds a DECIMAL; a number with more digits, written out, is a DOUBLE.
const maxDigits = 1000

// skipNumber checks a number's form.
func (s *step) skipNumber(in []byte, at int) int {
	if in[at] == '-' {
		at++
	}
	from := at
	for at < len(in) && in[at]-'0' <= 9 {
		at++
	}
	switch {
	case at == from:
		return s.fail(at, "a number lacks digits")
	case at > from+1 && in[from] == '0':
		return s.fail(from, "a number begins with 0")
	}
	if at < len(in) && in[at] == '.' {
		at++
		from = at
		for at < len(in) && in[at]-'0' <= 9 {
			at++
		}
		if at == from {
			return s.fail(at, "a number lacks digits behind the point")
		}
	}
	if at < len(in) && in[at]|0x20 == 'e' {
		at++
		if at < len(in) && (in[at] == '+' || in[at] == '-') {
			at++
		}
		from = at
		for at < len(in) && in[at]-'0' <= 9 {
			at++
		}
		if at == from {
			return s.fail(at, "a number lacks digits in its exponent")
		}
	}
	return at
}

// number reads a number: BIGINT where it is whole, written without an exponent, and fits; DOUBLE where that reads back as the
// same digits; else DECIMAL.
func (s *step) number(in []byte, at int) (v record.Value, next int) {
	i := at
	neg := in[i] == '-'
	if neg {
		i++
	}
	from := i
	var n uint64
	for i < len(in) && in[i]-'0' <= 9 {
		n = n*10 + uint64(in[i]-'0')
		i++
	}
	d := i - from
	if d == 0 || d > 18 || d > 1 && in[from] == '0' {
		return s.otherNumber(in, at)
	}
	if i == len(in) || in[i] != '.' && in[i]|0x20 != 'e' {
		if neg {
			return record.MakeInt(-int64(n)), i
		}
		return record.MakeInt(int64(n)), i
	}
	if in[i] != '.' {
		return s.otherNumber(in, at)
	}
	i++
	from = i
	for i < len(in) && in[i]-'0' <= 9 {
		n = n*10 + uint64(in[i]-'0')
		i++
	}
	scale := i - from
	if scale == 0 || d+scale > 15 || i < len(in) && in[i]|0x20 == 'e' {
		return s.otherNumber(in, at)
	}
	// Both are exact, so the quotient is rounded once.
	f := float64(n) / pow10[scale]
	if neg {
		f = -f
	}
	return record.MakeFloat(f), i
}

func (s *step) otherNumber(in []byte, at int) (v record.Value, next int) {
	next = s.skipNumber(in, at)
	if next < 0 {
		return v, -1
	}
	text := in[at:next]
	str := unsafe.String(unsafe.SliceData(text), len(text)) // not kept
	// The digits without leading and trailing zeros are significant; the value is digits * 10^power.
	digits := s.digits[:0]
	power, whole := 0, true
	neg := text[0] == '-'
	for i, c := range text {
		if c-'0' <= 9 {
			if !whole {
				power--
			}
			if len(digits) > 0 || c != '0' {
				digits = append(digits, c)
			}
		} else if c == '.' {
			whole = false
		} else if c|0x20 == 'e' {
			whole = false
			e, err := strconv.Atoi(str[i+1:])
			if err != nil || e > 1<<20 || e < -1<<20 {
				e = 1 << 20 * sign(str[i+1:])
			}
			power += e
			break
		}
	}
	s.digits = digits
	if whole {
		if i, err := strconv.ParseInt(str, 10, 64); err == nil {
			return record.MakeInt(i), next
		}
	}
	trimmed := digits
	for len(trimmed) > 0 && trimmed[len(trimmed)-1] == '0' {
		trimmed = trimmed[:len(trimmed)-1]
	}
	f, err := strconv.ParseFloat(str, 64)
	exact := err == nil && (f != 0 || len(digits) == 0)
	if exact && !whole && len(trimmed) > 15 {
		exact = sameDigits(f, trimmed)
	}
	if exact && !whole || len(digits) == 0 {
		return record.MakeFloat(f), next
	}
	size := len(digits) + max(power, 0)
	if size > maxDigits || -power > maxDigits {
		if err != nil {
			s.fail(at, "a number is out of range")
			return v, -1
		}
		return record.MakeFloat(f), next
	}
	for ; power > 0; power-- {
		digits = append(digits, '0')
	}
	s.digits = digits
	x, _ := new(big.Int).SetString(string(digits), 10)
	if neg {
		x.Neg(x)
	}
	return s.b.BigDecimal(x, -power), next
}

func sign(s string) int {
	if s[0] == '-' {
		return -1
	}
	return 1
}

// sameDigits tells whether f, written as short as it reads back, has these significant digits.
func sameDigits(f float64, digits []byte) bool {
	var buf [40]byte
	n := 0
	for _, c := range strconv.AppendFloat(buf[:0], f, 'e', -1, 64) {
		if c == 'e' {
			break
		}
		if c-'0' > 9 {
			continue
		}
		if n == len(digits) || c != digits[n] {
			return false
		}
		n++
	}
	return n == len(digits)
}

var pow10 = func() (t [23]float64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return
}()
