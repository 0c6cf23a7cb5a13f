package deadletter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A letter file that has become large or old is set aside as a segment: web.ndjson becomes web.000001.ndjson, and the next
// letters go to a new web.ndjson. Of what is more or older than the bounds, whole segments are let go, the oldest first.

// parts is into how many segments the bounds of size and age are divided: so much more than a bound may be kept.
const parts = 8

// Segment is one file of a pipeline's letters.
type Segment struct {
	Path string
	Seq  int // 0 for the file that is written to
	Size int64
	Last time.Time // when it was last written to
	dev  uint64
	ino  uint64
}

// Segments lists the files of the letters at path, the oldest first.
func Segments(path string) ([]Segment, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	ext := filepath.Ext(path)
	head := strings.TrimSuffix(filepath.Base(path), ext) + "."
	var out []Segment
	for _, e := range entries {
		s := Segment{Path: filepath.Join(filepath.Dir(path), e.Name())}
		if e.Name() != filepath.Base(path) {
			middle, ok := strings.CutPrefix(e.Name(), head)
			if !ok || !strings.HasSuffix(middle, ext) {
				continue
			}
			digits := strings.TrimSuffix(middle, ext)
			if s.Seq, err = strconv.Atoi(digits); err != nil || s.Seq < 1 || digits != segmentDigits(s.Seq) {
				continue // another pipeline's, perhaps: web.a.ndjson
			}
		}
		st, err := os.Lstat(s.Path)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		s.Size, s.Last = st.Size(), st.ModTime()
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			s.dev, s.ino = uint64(sys.Dev), sys.Ino
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Segment) int {
		switch { // the one that is written to is the newest
		case a.Seq == 0:
			return 1
		case b.Seq == 0:
			return -1
		}
		return a.Seq - b.Seq
	})
	return out, nil
}

func segmentDigits(n int) string { return fmt.Sprintf("%06d", n) }

// aside renames the letter file to the next segment's name, where there is one.
func aside(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all, err := Segments(path)
	if err != nil {
		return err
	}
	next := 1
	for _, s := range all {
		next = max(next, s.Seq+1)
	}
	ext := filepath.Ext(path)
	return os.Rename(path, strings.TrimSuffix(path, ext)+"."+segmentDigits(next)+ext)
}

// lines counts the letters of a file.
func lines(path string) (n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for {
		k, err := f.Read(block)
		n += int64(bytes.Count(block[:k], []byte{'\n'}))
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// turn sets the file aside where it is large or old, and lets go what is too much. It is called with w.mu held and
// everything synced.
func (w *Writer) turn() error {
	now := w.o.Now()
	old := w.o.MaxAge > 0 && w.len > 0 && now.Sub(w.since) > w.o.MaxAge/parts
	large := w.o.MaxSize > 0 && w.len >= w.o.MaxSize/parts
	if w.f != nil && (old || large) {
		if err := aside(w.path); err != nil {
			return fmt.Errorf("set dead letters aside: %w", err)
		}
		w.segment = mark{w.path, w.dev, w.ino, w.len}
		w.f.Close()
		w.f = nil
		w.len, w.synced = 0, 0
		if err := syncDirs(filepath.Dir(w.path)); err != nil {
			return fmt.Errorf("sync the folder of dead letters: %w", err)
		}
		w.checked = time.Time{}
	}
	if (w.o.MaxAge > 0 || w.o.MaxSize > 0) && now.Sub(w.checked) > time.Minute {
		w.checked = now
		return w.letGo(now)
	}
	return nil
}

// letGo removes the oldest segments that the bounds have no room for, but none that a restart would read.
func (w *Writer) letGo(now time.Time) error {
	all, err := Segments(w.path)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, s := range all {
		total += s.Size
	}
	for _, s := range all {
		tooOld := w.o.MaxAge > 0 && now.Sub(s.Last) > w.o.MaxAge
		tooMuch := w.o.MaxSize > 0 && total > w.o.MaxSize
		if s.Seq == 0 || !tooOld && !tooMuch || s.ino == w.committed.Ino && s.dev == w.committed.Dev || s.ino == w.marked.Ino && s.dev == w.marked.Dev {
			break
		}
		n, err := lines(s.Path)
		if err == nil {
			err = os.Remove(s.Path)
		}
		if err != nil {
			return fmt.Errorf("let dead letters go: %w", err)
		}
		total -= s.Size
		w.gone += n
		why := "there are more than max_size"
		if tooOld {
			why = "they are older than max_age"
		}
		w.log.Warn("dead letters were let go; raise dead_letter's bounds to keep more", "path", s.Path, "letters", n, "why", why)
	}
	return nil
}

// LetGo is how many letters were removed since Open because of the bounds.
func (w *Writer) LetGo() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}
