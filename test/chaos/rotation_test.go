package chaos

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
)

const rotationPipeline = `
source:
  file: {paths: ['%[1]s/in/*.log*'], start: beginning, scan: 50ms, poll: 20ms, rotate_wait: 300ms}
memory: 1MiB
steps:
  - regex: '^(?<line>\d+ .*)$'
  - keep: [line]
sinks:
  - file: {path: '%[1]s/out.json'}
    batch: {size: 97, interval: 20ms}
checkpoint: {interval: 40ms}
`

// rotator writes lines to a file and rotates it, as logrotate and loggers do.
type rotator struct {
	t    *testing.T
	r    *rand.Rand
	dir  string
	name string
	f    *os.File
	n    int // rotations
	mu   *sync.Mutex
	want map[string]int
	how  map[string]int
}

func (w *rotator) check(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

func (w *rotator) path() string         { return filepath.Join(w.dir, w.name+".log") }
func (w *rotator) rotated(n int) string { return fmt.Sprintf("%s.%d", w.path(), n) }
func (w *rotator) open() {
	f, err := os.OpenFile(w.path(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	w.check(err)
	w.f = f
}
func (w *rotator) count(how string) { w.mu.Lock(); w.how[how]++; w.mu.Unlock() }

// rotate sets what was written aside. Nothing is written meanwhile, so no line is lost by the writer itself.
func (w *rotator) rotate() {
	w.n++
	switch w.r.IntN(3) {
	case 0: // a new file at once
		w.count("rename")
		w.check(w.f.Close())
		w.check(os.Rename(w.path(), w.rotated(w.n)))
		w.open()
	case 1: // the old one is still written to for a while
		w.count("rename, old still written")
		old := w.f
		w.check(os.Rename(w.path(), w.rotated(w.n)))
		w.line(old)
		w.open()
		w.line(old)
		w.check(old.Close())
	default:
		w.count("copytruncate")
		b, err := os.ReadFile(w.path())
		w.check(err)
		w.check(os.WriteFile(w.rotated(w.n), b, 0o644))
		w.check(os.Truncate(w.path(), 0))
	}
	// What was set aside before the last time is packed, and in the end removed.
	if k := w.n - 2; k > 0 && w.r.IntN(2) == 0 {
		w.count("gzip")
		b, err := os.ReadFile(w.rotated(k))
		w.check(err)
		var z bytes.Buffer
		g := gzip.NewWriter(&z)
		_, err = g.Write(b)
		w.check(err)
		w.check(g.Close())
		w.check(os.WriteFile(w.rotated(k)+".gz.tmp-", nil, 0o644)) // as gzip: first under the final name, growing
		w.check(os.Remove(w.rotated(k) + ".gz.tmp-"))
		w.check(os.WriteFile(w.rotated(k)+".gz", z.Bytes(), 0o644))
		w.check(os.Remove(w.rotated(k)))
	}
}

func (w *rotator) line(f *os.File) {
	w.mu.Lock()
	line := fmt.Sprintf("%d %s %s", len(w.want), w.name, strings.Repeat("x", w.r.IntN(60)))
	w.want[line]++
	w.mu.Unlock()
	text := line + "\n"
	if cut := w.r.IntN(20 * len(text)); cut < len(text) {
		_, err := f.WriteString(text[:cut])
		w.check(err)
		time.Sleep(time.Duration(w.r.IntN(3)) * time.Millisecond)
		text = text[cut:]
	}
	_, err := f.WriteString(text)
	w.check(err)
}

func (w *rotator) run(stop <-chan struct{}) {
	w.open()
	for {
		for range 50 + w.r.IntN(400) {
			w.line(w.f)
			if w.r.IntN(20) == 0 {
				time.Sleep(time.Duration(w.r.IntN(40)) * time.Millisecond)
			}
		}
		w.rotate()
		select {
		case <-stop:
			w.check(w.f.Close())
			return
		default:
		}
	}
}

// TestRotationCrash: SIGKILL at any moment while files are appended, renamed, copied and truncated, packed: every line is there once.
func TestRotationCrash(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	r := rand.New(rand.NewPCG(s, 11))
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.Mkdir(in, 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "rotation.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, rotationPipeline, dir), 0o644); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	want, how := map[string]int{}, map[string]int{}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for k := range 2 {
		w := &rotator{t: t, r: rand.New(rand.NewPCG(s, uint64(k)+12)), dir: in, name: fmt.Sprint("w", k), mu: &mu, want: want, how: how}
		writers.Go(func() { w.run(stop) })
	}
	start := func(args ...string) (*exec.Cmd, *strings.Builder) {
		var out strings.Builder
		cmd := exec.Command(binary.Path(t), append([]string{"run", "--state-dir", filepath.Join(dir, "state")}, append(args, conf)...)...)
		cmd.Dir, cmd.Stderr = dir, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out
	}
	for i := range *kills {
		cmd, out := start()
		time.Sleep(time.Duration(5+r.IntN(250)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if cmd.ProcessState.Exited() {
			t.Fatalf("kill %d: it ended by itself\n%s", i, out)
		}
	}
	close(stop)
	writers.Wait()
	cmd, out := start("--once")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("last run: %v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for row := range strings.Lines(string(b)) {
		got[strings.TrimSuffix(strings.TrimPrefix(row, `{"line":"`), "\"}\n")]++
	}
	compare(t, "file", want, got)
	if _, err := os.Stat(filepath.Join(dir, "rotation.dead.ndjson")); err == nil {
		t.Errorf("there are dead letters: %v", deadRows(t, filepath.Join(dir, "rotation.dead.ndjson")))
	}
	t.Logf("%d lines, %d kills, %v", len(want), *kills, how)
	if strings.Contains(out.String(), "lost") {
		t.Errorf("%s", out)
	}
}
