package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/pipeline"
)

const minutes = `
source: {file: {paths: [DIR/*.log], start: beginning, poll: 5ms, scan: 20ms}, codec: json}
checkpoint: {interval: 20ms}
steps:
  - filter: k <> 'x'
  - window:
      tumble: 1m
      time: t
      delay: 10s
      by: [k]
      select: {n: COUNT(*), s: SUM(v)}
  - add: {day: '%{+yyyy-MM-dd}'}
sinks:
  - collect: {into: NAME}
`

// row is a record for `minutes`.
func row(t, k string, v int) string {
	return fmt.Sprintf(`{"t":"2024-01-01 %s","k":"%s","v":%d}`+"\n", t, k, v)
}

func (e *env) add(name, text string) {
	f, err := os.OpenFile(filepath.Join(e.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		e.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		e.t.Fatal(err)
	}
}

// TestWindow: windows of a finite source fire at its end, in order, with what %{+…} means behind them; the ledger adds up.
func TestWindow(t *testing.T) {
	e := newEnv(t)
	e.add("a.log", row("10:00:01", "a", 1)+row("10:00:02", "b", 2)+row("10:00:03", "x", 3)+row("10:01:30", "a", 4)+row("10:00:04", "a", 5))
	e.add("b.log", row("09:59:59", "b", 6)+row("10:00:59", "a", 7)) // read after a.log, and yet not late
	rep := e.once(strings.ReplaceAll(minutes, "NAME", t.Name()))
	want := []string{
		`{"k":"b","window_start":"2024-01-01T09:59:00Z","window_end":"2024-01-01T10:00:00Z","n":1,"s":6,"day":"2024-01-01"}`,
		`{"k":"a","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","n":3,"s":13,"day":"2024-01-01"}`,
		`{"k":"b","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","n":1,"s":2,"day":"2024-01-01"}`,
		`{"k":"a","window_start":"2024-01-01T10:01:00Z","window_end":"2024-01-01T10:02:00Z","n":1,"s":4,"day":"2024-01-01"}`,
	}
	if got := rowsOf(t.Name()).all(); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if rep.In != 7 || rep.Filtered != 1 || rep.Absorbed != 6 || rep.Made != 4 || rep.Out != 4 || rep.Dead != 0 {
		t.Errorf("%+v", rep)
	}
}

func (e *env) plan(yaml string, once bool) *pipeline.Plan {
	e.t.Helper()
	f, err := pipeline.Load("p.yaml", []byte(strings.ReplaceAll(yaml, "DIR", e.dir)), pipeline.LoadOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	p, err := pipeline.Compile(f, pipeline.CompileOptions{Once: once})
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

// follow runs the pipeline until f has returned, then stops it.
func (e *env) follow(yaml string, f func(r *pipeline.Runner)) {
	e.t.Helper()
	run := e.runner(yaml, false)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run.Run(ctx) }()
	f(run)
	cancel()
	if err := <-done; err != nil {
		e.t.Fatal(err)
	}
}

// TestWindowRestart: a stop fires nothing, and what windows hold is there for the next run.
func TestWindowRestart(t *testing.T) {
	e := newEnv(t)
	yaml := strings.ReplaceAll(minutes, "NAME", t.Name())
	got := func() []string { return rowsOf(t.Name()).all() }
	e.add("a.log", row("10:00:01", "a", 1)+row("10:00:02", "a", 2))
	e.follow(yaml, func(r *pipeline.Runner) {
		eventually(t, "records are absorbed", func() bool { return r.Report().Absorbed == 2 })
	})
	if len(got()) != 0 {
		t.Errorf("a stop fires %q", got())
	}
	e.add("a.log", row("10:00:30", "a", 3)+row("10:01:10", "b", 4))
	e.follow(yaml, func(r *pipeline.Runner) {
		eventually(t, "the window fires", func() bool { return len(got()) == 1 })
	})
	if want := []string{`{"k":"a","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","n":3,"s":6,"day":"2024-01-01"}`}; !slices.Equal(got(), want) {
		t.Errorf("got %q", got())
	}
	// The watermark is 10:01:00: a record for the window that has fired is late.
	e.add("a.log", row("10:00:59", "a", 5))
	e.follow(yaml, func(r *pipeline.Runner) {
		eventually(t, "a record is late", func() bool { return r.Report().Dead == 1 })
	})
	if l := e.letters(); len(l) != 1 || !strings.Contains(fmt.Sprint(l[0]["reason"]), "late") || l[0]["step"] != "window" {
		t.Errorf("letters %v", l)
	}
}

// TestWindowChanged: before a stop for a new version with another definition the windows fire; without that the new one doesn't start.
func TestWindowChanged(t *testing.T) {
	e := newEnv(t)
	yaml := strings.ReplaceAll(minutes, "NAME", t.Name())
	other := strings.ReplaceAll(yaml, "tumble: 1m", "tumble: 30s")
	moved := strings.ReplaceAll(yaml, "  - window:\n", "  - name: other\n    window:\n")
	e.add("a.log", row("10:00:01", "a", 1)+row("10:00:40", "a", 2))
	e.follow(yaml, func(r *pipeline.Runner) {
		eventually(t, "records are absorbed", func() bool { return r.Report().Absorbed == 2 })
	})
	for name, y := range map[string]string{"definition": other, "no step window any more": moved} {
		plan := e.plan(y, false)
		if _, err := pipeline.NewRunner(context.Background(), plan, pipeline.RunOptions{Store: e.store, Letters: filepath.Join(e.dir, "x.dead")}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	e.follow(yaml, func(r *pipeline.Runner) { r.Release(e.plan(other, false).Definitions()) })
	if want := []string{`{"k":"a","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:01:00Z","n":2,"s":3,"day":"2024-01-01"}`}; !slices.Equal(rowsOf(t.Name()).all(), want) {
		t.Errorf("got %q", rowsOf(t.Name()).all())
	}
	e.add("a.log", row("10:02:01", "a", 4)+row("10:02:31", "a", 5)+row("10:03:01", "a", 5))
	e.follow(other, func(r *pipeline.Runner) {
		eventually(t, "the new windows fire", func() bool { return len(rowsOf(t.Name()).all()) == 2 })
		eventually(t, "status tells what is open", func() bool {
			s := r.Report().Stages["window"]
			return s.Windows > 0 && s.Keys > 0 && s.Bytes > 0 && s.Watermark == "2024-01-01T10:02:51Z" && s.LagMillis > 0
		})
	})
	if got := rowsOf(t.Name()).all()[1]; !strings.Contains(got, `"window_end":"2024-01-01T10:02:30Z","n":1,"s":4`) {
		t.Errorf("got %s", got)
	}
}

// TestCascade: a window behind a window gets its firings.
func TestCascade(t *testing.T) {
	e := newEnv(t)
	var text strings.Builder
	for i := range 300 {
		text.WriteString(row(fmt.Sprintf("10:%02d:%02d", i/60, i%60), string(rune('a'+i%3)), i))
	}
	e.add("a.log", text.String())
	e.once(`
source: {file: {paths: [DIR/*.log]}, codec: json}
steps:
  - window: {tumble: 10s, time: t, by: [k], select: {n: COUNT(*)}}
  - window: {tumble: 1m, time: window_start, select: {n: SUM(n), most: MAX(n), parts: COUNT(*)}}
sinks:
  - collect: {into: ` + t.Name() + `}
`)
	got := rowsOf(t.Name()).all()
	if len(got) != 5 {
		t.Fatalf("got %q", got)
	}
	for i, r := range got {
		if want := fmt.Sprintf(`{"window_start":"2024-01-01T10:%02d:00Z","window_end":"2024-01-01T10:%02d:00Z","n":60,"most":4,"parts":18}`, i, i+1); r != want {
			t.Errorf("got %s, want %s", r, want)
		}
	}
}

// TestFiringsSurvive: what was fired and committed is delivered by the next run, the same bytes.
func TestFiringsSurvive(t *testing.T) {
	e := newEnv(t)
	r := rowsOf(t.Name())
	r.fail = errors.New("down")
	e.add("a.log", row("10:00:01", "a", 1)+row("10:02:00", "a", 2))
	run := e.runner(strings.ReplaceAll(minutes, "NAME", t.Name()), false)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- run.Run(ctx) }()
	eventually(t, "a firing is in the store", func() bool {
		fs, err := e.store.Outbox(context.Background(), "default/p", "collect", 0, 10)
		return err == nil && len(fs) == 1
	})
	run.Fail(errors.New("killed"))
	<-done
	r.mu.Lock()
	r.fail = nil
	r.mu.Unlock()
	e.once(strings.ReplaceAll(minutes, "NAME", t.Name()))
	if got := r.all(); len(got) != 2 || !strings.Contains(got[0], `"n":1,"s":1`) || !strings.Contains(got[1], `"n":1,"s":2`) {
		t.Errorf("got %q", got)
	}
}

// TestFailingBehind: results that a step behind the window fails are dead letters, each its own.
func TestFailingBehind(t *testing.T) {
	e := newEnv(t)
	e.add("a.log", row("10:00:01", "a", 1)+row("10:00:02", "b", 2)+row("10:00:03", "3", 3))
	rep := e.once(strings.ReplaceAll(minutes, "NAME", t.Name()) + "")
	if rep.Out != 3 {
		t.Errorf("%+v", rep)
	}
	e2 := newEnv(t)
	e2.add("a.log", row("10:00:01", "a", 1)+row("10:00:02", "b", 2)+row("10:00:03", "3", 3))
	rep = e2.once(strings.ReplaceAll(strings.Replace(minutes, "  - add:", "  - convert: {k: integer}\n  - add:", 1), "NAME", t.Name()+"2"))
	if rep.Out != 1 || rep.Dead != 2 || rep.Made != 3 {
		t.Errorf("%+v", rep)
	}
	l := e2.letters()
	if len(l) != 2 || l[0]["offset"] == l[1]["offset"] || l[0]["step"] != "convert" {
		t.Errorf("letters %v", l)
	}
}

// TestKeepIsRefused: late records can't go on among results.
func TestKeepIsRefused(t *testing.T) {
	f, err := pipeline.Load("p.yaml", []byte("source: {stdin: {}, codec: json}\nsteps:\n  - window: {tumble: 1m, time: t}\n    on_error: keep\nsinks: [collect: {into: x}]\n"), pipeline.LoadOptions{})
	if err == nil {
		_, err = pipeline.Compile(f, pipeline.CompileOptions{})
	}
	if err == nil || !strings.Contains(err.Error(), "among its results") {
		t.Error(err)
	}
}

// TestSideBySide: files of a finite source are read side by side where a window follows, so that few windows are open at once.
func TestSideBySide(t *testing.T) {
	e := newEnv(t)
	for f := range 3 {
		var text strings.Builder
		for i := range 120_000 {
			fmt.Fprintf(&text, `{"t":"2024-01-%02d %02d:%02d:%02d","k":"a","v":1,"pad":"%060d"}`+"\n", 1+i/86400, i/3600%24, i/60%60, i%60, i)
		}
		e.add(fmt.Sprint(f, ".log"), text.String())
	}
	rep := e.once("source: {file: {paths: [DIR/*.log]}, codec: json}\nmemory: 4MiB\nworkers: 1\ncheckpoint: {interval: 5ms}\nsteps:\n" +
		"  - window: {tumble: 1m, time: t, max_keys: 1000, select: {n: COUNT(*)}}\nsinks: [collect: {into: " + t.Name() + "}]\n")
	if rows := rowsOf(t.Name()).all(); len(rows) != 2000 || rep.Dead != 0 {
		t.Errorf("%d windows, %d records failed: more than 1,000 windows were open at once", len(rows), rep.Dead)
	}
}

// TestDroppedMoveTime: records that were dropped before the window move its time on: an error that is rare doesn't wait for the next one.
func TestDroppedMoveTime(t *testing.T) {
	e := newEnv(t)
	e.add("a.log", row("10:00:01", "a", 1)+row("10:05:00", "x", 2))
	e.follow(strings.ReplaceAll(minutes, "NAME", t.Name()), func(*pipeline.Runner) {
		eventually(t, "the window fires", func() bool { return len(rowsOf(t.Name()).all()) == 1 })
	})
	e.add("a.log", row("10:09:00", "b", 1)+strings.Repeat(row("10:10:00", "x", 1), 5000)+row("10:20:00", "x", 1))
	e.follow(strings.ReplaceAll(minutes, "NAME", t.Name()), func(*pipeline.Runner) {
		eventually(t, "the next one fires", func() bool { return len(rowsOf(t.Name()).all()) == 2 })
	})
}
