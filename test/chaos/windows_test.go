package chaos

import (
	"encoding/json"
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

const windowPipeline = `
source:
  file: {paths: ['%[1]s/in/*.log'], start: beginning, scan: 50ms}
  codec: json
workers: %[2]d
memory: 1MiB
steps:
  - filter: k <> 'none'
  - window:
      %[3]s
      time: ts
      by: [k]
      select: {n: COUNT(*), s: SUM(v), low: MIN(v)}
  - set: {double: n * 2}
sinks:
  - file: {path: '%[1]s/out.json'}
    batch: {size: 97, interval: 20ms}
  - sqlite: {path: '%[1]s/out.db', table: rows, create_table: true, %[4]s}
    batch: {size: 61, interval: 30ms}
checkpoint: {interval: 40ms}
drain: 20s
`

const (
	first  = "      time: ts\n      by: [k]\n      select: {n: COUNT(*), s: SUM(v), low: MIN(v)}\n"
	second = "      time: window_start\n      by: [k]\n      select: {n: SUM(n), s: SUM(s), low: MIN(low)}\n"
)

// event is one record as the writer made it.
type event struct {
	ms int64
	k  string
	v  int64
}

// group is what a window's result must be.
type group struct{ n, s, low int64 }

// windowsOf puts events into windows of that length, one every so often; gap is for sessions.
func windowsOf(events []event, size, every, gap int64) map[string]group {
	out := map[string]group{}
	put := func(from, to int64, e event) {
		id := fmt.Sprintf("%s %s %s", stampOf(from), stampOf(to), e.k)
		g, ok := out[id]
		if !ok || e.v < g.low {
			g.low = e.v
		}
		g.n++
		g.s += e.v
		out[id] = g
	}
	if gap == 0 {
		for _, e := range events {
			for from := e.ms / every * every; from > e.ms-size; from -= every {
				put(from, from+size, e)
			}
		}
		return out
	}
	byKey := map[string][]event{}
	for _, e := range events {
		byKey[e.k] = append(byKey[e.k], e)
	}
	for _, l := range byKey {
		sortEvents(l)
		for i := 0; i < len(l); {
			j := i + 1
			for j < len(l) && l[j].ms-l[j-1].ms <= gap {
				j++
			}
			for _, e := range l[i:j] {
				put(l[i].ms, l[j-1].ms+gap, e)
			}
			i = j
		}
	}
	return out
}

func sortEvents(l []event) {
	for i := 1; i < len(l); i++ { // nearly sorted
		for j := i; j > 0 && l[j].ms < l[j-1].ms; j-- {
			l[j], l[j-1] = l[j-1], l[j]
		}
	}
}

func stampOf(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z") }

// TestWindows kills the program while windows accumulate, fire and are delivered. The results are those of a run that
// nothing disturbed, in a file and in a table, for every kind of emission.
func TestWindows(t *testing.T) {
	bin := binary.Path(t)
	for _, c := range []struct {
		name, window, mode string
		size, every, gap   int64
	}{
		{"final", "tumble: 2s\n      delay: 1s", "mode: insert", 2000, 2000, 0},
		{"hop", "hop: {size: 4s, every: 1s}\n      delay: 1s", "mode: insert", 4000, 1000, 0},
		{"session", "session: 40ms\n      delay: 1s", "mode: insert", 0, 0, 40},
		{"delta", "tumble: 2s\n      delay: 1s\n      emit: delta", "mode: insert", 2000, 2000, 0},
		{"cascade", "tumble: 1s\n      delay: 1s\n" + first + "  - window:\n      tumble: 4s", "mode: insert", 4000, 4000, 0},
		{"reject", "tumble: 2s\n      delay: 1s", "mode: insert", 2000, 2000, 0},
		{"update", "tumble: 2s\n      delay: 1s\n      emit: update\n      early: 100ms", "mode: upsert, key: [window_start, window_end, k]", 2000, 2000, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
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
			conf := filepath.Join(dir, "win.yaml")
			yaml := fmt.Sprintf(windowPipeline, dir, 1+r.IntN(3), c.window, c.mode)
			if c.name == "cascade" {
				at := strings.LastIndex(yaml, first)
				yaml = yaml[:at] + second + yaml[at+len(first):]
			}
			if err := os.WriteFile(conf, []byte(yaml), 0o644); err != nil {
				t.Fatal(err)
			}
			if c.name == "reject" { // the table refuses some results
				db, err := sqlite3.Open(filepath.Join(dir, "out.db"))
				if err == nil {
					err = db.Exec(`CREATE TABLE rows (window_start TEXT, window_end TEXT, k TEXT, n INTEGER CHECK (n % 5 <> 0), s INTEGER, low INTEGER, double INTEGER)`)
				}
				if err != nil {
					t.Fatal(err)
				}
				db.Close()
			}
			var mu sync.Mutex
			var events []event
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for f := range 3 {
				file, err := os.Create(filepath.Join(dir, "in", fmt.Sprintf("%d.log", f)))
				if err != nil {
					t.Fatal(err)
				}
				rf := rand.New(rand.NewPCG(s, uint64(f)+2))
				writers.Go(func() {
					defer file.Close()
					now := time.Date(2024, 1, 1, 10, 0, 0, 0, time.UTC).UnixMilli()
					for {
						now += int64(rf.IntN(20))
						e := event{now - int64(rf.IntN(2))*int64(rf.IntN(900)), string(rune('a' + rf.IntN(5))), int64(rf.IntN(1000) - 300)}
						if rf.IntN(10) == 0 {
							e.k = "none"
						}
						if _, err := fmt.Fprintf(file, `{"ts":"%s","k":"%s","v":%d}`+"\n", stampOf(e.ms), e.k, e.v); err != nil {
							t.Error(err)
							return
						}
						if e.k != "none" {
							mu.Lock()
							events = append(events, e)
							mu.Unlock()
						}
						if rf.IntN(20) == 0 {
							time.Sleep(time.Duration(rf.IntN(4)) * time.Millisecond)
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
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
			for i := range *kills / 2 {
				cmd, out := start()
				time.Sleep(time.Duration(5+r.IntN(300)) * time.Millisecond)
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
			want := windowsOf(events, c.size, c.every, c.gap)
			t.Logf("%d records, %d windows and keys", len(events), len(want))

			file := map[string][]group{}
			for _, m := range objects(t, filepath.Join(dir, "out.json")) {
				id := fmt.Sprintf("%s %s %s", clock(m["window_start"].(string)), clock(m["window_end"].(string)), m["k"])
				g := group{int64(m["n"].(float64)), int64(m["s"].(float64)), int64(m["low"].(float64))}
				if m["double"].(float64) != 2*m["n"].(float64) {
					t.Errorf("%v", m)
				}
				file[id] = append(file[id], g)
			}
			compareWindows(t, "file", c.name, want, file)
			rejected := map[string]int{}
			if c.name == "reject" {
				for _, l := range objects(t, filepath.Join(dir, "win.dead.ndjson")) {
					m := l["record"].(map[string]any)
					rejected[fmt.Sprintf("%s %s %s", clock(m["window_start"].(string)), clock(m["window_end"].(string)), m["k"])]++
				}
				for id, g := range want {
					if g.n%5 == 0 {
						if rejected[id] != 1 {
							t.Errorf("%s was refused and is %d times in the dead letters", id, rejected[id])
						}
						delete(rejected, id)
						delete(want, id)
					}
				}
				if len(rejected) > 0 {
					t.Errorf("dead letters that should be in the table: %v", rejected)
				}
			}
			compareWindows(t, "sqlite", c.name, want, tableWindows(t, filepath.Join(dir, "out.db")))

			var reports []map[string]any
			b, err := os.ReadFile(report)
			if err == nil {
				err = json.Unmarshal(b, &reports)
			}
			if err != nil {
				t.Fatal(err)
			}
			rep := reports[0]
			num := func(k string) int { f, _ := rep[k].(float64); return int(f) }
			if c.name != "cascade" && num("absorbed") != len(events) || num("dead") != 0 || num("in_flight") != 0 || num("in")+num("made") != num("out")+num("filtered")+num("absorbed") {
				t.Errorf("ledger: %v, of %d records", rep, len(events))
			}
		})
	}
}

// compareWindows compares what came out with what must: one result a window; or parts that add up; or the last of several.
func compareWindows(t *testing.T, what, emit string, want map[string]group, got map[string][]group) {
	t.Helper()
	wrong := 0
	for id, w := range want {
		l := got[id]
		var g group
		switch emit {
		case "delta":
			for i, p := range l {
				if i == 0 || p.low < g.low {
					g.low = p.low
				}
				g.n, g.s = g.n+p.n, g.s+p.s
			}
		case "update":
			if len(l) > 0 {
				g = l[len(l)-1]
			}
		default:
			if len(l) == 1 {
				g = l[0]
			}
		}
		if g != w {
			if wrong++; wrong <= 3 {
				t.Errorf("%s: %s: got %v, want %v", what, id, l, w)
			}
		}
	}
	if wrong > 0 || len(got) != len(want) {
		t.Errorf("%s: %d of %d wrong; %d came", what, wrong, len(want), len(got))
	}
}

func tableWindows(t *testing.T, path string) map[string][]group {
	out := map[string][]group{}
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, _, err := c.Prepare(`SELECT window_start, window_end, k, n, s, low FROM rows ORDER BY rowid`)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for st.Step() {
		id := fmt.Sprintf("%s %s %s", clock(st.ColumnText(0)), clock(st.ColumnText(1)), st.ColumnText(2))
		out[id] = append(out[id], group{st.ColumnInt64(3), st.ColumnInt64(4), st.ColumnInt64(5)})
	}
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// clock is a time in one form.
func clock(s string) string {
	for _, layout := range []string{"2006-01-02 15:04:05.999999", time.RFC3339Nano} {
		if at, err := time.Parse(layout, s); err == nil {
			return stampOf(at.UnixMilli())
		}
	}
	return s
}
