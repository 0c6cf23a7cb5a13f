package engine

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// required gives a text that is in every text that the expression matches; "" where none is known. It is the one that is
// looked for fastest and found least: the longest, blanks and digits not counting much.
func required(re *syntax.Regexp) string {
	best := ""
	take := func(s string) {
		if worth(s) > worth(best) {
			best = s
		}
	}
	var walk func(re *syntax.Regexp, open *strings.Builder)
	end := func(open *strings.Builder) {
		take(open.String())
		open.Reset()
	}
	// open is the text that surely precedes what is walked.
	walk = func(re *syntax.Regexp, open *strings.Builder) {
		switch re.Op {
		case syntax.OpLiteral:
			if re.Flags&syntax.FoldCase == 0 {
				for _, r := range re.Rune {
					open.WriteRune(r)
				}
				return
			}
			for _, r := range re.Rune {
				if len(literalSet(r, true)) == 2 && literalSet(r, true)[0] == literalSet(r, true)[1] {
					open.WriteRune(r)
				} else {
					end(open)
				}
			}
		case syntax.OpConcat:
			for _, sub := range re.Sub {
				walk(sub, open)
			}
		case syntax.OpCapture:
			walk(re.Sub[0], open)
		case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpBeginText, syntax.OpEndLine, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		case syntax.OpPlus:
			walk(re.Sub[0], open)
			end(open)
		case syntax.OpRepeat:
			if re.Min == 0 {
				end(open)
				return
			}
			for range min(re.Min, 4) {
				walk(re.Sub[0], open)
			}
			if re.Min > 4 || re.Max != re.Min {
				end(open)
			}
		default:
			end(open)
		}
	}
	var open strings.Builder
	walk(re, &open)
	end(&open)
	if strings.ContainsRune(best, utf8.RuneError) { // bytes that are no UTF-8 match it
		return ""
	}
	return best
}

// worth ranks texts to look for.
func worth(s string) int {
	n := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ' || c == 'e' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '/' || c == '"' || c == ':':
			n += 2
		case c >= 'a' && c <= 'z':
			n += 3
		default:
			n += 5
		}
		if i > 16 {
			break
		}
	}
	if len(s) == 1 {
		n /= 2
	}
	return n
}
