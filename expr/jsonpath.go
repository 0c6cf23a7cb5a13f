package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// jsonPath is a compiled JSON path in the notation of Jayway's JsonPath, which
// Flink uses, as far as logs need it: names, indexes, wildcards, slices,
// unions, `..`, length() and simple filters.
type jsonPath struct {
	lax      bool
	steps    []jsonStep
	definite bool // names one place at most
	quick    bool // names and indexes only: found without building a tree
}

type jsonStep struct {
	op    byte // '.' names, '[' indexes, '*' all, ':' slice, 'd' deep, '#' length(), '?' filter
	names []string
	idx   []int
	from  int
	to    int
	hasTo bool
	path  []jsonStep // filter: the left side below @
	cmp   string
	val   *jnode
}

func parseJSONPath(s string) (*jsonPath, error) {
	p := &jsonPath{definite: true}
	src := s
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "lax ") {
		p.lax = true
		s = strings.TrimSpace(s[4:])
	} else if strings.HasPrefix(s, "strict ") {
		s = strings.TrimSpace(s[7:])
	}
	if s == "" {
		return nil, fmt.Errorf("an empty JSON path")
	}
	if s[0] != '$' {
		s = "$." + s
	}
	steps, rest, ok := jsonSteps(s[1:], false)
	if !ok || rest != "" {
		return nil, fmt.Errorf("the JSON path %q is wrong at %q", src, rest)
	}
	p.steps = steps
	for _, st := range steps {
		if st.op == '*' || st.op == ':' || st.op == 'd' || st.op == '?' || len(st.idx) > 1 || len(st.names) > 1 {
			p.definite = false
		}
	}
	p.quick = p.simple()
	return p, nil
}

func jsonSteps(s string, filter bool) ([]jsonStep, string, bool) {
	var out []jsonStep
	for s != "" {
		switch s[0] {
		case '.':
			if strings.HasPrefix(s, "..") {
				out = append(out, jsonStep{op: 'd'})
				s = s[1:]
				if strings.HasPrefix(s, ".[") {
					s = s[1:]
					continue
				}
			}
			s = s[1:]
			k := strings.IndexAny(s, ".[ )=<>!~&|")
			if !filter {
				k = strings.IndexAny(s, ".[")
			}
			if k < 0 {
				k = len(s)
			}
			name := s[:k]
			s = s[k:]
			switch {
			case name == "":
				return nil, s, false
			case name == "*":
				out = append(out, jsonStep{op: '*'})
			case name == "length()" || name == "size()":
				out = append(out, jsonStep{op: '#'})
			case strings.ContainsAny(name, "()"):
				return nil, name, false
			default:
				out = append(out, jsonStep{op: '.', names: []string{name}})
			}
		case '[':
			st, rest, ok := jsonBracket(s)
			if !ok {
				return nil, s, false
			}
			out = append(out, st)
			s = rest
		default:
			if filter {
				return out, s, true
			}
			return nil, s, false
		}
	}
	return out, s, true
}

func jsonBracket(s string) (jsonStep, string, bool) {
	bad := func() (jsonStep, string, bool) { return jsonStep{}, s, false }
	in := s[1:]
	if strings.HasPrefix(in, "?(") {
		return jsonFilter(s)
	}
	if in != "" && (in[0] == '\'' || in[0] == '"') {
		st := jsonStep{op: '.'}
		for {
			q := in[0]
			k := strings.IndexByte(in[1:], q)
			if k < 0 {
				return bad()
			}
			st.names = append(st.names, in[1:1+k])
			in = strings.TrimLeft(in[k+2:], " ")
			if strings.HasPrefix(in, ",") {
				in = strings.TrimLeft(in[1:], " ")
				if in == "" || in[0] != '\'' && in[0] != '"' {
					return bad()
				}
				continue
			}
			if !strings.HasPrefix(in, "]") {
				return bad()
			}
			return st, in[1:], true
		}
	}
	end := strings.IndexByte(in, ']')
	if end < 0 {
		return bad()
	}
	body, rest := strings.TrimSpace(in[:end]), in[end+1:]
	if body == "*" {
		return jsonStep{op: '*'}, rest, true
	}
	if a, b, ok := strings.Cut(body, ":"); ok {
		st := jsonStep{op: ':'}
		var err error
		if a = strings.TrimSpace(a); a != "" {
			if st.from, err = strconv.Atoi(a); err != nil {
				return bad()
			}
		}
		if b = strings.TrimSpace(b); b != "" {
			if st.to, err = strconv.Atoi(b); err != nil {
				return bad()
			}
			st.hasTo = true
		}
		return st, rest, true
	}
	st := jsonStep{op: '['}
	for _, x := range strings.Split(body, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(x))
		if err != nil {
			return bad()
		}
		st.idx = append(st.idx, n)
	}
	return st, rest, true
}

// jsonFilter reads [?(@.path)] and [?(@.path op literal)].
func jsonFilter(s string) (jsonStep, string, bool) {
	st := jsonStep{op: '?'}
	in := strings.TrimLeft(s[3:], " ")
	if !strings.HasPrefix(in, "@") {
		return st, s, false
	}
	steps, in, ok := jsonSteps(in[1:], true)
	if !ok {
		return st, s, false
	}
	st.path = steps
	in = strings.TrimLeft(in, " ")
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if strings.HasPrefix(in, op) {
			st.cmp = op
			in = strings.TrimLeft(in[len(op):], " ")
			lit := in
			if strings.HasPrefix(in, "'") {
				k := strings.IndexByte(in[1:], '\'')
				if k < 0 {
					return st, s, false
				}
				st.val = &jnode{kind: '"', text: []byte(in[1 : 1+k])}
				in = in[k+2:]
			} else {
				k := strings.IndexByte(in, ')')
				if k < 0 {
					return st, s, false
				}
				lit, in = strings.TrimSpace(in[:k]), in[k:]
				if st.val = parseJSON([]byte(lit)); st.val == nil {
					return st, s, false
				}
			}
			break
		}
	}
	in = strings.TrimLeft(in, " ")
	if !strings.HasPrefix(in, ")]") {
		return st, s, false
	}
	return st, in[2:], true
}

// find gives the node that the path names: a list of all for a path that is
// not definite. nil where there is none.
func (p *jsonPath) find(root *jnode) *jnode {
	cur := []*jnode{root}
	for _, st := range p.steps {
		var next []*jnode
		for _, n := range cur {
			next = st.apply(n, next)
		}
		cur = next
		if len(cur) > 100000 {
			return nil
		}
	}
	if p.definite {
		if len(cur) == 0 {
			return nil
		}
		return cur[0]
	}
	return &jnode{kind: '[', kids: cur}
}

func (st *jsonStep) apply(n *jnode, out []*jnode) []*jnode {
	switch st.op {
	case '.':
		for _, name := range st.names {
			if v := n.get(name); v != nil {
				out = append(out, v)
			}
		}
	case '[':
		if n.kind != '[' {
			return out
		}
		for _, i := range st.idx {
			if i < 0 {
				i += len(n.kids)
			}
			if i >= 0 && i < len(n.kids) {
				out = append(out, n.kids[i])
			}
		}
	case '*':
		out = append(out, n.kids...)
	case ':':
		if n.kind != '[' {
			return out
		}
		from, to := st.from, len(n.kids)
		if st.hasTo {
			to = st.to
		}
		if from < 0 {
			from += len(n.kids)
		}
		if to < 0 {
			to += len(n.kids)
		}
		for i := max(from, 0); i < min(to, len(n.kids)); i++ {
			out = append(out, n.kids[i])
		}
	case 'd':
		out = append(out, n)
		for _, k := range n.kids {
			out = st.apply(k, out)
		}
	case '#':
		if n.kind == '[' || n.kind == '{' {
			out = append(out, &jnode{kind: '0', text: strconv.AppendInt(nil, int64(len(n.kids)), 10)})
		}
	case '?':
		if n.kind != '[' {
			return out
		}
		for _, k := range n.kids {
			sub := jsonPath{steps: st.path, definite: true}
			v := sub.find(k)
			if v == nil || st.cmp != "" && !jsonCompare(v, st.cmp, st.val) {
				continue
			}
			out = append(out, k)
		}
	}
	return out
}

func jsonCompare(a *jnode, op string, b *jnode) bool {
	c := 0
	switch {
	case a.kind == '0' && b.kind == '0':
		x, _ := parseFloat(a.text)
		y, _ := parseFloat(b.text)
		c = cmpFloat(x, y)
	case a.kind == b.kind:
		c = strings.Compare(string(a.text), string(b.text))
	default:
		return op == "!="
	}
	switch op {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func (env *Env) jsonPath(src []byte) *jsonPath {
	return cached(env, patternKey{kind: 'j'}, src, func(s string) *jsonPath {
		p, err := parseJSONPath(s)
		if err != nil {
			return nil
		}
		return p
	})
}
