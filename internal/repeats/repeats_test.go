package repeats

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestHandler(t *testing.T) {
	var out bytes.Buffer
	h := New(slog.NewTextHandler(&out, nil))
	at := time.Unix(1_800_000_000, 0)
	h.seen.now = func() time.Time { return at }
	log := slog.New(h)
	lines := func() []string {
		defer out.Reset()
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	for i := range 50 {
		log.Info("file was renamed", "file", i, "pipeline", "a")
	}
	if l := lines(); len(l) != 20 || !strings.Contains(l[19], "only counted") || strings.Contains(l[18], "only counted") {
		t.Errorf("%d lines: %q", len(l), l)
	}
	// Another pipeline, another message, another level, a bound attribute: each is another kind.
	log.Info("file was renamed", "pipeline", "b")
	log.Info("file is gone", "pipeline", "a")
	log.Warn("file was renamed", "pipeline", "a")
	log.With("pipeline", "a", "sink", "s").Info("file was renamed")
	if l := lines(); len(l) != 4 {
		t.Errorf("%q", l)
	}
	at = at.Add(time.Minute)
	log.Info("file was renamed", "pipeline", "a")
	log.Info("file was renamed", "pipeline", "a")
	if l := lines(); len(l) != 2 || !strings.Contains(l[0], "repeats=30") || strings.Contains(l[1], "repeats") {
		t.Errorf("%q", l)
	}
	for i := range 10_000 {
		log.Info(fmt.Sprint(i))
	}
	if n := len(h.seen.kinds); n > maxKind {
		t.Errorf("%d kinds are kept", n)
	}
}
