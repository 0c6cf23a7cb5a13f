package expr

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/rsetl/rsetl/internal/find"
)

// literalSet answers a match without a regex engine where the expression is
// nothing but texts: `bot`, `(?i)bot|crawler`, `^GET`, `\.css$`.
type literalSet struct {
	alts []literal
	any  bool // a folded text has a k or s, which also stand for U+212A and U+017F
}

type literal struct {
	text       []byte // lower case where fold
	fold       bool
	begin, end bool
	rare       int          // the index of the letter to look for
	find       *find.Finder // where not fold
}

// literalsOf gives the texts that an expression consists of, nil where it is more.
func literalsOf(src string) *literalSet {
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil
	}
	set := &literalSet{}
	if !set.add(re) {
		return nil
	}
	return set
}

func (s *literalSet) add(re *syntax.Regexp) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op == syntax.OpAlternate && len(re.Sub) <= 8 {
		for _, sub := range re.Sub {
			if !s.add(sub) {
				return false
			}
		}
		return true
	}
	subs := []*syntax.Regexp{re}
	if re.Op == syntax.OpConcat {
		subs = re.Sub
	}
	var l literal
	for i, sub := range subs {
		switch {
		case sub.Op == syntax.OpBeginText && i == 0:
			l.begin = true
		case sub.Op == syntax.OpEndText && i == len(subs)-1:
			l.end = true
		case sub.Op == syntax.OpLiteral && l.text == nil:
			l.fold = sub.Flags&syntax.FoldCase != 0
			for _, r := range sub.Rune {
				if l.fold {
					if r >= utf8.RuneSelf {
						return false
					}
					if r >= 'A' && r <= 'Z' {
						r += 32
					}
					s.any = s.any || r == 'k' || r == 's'
				}
				if r == utf8.RuneError {
					return false
				}
				l.text = utf8.AppendRune(l.text, r)
			}
		default:
			return false
		}
	}
	if len(l.text) == 0 {
		return false
	}
	// Rarer letters of logs come later here; what isn't listed is rarest.
	const common = "etaoinsrhldcumpgfwbyv/.:-0123456789 kxjqz"
	best := -1
	for i, c := range l.text {
		k := bytes.IndexByte([]byte(common), c)
		if k < 0 {
			k = len(common)
		}
		if k > best {
			best, l.rare = k, i
		}
	}
	if !l.fold {
		l.find = find.New(l.text)
	}
	s.alts = append(s.alts, l)
	return true
}

// match tells whether one of the texts is in p; ok is false where only the engine can tell.
func (s *literalSet) match(p []byte) (m, ok bool) {
	if s.any && !isASCII(p) {
		return false, false
	}
	for i := range s.alts {
		if s.alts[i].in(p) {
			return true, true
		}
	}
	return false, true
}

func (l *literal) in(p []byte) bool {
	n := len(l.text)
	if len(p) < n {
		return false
	}
	switch {
	case l.begin && l.end:
		return len(p) == n && l.at(p)
	case l.begin:
		return l.at(p[:n])
	case l.end:
		return l.at(p[len(p)-n:])
	case !l.fold:
		return l.find.Contains(p)
	}
	lo := l.text[l.rare]
	up := lo
	if lo >= 'a' && lo <= 'z' {
		up -= 32
	}
	hay := p[l.rare : len(p)-n+l.rare+1] // where the rare letter can be
	for _, c := range [2]byte{lo, up} {
		for at := 0; ; at++ {
			k := bytes.IndexByte(hay[at:], c)
			if k < 0 {
				break
			}
			at += k
			if l.at(p[at : at+n]) {
				return true
			}
		}
		if up == lo {
			break
		}
	}
	return false
}

func (l *literal) at(p []byte) bool {
	if !l.fold {
		return bytes.Equal(p, l.text)
	}
	for i, c := range p {
		if c >= 'A' && c <= 'Z' {
			c += 32
		}
		if c != l.text[i] {
			return false
		}
	}
	return true
}
