package pipeline

import (
	"context"
	"fmt"
	"log/slog"
)

// masked is a log handler that hides a file's secrets, wherever a component puts them.
type masked struct {
	slog.Handler
	mask func(string) string
}

func (h masked) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.mask(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h masked) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, h.mask(v.String()))
	case slog.KindAny:
		return slog.String(a.Key, h.mask(fmt.Sprint(v.Any())))
	}
	return a
}

func (h masked) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return masked{h.Handler.WithAttrs(out), h.mask}
}

func (h masked) WithGroup(name string) slog.Handler {
	return masked{h.Handler.WithGroup(name), h.mask}
}

// maskedError is an error whose text hides secrets.
type maskedError struct {
	error
	text string
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.error }

// Mask gives an error that says the same without the file's secrets.
func (r *Runner) Mask(err error) error { return maskedError{err, r.mask(err.Error())} }
