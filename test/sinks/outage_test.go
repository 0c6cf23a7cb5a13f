package sinks

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

// nobody is an address that refuses connections.
func nobody(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func numbersFile(t *testing.T, dir string, n int) {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d %s\n", i, strings.Repeat("text ", 20))
	}
	if err := os.WriteFile(filepath.Join(dir, "in.log"), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDeadLetterAfter: with on_failure: dead_letter a database that is down doesn't keep the other sink from its rows.
func TestDeadLetterAfter(t *testing.T) {
	dsn := services.MySQL(t)
	dir := t.TempDir()
	numbersFile(t, dir, 5000)
	conf := filepath.Join(dir, "p.yaml")
	text := fmt.Sprintf(`
source: {file: {paths: ['%s/in.log'], start: beginning}}
steps: [grok: '%%{INT:n:int} %%{GREEDYDATA:rest}', remove: [message]]
sinks:
  - mysql: {dsn: '%s', table: kept, create_table: true}
  - mysql: {dsn: 'root@tcp(%s)/x', table: kept}
    name: down
    on_failure: {dead_letter: 300ms}
  - elasticsearch: {hosts: ['http://%s'], index: x}
    name: down too
    on_failure: {dead_letter: 300ms}
`, dir, dsn, nobody(t), nobody(t))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report.json")
	cmd := exec.Command(binary.Path(t), "run", "--once", "--report", report, "--state-dir", filepath.Join(dir, "state"), conf)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var rows, sum int
	if err := db.QueryRow(`SELECT COUNT(*), SUM(n) FROM kept`).Scan(&rows, &sum); err != nil || rows != 5000 || sum != 5000*4999/2 {
		t.Errorf("%d rows, sum %d, %v", rows, sum, err)
	}
	letters := map[string]map[int]int{"down": {}, "down too": {}}
	paths, _ := filepath.Glob(filepath.Join(dir, "p.dead*"))
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var l struct {
				Sink, Reason string
				Record       struct{ N int }
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			letters[l.Sink][l.Record.N]++
			if !strings.Contains(l.Reason, "given up") || !strings.Contains(l.Reason, "connection refused") {
				t.Error(l.Reason)
			}
		}
	}
	for sink, m := range letters {
		if len(m) != 5000 {
			t.Errorf("%s: %d letters", sink, len(m))
		}
		for n, times := range m {
			if times != 1 {
				t.Fatalf("%s: %d has %d letters", sink, n, times)
			}
		}
	}
}

// TestThrottled: a node that takes nothing slows the source; what rsetl holds in memory doesn't grow, and no try is lost.
func TestThrottled(t *testing.T) {
	es := services.Elasticsearch(t)
	index := services.Unique("slow")
	t.Cleanup(func() { request(t, "DELETE", es+"/"+index, "") })
	dir := t.TempDir()
	const n = 100_000
	numbersFile(t, dir, n)
	var refuse atomic.Bool
	var refused atomic.Int64
	refuse.Store(true)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_bulk" && refuse.Load() {
			io.Copy(io.Discard, r.Body)
			refused.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":{"type":"es_rejected_execution_exception","reason":"full"},"status":429}`)
			return
		}
		req, _ := http.NewRequest(r.Method, es+r.URL.RequestURI(), r.Body)
		req.Header = r.Header
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer res.Body.Close()
		w.WriteHeader(res.StatusCode)
		io.Copy(w, res.Body)
	}))
	defer node.Close()
	conf := filepath.Join(dir, "p.yaml")
	text := fmt.Sprintf(`
source: {file: {paths: ['%s/in.log'], start: beginning}}
memory: 4MiB
sinks:
  - elasticsearch: {hosts: ['%s'], index: %s}
    batch: {memory: 4MiB, bytes: 1MiB}
`, dir, node.URL, index)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary.Path(t), "run", "--once", "--state-dir", filepath.Join(dir, "state"), conf)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	most := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) || refused.Load() < 3; time.Sleep(50 * time.Millisecond) {
		if time.Since(end) > time.Minute {
			t.Fatal("nothing is sent")
		}
		most = max(most, resident(t, cmd.Process.Pid))
	}
	tries := refused.Load()
	refuse.Store(false)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if tries > 100 {
		t.Errorf("%d tries in 3s", tries)
	}
	if most > 120<<20 {
		t.Errorf("%d MiB resident", most>>20)
	}
	request(t, "POST", es+"/"+index+"/_refresh", "")
	var count struct{ Count int }
	if err := json.Unmarshal(request(t, "GET", es+"/"+index+"/_count", ""), &count); err != nil || count.Count != n {
		t.Errorf("%d documents, %v", count.Count, err)
	}
	t.Logf("%d tries, %d MiB resident at most", tries, most>>20)
}

// resident is a process' memory in bytes.
func resident(t *testing.T, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	f := strings.Fields(string(b))
	n, _ := strconv.Atoi(f[1])
	return n * os.Getpagesize()
}
