package pebble

import (
	"encoding/binary"
	"strings"
)

// Keys of one pipeline begin with 'p', its name and a zero byte (names hold none); then a letter for
// the kind of entry:
//
//	m                    the pipeline exists
//	c                    the ledger's counters
//	s ID                 a split
//	a NAME               a part
//	q TARGET             the next sequence number, 8 bytes
//	o TARGET 0 SEQ       a firing; SEQ is 8 bytes, big-endian
//	k STAGE 0 KEY        keyed state
//
// Without m, the others are remains of a rename that did not come to its end, and count for nothing.
func key(pipeline string, kind byte, rest ...string) []byte {
	k := append([]byte{'p'}, pipeline...)
	k = append(k, 0, kind)
	return append(k, strings.Join(rest, "\x00")...)
}

func outboxKey(pipeline, target string, seq int64) []byte {
	return binary.BigEndian.AppendUint64(key(pipeline, 'o', target, ""), uint64(seq))
}

func stateKey(pipeline, stage string, k []byte) []byte {
	return append(key(pipeline, 'k', stage, ""), k...)
}

// prefixEnd is the first key behind all that begin with p.
func prefixEnd(p []byte) []byte {
	end := append([]byte(nil), p...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
