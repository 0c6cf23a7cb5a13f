package json

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"github.com/rsetl/rsetl/record"
)

// parser walks over one text. The grammar is RFC 8259's.
type parser struct {
	in  []byte
	at  int
	msg string
}

func (p *parser) fail(msg string) bool {
	if p.msg == "" {
		p.msg = msg
	}
	return false
}

// failure says what is wrong and where.
func (p *parser) failure() string {
	what := "the end of the text"
	if p.at < len(p.in) {
		what = strconv.Quote(string(p.in[p.at:min(len(p.in), p.at+12)]))
	}
	return fmt.Sprintf("json: %s at byte %d, there is %s", p.msg, p.at, what)
}

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func (p *parser) space() {
	for p.at < len(p.in) {
		switch p.in[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *parser) word(w string) bool {
	if len(p.in)-p.at < len(w) || string(p.in[p.at:p.at+len(w)]) != w {
		return p.fail("expected " + w)
	}
	p.at += len(w)
	return true
}

// empty tells whether the object that began at start has no member.
func (p *parser) empty(start int) bool {
	for _, c := range p.in[start+1 : p.at-1] {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// str gives the text between quotes; escaped tells whether it has escapes. It ends behind the closing quote.
func (p *parser) str() (text []byte, escaped, ok bool) {
	in := p.in
	i := p.at + 1
	start := i
	for {
		// Eight bytes at a time while none is a quote, a backslash or a control character.
		for i+8 <= len(in) {
			w := binary.LittleEndian.Uint64(in[i:])
			if m := special(w); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(in) {
			p.at = len(in)
			return nil, false, p.fail("the text's closing quote is missing")
		}
		switch c := in[i]; {
		case c == '"':
			p.at = i + 1
			return in[start:i], escaped, true
		case c == '\\':
			escaped = true
			i += 2
		case c < 0x20:
			p.at = i
			return nil, false, p.fail("a control character within a text must be escaped")
		default:
			i++
		}
	}
}

// special has the high bit set in every byte that is a quote, a backslash or below 0x20 (and perhaps in bytes
// behind the first such one).
func special(w uint64) uint64 {
	const lo, hi = 0x0101010101010101, 0x8080808080808080
	q := w ^ (lo * '"')
	s := w ^ (lo * '\\')
	return ((q-lo)&^q | (s-lo)&^s | (w-lo*0x20)&^w) & hi
}

// unescape appends the text with its escapes resolved. Half a surrogate pair becomes U+FFFD.
func (p *parser) unescape(dst, text []byte) ([]byte, bool) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch text[i] {
		case '"', '\\', '/':
			dst = append(dst, text[i])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(text[i+1:])
			if !ok {
				return dst, p.fail("an escape \\u has not four hex digits")
			}
			i += 4
			if utf16.IsSurrogate(r) {
				low := rune(-1)
				if i+6 < len(text) && text[i+1] == '\\' && text[i+2] == 'u' {
					low, _ = hex4(text[i+3:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return dst, p.fail("an unknown escape in a text")
		}
	}
	return dst, true
}

func hex4(p []byte) (r rune, ok bool) {
	if len(p) < 4 {
		return 0, false
	}
	for _, c := range p[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// maxDigits bounds an exact decimal, as in SQL.
const maxDigits = 38

// number parses a number: BIGINT where it is whole and fits, else DOUBLE, or DECIMAL where a DOUBLE would not hold it
// exactly and 38 digits do.
func (s *step) number() (v record.Value, ok bool) {
	p := &s.p
	start := p.at
	neg := p.peek() == '-'
	if neg {
		p.at++
	}
	digits, scale := 0, 0
	var n uint64
	first := p.at
	for p.at < len(p.in) && p.in[p.at]-'0' <= 9 {
		if digits < 19 {
			n = n*10 + uint64(p.in[p.at]-'0')
		}
		digits++
		p.at++
	}
	switch {
	case digits == 0:
		return v, p.fail("a number lacks digits")
	case digits > 1 && p.in[first] == '0':
		return v, p.fail("a number begins with 0")
	}
	whole := true
	exp := false
	if p.peek() == '.' {
		whole = false
		p.at++
		for p.at < len(p.in) && p.in[p.at]-'0' <= 9 {
			if digits < 19 {
				n = n*10 + uint64(p.in[p.at]-'0')
			}
			digits++
			scale++
			p.at++
		}
		if scale == 0 {
			return v, p.fail("a number lacks digits behind the point")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		whole, exp = false, true
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		from := p.at
		for p.at < len(p.in) && p.in[p.at]-'0' <= 9 {
			p.at++
		}
		if p.at == from {
			return v, p.fail("a number lacks digits in its exponent")
		}
	}
	text := p.in[start:p.at]
	switch {
	case whole && digits <= 18:
		i := int64(n)
		if neg {
			i = -i
		}
		return record.MakeInt(i), true
	case whole:
		x, _ := new(big.Int).SetString(string(text), 10)
		if x.IsInt64() {
			return record.MakeInt(x.Int64()), true
		}
		if digits <= maxDigits {
			return s.b.BigDecimal(x, 0), true
		}
	case !exp && digits <= 15 && scale <= 22:
		// Both are exact, so the quotient is rounded once.
		f := float64(n) / pow10[scale]
		if neg {
			f = -f
		}
		return record.MakeFloat(f), true
	case !exp && digits > 17 && digits <= maxDigits:
		x, _ := new(big.Int).SetString(string(text[:len(text)-scale-1])+string(text[len(text)-scale:]), 10)
		return s.b.BigDecimal(x, scale), true
	}
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if err != nil {
		return v, p.fail("a number is out of range")
	}
	return record.MakeFloat(f), true
}

var pow10 = func() (t [23]float64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return
}()
