package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// translated is an expression in the syntax of the engine that it was translated for.
type translated struct {
	text      string
	groups    int
	marks     []mark // what the text's groups stand for, in order; not for regexp2
	backtrack string // the construct that only a backtracking engine has; "" where there is none
}

// plain tells whether all groups of the text are the source's, as Go's regexp takes them.
func (t *translated) plain() bool {
	return len(t.marks) == t.groups && !slices.ContainsFunc(t.marks, func(m mark) bool { return m.toEnd })
}

// translator rewrites an expression. What the engines take differently is written out: `\d`, `\w`, `\s` and `\b` are ASCII,
// as in Go and Ruby, where regexp2 would follow Unicode.
type translator struct {
	in   string
	at   int
	out  []byte
	t    translated
	back bool // for regexp2, else for regexp
	big  bool // intervals become groups with a mark, since they exceed what Go's parser takes
	// The open groups, and what is true within the innermost.
	stack []scope
	scope
	captures int            // open capturing groups
	names    map[string]int // a named group's number; -1 where the name is given twice
	atom     int            // where in out the last atom begins; -1 where there is none that can be repeated
	atomMark int            // how many marks there were then
	inner    bool           // this is a look-around's inside: its ) ends it
	repeated bool           // the last atom has its quantifier
}

type scope struct {
	start     int // where in out the group begins
	open      int // where in the source
	marks     int // how many marks there were before it
	capturing bool
	optional  bool // stands for what is not taken in: its text need not be there
	extended  bool // (?x): blanks and comments don't count
	fold      bool // (?i)
	lines     bool // (?-m): . is no newline
}

const (
	// maxRegex bounds an expression after the expansion of its patterns.
	maxRegex = 1 << 20
	// maxGroups bounds the nesting, so that no engine's parser overflows.
	maxGroups = 250
)

const wordChar = `[0-9A-Za-z_]`

func translate(src string, back bool) (translated, error) { return translateTo(src, back, false) }

func translateTo(src string, back, big bool) (translated, error) {
	if len(src) > maxRegex {
		return translated{}, fail(-1, "the expression has %d bytes, more than %d", len(src), maxRegex)
	}
	if !utf8.ValidString(src) {
		return translated{}, fail(-1, "the expression is no UTF-8")
	}
	t := &translator{in: src, back: back, big: big, names: map[string]int{}, atom: -1}
	t.write("(?ms)")
	if err := t.run(); err != nil {
		return translated{}, err
	}
	t.t.text = string(t.out)
	return t.t, nil
}

func fail(off int, format string, args ...any) error {
	return &Error{Off: off, Msg: fmt.Sprintf(format, args...)}
}

func (t *translator) needs(what string) {
	if t.t.backtrack == "" {
		t.t.backtrack = what
	}
}

func (t *translator) write(s string) { t.out = append(t.out, s...) }

// begin notes that an atom begins here.
func (t *translator) begin() { t.atom, t.atomMark, t.repeated = len(t.out), len(t.t.marks), false }

func (t *translator) run() error {
	for t.at < len(t.in) {
		var err error
		switch c := t.in[t.at]; c {
		case '\\':
			t.begin()
			err = t.escape()
		case '[':
			t.begin()
			err = t.class()
		case '(':
			err = t.group()
		case ')':
			if t.inner && len(t.stack) == 0 {
				return nil
			}
			err = t.close()
		case '*', '+', '?':
			err = t.quantifier(string(c), 1)
		case '{':
			err = t.brace()
		case '|':
			t.write("|")
			t.at++
			t.atom = -1
		case ' ', '\t', '\n', '\r', '\f', '\v', '#':
			if !t.extended {
				t.literal()
				break
			}
			t.at++
			for c == '#' && t.at < len(t.in) && t.in[t.at] != '\n' {
				t.at++
			}
		default:
			t.literal()
		}
		if err != nil {
			return err
		}
	}
	if len(t.stack) > 0 {
		return fail(t.open, "the group's ) is missing")
	}
	return nil
}

// literal copies one character.
func (t *translator) literal() {
	t.begin()
	r, n := utf8.DecodeRuneInString(t.in[t.at:])
	if r == ']' || r == '}' {
		t.write(`\`)
	}
	t.write(t.in[t.at : t.at+n])
	t.at += n
}

// quantifier writes q, which n bytes of the source stand for, with what may follow it.
func (t *translator) quantifier(q string, n int) error {
	start := t.at
	if t.atom < 0 {
		return fail(start, "%s repeats nothing; write \\%s for the character", t.in[start:start+n], t.in[start:start+1])
	}
	if t.repeated { // Ruby repeats what is repeated already
		t.wrap("(?:")
	}
	t.at += n
	if t.big && q[0] == '{' {
		m := mark{kind: markRepeat}
		lo, hi, comma := strings.Cut(q[1:len(q)-1], ",")
		m.min, m.max = number(lo), number(hi)
		if !comma {
			m.max = m.min
		} else if hi == "" {
			m.max = -1
		}
		if strings.HasPrefix(t.in[t.at:], "?") {
			m.lazy = true
			t.at++
		}
		t.wrap("(")
		t.t.marks = slices.Insert(t.t.marks, t.atomMark, m)
		return nil
	}
	t.write(q)
	t.repeated = true
	if t.at == len(t.in) {
		return nil
	}
	switch t.in[t.at] {
	case '?':
		t.write("?")
		t.at++
	case '+':
		if q[0] == '{' {
			break // an interval has no possessive form: the + repeats it
		}
		t.at++
		if what := "a possessive quantifier (" + q + "+)"; t.back {
			t.needs(what)
			t.wrap("(?>")
		} else {
			t.wrap("(")
			t.t.marks = slices.Insert(t.t.marks, t.atomMark, mark{kind: markAtomic, what: what})
		}
	}
	return nil
}

// wrap puts the last atom, with its quantifier, into a group.
func (t *translator) wrap(open string) {
	tail := string(t.out[t.atom:])
	t.out = append(append(append(t.out[:t.atom], open...), tail...), ')')
	t.repeated = false
}

// brace translates `{,n}`; a brace that is no quantifier is itself.
func (t *translator) brace() error {
	end := strings.IndexByte(t.in[t.at:], '}')
	body := ""
	if end > 0 {
		body = t.in[t.at+1 : t.at+end]
	}
	lo, hi, comma := strings.Cut(body, ",")
	if end <= 0 || !digits(lo) || !digits(hi) || lo == "" && hi == "" {
		t.begin()
		t.write(`\{`)
		t.at++
		return nil
	}
	if t.atom < 0 {
		return fail(t.at, `%s repeats nothing; write \{ for the character`, t.in[t.at:t.at+end+1])
	}
	n, m := number(lo), number(hi)
	if n > maxRepeat || m > maxRepeat {
		return fail(t.at, "a part is repeated more than %d times", maxRepeat)
	}
	if hi != "" && m < n {
		return fail(t.at, "the interval %s is empty", t.in[t.at:t.at+end+1])
	}
	q := "{" + strconv.Itoa(n)
	if comma {
		q += ","
		if hi != "" {
			q += strconv.Itoa(m)
		}
	}
	return t.quantifier(q+"}", end+1)
}

const maxRepeat = 100_000

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) <= 9
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

// push opens a group. src is how long its beginning is in the source, text what it is written as.
func (t *translator) push(src int, text string, capturing bool) {
	t.stack = append(t.stack, t.scope)
	t.scope = scope{start: len(t.out), open: t.at, marks: len(t.t.marks), capturing: capturing, extended: t.extended, fold: t.fold, lines: t.lines}
	if capturing {
		t.captures++
		t.t.groups++
		t.t.marks = append(t.t.marks, mark{kind: markGroup, group: t.t.groups})
	}
	t.write(text)
	t.at += src
	t.atom = -1
}

// pushLook opens a look-around. For regexp, which has none, the text is one that matches wherever the expression does.
func (t *translator) pushLook(src int, text string) {
	if t.back {
		t.push(src, text, false)
		return
	}
	t.push(src, "(?:", false)
	t.optional = true
}

func (t *translator) close() error {
	if len(t.stack) == 0 {
		return fail(t.at, `this ) closes nothing; write \) for the character`)
	}
	t.write(")")
	t.at++
	if t.capturing {
		t.captures--
	}
	t.atom, t.atomMark, t.repeated = t.start, t.marks, t.optional
	if t.optional {
		t.write("?")
	}
	t.scope = t.stack[len(t.stack)-1]
	t.stack = t.stack[:len(t.stack)-1]
	return nil
}

func (t *translator) group() error {
	if len(t.stack) >= maxGroups {
		return fail(t.at, "groups are nested too deeply")
	}
	rest := t.in[t.at:]
	has := func(p string) bool { return strings.HasPrefix(rest, p) }
	switch {
	case t.special():
	case !has("(?"):
		t.push(1, "(", true)
	case has("(?#"):
		end := strings.IndexByte(rest, ')')
		if end < 0 {
			return fail(t.at, "the comment's ) is missing")
		}
		t.at += end + 1
	case has("(?:"):
		t.push(3, "(?:", false)
	case has("(?>") && t.back:
		t.needs("an atomic group (?>...)")
		t.push(3, "(?>", false)
	case has("(?>"):
		t.push(3, "(", false)
		t.t.marks = append(t.t.marks, mark{kind: markAtomic, what: "an atomic group (?>...)"})
	case !t.back && (has("(?=") || has("(?!") || has("(?<=") || has("(?<!")) && t.look():
	case has("(?="), has("(?!"):
		t.needs("a look-ahead (" + rest[1:3] + "...)")
		t.pushLook(3, rest[:3])
	case has("(?<="), has("(?<!"):
		t.needs("a look-behind (" + rest[1:4] + "...)")
		t.pushLook(4, rest[:4])
	case has("(?<"):
		return t.named(3, '>')
	case has("(?P<"):
		return t.named(4, '>')
	case has("(?'"):
		return t.named(3, '\'')
	default:
		return t.flags()
	}
	return nil
}

// named opens a named group. Names are the caller's, who counts groups; here only back-references need them.
func (t *translator) named(skip int, end byte) error {
	rest := t.in[t.at+skip:]
	n := strings.IndexByte(rest, end)
	if n < 0 {
		return fail(t.at, "the group's name has no end")
	}
	if n == 0 {
		return fail(t.at, "the group's name is empty")
	}
	name := rest[:n]
	t.push(skip+n+1, "(", true)
	if _, ok := t.names[name]; ok {
		t.names[name] = -1
	} else {
		t.names[name] = t.t.groups
	}
	return nil
}

// flags translates inline options: Ruby's m is what others call s.
func (t *translator) flags() error {
	end := strings.IndexAny(t.in[t.at:], ":)")
	if end < 0 {
		return fail(t.at, "the group's ) is missing")
	}
	body := t.in[t.at+2 : t.at+end]
	alone := t.in[t.at+end] == ')'
	if !alone {
		t.push(0, "", false)
	}
	text, on := "", true
	for _, c := range body {
		switch c {
		case '-':
			if !on {
				return fail(t.at, "unknown group (?%s", body)
			}
			on = false
			text += "-"
		case 'i':
			text += "i"
			t.fold = on
		case 'm', 's':
			text += "s"
			t.lines = !on
		case 'x':
			t.extended = on
		case 'u', 'a', 'd': // the kinds of character sets: there is one
		default:
			return fail(t.at, "unknown group (?%s", body)
		}
	}
	text = strings.TrimSuffix(text, "-")
	t.at += end + 1
	if !alone {
		t.write("(?" + text + ":")
	} else if text != "" {
		t.write("(?" + text + ")")
	}
	t.atom = -1
	return nil
}

// escape translates what begins with a backslash, outside of classes.
func (t *translator) escape() error {
	start := t.at
	if t.at+1 >= len(t.in) {
		return fail(start, "the expression ends with a backslash")
	}
	c := t.in[t.at+1]
	switch c {
	case 'd', 'D', 'w', 'W', 's', 'S', 'h', 'H':
		t.at += 2
		if t.back || c == 'h' || c == 'H' {
			set := asciiSets[c|0x20]
			if c < 'a' {
				t.write("[^" + set + "]")
			} else {
				t.write("[" + set + "]")
			}
			return nil
		}
		t.write(`\` + string(c))
		return nil
	case 'b', 'B':
		t.at += 2
		switch {
		case !t.back:
			t.write(`\` + string(c))
		case c == 'b':
			t.write(`(?:(?<=` + wordChar + `)(?!` + wordChar + `)|(?<!` + wordChar + `)(?=` + wordChar + `))`)
		default:
			t.write(`(?:(?<=` + wordChar + `)(?=` + wordChar + `)|(?<!` + wordChar + `)(?!` + wordChar + `))`)
		}
		return nil
	case 'A', 'z':
		t.at += 2
		t.write(`\` + string(c))
		return nil
	case 'Z':
		t.at += 2
		if t.captures > 0 || t.back {
			// Before the newline that ends the text; a capture must not take it in.
			t.needs(`\Z within a group`)
			if t.back {
				t.write(`\Z`)
			}
			return nil
		}
		t.write(`(?:\n?\z)`)
		return nil
	case 'R':
		t.at += 2
		t.write(`(?:\r\n|[\n\v\f\r\x{85}\x{2028}\x{2029}])`)
		return nil
	case 'N':
		t.at += 2
		t.write(`[^\n]`)
		return nil
	case 'G', 'K', 'X', 'g', 'y', 'Y':
		return fail(start, `\%c is not supported`, c)
	case 'k':
		return t.reference()
	case 'p', 'P':
		text, _, err := t.property()
		if err == nil {
			t.write(text)
		}
		return err
	}
	// Two octal digits or more are a character.
	if c >= '1' && c <= '9' && !(c <= '7' && t.at+2 < len(t.in) && t.in[t.at+2] >= '0' && t.in[t.at+2] <= '7') {
		return fail(start, `\%c is no reference here; name the group, (?<name>...), and write \k<name>`, c)
	}
	r, err := t.char()
	if err != nil {
		return err
	}
	t.write(quoteRune(r))
	return nil
}

// reference translates \k<name>.
func (t *translator) reference() error {
	rest := t.in[t.at+2:]
	end := strings.IndexByte(rest, '>')
	if len(rest) == 0 || rest[0] != '<' || end < 0 {
		return fail(t.at, `\k is followed by a name: \k<name>`)
	}
	name := rest[1:end]
	n, ok := t.names[name]
	if !ok {
		return fail(t.at, `\k<%s>: no group before has this name`, name)
	}
	if n < 0 {
		return fail(t.at, `\k<%s>: two groups have this name`, name)
	}
	t.needs(`a back-reference \k<` + name + `>`)
	t.at += 2 + end + 1
	if t.back {
		t.write(`(?:\` + strconv.Itoa(n) + `)`)
	} else {
		t.write(`(?:.*)`)
	}
	return nil
}

// char reads an escape that stands for one character.
func (t *translator) char() (rune, error) {
	start := t.at
	c, n := utf8.DecodeRuneInString(t.in[t.at+1:])
	t.at += 1 + n
	hex := func(digits int) (rune, bool) {
		if t.at+digits > len(t.in) {
			return 0, false
		}
		r, err := strconv.ParseUint(t.in[t.at:t.at+digits], 16, 32)
		if err != nil || r > unicode.MaxRune {
			return 0, false
		}
		t.at += digits
		return rune(r), true
	}
	braced := func() (rune, bool, bool) {
		if t.at == len(t.in) || t.in[t.at] != '{' {
			return 0, false, false
		}
		end := strings.IndexByte(t.in[t.at:], '}')
		if end < 2 || end > 9 {
			return 0, true, false
		}
		r, err := strconv.ParseUint(t.in[t.at+1:t.at+end], 16, 32)
		t.at += end + 1
		return rune(r), true, err == nil && r <= unicode.MaxRune
	}
	switch c {
	case 'n':
		return '\n', nil
	case 't':
		return '\t', nil
	case 'r':
		return '\r', nil
	case 'f':
		return '\f', nil
	case 'v':
		return '\v', nil
	case 'a':
		return '\a', nil
	case 'e':
		return 0x1b, nil
	case 'x', 'u':
		r, is, ok := braced()
		if !is {
			if c == 'u' {
				r, ok = hex(4)
			} else if r, ok = hex(2); !ok {
				r, ok = hex(1)
			}
		}
		if !ok || r >= 0xd800 && r < 0xe000 {
			return 0, fail(start, `\%c is followed by the hex digits of a character: \x41, \u20ac, \x{1f600}`, c)
		}
		return r, nil
	case '0', '1', '2', '3', '4', '5', '6', '7':
		end := t.at
		for end < len(t.in) && end < t.at+2 && t.in[end] >= '0' && t.in[end] <= '7' {
			end++
		}
		if r, err := strconv.ParseUint(t.in[t.at-1:end], 8, 8); err == nil {
			t.at = end
			return rune(r), nil
		}
	}
	// Ruby takes an escaped letter without a meaning for the letter.
	return c, nil
}

// quoteRune writes a character as both engines read it, in a class and outside. A needless backslash is no choice:
// regexp2 takes `\<` for a reference and `\-` at the end of a range for a set.
func quoteRune(r rune) string {
	switch {
	case strings.ContainsRune(`\.+*?()|[]{}^$`, r):
		return `\` + string(r)
	case r > ' ' && r < 0x7f && r != '-' && r != '#' && r != '&' || r >= 0x80 && unicode.IsPrint(r):
		return string(r)
	}
	return fmt.Sprintf(`\x{%x}`, r)
}
