package engine

import (
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/rsetl/rsetl/internal/find"
)

func (r *Regex) useRegexp(text string) error {
	re, err := regexp.Compile(text)
	if err != nil {
		return err
	}
	r.Engine = "regexp"
	// Most lines match from their beginning, and a match there is the leftmost one: the pinned
	// expression finds it with far fewer threads.
	pinned, err := regexp.Compile(`\A(?:` + text + `)`)
	if err != nil {
		pinned = nil
	}
	r.make = func() Matcher { return &goMatcher{re: re, pinned: pinned} }
	return nil
}

type goMatcher struct{ re, pinned *regexp.Regexp }

func (m *goMatcher) Match(text []byte, caps []int) (bool, error) {
	if len(caps) == 0 {
		return m.re.Match(text), nil
	}
	if m.pinned != nil {
		if loc := m.pinned.FindSubmatchIndex(text); loc != nil {
			copy(caps, loc)
			return true, nil
		}
	}
	loc := m.re.FindSubmatchIndex(text)
	if loc == nil {
		return false, nil
	}
	copy(caps, loc)
	return true, nil
}

func (m *goMatcher) Each(text []byte, caps []int, f func() bool) error {
	for _, loc := range m.re.FindAllSubmatchIndex(text, -1) {
		if copy(caps, loc); !f() {
			break
		}
	}
	return nil
}

func init() {
	// The package's clock ticks while expressions run; a time-out is late by one or two ticks.
	regexp2.SetTimeoutCheckPeriod(10 * time.Millisecond)
}

// useRegexp2 has the expression run by regexp2. gate is a text without which there is no match.
func (r *Regex) useRegexp2(text, gate string) error {
	re, err := regexp2.Compile(text, regexp2.None)
	if err != nil {
		return err
	}
	re.MatchTimeout = Timeout
	r.Engine = "regexp2"
	var f *find.Finder
	if gate != "" {
		f = find.New([]byte(gate))
	}
	r.make = func() Matcher { return &backMatcher{re: re, gate: f} }
	return nil
}

// backMatcher runs a backtracking expression. regexp2 works on runes; offs maps them back to bytes. Bytes
// that are not UTF-8 are U+FFFD to it, as they are to Go's regexp.
type backMatcher struct {
	re    *regexp2.Regexp
	gate  *find.Finder
	runes []rune
	offs  []int
}

const (
	// maxBacktrack bounds what a backtracking engine is given: its cost is not linear.
	maxBacktrack = 1 << 20
	// keepRunes bounds the scratch memory that is kept between two texts.
	keepRunes = 1 << 16
)

func (m *backMatcher) Match(text []byte, caps []int) (bool, error) {
	if m.gate != nil && !m.gate.Contains(text) {
		return false, nil
	}
	if len(text) > maxBacktrack {
		return false, ErrTooLong
	}
	m.read(text)
	found, err := m.re.FindRunesMatch(m.runes)
	if err != nil {
		// The limit is by the clock: perhaps others had the processor. A second time it is the expression.
		if found, err = m.re.FindRunesMatch(m.runes); err != nil {
			return false, ErrTimeout
		}
	}
	if found != nil {
		m.offsets(found, caps)
	}
	if cap(m.runes) > keepRunes {
		m.runes, m.offs = nil, nil
	}
	return found != nil, nil
}

func (m *backMatcher) Each(text []byte, caps []int, f func() bool) error {
	if len(text) > maxBacktrack {
		return ErrTooLong
	}
	m.read(text)
	found, err := m.re.FindRunesMatch(m.runes)
	for err == nil && found != nil {
		if m.offsets(found, caps); !f() {
			return nil
		}
		found, err = m.re.FindNextMatch(found)
	}
	if err != nil {
		return ErrTimeout
	}
	return nil
}

func (m *backMatcher) read(text []byte) {
	m.runes, m.offs = m.runes[:0], m.offs[:0]
	for i := 0; i < len(text); {
		c, n := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRune(text[i:])
		}
		m.runes = append(m.runes, c)
		m.offs = append(m.offs, i)
		i += n
	}
	m.offs = append(m.offs, len(text))
}

func (m *backMatcher) offsets(found *regexp2.Match, caps []int) {
	for i := range caps {
		caps[i] = -1
	}
	for i, g := range found.Groups() {
		if 2*i+1 < len(caps) && len(g.Captures) > 0 {
			caps[2*i], caps[2*i+1] = m.offs[g.Index], m.offs[g.Index+g.Length]
		}
	}
}

// ForRegexp2 gives the expression as regexp2 takes it: for comparisons.
func ForRegexp2(src string) (string, error) {
	t, err := translate(src, true)
	return t.text, err
}

// ForRegexp gives the expression as Go's regexp takes it; ok is false where that has no such expression.
func ForRegexp(src string) (text string, ok bool) {
	t, err := translate(src, false)
	if err != nil || t.backtrack != "" || !t.plain() {
		return "", false
	}
	_, err = regexp.Compile(t.text)
	return t.text, err == nil
}
