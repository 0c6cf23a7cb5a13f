package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state/pebble"
)

// TestControl: a flush waits for what was read, a pause holds the source back, and both work while the sink is down.
func TestControl(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.log")
	if err := os.WriteFile(in, []byte("one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := t.Name() + dir
	text := fmt.Sprintf("source: {file: {paths: ['%s'], start: beginning, poll: 10ms}}\nsinks:\n  - collect: {into: '%s'}\n    batch: {interval: 1h}\ncheckpoint: {interval: 1h}\ndrain: 100ms\n", in, out)
	f, err := pipeline.Load("c.yaml", []byte(text), pipeline.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pipeline.Compile(f, pipeline.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebble.Open(filepath.Join(dir, "state"), pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := pipeline.NewRunner(t.Context(), plan, pipeline.RunOptions{Store: store, Letters: filepath.Join(dir, "dead.ndjson")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("still not: %s", what)
			}
		}
	}
	add := func(line string) {
		w, err := os.OpenFile(in, os.O_APPEND|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = w.WriteString(line)
			w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	until("read", func() bool { return r.Report().In == 1 })
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got := rowsOf(out).all(); len(got) != 1 || r.LastCheckpoint().IsZero() {
		t.Fatal(got)
	}
	if p := r.Positions(); len(p) != 1 || p[0].Offset != 4 || p[0].Lag == nil || *p[0].Lag != 0 {
		t.Errorf("%+v", p)
	}

	r.Pause()
	add("two\n")
	until("the lag shows", func() bool { n, ok := r.Lag(); return ok && n == 4 })
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if n := r.Report().In; n != 1 {
		t.Errorf("read %d while paused", n)
	}
	r.Resume()
	until("read", func() bool { return r.Report().In == 2 })

	o := rowsOf(out)
	o.mu.Lock()
	o.fail = errors.New("down")
	o.mu.Unlock()
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	if err := r.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flushed into a sink that is down: %v", err)
	}
	stop()
	waiting := make(chan error, 1)
	go func() { waiting <- r.Flush(context.Background()) }()
	cancel()
	if err := <-done; !errors.Is(err, pipeline.ErrDrain) {
		t.Error(err)
	}
	if err := <-waiting; err == nil {
		t.Error("flushed though the drain was given up")
	}
}

// TestVersion: what counts as a change of a file.
func TestVersion(t *testing.T) {
	version := func(text string) string {
		f, _ := pipeline.Load("v.yaml", []byte(text), pipeline.LoadOptions{})
		return f.Version()
	}
	base := "source: {stdin: {}}\nsinks:\n  - stdout: {}\nsteps:\n  - filter: a = 'x'\n"
	for _, same := range []string{
		"# c\n" + base + "\n\n# d\n",
		"source:\n  stdin: {}\nsinks: [stdout: {}]\nsteps:\n  - filter: \"a = 'x'\" # e\n",
	} {
		if version(same) != version(base) {
			t.Errorf("differs: %s", same)
		}
	}
	for _, other := range []string{
		"source: {stdin: {}}\nsinks:\n  - stdout: {}\nsteps:\n  - filter: a = 'y'\n",
		base + "workers: 1\n",
		"source: {stdin: {}}\nsteps:\n  - filter: a = 'x'\nsinks:\n  - stdout: {}\n",
		"source: {stdin: {}}\nsinks:\n  - stdout: {}\nsteps:\n  - filter: a = 'x'\n  - filter: a = 'x'\n",
	} {
		if version(other) == version(base) {
			t.Errorf("the same: %s", other)
		}
	}
	if version("workers: 1\n") == version("workers: '1'\n") || version("a: [") != "" {
		t.Error("types")
	}
	if version("a: &a [1]\nb: *a") == version("a: &a [2]\nb: *a") || version("a: &a [*a]") == "" {
		t.Error("aliases")
	}
}
