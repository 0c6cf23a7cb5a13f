package expr

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/rsetl/rsetl/internal/find"
	"github.com/rsetl/rsetl/record"
)

// likePattern is a compiled LIKE pattern: % is any text, _ any one character.
// Those without _ and with % at the ends only are plain comparisons.
type likePattern struct {
	kind likeKind
	lit  []byte
	find *find.Finder // likeContains
	pat  []likeItem
}

type likeKind uint8

const (
	likeExact likeKind = iota
	likePrefix
	likeSuffix
	likeContains
	likeAny
	likeGeneral
)

type likeItem struct {
	c   byte // '%', '_', or 0 for lit
	lit []byte
}

// defaultEscape is the escape where ESCAPE names none: a backslash before %, _
// or itself, and itself before anything else.
const defaultEscape rune = -1

// parseLike compiles a pattern. What follows a given escape must be %, _ or
// the escape itself.
func parseLike(p []byte, escape rune) (*likePattern, error) {
	lenient := escape == defaultEscape
	if lenient {
		escape = '\\'
	}
	var items []likeItem
	var lit []byte
	flush := func() {
		if len(lit) > 0 {
			items = append(items, likeItem{lit: lit})
			lit = nil
		}
	}
	for i := 0; i < len(p); {
		r, w := utf8.DecodeRune(p[i:])
		switch {
		case r == escape:
			n, nw := utf8.DecodeRune(p[i+w:])
			if nw == 0 || n != '%' && n != '_' && n != escape {
				if lenient {
					lit = append(lit, '\\')
					i += w
					continue
				}
				return nil, fmt.Errorf("the escape '%c' in the LIKE pattern '%s' is not followed by %%, _ or itself", escape, p)
			}
			lit = append(lit, p[i+w:i+w+nw]...)
			i += w + nw
			continue
		case r == '%' || r == '_':
			flush()
			if r == '%' && len(items) > 0 && items[len(items)-1].c == '%' {
				break
			}
			items = append(items, likeItem{c: byte(r)})
		default:
			lit = append(lit, p[i:i+w]...)
		}
		i += w
	}
	flush()
	l := &likePattern{kind: likeGeneral, pat: items}
	isLit := func(i int) bool { return items[i].c == 0 }
	isAny := func(i int) bool { return items[i].c == '%' }
	switch len(items) {
	case 0:
		l.kind = likeExact
	case 1:
		if isLit(0) {
			l.kind, l.lit = likeExact, items[0].lit
		} else if isAny(0) {
			l.kind = likeAny
		}
	case 2:
		if isLit(0) && isAny(1) {
			l.kind, l.lit = likePrefix, items[0].lit
		} else if isAny(0) && isLit(1) {
			l.kind, l.lit = likeSuffix, items[1].lit
		}
	case 3:
		if isAny(0) && isLit(1) && isAny(2) {
			l.kind, l.find = likeContains, find.New(items[1].lit)
		}
	}
	return l, nil
}

func (l *likePattern) match(s []byte) bool {
	switch l.kind {
	case likeExact:
		return bytes.Equal(s, l.lit)
	case likePrefix:
		return bytes.HasPrefix(s, l.lit)
	case likeSuffix:
		return bytes.HasSuffix(s, l.lit)
	case likeContains:
		return l.find.Contains(s)
	case likeAny:
		return true
	}
	// Greedy with one point to go back to, the last %: linear in practice, and
	// at worst len(s) times the pattern's length.
	at, mark, from := 0, -1, 0
	i := 0
	for {
		if at == len(l.pat) {
			if i == len(s) {
				return true
			}
		} else {
			it := &l.pat[at]
			switch {
			case it.c == '%':
				mark, from = at, i
				at++
				continue
			case it.c == '_':
				if i < len(s) && !lineEnd(s[i:]) {
					_, w := utf8.DecodeRune(s[i:])
					i += w
					at++
					continue
				}
			case bytes.HasPrefix(s[i:], it.lit):
				i += len(it.lit)
				at++
				continue
			}
		}
		if mark < 0 || from >= len(s) {
			return false
		}
		if next := l.pat[min(mark+1, len(l.pat)-1)]; next.c == 0 && mark+1 < len(l.pat) {
			// What follows the % is a literal: go straight to its next place.
			k := bytes.Index(s[from+1:], next.lit)
			if k < 0 {
				return false
			}
			from += 1 + k
		} else {
			_, w := utf8.DecodeRune(s[from:])
			from += w
		}
		i, at = from, mark+1
	}
}

// lineEnd tells whether s begins with a line terminator, which _ doesn't match in Flink.
func lineEnd(s []byte) bool {
	switch s[0] {
	case '\n', '\r':
		return true
	case 0xc2:
		return len(s) > 1 && s[1] == 0x85
	case 0xe2:
		return len(s) > 2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9)
	}
	return false
}

func (k *compilation) like(n *Node) (*code, *Error) {
	cs, err := k.nodes(n.Args)
	if err != nil {
		return nil, err
	}
	for _, c := range cs {
		if !c.t.isText() && !c.t.isDynamic() {
			return nil, &Error{Off: c.n.Off, Msg: fmt.Sprintf("%s takes text, not %s", n.Name, c.t.nullable()), Hint: "CAST it AS STRING"}
		}
	}
	escape := rune(0)
	// Flink, too, takes a backslash in a constant pattern as it is, and as the
	// escape in one that comes with the data.
	if n.Name == "LIKE" && len(cs) == 2 && !cs[1].konst {
		escape = defaultEscape
	}
	if len(cs) == 3 {
		s, ok := "", false
		if cs[2].konst && cs[2].v.Kind() == record.String {
			s, ok = string(k.env.bytes(cs[2].v)), true
		}
		if !ok || utf8.RuneCountInString(s) != 1 {
			return nil, errAt(cs[2].n.Off, "ESCAPE takes one character in quotes")
		}
		escape, _ = utf8.DecodeRuneInString(s)
	}
	fold := k.ready(cs...)
	nn := cs[0].t.NotNull && cs[1].t.NotNull
	f, g := cs[0].f, cs[1].f
	hit, miss := triOf(!n.Not), triOf(n.Not)
	result := func(m bool) tri {
		if m {
			return hit
		}
		return miss
	}
	if n.Name != "LIKE" {
		similar := n.Name == "SIMILAR"
		if cs[1].konst && cs[1].v.Kind() == record.String {
			re, rerr := compileRegex(string(k.env.bytes(cs[1].v)), similar, escape)
			if rerr != nil {
				return nil, errAt(cs[1].n.Off, "%v", rerr)
			}
			return k.cond(n, nn, func(env *Env, i int) tri {
				v := env.text(f(env, i))
				if v.Kind() != record.String {
					return unknown
				}
				if re.match(env.B.Bytes(v)) {
					return hit
				}
				return miss
			}, fold)
		}
		return k.cond(n, nn, func(env *Env, i int) tri {
			v, p := env.text(f(env, i)), g(env, i)
			if v.Kind() != record.String || p.Kind() != record.String {
				return unknown
			}
			re := env.regex(env.bytes(p), similar, escape)
			if re == nil {
				return unknown
			}
			return result(re.match(env.bytes(v)))
		}, fold)
	}
	if cs[1].konst && cs[1].v.Kind() == record.String {
		l, lerr := parseLike(k.env.bytes(cs[1].v), escape)
		if lerr != nil {
			return nil, errAt(cs[1].n.Off, "%v", lerr)
		}
		return k.cond(n, nn, func(env *Env, i int) tri {
			v := f(env, i)
			if v.Kind() != record.String {
				if v = env.text(v); v.IsNull() {
					return unknown
				}
			}
			if l.match(env.B.Bytes(v)) {
				return hit
			}
			return miss
		}, fold)
	}
	return k.cond(n, nn, func(env *Env, i int) tri {
		v, p := env.text(f(env, i)), g(env, i)
		if v.Kind() != record.String || p.Kind() != record.String {
			return unknown
		}
		l := env.like(env.bytes(p), escape)
		if l == nil {
			return unknown
		}
		return result(l.match(env.bytes(v)))
	}, fold)
}
