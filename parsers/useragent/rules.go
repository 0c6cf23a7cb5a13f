package useragent

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ua-parser/uap-go/uaparser"
)

// ruleSet are uap-core's rules, of which the first that matches counts. Most can't match a header at hand: they are passed
// over by the texts that they need, which takes a hundredth of the time.
type ruleSet struct {
	parser            *uaparser.Parser
	agent, os, device []needs // beside the parser's rules
}

// needs are texts in small letters, one of which must be in a text that the rule matches; none: not known.
type needs [][]byte

// rules are compiled once, when the first header comes.
var rules = sync.OnceValues(func() (*ruleSet, error) {
	p, err := uaparser.New(uaparser.WithCacheSize(1))
	if err != nil {
		return nil, err
	}
	r := &ruleSet{parser: p}
	for _, u := range p.UA {
		r.agent = append(r.agent, needsOf(u.Reg))
	}
	for _, u := range p.OS {
		r.os = append(r.os, needsOf(u.Reg))
	}
	for _, u := range p.Device {
		r.device = append(r.device, needsOf(u.Reg))
	}
	return r, nil
})

// header is a header that is looked at: as it is, and in small letters; nil where it is not ASCII.
type header struct {
	text  string
	small []byte
}

func newHeader(text string) header {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return header{text: text} // letters of other cases may be ASCII's: ſ is s
		}
	}
	return header{text, []byte(strings.ToLower(text))}
}

// may tells whether a rule can match.
func (h *header) may(n needs) bool {
	if h.small == nil || n == nil {
		return true
	}
	for _, t := range n {
		if bytes.Contains(h.small, t) {
			return true
		}
	}
	return false
}

func (r *ruleSet) agentOf(h header) (ua uaparser.UserAgent) {
	for i, u := range r.parser.UA {
		if h.may(r.agent[i]) {
			if u.Match(h.text, &ua); ua.Family != "" {
				return ua
			}
		}
	}
	ua.Family = "Other"
	return ua
}

func (r *ruleSet) osOf(h header) (os uaparser.Os) {
	for i, u := range r.parser.OS {
		if h.may(r.os[i]) {
			if u.Match(h.text, &os); os.Family != "" {
				return os
			}
		}
	}
	os.Family = "Other"
	return os
}

func (r *ruleSet) deviceOf(h header) (d uaparser.Device) {
	for i, u := range r.parser.Device {
		if h.may(r.device[i]) {
			if u.Match(h.text, &d); d.Family != "" {
				return d
			}
		}
	}
	d.Family = "Other"
	return d
}

func needsOf(re *regexp.Regexp) needs {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return nil
	}
	var out needs
	for _, s := range required(tree.Simplify()) {
		out = append(out, []byte(s))
	}
	return out
}

// most is how many alternatives are looked for at most.
const most = 1000

// required are texts in small letters, one of which is in all that re matches; nil: not known.
func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(re.Rune))}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if r := required(sub); better(r, best) {
				best = r
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			r := required(sub)
			if r == nil || len(all)+len(r) > most {
				return nil
			}
			all = append(all, r...)
		}
		return all
	}
	return nil
}

// better prefers the texts whose shortest is longer.
func better(a, b []string) bool {
	if a == nil || b == nil {
		return a != nil
	}
	shortest := func(l []string) int {
		n := len(l[0])
		for _, s := range l {
			n = min(n, len(s))
		}
		return n
	}
	return shortest(a) > shortest(b)
}
