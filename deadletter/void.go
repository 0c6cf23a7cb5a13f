package deadletter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/rsetl/rsetl/record"
)

// A line {"void":"ID"} takes back the letter of that id, which stands before it. Letters themselves are never changed: others may
// read the file as it grows.

const voidBegin = `{"void":"`

// lineID is the id of a letter: of its line, with the line feed.
func lineID(line []byte) (id [12]byte) {
	sum := sha256.Sum256(line)
	copy(id[:], sum[:])
	return id
}

// voidedID reads a line that takes a letter back.
func voidedID(line []byte) (id [12]byte, ok bool) {
	if !bytes.HasPrefix(line, []byte(voidBegin)) {
		return id, false
	}
	var v struct{ Void string }
	if json.Unmarshal(line, &v) != nil {
		return id, false
	}
	b, err := hex.DecodeString(v.Void)
	return [12]byte(append(b, id[:]...)), err == nil && len(b) == len(id)
}

// Void takes back the steps' letters from before the start whose records have come again without failing: passed tells whether a
// position is before what the checkpoint at hand commits. It is called before that commit, and durable when it returns: after the
// commit nothing could tell these letters from those whose records stay failed. Sinks' letters stay: a transactional sink skips what it
// has settled, rejects too.
func (w *Writer) Void(passed func(split string, epoch int64, pos record.Position) bool) error {
	w.mu.Lock()
	n := 0
	for _, l := range w.order {
		if at, ok := w.known[l.id]; ok && at == 0 && l.step && passed(l.split.Value(), l.epoch, l.pos) {
			w.buf = append(append(w.buf, voidBegin...), hex.EncodeToString(l.line[:])...)
			w.buf = append(w.buf, '"', '}', '\n')
			delete(w.known, l.id)
			n++
		}
	}
	w.mu.Unlock()
	if n == 0 {
		return nil
	}
	w.log.Info("dead letters from before the start are void: their records came again and did not fail", "path", w.path, "letters", n)
	return w.Sync()
}
