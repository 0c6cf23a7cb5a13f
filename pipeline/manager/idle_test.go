package manager

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestIdle: what fifty pipelines cost that have nothing to do.
func TestIdle(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const n, span = 50, 5 * time.Second
	p := newPlace(t)
	for i := range n {
		p.write(fmt.Sprintf("in/%d.log", i), "one\n")
		p.write(fmt.Sprintf("conf.d/p%d.yaml", i), fmt.Sprintf("source: {file: {paths: ['%s'], start: beginning}}\nsteps:\n  - grok: '%%{COMBINEDAPACHELOG}'\nsinks: [file: {path: '%s'}]\ncheckpoint: {interval: 1s}\n",
			p.path(fmt.Sprintf("in/%d.log", i)), p.path(fmt.Sprintf("out/%d.json", i))))
	}
	p.options = func(o *Options) { o.Rescan = 0 } // as the daemon does
	p.start()
	p.until("all are idle", func() bool {
		done := 0
		for _, s := range p.m.Status() {
			if s.LastCheckpoint != nil && s.State == Running && s.Dead == 1 {
				done++
			}
		}
		return done == n
	})
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := cpu()
	time.Sleep(span) // the measurement's span, not a wait for something
	used := cpu() - before
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%.2f%% of a core, %d MiB of heap, %d goroutines", 100*used.Seconds()/span.Seconds(), m.HeapAlloc>>20, runtime.NumGoroutine())
	if used > span/20 {
		t.Errorf("%d idle pipelines use %s in %s", n, used, span)
	}
	p.stop()
}
