package engine

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// quoted is how the dictionaries write a quoted text. Within its atomic groups it has loops of loops, for which no general
// proof is made; but where it can begin, there is at most one way for it to match: the first quote that has no backslash before
// it ends it. So no backtracking changes the match.
const quoted = "(?>(?<!\\\\)(?>\"(?>\\\\.|[^\\\\\"]+)+\"|\"\"|(?>'(?>\\\\.|[^\\\\']+)+')|''|(?>`(?>\\\\.|[^\\\\`]+)+`)|``))"

const quotedSimply = "(?:\"(?:\\\\.|[^\\\\\"])*\"|'(?:\\\\.|[^\\\\'])*'|`(?:\\\\.|[^\\\\`])*`)"

// special translates what is known by its text. It gives false, and reads nothing, for all else.
func (t *translator) special() bool {
	rest := t.in[t.at:]
	if t.back || t.fold || t.lines || t.extended {
		return false
	}
	if strings.HasPrefix(rest, quoted) {
		t.begin()
		t.write("(?:()" + quotedSimply + ")")
		var behind set257
		behind.add('\\')
		t.t.marks = append(t.t.marks, mark{kind: markLook, look: &cond{prev: behind.not(), next: everything}})
		t.at += len(quoted)
		return true
	}
	// A look-ahead at all that follows: the group is known once the expression has matched.
	if name, ok := strings.CutPrefix(rest, "(?=(?<"); ok && !t.inner {
		name, _, _ := strings.Cut(name, ">")
		if whole := "(?=(?<" + name + ">.*))"; strings.HasPrefix(rest, whole) && name != "" {
			t.begin()
			t.write("()")
			t.t.groups++
			t.t.marks = append(t.t.marks, mark{kind: markGroup, group: t.t.groups, toEnd: true})
			t.at += len(whole)
			return true
		}
	}
	return false
}

// firstBytes gives the bytes with which a match can begin; ok is false where it can be empty.
func firstBytes(re *syntax.Regexp) (s set257, ok bool) {
	p, err := syntax.Compile(re.Simplify())
	if err != nil {
		return s, false
	}
	ok = true
	seen := make([]bool, len(p.Inst))
	var walk func(pc uint32)
	walk = func(pc uint32) {
		if seen[pc] {
			return
		}
		seen[pc] = true
		in := &p.Inst[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			walk(in.Out)
			walk(in.Arg)
		case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
			walk(in.Out)
		case syntax.InstMatch:
			ok = false
		case syntax.InstFail:
		default:
			for c := range rune(utf8.RuneSelf) {
				if in.MatchRune(c) {
					s.add(int(c))
				}
			}
			s[2], s[3] = ^uint64(0), ^uint64(0)
		}
	}
	walk(uint32(p.Start))
	return s, ok
}
