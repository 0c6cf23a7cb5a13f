package kv

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// charset is a set of characters. ASCII ones are in the table; others in the text.
type charset struct {
	ascii [256]bool
	other string
	on    bool
}

// newCharset reads the inside of a regular expression's character class.
func newCharset(s string) (cs charset, err error) {
	class := s
	re, err := regexp.Compile("^[" + class + "]$")
	if err != nil {
		re, err = regexp.Compile("^[" + escapeClass(s) + "]$")
	}
	if err != nil {
		return cs, fmt.Errorf("%q are no characters to separate by: %v", s, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	cs.on = true
	for c := range 128 {
		cs.ascii[c] = re.MatchString(string(rune(c)))
	}
	for _, r := range s {
		if r >= utf8.RuneSelf && re.MatchString(string(r)) && !strings.ContainsRune(cs.other, r) {
			cs.other += string(r)
		}
	}
	return cs, nil
}

// escapeClass makes the characters of s stand for themselves: for what is no class, such as "[" alone.
func escapeClass(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\]^-[&`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// at tells how many bytes at p[i] are a character of the set; 0: it is none.
func (cs *charset) at(p []byte, i int) int {
	c := p[i]
	if c < utf8.RuneSelf {
		if cs.ascii[c] {
			return 1
		}
		return 0
	}
	if cs.other == "" {
		return 0
	}
	r, n := utf8.DecodeRune(p[i:])
	if r != utf8.RuneError && strings.ContainsRune(cs.other, r) {
		return n
	}
	return 0
}

// trim takes the set's characters off both ends.
func (cs *charset) trim(p []byte) (from, to int) {
	to = len(p)
	for from < to {
		n := cs.at(p, from)
		if n == 0 {
			break
		}
		from += n
	}
	for to > from {
		n := 1
		for n < to-from && n < utf8.UTFMax && p[to-n]&0xC0 == 0x80 {
			n++
		}
		if cs.at(p[:to], to-n) != n {
			break
		}
		to -= n
	}
	return from, to
}

// remove appends p without the set's characters.
func (cs *charset) remove(dst, p []byte) []byte {
	for i := 0; i < len(p); {
		if n := cs.at(p, i); n > 0 {
			i += n
			continue
		}
		dst = append(dst, p[i])
		i++
	}
	return dst
}

// any tells whether p has a character of the set.
func (cs *charset) any(p []byte) bool {
	for i := range p {
		if cs.at(p, i) > 0 {
			return true
		}
	}
	return false
}
