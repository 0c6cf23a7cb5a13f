// Package numbers makes numbers of texts, exactly.
package numbers

import (
	"bytes"
	"math/big"
	"strconv"

	"github.com/rsetl/rsetl/record"
)

// maxDigits bounds a DECIMAL that a text makes.
const maxDigits = 1000

// Int makes a whole number of a text: an optional sign and digits, 0x and hexadecimal digits. One that doesn't fit 64
// bits is a DECIMAL. A fraction is cut off. ok is false, and the value the same, where it is no number.
func Int(b *record.Batch, v record.Value) (out record.Value, ok bool) {
	p := bytes.TrimSpace(b.Bytes(v))
	n, ok := small(p)
	if ok {
		return record.MakeInt(n), true
	}
	if len(p) > maxDigits {
		return v, false
	}
	text := string(p)
	if hex := bytes.TrimLeft(p, "+-"); len(hex) > 2 && hex[0] == '0' && hex[1]|0x20 == 'x' {
		if x, ok := new(big.Int).SetString(text, 0); ok {
			return b.BigDecimal(x, 0), true
		}
		if f, ok := hexFloat(text); ok {
			x, _ := big.NewFloat(f).Int(nil)
			return whole(b, x), true
		}
		return v, false
	}
	r, ok := rat(text)
	if !ok {
		return v, false
	}
	return whole(b, new(big.Int).Quo(r.Num(), r.Denom())), true
}

func whole(b *record.Batch, x *big.Int) record.Value {
	if x.IsInt64() {
		return record.MakeInt(x.Int64())
	}
	return b.BigDecimal(x, 0)
}

// small reads up to 18 digits.
func small(p []byte) (n int64, ok bool) {
	i, neg := 0, false
	if len(p) > 0 && (p[0] == '-' || p[0] == '+') {
		neg = p[0] == '-'
		i++
	}
	if i == len(p) || len(p)-i > 18 {
		return 0, false
	}
	for ; i < len(p); i++ {
		c := p[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	if neg {
		n = -n
	}
	return n, true
}

// maxExponent bounds a decimal exponent, so that a number of a few characters makes none of millions of digits.
const maxExponent = 400

// rat reads a decimal number, with a fraction and an exponent or without.
func rat(s string) (*big.Rat, bool) {
	digits := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c-'0' <= 9:
			digits = true
		case c == '.':
		case (c == '+' || c == '-') && (i == 0 || s[i-1]|0x20 == 'e'):
		case c|0x20 == 'e' && digits:
			e, err := strconv.Atoi(s[i+1:])
			if err != nil || e > maxExponent || e < -maxExponent {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	if !digits {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

func hexFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil { // without an exponent
		f, err = strconv.ParseFloat(s+"p0", 64)
	}
	return f, err == nil && f-f == 0
}

// Float makes a number of a text: DOUBLE where that has the same digits, else, for a number that is written out, DECIMAL.
func Float(b *record.Batch, v record.Value) (out record.Value, ok bool) {
	f, ok := Double(b.Bytes(v))
	if !ok {
		return v, false
	}
	p := bytes.TrimSpace(b.Bytes(v))
	if len(p) <= 16 || len(p) > maxDigits || bytes.ContainsAny(p, "eExX") {
		return record.MakeFloat(f), true
	}
	r, ok := rat(string(p))
	if !ok {
		return record.MakeFloat(f), true
	}
	if back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'f', -1, 64)); ok && back.Cmp(r) == 0 {
		return record.MakeFloat(f), true
	}
	scale := 0
	if dot := bytes.IndexByte(p, '.'); dot >= 0 {
		scale = len(p) - dot - 1
	}
	x, ok := new(big.Int).SetString(string(bytes.Replace(p, []byte("."), nil, 1)), 10)
	if !ok {
		return record.MakeFloat(f), true
	}
	return b.BigDecimal(x, scale), true
}

// Double reads a finite floating-point number; 0x and hexadecimal digits too.
func Double(p []byte) (float64, bool) {
	s := string(bytes.TrimSpace(p))
	if s == "" || !(s[0]-'0' <= 9 || s[0] == '.' || s[0] == '-' || s[0] == '+') {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c == '_' || c|0x20 == 'n' { // what only Go reads: 1_000, nan, inf
			return 0, false
		}
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f, f-f == 0
	}
	if t := bytes.TrimLeft([]byte(s), "+-"); len(t) > 2 && t[0] == '0' && t[1]|0x20 == 'x' {
		return hexFloat(s)
	}
	return 0, false
}
