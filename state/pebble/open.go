// Package pebble is the local state store: one Pebble database for all pipelines of a state directory.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsetl/rsetl/state"
)

// marker is the file that says that a directory is rsetl's, and its format.
const (
	marker  = "RSETL"
	version = "rsetl state 1\n"
)

// Options are for tests and the daemon; the zero value is right for most.
type Options struct {
	FS  vfs.FS // nil: the disk; the marker is always on the disk
	Log *slog.Logger
	// Reserve is the free space in bytes that a commit leaves on the disk, so that
	// it fails cleanly before the database does. 0: 16 MiB.
	Reserve uint64
}

// Store is a state.Store.
type Store struct {
	db  *pebble.DB
	dir string
	o   Options

	// failed is closed when the database can't go on; err is why.
	failed chan struct{}
	once   sync.Once
	err    error
}

var _ state.Store = (*Store)(nil)

// Open opens the state directory, making it where it is missing (mode 0750). Errors wrap
// state.ErrInUse, ErrForeign or ErrCorrupt where they are that.
func Open(dir string, o Options) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Reserve == 0 {
		o.Reserve = 16 << 20
	}
	if err := claim(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, o: o, failed: make(chan struct{})}
	store := filepath.Join(dir, "store")
	opts := &pebble.Options{
		FS:                          o.FS,
		Logger:                      logger{s},
		MemTableSize:                2 << 20,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
		MaxOpenFiles:                64,
		FormatMajorVersion:          pebble.FormatNewest,
		DisableAutomaticCompactions: false,
	}
	cache := pebble.NewCache(4 << 20)
	defer cache.Unref()
	opts.Cache = cache
	type opened struct {
		db  *pebble.DB
		err error
	}
	// The database may end its goroutine through logger.Fatalf.
	done := make(chan opened, 1)
	go func() {
		out := opened{err: errors.New("the database gave up")}
		defer func() {
			if r := recover(); r != nil {
				out.err = fmt.Errorf("the database gave up: %v", r)
			}
			done <- out
		}()
		out.db, out.err = pebble.Open(store, opts)
	}()
	got := <-done
	if got.err != nil {
		return nil, openError(dir, store, got.err)
	}
	s.db = got.db
	return s, nil
}

func openError(dir, store string, err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && strings.Contains(err.Error(), "LOCK") || strings.Contains(err.Error(), "lock held by current process"):
		return fmt.Errorf("open state directory %s: %w; stop that process or choose another --state-dir", dir, state.ErrInUse)
	case pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open state directory %s: %w: %v; nothing was changed: restore it from a backup, or move it away to start anew (files are then read from `start`, sinks that store positions still skip what they have)", dir, state.ErrCorrupt, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open state directory %s: %w", dir, err)
	}
	if _, e := os.Stat(filepath.Join(store, "CURRENT")); e == nil || len(glob(store, "marker.manifest.*")) > 0 {
		return fmt.Errorf("open state directory %s: %w: %v", dir, state.ErrCorrupt, err)
	}
	return fmt.Errorf("open state directory %s: %w", dir, err)
}

func glob(dir, pattern string) []string {
	l, _ := filepath.Glob(filepath.Join(dir, pattern))
	return l
}

// claim makes the directory rsetl's, or checks that it is.
func claim(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	path := filepath.Join(dir, marker)
	got, err := os.ReadFile(path)
	switch {
	case err == nil && string(got) == version:
		return nil
	case err == nil && len(got) > 0:
		return fmt.Errorf("state directory %s: %w: its format is %q, this rsetl knows %q", dir, state.ErrForeign, strings.TrimSpace(string(got)), strings.TrimSpace(version))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("state directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		if n := e.Name(); n != marker && n != marker+".new" && n != "lost+found" {
			return fmt.Errorf("state directory %s: %w: it holds %s; choose an empty or a new directory", dir, state.ErrForeign, n)
		}
	}
	if err := writeSynced(path, version); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

func writeSynced(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// logger passes on what the database says. Its Fatalf must not return; the database's goroutine ends and
// every later call of the store says why.
type logger struct{ s *Store }

func (l logger) Infof(string, ...any) {}
func (l logger) Errorf(f string, a ...any) {
	l.s.o.Log.Error("state store: " + fmt.Sprintf(f, a...))
}
func (l logger) Eventf(context.Context, string, ...any) {}
func (l logger) IsTracingEnabled(context.Context) bool  { return false }
func (l logger) Fatalf(f string, a ...any) {
	l.s.fail(fmt.Errorf(f, a...))
	select {} // whoever waits for this goroutine is let go through failed
}

func (s *Store) fail(err error) {
	s.once.Do(func() {
		s.err = fmt.Errorf("%w: %v; what was committed is safe: mend the disk and start again", state.ErrFailed, err)
		close(s.failed)
		s.o.Log.Error("state store failed", "err", err)
	})
}

// guard runs f, which uses the database, and returns early when the database fails for good.
func (s *Store) guard(ctx context.Context, f func() error) error {
	select {
	case <-s.failed:
		return s.err
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := errors.New("the database gave up")
		defer func() {
			if r := recover(); r != nil {
				s.fail(fmt.Errorf("%v", r))
				err = s.err
			}
			done <- err
		}()
		err = f()
	}()
	select {
	case err := <-done:
		return err
	case <-s.failed:
		return s.err
	}
}

// Close closes the database; committed state is durable already.
func (s *Store) Close() error {
	return s.guard(context.Background(), s.db.Close)
}
