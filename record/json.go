package record

import (
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// AppendJSONString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD; only what RFC 8259 demands is escaped.
func AppendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start, valid := 0, false
	for i := 0; ; {
		i = skipPlain(s, i, valid)
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			if valid = valid || utf8.Valid(s[i:]); valid {
				i = skipPlain(s, i, true)
				if i == len(s) {
					break
				}
				c = s[i]
			} else {
				r, n := utf8.DecodeRune(s[i:])
				if r == utf8.RuneError && n == 1 {
					dst = append(dst, s[start:i]...)
					dst = append(dst, "\uFFFD"...)
					start = i + 1
				}
				i += n
				// Text that isn't UTF-8 is often Latin-1 throughout: look at each rune, not at the rest again.
				return appendInvalid(dst, s[start:], i-start)
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// skipPlain finds the first byte of s from i on that a JSON string can't hold as it is,
// or, unless all of it is known to be UTF-8, that isn't ASCII.
func skipPlain(s []byte, i int, valid bool) int {
	const ones = 0x0101010101010101
	high := uint64(ones * 0x80)
	if valid {
		high = 0
	}
	from := i
	for ; i+8 <= len(s); i += 8 {
		w := word(s, i)
		q, bs := w^ones*'"', w^ones*'\\'
		// Of the bytes that this flags the lowest is right: borrows only go upwards.
		if m := ((w-ones*0x20)&^w|(q-ones)&^q|(bs-ones)&^bs)&(ones*0x80) | w&high; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	if i < len(s) && i > from { // the rest with some of what was looked at, which is plain
		w := word(s, len(s)-8)
		q, bs := w^ones*'"', w^ones*'\\'
		if m := ((w-ones*0x20)&^w|(q-ones)&^q|(bs-ones)&^bs)&(ones*0x80) | w&high; m != 0 {
			return len(s) - 8 + bits.TrailingZeros64(m)/8
		}
		return len(s)
	}
	for ; i < len(s); i++ {
		if c := s[i]; !safe[c] && (c < utf8.RuneSelf || !valid) {
			break
		}
	}
	return i
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendInvalid ends a string that isn't UTF-8; the first i bytes of s need no look.
func appendInvalid(dst, s []byte, i int) []byte {
	start := 0
	for i < len(s) {
		c := s[i]
		if safe[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			start = i + 1
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

const hex = "0123456789abcdef"

// safe are the bytes that need no look: ASCII without controls, quote and backslash.
var safe = func() (t [256]bool) {
	for c := 0x20; c < 0x80; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return
}()

// AppendJSON appends a value as JSON. Missing is null, Bytes are base64, times RFC 3339 in
// UTC with the fraction they have, intervals ISO 8601, numbers that are not finite null.
func (b *Batch) AppendJSON(dst []byte, v Value) []byte {
	switch v.kind {
	case String:
		return AppendJSONString(dst, b.Bytes(v))
	case Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case Float:
		return AppendFloat(dst, v.Float())
	case Bool:
		return strconv.AppendBool(dst, v.Bool())
	case Decimal:
		return b.AppendDecimal(dst, v)
	case Array:
		dst = append(dst, '[')
		for i, e := range b.Items(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = b.AppendJSON(dst, e)
		}
		return append(dst, ']')
	case Map:
		dst = append(dst, '{')
		kv := b.Items(v)
		for i := 0; i+1 < len(kv); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			if kv[i].kind == String {
				dst = AppendJSONString(dst, b.Bytes(kv[i]))
			} else {
				dst = append(dst, '"')
				dst = b.AppendPlain(dst, kv[i])
				dst = append(dst, '"')
			}
			dst = append(dst, ':')
			dst = b.AppendJSON(dst, kv[i+1])
		}
		return append(dst, '}')
	case Date, Clock, Time, Months, Duration, Bytes:
		dst = append(dst, '"')
		dst = b.AppendPlain(dst, v)
		return append(dst, '"')
	}
	return append(dst, "null"...)
}

// AppendFloat appends the shortest JSON number that reads back as f; null where f is not finite.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
