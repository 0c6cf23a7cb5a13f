package json

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The grammar is RFC 8259's. All functions take the text and a place in it and give the place behind what they read,
// -1 where it does not fit; s.fail has then been called.

// fail notes the first thing that is wrong.
func (s *step) fail(at int, msg string) int {
	if s.msg == "" {
		s.msg, s.msgAt = msg, at
	}
	return -1
}

// failure says what is wrong and where.
func (s *step) failure(in []byte) string {
	what := "the end of the text"
	if s.msgAt < len(in) {
		what = strconv.Quote(string(in[s.msgAt:min(len(in), s.msgAt+12)]))
	}
	return "json: " + s.msg + " at byte " + strconv.Itoa(s.msgAt) + ", there is " + what
}

func space(in []byte, at int) int {
	for at < len(in) && in[at] <= ' ' && (in[at] == ' ' || in[at] == '\t' || in[at] == '\n' || in[at] == '\r') {
		at++
	}
	return at
}

func (s *step) word(in []byte, at int, w string) int {
	if len(in)-at < len(w) || string(in[at:at+len(w)]) != w {
		return s.fail(at, "expected "+w)
	}
	return at + len(w)
}

// str reads a text whose opening quote is before at and gives the place of the closing one. Escapes are checked.
func (s *step) str(in []byte, at int) (end int, escaped bool) {
	i := at
	for {
		// Eight bytes at a time while none is a quote, a backslash or a control character.
		for i+8 <= len(in) {
			if m := special(binary.LittleEndian.Uint64(in[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(in) {
			return s.fail(len(in), "the text's closing quote is missing"), false
		}
		switch c := in[i]; {
		case c == '"':
			return i, escaped
		case c == '\\':
			escaped = true
			if i+1 == len(in) {
				return s.fail(len(in), "the text's closing quote is missing"), false
			}
			switch in[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if _, ok := hex4(in[i+2:]); !ok {
					return s.fail(i, `an escape \u has not four hex digits`), false
				}
				i += 6
			default:
				return s.fail(i, "an unknown escape in a text"), false
			}
		case c < 0x20:
			return s.fail(i, "a control character within a text must be escaped"), false
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
	b := w ^ (lo * '\\')
	return ((q-lo)&^q | (b-lo)&^b | (w-lo*0x20)&^w) & hi
}

// unescape appends a text that str has checked with its escapes resolved. Half a surrogate pair becomes U+FFFD.
func unescape(dst, text []byte) []byte {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch c = text[i]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(text[i+1:])
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
			continue
		}
		dst = append(dst, c)
	}
	return dst
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

// skip checks a value of which nothing is wanted.
func (s *step) skip(in []byte, at, depth int) int {
	if at >= len(in) {
		return s.fail(at, "expected a value")
	}
	switch c := in[at]; c {
	case '"':
		end, _ := s.str(in, at+1)
		if end < 0 {
			return -1
		}
		return end + 1
	case '{':
		if depth++; depth > s.depth {
			return s.fail(at, "nested too deeply")
		}
		if at = space(in, at+1); at < len(in) && in[at] == '}' {
			return at + 1
		}
		for {
			if at >= len(in) || in[at] != '"' {
				return s.fail(at, "expected a key in quotes")
			}
			end, _ := s.str(in, at+1)
			if end < 0 {
				return -1
			}
			if at = space(in, end+1); at >= len(in) || in[at] != ':' {
				return s.fail(at, "expected a colon")
			}
			if at = s.skip(in, space(in, at+1), depth); at < 0 {
				return -1
			}
			if at = space(in, at); at < len(in) && in[at] == ',' {
				at = space(in, at+1)
				continue
			}
			if at < len(in) && in[at] == '}' {
				return at + 1
			}
			return s.fail(at, "expected a comma or }")
		}
	case '[':
		if depth++; depth > s.depth {
			return s.fail(at, "nested too deeply")
		}
		if at = space(in, at+1); at < len(in) && in[at] == ']' {
			return at + 1
		}
		for {
			if at = s.skip(in, at, depth); at < 0 {
				return -1
			}
			if at = space(in, at); at < len(in) && in[at] == ',' {
				at = space(in, at+1)
				continue
			}
			if at < len(in) && in[at] == ']' {
				return at + 1
			}
			return s.fail(at, "expected a comma or ]")
		}
	case 't':
		return s.word(in, at, "true")
	case 'f':
		return s.word(in, at, "false")
	case 'n':
		return s.word(in, at, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return s.skipNumber(in, at)
		}
		return s.fail(at, "expected a value")
	}
}
