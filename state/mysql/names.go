package mysql

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rsetl/rsetl/state"
)

// checkNames refuses the names that every kind of store refuses, and those too long for the tables.
func checkNames(names ...string) error {
	for _, n := range names {
		if err := state.CheckNames(n); err != nil {
			return err
		}
		if len(n) > maxName {
			return fmt.Errorf("the name %q is longer than the %d bytes that the state store has for it", n, maxName)
		}
	}
	return nil
}

func checkCommit(p string, c *state.Commit) error {
	if err := c.Check(p, checkNames); err != nil {
		return err
	}
	for n := range c.Parts {
		if len(n) > maxName {
			return fmt.Errorf("the part %q has a longer name than the %d bytes that the state store has for it", n, maxName)
		}
	}
	for i := range c.Splits {
		if n := c.Splits[i].ID; len(n) > maxSplit {
			return fmt.Errorf("the split %q… has a longer id than the %d bytes that the state store has for it", n[:100], maxSplit)
		}
	}
	return nil
}

// stored is what stands in the column k for a key: itself, or of a long one its first maxKey bytes and the hash of all. So keys are
// in order as far as these bytes tell them apart, and a long one is never mistaken for another.
func stored(key []byte) (k []byte, long bool) {
	if len(key) <= maxKey {
		return key, false
	}
	sum := sha256.Sum256(key)
	return append(bytes.Clone(key[:maxKey]), sum[:]...), true
}

// prefixEnd is the first key behind all that begin with p; nil: there is none.
func prefixEnd(p []byte) []byte {
	end := bytes.Clone(p)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// text is b as a column of texts takes it.
func text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// truncate cuts s to n characters.
func truncate(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
