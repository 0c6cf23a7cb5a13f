package expr

import (
	"encoding/binary"
	"slices"
)

// appendBlock appends what f appends, behind its length.
func appendBlock(dst []byte, f func([]byte) []byte) []byte {
	at := len(dst)
	dst = f(dst)
	n := len(dst) - at
	var head [binary.MaxVarintLen64]byte
	return slices.Insert(dst, at, head[:binary.PutUvarint(head[:], uint64(n))]...)
}

func readBlock(p []byte) (block, rest []byte, ok bool) {
	n, w := binary.Uvarint(p)
	if w <= 0 || n > uint64(len(p)-w) {
		return nil, nil, false
	}
	return p[w : w+int(n)], p[w+int(n):], true
}

func appendWord(dst []byte, w uint64) []byte { return binary.AppendUvarint(dst, w) }

func readWord(p []byte) (w uint64, rest []byte, ok bool) {
	w, n := binary.Uvarint(p)
	if n <= 0 {
		return 0, nil, false
	}
	return w, p[n:], true
}

// appendWords appends words as varints; readWords reads as many as w has.
func appendWords(dst []byte, w []uint64) []byte {
	for _, x := range w {
		dst = binary.AppendUvarint(dst, x)
	}
	return dst
}

func readWords(w []uint64, p []byte) ([]byte, bool) {
	for i := range w {
		var ok bool
		if w[i], p, ok = readWord(p); !ok {
			return nil, false
		}
	}
	return p, true
}
