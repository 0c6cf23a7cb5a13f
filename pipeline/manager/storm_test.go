package manager

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	stormReloads   = flag.Int("storm", 40, "how many reloads TestStorm makes")
	stormPipelines = flag.Int("pipelines", 5, "of how many pipelines")
	stormSeed      = flag.Uint64("seed", 0, "0: a new one")
)

// TestStorm reloads pipelines under load, with mistakes, failing starts, drains that are cut short, deletions and
// renames among them: every line is in its sink once, or in the dead letters, and the ledgers add up.
func TestStorm(t *testing.T) {
	seed := *stormSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	p := newPlace(t)
	handles := func() int {
		l, _ := os.ReadDir("/proc/self/fd")
		return len(l)
	}
	goroutines, fds := runtime.NumGoroutine(), handles()

	n := *stormPipelines
	name := make([]string, n) // of the file, now
	there := make([]bool, n)
	text := make([]string, n) // of the last good version
	good := func(i int) string {
		drain := "5s"
		if r.IntN(4) == 0 {
			drain = "1ms"
		}
		return fmt.Sprintf("source:\n  file: {paths: ['%s'], start: beginning, poll: 10ms}\nmemory: %dKiB\nworkers: %d\ndrain: %s\nsteps:\n"+
			"  - grok: '%%{INT:n:int} %%{WORD:level}'\n  - filter: level <> 'debug'\n  - keep: [n]\n"+
			"sinks:\n  - file: {path: '%s'}\n    batch: {size: %d, interval: %dms}\ncheckpoint: {interval: %dms}\n",
			p.path(fmt.Sprintf("in/%d.log", i)), 100+r.IntN(1000), 1+r.IntN(3), drain, p.path(fmt.Sprintf("out/%d.json", i)),
			1+r.IntN(200), 1+r.IntN(30), 5+r.IntN(60))
	}
	put := func(i int, s string) {
		tmp := "conf.d/." + name[i] + ".new"
		p.write(tmp, s)
		p.rename(tmp, "conf.d/"+name[i]+".yaml")
		there[i] = true
	}
	for i := range n {
		name[i] = fmt.Sprintf("p%d", i)
		text[i] = good(i)
		put(i, text[i])
	}
	p.start()

	written := make([]int, n)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range n {
		f, err := os.Create(p.path(fmt.Sprintf("in/%d.log", i)))
		if err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			defer f.Close()
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for k := 0; ; {
				var b strings.Builder
				for range 20 {
					switch k % 10 {
					case 3:
						fmt.Fprintf(&b, "%d debug\n", k)
					case 7:
						fmt.Fprintf(&b, "dead %d\n", k)
					default:
						fmt.Fprintf(&b, "%d info\n", k)
					}
					k++
				}
				if _, err := f.WriteString(b.String()); err != nil {
					t.Error(err)
					return
				}
				written[i] = k
				select {
				case <-tick.C:
				case <-stop:
					return
				}
			}
		})
	}
	kinds := map[string]int{}
	for range *stormReloads {
		i := r.IntN(n)
		kind := []string{"good", "good", "good", "broken", "broken", "start fails", "delete", "rename", "two", "cut"}[r.IntN(10)]
		if !there[i] {
			kind = "good"
		}
		kinds[kind]++
		switch kind {
		case "good":
			text[i] = good(i)
			put(i, text[i])
		case "broken":
			put(i, []string{"", "source: [", strings.Replace(text[i], "grok:", "grock:", 1), text[i] + "workers: 0\n", "a: &a [*a]"}[r.IntN(5)])
		case "start fails":
			put(i, strings.Replace(text[i], "sinks:\n", "sinks:\n  - gated: {into: storm, bad_start: true}\n", 1))
		case "delete":
			p.remove("conf.d/" + name[i] + ".yaml")
			there[i] = false
		case "rename":
			put(i, text[i])
			p.rescan()
			old := name[i]
			if name[i] = fmt.Sprintf("q%d", i); old == name[i] {
				name[i] = fmt.Sprintf("p%d", i)
			}
			p.rename("conf.d/"+old+".yaml", "conf.d/"+name[i]+".yaml")
			p.rescan() // a rename and a change at once are a new pipeline
		case "two":
			put(i, good(i))
			text[i] = good(i)
			put(i, text[i])
		case "cut": // half a file, as a writer that doesn't rename leaves it for a moment
			p.write("conf.d/"+name[i]+".yaml", text[i][:r.IntN(len(text[i]))])
			p.write("conf.d/"+name[i]+".yaml", text[i])
		}
		if r.IntN(3) == 0 {
			p.rescan()
		} else {
			// The next change comes at some moment of this one's reload.
			end := time.Now().Add(time.Duration(r.IntN(60)) * time.Millisecond)
			p.until("a moment later", func() bool { return time.Now().After(end) })
		}
	}
	close(stop)
	writers.Wait()
	for i := range n {
		text[i] = good(i)
		put(i, text[i])
	}
	p.rescan()
	for i := range n {
		full := "default/" + name[i]
		p.until(full+" has read everything", func() bool { s := p.status(full); return s.State == Running && s.In == int64(written[i]) })
		if err := p.m.Flush(t.Context(), full); err != nil {
			t.Fatal(err)
		}
		s := p.status(full)
		if s.In+s.Made != s.Out+s.Filtered+s.Absorbed+s.Dead+s.InFlight || s.InFlight != 0 || s.LostBytes != 0 {
			t.Errorf("%s: the ledger doesn't add up: %+v", full, s.Report)
		}
		w := int64(written[i] / 10)
		if s.Dead != w || s.Filtered != w || s.Out != 8*w {
			t.Errorf("%s: %d lines, %+v", full, written[i], s.Report)
		}
		for _, k := range s.Sinks {
			if k.Name == "file" && (k.Received != 8*w || k.Delivered != 8*w || k.Held != 0) {
				t.Errorf("%s: %+v", full, k)
			}
		}
		count := func(path string, key func(map[string]any) string) map[string]int {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			got := map[string]int{}
			for line := range strings.Lines(string(b)) {
				var m map[string]any
				if err := json.Unmarshal([]byte(line), &m); err != nil {
					t.Fatalf("%s: %v: %q", path, err, line)
				}
				got[key(m)]++
			}
			return got
		}
		rows := count(p.path(fmt.Sprintf("out/%d.json", i)), func(m map[string]any) string { return fmt.Sprint(int(m["n"].(float64))) })
		dead := map[string]int{}
		for _, prefix := range []string{"p", "q"} { // where both names have been, a letter is in either
			path := p.path(fmt.Sprintf("state/dead/default/%s%d.ndjson", prefix, i))
			if _, err := os.Stat(path); err != nil {
				continue
			}
			for k, c := range count(path, func(m map[string]any) string { return m["raw"].(string) }) {
				dead[k] += c
			}
		}
		for k := range written[i] {
			in, key := rows, fmt.Sprint(k)
			want := 1
			switch k % 10 {
			case 3:
				want = 0
			case 7:
				in, key = dead, fmt.Sprintf("dead %d", k)
			}
			if in[key] != want {
				t.Fatalf("%s: line %d of %d is there %d times, want %d", full, k, written[i], in[key], want)
			}
		}
		if len(rows) != int(8*w) || len(dead) != int(w) {
			t.Errorf("%s: %d rows, %d letters of %d lines", full, len(rows), len(dead), written[i])
		}
	}
	t.Logf("%v, %v, %d lines of each", kinds, p.m.Reloads(), written)
	p.stop()
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines || handles() > fds; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines and %d handles, were %d and %d\n%s", runtime.NumGoroutine(), handles(), goroutines, fds, buf[:runtime.Stack(buf, true)])
		}
	}
}
