package mysql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"

	"github.com/rsetl/rsetl/state"
)

// Remove takes the pipeline's lease for its time, where this process doesn't have it: a *state.HeldError says that another one does. The
// state is gone at once, as a whole; its rows are deleted after that, piece by piece. What an earlier Remove left of that is done too.
func (s *Store) Remove(ctx context.Context, pipeline string) error {
	if err := checkNames(pipeline); err != nil {
		return err
	}
	err := s.move(ctx, []string{pipeline}, func(ctx context.Context, l []*lease) error { return s.remove(ctx, l[0]) })
	if err != nil {
		return s.wrapMove("remove the state of "+pipeline, err)
	}
	if err := s.sweep(ctx); err != nil {
		s.o.Log.Warn("not all rows of removed pipelines are deleted yet; the next removal goes on", "err", s.wrap("delete rows", err))
	}
	return nil
}

// Rename takes the leases of both names for its time, as Remove does. Which process has which name stays as it was.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	if err := checkNames(from, to); err != nil {
		return err
	}
	what := "rename the state of " + from + " to " + to
	taken := fmt.Errorf("%s: %w: the new name has state already", what, state.ErrConflict)
	if id, err := s.find(ctx, from); err != nil {
		return s.wrap(what, err)
	} else if id == 0 {
		return nil
	}
	if from == to {
		return taken
	}
	err := s.move(ctx, []string{from, to}, func(ctx context.Context, l []*lease) error {
		err := s.rename(ctx, l[0], l[1])
		if errors.Is(err, state.ErrConflict) {
			return taken
		}
		return err
	})
	if err != nil && !errors.Is(err, taken) {
		return s.wrapMove(what, err)
	}
	return err
}

func (s *Store) wrapMove(what string, err error) error {
	if errors.As(err, new(*state.HeldError)) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.wrap(what, err)
}

// move calls f with the leases of these names, again after failures that may be gone then. Leases that weren't there are given up after it.
func (s *Store) move(ctx context.Context, names []string, f func(ctx context.Context, l []*lease) error) error {
	if s.isClosed() {
		return errClosed
	}
	entries := make([]*entry, len(names))
	for i, name := range names {
		e, err := s.entry(name)
		if err != nil {
			return err
		}
		entries[i] = e
	}
	first, last := entries[0], entries[len(entries)-1]
	if last.name < first.name { // all in one order, so that none waits for another crosswise
		first, last = last, first
	}
	if err := first.lock(ctx); err != nil {
		return err
	}
	defer first.unlock()
	if last != first {
		if err := last.lock(ctx); err != nil {
			return err
		}
		defer last.unlock()
	}
	leases := make([]*lease, len(entries))
	for i, e := range entries {
		l := s.held(e.name)
		if l == nil || l.alive() != nil {
			if err := s.acquire(ctx, e, nil); err != nil {
				return err
			}
			mine := s.held(e.name)
			defer func() {
				if err := s.release(context.WithoutCancel(ctx), e); err != nil {
					s.o.Log.Warn("a pipeline could not be given up; other instances take it when the lease ends", "err", err)
				}
				if l != nil { // what was lost before stays so for commits
					s.mu.Lock()
					e.l = l
					s.mu.Unlock()
				}
			}()
			l = mine
		}
		leases[i] = l
		var stop func()
		ctx, stop = l.join(ctx)
		defer stop()
	}
	return again(ctx, func() error {
		for _, l := range leases {
			if err := s.settle(ctx, l); err != nil {
				return err
			}
		}
		err := f(ctx, leases)
		if err != nil {
			return err
		}
		for _, l := range leases { // their rows have changed
			l.doubtful()
			if err := s.settle(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
}

// row is a pipeline's row, locked.
type row struct {
	id, version, epoch int64
	until              string
}

func (t *tx) lock(l *lease) (r row, err error) {
	id, epoch := l.key()
	err = t.conn.QueryRowContext(t.ctx, "SELECT id, version, epoch, lease_until FROM "+t.s.name.pipelines+" WHERE id = ? AND token = ? AND epoch = ? FOR UPDATE", id, l.token, epoch).
		Scan(&r.id, &r.version, &r.epoch, &r.until)
	if errors.Is(err, stdsql.ErrNoRows) {
		t.s.taken(t.ctx, l)
		return r, context.Cause(l.ctx)
	}
	return r, err
}

// removed is the name of a removed pipeline's row until its other rows are deleted.
const removed = "\x00"

func (s *Store) remove(ctx context.Context, l *lease) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	r, err := t.lock(l)
	if err != nil || r.version == 0 {
		return err
	}
	if _, err := t.count("UPDATE "+s.name.pipelines+" SET name = ?, owner = '', token = '', lease_until = NULL, version = 0, counters = NULL, raw = NULL WHERE id = ?",
		fmt.Appendf(nil, removed+"%d", r.id), r.id); err != nil {
		return err
	}
	if _, err := t.count("INSERT INTO "+s.name.pipelines+" (name, owner, token, epoch, lease_until) VALUES (?, ?, ?, ?, ?)", []byte(l.name), s.owner(), l.token, r.epoch, r.until); err != nil {
		return err
	}
	return t.finish(l)
}

const sweepRows = 10_000

// sweep deletes the rows of removed pipelines.
func (s *Store) sweep(ctx context.Context) error {
	var ids []int64
	err := each(ctx, s.db, "SELECT id FROM "+s.name.pipelines+" WHERE name >= ? AND name < ?", []any{[]byte(removed), []byte{1}}, func(rows *stdsql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		for _, table := range s.name.state() {
			for more := true; more; {
				err := again(ctx, func() error {
					res, err := s.db.ExecContext(ctx, fmt.Sprintf("DELETE FROM %s WHERE pipeline = %d LIMIT %d", table, id, sweepRows))
					if err != nil {
						return err
					}
					n, err := res.RowsAffected()
					more = n == sweepRows
					return err
				})
				if err != nil {
					return err
				}
			}
		}
		if _, err := s.db.ExecContext(ctx, "DELETE FROM "+s.name.pipelines+" WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// rename exchanges the names of two rows, with the leases that go with them. It may be done twice.
func (s *Store) rename(ctx context.Context, from, to *lease) error {
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	a, err := t.lock(from)
	if err != nil || a.version == 0 {
		return err
	}
	b, err := t.lock(to)
	if err != nil {
		return err
	}
	if b.version > 0 {
		return state.ErrConflict
	}
	if _, err := t.count("UPDATE "+s.name.pipelines+" SET name = ? WHERE id = ?", fmt.Appendf(nil, removed+"%d", b.id), b.id); err != nil {
		return err
	}
	epoch := max(a.epoch, b.epoch)
	for _, m := range []struct {
		id    int64
		l     *lease
		until string
	}{{a.id, to, b.until}, {b.id, from, a.until}} {
		if _, err := t.count("UPDATE "+s.name.pipelines+" SET name = ?, token = ?, epoch = ?, lease_until = ? WHERE id = ?", []byte(m.l.name), m.l.token, epoch, m.until, m.id); err != nil {
			return err
		}
	}
	return t.finish(from, to)
}
