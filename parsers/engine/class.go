package engine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asciiSets are the escapes that stand for sets, as a class's inside. \s is Go's: without the vertical tab.
var asciiSets = map[byte]string{'d': `0-9`, 'w': `0-9A-Z_a-z`, 's': `\t\n\f\r\x20`, 'h': `0-9A-Fa-f`}

// posix are the POSIX brackets and the properties of the same names, which follow Unicode in Ruby, as a class's inside.
var posix = map[string]string{
	"alpha": `\p{L}\p{M}`, "digit": `\p{Nd}`, "alnum": `\p{L}\p{M}\p{Nd}`, "upper": `\p{Lu}`, "lower": `\p{Ll}`,
	"space": `\t\n\v\f\r\x{85}\p{Z}`, "blank": `\t\p{Zs}`, "punct": `\p{P}\$\+<=>\^` + "\\`" + `\|~`, "cntrl": `\p{Cc}`, "xdigit": `0-9A-Fa-f`,
	"word": `\p{L}\p{M}\p{Nd}\p{Pc}`, "print": `\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`, "graph": `\p{L}\p{M}\p{N}\p{P}\p{S}`, "ascii": `\x00-\x7f`,
}

// set is a class as ranges of characters, from and to in turn, ascending and apart.
type set []rune

func (s set) union(o set) set {
	all := append(slices.Clone(s), o...)
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(all)/2)
	for i := 0; i+1 < len(all); i += 2 {
		spans = append(spans, span{all[i], all[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var out set
	for _, p := range spans {
		if n := len(out); n > 0 && p.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.hi)
			continue
		}
		out = append(out, p.lo, p.hi)
	}
	return out
}

func (s set) negate() set {
	var out set
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

func (s set) intersect(o set) set { return s.negate().union(o.negate()).negate() }

func tableSet(tab *unicode.RangeTable) set {
	var out set
	for _, r := range tab.R16 {
		if r.Stride == 1 {
			out = append(out, rune(r.Lo), rune(r.Hi))
			continue
		}
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, c, c)
		}
	}
	for _, r := range tab.R32 {
		if r.Stride == 1 {
			out = append(out, rune(r.Lo), rune(r.Hi))
			continue
		}
		for c := rune(r.Lo); c <= rune(r.Hi); c += rune(r.Stride) {
			out = append(out, c, c)
		}
	}
	return set(nil).union(out)
}

// class gives the set as a class.
func (s set) class() string {
	if len(s) == 0 {
		return `[^\x{0}-\x{10ffff}]`
	}
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(s); i += 2 {
		b.WriteString(quoteRune(s[i]))
		if s[i+1] > s[i] {
			b.WriteString("-" + quoteRune(s[i+1]))
		}
	}
	b.WriteByte(']')
	return b.String()
}

// property reads \p{Name}, \p{^Name}, \P{Name} and gives its text and its set.
func (t *translator) property() (string, set, error) {
	start := t.at
	neg := t.in[t.at+1] == 'P'
	rest := t.in[t.at+2:]
	if rest == "" {
		return "", nil, fail(start, `\p is followed by a property's name: \p{L}`)
	}
	name := ""
	if rest[0] == '{' {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return "", nil, fail(start, "the property's } is missing")
		}
		name = rest[1:end]
		t.at += 2 + end + 1
	} else {
		_, n := utf8.DecodeRuneInString(rest)
		name = rest[:n]
		t.at += 2 + n
	}
	if n, ok := strings.CutPrefix(name, "^"); ok {
		name, neg = n, !neg
	}
	kind := map[bool]string{false: `\p`, true: `\P`}[neg]
	if name == "Any" {
		s := set{0, unicode.MaxRune}
		if neg {
			s = nil
		}
		return s.class(), s, nil
	}
	if tab, ok := unicode.Categories[name]; ok && name != "Cn" && name != "LC" {
		return kind + "{" + name + "}", negateIf(tableSet(tab), neg), nil
	}
	if tab, ok := unicode.Scripts[name]; ok {
		return kind + "{" + name + "}", negateIf(tableSet(tab), neg), nil
	}
	if inside, ok := posix[strings.ToLower(name)]; ok {
		s := negateIf(insideSet(inside), neg)
		if neg {
			return "[^" + inside + "]", s, nil
		}
		return "[" + inside + "]", s, nil
	}
	return "", nil, fail(start, `there is no property %q; \p{L} are letters, \p{Nd} digits, \p{P} punctuation`, name)
}

func negateIf(s set, neg bool) set {
	if neg {
		return s.negate()
	}
	return s
}

// insideSet reads the inside of a class that this package has written itself.
func insideSet(inside string) set {
	t := &translator{in: "[" + inside + "]"}
	_, s, err := t.classItems(0)
	if err != nil {
		panic("engine: " + inside + ": " + err.Error())
	}
	return s
}

// class translates a bracket class. One that has classes, intersections or negated sets in it is computed.
func (t *translator) class() error {
	text, s, err := t.classItems(0)
	if err != nil {
		return err
	}
	if text == "" {
		text = s.class()
	}
	t.write(text)
	return nil
}

// classItems reads a class from its [ on. text is "" where it has no simple form.
func (t *translator) classItems(depth int) (text string, s set, err error) {
	start := t.at
	if depth > 50 {
		return "", nil, fail(start, "classes are nested too deeply")
	}
	t.at++
	neg := t.at < len(t.in) && t.in[t.at] == '^'
	if neg {
		t.at++
	}
	var out strings.Builder
	var left set // of an intersection
	simple, both := true, false
	// s is in order only where it is used.
	for first := true; ; first = false {
		if t.at >= len(t.in) {
			return "", nil, fail(start, "the class's ] is missing")
		}
		rest := t.in[t.at:]
		switch {
		case rest[0] == ']' && !first:
			t.at++
			s = s.union(nil)
			if both {
				s = left.intersect(s)
			}
			s = negateIf(s, neg)
			if !simple {
				return "", s, nil
			}
			if neg {
				return "[^" + out.String() + "]", s, nil
			}
			return "[" + out.String() + "]", s, nil
		case strings.HasPrefix(rest, "[:"):
			if end := strings.Index(rest, ":]"); end > 1 {
				name, not := strings.CutPrefix(rest[2:end], "^")
				if inside, ok := posix[name]; ok {
					t.at += end + 2
					s = append(s, negateIf(insideSet(inside), not)...)
					out.WriteString(inside)
					simple = simple && !not
					continue
				}
			}
			if depth == 0 && !strings.Contains(rest[1:], "]") {
				return "", nil, fail(start, "the class's ] is missing")
			}
			fallthrough
		case rest[0] == '[':
			_, inner, err := t.classItems(depth + 1)
			if err != nil {
				return "", nil, err
			}
			s = append(s, inner...)
			simple = false
		case strings.HasPrefix(rest, "&&"):
			t.at += 2
			s = s.union(nil)
			if both {
				s = left.intersect(s)
			}
			left, s, both, simple = s, nil, true, false
		default:
			lo, set, part, err := t.classItem()
			if err != nil {
				return "", nil, err
			}
			if set != nil || part != "" {
				s = append(s, set...)
				out.WriteString(part)
				simple = simple && part != ""
				continue
			}
			hi := lo
			// A - before ], a set or another class is itself.
			if r := t.in[t.at:]; len(r) > 1 && r[0] == '-' && r[1] != ']' && r[1] != '[' {
				at := t.at
				t.at++
				to, set, part, err := t.classItem()
				switch {
				case err != nil:
					return "", nil, err
				case set != nil || part != "":
					t.at = at
				case to < lo:
					return "", nil, fail(at, "the range %s-%s is empty", string(lo), string(to))
				default:
					hi = to
				}
			}
			s = append(s, lo, hi)
			out.WriteString(quoteRune(lo))
			if hi > lo {
				out.WriteString("-" + quoteRune(hi))
			}
		}
	}
}

// classItem reads one character, or an escape that stands for a set: then set is not nil or part not "".
func (t *translator) classItem() (r rune, s set, part string, err error) {
	if t.in[t.at] != '\\' {
		r, n := utf8.DecodeRuneInString(t.in[t.at:])
		t.at += n
		return r, nil, "", nil
	}
	if t.at+1 >= len(t.in) {
		return 0, nil, "", fail(t.at, "the expression ends with a backslash")
	}
	switch c := t.in[t.at+1]; c {
	case 'd', 'w', 's', 'h':
		t.at += 2
		return 0, insideSet(asciiSets[c]), asciiSets[c], nil
	case 'D', 'W', 'S', 'H':
		t.at += 2
		s := insideSet(asciiSets[c|0x20]).negate()
		part := s.class()
		return 0, s, part[1 : len(part)-1], nil
	case 'R', 'X':
		return 0, nil, "", fail(t.at, `\%c is not supported in a class`, c)
	case 'b':
		t.at += 2
		return '\b', nil, "", nil
	case 'p', 'P':
		text, s, err := t.property()
		if err != nil {
			return 0, nil, "", err
		}
		if strings.HasPrefix(text, "[^") {
			text = ""
		} else if strings.HasPrefix(text, "[") {
			text = text[1 : len(text)-1]
		}
		if s == nil {
			s = set{}
		}
		return 0, s, text, nil
	}
	r, err = t.char()
	return r, nil, "", err
}
