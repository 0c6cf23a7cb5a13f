package mysql

import (
	"context"
	"crypto/rand"
	stdsql "database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/state"
)

// A lease is a row's owner, epoch, token and lease_until. The database's clock alone decides when it ends for others; this process ends
// it for itself one lease after the last successful renewal was sent, by its own monotonic clock, which is never later. A token belongs
// to one Acquire and is in no other row, so that it finds the row whatever became of the statement that wrote it. The epoch rises
// with each owner, and where the outcome of a commit is unknown, see settle. A commit compares both in the statement that locks the
// row, its last one: renewals don't wait for the rows before it, and an owner whose commit is in the middle can be replaced.

// entry is a pipeline's place in Store.leases.
type entry struct {
	name string
	sem  chan struct{} // held by what acquires, releases or moves
	last string        // the last lease's token: a row that still has it waits for nobody else
	l    *lease        // nil: not ours; under Store.mu
}

func (e *entry) lock(ctx context.Context) error {
	select {
	case e.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *entry) unlock() { <-e.sem }

type lease struct {
	name, token string
	ctx         context.Context // ends with the lease; the cause wraps state.ErrLost, or is errReleased
	cancel      context.CancelCauseFunc
	gone        chan struct{} // closed when the renewals have ended

	mu       sync.Mutex
	id       int64 // of the pipeline's row
	epoch    int64
	deadline time.Time
	doubt    bool // something may still be on its way to the server, or be in the row already
	lost     func(error)
}

var errReleased = errors.New("the lease was given up")

// key is what a commit compares.
func (l *lease) key() (id, epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id, l.epoch
}

// alive ends the lease where its time is over, and gives the reason of its end.
func (l *lease) alive() error {
	l.mu.Lock()
	late := !time.Now().Before(l.deadline)
	l.mu.Unlock()
	if late {
		l.lose("it could not be renewed in time")
	}
	return context.Cause(l.ctx)
}

func (l *lease) lose(why string) {
	l.cancel(fmt.Errorf("pipeline %s: %w: %s", l.name, state.ErrLost, why))
}

// join gives a context that ends with the lease too.
func (l *lease) join(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

func (s *Store) entry(name string) (*entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	e := s.leases[name]
	if e == nil {
		e = &entry{name: name, sem: make(chan struct{}, 1)}
		s.leases[name] = e
	}
	return e, nil
}

// held gives the pipeline's lease, which may have ended; nil where there is none.
func (s *Store) held(name string) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.leases[name]; e != nil {
		return e.l
	}
	return nil
}

func (s *Store) Acquire(ctx context.Context, pipeline string, lost func(error)) error {
	if err := checkNames(pipeline); err != nil {
		return err
	}
	e, err := s.entry(pipeline)
	if err != nil {
		return err
	}
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	if l := s.held(pipeline); l != nil && l.alive() == nil {
		l.mu.Lock()
		l.lost = lost
		l.mu.Unlock()
		return nil
	}
	return s.acquire(ctx, e, lost)
}

// acquire takes the lease. e is locked.
func (s *Store) acquire(ctx context.Context, e *entry, lost func(error)) (err error) {
	var b [16]byte
	rand.Read(b[:])
	l := &lease{name: e.name, token: hex.EncodeToString(b[:]), lost: lost, gone: make(chan struct{})}
	sent := false
	defer func() {
		if err != nil && sent && !errors.As(err, new(*state.HeldError)) {
			s.give(context.WithoutCancel(ctx), l) // it may have been taken all the same
		}
	}()
	tries := 0
	err = again(ctx, func() error {
		sent = true
		err := s.take(ctx, l, e.last)
		if tries++; tries > 3 && err != nil {
			return &final{err}
		}
		return err
	})
	if err != nil {
		var f *final
		if errors.As(err, &f) {
			err = f.err
		}
		if errors.As(err, new(*state.HeldError)) {
			return err
		}
		return s.wrap("acquire pipeline "+e.name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	l.ctx, l.cancel = context.WithCancelCause(s.done)
	e.l, e.last = l, l.token
	s.wg.Go(func() { s.keep(l) })
	return nil
}

// final is an error that isn't tried again.
type final struct{ err error }

func (f *final) Error() string { return f.err.Error() }

var errAgain = errors.New("the lease changes hands")

// take tries to write the lease into the row.
func (s *Store) take(ctx context.Context, l *lease, last string) error {
	micros := s.o.Lease.Microseconds()
	for range 5 {
		sent := time.Now()
		res, err := s.beat.ExecContext(ctx, "UPDATE "+s.name.pipelines+" SET owner = ?, token = ?, epoch = epoch + 1, lease_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND "+
			"WHERE name = ? AND (token IN ('', ?, ?) OR lease_until <= UTC_TIMESTAMP(6))", s.owner(), l.token, micros, []byte(l.name), l.token, last)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil {
			return err
		} else if n == 0 {
			var owner, token string
			var left stdsql.NullInt64
			err := s.beat.QueryRowContext(ctx, "SELECT owner, token, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_until) FROM "+s.name.pipelines+" WHERE name = ?", []byte(l.name)).
				Scan(&owner, &token, &left)
			switch {
			case err == nil && token == "", err == nil && left.Int64 <= 0:
				continue // it has become free meanwhile
			case err == nil:
				return &state.HeldError{Pipeline: l.name, Owner: owner, Until: time.Now().Add(time.Duration(left.Int64) * time.Microsecond)}
			case !errors.Is(err, stdsql.ErrNoRows):
				return err
			}
			_, err = s.beat.ExecContext(ctx, "INSERT INTO "+s.name.pipelines+" (name, owner, token, epoch, lease_until) VALUES (?, ?, ?, 1, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)",
				[]byte(l.name), s.owner(), l.token, micros)
			if mysqlconn.Number(err) == erDupEntry {
				continue
			}
			if err != nil {
				return err
			}
		}
		err = s.beat.QueryRowContext(ctx, "SELECT id, epoch FROM "+s.name.pipelines+" WHERE name = ? AND token = ?", []byte(l.name), l.token).Scan(&l.id, &l.epoch)
		if errors.Is(err, stdsql.ErrNoRows) {
			continue // this process was asleep for a whole lease
		}
		l.deadline = sent.Add(s.o.Lease)
		return err
	}
	return errAgain
}

func (s *Store) owner() string { return truncate(text([]byte(s.o.Owner)), maxName) }

// keep renews the lease until it ends.
func (s *Store) keep(l *lease) {
	defer close(l.gone)
	wait := s.o.Lease / 3
	for {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-l.ctx.Done():
			t.Stop()
		}
		if l.alive() == nil {
			wait = s.o.Lease / 3
			if err := s.renew(l); err != nil {
				if l.ctx.Err() == nil {
					s.o.Log.Warn("a lease could not be renewed; it is tried again until it ends", "pipeline", l.name, "err", err)
				}
				wait = s.o.Lease / 20
			}
			l.mu.Lock()
			wait = max(min(wait, time.Until(l.deadline)), 0)
			l.mu.Unlock()
			continue
		}
		if cause := context.Cause(l.ctx); errors.Is(cause, state.ErrLost) {
			l.mu.Lock()
			lost := l.lost
			l.mu.Unlock()
			if lost != nil {
				lost(cause)
			}
		}
		return
	}
}

// renew makes the lease's time begin anew, in one attempt that the lease outlives.
func (s *Store) renew(l *lease) error {
	l.mu.Lock()
	deadline := l.deadline
	l.mu.Unlock()
	sent := time.Now()
	if third := sent.Add(s.o.Lease / 3); third.Before(deadline) {
		deadline = third
	}
	ctx, cancel := context.WithDeadline(l.ctx, deadline)
	defer cancel()
	res, err := s.beat.ExecContext(ctx, "UPDATE "+s.name.pipelines+" SET lease_until = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND WHERE name = ? AND token = ?", s.o.Lease.Microseconds(), []byte(l.name), l.token)
	if err != nil {
		return s.wrap("renew the lease", err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return err
	}
	if n == 0 {
		s.taken(ctx, l)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadline = sent.Add(s.o.Lease)
	return nil
}

// taken ends a lease whose row is not ours any more.
func (s *Store) taken(ctx context.Context, l *lease) {
	var owner string
	why := "its row is gone"
	if err := s.beat.QueryRowContext(ctx, "SELECT owner FROM "+s.name.pipelines+" WHERE name = ?", []byte(l.name)).Scan(&owner); err == nil {
		if why = "nobody has it now"; owner != "" {
			why = "the instance " + owner + " has it now"
		}
	}
	l.lose(why)
}

// settle makes sure that nothing of an earlier try can still become visible. A COMMIT whose answer didn't come may be on its way, or
// done: raising the epoch waits for the latter, and fails the former.
func (s *Store) settle(ctx context.Context, l *lease) error {
	l.mu.Lock()
	doubt := l.doubt
	l.mu.Unlock()
	if !doubt {
		return nil
	}
	res, err := s.db.ExecContext(ctx, "UPDATE "+s.name.pipelines+" SET epoch = epoch + 1 WHERE name = ? AND token = ?", []byte(l.name), l.token)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil {
		return err
	} else if n == 0 {
		s.taken(ctx, l)
		return context.Cause(l.ctx)
	}
	var id, epoch int64
	if err := s.db.QueryRowContext(ctx, "SELECT id, epoch FROM "+s.name.pipelines+" WHERE name = ? AND token = ?", []byte(l.name), l.token).Scan(&id, &epoch); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.id, l.epoch, l.doubt = id, epoch, false
	return nil
}

func (l *lease) doubtful() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubt = true
}

func (s *Store) Release(ctx context.Context, pipeline string) error {
	if s.held(pipeline) == nil {
		return nil
	}
	e, err := s.entry(pipeline)
	if err != nil {
		return nil // Close has released it
	}
	if err := e.lock(ctx); err != nil {
		return err
	}
	defer e.unlock()
	return s.release(ctx, e)
}

// release gives the lease up. e is locked.
func (s *Store) release(ctx context.Context, e *entry) error {
	s.mu.Lock()
	l := e.l
	e.l = nil
	s.mu.Unlock()
	if l == nil {
		return nil
	}
	l.cancel(errReleased)
	if errors.Is(context.Cause(l.ctx), state.ErrLost) {
		return nil // its lost may be what calls us
	}
	<-l.gone
	return s.give(ctx, l)
}

// giveTimeout bounds what may be left undone, since the lease ends by itself.
const giveTimeout = 3 * time.Second

// give frees the row, and removes one that nothing was ever committed to.
func (s *Store) give(ctx context.Context, l *lease) error {
	ctx, cancel := context.WithTimeout(ctx, giveTimeout)
	defer cancel()
	err := again(ctx, func() error {
		_, err := s.beat.ExecContext(ctx, "UPDATE "+s.name.pipelines+" SET owner = '', token = '', lease_until = NULL WHERE name = ? AND token = ?", []byte(l.name), l.token)
		return err
	})
	if err == nil {
		_, err = s.beat.ExecContext(ctx, "DELETE FROM "+s.name.pipelines+" WHERE name = ? AND token = '' AND version = 0", []byte(l.name))
	}
	return s.wrap("release pipeline "+l.name, err)
}
