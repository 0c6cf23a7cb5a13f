package reload

import (
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe is refused before it is opened: it would wait for its writer.
func TestPipe(t *testing.T) {
	p := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(p, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	f := New(p, time.Hour, slog.New(slog.DiscardHandler), func(string) (*int, error) {
		t.Error("the pipe was loaded")
		return new(int), nil
	})
	if _, err := f.Get(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}
