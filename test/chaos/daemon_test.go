package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
)

// rsetlDaemon is a running daemon on dir/conf.d and dir/state.
type rsetlDaemon struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	err  bytes.Buffer
	done chan error
}

func startDaemon(t *testing.T, dir string, env ...string) *rsetlDaemon {
	t.Helper()
	d := &rsetlDaemon{t: t, dir: dir, done: make(chan error, 1)}
	d.cmd = exec.Command(binary.Path(t), "daemon", "--conf-dir", filepath.Join(dir, "conf.d"), "--state-dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0")
	d.cmd.Env = append(os.Environ(), env...)
	d.cmd.Stderr = &d.err
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- d.cmd.Wait() }()
	return d
}

// kill ends it at once; it must not have ended before.
func (d *rsetlDaemon) kill() {
	d.t.Helper()
	d.cmd.Process.Kill()
	<-d.done
	if d.cmd.ProcessState.Exited() {
		d.t.Fatalf("it ended by itself: %v\n%s", d.cmd.ProcessState, &d.err)
	}
}

func (d *rsetlDaemon) terminate() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
	select {
	case err := <-d.done:
		if err != nil {
			d.t.Fatalf("%v\n%s", err, &d.err)
		}
	case <-time.After(60 * time.Second):
		d.cmd.Process.Kill()
		d.t.Fatal("it does not end")
	}
}

type daemonStatus struct {
	Pipeline, State, Version, Error               string
	In, Made, Out, Filtered, Absorbed, Dead, Held int64
	InFlight                                      int64 `json:"in_flight"`
}

func (d *rsetlDaemon) status() (out []daemonStatus) {
	b, err := exec.Command(binary.Path(d.t), "status", "--json", "--state-dir", filepath.Join(d.dir, "state")).Output()
	if err != nil || json.Unmarshal(b, &out) != nil {
		return nil
	}
	return out
}

func (d *rsetlDaemon) knows(name string) bool {
	for _, s := range d.status() {
		if s.Pipeline == name {
			return true
		}
	}
	return false
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not: %s", what)
		}
	}
}

// TestDaemonCrash kills the daemon in the middle of reloads, with broken versions and renamed files among them: every line is in
// the file or in the dead letters, once.
func TestDaemonCrash(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", s)
	r := rand.New(rand.NewPCG(s, 7))
	dir := t.TempDir()
	for _, d := range []string{"in", "conf.d"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const pipelines = 3
	name := [pipelines]string{}
	renamed := [pipelines]bool{} // and nothing tells that rsetl knows
	text := [pipelines]string{}
	good := func(i int) string {
		return fmt.Sprintf(`
source:
  file: {paths: ['%[1]s/in/%[2]d.log'], start: beginning, poll: 20ms}
memory: %[3]dKiB
steps:
  - grok: '%%{INT:n:int} %%{WORD:level}'
  - keep: [n]
sinks:
  - file: {path: '%[1]s/out%[2]d.json'}
    batch: {size: %[4]d, interval: 20ms}
checkpoint: {interval: %[5]dms}
`, dir, i, 100+r.IntN(900), 1+r.IntN(100), 10+r.IntN(60))
	}
	put := func(i int, text string) {
		path := filepath.Join(dir, "conf.d", name[i]+".yaml")
		if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	var written [pipelines]atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i := range pipelines {
		name[i] = fmt.Sprintf("p%d", i)
		text[i] = good(i)
		put(i, text[i])
		f, err := os.Create(filepath.Join(dir, "in", fmt.Sprintf("%d.log", i)))
		if err != nil {
			t.Fatal(err)
		}
		writers.Go(func() {
			defer f.Close()
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for k := 0; ; {
				var b strings.Builder
				for range 10 {
					if k%10 == 7 {
						fmt.Fprintf(&b, "dead %d\n", k)
					} else {
						fmt.Fprintf(&b, "%d info\n", k)
					}
					k++
				}
				if _, err := f.WriteString(b.String()); err != nil {
					t.Error(err)
				}
				written[i].Store(int64(k))
				select {
				case <-tick.C:
				case <-stop:
					return
				}
			}
		})
	}
	for range *kills / 2 {
		d := startDaemon(t, dir)
		// From the first scan on, things happen while it starts or reloads.
		if r.IntN(4) > 0 {
			until(t, "the API answers", func() bool { return len(d.status()) > 0 })
		}
		for range r.IntN(4) {
			i := r.IntN(pipelines)
			if renamed[i] { // a change and a rename at once are a new pipeline
				until(t, "the renamed pipeline is known", func() bool { return d.knows("default/" + name[i]) })
				renamed[i] = false
			}
			switch k := r.IntN(4); {
			case k == 0:
				put(i, "source: [")
			case k == 1:
				put(i, text[i])
				old := name[i]
				if name[i] = fmt.Sprintf("q%d", i); old == name[i] {
					name[i] = fmt.Sprintf("p%d", i)
				}
				// As an operator does: what the file was is known to rsetl.
				until(t, "the API answers", func() bool { return len(d.status()) > 0 })
				if out, err := exec.Command(binary.Path(t), "reload", old, "--state-dir", filepath.Join(dir, "state")).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				renamed[i] = true
				if err := os.Rename(filepath.Join(dir, "conf.d", old+".yaml"), filepath.Join(dir, "conf.d", name[i]+".yaml")); err != nil {
					t.Fatal(err)
				}
			default:
				text[i] = good(i)
				put(i, text[i])
			}
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // at some moment of the reload
		}
		d.kill()
	}
	close(stop)
	writers.Wait()
	for i := range pipelines {
		put(i, text[i])
	}
	d := startDaemon(t, dir)
	all := func() bool {
		for _, st := range d.status() {
			for i := range pipelines {
				if st.Pipeline == "default/"+name[i] && (st.In < written[i].Load() || st.State != "running" || st.InFlight != 0) {
					return false
				}
			}
		}
		return true
	}
	until(t, "the API answers", func() bool { return len(d.status()) == pipelines })
	until(t, "everything is read", all)
	for _, st := range d.status() {
		if st.In+st.Made != st.Out+st.Filtered+st.Absorbed+st.Dead+st.InFlight {
			t.Errorf("the ledger does not add up: %+v", st)
		}
	}
	d.terminate()
	for i := range pipelines {
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
		rows := count(filepath.Join(dir, fmt.Sprintf("out%d.json", i)), func(m map[string]any) string { return fmt.Sprint(int(m["n"].(float64))) })
		dead := map[string]int{}
		letters, _ := filepath.Glob(filepath.Join(dir, "state", "dead", "default", fmt.Sprintf("?%d.ndjson", i)))
		for _, path := range letters {
			for k, n := range count(path, func(m map[string]any) string { return m["raw"].(string) }) {
				dead[k] += n
			}
		}
		n := int(written[i].Load())
		for k := range n {
			in, key := rows, fmt.Sprint(k)
			if k%10 == 7 {
				in, key = dead, fmt.Sprintf("dead %d", k)
			}
			if in[key] != 1 {
				t.Fatalf("pipeline %d: line %d of %d is there %d times\n%s", i, k, n, in[key], &d.err)
			}
		}
		if len(rows)+len(dead) != n {
			t.Errorf("pipeline %d: %d rows and %d letters of %d lines", i, len(rows), len(dead), n)
		}
	}
}

// TestNotify: systemd hears of the start, that rsetl lives, and of the stop; SIGHUP doesn't end it.
func TestNotify(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	expect := func(want string) {
		t.Helper()
		l.SetReadDeadline(time.Now().Add(30 * time.Second))
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				t.Fatalf("no %s: %v", want, err)
			}
			if strings.Contains(string(buf[:n]), want) {
				return
			}
		}
	}
	d := startDaemon(t, dir, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=300000")
	expect("READY=1")
	expect("WATCHDOG=1")
	if err := d.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	expect("WATCHDOG=1")
	expect("WATCHDOG=1")
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect("STOPPING=1")
	if err := <-d.done; err != nil {
		t.Fatalf("%v\n%s", err, &d.err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "listen")); !os.IsNotExist(err) {
		t.Error("the address is still there", err)
	}
}
