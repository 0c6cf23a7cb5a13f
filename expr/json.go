package expr

import (
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

// AppendEvalJSON appends v, of static type t, as `rsetl eval --json` writes it:
// DECIMAL, NaN and infinities as strings, bytes as "0x…", times as text with
// the fraction they have, intervals as ISO 8601 durations, rows as lists, maps
// as objects.
func AppendEvalJSON(dst []byte, b *record.Batch, v record.Value, t Type) []byte {
	return appendEval(dst, b, v, &t)
}

func appendEval(dst []byte, b *record.Batch, v record.Value, t *Type) []byte {
	switch v.Kind() {
	case record.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case record.Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case record.Float:
		f, size := v.Float(), 64
		if t != nil && t.Kind == TFloat {
			size = 32
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			dst = append(dst, '"')
			dst = appendFloat(dst, f, 64)
			return append(dst, '"')
		}
		return appendFloat(dst, f, size)
	case record.Decimal:
		dst = append(dst, '"')
		dst = appendDecimal(dst, b, v)
		return append(dst, '"')
	case record.String:
		return appendJSONString(dst, b.Bytes(v))
	case record.Bytes:
		dst = append(dst, `"0x`...)
		n := len(dst)
		dst = hex.AppendEncode(dst, b.Bytes(v))
		upperASCII(dst[n:])
		return append(dst, '"')
	case record.Time:
		dst = append(dst, '"')
		// The fraction it has, in groups of three digits.
		d := 0
		switch n := v.Nsec(); {
		case n == 0:
		case n%1e6 == 0:
			d = 3
		case n%1e3 == 0:
			d = 6
		default:
			d = 9
		}
		dst = appendTimestamp(dst, record.MakeTime(v.Sec(), v.Nsec(), d))
		if t != nil && t.Kind == TTimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	case record.Date, record.Clock:
		dst = append(dst, '"')
		if v.Kind() == record.Clock && v.Int()%nsSecond != 0 {
			dst = appendClock(dst, v.Int(), 9)
			for dst[len(dst)-1] == '0' {
				dst = dst[:len(dst)-1]
			}
			return append(dst, '"')
		}
		dst = AppendText(dst, b, v)
		return append(dst, '"')
	case record.Months:
		dst = append(dst, '"')
		dst = appendPeriod(dst, v.Int())
		return append(dst, '"')
	case record.Duration:
		dst = append(dst, '"')
		dst = appendISODuration(dst, v.Int())
		return append(dst, '"')
	case record.Array:
		dst = append(dst, '[')
		for i, e := range b.Items(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendEval(dst, b, e, elemType(t, i))
		}
		return append(dst, ']')
	case record.Map:
		dst = append(dst, '{')
		it := b.Items(v)
		for i := 0; i+1 < len(it); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			if it[i].IsNull() {
				dst = append(dst, `"null"`...)
			} else {
				dst = appendJSONString(dst, appendText(nil, b, it[i], keyType(t)))
			}
			dst = append(dst, ':')
			dst = appendEval(dst, b, it[i+1], elemType(t, 0))
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func upperASCII(p []byte) {
	for i, c := range p {
		if c >= 'a' && c <= 'z' {
			p[i] = c - 32
		}
	}
}

// appendJSONString appends p as a JSON string; what is no UTF-8 becomes U+FFFD.
func appendJSONString(dst, p []byte) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	for len(p) > 0 {
		c := p[0]
		if c < utf8.RuneSelf {
			p = p[1:]
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			default:
				if c < 0x20 {
					dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
				} else {
					dst = append(dst, c)
				}
			}
			continue
		}
		r, n := utf8.DecodeRune(p)
		dst = utf8.AppendRune(dst, r)
		p = p[n:]
	}
	return append(dst, '"')
}
