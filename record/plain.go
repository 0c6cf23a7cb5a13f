package record

import (
	"encoding/base64"
	"strconv"
	"time"
)

// AppendPlain appends a value as text without quotes: what JSON puts between
// them, and what CSV and SQL text columns get. Missing and Null are empty.
func (b *Batch) AppendPlain(dst []byte, v Value) []byte {
	switch v.kind {
	case Missing, Null:
		return dst
	case String:
		return append(dst, b.Bytes(v)...)
	case Bytes:
		return base64.StdEncoding.AppendEncode(dst, b.Bytes(v))
	case Date:
		y, m, d := time.Unix(v.Int()*86400, 0).UTC().Date()
		return appendDate(dst, y, int(m), d)
	case Clock:
		ns := v.Int()
		s := ns / 1e9
		dst = append2(dst, int(s/3600))
		dst = append2(append(dst, ':'), int(s/60%60))
		dst = append2(append(dst, ':'), int(s%60))
		return appendFraction(dst, uint32(ns%1e9), v.Digits())
	case Time:
		return AppendTime(dst, v)
	case Months:
		m := v.Int()
		if m < 0 {
			dst, m = append(dst, '-'), -m
		}
		dst = strconv.AppendInt(append(dst, 'P'), m/12, 10)
		return append(strconv.AppendInt(append(dst, 'Y'), m%12, 10), 'M')
	case Duration:
		ns := v.Int()
		u := uint64(ns)
		if ns < 0 {
			dst, u = append(dst, '-'), -u
		}
		dst = strconv.AppendUint(append(dst, "PT"...), u/1e9, 10)
		if f := uint32(u % 1e9); f != 0 {
			n := len(dst) + 1
			dst = appendFraction(dst, f, 9)
			for len(dst) > n && dst[len(dst)-1] == '0' {
				dst = dst[:len(dst)-1]
			}
		}
		return append(dst, 'S')
	}
	return b.AppendJSON(dst, v)
}

// AppendTime appends an instant as RFC 3339 in UTC. Years outside 0 to 9999 get a sign, as in ISO 8601.
func AppendTime(dst []byte, v Value) []byte {
	sec := v.Sec()
	day := floorDiv(sec, 86400)
	rest := int(sec - day*86400)
	y, m, d := civil(day)
	dst = appendDate(dst, y, m, d)
	dst = append2(append(dst, 'T'), rest/3600)
	dst = append2(append(dst, ':'), rest/60%60)
	dst = append2(append(dst, ':'), rest%60)
	return append(appendFraction(dst, v.n, v.Digits()), 'Z')
}

func appendDate(dst []byte, y, m, d int) []byte {
	switch {
	case y < 0:
		dst = append(dst, '-')
		y = -y
	case y > 9999:
		dst = append(dst, '+')
	}
	for p := 1000; p > 1 && y < p; p /= 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, int64(y), 10)
	dst = append2(append(dst, '-'), m)
	return append2(append(dst, '-'), d)
}

func append2(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

func appendFraction(dst []byte, ns uint32, digits int) []byte {
	if digits <= 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := uint32(100_000_000); digits > 0; digits-- {
		dst = append(dst, byte('0'+ns/p%10))
		p /= 10
	}
	return dst
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil turns days since 1970-01-01 into a date of the proleptic Gregorian calendar, counting
// from March of year 0 in eras of 400 years.
func civil(days int64) (y, m, d int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy - (153*mp+2)/5 + 1)
	m = int(mp + 3)
	y = int(yoe + era*400)
	if m > 12 {
		m -= 12
		y++
	}
	return
}

// AppendDecimal appends a Decimal in plain notation, all digits of its scale.
func (b *Batch) AppendDecimal(dst []byte, v Value) []byte {
	scale := v.Scale()
	var digits []byte
	var small [20]byte
	neg := false
	if v.IsBig() {
		u := b.Unscaled(v)
		neg = u.Sign() < 0
		digits = u.Abs(u).Append(nil, 10)
	} else {
		i := v.Int()
		neg = i < 0
		u := uint64(i)
		if neg {
			u = -u
		}
		digits = strconv.AppendUint(small[:0], u, 10)
	}
	if neg {
		dst = append(dst, '-')
	}
	if scale == 0 {
		return append(dst, digits...)
	}
	if len(digits) <= scale {
		dst = append(dst, '0', '.')
		for i := len(digits); i < scale; i++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	dst = append(dst, '.')
	return append(dst, digits[len(digits)-scale:]...)
}
