package engine

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// translated is an expression in the syntax that Go's regexp and regexp2 share.
type translated struct {
	text      string
	groups    int
	backtrack string // the construct that only a backtracking engine has; "" where there is none
}

// posix are the POSIX brackets, which follow Unicode in Ruby, as parts of a class.
var posix = map[string]string{
	"alpha": `\p{L}\p{M}`, "digit": `\p{Nd}`, "alnum": `\p{L}\p{M}\p{Nd}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`,
	"space": `\t\n\v\f\r` + "\u0085" + `\p{Z}`, "blank": `\t\p{Zs}`, "punct": `\p{P}$+<=>^` + "`" + `|~`, "cntrl": `\p{Cc}`, "xdigit": `0-9A-Fa-f`,
	"word": `\p{L}\p{M}\p{Nd}\p{Pc}`, "print": `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`, "graph": `\p{L}\p{M}\p{N}\p{P}\p{S}`, "ascii": `\x00-\x7f`,
}

type translator struct {
	in  string
	at  int
	out strings.Builder
	t   translated
	// depth of groups; bounded so that no engine's parser overflows
	depth int
}

// maxRegex bounds an expression after the expansion of its patterns.
const maxRegex = 1 << 20

func translate(src string) (translated, error) {
	if len(src) > maxRegex {
		return translated{}, &Error{Off: -1, Msg: fmt.Sprintf("the expression has %d bytes, more than %d", len(src), maxRegex)}
	}
	t := &translator{in: src}
	t.out.WriteString("(?ms)")
	if err := t.run(); err != nil {
		return translated{}, err
	}
	t.t.text = t.out.String()
	return t.t, nil
}

func (t *translator) fail(off int, format string, args ...any) error {
	return &Error{Off: off, Msg: fmt.Sprintf(format, args...)}
}

func (t *translator) needs(what string) {
	if t.t.backtrack == "" {
		t.t.backtrack = what
	}
}

func (t *translator) run() error {
	for t.at < len(t.in) {
		start := t.at
		switch c := t.in[t.at]; c {
		case '\\':
			if err := t.escape(false); err != nil {
				return err
			}
		case '[':
			if err := t.class(); err != nil {
				return err
			}
		case '(':
			if err := t.group(); err != nil {
				return err
			}
		case ')':
			if t.depth--; t.depth < 0 {
				return t.fail(t.at, "a ) closes nothing")
			}
			t.out.WriteByte(')')
			t.at++
		case '*', '+', '?':
			t.out.WriteByte(c)
			t.at++
			if t.at < len(t.in) && t.in[t.at] == '?' {
				t.out.WriteByte('?')
				t.at++
			} else if t.at < len(t.in) && t.in[t.at] == '+' {
				return t.fail(start, "a possessive quantifier (%c+) is not supported yet; write an atomic group (?>...%c)", c, c)
			}
		case '{':
			t.brace()
		default:
			t.out.WriteByte(c)
			t.at++
		}
	}
	if t.depth > 0 {
		return t.fail(len(t.in), "a ) is missing")
	}
	return nil
}

// brace translates `{,n}`; a brace that is no quantifier is itself.
func (t *translator) brace() {
	end := strings.IndexByte(t.in[t.at:], '}')
	body := ""
	if end > 0 {
		body = t.in[t.at+1 : t.at+end]
	}
	lo, hi, comma := strings.Cut(body, ",")
	if end <= 0 || !digits(lo) || !digits(hi) || lo == "" && hi == "" {
		t.out.WriteString(`\{`)
		t.at++
		return
	}
	if lo == "" {
		lo = "0"
	}
	t.out.WriteString("{" + lo)
	if comma {
		t.out.WriteString("," + hi)
	}
	t.out.WriteByte('}')
	t.at += end + 1
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= 6
}

const maxGroups = 250

func (t *translator) group() error {
	start := t.at
	if t.depth++; t.depth > maxGroups {
		return t.fail(start, "groups are nested too deeply")
	}
	rest := t.in[t.at:]
	switch {
	case !strings.HasPrefix(rest, "(?"):
		t.t.groups++
		t.out.WriteByte('(')
		t.at++
	case strings.HasPrefix(rest, "(?#"):
		t.depth--
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return t.fail(start, "the comment's ) is missing")
		}
		t.at += end + 1
	case strings.HasPrefix(rest, "(?:"):
		t.copy(3)
	case strings.HasPrefix(rest, "(?>"):
		t.needs("an atomic group (?>...)")
		t.copy(3)
	case strings.HasPrefix(rest, "(?="), strings.HasPrefix(rest, "(?!"):
		t.needs("a look-ahead (" + rest[1:3] + "...)")
		t.copy(3)
	case strings.HasPrefix(rest, "(?<="), strings.HasPrefix(rest, "(?<!"):
		t.needs("a look-behind (" + rest[1:4] + "...)")
		t.copy(4)
	case strings.HasPrefix(rest, "(?<"), strings.HasPrefix(rest, "(?P<"), strings.HasPrefix(rest, "(?'"):
		end := strings.IndexAny(rest[4:], ">'")
		if end < 0 {
			return t.fail(start, "the group's name has no end")
		}
		// Names are the caller's; groups are told apart by their numbers.
		t.t.groups++
		t.out.WriteByte('(')
		t.at += 4 + end + 1
	default:
		return t.flags(start)
	}
	return nil
}

// flags translates inline options: Ruby's m is what others call s.
func (t *translator) flags(start int) error {
	end := strings.IndexAny(t.in[t.at:], ":)")
	if end < 0 {
		return t.fail(start, "a ) is missing")
	}
	body := t.in[t.at+2 : t.at+end]
	var out strings.Builder
	for _, c := range body {
		switch c {
		case 'i', '-':
			out.WriteRune(c)
		case 'm':
			out.WriteByte('s')
		case 'u', 'a', 'd': // the kinds of character sets: UTF-8 is all there is
		case 'x':
			return t.fail(start, "the option x (blanks ignored) is not supported; write the expression without it")
		default:
			return t.fail(start, "unknown group (?%s", body)
		}
	}
	s := strings.TrimSuffix(out.String(), "-")
	if t.in[t.at+end] == ')' {
		t.depth--
		if s != "" {
			t.out.WriteString("(?" + s + ")")
		}
	} else {
		t.out.WriteString("(?" + s + ":")
	}
	t.at += end + 1
	return nil
}

func (t *translator) copy(n int) {
	t.out.WriteString(t.in[t.at : t.at+n])
	t.at += n
}

// escape translates what begins with a backslash, outside or inside a class.
func (t *translator) escape(class bool) error {
	start := t.at
	if t.at+1 >= len(t.in) {
		return t.fail(start, "the expression ends with a backslash")
	}
	c := t.in[t.at+1]
	t.at += 2
	switch {
	case c == 'h' && class:
		t.out.WriteString("0-9A-Fa-f")
	case c == 'h':
		t.out.WriteString("[0-9A-Fa-f]")
	case c == 'H' && !class:
		t.out.WriteString("[^0-9A-Fa-f]")
	case c == 'R' && !class:
		t.out.WriteString(`(?:\r\n|[\n\v\f\r` + "\u0085\u2028\u2029" + `])`)
	case c == 'Z' && !class:
		t.out.WriteString(`(?:\n?\z)`)
	case c == 'e':
		t.out.WriteString(`\x1b`)
	case c == 'b' && class:
		t.out.WriteString(`\x08`)
	case c == 'u' && t.at+4 <= len(t.in):
		r, err := strconv.ParseUint(t.in[t.at:t.at+4], 16, 32)
		if err != nil {
			return t.fail(start, `\u is followed by four hex digits`)
		}
		t.out.WriteString(regexp.QuoteMeta(string(rune(r))))
		t.at += 4
	case c >= '1' && c <= '9' && !class, c == 'k' && !class:
		return t.fail(start, "a back-reference is not supported yet")
	case c == 'G' || c == 'K' || c == 'X' || c == 'g' && !class:
		return t.fail(start, `\%c is not supported`, c)
	case c >= 0x80:
		t.out.WriteByte(c)
	case strings.IndexByte("dDwWsSbBAznrtfvaxpP", c) >= 0:
		t.out.WriteByte('\\')
		t.out.WriteByte(c)
	case c == '0':
		t.out.WriteString(`\x00`)
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		// Ruby takes an escaped letter without a meaning for the letter.
		t.out.WriteByte(c)
	default:
		t.out.WriteByte('\\')
		t.out.WriteByte(c)
	}
	return nil
}

// class translates a bracket class. Nested classes are joined with the outer one.
func (t *translator) class() error {
	start := t.at
	t.out.WriteByte('[')
	t.at++
	if t.at < len(t.in) && t.in[t.at] == '^' {
		t.out.WriteByte('^')
		t.at++
	}
	return t.classBody(start, true)
}

func (t *translator) classBody(start int, outer bool) error {
	first := true
	for ; t.at < len(t.in); first = false {
		rest := t.in[t.at:]
		switch c := t.in[t.at]; {
		case c == ']' && !first:
			t.at++
			if outer {
				t.out.WriteByte(']')
			}
			return nil
		case c == ']':
			t.out.WriteString(`\]`)
			t.at++
		case strings.HasPrefix(rest, "[:"):
			end := strings.Index(rest, ":]")
			name, neg := "", false
			if end > 0 {
				name, neg = strings.CutPrefix(rest[2:end], "^")
			}
			set, ok := posix[name]
			if !ok {
				t.out.WriteString(`\[`)
				t.at++
				break
			}
			if neg {
				return t.fail(t.at, "[:^%s:] is not supported yet", name)
			}
			t.out.WriteString(set)
			t.at += end + 2
		case c == '[':
			if strings.HasPrefix(rest, "[^") {
				return t.fail(t.at, "a negated class within a class is not supported yet")
			}
			t.at++
			if err := t.classBody(start, false); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "&&"):
			return t.fail(t.at, "an intersection of classes (&&) is not supported yet")
		case c == '\\':
			if err := t.escape(true); err != nil {
				return err
			}
		default:
			t.out.WriteByte(c)
			t.at++
		}
	}
	return t.fail(start, "a ] is missing")
}
