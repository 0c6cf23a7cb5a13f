package logfmt

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape appends a text with its escapes, which are JSON's, resolved; one that is none stays.
func unescape(dst, p []byte) []byte {
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c != '\\' || i+1 == len(p) {
			dst = append(dst, c)
			continue
		}
		i++
		switch c = p[i]; c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'u':
			r, ok := hex4(p, i+1)
			if !ok {
				dst = append(dst, '\\', c)
				continue
			}
			i += 4
			if utf16.IsSurrogate(r) {
				if low, ok := hex4(p, i+3); ok && p[i+1] == '\\' && p[i+2] == 'u' && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, '\\', c)
		}
	}
	return dst
}

func hex4(p []byte, at int) (rune, bool) {
	if at+4 > len(p) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p[at:at+4]), 16, 32)
	return rune(n), err == nil
}
