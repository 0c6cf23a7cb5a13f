package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var split = &record.Split{ID: "f1", Path: "/var/log/a"}

func letter(off int64) *Letter {
	return &Letter{Time: time.Date(2026, 2, 24, 23, 13, 42, 1e6, time.UTC), Pipeline: "default/p", Step: "grok", Reason: `no "match"`,
		Split: split, Pos: record.Position{Offset: off}, Record: []byte(`{"message":"x"}`), Raw: []byte("x")}
}

func open(t *testing.T, path string, m Mark) *Writer {
	t.Helper()
	w, err := Open(path, m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func add(t *testing.T, w *Writer, offs ...int64) {
	t.Helper()
	for _, o := range offs {
		if err := w.Append(letter(o)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
}

func mustMark(t *testing.T, w *Writer) Mark {
	t.Helper()
	m, err := w.Mark()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// offsets reads the file's letters.
func offsets(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		var l struct{ Offset int64 }
		if err := json.Unmarshal([]byte(line), &l); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, fmt.Sprint(l.Offset))
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, path, offs string) {
	t.Helper()
	if got := offsets(t, path); got != offs {
		t.Errorf("the file holds %s, want %s", got, offs)
	}
}

func TestLetters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dead", "p.ndjson")
	w := open(t, path, nil)
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("the folder is there before the first letter")
	}
	if err := w.Sync(); err != nil {
		t.Error(err)
	}
	add(t, w, 5)
	l := letter(6)
	l.Step, l.Sink, l.Raw, l.Record = "", "es", []byte("\xff\x00"), []byte("{\n \"a\": 1}")
	l.Split = &record.Split{ID: "q", Epoch: 3}
	l.Pos.Index = 2
	if err := w.Append(l); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&Letter{Time: l.Time, Step: "source"}); err != nil {
		t.Fatal(err)
	}
	w.Sync()
	text, _ := os.ReadFile(path)
	if want := `{"time":"2026-02-24T23:13:42.001Z","pipeline":"default/p","step":"grok","reason":"no \"match\"","split":"f1","path":"/var/log/a","offset":5,"index":0,"record":{"message":"x"},"raw":"x"}
{"time":"2026-02-24T23:13:42.001Z","pipeline":"default/p","sink":"es","reason":"no \"match\"","split":"q","epoch":3,"offset":6,"index":2,"record":{"a":1},"raw_base64":"/wA="}
{"time":"2026-02-24T23:13:42.001Z","pipeline":"","step":"source","reason":"","offset":0,"index":0}
`; string(text) != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if n := w.Count(); n != 3 {
		t.Error(n)
	}
	st, _ := os.Stat(path)
	dir, _ := os.Stat(filepath.Dir(path))
	if st.Mode().Perm()&^0o640 != 0 || dir.Mode().Perm()&^0o750 != 0 {
		t.Error(st.Mode(), dir.Mode())
	}
}

func TestNotTwiceAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	add(t, w, 1, 2)
	m := mustMark(t, w)
	add(t, w, 3, 4)
	w.Close()

	w = open(t, path, m)
	add(t, w, 3, 3, 5) // again and again
	other := letter(4)
	other.Step = "date"
	if err := w.Append(other); err != nil { // another step's
		t.Fatal(err)
	}
	epoch := letter(4)
	epoch.Split = &record.Split{ID: "f1", Epoch: 1}
	if err := w.Append(epoch); err != nil { // after an operator's reset
		t.Fatal(err)
	}
	add(t, w, 1) // before the mark: the writer doesn't know it
	want(t, path, "1 2 3 4 5 4 4 1")
	if w.Count() != 4 {
		t.Error(w.Count())
	}
	// 3 came before this mark and is forgotten after it; 4 comes behind it and may come again.
	mustMark(t, w)
	add(t, w, 4)
	w.Committed()
	add(t, w, 4)
	want(t, path, "1 2 3 4 5 4 4 1")
	if len(w.known) != 1 {
		t.Errorf("%d ids are kept", len(w.known))
	}
	mustMark(t, w)
	w.Committed()
	if len(w.known) != 0 {
		t.Errorf("%d ids are kept", len(w.known))
	}
}

// The run before may have ended between writing a letter and its sync.
func TestLettersOfTheRunBeforeAreSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	add(t, w, 1)
	w.Close()
	w = open(t, path, m)
	synced := 0
	sync := w.sync
	w.sync = func(f *os.File) error { synced++; return sync(f) }
	add(t, w, 1)
	if synced != 1 {
		t.Error("a letter that may never have been synced is taken for durable")
	}
	add(t, w, 1)
	if synced != 1 {
		t.Error("synced again without a reason")
	}
}

// A letter whose record hasn't come again by the second run's checkpoint is still known in the third.
func TestThreeRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	add(t, w, 1, 2, 3, 4)
	w.Close()
	w = open(t, path, m)
	add(t, w, 1, 2)
	m = mustMark(t, w)
	w.Committed()
	w.Close()
	w = open(t, path, m)
	add(t, w, 3, 4, 5)
	want(t, path, "1 2 3 4 5")
}

func TestMarkBeforeTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	add(t, w, 1)
	w.Close()
	w = open(t, path, m)
	add(t, w, 1, 2)
	want(t, path, "1 2")
	w.Close()
	// Without a mark the ids may be another state's: they are written.
	w = open(t, path, nil)
	add(t, w, 1)
	want(t, path, "1 2 1")
	w.Close()
	// The same with another file's mark.
	os.Rename(path, path+".1")
	w = open(t, path, nil)
	add(t, w, 1)
	m = mustMark(t, w)
	add(t, w, 2)
	w.Close()
	os.Rename(path+".1", path)
	w = open(t, path, m)
	add(t, w, 2)
	want(t, path, "1 2 1 2")
}

func TestUnfinishedLetter(t *testing.T) {
	whole := string(appendLetter(nil, letter(1)))
	for what, c := range map[string]struct{ text, want string }{
		"half":          {whole + whole[:len(whole)/2], whole},
		"no line feed":  {whole + whole[:len(whole)-1], whole},
		"one byte":      {whole + "{", whole},
		"only half":     {whole[:40], ""},
		"someone's":     {"my notes", "my notes\n"},
		"long":          {whole + `{"time":"` + strings.Repeat("x", 200_000), whole},
		"nothing wrong": {whole, whole},
		"empty":         {"", ""},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p.ndjson")
			os.WriteFile(path, []byte(c.text), 0o600)
			w := open(t, path, nil)
			if err := w.Append(letter(2)); err != nil {
				t.Fatal(err)
			}
			w.Sync()
			got, _ := os.ReadFile(path)
			if want := c.want + string(appendLetter(nil, letter(2))); string(got) != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// Each operation fails at each of its calls once; the caller tries again, and nothing is lost, double or half.
func TestFaults(t *testing.T) {
	full := errors.New("no space left on device")
	for _, op := range []string{"write", "short write", "sync", "truncate"} {
		for at := range 6 {
			t.Run(fmt.Sprintf("%s %d", op, at), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "p.ndjson")
				w := open(t, path, nil)
				n := 0
				fails := func(what string) bool {
					if what != op {
						return false
					}
					n++
					return n-1 == at
				}
				write := w.write
				w.write = func(f *os.File, p []byte, off int64) (int, error) {
					switch {
					case fails("write"):
						return 0, full
					case fails("short write") || op == "truncate" && n <= at:
						k, _ := write(f, p[:len(p)/2], off)
						return k, full
					}
					return write(f, p, off)
				}
				truncate := w.truncate
				w.truncate = func(f *os.File, k int64) error {
					if fails("truncate") {
						return full
					}
					return truncate(f, k)
				}
				sync := w.sync
				w.sync = func(f *os.File) error {
					if fails("sync") {
						return full
					}
					return sync(f)
				}
				var offs []string
				failed := 0
				for i := range 4 {
					l := letter(int64(i))
					l.Raw = bytes.Repeat([]byte{'x'}, 150_000)
					for w.Append(l) != nil {
						failed++
					}
					for w.Sync() != nil {
						failed++
					}
					offs = append(offs, fmt.Sprint(i))
				}
				if failed == 0 && at < 3 && op != "truncate" {
					t.Error("nothing failed")
				}
				want(t, path, strings.Join(offs, " "))
			})
		}
	}
}

func TestMovedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	add(t, w, 1)
	os.Rename(path, path+".1")
	add(t, w, 2) // still goes to the old file; then the writer looks
	add(t, w, 3)
	want(t, path+".1", "1 2")
	want(t, path, "3")
	os.Truncate(path, 0)
	add(t, w, 4)
	want(t, path, "4")
}

func TestManyIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	m := mustMark(t, w)
	for i := range int64(1000) {
		if err := w.Append(letter(i)); err != nil {
			t.Fatal(err)
		}
	}
	huge := letter(-1)
	huge.Raw = bytes.Repeat([]byte("x"), maxLine+1)
	w.Append(huge)
	w.Close()
	w, err := Open(path, m, Options{MaxIDs: 500})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if len(w.known) != 500 {
		t.Errorf("%d ids", len(w.known))
	}
	for i := range int64(1000) {
		w.Append(letter(i))
	}
	if w.Count() != 500 {
		t.Error(w.Count())
	}
}

func TestConcurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.ndjson")
	w := open(t, path, nil)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 200 {
				if err := w.Append(letter(int64(g*1000 + i))); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if err := w.Sync(); err != nil {
						t.Error(err)
					}
					w.Mark()
					w.Committed()
				}
			}
		})
	}
	all.Wait()
	w.Close()
	if n := len(strings.Fields(offsets(t, path))); n != 1600 {
		t.Error(n)
	}
	if err := w.Append(letter(1)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func BenchmarkAppend(b *testing.B) {
	w, err := Open(filepath.Join(b.TempDir(), "p.ndjson"), nil, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	l := letter(1)
	l.Raw = bytes.Repeat([]byte("x"), 200)
	b.SetBytes(int64(len(appendLetter(nil, l))))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Append(l); err != nil {
			b.Fatal(err)
		}
	}
}
