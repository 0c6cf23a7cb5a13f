package engine

import (
	"regexp/syntax"
	"unicode"
)

// mark tells what a group of a translated expression stands for.
type mark struct {
	kind  markKind
	group int   // of markGroup: its number in the source
	toEnd bool  // of markGroup: it ends where the text does, whatever the expression says
	look  *cond // of markLook; of markGuard, next is what the look-ahead's text may begin with
	min   int   // of markRepeat
	max   int   // -1: without end
	lazy  bool
	what  string // of markAtomic and markGuard: how the source calls it
}

type markKind uint8

const (
	markGroup  markKind = iota
	markAtomic          // an atomic group, which is like any other where that is proven
	markLook            // an empty group in the place of a look-around of one character
	markRepeat          // a group that is repeated
	markGuard           // one in the place of a (?!...) that can't matter, where that is proven
)

// cond is what an assertion asks of the byte before and the one behind a place.
type cond struct{ prev, next set257 }

// set257 is a set of bytes and, as its last element, the text's end (or its beginning, for what is before).
type set257 [5]uint64

const edgeOfText = 256

func (s *set257) add(i int)      { s[i>>6] |= 1 << (i & 63) }
func (s *set257) has(i int) bool { return s[i>>6]>>(i&63)&1 != 0 }

func (s set257) not() set257 {
	for i := range s {
		s[i] = ^s[i]
	}
	s[4] &= 1
	return s
}

func (s set257) and(o set257) set257 {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

var everything = set257{}.not()

// look reads a look-around that asks for one character only. It gives false, and reads nothing, where it is no such.
func (t *translator) look() bool {
	rest := t.in[t.at+2:]
	behind := rest[0] == '<'
	if behind {
		rest = rest[1:]
	}
	in := &translator{in: t.in, at: len(t.in) - len(rest) + 1, names: map[string]int{}, atom: -1, inner: true}
	in.scope = scope{extended: t.extended, fold: t.fold, lines: t.lines}
	in.write("(?ms)")
	if t.fold {
		in.write("(?i)")
	}
	if t.lines {
		in.write("(?-s)")
	}
	if len(t.stack)+1 >= maxGroups || in.run() != nil || in.at >= len(t.in) || len(in.t.marks) > 0 || in.t.backtrack != "" {
		return false
	}
	re, err := syntax.Parse(string(in.out), syntax.Perl)
	if err != nil {
		return false
	}
	s, ok := oneChar(re.Simplify(), behind)
	if !ok && !behind && rest[0] == '!' {
		if s, ok = firstBytes(re); ok {
			t.begin()
			t.write("()")
			t.t.marks = append(t.t.marks, mark{kind: markGuard, look: &cond{next: s}, what: "a look-ahead (?!...)"})
			t.at = in.at + 1
			return true
		}
	}
	if !ok {
		return false
	}
	if rest[0] == '!' {
		s = s.not()
	}
	c := &cond{prev: everything, next: s}
	if behind {
		c = &cond{prev: s, next: everything}
	}
	t.begin()
	t.write("()")
	t.t.marks = append(t.t.marks, mark{kind: markLook, look: c})
	t.at = in.at + 1
	return true
}

// oneChar gives the bytes beside a place for which the expression matches there: the first byte of what is ahead, or the
// last of what is behind. ok is false where one byte doesn't decide it.
func oneChar(re *syntax.Regexp, behind bool) (s set257, ok bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return everything, true
	case syntax.OpNoMatch:
		return s, true
	case syntax.OpEndText, syntax.OpEndLine:
		if behind || re.Op == syntax.OpEndText && re.Flags&syntax.WasDollar != 0 {
			return s, false
		}
		if s.add(edgeOfText); re.Op == syntax.OpEndLine {
			s.add('\n')
		}
		return s, true
	case syntax.OpBeginText, syntax.OpBeginLine:
		if !behind {
			return s, false
		}
		if s.add(edgeOfText); re.Op == syntax.OpBeginLine {
			s.add('\n')
		}
		return s, true
	case syntax.OpPlus:
		return oneChar(re.Sub[0], behind)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			o, ok := oneChar(sub, behind)
			if !ok {
				return s, false
			}
			for i := range s {
				s[i] |= o[i]
			}
		}
		return s, true
	case syntax.OpConcat:
		// One character, then what may be empty.
		subs := re.Sub
		first := subs[0]
		subs = subs[1:]
		if behind {
			first, subs = re.Sub[len(re.Sub)-1], re.Sub[:len(re.Sub)-1]
		}
		for _, sub := range subs {
			if sub.Op != syntax.OpStar && sub.Op != syntax.OpQuest {
				return s, false
			}
		}
		if first.Op == syntax.OpStar || first.Op == syntax.OpQuest {
			return s, false
		}
		return oneChar(first, behind)
	case syntax.OpLiteral:
		if len(re.Rune) != 1 {
			return s, false
		}
		return byteSet(literalSet(re.Rune[0], re.Flags&syntax.FoldCase != 0))
	case syntax.OpCharClass:
		return byteSet(set(re.Rune))
	case syntax.OpAnyChar:
		return byteSet(set{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		return byteSet(set{0, '\n' - 1, '\n' + 1, unicode.MaxRune})
	}
	return s, false
}

// byteSet gives the bytes by which a character of the set is known: ok is false where some characters beyond ASCII are in
// it and some are not.
func byteSet(s set) (out set257, ok bool) {
	for i := 0; i < len(s); i += 2 {
		for c := s[i]; c <= s[i+1] && c < 0x80; c++ {
			out.add(int(c))
		}
	}
	high := s.intersect(set{0x80, unicode.MaxRune})
	if len(high) == 0 {
		return out, true
	}
	if !fullHigh(high) {
		return out, false
	}
	for c := 0x80; c < 0x100; c++ {
		out.add(c)
	}
	return out, true
}

// fullHigh tells whether all characters beyond ASCII are in the set. Surrogates are no characters of a text.
func fullHigh(s set) bool {
	rest := s.union(set{0xd800, 0xdfff}).negate().intersect(set{0x80, unicode.MaxRune})
	return len(rest) == 0
}

func literalSet(r rune, fold bool) set {
	s := set{r, r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			s = append(s, f, f)
		}
	}
	return s.union(nil)
}
