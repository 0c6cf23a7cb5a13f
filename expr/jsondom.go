package expr

import (
	"bytes"
	"sort"
	"strconv"
	"unicode/utf8"
)

// jnode is a parsed JSON value.
type jnode struct {
	kind byte   // 'n' null, 'b' boolean, '0' number, '"' string, '[' array, '{' object
	text []byte // number as written, string unescaped, true or false
	keys []string
	kids []*jnode
}

const maxJSONDepth = 1000

type jparser struct {
	p []byte
	i int
}

// parseJSON reads the first JSON value of p; what follows it is ignored, as in
// Flink. nil where there is none.
func parseJSON(p []byte) *jnode {
	j := &jparser{p: p}
	return j.value(0)
}

func (j *jparser) space() {
	for j.i < len(j.p) && (j.p[j.i] == ' ' || j.p[j.i] == '\t' || j.p[j.i] == '\n' || j.p[j.i] == '\r') {
		j.i++
	}
}

func (j *jparser) value(depth int) *jnode {
	j.space()
	if j.i >= len(j.p) || depth > maxJSONDepth {
		return nil
	}
	switch c := j.p[j.i]; {
	case c == '{' || c == '[':
		n := &jnode{kind: c}
		end := byte('}')
		if c == '[' {
			end = ']'
		}
		j.i++
		j.space()
		if j.i < len(j.p) && j.p[j.i] == end {
			j.i++
			return n
		}
		for {
			key := ""
			if c == '{' {
				j.space()
				s, ok := j.str()
				if !ok {
					return nil
				}
				key = string(s)
				j.space()
				if j.i >= len(j.p) || j.p[j.i] != ':' {
					return nil
				}
				j.i++
			}
			v := j.value(depth + 1)
			if v == nil {
				return nil
			}
			if c == '{' {
				n.put(key, v)
			} else {
				n.kids = append(n.kids, v)
			}
			j.space()
			if j.i >= len(j.p) {
				return nil
			}
			if j.p[j.i] == ',' {
				j.i++
				continue
			}
			if j.p[j.i] != end {
				return nil
			}
			j.i++
			return n
		}
	case c == '"':
		s, ok := j.str()
		if !ok {
			return nil
		}
		return &jnode{kind: '"', text: s}
	}
	n := &jnode{}
	if !j.scalar(n) {
		return nil
	}
	return n
}

// scalar reads a number, boolean or null into n.
func (j *jparser) scalar(n *jnode) bool {
	if c := j.p[j.i]; c == '-' || c >= '0' && c <= '9' {
		return j.number(n)
	}
	for _, w := range [...]string{"true", "false", "null"} {
		if !bytes.HasPrefix(j.p[j.i:], []byte(w)) {
			continue
		}
		start := j.i
		j.i += len(w)
		if j.i < len(j.p) && (j.p[j.i] >= 'a' && j.p[j.i] <= 'z' || j.p[j.i] >= '0' && j.p[j.i] <= '9') {
			return false
		}
		n.kind = 'n'
		if w != "null" {
			n.kind, n.text = 'b', j.p[start:j.i]
		}
		return true
	}
	return false
}

func (n *jnode) put(key string, v *jnode) {
	for i, k := range n.keys {
		if k == key {
			n.kids[i] = v
			return
		}
	}
	n.keys = append(n.keys, key)
	n.kids = append(n.kids, v)
}

func (n *jnode) get(key string) *jnode {
	if n.kind != '{' {
		return nil
	}
	for i, k := range n.keys {
		if k == key {
			return n.kids[i]
		}
	}
	return nil
}

func (j *jparser) number(n *jnode) bool {
	start := j.i
	digits := func() bool {
		at := j.i
		for j.i < len(j.p) && j.p[j.i] >= '0' && j.p[j.i] <= '9' {
			j.i++
		}
		return j.i > at
	}
	if j.p[j.i] == '-' {
		j.i++
	}
	first := j.i
	if !digits() || j.p[first] == '0' && j.i > first+1 {
		return false
	}
	if j.i < len(j.p) && j.p[j.i] == '.' {
		j.i++
		if !digits() {
			return false
		}
	}
	if j.i < len(j.p) && (j.p[j.i] == 'e' || j.p[j.i] == 'E') {
		j.i++
		if j.i < len(j.p) && (j.p[j.i] == '+' || j.p[j.i] == '-') {
			j.i++
		}
		if !digits() {
			return false
		}
	}
	if j.i < len(j.p) {
		switch j.p[j.i] {
		case ' ', '\t', '\n', '\r', ',', ']', '}':
		default:
			return false // a number goes on with a letter: no token
		}
	}
	n.kind, n.text = '0', j.p[start:j.i]
	return true
}

func (j *jparser) str() ([]byte, bool) {
	if j.i >= len(j.p) || j.p[j.i] != '"' {
		return nil, false
	}
	j.i++
	start := j.i
	for j.i < len(j.p) && j.p[j.i] != '"' && j.p[j.i] != '\\' {
		if j.p[j.i] < 0x20 {
			return nil, false
		}
		j.i++
	}
	if j.i >= len(j.p) {
		return nil, false
	}
	if j.p[j.i] == '"' {
		j.i++
		return j.p[start : j.i-1], true
	}
	out := append([]byte(nil), j.p[start:j.i]...)
	for j.i < len(j.p) {
		c := j.p[j.i]
		switch {
		case c == '"':
			j.i++
			return out, true
		case c < 0x20:
			return nil, false
		case c != '\\':
			out = append(out, c)
			j.i++
		default:
			if j.i+1 >= len(j.p) {
				return nil, false
			}
			e := j.p[j.i+1]
			j.i += 2
			switch e {
			case '"', '\\', '/':
				out = append(out, e)
			case 'b':
				out = append(out, '\b')
			case 'f':
				out = append(out, '\f')
			case 'n':
				out = append(out, '\n')
			case 'r':
				out = append(out, '\r')
			case 't':
				out = append(out, '\t')
			case 'u':
				r, ok := j.hex4()
				if !ok {
					return nil, false
				}
				if r >= 0xd800 && r < 0xdc00 && j.i+1 < len(j.p) && j.p[j.i] == '\\' && j.p[j.i+1] == 'u' {
					at := j.i
					j.i += 2
					if lo, ok := j.hex4(); ok && lo >= 0xdc00 && lo < 0xe000 {
						r = (r-0xd800)<<10 + (lo - 0xdc00) + 0x10000
					} else {
						j.i = at
					}
				}
				out = utf8.AppendRune(out, r)
			default:
				return nil, false
			}
		}
	}
	return nil, false
}

func (j *jparser) hex4() (rune, bool) {
	if j.i+4 > len(j.p) {
		return 0, false
	}
	r := rune(0)
	for range 4 {
		h := hexVal(j.p[j.i])
		if h < 0 {
			return 0, false
		}
		r = r<<4 | rune(h)
		j.i++
	}
	return r, true
}

func isJSON(p []byte, kind string) bool {
	n := parseJSON(p)
	if n == nil {
		return false
	}
	switch kind {
	case "OBJECT":
		return n.kind == '{'
	case "ARRAY":
		return n.kind == '['
	case "SCALAR":
		return n.kind != '[' && n.kind != '{'
	}
	return true
}

// append writes the value as JSON, the keys of objects sorted, as Flink's JSON_QUERY.
func (n *jnode) append(dst []byte) []byte { return n.write(dst, true) }

// keep writes it with the keys in their order.
func (n *jnode) keep(dst []byte) []byte { return n.write(dst, false) }

func (n *jnode) write(dst []byte, sorted bool) []byte {
	switch n.kind {
	case 'n':
		return append(dst, "null"...)
	case 'b', '0':
		return append(dst, n.text...)
	case '"':
		return appendJSONString(dst, n.text)
	case '[':
		dst = append(dst, '[')
		for i, k := range n.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = k.write(dst, sorted)
		}
		return append(dst, ']')
	}
	order := make([]int, len(n.keys))
	for i := range order {
		order[i] = i
	}
	if sorted {
		sort.Slice(order, func(a, b int) bool { return n.keys[order[a]] < n.keys[order[b]] })
	}
	dst = append(dst, '{')
	for i, k := range order {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSONString(dst, []byte(n.keys[k]))
		dst = append(dst, ':')
		dst = n.kids[k].write(dst, sorted)
	}
	return append(dst, '}')
}

// appendBigDecimal writes a number as Java's BigDecimal.toString: plain, or
// with an exponent where it was written so or is very small.
func appendBigDecimal(dst, p []byte) []byte {
	e := bytes.IndexAny(p, "eE")
	u, exp := p, 0
	if e >= 0 {
		x, err := strconv.Atoi(string(p[e+1:]))
		if err != nil {
			return append(dst, p...)
		}
		u, exp = p[:e], x
	}
	neg := len(u) > 0 && u[0] == '-'
	if neg {
		u = u[1:]
	}
	digits := make([]byte, 0, len(u))
	scale := -exp
	point := false
	for _, c := range u {
		if c == '.' {
			point = true
			continue
		}
		if point {
			scale++
		}
		digits = append(digits, c)
	}
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	if neg {
		dst = append(dst, '-')
	}
	adj := len(digits) - 1 - scale
	if scale == 0 {
		return append(dst, digits...)
	}
	if scale > 0 && adj >= -6 {
		if len(digits) <= scale {
			dst = append(dst, "0."...)
			for k := len(digits); k < scale; k++ {
				dst = append(dst, '0')
			}
			return append(dst, digits...)
		}
		dst = append(dst, digits[:len(digits)-scale]...)
		dst = append(dst, '.')
		return append(dst, digits[len(digits)-scale:]...)
	}
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	if adj != 0 {
		dst = append(dst, 'E')
		if adj > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, int64(adj), 10)
	}
	return dst
}
