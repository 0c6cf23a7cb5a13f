package file

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	"github.com/rsetl/rsetl/state"
)

// printLen is how many of the content's first bytes the fingerprint covers.
const printLen = 1024

// fileID is device and inode.
type fileID struct{ dev, ino uint64 }

// fingerprint is the hash of the first n bytes of the content.
type fingerprint struct {
	n   int
	sum string
}

func hash(p []byte) string {
	s := sha256.Sum256(p)
	return hex.EncodeToString(s[:16])
}

func printOf(head []byte) fingerprint {
	head = head[:min(len(head), printLen)]
	return fingerprint{len(head), hash(head)}
}

// fits tells whether content that begins with head may be what p is of.
func (p fingerprint) fits(head []byte) bool { return len(head) >= p.n && hash(head[:p.n]) == p.sum }

// anchor is the hash of the bytes before an offset.
type anchor struct {
	off int64
	sum string
}

func anchorOf(off int64, tail []byte) anchor { return anchor{off, hash(tail)} }

// meta is what the store keeps of a split beside its position.
//
// The position that a checkpoint commits is the End of the last batch before its marker, and Update
// takes effect in order with the batches. Each batch's Update comes before it is sent, with
// the anchors of its Start and its End: whichever a marker commits, its anchor is there.
type meta struct {
	id    fileID
	print fingerprint
	tails [2]anchor // the newest last; off < 0: none
	gone  int64     // seconds since 1970 when the file was found to be gone; 0: it is there
}

func (m *meta) push(a anchor) {
	if m.tails[1].off != a.off {
		m.tails[0] = m.tails[1]
	}
	m.tails[1] = a
}

func (m *meta) encode() map[string]string {
	out := map[string]string{
		"dev":   strconv.FormatUint(m.id.dev, 10),
		"inode": strconv.FormatUint(m.id.ino, 10),
		"print": strconv.Itoa(m.print.n) + ":" + m.print.sum,
	}
	var buf [128]byte
	t := buf[:0]
	for _, a := range m.tails {
		if a.off >= 0 {
			if len(t) > 0 {
				t = append(t, ',')
			}
			t = append(append(strconv.AppendInt(t, a.off, 10), ':'), a.sum...)
		}
	}
	if len(t) > 0 {
		out["tail"] = string(t)
	}
	if m.gone != 0 {
		out["gone"] = strconv.FormatInt(m.gone, 10)
	}
	return out
}

func newMeta(id fileID, p fingerprint) meta {
	return meta{id: id, print: p, tails: [2]anchor{{off: -1}, {off: -1}}}
}

func decodeMeta(in map[string]string) meta {
	m := newMeta(fileID{}, fingerprint{})
	m.id.dev, _ = strconv.ParseUint(in["dev"], 10, 64)
	m.id.ino, _ = strconv.ParseUint(in["inode"], 10, 64)
	m.gone, _ = strconv.ParseInt(in["gone"], 10, 64)
	n, sum, _ := strings.Cut(in["print"], ":")
	m.print.n, _ = strconv.Atoi(n)
	m.print.sum = sum
	for _, t := range strings.Split(in["tail"], ",") {
		off, sum, ok := strings.Cut(t, ":")
		if o, err := strconv.ParseInt(off, 10, 64); ok && err == nil {
			m.push(anchor{o, sum})
		}
	}
	return m
}

// trust tells whether the file behind h, which begins with head, still has before that position
// what was read there. The bytes before it are returned. err is a failure to read.
func (m *meta) trust(h *handle, head []byte, pos int64) (ok bool, tail []byte, err error) {
	if m.print.n > 0 && !m.print.fits(head) {
		return false, nil, nil
	}
	if pos == 0 {
		return true, nil, nil
	}
	tail, err = h.tail(pos)
	if err != nil {
		if err == io.EOF || h.kind != plain {
			err = nil // shorter than the position, or damaged before it
		}
		return false, nil, err
	}
	for _, a := range m.tails {
		if a.off == pos {
			return a.sum == hash(tail), tail, nil
		}
	}
	return false, tail, nil
}

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// known is a split of the store that no open file has.
type known struct {
	st   state.Split
	m    meta
	pos  int64
	used bool  // it was open in this run, so its name can't be opened again
	died int64 // when the file was deleted, in nanoseconds since 1970 by its file system; 0: unknown
}
