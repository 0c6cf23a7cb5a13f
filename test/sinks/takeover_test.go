package sinks

import (
	"bufio"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

var keys = flag.Int("keys", 20_000, "how many keys a window has that another instance takes over")

const takeoverPipeline = `
source:
  file: {paths: ['%[1]s/in.log'], start: beginning, poll: 20ms}
  codec: json
steps:
  - window: {tumble: 1h, time: ts, by: [k], select: {n: COUNT(*), s: SUM(v)}}
sinks:
  - mysql: {dsn: '%[2]s', table: hours, create_table: true}
    batch: {size: 5000, interval: 20ms}
checkpoint: {interval: 50ms}
state: {remote: {dsn: '%[2]s', lease: 1s}}
`

// TestTakeover: an instance takes a window of many keys over and goes on at once: results come while most of what it took over is
// still in the database. The log says how long each part took.
func TestTakeover(t *testing.T) {
	bin, dsn, dir := binary.Path(t), services.MySQL(t), t.TempDir()
	conf, in := filepath.Join(dir, "hours.yaml"), filepath.Join(dir, "in.log")
	if err := os.WriteFile(conf, fmt.Appendf(nil, takeoverPipeline, dir, dsn), 0o644); err != nil {
		t.Fatal(err)
	}
	add := func(ts string, from, to int) {
		t.Helper()
		f, err := os.OpenFile(in, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		for i := from; i < to; i++ {
			fmt.Fprintf(w, `{"ts":"%s","k":"key-%d","v":%d}`+"\n", ts, i, i)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	count := func(query string) (n int) {
		db.QueryRow(query).Scan(&n) // 0 as long as there is no table
		return n
	}
	until := func(what string, ok func() bool) time.Duration {
		t.Helper()
		begin := time.Now()
		for !ok() {
			if time.Since(begin) > 5*time.Minute {
				t.Fatal("still not: ", what)
			}
			time.Sleep(5 * time.Millisecond)
		}
		return time.Since(begin)
	}
	start := func(name string) *exec.Cmd {
		cmd := exec.Command(bin, "run", "--state-dir", filepath.Join(dir, name), conf)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	add("2024-01-01T10:10:00Z", 0, *keys)
	a := start("a")
	t.Logf("%d keys are in the database after %s", *keys, until("keys", func() bool {
		return count("SELECT COUNT(*) FROM rsetl_windows") == *keys
	}))
	a.Process.Kill()
	a.Wait()
	add("2024-01-01T10:20:00Z", 0, 10)
	add("2024-01-01T11:00:00Z", 0, 1) // ends the first hour
	until("the end of the lease", func() bool {
		return count("SELECT COUNT(*) FROM rsetl_pipelines WHERE lease_until > UTC_TIMESTAMP(6)") == 0
	})
	b := start("b")
	defer func() { b.Process.Kill(); b.Wait() }()
	first := until("the first result", func() bool { return count("SELECT COUNT(*) FROM hours") > 0 })
	all := first + until("all results", func() bool { return count("SELECT COUNT(*) FROM hours") == *keys })
	t.Logf("the first result is there %s after the start of the other instance, the last after %s", first, all)
	if n := count("SELECT COUNT(*) FROM hours WHERE n = 2 AND s = 2 * SUBSTRING(k, 5)"); n != 10 {
		t.Errorf("%d of 10 keys have what came before and after", n)
	}
	if n := count("SELECT COUNT(*) FROM hours WHERE n = 1 AND s = SUBSTRING(k, 5)"); n != *keys-10 {
		t.Errorf("%d of %d keys have what came before", n, *keys-10)
	}
}
