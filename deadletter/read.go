package deadletter

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Entry is one letter as it is read again.
type Entry struct {
	ID       string          `json:"id"` // of its text: the same wherever the letter is moved to
	Time     time.Time       `json:"time"`
	Pipeline string          `json:"pipeline"`
	Step     string          `json:"step,omitempty"`
	Sink     string          `json:"sink,omitempty"`
	Reason   string          `json:"reason"`
	Split    string          `json:"split,omitempty"`
	Path     string          `json:"path,omitempty"`
	Epoch    int64           `json:"epoch,omitempty"`
	Offset   int64           `json:"offset"`
	Index    int32           `json:"index"`
	Record   json.RawMessage `json:"record,omitempty"`
	Raw      *string         `json:"raw,omitempty"`
	RawBytes string          `json:"raw_base64,omitempty"`
	Replayed bool            `json:"replayed,omitempty"`
}

// Text is the record as the source read it; ok is false where that is not known.
func (e *Entry) Text() (raw []byte, ok bool) {
	if e.Raw != nil {
		return []byte(*e.Raw), true
	}
	if e.RawBytes == "" {
		return nil, false
	}
	b, err := base64.StdEncoding.DecodeString(e.RawBytes)
	return b, err == nil
}

// Filter selects letters. The zero value selects all.
type Filter struct {
	IDs    []string  `json:"ids,omitempty"` // or the beginnings of them
	Step   string    `json:"step,omitempty"`
	Sink   string    `json:"sink,omitempty"`
	Reason string    `json:"reason,omitempty"` // part of it
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
}

// Match tells whether the filter selects the letter.
func (f *Filter) Match(e *Entry) bool {
	if len(f.IDs) > 0 {
		found := false
		for _, id := range f.IDs {
			found = found || strings.HasPrefix(e.ID, id)
		}
		if !found {
			return false
		}
	}
	return (f.Step == "" || e.Step == f.Step || strings.HasPrefix(e.Step, f.Step+".")) && (f.Sink == "" || e.Sink == f.Sink) && strings.Contains(e.Reason, f.Reason) &&
		(f.Since.IsZero() || !e.Time.Before(f.Since)) && (f.Until.IsZero() || e.Time.Before(f.Until))
}

// Read calls f with each letter at path, segments included, the oldest first, until f returns an error. Lines that are
// no letters are left out, and so are letters that are void and what is written meanwhile. f may keep the entry.
func Read(path string, f func(e *Entry) error) error {
	all, err := Segments(path)
	if err != nil {
		return err
	}
	void := map[[12]byte]int{} // up to which line
	n := 0
	for _, s := range all {
		err := readLines(s, func(line []byte) error {
			n++
			if id, ok := voidedID(line); ok {
				void[id] = n
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	n = 0
	for _, s := range all {
		err := readLines(s, func(line []byte) error {
			n++
			var e Entry
			if json.Unmarshal(line, &e) != nil || e.Step == "" && e.Sink == "" {
				return nil
			}
			id := lineID(line)
			if n < void[id] {
				return nil
			}
			e.ID = hex.EncodeToString(id[:])
			return f(&e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readLines calls f with each line but those that are too long for letters.
func readLines(s Segment, f func(line []byte) error) error {
	file, err := os.Open(s.Path)
	if errors.Is(err, fs.ErrNotExist) { // let go meanwhile
		return nil
	}
	if err != nil {
		return fmt.Errorf("read dead letters: %w", err)
	}
	defer file.Close()
	r := bufio.NewReaderSize(io.LimitReader(file, s.Size), 256<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		if len(line) <= maxLine {
			if err := f(line); err != nil {
				return err
			}
		}
		line = line[:0]
	}
}
