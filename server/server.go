// Package server is the daemon's local API: JSON over HTTP on a loopback address, and metrics for Prometheus.
package server

import (
	"context"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/pipeline/manager"
)

//go:embed openapi.json
var openAPI []byte

// Limits of a request.
const (
	maxBody     = 64 << 10
	maxHeader   = 32 << 10
	maxConns    = 64
	waitLimit   = 60 * time.Second // for flush, reload and remove
	writeLimit  = waitLimit + 10*time.Second
	headerLimit = 5 * time.Second
)

// Pipelines is what the API serves; manager.Manager is it.
type Pipelines interface {
	Status() []manager.Status
	Get(name string) (manager.Status, error)
	Problems() []manager.Problem
	Ready() []string
	Alive(ctx context.Context) error
	Flush(ctx context.Context, name string) error
	Pause(name string) error
	Resume(name string) error
	Reload(ctx context.Context, name string) error
	Rescan(ctx context.Context) error
	Check(name string) ([]manager.Mistake, error)
	Remove(ctx context.Context, name string) error
	Removed(ctx context.Context) ([]string, error)
	Reloads() map[string]int64
	Dead(ctx context.Context, name string, f *deadletter.Filter, limit int) ([]*deadletter.Entry, int64, error)
	Replay(ctx context.Context, name string, f *deadletter.Filter) (*pipeline.Replay, error)
	Reset(ctx context.Context, name string, r pipeline.Reset) (int, error)
}

var _ Pipelines = (*manager.Manager)(nil)

// Options say what a Server works with.
type Options struct {
	Pipelines Pipelines
	// Registerer takes the pipelines' metrics, Gatherer gives what /metrics shows; both are usually one registry.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	Log        *slog.Logger
	Version    string
	Access     *Access // loaded; nil: everyone on this host
}

// Server answers requests.
type Server struct {
	o       Options
	http    *http.Server
	l       net.Listener
	started time.Time
	base    context.Context
	cancel  context.CancelFunc
}

// New makes a server for the listener and registers the metrics. Serve answers.
func New(l net.Listener, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := o.Registerer.Register(&collector{p: o.Pipelines}); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if o.Access == nil {
		o.Access = &Access{}
	}
	s := &Server{o: o, l: &limited{l, make(chan struct{}, maxConns)}, started: time.Now()}
	if o.Access.tls != nil {
		s.l = tls.NewListener(s.l, o.Access.tls)
	}
	s.base, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: headerLimit, ReadTimeout: 10 * time.Second, WriteTimeout: writeLimit,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return s.base }}
	return s, nil
}

// Addr is the address that is served, with https:// before it where there is TLS.
func (s *Server) Addr() string {
	if s.o.Access.tls != nil {
		return "https://" + s.l.Addr().String()
	}
	return s.l.Addr().String()
}

// Serve answers until Close; then it returns nil.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}

// Close ends requests that wait, lets the others end until ctx does, and stops serving.
func (s *Server) Close(ctx context.Context) error {
	s.cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(err, s.http.Close())
	}
	return nil
}

// WriteAddr tells clients on this host the address, in the state directory.
func WriteAddr(stateDir, addr string) error {
	if err := manager.WriteFile(filepath.Join(stateDir, "listen"), []byte(addr+"\n"), 0o640); err != nil {
		return fmt.Errorf("write the API's address: %w", err)
	}
	return nil
}

// RemoveAddr takes the address away again.
func RemoveAddr(stateDir string) { os.Remove(filepath.Join(stateDir, "listen")) }

// limited bounds how many connections are open at once.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &counted{Conn: c, slots: l.slots}, nil
		default:
			c.Close()
		}
	}
}

type counted struct {
	net.Conn
	slots chan struct{}
	done  atomic.Bool
}

func (c *counted) Close() error {
	if c.done.CompareAndSwap(false, true) {
		<-c.slots
	}
	return c.Conn.Close()
}

// answer is what a request that does something gets.
type answer struct {
	OK       bool              `json:"ok"`
	Error    string            `json:"error,omitempty"`
	Mistakes []manager.Mistake `json:"mistakes,omitempty"`
	Pipeline *manager.Status   `json:"pipeline,omitempty"`
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range s.routes() {
		mux.HandleFunc(pattern, h)
	}
	// A page in a browser on this host must not be able to stop a pipeline, nor read anything by a name of its own.
	guard := s.o.Access.guard(http.NewCrossOriginProtection().Handler(mux))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !s.o.Access.open() && !loopback(strings.Trim(host, "[]")) {
			reply(w, http.StatusForbidden, answer{Error: "the Host header is not a loopback address"})
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		guard.ServeHTTP(w, r)
	})
}

func (s *Server) routes() map[string]http.HandlerFunc {
	p := s.o.Pipelines
	metrics := promhttp.HandlerFor(s.o.Gatherer, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4})
	// act does something with a pipeline and answers with what it is afterwards.
	act := func(f func(ctx context.Context, name string) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			name := nameOf(r)
			ctx, cancel := context.WithTimeout(r.Context(), waitLimit)
			defer cancel()
			if err := f(ctx, name); err != nil {
				fail(w, err)
				return
			}
			a := answer{OK: true}
			if st, err := p.Get(name); err == nil {
				a.Pipeline = &st
			}
			reply(w, http.StatusOK, a)
		}
	}
	return map[string]http.HandlerFunc{
		"GET /v1/pipelines": func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, p.Status()) },
		"GET /v1/pipelines/{ns}/{name}": func(w http.ResponseWriter, r *http.Request) {
			st, err := p.Get(nameOf(r))
			if err != nil {
				fail(w, err)
				return
			}
			reply(w, http.StatusOK, st)
		},
		"DELETE /v1/pipelines/{ns}/{name}":      act(p.Remove),
		"POST /v1/pipelines/{ns}/{name}/flush":  act(p.Flush),
		"POST /v1/pipelines/{ns}/{name}/pause":  act(func(_ context.Context, name string) error { return p.Pause(name) }),
		"POST /v1/pipelines/{ns}/{name}/resume": act(func(_ context.Context, name string) error { return p.Resume(name) }),
		"POST /v1/pipelines/{ns}/{name}/reload": act(p.Reload),
		"POST /v1/pipelines/{ns}/{name}/check": func(w http.ResponseWriter, r *http.Request) {
			l, err := p.Check(nameOf(r))
			if err != nil {
				fail(w, err)
				return
			}
			a := answer{OK: true, Mistakes: l}
			for _, m := range l {
				a.OK = a.OK && m.Warning
			}
			reply(w, http.StatusOK, a)
		},
		"GET /v1/pipelines/{ns}/{name}/dead":         s.dead,
		"POST /v1/pipelines/{ns}/{name}/dead/replay": s.replay,
		"POST /v1/pipelines/{ns}/{name}/reset":       s.reset,
		"POST /v1/reload": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), waitLimit)
			defer cancel()
			if err := p.Rescan(ctx); err != nil {
				fail(w, err)
				return
			}
			reply(w, http.StatusOK, p.Status())
		},
		"GET /v1/problems": func(w http.ResponseWriter, r *http.Request) { reply(w, http.StatusOK, p.Problems()) },
		"GET /v1/removed": func(w http.ResponseWriter, r *http.Request) {
			names, err := p.Removed(r.Context())
			if err != nil {
				fail(w, err)
				return
			}
			reply(w, http.StatusOK, append([]string{}, names...))
		},
		"GET /healthz": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			defer cancel()
			if err := p.Alive(ctx); err != nil {
				reply(w, http.StatusServiceUnavailable, answer{Error: "rsetl hangs"})
				return
			}
			reply(w, http.StatusOK, map[string]any{"ok": true, "version": s.o.Version, "started_at": s.started.UTC()})
		},
		"GET /readyz": func(w http.ResponseWriter, r *http.Request) {
			reasons := p.Ready()
			if len(reasons) > 0 {
				reply(w, http.StatusServiceUnavailable, map[string]any{"ok": false, "reasons": reasons})
				return
			}
			reply(w, http.StatusOK, map[string]any{"ok": true, "reasons": []string{}})
		},
		"GET /metrics": metrics.ServeHTTP,
		"GET /openapi.json": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(openAPI)
		},
	}
}

func nameOf(r *http.Request) string { return r.PathValue("ns") + "/" + r.PathValue("name") }

func fail(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, manager.ErrUnknown):
		code = http.StatusNotFound
	case errors.Is(err, manager.ErrHasFile), errors.Is(err, manager.ErrBusy), errors.Is(err, manager.ErrNotRun):
		code = http.StatusConflict
	case errors.Is(err, manager.ErrStopping), errors.Is(err, context.Canceled):
		code = http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded):
		code = http.StatusGatewayTimeout
	}
	reply(w, code, answer{Error: err.Error()})
}

func reply(w http.ResponseWriter, code int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{"ok": false, "error": "the answer can't be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n'))
}
