package gsub

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// regex is an expression for replacing: Go's regexp, or, for look-around and the like, regexp2 with a limit on time.
type regex struct {
	re   *regexp.Regexp
	back *regexp2.Regexp
}

// timeout bounds what one text may take where the expression needs backtracking.
const timeout = 50 * time.Millisecond

func compile(s string) (*regex, error) {
	re, err := regexp.Compile("(?m)" + s)
	if err == nil {
		return &regex{re: re}, nil
	}
	back, berr := regexp2.Compile(s, regexp2.Multiline)
	if berr != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	back.MatchTimeout = timeout
	return &regex{back: back}, nil
}

// part is a piece of a replacement: a text, or a group.
type part struct {
	text  []byte
	group int // -1: text, or name
	name  string
}

// parseReplacement reads \1, \0, \&, \k<name> and \\.
func parseReplacement(s []byte) []part {
	var out []part
	text := []byte(nil)
	flush := func() {
		if len(text) > 0 {
			out = append(out, part{text: text, group: -1})
			text = nil
		}
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			text = append(text, s[i])
			continue
		}
		switch c := s[i+1]; {
		case c-'0' <= 9:
			flush()
			out = append(out, part{group: int(c - '0')})
			i++
		case c == '&':
			flush()
			out = append(out, part{group: 0})
			i++
		case c == '\\':
			text = append(text, '\\')
			i++
		case c == 'k' && i+2 < len(s) && s[i+2] == '<':
			end := i + 3
			for end < len(s) && s[end] != '>' {
				end++
			}
			if end == len(s) {
				text = append(text, '\\')
				continue
			}
			flush()
			name := string(s[i+3 : end])
			p := part{group: -1, name: name}
			if n, err := strconv.Atoi(name); err == nil {
				p = part{group: n}
			}
			out = append(out, p)
			i = end
		default:
			text = append(text, '\\')
		}
	}
	flush()
	return out
}

// replace appends p with every match replaced. changed is false, and dst as it was, where there is none.
func (r *regex) replace(dst, p []byte, parts []part) (out []byte, changed bool, err error) {
	if r.re == nil {
		return r.backtrack(dst, p, parts)
	}
	names := r.re.SubexpNames()
	last := 0
	for _, m := range r.re.FindAllSubmatchIndex(p, -1) {
		changed = true
		dst = append(dst, p[last:m[0]]...)
		last = m[1]
		for _, x := range parts {
			g := x.group
			if x.name != "" {
				for k, n := range names {
					if n == x.name && m[2*k] >= 0 {
						g = k
					}
				}
			}
			switch {
			case g < 0:
				dst = append(dst, x.text...)
			case 2*g+1 < len(m) && m[2*g] >= 0:
				dst = append(dst, p[m[2*g]:m[2*g+1]]...)
			}
		}
	}
	if !changed {
		return dst, false, nil
	}
	return append(dst, p[last:]...), true, nil
}

const maxBacktrack = 1 << 20

func (r *regex) backtrack(dst, p []byte, parts []part) (out []byte, changed bool, err error) {
	if len(p) > maxBacktrack || !utf8.Valid(p) {
		return dst, false, errors.New("an expression with look-around is given UTF-8 of at most 1MiB")
	}
	end := time.Now().Add(4 * timeout)
	text := []rune(string(p))
	m, err := r.back.FindRunesMatch(text)
	last := 0
	for err == nil && m != nil {
		changed = true
		dst = append(dst, string(text[last:m.Index])...)
		last = m.Index + m.Length
		for _, x := range parts {
			var g *regexp2.Group
			switch {
			case x.name != "":
				g = m.GroupByName(x.name)
			case x.group >= 0:
				g = m.GroupByNumber(x.group)
			}
			if g == nil {
				dst = append(dst, x.text...)
			} else if len(g.Captures) > 0 {
				dst = append(dst, g.String()...)
			}
		}
		if time.Now().After(end) {
			err = errors.New("timeout")
			break
		}
		m, err = r.back.FindNextMatch(m)
	}
	if err != nil {
		return dst, false, errors.New("the expression takes too long for this text")
	}
	return append(dst, string(text[last:])...), changed, nil
}
