package grok

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsetl/rsetl/parsers/engine"
)

// Debugger answers, for a pattern and a text, how far the text matched and which part of the pattern stopped it. It is
// for one goroutine.
type Debugger struct {
	dict  Dictionary
	alts  [][]part
	cache map[string]*engine.Regex
	until time.Time
}

// part is one piece of a pattern: a reference, a group, an anchor or another element with its quantifier, or plain characters.
type part struct {
	text    string
	literal string   // of plain characters
	named   bool     // it captures a field
	alts    [][]part // what it consists of, where it is not repeated
}

// Stop is where a text stopped matching.
type Stop struct {
	MatchedTo int    // bytes of the text up to the end of what the longest matching beginning of the pattern took
	At        string // the part of the pattern that did not match there
	Needed    string // what could have come there, as a class of characters; "" where that is not known
}

const (
	// maxExplain bounds the time for one text; what has been found by then is the answer.
	maxExplain = 2 * time.Second
	// maxLevels bounds how deep the parts of parts are looked at.
	maxLevels = 12
)

// NewDebugger makes a debugger. The pattern has been compiled without a mistake.
func NewDebugger(pattern string, dict Dictionary) *Debugger {
	return &Debugger{dict: dict, alts: split(pattern, dict, 0), cache: map[string]*engine.Regex{}}
}

// Explain finds the stop for a text that does not match.
func (d *Debugger) Explain(text []byte) Stop {
	d.until = time.Now().Add(maxExplain)
	s := d.best("", 0, d.alts, text)
	if s.At == "" { // what does not match as a whole but does part by part: an atomic group or the like
		s.At = "the pattern as a whole"
	}
	return s
}

// best is the alternative that comes farthest.
func (d *Debugger) best(prefix string, end int, alts [][]part, text []byte) Stop {
	best := Stop{MatchedTo: -1}
	for _, parts := range alts {
		if s := d.walk(prefix, end, parts, text); s.MatchedTo > best.MatchedTo {
			best = s
		}
	}
	return best
}

// walk finds the longest beginning of parts, behind prefix (which matches up to end), that matches, then looks into the
// part that stops it. Each beginning of a matching one matches too, so the search halves.
func (d *Debugger) walk(prefix string, end int, parts []part, text []byte) Stop {
	lo, hi := 0, len(parts) // parts[:lo] matches, parts[:hi+1] does not
	for lo < hi {
		k := (lo + hi + 1) / 2
		ok, to := d.match(prefix+join(parts[:k]), text)
		if ok {
			lo, end = k, to
		} else {
			hi = k - 1
		}
	}
	if lo == len(parts) {
		return Stop{MatchedTo: end, At: ""}
	}
	p := parts[lo]
	if p.literal != "" {
		n := 0
		for n < len(p.literal) && end+n < len(text) && text[end+n] == p.literal[n] {
			n++
		}
		return Stop{MatchedTo: end + n, At: strconv.Quote(p.literal) + behind(parts[:lo])}
	}
	if len(p.alts) > 0 && !time.Now().After(d.until) {
		in := d.best(prefix+join(parts[:lo]), end, p.alts, text)
		switch {
		case in.At == "":
		case in.MatchedTo > end && p.named:
			return Stop{MatchedTo: in.MatchedTo, At: in.At + " in " + p.text}
		case in.MatchedTo > end, !p.named && len(p.alts) == 1 && strings.Contains(in.At, "%{"):
			return in
		}
	}
	switch p.text {
	case "^", "$", `\z`, `\A`, `\Z`:
		return Stop{MatchedTo: end, At: p.text + " (" + anchors[p.text] + ")" + behind(parts[:lo])}
	}
	if p.named || strings.Contains(p.text, "%{") {
		return Stop{MatchedTo: end, At: p.text}
	}
	return Stop{MatchedTo: end, At: p.text + behind(parts[:lo])}
}

var anchors = map[string]string{"^": "a line's beginning", "$": "a line's end", `\z`: "the text's end", `\A`: "the text's beginning", `\Z`: "the text's end"}

// behind names the last of the parts before that tells where in the pattern one is.
func behind(parts []part) string {
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].named || strings.Contains(parts[i].text, "%{") {
			return " behind " + parts[i].text
		}
	}
	return ""
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
	if time.Now().After(d.until) {
		return false, 0
	}
	re, ok := d.cache[pattern]
	if !ok {
		if x, err := Expand(pattern, d.dict, func(string) bool { return false }); err == nil {
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

var quantifier = regexp.MustCompile(`^(?:[*+?]|\{[0-9]+,?[0-9]*\}|\{,[0-9]+\})[?+]?`)

// group is the beginning of a group that can be looked into.
var group = regexp.MustCompile(`^\((?:\?:|\?P?<[^>=!][^>]*>|\?>|)`)

// split cuts a pattern into its alternatives, and these into parts.
func split(p string, dict Dictionary, level int) [][]part {
	alts := [][]part{nil}
	add := func(x part) {
		n := len(alts) - 1
		if k := len(alts[n]) - 1; x.literal != "" && k >= 0 && alts[n][k].literal != "" {
			alts[n][k].text += x.text
			alts[n][k].literal += x.literal
			return
		}
		alts[n] = append(alts[n], x)
	}
	for i := 0; i < len(p); {
		j := i
		x := part{}
		switch c := p[i]; {
		case c == '|':
			alts = append(alts, nil)
			i++
			continue
		case dict != nil && strings.HasPrefix(p[i:], "%{"):
			m := reference.FindStringSubmatch(p[i:])
			if m == nil {
				return [][]part{{{text: p}}}
			}
			j = i + len(m[0])
			x.named = m[2] != ""
			if def, ok := dict[m[1]]; ok && level < maxLevels && quantifier.FindString(p[j:]) == "" {
				x.alts = split(def, dict, level+1)
			}
		case c == '\\' && i+1 < len(p):
			_, n := utf8.DecodeRuneInString(p[i+1:])
			j = i + 1 + n
			if c := p[i+1]; c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
				x.literal = p[i+1 : j]
			}
			if end := strings.IndexByte(p[j:], '}'); j < len(p) && p[j] == '{' && strings.IndexByte("pPxu", p[i+1]) >= 0 && end > 0 {
				j += end + 1
			}
		case c == '[':
			j = closing(p, i, '[', ']')
		case c == '(':
			j = closing(p, i, '(', ')')
			open := group.FindString(p[i:])
			x.named = strings.HasPrefix(open, "(?<") || strings.HasPrefix(open, "(?P<")
			if (open != "(" || !strings.HasPrefix(p[i:], "(?")) && open != "" && level < maxLevels && quantifier.FindString(p[j:]) == "" && j-1 > i+len(open) {
				x.alts = split(p[i+len(open):j-1], dict, level+1)
			}
		default:
			_, n := utf8.DecodeRuneInString(p[i:])
			j = i + n
			if strings.IndexByte("^$.", c) < 0 {
				x.literal = p[i:j]
			}
		}
		if q := quantifier.FindString(p[j:]); q != "" {
			x.literal, x.alts = "", nil
			j += len(q)
		}
		x.text = p[i:j]
		add(x)
		i = j
	}
	return alts
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
		case p[j] == end && open == '[' && (j == i+1 || j == i+2 && p[i+1] == '^'):
		case p[j] == end && depth == 1:
			return j + 1
		case p[j] == end:
			depth--
		case p[j] == open:
			depth++
		}
	}
	return len(p)
}

// maxLine bounds how much of a line Caret writes to either side of the mark.
const maxLine = 200

// Caret writes the text with a mark under the place where matching stopped.
func (s Stop) Caret(text []byte) string {
	at := min(s.MatchedTo, len(text))
	before, after := []rune(string(text[:at])), []rune(string(text[at:]))
	if len(before) > maxLine {
		before = append([]rune("…"), before[len(before)-maxLine:]...)
	}
	if len(after) > maxLine {
		after = append(after[:maxLine], '…')
	}
	line := strings.NewReplacer("\n", "␊", "\r", "␍", "\t", " ").Replace(string(before) + string(after))
	needed := ""
	if s.Needed != "" {
		needed = "; needed " + s.Needed
	}
	return fmt.Sprintf("%s\n%s^ matched to here; stopped at %s%s", line, strings.Repeat(" ", len(before)), s.At, needed)
}
