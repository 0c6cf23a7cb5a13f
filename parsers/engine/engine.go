// Package engine compiles regular expressions of Oniguruma's syntax, as grok uses it, and runs them in linear time.
//
// An expression becomes a program on bytes (prog.go) with Go's regexp's priorities. A tagged automaton that is built while it
// runs (dfa.go) finds the match and all offsets in one pass; where its memory is spent, a simulation of all threads (nfa.go)
// takes over. Frequent ways through the automaton are followed as traces (trace.go), long runs 32 bytes at a time (run.go).
// Look-around of one character and atomic groups that are proven harmless (atomic.go) are native too. What is left, back-references
// and longer look-around, runs on dlclark/regexp2 with a limit on each match; Regex.Why names the construct.
//
// Dialect: Ruby's, with Logstash's options: `^` and `$` match at lines, `.` matches a newline too. `\d`, `\w`, `\s`, `\h` and
// `\b` are ASCII, `[[:alpha:]]` and the like follow Unicode. All engines give the same answer, that of Go's regexp wherever
// it accepts the expression. A byte that is no UTF-8 is U+FFFD to all.
package engine

import (
	"fmt"
	"regexp/syntax"
	"time"
)

// Regex is a compiled expression. It is immutable; each worker matches with a Matcher of its own.
type Regex struct {
	Source string                               // as it was given
	Engine string                               // "native", "regexp" (for what native has no room for) or "regexp2"
	Why    string                               // why this engine
	Groups int                                  // capturing groups
	native *native                              // where that is the engine
	again  func() (*syntax.Prog, []mark, error) // compiles it for a list
	make   func() Matcher
}

// Matcher is one worker's matcher.
type Matcher interface {
	// Match finds the leftmost match. caps gets two offsets for the match and for each group, -1 for groups
	// that took no part; it has 2*(Groups+1) places, or none where only the answer is wanted. An error means that
	// the engine gave up: ErrTimeout, ErrWork, ErrTooLong.
	Match(text []byte, caps []int) (bool, error)
	// Each calls f for every match, one after the other without overlap, until f gives false. caps has all places; it
	// holds the match's offsets while f runs. An empty match right behind another doesn't count.
	Each(text []byte, caps []int, f func() bool) error
}

// Matcher makes a matcher for one goroutine.
func (r *Regex) Matcher() Matcher { return r.make() }

// MatcherWithin makes a matcher whose automatons have at most about that many bytes, instead of DefaultBudget each. What
// that is too small for takes longer, up to a hundred times; the answers are the same.
func (r *Regex) MatcherWithin(bytes int) Matcher {
	if r.native == nil {
		return r.make()
	}
	n := *r.native
	n.budget = bytes
	return n.matcher()
}

// Timeout bounds one match of an engine that isn't linear; one that exceeds it is tried twice.
const Timeout = 50 * time.Millisecond

// ErrTimeout: the expression needs too long for this text.
var ErrTimeout = fmt.Errorf("timeout: the expression took longer than %s", Timeout)

// ErrWork: the expression has so many threads on this text that even linear time is too long.
var ErrWork = fmt.Errorf("timeout: the expression takes more than %d million steps on this text", maxWork/1_000_000)

// ErrTooLong: a backtracking engine is not given such a text.
var ErrTooLong = fmt.Errorf("the text is longer than the %d bytes that a backtracking expression is given", maxBacktrack)

// Error is a mistake in an expression.
type Error struct {
	Off int // byte offset in the source; -1 where it is not known
	Msg string
}

func (e *Error) Error() string { return e.Msg }

// Compile compiles an expression. A *Error says what is wrong with it.
func Compile(src string) (*Regex, error) {
	re, t, err := parse(src)
	if err != nil {
		return nil, err
	}
	r := &Regex{Source: src, Groups: t.groups}
	switch {
	case re == nil:
		r.Why = "Go's parser refuses it"
	case t.backtrack != "":
		r.Why = "it has " + t.backtrack
	default:
		n, unproven, err := compileNative(re, t.marks)
		switch {
		case err == nil && unproven == "":
			r.use(n)
			r.again = func() (*syntax.Prog, []mark, error) {
				re, t, err := parse(src)
				if err != nil {
					return nil, nil, err
				}
				p, err := syntax.Compile(re.Simplify())
				return p, t.marks, err
			}
			return r, nil
		case unproven != "":
			r.Why = "it has " + unproven + " on which the match may depend"
		default:
			r.Why = err.Error()
			if t.plain() && r.useRegexp(t.text) == nil {
				return r, nil
			}
		}
	}
	gate := ""
	if re != nil {
		gate = required(re)
	}
	if t, err = translate(src, true); err != nil {
		return nil, err
	}
	if err := r.useRegexp2(t.text, gate); err != nil {
		return nil, &Error{Off: -1, Msg: err.Error()}
	}
	return r, nil
}

// parse gives an expression as Go's parser does. The tree is nil where that refuses it.
func parse(src string) (*syntax.Regexp, translated, error) {
	t, err := translate(src, false)
	if err != nil {
		return nil, t, err
	}
	re, err := syntax.Parse(t.text, syntax.Perl)
	if e, ok := err.(*syntax.Error); ok && (e.Code == syntax.ErrInvalidRepeatSize || e.Code == syntax.ErrLarge) {
		// It has more repetitions than Go's parser takes: these are put into the tree afterwards.
		if t, err = translateTo(src, false, true); err != nil {
			return nil, t, err
		}
		if re, err = syntax.Parse(t.text, syntax.Perl); err == nil {
			repeats(re, t.marks)
		}
	}
	if err != nil {
		re = nil
	}
	return re, t, nil
}

// repeats makes what is marked as repeated so.
func repeats(re *syntax.Regexp, marks []mark) {
	for _, sub := range re.Sub {
		repeats(sub, marks)
	}
	if re.Op == syntax.OpCapture && marks[re.Cap-1].kind == markRepeat {
		m := marks[re.Cap-1]
		re.Op, re.Min, re.Max, re.Cap, re.Name = syntax.OpRepeat, m.min, m.max, 0, ""
		if m.lazy {
			re.Flags |= syntax.NonGreedy
		} else {
			re.Flags &^= syntax.NonGreedy
		}
	}
}

// CompileGo compiles an expression of Go's syntax and options. What Go's regexp answers is what the result answers.
func CompileGo(src string) (*Regex, error) {
	re, err := syntax.Parse(src, syntax.Perl)
	if err != nil {
		return nil, &Error{Off: -1, Msg: err.Error()}
	}
	r := &Regex{Source: src, Groups: re.MaxCap()}
	n, _, err := compileNative(re, nil)
	if err != nil {
		r.Why = err.Error()
		return r, r.useRegexp(src)
	}
	r.use(n)
	r.again = func() (*syntax.Prog, []mark, error) {
		re, err := syntax.Parse(src, syntax.Perl)
		if err != nil {
			return nil, nil, err
		}
		p, err := syntax.Compile(re.Simplify())
		return p, nil, err
	}
	return r, nil
}

func (r *Regex) use(n *native) {
	r.Engine, r.Why = "native", "it needs nothing that only backtracking gives"
	n.p.groups = r.Groups
	r.native = n
	r.make = func() Matcher { return n.matcher() }
}

// Linear tells whether the time of a match grows with the text and no faster.
func (r *Regex) Linear() bool { return r.Engine != "regexp2" }

// Describe tells in one line what runs the expression and why, how big it is and what it looks for first.
func (r *Regex) Describe() string {
	s := r.Engine + ", since " + r.Why
	if n := r.native; n != nil {
		s += fmt.Sprintf("; %d instructions on %d classes of bytes, %d KiB", len(n.p.insts), n.p.classes, (n.p.bytes()+1023)/1024)
		if n.gateText != "" {
			s += fmt.Sprintf("; a text without %q is passed over", n.gateText)
		}
		switch {
		case n.onlyStart:
			s += "; only at the beginning"
		case n.onlyLine:
			s += "; only at the beginning of a line"
		}
	}
	return s
}
