package deadletter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// everything gives the letters' offsets over all segments, a | between files.
func everything(t *testing.T, path string) string {
	t.Helper()
	all, err := Segments(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		out = append(out, offsets(t, s.Path))
	}
	return strings.Join(out, " | ")
}

func bounded(t *testing.T, path string, m Mark, o Options) *Writer {
	t.Helper()
	w, err := Open(path, m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func equalText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// twoLetters is a bound with which a segment takes two letters of one digit, and eight of them are kept;
// seven where some have two digits.
func twoLetters() int64 { return parts * 2 * int64(len(appendLetter(nil, letter(1)))) }

func TestSegments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	now := time.Now()
	o := Options{MaxSize: twoLetters(), Now: func() time.Time { return now }}
	w := bounded(t, path, nil, o)
	for i := range int64(5) {
		add(t, w, i)
	}
	equalText(t, "set aside", everything(t, path), "0 1 | 2 3 | 4")
	m := mustMark(t, w) // in the third file
	w.Committed()
	for i := range int64(4) {
		add(t, w, 5+i)
	}
	equalText(t, "more", everything(t, path), "0 1 | 2 3 | 4 5 | 6 7 | 8")
	w.Close()

	// After a crash what is behind the mark is known, in whatever file it is.
	w = bounded(t, path, m, o)
	add(t, w, 5, 6, 8, 7)
	equalText(t, "again", everything(t, path), "0 1 | 2 3 | 4 5 | 6 7 | 8")
	for i := range int64(11) {
		add(t, w, 9+i)
		mustMark(t, w)
		w.Committed()
		now = now.Add(2 * time.Minute)
	}
	if n := w.LetGo(); n != 6 {
		t.Errorf("%d letters were let go", n)
	}
	equalText(t, "bounded", everything(t, path), "6 7 | 8 9 | 10 11 | 12 13 | 14 15 | 16 17 | 18 19")
	w.Close()
	// A mark whose file is gone: rather twice than none.
	w = bounded(t, path, m, o)
	add(t, w, 20)
	equalText(t, "a mark of before", everything(t, path), "6 7 | 8 9 | 10 11 | 12 13 | 14 15 | 16 17 | 18 19 | 20")
}

func TestMarkBetweenSegments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	o := Options{MaxSize: twoLetters()}
	w := bounded(t, path, nil, o)
	add(t, w, 0)
	add(t, w, 1) // the segment is full; there is no file for the next one
	m := mustMark(t, w)
	w.Committed()
	for i := range int64(5) {
		add(t, w, 2+i)
	}
	w.Close()
	w = bounded(t, path, m, o)
	add(t, w, 2, 3, 4, 5, 6, 7)
	equalText(t, "again", everything(t, path), "0 1 | 2 3 | 4 5 | 6 7")
}

func TestMaxAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	now := letter(0).Time
	o := Options{MaxAge: 8 * time.Hour, Now: func() time.Time { return now }}
	w := bounded(t, path, nil, o)
	old := func(path string) {
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(4) {
		l := letter(i)
		l.Time = now
		if err := w.Append(l); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		mustMark(t, w)
		w.Committed()
		old(path)
		now = now.Add(2 * time.Hour)
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	equalText(t, "by age", everything(t, path), "0 | 1 | 2 | 3")
	now = now.Add(2*time.Hour + time.Minute)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	equalText(t, "let go", everything(t, path), "2 | 3")
	if w.LetGo() != 2 {
		t.Error(w.LetGo())
	}
}

func TestOtherFilesAreNoSegments(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"web.ndjson", "web.000002.ndjson", "web.1.ndjson", "web.a.ndjson", "web.000000.ndjson", "webb.000001.ndjson", "web.000003.ndjson.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o640); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Segments(filepath.Join(dir, "web.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range all {
		got = append(got, fmt.Sprint(s.Seq))
	}
	equalText(t, "segments", strings.Join(got, " "), "2 0")
}

func TestMove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "ns", "b.ndjson")
	w := open(t, from, nil)
	add(t, w, 1)
	m := mustMark(t, w)
	add(t, w, 2)
	w.Close()
	other := open(t, to, nil)
	add(t, other, 9)
	other.Close()
	for range 2 { // the second time as after a crash before the mark was committed
		moved, err := Move(m, from, to)
		if err != nil || moved == nil {
			t.Fatal(moved, err)
		}
		if again, err := Move(moved, from, to); again != nil || err != nil {
			t.Fatal(again, err)
		}
		w = open(t, to, moved)
		add(t, w, 2)
		w.Close()
		equalText(t, "moved", everything(t, to), "9 | 1 2")
	}
}
