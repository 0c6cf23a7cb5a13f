// Package repeats bounds how often the log says the same.
package repeats

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	most    = 20 // records of one kind that are written in a period
	period  = time.Minute
	maxKind = 1000
)

// Handler writes at most 20 records a minute that have the same level, message and pipeline, whatever else they say. The
// last of them says that more are only counted, and the next that is written how many there were, in `repeats`.
type Handler struct {
	next  slog.Handler
	bound string // the attributes that all records of this handler have
	seen  *seen
}

type seen struct {
	mu    sync.Mutex
	now   func() time.Time
	kinds map[string]*kind
}

type kind struct {
	since   time.Time
	written int
	left    int // left out since one was written
}

var _ slog.Handler = (*Handler)(nil)

// New makes a Handler in front of next.
func New(next slog.Handler) *Handler {
	return &Handler{next: next, seen: &seen{now: time.Now, kinds: map[string]*kind{}}}
}

// Enabled is next's.
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// Handle passes the record on, or counts it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	var key strings.Builder
	key.WriteString(r.Level.String())
	key.WriteString(r.Message)
	key.WriteString(h.bound)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "pipeline" {
			key.WriteString(a.Value.String())
			return false
		}
		return true
	})
	write, last, left := h.seen.count(key.String())
	if !write {
		return nil
	}
	if last || left > 0 {
		r = r.Clone()
		if left > 0 {
			r.AddAttrs(slog.Int("repeats", left))
		}
		if last {
			r.AddAttrs(slog.String("more", "of the like is only counted for the rest of the minute"))
		}
	}
	return h.next.Handle(ctx, r)
}

func (s *seen) count(key string) (write, last bool, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	k := s.kinds[key]
	if k == nil {
		if len(s.kinds) >= maxKind {
			clear(s.kinds)
		}
		k = &kind{since: now}
		s.kinds[key] = k
	}
	if d := now.Sub(k.since); d >= period || d < 0 {
		k.since, k.written = now, 0
	}
	if k.written >= most {
		k.left++
		return false, false, 0
	}
	k.written++
	left, k.left = k.left, 0
	return true, k.written == most, left
}

// WithAttrs is a Handler whose records have attrs.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.next = h.next.WithAttrs(attrs)
	for _, a := range attrs {
		c.bound += a.String()
	}
	return &c
}

// WithGroup is a Handler whose records' attributes are in a group.
func (h *Handler) WithGroup(name string) slog.Handler {
	c := *h
	c.next = h.next.WithGroup(name)
	return &c
}
