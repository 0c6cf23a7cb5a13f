// Package find looks for one text in many: bytes.Index for a text that is known beforehand.
//
// bytes.Index looks for the first byte, which in log lines is often one that is everywhere (a quote, a blank). Where
// the processor has AVX2, this looks for two bytes of the text at once, 32 places at a time.
package find

import "bytes"

// Finder looks for a text. It is immutable.
type Finder struct {
	lit  []byte
	a, b byte // lit[at] and lit[at+gap]
	at   int
	gap  int
	pair bool
}

// New makes a Finder of that text, which must not be changed any more.
func New(lit []byte) *Finder {
	f := &Finder{lit: lit, pair: hasPair && len(lit) > 1 && len(lit) <= maxLit}
	if f.pair {
		f.choose()
	}
	return f
}

// maxLit bounds what is looked for by pairs: a long text's first byte and length say enough.
const maxLit = 64

// choose takes the two rarest bytes.
func (f *Finder) choose() {
	first, second := 0, 1
	if rank(f.lit[second]) < rank(f.lit[first]) {
		first, second = second, first
	}
	for i := 2; i < len(f.lit); i++ {
		switch r := rank(f.lit[i]); {
		case r < rank(f.lit[first]):
			first, second = i, first
		case r < rank(f.lit[second]) && f.lit[i] != f.lit[first]:
			second = i
		}
	}
	lo, hi := min(first, second), max(first, second)
	f.at, f.gap, f.a, f.b = lo, hi-lo, f.lit[lo], f.lit[hi]
}

// rank is how frequent a byte is in logs, roughly.
func rank(c byte) int {
	switch {
	case c == ' ' || c == 'e':
		return 9
	case c == '/' || c == '.' || c == '0' || c == '1' || c == 'a' || c == 'o' || c == 't' || c == 'i' || c == 's' || c == 'n' || c == 'r':
		return 8
	case c >= '2' && c <= '9' || c == '"' || c == ':' || c == '-' || c == ',':
		return 6
	case c >= 'a' && c <= 'z':
		return 5
	case c >= 'A' && c <= 'Z' || c >= 0x80:
		return 3
	}
	return 2
}

// Index is bytes.Index(s, the text).
func (f *Finder) Index(s []byte) int {
	if !f.pair || len(s) < f.at+f.gap+32 {
		return bytes.Index(s, f.lit)
	}
	end := len(s) - len(f.lit) // the last place where it may begin
	for from := 0; ; {
		// Places before at can't be the text's: begin behind them.
		k := indexPair(s[from+f.at:], f.a, f.b, f.gap)
		if k < 0 {
			return -1
		}
		k += from
		if k > end {
			return -1
		}
		if string(s[k:k+len(f.lit)]) == string(f.lit) {
			return k
		}
		if from = k + 1; len(s)-from < f.at+f.gap+32 {
			if k = bytes.Index(s[from:], f.lit); k >= 0 {
				k += from
			}
			return k
		}
	}
}

// Contains tells whether the text is in s.
func (f *Finder) Contains(s []byte) bool { return f.Index(s) >= 0 }
