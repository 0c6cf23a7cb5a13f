// Package reload keeps what a file holds, and takes it anew when the file changes.
package reload

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// File is what is loaded from a file. Any number of goroutines may use it: while one loads, the others go on with what was
// there before.
type File[T any] struct {
	path  string
	every time.Duration
	load  func(path string) (*T, error)
	log   *slog.Logger
	now   func() time.Time

	cur  atomic.Pointer[T]
	next atomic.Int64 // when to look at the file again, in ns since 1970
	mu   sync.Mutex   // held by who looks at the file
	seen os.FileInfo
	err  atomic.Pointer[error]
}

// New keeps the file at path, which is looked at no more than once per every.
func New[T any](path string, every time.Duration, log *slog.Logger, load func(path string) (*T, error)) *File[T] {
	return &File[T]{path: path, every: every, load: load, log: log, now: time.Now}
}

// Get gives what the file holds. An error means that it never could be loaded; a file that can't be loaded any more leaves
// what was there before, which is logged. It is called once per batch.
func (f *File[T]) Get() (*T, error) {
	now := f.now().UnixNano()
	if due := f.next.Load(); now >= due {
		if f.cur.Load() == nil {
			f.mu.Lock() // nobody can go on without
		} else if !f.mu.TryLock() {
			return f.cur.Load(), nil
		}
		if now >= f.next.Load() {
			f.look()
			f.next.Store(now + int64(f.every))
		}
		f.mu.Unlock()
	}
	v := f.cur.Load()
	if v == nil {
		return nil, *f.err.Load()
	}
	return v, nil
}

// look loads the file where it has changed.
func (f *File[T]) look() {
	st, err := os.Stat(f.path)
	if err == nil && f.seen != nil && os.SameFile(st, f.seen) && st.ModTime().Equal(f.seen.ModTime()) && st.Size() == f.seen.Size() {
		return
	}
	if err == nil && !st.Mode().IsRegular() {
		err = errors.New("not a regular file") // opening a named pipe would wait for its writer
	}
	var v *T
	if err == nil {
		v, err = f.load(f.path)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", f.path, err)
		if old := f.err.Load(); f.cur.Load() != nil && (old == nil || (*old).Error() != err.Error()) {
			f.log.Warn("the file can't be loaded; what it held before stays", "err", err)
		}
		f.err.Store(&err)
		return
	}
	if f.cur.Swap(v) != nil {
		f.log.Info("the file has changed and is loaded", "path", f.path)
	}
	f.seen = st
	f.err.Store(nil)
}
