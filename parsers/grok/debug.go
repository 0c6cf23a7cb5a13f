package grok

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/rsetl/rsetl/parsers/engine"
)

// Debugger answers, for a pattern and a text, how far the text matched and which part of the pattern stopped it.
type Debugger struct {
	dict  Dictionary
	parts []part
	cache map[string]*engine.Regex
}

// part is one piece of a pattern's top level: a reference, a group, or literal text.
type part struct {
	text string
	def  []part // of a reference whose definition is a plain sequence
}

// Stop is where a text stopped matching.
type Stop struct {
	MatchedTo int    // bytes of the text that the longest matching beginning of the pattern took
	At        string // the part of the pattern that did not match there
}

// NewDebugger makes a debugger. The pattern has been compiled without a mistake.
func NewDebugger(pattern string, dict Dictionary) *Debugger {
	return &Debugger{dict: dict, parts: split(pattern, dict, 0), cache: map[string]*engine.Regex{}}
}

// Explain finds the stop for a text that does not match.
func (d *Debugger) Explain(text []byte) Stop {
	return d.walk("", d.parts, text)
}

// walk finds the longest beginning of parts, behind prefix, that matches, then looks into the part that stops it.
func (d *Debugger) walk(prefix string, parts []part, text []byte) Stop {
	n, end := 0, 0
	if prefix != "" {
		_, end = d.match(prefix, text)
	}
	for k := len(parts); k >= 1; k-- {
		if ok, to := d.match(prefix+join(parts[:k]), text); ok {
			n, end = k, to
			break
		}
	}
	if n == len(parts) {
		return Stop{end, ""}
	}
	before := prefix + join(parts[:n])
	if len(parts[n].def) > 0 {
		if s := d.walk(before, parts[n].def, text); s.At != "" {
			return s
		}
	}
	return Stop{end, parts[n].text}
}

func join(parts []part) string {
	var s strings.Builder
	for _, p := range parts {
		s.WriteString(p.text)
	}
	return s.String()
}

// match tells whether the pattern matches and where its leftmost match ends.
func (d *Debugger) match(pattern string, text []byte) (bool, int) {
	re, ok := d.cache[pattern]
	if !ok {
		if x, err := Expand(pattern, d.dict, nil); err == nil {
			re, _ = engine.Compile(x.Regex)
		}
		d.cache[pattern] = re
	}
	if re == nil {
		return false, 0
	}
	caps := make([]int, 2*(re.Groups+1))
	if ok, err := re.Matcher().Match(text, caps); !ok || err != nil {
		return false, 0
	}
	return true, caps[1]
}

var quantifier = regexp.MustCompile(`^(?:[*+?]|\{[0-9]*,?[0-9]*\})[?+]?`)

// split cuts a pattern into its top-level parts; one alternation is one part.
func split(p string, dict Dictionary, depth int) []part {
	var out []part
	add := func(text string) { out = append(out, part{text: text}) }
	for i := 0; i < len(p); {
		j := i
		switch {
		case p[i] == '|':
			return []part{{text: p}} // alternatives at the top: no sequence
		case strings.HasPrefix(p[i:], "%{"):
			m := reference.FindStringSubmatch(p[i:])
			if m == nil {
				return []part{{text: p}}
			}
			j = i + len(m[0])
			q := quantifier.FindString(p[j:])
			add(p[i : j+len(q)])
			if def, ok := dict[m[1]]; ok && q == "" && m[2] == "" && depth < 8 {
				if sub := split(def, dict, depth+1); len(sub) > 1 || len(sub) == 1 && len(sub[0].def) > 0 {
					out[len(out)-1].def = sub
				}
			}
			i = j + len(q)
			continue
		case p[i] == '\\' && i+1 < len(p):
			j = i + 2
		case p[i] == '[':
			j = closing(p, i, '[', ']')
		case p[i] == '(':
			j = closing(p, i, '(', ')')
		default:
			j = i + 1
			for j < len(p) && strings.IndexByte(`\[(|%*+?{`, p[j]) < 0 {
				j++
			}
			// A quantifier belongs to the last character alone.
			if j < len(p) && j-i > 1 && quantifier.MatchString(p[j:]) {
				j--
			}
		}
		j += len(quantifier.FindString(p[j:]))
		add(p[i:j])
		i = j
	}
	return out
}

// closing finds the end of the bracket that opens at i.
func closing(p string, i int, open, end byte) int {
	depth := 0
	for j := i; j < len(p); j++ {
		switch {
		case p[j] == '\\':
			j++
		case open == '(' && p[j] == '[':
			j = closing(p, j, '[', ']') - 1
		case p[j] == end && depth == 1 && !(open == '[' && j == i+1):
			return j + 1
		case p[j] == end:
			depth--
		case p[j] == open:
			depth++
		}
	}
	return len(p)
}

// Caret writes the text with a mark under the byte where matching stopped.
func (s Stop) Caret(text []byte) string {
	line := string(text)
	col := len([]rune(line[:min(s.MatchedTo, len(line))]))
	return fmt.Sprintf("%s\n%s^ matched to here; stopped at %s", line, strings.Repeat(" ", col), s.At)
}
