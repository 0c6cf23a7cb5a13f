// Package engine compiles regular expressions of Oniguruma's syntax, as grok uses it, for the first engine
// that runs them exactly: Go's regexp (linear time), else dlclark/regexp2 with a limit on each match.
//
// Dialect: Ruby's, with Logstash's options: `^` and `$` match at lines, `.` matches a newline too. `\d`, `\w`, `\s`, `\h` and
// `\b` are ASCII, `[[:alpha:]]` and the like follow Unicode. Both engines give the same answer, that of Go's regexp wherever
// it accepts the expression.
package engine

import (
	"fmt"
	"time"
)

// Regex is a compiled expression. It is immutable; each worker matches with a Matcher of its own.
type Regex struct {
	Source string // as it was given
	Engine string // "regexp" or "regexp2"
	Why    string // why this engine
	Groups int    // capturing groups
	make   func() Matcher
}

// Matcher is one worker's matcher.
type Matcher interface {
	// Match finds the leftmost match. caps gets two offsets for the match and for each group, -1 for groups
	// that took no part; it has 2*(Groups+1) places, or none where only the answer is wanted. An error means that
	// the engine gave up: ErrTimeout, ErrTooLong.
	Match(text []byte, caps []int) (bool, error)
}

// Matcher makes a matcher for one goroutine.
func (r *Regex) Matcher() Matcher { return r.make() }

// Timeout bounds one match of an engine that isn't linear; one that exceeds it is tried twice.
const Timeout = 50 * time.Millisecond

// ErrTimeout: the expression needs too long for this text.
var ErrTimeout = fmt.Errorf("timeout: the expression took longer than %s", Timeout)

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
	t, err := translate(src, false)
	if err != nil {
		return nil, err
	}
	r := &Regex{Source: src, Groups: t.groups}
	if t.backtrack == "" {
		if err = r.useRegexp(t.text); err == nil {
			r.Why = "it needs nothing that only backtracking gives"
			return r, nil
		}
		r.Why = "Go's regexp refuses it: " + err.Error()
	} else {
		r.Why = "it has " + t.backtrack
	}
	if t, err = translate(src, true); err != nil {
		return nil, err
	}
	if err := r.useRegexp2(t.text); err != nil {
		return nil, &Error{Off: -1, Msg: err.Error()}
	}
	return r, nil
}
