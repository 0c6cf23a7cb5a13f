// Package chaos kills the built program at random moments and compares what came out with what went in.
package chaos

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/test/binary"
)

var (
	kills = flag.Int("kills", 24, "how many times to kill the program")
	seed  = flag.Uint64("seed", 0, "0: a new one")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	binary.Cleanup()
	os.Exit(code)
}

const crashPipeline = `
source:
  file: {paths: ['%[1]s/in/*.log'], start: beginning, max_line: 200, scan: 50ms}
workers: %[2]d
memory: 1MiB
steps:
  - grok: '%%{INT:n:int} %%{WORD:level} %%{GREEDYDATA:rest}'
  - filter: level <> 'debug'
sinks:
  - file: {path: '%[1]s/out.json', rotate: {size: 200KiB}}
    batch: {size: 97, interval: 20ms}
  - sqlite: {path: '%[1]s/out.db', table: rows, create_table: true}
    batch: {size: 61, interval: 30ms}
checkpoint: {interval: 40ms}
drain: 20s
`

// written is what the writer has put into the files, by what must become of it.
type written struct {
	mu         sync.Mutex
	good, dead map[string]int
	filtered   int
}

// write appends lines of every kind to the file, in pieces that cut lines anywhere, until stop.
func (w *written) write(t *testing.T, path string, r *rand.Rand, base int, stop <-chan struct{}) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	for n := base; ; n++ {
		var line string
		w.mu.Lock()
		switch k := r.IntN(100); {
		case k < 3:
			line = fmt.Sprintf("no number here %d", n)
			w.dead[line]++
		case k < 5:
			line = fmt.Sprintf("%d info %s", n, strings.Repeat("long ", 50))
			w.dead[line[:200]]++ // max_line keeps so much
		case k < 40:
			line = fmt.Sprintf("%d debug %d", n, r.IntN(1000))
			w.filtered++
		default:
			line = fmt.Sprintf("%d %s word %x \"é\"\t%d", n, []string{"info", "warn", "error"}[r.IntN(3)], r.Uint32(), n%7)
			w.good[line]++
		}
		w.mu.Unlock()
		text := line + "\n"
		if cut := r.IntN(20 * len(text)); cut < len(text) {
			f.WriteString(text[:cut])
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			text = text[cut:]
		}
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
			return
		}
		if r.IntN(50) == 0 {
			time.Sleep(time.Duration(r.IntN(4)) * time.Millisecond)
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// TestCrash is the promise of exactly-once in effect: SIGKILL at any moment, and every line is in the file, in the
// table or in the dead letters, once.
func TestCrash(t *testing.T) {
	bin := binary.Path(t)
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	r := rand.New(rand.NewPCG(s, 1))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "crash.yaml")
	if err := os.WriteFile(conf, fmt.Appendf(nil, crashPipeline, dir, 1+r.IntN(3)), 0o644); err != nil {
		t.Fatal(err)
	}
	w := &written{good: map[string]int{}, dead: map[string]int{}}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for k := range 3 {
		rk := rand.New(rand.NewPCG(s, uint64(k)+2))
		writers.Go(func() { w.write(t, filepath.Join(dir, "in", fmt.Sprintf("%d.log", k)), rk, k*100_000_000, stop) })
	}

	start := func(args ...string) (*exec.Cmd, *strings.Builder) {
		var out strings.Builder
		cmd := exec.Command(bin, append([]string{"run", "--state-dir", filepath.Join(dir, "state")}, append(args, conf)...)...)
		cmd.Dir = dir
		cmd.Stderr = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out
	}
	for i := range *kills {
		cmd, out := start()
		time.Sleep(time.Duration(5+r.IntN(250)) * time.Millisecond)
		cmd.Process.Kill()
		err := cmd.Wait()
		if cmd.ProcessState.Exited() {
			t.Fatalf("kill %d: it ended by itself: %v\n%s", i, err, out)
		}
	}
	close(stop)
	writers.Wait()
	report := filepath.Join(dir, "report.json")
	cmd, out := start("--once", "--report", report)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("last run: %v\n%s", err, out)
	}

	total := 0
	for _, m := range []map[string]int{w.good, w.dead} {
		for _, n := range m {
			total += n
		}
	}
	t.Logf("%d good, %d dead, %d filtered, %d kills", len(w.good), len(w.dead), w.filtered, *kills)
	compare(t, "file", w.good, fileRows(t, dir))
	compare(t, "sqlite", w.good, tableRows(t, filepath.Join(dir, "out.db")))
	compare(t, "dead letters", w.dead, deadRows(t, filepath.Join(dir, "crash.dead.ndjson")))

	var reports []map[string]any
	b, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(b, &reports)
	}
	if err != nil {
		t.Fatal(err)
	}
	rep := reports[0]
	num := func(m map[string]any, k string) int { f, _ := m[k].(float64); return int(f) }
	if got := num(rep, "in"); got != total+w.filtered {
		t.Errorf("ledger: in %d, written %d", got, total+w.filtered)
	}
	if got, want := num(rep, "out")+num(rep, "filtered")+num(rep, "dead"), num(rep, "in"); got != want || num(rep, "in_flight") != 0 {
		t.Errorf("ledger does not add up: %v", rep)
	}
	for _, sr := range rep["sinks"].([]any) {
		m := sr.(map[string]any)
		if num(m, "received") != num(m, "delivered")+num(m, "rejected")+num(m, "skipped")+num(m, "held") || num(m, "held") != 0 {
			t.Errorf("sink ledger does not add up: %v", m)
		}
	}
}

func compare(t *testing.T, what string, want, got map[string]int) {
	t.Helper()
	lost, twice, odd := 0, 0, 0
	show := func(n *int, format, line string) {
		if *n++; *n <= 3 {
			t.Errorf("%s: "+format+": %.80q", what, line)
		}
	}
	for line, n := range want {
		switch g := got[line]; {
		case g < n:
			show(&lost, "lost", line)
		case g > n:
			show(&twice, "twice", line)
		}
	}
	for line := range got {
		if want[line] == 0 {
			show(&odd, "never written", line)
		}
	}
	if lost+twice+odd > 0 {
		t.Errorf("%s: %d lost, %d twice, %d never written, of %d", what, lost, twice, odd, len(want))
	}
}

func fileRows(t *testing.T, dir string) map[string]int {
	out := map[string]int{}
	paths, _ := filepath.Glob(filepath.Join(dir, "out*.json"))
	if len(paths) < 2 {
		t.Errorf("the file was never rotated: %v", paths)
	}
	for _, path := range paths {
		for _, m := range objects(t, path) {
			out[m["message"].(string)]++
		}
	}
	return out
}

func deadRows(t *testing.T, path string) map[string]int {
	out := map[string]int{}
	for _, m := range objects(t, path) {
		if _, void := m["void"]; void {
			continue
		}
		out[m["raw"].(string)]++
	}
	return out
}

func objects(t *testing.T, path string) (out []map[string]any) {
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var m map[string]any
		if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
			t.Errorf("%s: %v: %.100q", path, err, sc.Text())
			continue
		}
		out = append(out, m)
	}
	return out
}

func tableRows(t *testing.T, path string) map[string]int {
	out := map[string]int{}
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, _, err := c.Prepare(`SELECT message FROM rows`)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for st.Step() {
		out[st.ColumnText(0)]++
	}
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
