// Package sinks tests the built program with real servers behind its sinks.
package sinks

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/proxy"
	"github.com/rsetl/rsetl/test/services"
)

var (
	kills   = flag.Int("kills", 8, "how many times to kill the program; a sixteenth of them with a restart of the servers where -restart is set")
	lines   = flag.Int("lines", 8_000, "lines to write at most between two kills")
	seed    = flag.Uint64("seed", 0, "0: a new one")
	restart = flag.Bool("restart", false, "restart the servers in between (those of test/services/services)")
	full    = flag.Bool("full", false, "a disk of its own for the state, which is full now and then (root only: it mounts a tmpfs)")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	binary.Cleanup()
	os.Exit(code)
}

const chaosPipeline = `
source:
  file: {paths: ['%[1]s/in/*.log*'], start: beginning, scan: 50ms}
workers: %[2]d
memory: 2MiB
steps:
  - grok: '%%{INT:n:int} %%{WORD:level} %%{WORD:code} %%{GREEDYDATA:rest}'
  - filter: level <> 'debug'
sinks:
  - elasticsearch: {hosts: ['%[3]s'], index: %[4]s, timeout: 3s, gzip: %[7]v}
    batch: {size: %[6]d, interval: 30ms, in_flight: 2}
  - mysql: {dsn: '%[5]s', table: kept, columns: {n: n, level: level, rest: rest}}
    batch: {size: %[6]d, interval: 30ms}
checkpoint: {interval: 100ms}
dead_letter: {file: {path: '%[1]s/chaos.dead.ndjson'}}
drain: %[8]s
`

// expected is what must become of each number.
type expected struct {
	mu                         sync.Mutex
	good, poison, long, broken map[int]bool
	filtered, written          int
}

// write appends lines to a file that is rotated now and then, until stop.
func (w *expected) write(t *testing.T, path string, r *rand.Rand, base int, budget *atomic.Int64, stop <-chan struct{}) {
	var f *os.File
	defer func() { f.Close() }()
	size, turn := 0, 0
	for n := base; ; n++ {
		if f == nil || size > 200_000 {
			if f != nil {
				f.Close()
				turn++
				if err := os.Rename(path, fmt.Sprintf("%s.%d", path, turn)); err != nil {
					t.Error(err)
					return
				}
			}
			var err error
			if f, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
				t.Error(err)
				return
			}
			size = 0
		}
		var line string
		w.mu.Lock()
		w.written++
		switch k := r.IntN(1000); {
		case k < 5:
			line = fmt.Sprintf("broken %d", n)
			w.broken[n] = true
		case k < 300:
			line = fmt.Sprintf("%d debug 1 %d", n, r.IntN(1000))
			w.filtered++
		case k < 303:
			line = fmt.Sprintf("%d warn x%d this code is no number", n, n)
			w.poison[n] = true
		case k < 306:
			line = fmt.Sprintf("%d warn 7 %s", n, strings.Repeat("too long ", 20))
			w.long[n] = true
		default:
			line = fmt.Sprintf("%d %s %d word '%x' \"é\"\t\\%d", n, []string{"info", "warn", "error"}[r.IntN(3)], r.IntN(100), r.Uint32(), n%7)
			w.good[n] = true
		}
		w.mu.Unlock()
		text := line + "\n"
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
			return
		}
		size += len(text)
		for budget.Add(-1) < 0 {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// trouble makes the network before a server bad until stop.
func trouble(p *proxy.Proxy, r *rand.Rand, stop <-chan struct{}) {
	var mu sync.Mutex
	p.Set(func(bool, []byte) (f proxy.Fault) {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(400) {
		case 0:
			f.Cut, f.Keep = true, r.IntN(2000)
		case 1:
			f.Last = true
		case 2, 3, 4:
			f.Delay = time.Duration(r.IntN(100)) * time.Millisecond
		case 5:
			f.Drip = 100 * time.Microsecond
		}
		return f
	})
	for {
		mu.Lock()
		wait, kind := time.Duration(100+r.IntN(700))*time.Millisecond, r.IntN(3)
		mu.Unlock()
		select {
		case <-stop:
			p.Set(nil)
			p.Down(false)
			return
		case <-time.After(wait):
		}
		switch kind {
		case 0:
			p.Reset()
		case 1:
			p.Down(true)
			time.Sleep(wait / 4)
			p.Down(false)
		}
	}
}

// TestChaos kills the program, by turns `run` and a daemon that reloads, with bad networks before both servers: each holds exactly the right rows
// once in the end, the dead letters exactly the poison once, and the ledgers add up.
func TestChaos(t *testing.T) {
	es, dsn := services.Elasticsearch(t), services.MySQL(t)
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
	index := services.Unique("chaos")
	request(t, "PUT", es+"/"+index, `{"settings": {"number_of_replicas": 0, "refresh_interval": "5s"}, "mappings": {"properties": {"n": {"type": "long"}, "code": {"type": "long"}, "rest": {"type": "keyword"}}}}`)
	t.Cleanup(func() { request(t, "DELETE", es+"/"+index, "") })
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE kept (n BIGINT NOT NULL, level VARCHAR(5), rest VARCHAR(60), KEY (n))`); err != nil {
		t.Fatal(err)
	}
	esURL, err := url.Parse(es)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	esProxy, sqlProxy := proxy.New(t, esURL.Host), proxy.New(t, cfg.Addr)
	cfg.Addr, cfg.ReadTimeout = sqlProxy.Addr, 5*time.Second
	conf := filepath.Join(dir, "conf.d", "chaos.yaml")
	if err := os.Mkdir(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	configure := func() {
		text := fmt.Appendf(nil, chaosPipeline, dir, 1+r.IntN(3), "http://"+esProxy.Addr, index, cfg.FormatDSN(), 50+r.IntN(1000), r.IntN(2) == 0, []string{"20s", "100ms"}[r.IntN(2)])
		if err := os.WriteFile(conf+".new", text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(conf+".new", conf); err != nil {
			t.Fatal(err)
		}
	}
	configure()
	if *full {
		state := filepath.Join(dir, "state")
		if err := os.Mkdir(state, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32m", "none", state).CombinedOutput(); err != nil {
			t.Fatalf("mount: %v\n%s", err, out)
		}
		t.Cleanup(func() { exec.Command("umount", state).Run() })
	}

	w := &expected{good: map[int]bool{}, poison: map[int]bool{}, long: map[int]bool{}, broken: map[int]bool{}}
	stop := make(chan struct{})
	var writers, troubles sync.WaitGroup
	var budget atomic.Int64
	for k := range 3 {
		rk := rand.New(rand.NewPCG(s, uint64(k)+2))
		writers.Go(func() {
			w.write(t, filepath.Join(dir, "in", fmt.Sprintf("%d.log", k)), rk, 1+k*100_000_000, &budget, stop)
		})
	}
	calm := make(chan struct{})
	for k, p := range []*proxy.Proxy{esProxy, sqlProxy} {
		rk := rand.New(rand.NewPCG(s, uint64(k)+20))
		troubles.Go(func() { trouble(p, rk, calm) })
	}
	start := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		out := &bytes.Buffer{}
		cmd := exec.Command(binary.Path(t), append(args, "--state-dir", filepath.Join(dir, "state"))...)
		cmd.Dir = dir
		cmd.Stderr = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out
	}
	for i := range *kills {
		budget.Store(int64(*lines))
		if i%4 == 3 {
			configure()
		}
		args := []string{"run", conf}
		reloads := 0
		if i%2 == 1 {
			args = []string{"daemon", "--conf-dir", filepath.Dir(conf), "--listen", "127.0.0.1:0"}
			reloads = r.IntN(4)
		}
		cmd, out := start(args...)
		for range reloads {
			time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
			configure()
		}
		time.Sleep(time.Duration(20+r.IntN(1500)) * time.Millisecond)
		if *restart && i%16 == 7 {
			cmd := exec.Command(filepath.Join(binary.Root(), "test", "services", "services"), "restart", "elasticsearch", "mysql")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			time.Sleep(time.Second)
		}
		filled := *full && i%3 == 1
		if filled {
			fill(t, filepath.Join(dir, "state", "junk"))
			time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond)
		}
		cmd.Process.Kill()
		err := cmd.Wait()
		if cmd.ProcessState.Exited() && !(filled && cmd.ProcessState.ExitCode() == 2) { // without a state there is no going on
			t.Fatalf("kill %d: it ended by itself: %v\n%s", i, err, out)
		}
		if filled {
			os.Remove(filepath.Join(dir, "state", "junk"))
		}
	}
	close(stop)
	writers.Wait()
	close(calm)
	troubles.Wait()
	report := filepath.Join(dir, "report.json")
	cmd, out := start("run", "--once", "--report", report, conf)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("last run: %v\n%s", err, out)
	}
	t.Logf("%d lines: %d good, %d poison, %d too long, %d broken, %d filtered; %d kills", w.written, len(w.good), len(w.poison), len(w.long), len(w.broken), w.filtered, *kills)

	compare(t, "elasticsearch", documents(t, es, index), w.good, w.long)
	compare(t, "mysql", rows(t, db), w.good, w.poison)
	letters := letters(t, dir)
	compare(t, "dead letters of elasticsearch", letters["elasticsearch"], w.poison)
	compare(t, "dead letters of mysql", letters["mysql"], w.long)
	compare(t, "dead letters of steps", letters[""], w.broken)
	ledger(t, report, w)
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	f, err := os.Create(path)
	if err != nil {
		return // it is full already
	}
	defer f.Close()
	junk := make([]byte, 64<<10)
	for {
		if _, err := f.Write(junk); err != nil {
			if len(junk) == 1 {
				return
			}
			junk = junk[:1]
		}
	}
}

// compare wants exactly those numbers, once each.
func compare(t *testing.T, what string, got map[int]int, want ...map[int]bool) {
	t.Helper()
	lost, twice, odd, total := 0, 0, 0, 0
	for _, m := range want {
		for n := range m {
			total++
			switch g := got[n]; {
			case g == 0:
				lost++
			case g > 1:
				twice++
			}
			delete(got, n)
		}
	}
	odd = len(got)
	if lost+twice+odd > 0 {
		t.Errorf("%s: %d lost, %d more than once, %d that should not be there, of %d", what, lost, twice, odd, total)
	}
}

func rows(t *testing.T, db *sql.DB) map[int]int {
	out := map[int]int{}
	rs, err := db.Query(`SELECT n FROM kept`)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Close()
	for rs.Next() {
		var n int
		if err := rs.Scan(&n); err != nil {
			t.Fatal(err)
		}
		out[n]++
	}
	if err := rs.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func documents(t *testing.T, es, index string) map[int]int {
	request(t, "POST", es+"/"+index+"/_refresh", "")
	out := map[int]int{}
	after, seen := "", map[string]bool{}
	for {
		news := len(seen)
		var res struct {
			Hits struct {
				Hits []struct {
					ID     string `json:"_id"`
					Sort   []json.Number
					Source struct{ N int } `json:"_source"`
				}
			}
		}
		p := request(t, "POST", es+"/"+index+"/_search", fmt.Sprintf(`{"size": 10000, "_source": ["n"], "sort": [{"n": "asc"}, {"_doc": "asc"}]%s}`, after))
		if err := json.Unmarshal(p, &res); err != nil {
			t.Fatal(err, string(p))
		}
		for _, h := range res.Hits.Hits {
			if seen[h.ID] { // a merge has moved the document on which the page before ended
				continue
			}
			seen[h.ID] = true
			out[h.Source.N]++
			after = fmt.Sprintf(`, "search_after": [%s, %s]`, h.Sort[0], h.Sort[1])
		}
		if len(seen) == news {
			return out
		}
	}
}

// letters are the numbers in the dead letters, by sink.
func letters(t *testing.T, dir string) map[string]map[int]int {
	out := map[string]map[int]int{"": {}, "mysql": {}, "elasticsearch": {}}
	paths, _ := filepath.Glob(filepath.Join(dir, "chaos.dead*"))
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			var l struct {
				Sink, Step, Raw, Reason string
				Record                  struct{ N int }
			}
			if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
				t.Fatalf("%s: %v: %s", path, err, sc.Bytes())
			}
			n := l.Record.N
			if l.Sink == "" {
				fmt.Sscanf(l.Raw, "broken %d", &n)
			} else if !strings.Contains(l.Reason, "too long") && !strings.Contains(l.Reason, "failed to parse field [code]") {
				t.Errorf("an odd reason: %s", sc.Bytes())
			}
			out[l.Sink][n]++
		}
	}
	return out
}

func ledger(t *testing.T, report string, w *expected) {
	var reports []map[string]any
	b, err := os.ReadFile(report)
	if err == nil {
		err = json.Unmarshal(b, &reports)
	}
	if err != nil {
		t.Fatal(err)
	}
	num := func(m map[string]any, k string) int { f, _ := m[k].(float64); return int(f) }
	rep := reports[0]
	if num(rep, "in") != w.written || num(rep, "filtered") != w.filtered || num(rep, "dead") != len(w.broken) || num(rep, "in") != num(rep, "out")+num(rep, "filtered")+num(rep, "dead") || num(rep, "in_flight") != 0 {
		t.Errorf("the ledger does not add up: %v; written %d, filtered %d, broken %d", rep, w.written, w.filtered, len(w.broken))
	}
	for _, sr := range rep["sinks"].([]any) {
		m := sr.(map[string]any)
		want := len(w.poison)
		if m["name"] == "mysql" {
			want = len(w.long)
		}
		if num(m, "received") != num(m, "delivered")+num(m, "rejected")+num(m, "skipped") || num(m, "held") != 0 || num(m, "received") != len(w.good)+len(w.poison)+len(w.long) || num(m, "rejected") > want {
			t.Errorf("the sink's ledger does not add up: %v", m)
		}
	}
}

func request(t *testing.T, method, url, body string) []byte {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	var res *http.Response
	if res, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	p, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %v %s", method, url, res.Status, err, p)
	}
	return p
}
