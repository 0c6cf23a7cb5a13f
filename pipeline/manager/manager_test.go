package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	_ "github.com/rsetl/rsetl/internal/components"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/pebble"
	"github.com/rsetl/rsetl/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gated is a sink for tests: it keeps rows in memory, and can be down or refuse to start, by name.
type gated struct {
	enc *record.Encoder
	o   *outlet
	bad bool
}

// outlet is where gated sinks of a name deliver.
type outlet struct {
	mu   sync.Mutex
	rows []string
	down bool
}

var outlets sync.Map

func outletOf(name string) *outlet {
	o, _ := outlets.LoadOrStore(name, &outlet{})
	return o.(*outlet)
}

func (o *outlet) set(down bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = down
}

func (o *outlet) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.rows)
}

type gatedConfig struct {
	Into     string `yaml:"into,required"`
	BadStart bool   `yaml:"bad_start"`
}

func (*gatedConfig) Declare(d *steps.Decl) { d.ReadAll = true }
func (c *gatedConfig) Build(b *steps.Build) (sinks.Sink, error) {
	return &gated{enc: record.NewEncoder(b.Table, b.Ship, b.OpenEnded), o: outletOf(c.Into), bad: c.BadStart}, nil
}
func (s *gated) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	return s.enc.Append(dst, b, i), nil
}
func (s *gated) Start(context.Context, *sinks.Env) error {
	if s.bad {
		return sinks.Permanent(errors.New("the table is there already"))
	}
	return nil
}
func (s *gated) Stop(context.Context) error { return nil }
func (s *gated) Deliver(_ context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	if s.o.down {
		return nil, errors.New("connection refused")
	}
	for pi := range c.Parts {
		for i := range c.Parts[pi].Ends {
			s.o.rows = append(s.o.rows, string(c.Parts[pi].Row(i)))
		}
	}
	return nil, nil
}

func init() {
	sinks.MustRegister("gated", sinks.Spec{New: func() sinks.Config { return &gatedConfig{} }})
}

// place is a folder with pipelines and a manager over it.
type place struct {
	t     *testing.T
	dir   string
	m     *Manager
	store *pebble.Store
	end   func() error

	options func(*Options)
}

func newPlace(t *testing.T) *place {
	p := &place{t: t, dir: t.TempDir()}
	for _, d := range []string{"conf.d", "in", "out"} {
		if err := os.Mkdir(filepath.Join(p.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *place) start() {
	p.t.Helper()
	var err error
	if p.store, err = pebble.Open(filepath.Join(p.dir, "state"), pebble.Options{}); err != nil {
		p.t.Fatal(err)
	}
	o := Options{ConfDir: filepath.Join(p.dir, "conf.d"), StateDir: filepath.Join(p.dir, "state"), Store: p.store,
		Debounce: 20 * time.Millisecond, Rescan: 100 * time.Millisecond, BackoffMin: 10 * time.Millisecond, BackoffMax: 100 * time.Millisecond, ClaimWait: 2 * time.Second}
	if p.options != nil {
		p.options(&o)
	}
	p.m = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.m.Run(ctx) }()
	p.end = sync.OnceValue(func() error {
		cancel()
		err := <-done
		p.store.Close()
		return err
	})
	p.t.Cleanup(func() { p.end() })
}

func (p *place) stop() {
	p.t.Helper()
	if err := p.end(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) write(name, text string) {
	p.t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) add(name, text string) {
	p.t.Helper()
	f, err := os.OpenFile(p.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(name string) {
	p.t.Helper()
	if err := os.Remove(p.path(name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) rename(from, to string) {
	p.t.Helper()
	if err := os.Rename(p.path(from), p.path(to)); err != nil {
		p.t.Fatal(err)
	}
}

// pipe is a pipeline from in/IN.log to a gated sink.
func (p *place) pipe(in, into, more string) string {
	return fmt.Sprintf("source:\n  file: {paths: ['%s'], start: beginning, poll: 20ms}\nsinks:\n  - gated: {into: '%s'}\n    batch: {interval: 10ms}\ncheckpoint: {interval: 30ms}\n%s",
		p.path("in/"+in+".log"), into, more)
}

// until polls with a deadline.
func (p *place) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("still not: %s; %+v %v", what, p.m.Status(), p.m.Problems())
		}
	}
}

func (p *place) status(name string) Status {
	s, err := p.m.Get(name)
	if err != nil {
		return Status{}
	}
	return s
}

func (p *place) is(name, state string) {
	p.t.Helper()
	p.until(name+" is "+state, func() bool { return p.status(name).State == state })
}

func (p *place) rows(into string, want ...string) {
	p.t.Helper()
	got := func() []string {
		var out []string
		for _, r := range outletOf(into).all() {
			out = append(out, strings.TrimSuffix(strings.TrimPrefix(r, `{"message":"`), `"}`))
		}
		return out
	}
	p.until(fmt.Sprintf("%s has %q", into, want), func() bool { return len(got()) >= len(want) })
	if g := got(); !slices.Equal(g, want) {
		p.t.Fatalf("%s: got %q, want %q", into, g, want)
	}
}

var outNames atomic.Int64

func outName(t *testing.T) string {
	return fmt.Sprintf("%s %d", strings.ReplaceAll(t.Name(), "'", ""), outNames.Add(1))
}

// TestReload are the kinds of reload, on one pipeline that runs and has read a line.
func TestReload(t *testing.T) {
	type env struct {
		*place
		out   string
		first Status
	}
	for _, c := range []struct {
		name string
		do   func(e env)
	}{
		{"changed", func(e env) {
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 1MiB\n"))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.is("default/a", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"checkpoint only", func(e env) {
			e.write("conf.d/a.yaml", strings.Replace(e.pipe("a", e.out, ""), "interval: 30ms", "interval: 40ms", 1))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"comment only", func(e env) {
			e.write("conf.d/a.yaml", "# a comment\n"+e.pipe("a", e.out, "# another\n"))
			e.rescan()
			s := e.status("default/a")
			if s.Version != e.first.Version || !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("restarted: %+v", s)
			}
		}},
		{"touched", func(e env) {
			if err := os.Chtimes(e.path("conf.d/a.yaml"), time.Now(), time.Now()); err != nil {
				e.t.Fatal(err)
			}
			e.rescan()
			if s := e.status("default/a"); !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("restarted: %+v", s)
			}
		}},
		{"broken, then fixed", func(e env) {
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "checkpont: {}\n"))
			e.until("rejected", func() bool { return e.status("default/a").Rejected != nil })
			s := e.status("default/a")
			if s.State != Running || s.Version != e.first.Version || !s.StartedAt.Equal(*e.first.StartedAt) ||
				!strings.Contains(s.Error, `a.yaml:7:1: `) || s.Rejected.Mistakes[0].Line != 7 {
				e.t.Errorf("%+v %+v", s, s.Rejected)
			}
			if r := e.m.Ready(); len(r) != 1 || !strings.Contains(r[0], "runs its old version") {
				e.t.Error(r)
			}
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 2MiB\n"))
			e.until("fixed", func() bool { s := e.status("default/a"); return s.Rejected == nil && s.Version != e.first.Version })
			e.add("in/a.log", "three\n")
			e.rows(e.out, "one", "two", "three")
			if r := e.m.Ready(); len(r) != 0 {
				e.t.Error(r)
			}
		}},
		{"emptied, then as before", func(e env) {
			e.write("conf.d/a.yaml", "")
			e.until("rejected", func() bool { return e.status("default/a").Rejected != nil })
			e.write("conf.d/a.yaml", e.pipe("a", e.out, ""))
			e.until("accepted", func() bool { return e.status("default/a").Rejected == nil })
			if s := e.status("default/a"); !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("restarted: %+v", s)
			}
		}},
		{"broken under another name", func(e env) {
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "name: b\nnonsense: 1\n"))
			e.until("rejected", func() bool { return e.status("default/a").Rejected != nil })
			if s := e.status("default/a"); s.State != Running {
				e.t.Errorf("%+v", s)
			}
		}},
		{"start fails", func(e env) {
			e.write("conf.d/a.yaml", strings.Replace(e.pipe("a", e.out, ""), "into:", "bad_start: true, into:", 1))
			e.until("back", func() bool { s := e.status("default/a"); return s.Rejected != nil && s.State == Running })
			s := e.status("default/a")
			if s.Version != e.first.Version || !strings.Contains(s.Error, "the table is there already") || !strings.Contains(s.Error, "the version before runs again") {
				e.t.Errorf("%+v", s)
			}
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			if n := e.m.Reloads()["start_failed"]; n != 1 {
				e.t.Error(n)
			}
		}},
		{"deleted, then back", func(e env) {
			e.remove("conf.d/a.yaml")
			e.until("gone", func() bool { return len(e.m.Status()) == 0 })
			if names, err := e.m.Removed(context.Background()); err != nil || !slices.Equal(names, []string{"default/a"}) {
				e.t.Error(names, err)
			}
			e.add("in/a.log", "two\n")
			e.write("conf.d/a.yaml", e.pipe("a", e.out, ""))
			e.rows(e.out, "one", "two")
		}},
		{"deleted and removed", func(e env) {
			if err := e.m.Remove(context.Background(), "default/a"); !errors.Is(err, ErrHasFile) {
				e.t.Error(err)
			}
			e.remove("conf.d/a.yaml")
			if err := e.m.Remove(context.Background(), "default/a"); err != nil {
				e.t.Fatal(err)
			}
			if err := e.m.Remove(context.Background(), "default/a"); !errors.Is(err, ErrUnknown) {
				e.t.Error(err)
			}
			e.write("conf.d/a.yaml", e.pipe("a", e.out, ""))
			e.rows(e.out, "one", "one")
		}},
		{"renamed", func(e env) {
			e.rename("conf.d/a.yaml", "conf.d/b.yml")
			e.is("default/b", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			if len(e.m.Status()) != 1 {
				e.t.Error(e.m.Status())
			}
		}},
		{"renamed in two steps", func(e env) {
			e.remove("conf.d/a.yaml")
			e.until("gone", func() bool { return len(e.m.Status()) == 0 })
			e.write("conf.d/b.yaml", e.pipe("a", e.out, ""))
			e.is("default/b", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"renamed into a namespace", func(e env) {
			e.write("conf.d/prod/other.txt", "")
			e.rename("conf.d/a.yaml", "conf.d/prod/a.yaml")
			e.is("prod/a", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"renamed while down", func(e env) {
			e.stop()
			e.rename("conf.d/a.yaml", "conf.d/b.yaml")
			e.start()
			e.is("default/b", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"renamed and its name taken", func(e env) {
			e.write("conf.d/.new", e.pipe("a2", e.out+"2", ""))
			e.rename("conf.d/a.yaml", "conf.d/b.yaml")
			e.rename("conf.d/.new", "conf.d/a.yaml")
			e.add("in/a2.log", "x\n")
			e.is("default/b", Running)
			e.is("default/a", Running)
			e.add("in/a.log", "two\n")
			e.rows(e.out+"2", "x")
			e.rows(e.out, "one", "two")
		}},
		{"copied and changed", func(e env) {
			e.write("conf.d/b.yaml", e.pipe("a", e.out, ""))
			e.write("conf.d/a.yaml", e.pipe("a", e.out+"2", ""))
			e.rows(e.out, "one", "one") // b is new
			e.add("in/a.log", "two\n")
			e.rows(e.out+"2", "two") // a goes on
		}},
		{"an editor's rename dance", func(e env) {
			e.write("conf.d/.a.yaml.swp", "b0VIM")
			e.write("conf.d/4913", "")
			e.rename("conf.d/a.yaml", "conf.d/a.yaml~")
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 1MiB\n"))
			e.remove("conf.d/a.yaml~")
			e.remove("conf.d/.a.yaml.swp")
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			if len(e.m.Status()) != 1 || len(e.m.Problems()) != 0 {
				e.t.Error(e.m.Status(), e.m.Problems())
			}
		}},
		{"editors' files", func(e env) {
			for _, n := range []string{".a.yaml", "a.yaml~", "#a.yaml#", ".#a.yaml", "a.yaml.bak", "a.yaml.swp", "a.yaml.dpkg-new", "README"} {
				e.write("conf.d/"+n, "not yaml: [")
			}
			e.rescan()
			if len(e.m.Status()) != 1 || len(e.m.Problems()) != 0 {
				e.t.Error(e.m.Status(), e.m.Problems())
			}
		}},
		{"two quick changes", func(e env) {
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 1MiB\n"))
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 3MiB\n"))
			e.rescan()
			want := e.status("default/a").Version
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			e.rescan()
			if s := e.status("default/a"); s.Version != want || s.Version == e.first.Version {
				e.t.Errorf("%+v", s)
			}
		}},
		{"a sink that is down", func(e env) {
			outletOf(e.out).set(true)
			defer outletOf(e.out).set(false)
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "drain: 100ms\n"))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.add("in/a.log", "two\n")
			e.is("default/a", Blocked)
			if s := e.status("default/a"); !strings.Contains(s.Error, "connection refused") {
				e.t.Errorf("%+v", s)
			}
			// The new version goes elsewhere; the old one can't drain.
			e.write("conf.d/a.yaml", e.pipe("a", e.out+"2", "drain: 100ms\n"))
			e.rows(e.out+"2", "two")
			if s := e.status("default/a"); s.State != Running || !strings.Contains(s.Note, "not everything was committed") {
				e.t.Errorf("%+v", s)
			}
		}},
		{"the folder vanishes and comes back", func(e env) {
			e.rename("conf.d", "conf.away")
			e.until("noticed", func() bool { return len(e.m.Ready()) > 0 })
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			e.rename("conf.away", "conf.d")
			e.until("ready", func() bool { return len(e.m.Ready()) == 0 })
			if s := e.status("default/a"); !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("restarted: %+v", s)
			}
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 1MiB\n"))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
		}},
		{"a name twice", func(e env) {
			e.write("conf.d/0.yaml", e.pipe("b", e.out, "name: a\n"))
			e.rescan()
			if p := e.m.Problems(); len(p) != 1 || !strings.HasSuffix(p[0].File, "0.yaml") {
				e.t.Error(p)
			}
			if s := e.status("default/a"); !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("restarted: %+v", s)
			}
		}},
		{"another pipeline's trouble", func(e env) {
			e.write("conf.d/b.yaml", "nonsense")
			e.write("conf.d/c.yaml", strings.Replace(e.pipe("a", e.out+"3", ""), "into:", "bad_start: true, into:", 1))
			e.is("default/b", Failed)
			e.until("tried again", func() bool { return e.status("default/c").Restarts > 2 })
			e.is("default/c", Failed)
			if s := e.status("default/a"); s.State != Running || !s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("%+v", s)
			}
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
			e.write("conf.d/c.yaml", e.pipe("a", e.out+"3", ""))
			e.is("default/c", Running)
			e.rows(e.out+"3", "one", "two")
		}},
		{"forced", func(e env) {
			if err := e.m.Reload(context.Background(), "default/a"); err != nil {
				e.t.Fatal(err)
			}
			if s := e.status("default/a"); s.State != Running || s.StartedAt.Equal(*e.first.StartedAt) {
				e.t.Errorf("%+v", s)
			}
			e.add("in/a.log", "two\n")
			e.rows(e.out, "one", "two")
		}},
		{"paused", func(e env) {
			if err := e.m.Pause("default/a"); err != nil {
				e.t.Fatal(err)
			}
			e.is("default/a", Paused)
			e.add("in/a.log", "two\n")
			e.write("conf.d/a.yaml", e.pipe("a", e.out, "memory: 1MiB\n"))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.stop()
			e.start()
			e.is("default/a", Paused)
			if err := e.m.Flush(context.Background(), "default/a"); err != nil {
				e.t.Error(err)
			}
			e.rows(e.out, "one")
			if err := e.m.Resume("default/a"); err != nil {
				e.t.Fatal(err)
			}
			e.rows(e.out, "one", "two")
		}},
		{"flushed", func(e env) {
			e.write("conf.d/a.yaml", strings.Replace(e.pipe("a", e.out, ""), "interval: 30ms", "interval: 1h", 1))
			e.until("new version", func() bool { return e.status("default/a").Version != e.first.Version })
			e.add("in/a.log", "two\n")
			e.until("read", func() bool { return e.status("default/a").In == 2 })
			if err := e.m.Flush(context.Background(), "default/a"); err != nil {
				e.t.Fatal(err)
			}
			s := e.status("default/a")
			if s.LastCheckpoint == nil || len(s.Splits) != 1 || s.Splits[0].Offset != 8 || *s.Lag != 0 {
				e.t.Errorf("%+v", s)
			}
		}},
		{"checked", func(e env) {
			if l, err := e.m.Check("default/a"); err != nil || len(l) != 0 {
				e.t.Error(l, err)
			}
			e.write("conf.d/a.yaml", "source: {fil: {}}\nsinks: [stdout: {}]\n")
			if l, err := e.m.Check("default/a"); err != nil || len(l) == 0 || l[0].Line != 1 {
				e.t.Error(l, err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			e := env{place: p, out: outName(t)}
			p.write("in/a.log", "one\n")
			p.write("conf.d/a.yaml", p.pipe("a", e.out, ""))
			p.start()
			p.is("default/a", Running)
			p.rows(e.out, "one")
			p.until("committed", func() bool {
				s := p.status("default/a")
				return s.LastCheckpoint != nil && len(s.Splits) == 1 && s.Splits[0].Offset == 4
			})
			e.first = p.status("default/a")
			c.do(e)
			p.stop()
		})
	}
}

func (p *place) rescan() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := p.m.Rescan(ctx); err != nil {
		p.t.Fatal(err)
	}
}

// TestKubernetes: a mounted ConfigMap changes by a swap of the link ..data.
func TestKubernetes(t *testing.T) {
	p := newPlace(t)
	out := outName(t)
	p.write("conf.d/..2026_1/a.yaml", p.pipe("a", out, ""))
	for _, l := range [][2]string{{"..2026_1", "conf.d/..data"}, {"..data/a.yaml", "conf.d/a.yaml"}} {
		if err := os.Symlink(l[0], p.path(l[1])); err != nil {
			t.Fatal(err)
		}
	}
	p.add("in/a.log", "one\n")
	p.start()
	p.rows(out, "one")
	first := p.status("default/a")
	p.write("conf.d/..2026_2/a.yaml", p.pipe("a", out, "memory: 1MiB\n"))
	if err := os.Symlink("..2026_2", p.path("conf.d/..data_tmp")); err != nil {
		t.Fatal(err)
	}
	p.rename("conf.d/..data_tmp", "conf.d/..data")
	p.until("new version", func() bool { return p.status("default/a").Version != first.Version })
	if err := os.RemoveAll(p.path("conf.d/..2026_1")); err != nil {
		t.Fatal(err)
	}
	p.add("in/a.log", "two\n")
	p.rows(out, "one", "two")
	// A link that leads nowhere is trouble, not a deletion.
	p.rename("conf.d/..data", "conf.d/..gone")
	p.until("rejected", func() bool { return p.status("default/a").Rejected != nil })
	p.add("in/a.log", "three\n")
	p.rows(out, "one", "two", "three")
	p.stop()
}

// TestOutputs: two pipelines on one file are refused, and a file may move from one to the other.
func TestOutputs(t *testing.T) {
	p := newPlace(t)
	pipe := func(in, out string) string {
		return fmt.Sprintf("source: {file: {paths: ['%s'], start: beginning, poll: 20ms}}\nsinks: [file: {path: '%s'}]\ncheckpoint: {interval: 20ms}\n",
			p.path("in/"+in), p.path("out/"+out))
	}
	p.write("in/a", "a\n")
	p.write("in/b", "b\n")
	p.write("conf.d/a.yaml", pipe("a", "x"))
	p.start()
	p.is("default/a", Running)
	p.write("conf.d/b.yaml", pipe("b", "x"))
	p.is("default/b", Failed)
	if s := p.status("default/b"); !strings.Contains(s.Error, "default/a writes") {
		t.Errorf("%+v", s)
	}
	p.write("conf.d/a.yaml", pipe("a", "y"))
	p.is("default/b", Running)
	p.is("default/a", Running)
	read := func(name string) string {
		b, _ := os.ReadFile(p.path("out/" + name))
		return string(b)
	}
	p.until("b's row", func() bool { return strings.Contains(read("x"), `"b"`) })
	p.stop()
	p.start()
	p.add("in/a", "a2\n")
	p.add("in/b", "b2\n")
	p.until("rows", func() bool { return strings.Contains(read("x"), `"b2"`) && strings.Contains(read("y"), `"a2"`) })
	if x, y := read("x"), read("y"); strings.Count(x, "\n") != 3 || strings.Count(y, "\n") != 1 {
		t.Errorf("x %q, y %q", x, y)
	}
	p.stop()
}

// TestFinished: a source that ends, and a daemon that goes on.
func TestFinished(t *testing.T) {
	p := newPlace(t)
	out := outName(t)
	p.write("in/a.log", "one\n")
	p.write("conf.d/a.yaml", strings.Replace(p.pipe("a", out, ""), "start: beginning", "follow: false", 1))
	p.start()
	p.is("default/a", Finished)
	p.rows(out, "one")
	if err := p.m.Flush(context.Background(), "default/a"); err != nil {
		t.Error(err)
	}
	p.stop()
}

// TestSecrets: what ${file:…} holds is in no answer.
func TestSecrets(t *testing.T) {
	p := newPlace(t)
	p.write("secret", "hunter22\n")
	p.write("conf.d/a.yaml", p.pipe("a", "x", "zone: '${file:"+p.path("secret")+"}'\n"))
	p.start()
	p.is("default/a", Failed)
	s := p.status("default/a")
	if text := fmt.Sprintf("%+v %+v %v", s, s.Rejected, p.m.Ready()); strings.Contains(text, "hunter22") || !strings.Contains(text, "***") {
		t.Error(text)
	}
	p.stop()
}

// brokenStore can't go on once it is told so.
type brokenStore struct {
	*pebble.Store
	broken atomic.Bool
}

func (s *brokenStore) Commit(ctx context.Context, name string, c *state.Commit) error {
	if s.broken.Load() {
		return fmt.Errorf("%w: for good", state.ErrFailed)
	}
	return s.Store.Commit(ctx, name, c)
}

// TestStoreFailed: a store that can't go on ends the manager, so that whoever started it starts it again.
func TestStoreFailed(t *testing.T) {
	p := newPlace(t)
	out := outName(t)
	s := &brokenStore{}
	p.options = func(o *Options) {
		s.Store = o.Store.(*pebble.Store)
		o.Store = s
	}
	p.write("in/a.log", "one\n")
	p.write("conf.d/a.yaml", p.pipe("a", out, ""))
	p.start()
	p.until("a checkpoint", func() bool { return p.status("default/a").LastCheckpoint != nil })
	s.broken.Store(true)
	p.add("in/a.log", "two\n")
	select {
	case <-p.m.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if err := p.end(); !errors.Is(err, state.ErrFailed) {
		t.Error(err)
	}
}
