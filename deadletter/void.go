package deadletter

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"syscall"

	"github.com/rsetl/rsetl/record"
)

// voided takes a letter's place, with spaces up to its length: a line that is no letter.
const voided = `{"void":"its record came again and did not fail"`

// Void blanks out the steps' letters from before the start whose records have come again without failing: passed tells whether a
// position is before what the checkpoint at hand commits. It is called before that commit, and durable when it returns: after the
// commit nothing could tell these letters from those whose records stay failed. Sinks' letters stay: a transactional sink skips what it
// has settled, rejects too.
func (w *Writer) Void(passed func(split string, epoch int64, pos record.Position) bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	var gone []knownLetter
	for _, l := range w.order {
		if at, ok := w.known[l.id]; ok && at == 0 && l.step && passed(w.splits[l.split], l.epoch, l.pos) {
			gone = append(gone, l)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for i := 0; i < len(gone); {
		j := i + 1
		for j < len(gone) && gone[j].dev == gone[i].dev && gone[j].ino == gone[i].ino {
			j++
		}
		if err := w.blank(gone[i:j]); err != nil {
			return fmt.Errorf("void dead letters: %w", err)
		}
		i = j
	}
	for _, l := range gone {
		delete(w.known, l.id)
	}
	w.log.Info("dead letters from before the start are void: their records came again and did not fail", "path", w.path, "letters", len(gone))
	return nil
}

// blank overwrites letters of one file, which may be a segment. One that was let go or moved away is nobody's concern.
func (w *Writer) blank(list []knownLetter) error {
	f := w.f
	if f == nil || w.dev != list[0].dev || w.ino != list[0].ino {
		all, err := Segments(w.path)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(s Segment) bool { return s.dev == list[0].dev && s.ino == list[0].ino })
		if i < 0 {
			return nil
		}
		if f, err = os.OpenFile(all[i].Path, os.O_RDWR|syscall.O_NONBLOCK, 0); err != nil {
			return err
		}
		defer f.Close()
	}
	for _, l := range list {
		line := make([]byte, l.size)
		if _, err := f.ReadAt(line, l.at); err != nil {
			return err
		}
		if !bytes.HasPrefix(line, []byte(letterBegin)) || line[len(line)-1] != '\n' || len(line) < len(voided)+2 {
			continue // someone has changed the file
		}
		n := copy(line, voided)
		for ; n < len(line)-2; n++ {
			line[n] = ' '
		}
		line[n] = '}'
		if _, err := w.write(f, line, l.at); err != nil {
			return err
		}
	}
	return w.sync(f)
}

// split gives a split's number among those of known letters.
func (w *Writer) split(id string) int32 {
	n, ok := w.numbers[id]
	if !ok {
		if w.numbers == nil {
			w.numbers = map[string]int32{}
		}
		n = int32(len(w.splits))
		w.numbers[id] = n
		w.splits = append(w.splits, id)
	}
	return n
}
