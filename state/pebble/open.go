// Package pebble is the local state store: one Pebble database for all pipelines of a state directory.
package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

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
	FS  vfs.FS // nil: the disk
	Log *slog.Logger
	// Reserve is the free space in bytes that a commit leaves on the disk, so that
	// it fails cleanly before the database does. 0: 16 MiB.
	Reserve uint64

	memTable           uint64        // bytes; 0: 2 MiB
	renameChunk        int           // bytes of a pipeline's state that one batch of Rename copies; 0: 1 MiB
	pauseMin, pauseMax time.Duration // between attempts to open the database again after a failure; 0: 1 s, 1 min
}

// Store is a state.Store.
//
// After a write that failed it opens its database anew, at the next call, and goes on.
type Store struct {
	dir string
	o   Options

	mu      sync.Mutex
	cur     *engine
	closed  bool
	retryAt time.Time     // a failed engine is not replaced before
	pause   time.Duration // 0 after a commit that succeeded
	found   os.FileInfo   // the database's folder as it was opened; nil where it is not on the disk
	used    atomic.Bool   // the used file is there
	marking sync.Mutex    // held while it is made
}

var _ state.Store = (*Store)(nil)

// Open opens the state directory, making it where it is missing (mode 0750). Errors wrap
// state.ErrInUse, ErrForeign or ErrCorrupt where they are that; nothing was changed then.
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
	if o.memTable == 0 {
		o.memTable = 2 << 20
	}
	if o.renameChunk == 0 {
		o.renameChunk = 1 << 20
	}
	if o.pauseMax == 0 {
		o.pauseMin, o.pauseMax = time.Second, time.Minute
	}
	s := &Store{dir: dir, o: o}
	e, err := s.open()
	if err != nil {
		return nil, err
	}
	s.cur = e
	return s, nil
}

// format is Pebble's own. Raising it makes stores that an older rsetl can't open: raise version with it.
const format = pebble.FormatValueSeparation

func (s *Store) open() (*engine, error) {
	if err := s.claim(); err != nil {
		return nil, err
	}
	// Opening replays the log into tables and writes a new manifest.
	if u, err := s.o.FS.GetDiskUsage(s.dir); err == nil && u.AvailBytes < s.o.Reserve/2 {
		return nil, fmt.Errorf("open state directory %s: %w: %d MiB are free, rsetl needs %d MiB to start; make room", s.dir, syscall.ENOSPC, u.AvailBytes>>20, s.o.Reserve>>21)
	}
	e := s.newEngine()
	opts := &pebble.Options{
		FS:                         e.fence,
		Logger:                     logger{s, e},
		MemTableSize:               s.o.memTable,
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
		MaxOpenFiles:               64,
		L0StopWritesThreshold:      100, // a commit must not wait for compactions, least of all behind a closed fence
		FormatMajorVersion:         format,
		EventListener: &pebble.EventListener{
			// Pebble repeats a failed flush or compaction without a pause: opening anew has one.
			BackgroundError: func(err error) {
				if e.failure() != nil {
					time.Sleep(10 * time.Millisecond) // until bury has closed it
				}
				s.fail(e, err)
			},
			// The call that met it fails with it; others may go on.
			DataCorruption: func(i pebble.DataCorruptionInfo) { s.o.Log.Error("state store: damaged file", "what", i.String()) },
		},
	}
	cache := pebble.NewCache(4 << 20)
	defer cache.Unref()
	opts.Cache = cache
	store := s.o.FS.PathJoin(s.dir, "store")
	var err error
	func() {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		e.db, err = pebble.Open(store, opts)
	}()
	close(e.ready)
	if failure := e.failure(); failure != nil {
		select { // its lock must be free for the next attempt
		case <-e.buried:
		case <-time.After(closeGrace):
		}
		err = failure
	}
	if err != nil {
		return nil, s.openError(store, err)
	}
	if err := s.checkUsed(e.db); err != nil {
		e.close()
		return nil, err
	}
	if s.o.FS == vfs.Default {
		s.found, _ = os.Stat(store)
	}
	return e, nil
}

const restore = "restore it from a backup, or move it away to start anew (files are then read from `start`, sinks that store positions still skip what they have)"

func (s *Store) openError(store string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process"):
		return fmt.Errorf("open state directory %s: %w; stop that process or choose another --state-dir", s.dir, state.ErrInUse)
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("open state directory %s: %w: a newer rsetl has written it: %w", s.dir, state.ErrForeign, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("open state directory %s: %w; make room", s.dir, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open state directory %s: %w; make it writable for rsetl's user or choose another --state-dir", s.dir, err)
	case pebble.IsCorruptionError(err) || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open state directory %s: %w: %s; nothing was changed: %s", s.dir, state.ErrCorrupt, firstLine(err), restore)
	case errors.As(err, &errno):
		return fmt.Errorf("open state directory %s: %w", s.dir, err)
	}
	if names, e := s.o.FS.List(store); e == nil {
		for _, n := range names {
			if strings.HasPrefix(n, "marker.manifest.") {
				return fmt.Errorf("open state directory %s: %w: %s; nothing was changed: %s", s.dir, state.ErrCorrupt, firstLine(err), restore)
			}
		}
	}
	return fmt.Errorf("open state directory %s: %w", s.dir, err)
}

// claim makes the directory rsetl's, or checks that it is.
func (s *Store) claim() error {
	f := s.o.FS
	if err := makeSynced(f, s.dir); err != nil {
		return s.claimError("make", err)
	}
	path := f.PathJoin(s.dir, marker)
	got, err := readFile(f, path)
	if err == nil && got == version {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.claimError("open", err)
	}
	if err == nil && !strings.HasPrefix(version, got) {
		return fmt.Errorf("state directory %s: %w: its %s file says %q, this rsetl knows %q", s.dir, state.ErrForeign, marker, head(got), strings.TrimSpace(version))
	}
	names, lerr := f.List(s.dir)
	if lerr != nil {
		return s.claimError("open", lerr)
	}
	for _, n := range names {
		switch {
		case n == marker, n == marker+".new", n == usedFile, n == usedFile+".new", n == "lost+found":
		case err == nil && n == "store":
			return fmt.Errorf("state directory %s: %w: its %s file is cut short; if the directory is rsetl's, write %q into it", s.dir, state.ErrCorrupt, path, version)
		default:
			return fmt.Errorf("state directory %s: %w: it holds %s; choose an empty or a new directory", s.dir, state.ErrForeign, n)
		}
	}
	if err := writeSynced(f, s.dir, path, version); err != nil {
		return s.claimError("make", err)
	}
	return nil
}

func (s *Store) claimError(what string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOSPC):
		hint = "; make room"
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		hint = "; make it writable for rsetl's user or choose another --state-dir"
	}
	return fmt.Errorf("%s state directory %s: %w%s", what, s.dir, err, hint)
}

func head(text string) string {
	text = strings.TrimSpace(text)
	return text[:min(len(text), 40)]
}

func readFile(f vfs.FS, path string) (string, error) {
	file, err := f.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	p, err := io.ReadAll(io.LimitReader(file, 1<<10))
	return string(p), err
}

// makeSynced makes the directory and those above it.
func makeSynced(f vfs.FS, dir string) error {
	_, err := f.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	up := f.PathDir(dir)
	if up != dir {
		if err := makeSynced(f, up); err != nil {
			return err
		}
	}
	if err := f.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return syncDir(f, up)
}

func syncDir(f vfs.FS, dir string) error {
	d, err := f.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeSynced makes the file as a whole or not at all.
func writeSynced(f vfs.FS, dir, path, text string) error {
	file, err := f.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(text))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := f.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(f, dir)
}

// Close waits for calls that are in progress and closes the database; committed state is durable already.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	e := s.cur
	s.mu.Unlock()
	var err error
	if e.failure() == nil {
		err = e.close()
	}
	if e.failure() != nil {
		select { // so that the directory is free
		case <-e.buried:
		case <-time.After(closeGrace):
		}
		return nil
	}
	return err
}
