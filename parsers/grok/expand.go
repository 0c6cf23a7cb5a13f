package grok

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/record"
)

// Capture is one capturing group of an expanded pattern.
type Capture struct {
	Field string // dotted path
	Cast  string // "", "int", "float", "boolean"
}

// Expanded is a pattern with all names resolved: an expression whose groups are the captures, in order.
type Expanded struct {
	Regex    string
	Captures []Capture
}

// Error is a mistake in a pattern, at byte Off of it.
type Error struct {
	Off int
	Msg string
}

func (e *Error) Error() string { return e.Msg }

// bounds of an expansion: Logstash's own patterns stay far below.
const (
	maxDepth    = 100
	maxExpanded = 1 << 20
)

type expander struct {
	dict  Dictionary
	out   strings.Builder
	caps  []Capture
	stack []string
	keep  func(string) bool
}

// Expand resolves a pattern's names; without a dictionary (nil) there are none. Groups without a field don't capture, as with Logstash's named_captures_only.
// keep, where not nil, says which fields are wanted; the groups of others don't capture either.
func Expand(pattern string, dict Dictionary, keep func(field string) bool) (*Expanded, error) {
	x := &expander{dict: dict, keep: keep}
	if err := x.text(pattern, 0); err != nil {
		return nil, err
	}
	if keep != nil && strings.Contains(x.out.String(), `\k<`) {
		return Expand(pattern, dict, nil) // the expression refers to groups of its own
	}
	return &Expanded{Regex: x.out.String(), Captures: x.caps}, nil
}

// reference is `%{NAME}`, `%{NAME:field}`, `%{NAME:field:type}`, `%{NAME=regex}` with the field dotted or `[a][b]`. Words behind a
// blank are a remark, as in Logstash: `%{NAME - text}`.
var reference = regexp.MustCompile(`^%\{([A-Za-z0-9_]+)(?::((?:\[[^\[\]{}]+\])+|[^:{}\[\]=][^:{}=]*))?(?::([A-Za-z]+))?(?:=((?:[^{}\\]|\\.|\{[0-9,]*\})*))?(?: [^{}:=]*)?\}`)

// text expands a piece of a pattern. at is where it stands in the user's pattern; -1 within a definition.
func (x *expander) text(p string, at int) error {
	off := func(i int) int {
		if at < 0 {
			return -1
		}
		return at + i
	}
	class := 0
	for i := 0; i < len(p); {
		if x.out.Len() > maxExpanded {
			return &Error{off(i), "the pattern expands to more than 1MiB"}
		}
		rest := p[i:]
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p):
			x.out.WriteString(p[i : i+2])
			i += 2
		case x.dict != nil && strings.HasPrefix(rest, "%{"):
			m := reference.FindStringSubmatch(rest)
			if m == nil {
				end := strings.IndexByte(rest, '}')
				if end < 0 {
					return &Error{off(i), "a %{ has no end; write %{NAME} or %{NAME:field}"}
				}
				return &Error{off(i), fmt.Sprintf("%s is no pattern reference; write %%{NAME}, %%{NAME:field} or %%{NAME:field:int}", rest[:end+1])}
			}
			if err := x.reference(m, off(i)); err != nil {
				return err
			}
			i += len(m[0])
		case class > 0:
			if c == '[' {
				class++
			} else if c == ']' && !(p[i-1] == '[' || p[i-1] == '^' && i > 1 && p[i-2] == '[') {
				class--
			}
			x.out.WriteByte(c)
			i++
		case c == '[':
			class = 1
			x.out.WriteByte(c)
			i++
		case c == '(' && (strings.HasPrefix(rest, "(?<=") || strings.HasPrefix(rest, "(?<!")):
			x.out.WriteString(rest[:4])
			i += 4
		case c == '(' && (strings.HasPrefix(rest, "(?<") || strings.HasPrefix(rest, "(?P<")):
			open := strings.IndexByte(rest, '<')
			end := strings.IndexByte(rest, '>')
			if end < 0 {
				return &Error{off(i), "a group's name has no end; write (?<field>...)"}
			}
			name, cast, _ := strings.Cut(rest[open+1:end], ":")
			if err := x.capture(strings.ReplaceAll(name, "___", "."), cast, off(i)); err != nil {
				return err
			}
			i += end + 1
		case c == '(' && !strings.HasPrefix(rest, "(?"):
			x.out.WriteString("(?:")
			i++
		default:
			x.out.WriteByte(c)
			i++
		}
	}
	return nil
}

// capture opens the group of a field.
func (x *expander) capture(field, cast string, off int) error {
	path, err := fieldPath(field)
	if err != nil {
		return &Error{off, err.Error()}
	}
	switch cast {
	case "":
	case "int", "integer", "long":
		cast = "int"
	case "float", "double":
		cast = "float"
	case "bool", "boolean":
		cast = "boolean"
	case "string":
		cast = ""
	default:
		return &Error{off, fmt.Sprintf("unknown type %q; there are int, long, float, double, boolean", cast)}
	}
	if x.keep != nil && !x.keep(path) {
		x.out.WriteString("(?:")
		return nil
	}
	x.caps = append(x.caps, Capture{path, cast})
	x.out.WriteString("(?<" + path + ">")
	return nil
}

// fieldPath turns `[a][b]` into a.b.
func fieldPath(f string) (string, error) {
	if strings.HasPrefix(f, "[") {
		f = strings.ReplaceAll(strings.Trim(f, "[]"), "][", ".")
	}
	f = strings.TrimSpace(f)
	if record.IsMeta(f) {
		return "", fmt.Errorf("%s is metadata and can't be set", f)
	}
	if f == "" || strings.HasPrefix(f, ".") || strings.HasSuffix(f, ".") || strings.Contains(f, "..") {
		return "", fmt.Errorf("%q is no field; write a dotted path like source.address", f)
	}
	return f, nil
}

func (x *expander) reference(m []string, off int) error {
	name, field, cast := m[1], m[2], m[3]
	def, ok := x.dict[name]
	if m[4] != "" || strings.HasSuffix(m[0], "=}") {
		def, ok = m[4], true
	}
	if !ok {
		names := x.dict.Names()
		msg := fmt.Sprintf("unknown pattern %s", name)
		if n := config.Nearest(name, names); n != "" {
			msg += "; did you mean " + n + "?"
		}
		if len(x.stack) > 0 {
			msg += " (in the definition of " + x.stack[len(x.stack)-1] + ")"
		}
		return &Error{off, msg}
	}
	if slices.Contains(x.stack, name) {
		return &Error{off, fmt.Sprintf("the pattern %s refers to itself: %s", name, strings.Join(append(x.stack, name), " > "))}
	}
	if len(x.stack) >= maxDepth {
		return &Error{off, "patterns are nested too deeply"}
	}
	if field != "" {
		if err := x.capture(field, cast, off); err != nil {
			return err
		}
	} else {
		x.out.WriteString("(?:")
	}
	x.stack = append(x.stack, name)
	err := x.text(def, -1)
	x.stack = x.stack[:len(x.stack)-1]
	if err != nil {
		if e, ok := err.(*Error); ok && e.Off < 0 {
			e.Off = off
		}
		return err
	}
	x.out.WriteByte(')')
	return nil
}

// placeholder is a pattern with its references replaced by as many word characters.
func placeholder(source string, dict Dictionary) string {
	if dict == nil {
		return source
	}
	return anyReference.ReplaceAllStringFunc(source, func(m string) string { return "(?:" + strings.Repeat("x", len(m)-4) + ")" })
}

var anyReference = regexp.MustCompile(`%\{[^{}]{1,}\}`)

// Pattern is a compiled pattern.
type Pattern struct {
	Source   string
	Regex    *engine.Regex
	Captures []Capture
}

// Compile expands and compiles a pattern.
func Compile(source string, dict Dictionary, keep func(field string) bool) (*Pattern, error) {
	x, err := Expand(source, dict, keep)
	if err != nil {
		return nil, err
	}
	re, err := engine.Compile(x.Regex)
	if err != nil {
		if e, ok := err.(*engine.Error); ok && x.Regex == source {
			return nil, &Error{e.Off, e.Msg}
		}
		// The place is the expansion's; a mistake of the pattern's own text is found there too.
		if _, err := engine.Compile(placeholder(source, dict)); err != nil {
			if e, ok := err.(*engine.Error); ok {
				return nil, &Error{e.Off, e.Msg}
			}
		}
		return nil, fmt.Errorf("%w (in the expansion of %s)", err, short(source))
	}
	return &Pattern{Source: source, Regex: re, Captures: x.Captures}, nil
}

// CompileMatcher compiles a pattern with the names of the ecs set and of more for yes-or-no answers: for multiline, which has patterns but no
// captures. Match may be called from any number of goroutines at once; a text that needs too long does not match.
func CompileMatcher(source string, more map[string]string) (interface{ Match(text []byte) bool }, error) {
	dict, _ := Set("ecs")
	if len(more) > 0 {
		dict = maps.Clone(dict)
		maps.Copy(dict, more)
	}
	p, err := Compile(source, dict, func(string) bool { return false })
	if err != nil {
		return nil, err
	}
	m := &matcher{}
	m.pool.New = func() any { return p.Regex.Matcher() }
	return m, nil
}

type matcher struct{ pool sync.Pool }

func (m *matcher) Match(text []byte) bool {
	w := m.pool.Get().(engine.Matcher)
	ok, err := w.Match(text, nil)
	m.pool.Put(w)
	return ok && err == nil
}
