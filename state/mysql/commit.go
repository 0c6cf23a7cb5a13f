package mysql

import (
	"bytes"
	"cmp"
	"context"
	stdsql "database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// Commit is one transaction. Its last statement counts the commit in the pipeline's row, where that has still this process's lease;
// without the lease the error wraps state.ErrLost. All of a commit may be done again, with the same outcome: everything in it is set
// to a value or removed, and a position that is already the last one isn't added twice. So it is tried again here, until ctx or
// the lease ends, after deadlocks and lost connections. Where a COMMIT's answer was lost, the lease's epoch is raised before anything
// else is done: then the first try is either there, or can't come any more.
func (s *Store) Commit(ctx context.Context, pipeline string, c *state.Commit) error {
	if err := checkCommit(pipeline, c); err != nil {
		return err
	}
	l, err := s.mine(ctx, pipeline)
	if err != nil {
		return err
	}
	ctx, stop := l.join(ctx)
	defer stop()
	err = again(ctx, func() error { return s.commit(ctx, l, c) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, state.ErrLost):
		return err
	case errors.Is(err, errReleased):
		return fmt.Errorf("commit %s: %w: %w", pipeline, state.ErrLost, errReleased)
	}
	return s.wrap("commit "+pipeline, err)
}

// mine gives the lease that a commit needs.
func (s *Store) mine(ctx context.Context, pipeline string) (*lease, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	l := s.held(pipeline)
	if l == nil {
		return nil, fmt.Errorf("commit %s: this process has no lease of the pipeline: it has to acquire it first", pipeline)
	}
	return l, l.alive()
}

func (s *Store) commit(ctx context.Context, l *lease, c *state.Commit) error {
	if err := s.settle(ctx, l); err != nil {
		return err
	}
	t, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer t.end()
	id, epoch := l.key()
	var version int64
	err = t.conn.QueryRowContext(ctx, "SELECT version FROM "+s.name.pipelines+" WHERE id = ? AND token = ? AND epoch = ?", id, l.token, epoch).Scan(&version)
	if errors.Is(err, stdsql.ErrNoRows) {
		s.taken(ctx, l)
		return context.Cause(l.ctx)
	}
	if err != nil {
		return err
	}
	w := writer{t: t, id: id, version: version + 1}
	for _, f := range []func(*state.Commit) error{w.splits, w.parts, w.keyed, w.outbox} {
		if err := f(c); err != nil {
			return err
		}
	}
	set, args := "", []any{}
	if c.Counters != nil {
		counters, rest := encodeCounters(c.Counters)
		set, args = ", counters = ?, raw = ?", []any{string(counters), rest}
	}
	n, err := t.count("UPDATE "+s.name.pipelines+" SET version = version + 1, committed = UTC_TIMESTAMP(6)"+set+" WHERE id = ? AND token = ? AND epoch = ? AND version = ?",
		append(args, id, l.token, epoch, version)...)
	if err != nil {
		return err
	}
	if n == 0 {
		s.taken(ctx, l)
		return context.Cause(l.ctx)
	}
	return t.finish(l)
}

// writer writes a commit's rows.
type writer struct {
	t       *tx
	id      int64
	version int64 // the commit's number
	cells   []cell
}

// set is a list of rows that replace those of the same key.
func (w *writer) set(table, columns string, keys int) *list {
	names := strings.Split(columns, ", ")
	var tail strings.Builder
	tail.WriteString(" ON DUPLICATE KEY UPDATE ")
	for i, n := range names[keys:] {
		if i > 0 {
			tail.WriteString(", ")
		}
		tail.WriteString(n + " = VALUES(" + n + ")")
	}
	return &list{t: w.t, head: "INSERT INTO " + table + " (" + columns + ") VALUES ", tail: tail.String()}
}

// maxIn is how many keys a statement names.
const maxIn = 1000

func (w *writer) remove(table, column string) *list {
	return &list{t: w.t, head: fmt.Sprintf("DELETE FROM %s WHERE pipeline = %d AND %s IN (", table, w.id, column), tail: ")", max: maxIn}
}

func (w *writer) splits(c *state.Commit) error {
	if len(c.Splits)+len(c.Positions)+len(c.Forget) == 0 {
		return nil
	}
	ids := map[string]bool{}
	for i := range c.Splits {
		ids[c.Splits[i].ID] = true
	}
	for id := range c.Positions {
		ids[id] = true
	}
	sorted := slices.Sorted(maps.Keys(ids))
	known := make(map[string]state.Split, len(ids))
	for part := range slices.Chunk(sorted, maxIn) {
		if err := w.read(part, known); err != nil {
			return err
		}
	}
	for _, n := range c.Splits {
		old, ok := known[n.ID]
		if ok && old.Epoch > n.Epoch {
			return fmt.Errorf("split %s: %w: epoch %d, the store has %d", n.ID, state.ErrConflict, n.Epoch, old.Epoch)
		}
		if ok && old.Epoch == n.Epoch {
			n.Recent = old.Recent
		}
		n.Recent = lastOf(n.Recent)
		known[n.ID] = n
	}
	for id, a := range c.Positions {
		sp, ok := known[id]
		if !ok {
			return fmt.Errorf("split %s: %w: its position is committed before it was added", id, state.ErrConflict)
		}
		if sp.Epoch != a.Epoch {
			return fmt.Errorf("split %s: %w: epoch %d, the store has %d", id, state.ErrConflict, a.Epoch, sp.Epoch)
		}
		if n := len(sp.Recent); n == 0 || sp.Recent[n-1] != a.To {
			sp.Recent = lastOf(append(sp.Recent[:n:n], a.To)) // the array may be the caller's
			known[id] = sp
		}
	}
	put := w.set(w.t.s.name.splits, "pipeline, split, path, epoch, `position`, position_index, done, meta, recent, raw", 2)
	for _, id := range sorted {
		sp := known[id]
		w.cells = splitCells(append(w.cells[:0], intCell(w.id), blobCell([]byte(id))), &sp)
		if err := put.row(w.cells); err != nil {
			return fmt.Errorf("split %s: %w", id, err)
		}
	}
	if err := put.flush(); err != nil {
		return err
	}
	gone := w.remove(w.t.s.name.splits, "split")
	for _, id := range slices.Sorted(slices.Values(c.Forget)) {
		if err := gone.blob([]byte(id)); err != nil {
			return err
		}
	}
	return gone.flush()
}

func lastOf(p []record.Position) []record.Position { return p[max(0, len(p)-state.Keep):] }

// read adds the splits of these ids that are there.
func (w *writer) read(ids []string, to map[string]state.Split) error {
	text := fmt.Appendf(nil, "SELECT "+splitColumns+" FROM %s WHERE pipeline = %d AND split IN (", w.t.s.name.splits, w.id)
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendBlob(text, []byte(id))
	}
	rows, err := w.t.conn.QueryContext(w.t.ctx, string(append(text, ')')))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		sp, err := scanSplit(rows)
		if err != nil {
			return err
		}
		to[sp.ID] = sp
	}
	return rows.Err()
}

func (w *writer) parts(c *state.Commit) error {
	put, gone := w.set(w.t.s.name.parts, "pipeline, name, value", 2), w.remove(w.t.s.name.parts, "name")
	for _, name := range slices.Sorted(maps.Keys(c.Parts)) {
		var err error
		if v := c.Parts[name]; v == nil {
			err = gone.blob([]byte(name))
		} else {
			w.cells = append(w.cells[:0], intCell(w.id), blobCell([]byte(name)), blobCell(v))
			err = put.row(w.cells)
		}
		if err != nil {
			return fmt.Errorf("part %s: %w", name, err)
		}
	}
	return errors.Join(put.flush(), gone.flush())
}

// keyed writes the keyed state in the order of its table: rows that are neighbours there are written together, and two transactions
// don't wait for each other crosswise. Of entries with the same key the last one counts.
func (w *writer) keyed(c *state.Commit) error {
	if len(c.State) == 0 {
		return nil
	}
	order := make([]int32, len(c.State))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &c.State[i], &c.State[j]
		return cmp.Or(strings.Compare(a.Stage, b.Stage), bytes.Compare(a.Key, b.Key), cmp.Compare(i, j))
	})
	put := w.set(w.t.s.name.keyed, "pipeline, stage, k, long_key, value, version, window_start, window_end, firing, group_key, aggregates", 3)
	var gone *list
	var stage string
	for n, i := range order {
		kv := &c.State[i]
		if n+1 < len(order) {
			if next := &c.State[order[n+1]]; next.Stage == kv.Stage && bytes.Equal(next.Key, kv.Key) {
				continue
			}
		}
		k, long := stored(kv.Key)
		var err error
		if kv.Value == nil {
			if gone == nil || stage != kv.Stage {
				if gone != nil {
					if err := gone.flush(); err != nil {
						return err
					}
				}
				stage = kv.Stage
				gone = w.remove(w.t.s.name.keyed, "stage = "+string(appendBlob(nil, []byte(stage)))+" AND k")
			}
			err = gone.blob(k)
		} else {
			w.cells = append(w.cells[:0], intCell(w.id), blobCell([]byte(kv.Stage)), blobCell(k), cell{}, blobCell(kv.Value), intCell(w.version))
			if long {
				w.cells[3] = blobCell(kv.Key)
			}
			w.cells = rowCells(w.cells, kv.Row)
			err = put.row(w.cells)
		}
		if err != nil {
			return fmt.Errorf("state of the step %s: %w", kv.Stage, err)
		}
	}
	if gone != nil {
		if err := gone.flush(); err != nil {
			return err
		}
	}
	return put.flush()
}

// rowCells are the columns for people. What doesn't fit them is left out: it must not stop the pipeline.
func rowCells(dst []cell, r *state.Row) []cell {
	if r == nil {
		return append(dst, cell{}, cell{}, cell{}, cell{}, cell{})
	}
	return append(dst, timeCell(r.Start), timeCell(r.End), intCell(int64(min(r.Firing, 1<<63-1))), jsonCell(r.Key), jsonCell(r.Aggregates))
}

// timeCell is a DATETIME(3); those begin and end with these years.
func timeCell(ms int64) cell {
	t := time.UnixMilli(ms).UTC()
	if y := t.Year(); y < 1000 || y > 9999 {
		return cell{}
	}
	return textCell(t.AppendFormat(nil, "2006-01-02 15:04:05.000"))
}

func jsonCell(b []byte) cell {
	switch {
	case !json.Valid(b):
		return textCell(encodeJSON(text(b)))
	case !utf8.Valid(b):
		return textCell([]byte(text(b)))
	}
	return textCell(b)
}

func (w *writer) outbox(c *state.Commit) error {
	put := w.set(w.t.s.name.outbox, "pipeline, target, seq, data", 3)
	next := map[string]int64{}
	for i := range c.Firings {
		f := &c.Firings[i]
		w.cells = append(w.cells[:0], intCell(w.id), blobCell([]byte(f.Target)), intCell(f.Seq), blobCell(f.Data))
		if err := put.row(w.cells); err != nil {
			return fmt.Errorf("firing %d to %s: %w", f.Seq, f.Target, err)
		}
		next[f.Target] = max(next[f.Target], f.Seq+1)
	}
	if err := put.flush(); err != nil {
		return err
	}
	seqs := w.set(w.t.s.name.targets, "pipeline, target, next_seq", 2)
	seqs.tail = " ON DUPLICATE KEY UPDATE next_seq = GREATEST(next_seq, VALUES(next_seq))"
	for _, t := range slices.Sorted(maps.Keys(next)) {
		w.cells = append(w.cells[:0], intCell(w.id), blobCell([]byte(t)), intCell(next[t]))
		if err := seqs.row(w.cells); err != nil {
			return err
		}
	}
	if err := seqs.flush(); err != nil {
		return err
	}
	for _, t := range slices.Sorted(maps.Keys(c.Acked)) {
		if _, err := w.t.count("DELETE FROM "+w.t.s.name.outbox+" WHERE pipeline = ? AND target = ? AND seq <= ?", w.id, []byte(t), c.Acked[t]); err != nil {
			return err
		}
	}
	return nil
}
