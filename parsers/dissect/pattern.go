package dissect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// part is one `%{…}` and the delimiter behind it.
type part struct {
	name   string
	field  int    // its number among names; -1: it makes no field of its own
	append bool   // +
	order  int    // /n, 0 where there is none
	refer  bool   // &: the name is what the part named so has taken
	pad    bool   // ->
	before []byte // the delimiter before it
	after  []byte // the delimiter behind it; empty at the end
}

// pattern is a compiled pattern. It is immutable.
type pattern struct {
	prefix   []byte
	parts    []part
	fields   []string
	indirect bool
	// appends: the parts of each appended field, in the order of their places in it.
	appends map[int][]int
	keyOf   map[int]int // of a part with &: the part that has its name; -1: none
}

func (p *pattern) names() []string { return p.fields }

func parse(s string) (*pattern, error) {
	p := &pattern{appends: map[int][]int{}, keyOf: map[int]int{}}
	at := strings.Index(s, "%{")
	if at < 0 {
		return nil, fmt.Errorf("the pattern %q has no %%{field}", s)
	}
	p.prefix = []byte(s[:at])
	before := p.prefix
	taken := map[string]int{} // the part that took a name last
	for at < len(s) {
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			return nil, fmt.Errorf("the pattern %q has a %%{ without its }", s)
		}
		text := s[at+2 : at+end]
		at += end + 1
		next := strings.Index(s[at:], "%{")
		if next < 0 {
			next = len(s) - at
		}
		if next == 0 && at < len(s) {
			return nil, fmt.Errorf("the pattern %q has nothing between %%{%s} and the next field", s, text)
		}
		x, err := parsePart(text)
		if err != nil {
			return nil, fmt.Errorf("the pattern %q: %w", s, err)
		}
		x.before, x.after = before, []byte(s[at:at+next])
		before = x.after
		at += next
		p.parts = append(p.parts, x)
	}
	for i := range p.parts {
		x := &p.parts[i]
		switch {
		case x.refer:
			p.indirect = true
		case x.field == 0:
			k := slices.Index(p.fields, x.name)
			if k < 0 {
				k = len(p.fields)
				p.fields = append(p.fields, x.name)
			}
			x.field = k
			if x.append {
				p.appends[k] = append(p.appends[k], i)
			} else if len(p.appends[k]) == 0 {
				p.appends[k] = []int{i}
			}
		}
		if !x.refer && x.name != "" {
			taken[x.name] = i
		}
	}
	for i := range p.parts {
		if x := &p.parts[i]; x.refer {
			k, ok := taken[x.name]
			if !ok {
				return nil, fmt.Errorf("the pattern has %%{&%s} and no %%{?%s} to take the name from", x.name, x.name)
			}
			p.keyOf[i] = k
		}
	}
	for k, list := range p.appends {
		if !slices.ContainsFunc(list, func(i int) bool { return p.parts[i].append }) {
			delete(p.appends, k)
			continue
		}
		slices.SortStableFunc(list, func(a, b int) int { return p.parts[a].order - p.parts[b].order })
	}
	return p, nil
}

func parsePart(text string) (x part, err error) {
	if rest, ok := strings.CutSuffix(text, "->"); ok {
		x.pad, text = true, rest
	}
	skip := false
	if text == "" {
		x.field = -1
		return x, nil
	}
	switch text[0] {
	case '?', '*':
		skip, text = true, text[1:]
	case '&':
		x.refer, text = true, text[1:]
	case '+':
		x.append, text = true, text[1:]
		if strings.HasPrefix(text, "&") { // Logstash's older spelling
			x.append, x.refer, text = false, true, text[1:]
		}
	}
	if i := strings.LastIndexByte(text, '/'); i >= 0 && x.append {
		n, err := strconv.Atoi(text[i+1:])
		if err != nil || n < 0 {
			return x, fmt.Errorf("%%{+%s}: want a number behind the /", text)
		}
		x.order, text = n, text[:i]
	}
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && len(text) > 2 {
		text = strings.ReplaceAll(text[1:len(text)-1], "][", ".")
	}
	if text == "" && !skip {
		return x, fmt.Errorf("a name is missing in %%{…}")
	}
	x.name = text
	if skip || x.refer {
		x.field = -1
	}
	return x, nil
}
