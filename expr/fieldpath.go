package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func nameStart(r rune) bool { return r == '_' || r == '@' || unicode.IsLetter(r) }
func namePart(r rune) bool {
	return r == '_' || r == '@' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

func plainName(s string, first bool) bool {
	if s == "" {
		return false
	}
	for i, r := range s {
		if r == utf8.RuneError || !namePart(r) || i == 0 && first && !nameStart(r) {
			return false
		}
	}
	return true
}

// ParsePath reads a field's path: names with dots between them, each a plain
// name or in backticks ("“" for a backtick). It gives the dotted path, which is
// the field's name in record.Table.
func ParsePath(s string) (string, error) {
	p, n, _, err := scanPath(s, 0)
	if err != nil {
		return "", err
	}
	if n != len(s) {
		return "", &Error{Off: n, Msg: "unexpected " + quoteAt(s, n) + " in a field's name", Hint: "put names with other characters in backticks: `user-agent`"}
	}
	return p, nil
}

// scanPath reads a path at the beginning of s; off is added to errors. bare
// tells that it is one name without backticks.
func scanPath(s string, off int) (path string, n int, bare bool, err error) {
	var parts []string
	bare = true
	for {
		if n < len(s) && s[n] == '`' {
			bare = false
			var sb strings.Builder
			start := n
			n++
			for {
				k := strings.IndexByte(s[n:], '`')
				if k < 0 {
					return "", n, false, &Error{Off: off + start, Msg: "a backtick is not closed"}
				}
				sb.WriteString(s[n : n+k])
				n += k + 1
				if n < len(s) && s[n] == '`' {
					sb.WriteByte('`')
					n++
					continue
				}
				break
			}
			if sb.Len() == 0 {
				return "", n, false, &Error{Off: off + start, Msg: "an empty name"}
			}
			parts = append(parts, sb.String())
		} else {
			start := n
			for n < len(s) {
				r, w := utf8.DecodeRuneInString(s[n:])
				if r == utf8.RuneError && w <= 1 || !namePart(r) || n == start && len(parts) == 0 && !nameStart(r) {
					break
				}
				n += w
			}
			if n == start {
				what := "the end"
				if n < len(s) {
					what = quoteAt(s, n)
				}
				return "", n, false, &Error{Off: off + n, Msg: "a field's name is expected, not " + what, Hint: "put names with other characters in backticks: `user-agent`"}
			}
			parts = append(parts, s[start:n])
		}
		if n < len(s) && s[n] == '.' && n+1 < len(s) {
			r, _ := utf8.DecodeRuneInString(s[n+1:])
			if r == '`' || namePart(r) {
				n++
				continue
			}
		}
		return strings.Join(parts, "."), n, bare && len(parts) == 1, nil
	}
}

func quoteAt(s string, n int) string {
	if n >= len(s) {
		return "the end"
	}
	_, w := utf8.DecodeRuneInString(s[n:])
	return "'" + s[n:n+w] + "'"
}
