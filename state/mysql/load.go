package mysql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"math"

	"github.com/rsetl/rsetl/state"
)

// reader is what reads go through: a pool, or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*stdsql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *stdsql.Row
}

// each calls scan for each row.
func each(ctx context.Context, r reader, query string, args []any, scan func(rows *stdsql.Rows) error) error {
	rows, err := r.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ready is what every read begins with.
func (s *Store) ready(ctx context.Context, pipeline string) error {
	if s.isClosed() {
		return errClosed
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	l := s.held(pipeline)
	if l == nil {
		return nil
	}
	if err := s.settle(ctx, l); err != nil && !errors.Is(err, state.ErrLost) && !errors.Is(err, errReleased) { // who took it has settled it
		return err
	}
	return nil
}

// find gives the id of a pipeline that has state; 0: it has none.
func (s *Store) find(ctx context.Context, pipeline string) (id int64, err error) {
	if err := s.ready(ctx, pipeline); err != nil {
		return 0, err
	}
	err = s.db.QueryRowContext(ctx, "SELECT id FROM "+s.name.pipelines+" WHERE name = ? AND version > 0", []byte(pipeline)).Scan(&id)
	if errors.Is(err, stdsql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func (s *Store) Load(ctx context.Context, pipeline string) (*state.Snapshot, error) {
	if err := checkNames(pipeline); err != nil {
		return nil, err
	}
	if err := s.ready(ctx, pipeline); err != nil {
		return nil, s.wrap("load "+pipeline, err)
	}
	snap, err := s.load(ctx, pipeline)
	if err != nil {
		return nil, s.wrap("load "+pipeline, err)
	}
	return snap, nil
}

func (s *Store) load(ctx context.Context, pipeline string) (*state.Snapshot, error) {
	snap := &state.Snapshot{Counters: map[string]int64{}, Parts: map[string][]byte{}, NextSeq: map[string]int64{}}
	// All of it as of the first SELECT.
	t, err := s.db.BeginTx(ctx, &stdsql.TxOptions{Isolation: stdsql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer t.Rollback()
	var id int64
	var counters, rest []byte
	err = t.QueryRowContext(ctx, "SELECT id, counters, raw FROM "+s.name.pipelines+" WHERE name = ? AND version > 0", []byte(pipeline)).Scan(&id, &counters, &rest)
	if errors.Is(err, stdsql.ErrNoRows) {
		snap.Fresh = true
		return snap, nil
	}
	if err != nil {
		return nil, err
	}
	if snap.Counters, err = decodeCounters(counters, rest); err != nil {
		return nil, err
	}
	err = each(ctx, t, "SELECT "+splitColumns+" FROM "+s.name.splits+" WHERE pipeline = ? ORDER BY split", []any{id}, func(rows *stdsql.Rows) error {
		sp, err := scanSplit(rows)
		snap.Splits = append(snap.Splits, sp)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, t, "SELECT name, value FROM "+s.name.parts+" WHERE pipeline = ?", []any{id}, func(rows *stdsql.Rows) error {
		var name string
		var value []byte
		err := rows.Scan(&name, &value)
		snap.Parts[name] = value
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, t, "SELECT target, next_seq FROM "+s.name.targets+" WHERE pipeline = ?", []any{id}, func(rows *stdsql.Rows) error {
		var target string
		var next int64
		err := rows.Scan(&target, &next)
		snap.NextSeq[target] = next
		return err
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func (s *Store) Outbox(ctx context.Context, pipeline, target string, after int64, limit int) (out []state.Firing, err error) {
	if err := checkNames(pipeline, target); err != nil {
		return nil, err
	}
	if after == math.MaxInt64 || limit <= 0 {
		return nil, nil
	}
	id, err := s.find(ctx, pipeline)
	if err == nil && id != 0 {
		err = each(ctx, s.db, "SELECT seq, data FROM "+s.name.outbox+" WHERE pipeline = ? AND target = ? AND seq > ? ORDER BY seq LIMIT ?",
			[]any{id, []byte(target), after, limit}, func(rows *stdsql.Rows) error {
				f := state.Firing{Target: target}
				err := rows.Scan(&f.Seq, &f.Data)
				out = append(out, f)
				return err
			})
	}
	if err != nil {
		return nil, s.wrap("read the outbox of "+pipeline, err)
	}
	return out, nil
}

func (s *Store) Pipelines(ctx context.Context) (out []string, err error) {
	if s.isClosed() {
		return nil, errClosed
	}
	err = each(ctx, s.db, "SELECT name FROM "+s.name.pipelines+" WHERE version > 0 ORDER BY name", nil, func(rows *stdsql.Rows) error {
		var name string
		err := rows.Scan(&name)
		out = append(out, name)
		return err
	})
	if err != nil {
		return nil, s.wrap("list the pipelines", err)
	}
	return out, nil
}
