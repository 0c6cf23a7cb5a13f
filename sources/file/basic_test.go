package file

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newTable() *record.Table {
	t := record.NewTable()
	for _, n := range []string{"message", "@path", "@offset", "@split"} {
		t.Slot(n)
	}
	return t
}

// build makes a source as the loader would.
func build(t testing.TB, c Config, common sources.Common, once bool) *Source {
	t.Helper()
	var errs config.Errors
	full := Config{Follow: true}
	config.Defaults(&full)
	full.Paths, full.Exclude, full.Start, full.Follow = c.Paths, c.Exclude, c.Start, c.Follow
	if c.Poll > 0 {
		full.Poll = c.Poll
	}
	if c.Scan > 0 {
		full.Scan = c.Scan
	}
	if c.MaxLine > 0 {
		full.MaxLine = c.MaxLine
	}
	if c.MaxOpen > 0 {
		full.MaxOpen = c.MaxOpen
	}
	if c.RotateWait > 0 {
		full.RotateWait = c.RotateWait
	}
	b := &sources.Build{Build: steps.Build{Decl: steps.Decl{Errs: &errs}, Table: newTable(), Name: "in"}, Common: common, Once: once, Log: slog.New(slog.DiscardHandler)}
	s, err := full.Build(b)
	if err != nil || errs.Failed() {
		t.Fatal(err, errs.Err())
	}
	return s.(*Source)
}

// running is a source in its goroutine.
type running struct {
	t    testing.TB
	out  *sourcetest.Output
	stop context.CancelFunc
	done chan error
}

func start(t testing.TB, s *Source, store *sourcetest.Store) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, out: sourcetest.New(store, s.table), stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, r.out) }()
	t.Cleanup(cancel)
	return r
}

func (r *running) wait(ok func(v sourcetest.View) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.out.Wait(ctx, ok); err != nil {
		m := r.out.Messages()
		r.t.Fatalf("waited in vain: %v\n%.300q", err, m[max(0, len(m)-10):])
	}
}

func (r *running) records(n int) {
	r.t.Helper()
	r.wait(func(v sourcetest.View) bool { return v.Count() >= n && v.Idle() })
}

// end stops the source and gives what a last checkpoint commits.
func (r *running) end() *sourcetest.Store {
	r.t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	if err := r.out.Err(); err != nil {
		r.t.Fatal(err)
	}
	return r.out.Commit()
}

// once runs a finite source to its end.
func once(t testing.TB, s *Source, store *sourcetest.Store) *sourcetest.Output {
	t.Helper()
	out := sourcetest.New(store, s.table)
	if err := s.Run(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	if err := out.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func equal(t testing.TB, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		t.Fatalf("%d records, want %d, different from %d on:\ngot  %.300q\nwant %.300q", len(got), len(want), i, got[i:min(i+10, len(got))], want[i:min(i+10, len(want))])
	}
}

func TestOnce(t *testing.T) {
	d := t.TempDir()
	write(t, filepath.Join(d, "b.log"), "b1\nb2")
	write(t, filepath.Join(d, "a.log"), "a1\r\n\na3\n")
	s := build(t, Config{Paths: []string{d + "/*.log"}}, sources.Common{}, true)
	out := once(t, s, sourcetest.NewStore())
	equal(t, out.Messages(), []string{"a1", "", "a3", "b1", "b2"})
	if !out.Finished(filepath.Join(d, "a.log")) || !out.Finished(filepath.Join(d, "b.log")) {
		t.Error("not finished")
	}
	// Once more: nothing new; then one line more.
	store := out.Commit()
	s = build(t, Config{Paths: []string{d + "/*.log"}}, sources.Common{}, true)
	equal(t, once(t, s, store).Messages(), nil)
	add(t, filepath.Join(d, "a.log"), "a4\n")
	equal(t, once(t, s, store).Messages(), []string{"a4"})
}

func TestFollow(t *testing.T) {
	for _, notify := range []bool{true, false} {
		d := t.TempDir()
		p := filepath.Join(d, "a.log")
		write(t, p, "old\nhal")
		s := build(t, Config{Paths: []string{d + "/*.log"}, Follow: true, Poll: config.Duration(10 * time.Millisecond), Scan: config.Duration(20 * time.Millisecond)}, sources.Common{}, false)
		s.notify = notify
		r := start(t, s, sourcetest.NewStore())
		r.wait(func(v sourcetest.View) bool { return v.Idle() })
		add(t, p, "f\nnew\npart")
		r.records(2)
		write(t, filepath.Join(d, "b.log"), "b1\n")
		r.records(3)
		add(t, p, "ial\n")
		r.records(4)
		equal(t, r.out.Messages(), []string{"half", "new", "b1", "partial"})
		store := r.end()
		add(t, p, "while down\n")
		r = start(t, s, store)
		r.records(1)
		equal(t, r.out.Messages(), []string{"while down"})
		r.end()
	}
}
