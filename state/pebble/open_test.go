package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
)

// wantError opens dir and wants an error of that kind which names the directory and holds the text.
func wantError(t *testing.T, dir string, o Options, kind error, text string) {
	t.Helper()
	s, err := Open(dir, o)
	if err == nil {
		s.Close()
		t.Fatal("it opens")
	}
	if !errors.Is(err, kind) {
		t.Errorf("%v is no %v", err, kind)
	}
	if !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v doesn't say %q", err, text)
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir() + "/state"
	s := open(t, dir, Options{})
	wantError(t, dir, Options{}, state.ErrInUse, "stop that process")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "RSETL_TEST_OPEN="+dir)
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "true") {
		t.Errorf("another process: %s, %v", out, err)
	}
	statetest.Commit(t, s, "p", &state.Commit{}) // the holder is unharmed
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if statetest.Load(t, open(t, dir, Options{}), "p").Fresh {
		t.Error("the commit is lost")
	}
}

func TestForeign(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"someone's files":  {"notes.txt": "x"},
		"newer format":     {"RSETL": "rsetl state 2\n", "store/CURRENT": ""},
		"newer by a digit": {"RSETL": "rsetl state 10\n"},
		"another marker":   {"RSETL": "hello"},
		"no marker":        {"store/MANIFEST-000001": "x"},
		"short and files":  {"RSETL": "rset", "notes.txt": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for f, text := range files {
				os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o750)
				if err := os.WriteFile(filepath.Join(dir, f), []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			wantError(t, dir, Options{}, state.ErrForeign, "")
			for f, text := range files {
				if got, err := os.ReadFile(filepath.Join(dir, f)); string(got) != text {
					t.Errorf("%s was changed: %q, %v", f, got, err)
				}
			}
			if files["RSETL"] == "" {
				if _, err := os.Stat(filepath.Join(dir, "RSETL")); err == nil {
					t.Error("the directory was claimed")
				}
			}
		})
	}
	t.Run("a newer Pebble", func(t *testing.T) {
		dir := filled(t)
		old := glob(t, dir, "marker.format-version.*")
		// The number in front says which marker is the newest.
		if err := os.WriteFile(filepath.Join(dir, "store", "marker.format-version.999999.099"), nil, 0o640); err != nil {
			t.Fatal(err)
		}
		wantError(t, dir, Options{}, state.ErrForeign, "newer rsetl")
		if got := glob(t, dir, "marker.format-version.*"); len(got) != len(old)+1 {
			t.Errorf("%v became %v", old, got)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := t.TempDir() + "/f"
		os.WriteFile(path, nil, 0o640)
		wantError(t, path, Options{}, syscall.ENOTDIR, "")
	})
}

func TestClaimsEmptyDirectories(t *testing.T) {
	for _, names := range [][]string{{}, {"lost+found/"}, {"RSETL.new"}, {"RSETL"}, {"a/b/c/"}} {
		dir := t.TempDir()
		for _, n := range names {
			if n == "a/b/c/" {
				dir = filepath.Join(dir, n)
			} else if strings.HasSuffix(n, "/") {
				os.Mkdir(filepath.Join(dir, n), 0o750)
			} else {
				os.WriteFile(filepath.Join(dir, n), nil, 0o640)
			}
		}
		open(t, dir, Options{}).Close()
		open(t, dir, Options{})
		if got, _ := os.ReadFile(filepath.Join(dir, "RSETL")); string(got) != version {
			t.Errorf("%v: the marker says %q", names, got)
		}
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	l, err := filepath.Glob(filepath.Join(dir, "store", pattern))
	if err != nil || len(l) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return l
}

// filled makes a state directory with 20 commits in tables and 40 in the log.
func filled(t *testing.T) string {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for i := range int64(60) {
		c := &state.Commit{Counters: map[string]int64{"in": i}, State: []state.KV{{Stage: "w", Key: fmt.Append(nil, i), Value: bytes.Repeat([]byte{byte(i), byte(i * 7)}, 2000)}}}
		statetest.Commit(t, s, "p", c)
		if i == 20 {
			if err := s.use(ctx, func(db *pebble.DB) error { return db.Flush() }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newest(t *testing.T, dir, pattern string) string {
	l := glob(t, dir, pattern)
	return l[len(l)-1]
}

func TestCorrupt(t *testing.T) {
	change := func(pattern string, f func(p []byte) []byte) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			path := newest(t, dir, pattern)
			p, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(p), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := func(p []byte) []byte { return p[:len(p)/2] }
	garble := func(p []byte) []byte {
		for i := len(p) / 3; i < len(p)/3+20; i++ {
			p[i] ^= 0x5a
		}
		return p
	}
	nothing := func([]byte) []byte { return nil }
	noise := func(p []byte) []byte { return bytes.Repeat([]byte("noise "), 100) }
	for name, f := range map[string]func(t *testing.T, dir string){
		"manifest cut":     change("MANIFEST-*", func(p []byte) []byte { return p[:20] }),
		"manifest empty":   change("MANIFEST-*", nothing),
		"manifest garbled": change("MANIFEST-*", garble),
		"table cut":        change("*.sst", half),
		"table empty":      change("*.sst", nothing),
		"table garbled":    change("*.sst", garble),
		"log garbled":      change("*.log", garble),
		"options noise":    change("OPTIONS-*", noise),
		"options comparer": change("OPTIONS-*", func(p []byte) []byte {
			return bytes.Replace(p, []byte("comparer=leveldb"), []byte("comparer=xeveldb"), 1)
		}),
		"manifest is gone":    func(t *testing.T, dir string) { os.Remove(newest(t, dir, "MANIFEST-*")) },
		"a table is gone":     func(t *testing.T, dir string) { os.Remove(newest(t, dir, "*.sst")) },
		"our marker is cut":   func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "RSETL"), []byte("rsetl sta"), 0o640) },
		"our marker is empty": func(t *testing.T, dir string) { os.WriteFile(filepath.Join(dir, "RSETL"), nil, 0o640) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			f(t, dir)
			s, err := Open(dir, Options{})
			if err == nil {
				defer s.Close()
				if _, err = s.Load(ctx, "p"); err == nil {
					err = s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error { return nil })
				}
				if err == nil {
					t.Fatalf("nobody notices; in is %d", statetest.Load(t, s, "p").Counters["in"])
				}
			}
			if !errors.Is(err, state.ErrCorrupt) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
			t.Log(err)
		})
	}
}

// TestTornLog cuts the log at each place of its last write, and puts noise or zeros behind: what a crash may leave.
func TestTornLog(t *testing.T) {
	src := filled(t)
	log := newest(t, src, "*.log")
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(whole, "\x00"))
	for cut := 0; cut < 4300; cut += 197 {
		for what, tail := range map[string][]byte{"": nil, "zeros": make([]byte, 5000)} {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
				t.Fatal(err)
			}
			p := append(bytes.Clone(whole[:end-cut]), tail...)
			if err := os.WriteFile(filepath.Join(dir, "store", filepath.Base(log)), p, 0o640); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatalf("%d bytes less %s: %v", cut, what, err)
			}
			n := statetest.Load(t, s, "p").Counters["in"]
			if n < 57 || n > 59 || cut == 0 && n != 59 {
				t.Errorf("%d bytes less %s: in is %d", cut, what, n)
			}
			entries := int64(0)
			s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error { entries++; return nil })
			if entries != n+1 {
				t.Errorf("%d bytes less %s: in is %d with %d entries", cut, what, n, entries)
			}
			s.Close()
		}
	}
}

func TestReadOnly(t *testing.T) {
	for _, cause := range []error{syscall.EROFS, syscall.EACCES} {
		mem := vfs.NewMem()
		fs := inject(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				return &os.PathError{Op: "open", Path: op.Path, Err: cause}
			}
			return nil
		}))
		wantError(t, dir, Options{FS: fs}, cause, "make it writable")
		open(t, dir, Options{FS: mem}).Close()
		wantError(t, dir, Options{FS: fs}, cause, "make it writable")
	}
	if os.Getuid() == 0 {
		t.Log("as root, a directory's mode is not tested")
		return
	}
	dir := t.TempDir()
	os.Chmod(dir, 0o500)
	wantError(t, dir, Options{}, os.ErrPermission, "make it writable")
}

// TestDiskFull fills a real file system.
func TestDiskFull(t *testing.T) {
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=12m"); err != nil {
		t.Skip("no file system can be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	for _, reserve := range []uint64{1 << 20, 1} { // with the second, the database itself meets the full disk
		dir := filepath.Join(mount, fmt.Sprint("state", reserve))
		o := Options{Reserve: reserve, pauseMin: 1, pauseMax: 1}
		s := open(t, dir, o)
		last := int64(-1)
		var full error
		for i := int64(0); full == nil; i++ {
			v := make([]byte, 200<<10)
			for k := range v {
				v[k] = byte(uint64(i+1) * uint64(k) * 2654435761 >> 11) // doesn't compress
			}
			c := &state.Commit{Counters: map[string]int64{"in": i}, Parts: map[string][]byte{fmt.Sprint(i): v}}
			if full = s.Commit(ctx, "p", c); full == nil {
				last = i
			}
			if i > 1000 {
				t.Fatal("the disk doesn't get full")
			}
		}
		t.Logf("after %d commits: %v", last, full)
		if !errors.Is(full, syscall.ENOSPC) || errors.Is(full, state.ErrFailed) || !strings.Contains(full.Error(), dir) {
			t.Errorf("%v", full)
		}
		for range 5 {
			s.Commit(ctx, "p", &state.Commit{Parts: map[string][]byte{"x": make([]byte, 900<<10)}})
		}
		s.Close()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=40m"); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, o)
		snap := statetest.Load(t, s, "p")
		if n := snap.Counters["in"]; n != last && n != last+1 {
			t.Errorf("in is %d after %d commits", n, last)
		}
		for i := range last + 1 {
			if len(snap.Parts[fmt.Sprint(i)]) != 200<<10 {
				t.Errorf("part %d is lost", i)
			}
		}
		s.Close()
		os.RemoveAll(dir)
		if err := syscall.Mount("tmpfs", mount, "tmpfs", syscall.MS_REMOUNT, "size=12m"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskHeals is a disk that gets full under a running store and is emptied again.
func TestFullDiskHeals(t *testing.T) {
	var full atomic.Bool
	mem := vfs.NewMem()
	fs := inject(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if k := op.Kind; full.Load() && (k == errorfs.OpFileWrite || k == errorfs.OpCreate || k == errorfs.OpFileSync || k == errorfs.OpFileSyncData) {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := open(t, dir, small(fs))
	for i := range int64(30) {
		full.Store(i%3 == 2)
		c := &state.Commit{Counters: map[string]int64{"in": i}}
		err := s.Commit(ctx, "p", c)
		if full.Load() {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("commit %d: %v", i, err)
			}
			full.Store(false)
		}
		for deadline := time.Now().Add(30 * time.Second); err != nil; time.Sleep(time.Millisecond) { // the store opens anew meanwhile
			if err = s.Commit(ctx, "p", c); time.Now().After(deadline) {
				t.Fatalf("commit %d: %v", i, err)
			}
		}
		if n := statetest.Load(t, s, "p").Counters["in"]; n != i {
			t.Fatalf("in is %d, want %d", n, i)
		}
	}
}

func manySplits(n int) *state.Commit {
	c := &state.Commit{Positions: map[string]state.Advance{}}
	for i := range n {
		id := fmt.Sprintf("%032x", i)
		c.Splits = append(c.Splits, state.Split{ID: id, Path: fmt.Sprintf("/var/log/app/%d/access.log", i),
			Meta: map[string]string{"dev": "fd00", "inode": fmt.Sprint(i), "fingerprint": strings.Repeat("ab", 16)}})
		c.Positions[id] = state.Advance{To: record.Position{Offset: int64(i) * 1000}}
	}
	return c
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprint("splits=", n), func(b *testing.B) {
			dir := b.TempDir()
			s := open(b, dir, Options{})
			statetest.Commit(b, s, "p", manySplits(n))
			s.Close()
			b.ReportAllocs()
			for b.Loop() {
				s, err := Open(dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Load(context.Background(), "p"); err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprint("splits=", n), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			c := manySplits(n)
			statetest.Commit(b, s, "p", c)
			c.Splits = nil
			c.Counters = map[string]int64{"in": 1, "out": 2, "filtered": 3, "dead": 4, "sink.a.received": 5, "sink.a.delivered": 6}
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				for id := range c.Positions {
					c.Positions[id] = state.Advance{To: record.Position{Offset: i}}
				}
				statetest.Commit(b, s, "p", c)
			}
		})
	}
}
