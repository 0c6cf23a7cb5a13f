// Package letters changes the case of letters in place of a text, without allocating where it is ASCII.
package letters

import (
	"unicode"
	"unicode/utf8"
)

// Append appends p with its letters in that case: "lowercase", "uppercase", "capitalize" (the first letter upper, the others
// lower). Bytes that are not UTF-8 stay. It follows Unicode without regard to a language; one letter may become several.
func Append(dst, p []byte, to string) []byte {
	first := true
	for i := 0; i < len(p); {
		upper := to == "uppercase" || to == "capitalize" && first
		first = false
		c := p[i]
		if c < utf8.RuneSelf {
			switch {
			case upper && c-'a' < 26:
				c -= 'a' - 'A'
			case !upper && c-'A' < 26:
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(p[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, c)
		case upper && r == 'ß':
			if dst = append(dst, 'S', 'S'); to == "capitalize" {
				dst[len(dst)-1] = 's'
			}
		case upper:
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		case r == 'İ': // i with a dot above of its own
			dst = append(dst, "i\u0307"...)
		default:
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		i += n
	}
	return dst
}
