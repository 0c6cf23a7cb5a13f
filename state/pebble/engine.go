package pebble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsetl/rsetl/state"
)

// engine is one opening of the database. After a failed write nothing that it says counts; the
// store closes it and opens another.
type engine struct {
	db     *pebble.DB
	fence  *fence
	once   sync.Once
	failed chan struct{} // closed after err is set
	err    error
	ready  chan struct{} // closed when Open has returned; db is nil where it failed
	gate   sync.Mutex    // orders ops.Add and failed
	ops    sync.WaitGroup
	shut   sync.Once
	buried chan struct{} // closed when the engine is closed and its lock is free
}

func (s *Store) newEngine() *engine {
	e := &engine{failed: make(chan struct{}), ready: make(chan struct{}), buried: make(chan struct{})}
	e.fence = &fence{FS: s.o.FS, failed: func(err error) { s.fail(e, err) }}
	return e
}

// fail marks the engine as failed. It is called from within the database, with any of its locks held.
func (s *Store) fail(e *engine, err error) {
	e.once.Do(func() {
		e.fence.shut.Store(true)
		e.err = err
		close(e.failed)
		s.o.Log.Error("state store failed", "dir", s.dir, "err", err)
		go s.bury(e)
	})
}

func (e *engine) failure() error {
	select {
	case <-e.failed:
		return e.err
	default:
		return nil
	}
}

// logger passes on what the database says.
type logger struct {
	s *Store
	e *engine
}

func (l logger) Infof(string, ...any) {}
func (l logger) Errorf(f string, a ...any) {
	l.s.o.Log.Error("state store: " + fmt.Sprintf(f, a...))
}
func (l logger) Eventf(context.Context, string, ...any) {}
func (l logger) IsTracingEnabled(context.Context) bool  { return false }

// Fatalf may return, whatever its contract says: with the fence closed, what the caller goes on to do doesn't reach the
// disk, and each place in pebble v2.1.7 that calls it outside of its invariants builds then returns an error or goes on.
func (l logger) Fatalf(f string, a ...any) { l.s.fail(l.e, fmt.Errorf(f, a...)) }

// closeGrace is how long a failed engine may take to close before it is given up.
const closeGrace = 10 * time.Second

func (e *engine) close() (err error) {
	e.ops.Wait()
	e.shut.Do(func() {
		if e.db != nil {
			err = e.db.Close()
		}
	})
	return err
}

// bury closes a failed engine, whose lock on the directory a next one needs.
func (s *Store) bury(e *engine) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				s.o.Log.Error("state store: close after a failure", "err", r)
			}
		}()
		<-e.ready
		e.gate.Lock() // who has seen the engine well is counted in ops now
		//lint:ignore SA2001 taking the lock once is the wait
		e.gate.Unlock()
		e.close() // its error is about what the fence kept away
	}()
	select {
	case <-done:
		close(e.buried)
		s.o.Log.Info("state store closed after its failure; the next use opens it again", "dir", s.dir)
	case <-time.After(closeGrace):
		s.o.Log.Error("state store: it can't be closed after its failure; restart the process", "dir", s.dir)
	}
}

// enter gives the engine to use, counted in its ops.
func (s *Store) enter(ctx context.Context) (*engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := s.cur
	err := e.enter()
	if err != nil {
		select {
		case <-e.buried:
		default:
			return nil, s.downError(err)
		}
		if time.Now().Before(s.retryAt) {
			return nil, s.downError(err)
		}
		s.pause = min(max(2*s.pause, s.o.pauseMin), s.o.pauseMax)
		s.retryAt = time.Now().Add(s.pause)
		next, oerr := s.open()
		if oerr != nil {
			if errors.Is(oerr, state.ErrCorrupt) || errors.Is(oerr, state.ErrForeign) {
				return nil, fmt.Errorf("%w: %w", state.ErrFailed, oerr)
			}
			return nil, fmt.Errorf("the state store failed (%v) and can't be opened again yet: %w", err, oerr)
		}
		s.o.Log.Info("state store works again", "dir", s.dir)
		s.cur, e = next, next
		if err := e.enter(); err != nil {
			return nil, s.downError(err)
		}
	}
	return e, nil
}

// enter counts a call, unless the engine has failed.
func (e *engine) enter() error {
	e.gate.Lock()
	defer e.gate.Unlock()
	if err := e.failure(); err != nil {
		return err
	}
	e.ops.Add(1)
	return nil
}

func (s *Store) downError(err error) error {
	if pebble.IsCorruptionError(err) {
		err = fmt.Errorf("%w: %s", state.ErrCorrupt, firstLine(err))
	}
	return fmt.Errorf("state store %s: %w; what was committed is safe, mend the disk: the store is opened again by itself", s.dir, err)
}

var errClosed = errors.New("state store is closed")

// use runs f with an engine, which stays open meanwhile.
func (s *Store) use(ctx context.Context, f func(db *pebble.DB) error) (err error) {
	e, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			if p, ok := r.(callersPanic); ok {
				e.ops.Done()
				panic(p.v)
			}
			s.fail(e, fmt.Errorf("panic: %v", r))
		}
		e.ops.Done()
		// What the database says behind a closed fence is not true. The fence closes a moment before the
		// failure is noted.
		if e.fence.shut.Load() {
			<-e.failed
		}
		if failure := e.failure(); failure != nil {
			err = s.downError(failure)
		} else if err != nil && pebble.IsCorruptionError(err) {
			err = fmt.Errorf("state directory %s: %w: %s; %s", s.dir, state.ErrCorrupt, firstLine(err), restore)
		}
	}()
	return f(e.db)
}

// callersPanic is a panic of a caller's function, not of the database.
type callersPanic struct{ v any }

// firstLine leaves out what Pebble's errors about damage carry along in further lines.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}
