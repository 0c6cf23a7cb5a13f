package expr

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rsetl/rsetl/parsers/engine"
)

// regex is a compiled expression, for any number of goroutines.
type regex interface {
	match(p []byte) bool
	// find gives the offsets of the first match and its groups, nil where there is none. They hold until env's next use of a regex.
	find(env *Env, p []byte) []int
	// all gives the same for every match, one after the other.
	all(env *Env, p []byte) iter.Seq[[]int]
	groups() int
}

type engineRegex struct {
	re   *engine.Regex
	lit  *literalSet // answers match where the expression is only text
	free sync.Pool   // of engine.Matcher
}

func (r *engineRegex) match(p []byte) bool {
	if r.lit != nil {
		if m, ok := r.lit.match(p); ok {
			return m
		}
	}
	m := r.free.Get().(engine.Matcher)
	ok, _ := m.Match(p, nil)
	r.free.Put(m)
	return ok
}

func (r *engineRegex) groups() int { return r.re.Groups }

// offsets is room for those of one match.
func (r *engineRegex) offsets(env *Env) []int {
	env.offsets = slices.Grow(env.offsets[:0], 2*r.re.Groups+2)
	return env.offsets[:2*r.re.Groups+2]
}

func (r *engineRegex) find(env *Env, p []byte) []int {
	caps := r.offsets(env)
	m := r.free.Get().(engine.Matcher)
	ok, _ := m.Match(p, caps)
	r.free.Put(m)
	if !ok {
		return nil
	}
	return caps
}

func (r *engineRegex) all(env *Env, p []byte) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		// Another expression may be run within the loop.
		caps := r.offsets(env)
		env.offsets = nil
		m := r.free.Get().(engine.Matcher)
		_ = m.Each(p, caps, func() bool { return yield(caps) })
		r.free.Put(m)
		env.offsets = caps
	}
}

// compileRegex compiles a regular expression in Java's notation as far as Go
// has it, or a SIMILAR TO pattern.
func compileRegex(src string, similar bool, escape rune) (regex, error) {
	if similar {
		s, err := similarToRegex(src, escape)
		if err != nil {
			return nil, err
		}
		src = s
	} else {
		src = javaToGo(src)
	}
	re, err := engine.CompileGo(src)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %q is wrong: %s", src, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	r := &engineRegex{re: re, lit: literalsOf(src)}
	r.free.New = func() any { return re.Matcher() }
	return r, nil
}

// javaToGo rewrites what Java writes otherwise: possessive quantifiers have no
// counterpart, \h and \R have.
func javaToGo(s string) string {
	if !strings.ContainsAny(s, `\`) {
		return s
	}
	var sb strings.Builder
	class := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i+1 >= len(s) {
			if c == '[' {
				class = true
			} else if c == ']' {
				class = false
			}
			sb.WriteByte(c)
			continue
		}
		i++
		switch {
		case s[i] == 'h' && class:
			sb.WriteString(` \t`)
		case s[i] == 'h':
			sb.WriteString(`[ \t]`)
		case s[i] == 'R' && !class:
			sb.WriteString(`(?:\r\n|[\n\r\x0b\f])`)
		case s[i] == 'Z' && !class:
			sb.WriteString(`\n?\z`)
		case s[i] == 'e':
			sb.WriteString(`\x1b`)
		default:
			sb.WriteByte('\\')
			sb.WriteByte(s[i])
		}
	}
	return sb.String()
}

// similarToRegex translates a SIMILAR TO pattern: % and _ as in LIKE, | * + ? {} () [] as in regular expressions.
func similarToRegex(p string, escape rune) (string, error) {
	var sb strings.Builder
	sb.WriteString(`(?s)\A(?:`)
	class := false
	rs := []rune(p)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		switch {
		case escape != 0 && r == escape:
			i++
			if i == len(rs) {
				return "", fmt.Errorf("the SIMILAR TO pattern %q ends in an escape", p)
			}
			sb.WriteString(regexp.QuoteMeta(string(rs[i])))
		case class:
			if r == ']' {
				class = false
			}
			if r == '[' && i+1 < len(rs) && rs[i+1] == ':' {
				k := strings.Index(string(rs[i:]), ":]")
				if k < 0 {
					return "", fmt.Errorf("a class in the SIMILAR TO pattern %q is not closed", p)
				}
				for e := i + len([]rune(string(rs[i:])[:k])) + 2; i < e; i++ {
					r := rs[i]
					if r >= 'A' && r <= 'Z' {
						r += 32
					}
					sb.WriteRune(r)
				}
				i--
				continue
			}
			if r == '\\' || r == '[' {
				sb.WriteByte('\\')
			}
			sb.WriteRune(r)
		case r == '%':
			sb.WriteString(".*")
		case r == '_':
			sb.WriteString(".")
		case strings.ContainsRune("|*+?{}()", r):
			sb.WriteRune(r)
		case r == '[':
			class = true
			sb.WriteRune(r)
		default:
			sb.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	sb.WriteString(`)\z`)
	return sb.String(), nil
}

// Patterns that come with the data are compiled once and kept, up to a limit.
const maxPatterns = 256

type patternKey struct {
	kind   byte
	escape rune
	src    string
}

func cached[T any](env *Env, key patternKey, src []byte, make func(string) T) T {
	if env.patterns == nil {
		env.patterns = map[patternKey]any{}
	}
	key.src = view(src)
	if v, ok := env.patterns[key]; ok {
		return v.(T)
	}
	if len(env.patterns) >= maxPatterns {
		clear(env.patterns)
	}
	key.src = string(src)
	v := make(key.src)
	env.patterns[key] = v
	return v
}

func (env *Env) regex(src []byte, similar bool, escape rune) regex {
	kind := byte('r')
	if similar {
		kind = 's'
	}
	h := cached(env, patternKey{kind: kind, escape: escape}, src, func(s string) struct{ regex } {
		re, err := compileRegex(s, similar, escape)
		if err != nil {
			re = nil
		}
		return struct{ regex }{re}
	})
	return h.regex
}

func (env *Env) like(src []byte, escape rune) *likePattern {
	return cached(env, patternKey{kind: 'l', escape: escape}, src, func(s string) *likePattern {
		l, err := parseLike([]byte(s), escape)
		if err != nil {
			return nil
		}
		return l
	})
}

func (env *Env) datePattern(src []byte) *datePattern {
	return cached(env, patternKey{kind: 'd'}, src, func(s string) *datePattern {
		p, err := parseDatePattern(s)
		if err != nil {
			return nil
		}
		return p
	})
}
