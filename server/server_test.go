package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/pipeline/manager"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake has one pipeline, default/web, and fails with err.
type fake struct {
	err    error
	ready  []string
	called []string
	wait   bool // flush waits for its context
}

func (f *fake) do(what string) error {
	f.called = append(f.called, what)
	return f.err
}
func (f *fake) Status() []manager.Status {
	return []manager.Status{{Pipeline: "default/web", State: manager.Running, Version: "12", LagMillis: new(int64(1500)), SourceErrors: map[string]int64{"refused": 3}, Report: pipeline.Report{In: 3, Sinks: []pipeline.SinkReport{{Name: "file", Received: 2}}}}}
}
func (f *fake) Get(name string) (manager.Status, error) {
	if name != "default/web" {
		return manager.Status{}, fmt.Errorf("%w: %s", manager.ErrUnknown, name)
	}
	return f.Status()[0], nil
}
func (f *fake) Problems() []manager.Problem {
	return []manager.Problem{{File: "_x.yaml", Error: "not yet"}}
}
func (f *fake) Ready() []string             { return f.ready }
func (f *fake) Alive(context.Context) error { return nil }
func (f *fake) Flush(ctx context.Context, name string) error {
	if f.wait {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.do("flush " + name)
}
func (f *fake) Pause(name string) error                     { return f.do("pause " + name) }
func (f *fake) Resume(name string) error                    { return f.do("resume " + name) }
func (f *fake) Reload(_ context.Context, name string) error { return f.do("reload " + name) }
func (f *fake) Rescan(context.Context) error                { return f.do("rescan") }
func (f *fake) Remove(_ context.Context, name string) error { return f.do("remove " + name) }
func (f *fake) Removed(context.Context) ([]string, error)   { return []string{"default/old"}, f.err }
func (f *fake) Reloads() map[string]int64                   { return map[string]int64{"ok": 2} }
func (f *fake) Dead(_ context.Context, name string, filter *deadletter.Filter, limit int) ([]*deadletter.Entry, int64, error) {
	return []*deadletter.Entry{{ID: "abc", Step: filter.Step}}, 7, f.do(fmt.Sprintf("dead %s %v %d", name, filter.IDs, limit))
}
func (f *fake) Replay(_ context.Context, name string, filter *deadletter.Filter) (*pipeline.Replay, error) {
	return &pipeline.Replay{Replayed: 3}, f.do("replay " + name + " " + filter.Sink)
}
func (f *fake) Reset(_ context.Context, name string, r pipeline.Reset) (int, error) {
	return 2, f.do("reset " + name + " " + r.Split)
}
func (f *fake) Check(name string) ([]manager.Mistake, error) {
	return []manager.Mistake{{File: "web.yaml", Line: 2, Message: "unknown key"}}, f.do("check " + name)
}

func serve(t *testing.T, f *fake) (*Server, string) {
	t.Helper()
	l, err := Listen("127.0.0.1:0", &Access{})
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	s, err := New(l, Options{Pipelines: f, Registerer: reg, Gatherer: reg})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, s.Addr()
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

func ask(t *testing.T, method, addr, path string, edit func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestListen(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:8686", "example.com:1", "[::]:0"} {
		if l, err := Listen(addr, &Access{}); err == nil || !strings.Contains(err.Error(), "token and TLS only") {
			t.Errorf("%s: %v %v", addr, l, err)
		}
	}
	if _, err := Listen("127.0.0.1", &Access{}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:8686") {
		t.Error(err)
	}
	l, err := Listen("127.0.0.1:0", &Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(l.Addr().String(), &Access{}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Error(err)
	}
}

func TestRoutes(t *testing.T) {
	f := &fake{}
	_, addr := serve(t, f)
	for _, c := range []struct {
		method, path string
		err          error
		code         int
		has          string
	}{
		{"GET", "/v1/pipelines", nil, 200, `"pipeline": "default/web"`},
		{"GET", "/v1/pipelines/default/web", nil, 200, `"in": 3`},
		{"GET", "/v1/pipelines/default/no", nil, 404, "no such pipeline"},
		{"POST", "/v1/pipelines/default/web/flush", nil, 200, `"ok": true`},
		{"POST", "/v1/pipelines/default/web/flush", manager.ErrNotRun, 409, "does not run"},
		{"POST", "/v1/pipelines/default/web/flush", context.DeadlineExceeded, 504, "deadline"},
		{"POST", "/v1/pipelines/default/web/pause", nil, 200, `"ok": true`},
		{"POST", "/v1/pipelines/default/web/resume", nil, 200, `"ok": true`},
		{"POST", "/v1/pipelines/default/web/reload", nil, 200, `"ok": true`},
		{"POST", "/v1/pipelines/default/web/check", nil, 200, `"ok": false`},
		{"POST", "/v1/reload", nil, 200, `"state": "running"`},
		{"POST", "/v1/reload", manager.ErrStopping, 503, "stopping"},
		{"DELETE", "/v1/pipelines/default/old", nil, 200, `"ok": true`},
		{"DELETE", "/v1/pipelines/default/web", manager.ErrHasFile, 409, "still there"},
		{"DELETE", "/v1/pipelines/default/no", manager.ErrUnknown, 404, "no such"},
		{"GET", "/v1/pipelines/default/web/flush", nil, 405, ""},
		{"GET", "/v1/problems", nil, 200, "_x.yaml"},
		{"GET", "/v1/removed", nil, 200, "default/old"},
		{"GET", "/v1/removed", errors.New("disk"), 500, "disk"},
		{"GET", "/healthz", nil, 200, `"ok": true`},
		{"GET", "/readyz", nil, 200, `"ok": true`},
		{"GET", "/metrics", nil, 200, `rsetl_pipeline_state{pipeline="default/web",state="running"} 1`},
		{"GET", "/metrics", nil, 200, `rsetl_reloads_total{result="ok"} 2`},
		{"GET", "/metrics", nil, 200, `rsetl_pipeline_lag_seconds{pipeline="default/web"} 1.5`},
		{"GET", "/metrics", nil, 200, `rsetl_source_errors_total{kind="refused",pipeline="default/web"} 3`},
		{"GET", "/openapi.json", nil, 200, `"openapi"`},
		{"GET", "/nothing", nil, 404, ""},
	} {
		f.err = c.err
		if code, body := ask(t, c.method, addr, c.path, nil); code != c.code || !strings.Contains(body, c.has) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, body)
		}
	}
	f.err, f.ready = nil, []string{"pipeline default/web failed: x"}
	if code, body := ask(t, "GET", addr, "/readyz", nil); code != 503 || !strings.Contains(body, "default/web failed") {
		t.Error(code, body)
	}
}

// TestBrowser: a page that a browser on this host shows must reach nothing.
func TestBrowser(t *testing.T) {
	f := &fake{}
	_, addr := serve(t, f)
	for _, edit := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		func(r *http.Request) { r.Host = "evil.example:8686" },
	} {
		if code, body := ask(t, "POST", addr, "/v1/reload", edit); code != 403 {
			t.Error(code, body)
		}
	}
	if len(f.called) != 0 {
		t.Error(f.called)
	}
	if code, _ := ask(t, "GET", addr, "/v1/pipelines", func(r *http.Request) { r.Host = "evil.example" }); code != 403 {
		t.Error(code)
	}
}

// TestOpenAPI: the document has every route and no other.
func TestOpenAPI(t *testing.T) {
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for path, ops := range doc.Paths {
		for m := range ops {
			said[strings.ToUpper(m)+" "+path] = true
		}
	}
	for r := range (&Server{o: Options{Pipelines: &fake{}, Gatherer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}}).routes() {
		if !said[r] {
			t.Errorf("%s is not in openapi.json", r)
		}
		delete(said, r)
	}
	for r := range said {
		t.Errorf("openapi.json has %s, the server hasn't", r)
	}
}

// TestClose: requests that wait end with the server.
func TestClose(t *testing.T) {
	f := &fake{wait: true}
	s, addr := serve(t, f)
	got := make(chan error, 1)
	c, err := NewClient(Target{Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := c.Act(context.Background(), "web", "flush")
		got <- err
	}()
	for { // until the request is there
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if len(s.l.(*limited).slots) > 0 {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-got; err == nil {
		t.Error("flushed")
	}
}

func TestClient(t *testing.T) {
	f := &fake{}
	_, addr := serve(t, f)
	dir := t.TempDir()
	if _, err := NewClient(Target{StateDir: dir}); err == nil || !strings.Contains(err.Error(), "no daemon runs") {
		t.Error(err)
	}
	if _, err := NewClient(Target{Addr: "192.0.2.1:1"}); err == nil {
		t.Error("no error")
	}
	if err := WriteAddr(dir, addr); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(dir, "listen")); err != nil || st.Mode() != 0o640 {
		t.Error(st.Mode(), err)
	}
	c, err := NewClient(Target{StateDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	all, problems, err := c.Status(t.Context())
	if err != nil || len(all) != 1 || all[0].In != 3 || len(problems) != 1 {
		t.Error(all, problems, err)
	}
	if s, err := c.Act(t.Context(), "web", "pause"); err != nil || s.Pipeline != "default/web" || f.called[0] != "pause default/web" {
		t.Error(s, err, f.called)
	}
	d, err := c.Dead(t.Context(), "web", &deadletter.Filter{IDs: []string{"a", "b"}, Step: "grok"}, 5)
	if err != nil || d.Total != 7 || d.Letters[0].Step != "grok" {
		t.Error(d, err)
	}
	if r, err := c.Replay(t.Context(), "ns/web", &deadletter.Filter{Sink: "mysql"}); err != nil || r.Replayed != 3 {
		t.Error(r, err)
	}
	if n, err := c.Reset(t.Context(), "web", pipeline.Reset{Split: "/a"}); err != nil || n != 2 {
		t.Error(n, err)
	}
	if want := []string{"dead default/web [a b] 5", "replay ns/web mysql", "reset default/web /a"}; !slices.Equal(f.called[1:], want) {
		t.Errorf("%q, want %q", f.called[1:], want)
	}
	f.err = manager.ErrStopping
	if _, err := c.Rescan(t.Context()); err == nil || err.Error() != "rsetl is stopping" {
		t.Error(err)
	}
	RemoveAddr(dir)
}
