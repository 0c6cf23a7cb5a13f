package deadletter

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
)

// held lists the offsets of the letters that a reader sees.
func held(t *testing.T, path string) (out []int64) {
	t.Helper()
	if err := Read(path, func(e *Entry) error { out = append(out, e.Offset); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func below(n int64) func(string, int64, record.Position) bool {
	return func(split string, epoch int64, pos record.Position) bool {
		return split == "f1" && epoch == 0 && pos.Offset < n
	}
}

// TestVoid: of the letters behind the mark those are void whose records have passed again and not failed.
func TestVoid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	add(t, w, 1)
	m := mustMark(t, w)
	add(t, w, 2, 3, 4, 5)
	w.Close()
	before, _ := os.ReadFile(path)

	w = open(t, path, m)
	add(t, w, 3)
	if err := w.Void(below(4)); err != nil {
		t.Fatal(err)
	}
	m = mustMark(t, w)
	w.Committed()
	equal := func(want string) {
		t.Helper()
		var got []string
		for _, o := range held(t, path) {
			got = append(got, string(rune('0'+o)))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("the file holds %s, want %s", s, want)
		}
	}
	equal("1 3 4 5")
	if now, _ := os.ReadFile(path); !strings.HasPrefix(string(now), string(before)) {
		t.Error("what was written was changed")
	}
	add(t, w, 2) // its split was set back: it comes once more, and fails
	equal("1 3 4 5 2")
	w.Close()

	w = open(t, path, m)
	add(t, w, 4)
	if err := w.Void(below(9)); err != nil {
		t.Fatal(err)
	}
	equal("1 3 4")
	w.Close()
}

// TestVoidSteps: what a sink rejected stays: one with transactions skips it when it comes again.
func TestVoidSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	l := letter(1)
	l.Step, l.Sink = "", "mysql"
	if err := w.Append(l); err != nil {
		t.Fatal(err)
	}
	add(t, w, 2)
	w.Close()
	w = open(t, path, m)
	if err := w.Void(below(9)); err != nil {
		t.Fatal(err)
	}
	if l := held(t, path); len(l) != 1 || l[0] != 1 {
		t.Errorf("left: %v", l)
	}
}

// TestVoidFails: a letter stays known until it is void for sure.
func TestVoidFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	add(t, w, 2)
	w.Close()
	w = open(t, path, m)
	broken := errors.New("disk")
	w.sync = func(*os.File) error { return broken }
	if err := w.Void(below(9)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	w.sync = (*os.File).Sync
	if err := w.Void(below(9)); err != nil {
		t.Error(err)
	}
	if l := held(t, path); len(l) != 0 {
		t.Errorf("left: %v", l)
	}
}
