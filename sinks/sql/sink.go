package sql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// Dialect is one database product. Its methods are called by one goroutine at a time.
type Dialect interface {
	// Open connects and makes sure of the position table, and of the sink's table as options
	// and env say. It may be called again after an error or Close.
	Open(ctx context.Context, t *Table, env *sinks.Env) error
	// Begin starts the transaction of one delivery.
	Begin(ctx context.Context) (Tx, error)
	Close() error
}

// Tx is the transaction of one delivery.
type Tx interface {
	// Position reads a split's stored position; ok is false where there is none.
	Position(split string) (p Stored, ok bool, err error)
	// Advance stores a split's position. It compares with old (ok false: none was stored) and fails with
	// ErrFenced where someone else has changed it.
	Advance(split *record.Split, old Stored, ok bool, to record.Position) error
	// Insert writes one row. A *RowError means that this row can't go, and that the others may.
	Insert(r *Row) error
	Commit() error
	// Rollback undoes everything; after Commit it does nothing.
	Rollback()
}

// Stored is a split's position row.
type Stored struct {
	Epoch int64
	record.Position
	Recent string // the last positions before it, the dialect's own form
}

// RowError is a row that the database refuses for its content, with its words.
type RowError struct{ Reason string }

func (e *RowError) Error() string { return e.Reason }

// ErrFenced: another writer has this split; nothing was changed.
var ErrFenced = errors.New("another writer has moved this split's position; is the pipeline running twice on this table?")

// Table is what a dialect needs to know of the sink.
type Table struct {
	Options *Options
	Columns []Column
	Extra   bool // rows may have fields beyond Columns
}

// Sink delivers rows through a dialect.
type Sink struct {
	t       Table
	d       Dialect
	enc     encoder
	envs    sync.Pool // *expr.Env, one for each Encode at a time
	mu      sync.Mutex
	opened  bool
	rows    Row
	rejects []sinks.Reject
}

// New makes the sink of a dialect.
func New(o *Options, cols []Column, openEnded bool, d Dialect) *Sink {
	extra := openEnded && len(o.Columns) == 0
	s := &Sink{t: Table{Options: o, Columns: cols, Extra: extra}, d: d, enc: encoder{cols: cols, extra: extra}}
	s.envs.New = func() any { return new(expr.Env) }
	return s
}

var (
	_ sinks.Sink      = (*Sink)(nil)
	_ sinks.Starter   = (*Sink)(nil)
	_ sinks.Describer = (*Sink)(nil)
)

// Positioned marks the sink as one that stores positions with its rows.
func (*Sink) Positioned() {}

func (s *Sink) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	env := s.envs.Get().(*expr.Env)
	dst = s.enc.append(dst, b, i, env)
	env.B = nil
	s.envs.Put(env)
	return dst, nil
}

func (s *Sink) Start(ctx context.Context, env *sinks.Env) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.d.Open(ctx, &s.t, env); err != nil {
		return err
	}
	s.opened = true
	return nil
}

func (s *Sink) Stop(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d.Close()
}

// Deliver writes the chunk and its splits' positions in one transaction.
func (s *Sink) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.d.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	s.rejects = s.rejects[:0]
	skipped := 0
	for pi := range c.Parts {
		p := &c.Parts[pi]
		old, ok, err := tx.Position(p.Split.ID)
		if err != nil {
			return nil, err
		}
		if ok && old.Epoch > p.Split.Epoch {
			return nil, fmt.Errorf("split %s (%s): %w", p.Split.ID, p.Split.Path, ErrFenced)
		}
		same := ok && old.Epoch == p.Split.Epoch
		last, any := record.Position{}, false
		for i := range p.Ends {
			if same && p.Pos[i].Compare(old.Position) <= 0 {
				skipped++
				continue
			}
			s.rows.decode(p.Row(i), len(s.t.Columns))
			err := tx.Insert(&s.rows)
			var re *RowError
			switch {
			case errors.As(err, &re):
				s.rejects = append(s.rejects, sinks.Reject{Part: pi, Row: i, Reason: re.Reason})
			case err != nil:
				return nil, err
			}
			last, any = p.Pos[i], true
		}
		if any {
			if err := tx.Advance(p.Split, old, ok, last); err != nil {
				return nil, err
			}
		}
	}
	if len(s.rejects) > 0 {
		if err := c.Letters(s.rejects); err != nil {
			return nil, fmt.Errorf("write dead letters: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	c.Skipped = skipped
	return nil, nil
}

// Describe turns an encoded row into the JSON object that a dead letter shows.
func (s *Sink) Describe(dst, row []byte) []byte {
	var r Row
	r.decode(row, len(s.t.Columns))
	dst = append(dst, '{')
	n := 0
	for i := range r.Cells {
		if r.Cells[i].Kind == record.Missing {
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		if i < len(s.t.Columns) {
			dst = record.AppendJSONString(dst, []byte(s.t.Columns[i].Name))
		} else {
			dst = record.AppendJSONString(dst, r.Names[i-len(s.t.Columns)])
		}
		dst = append(dst, ':')
		dst = r.Cells[i].appendJSON(dst)
	}
	return append(dst, '}')
}

func appendInt(dst []byte, i int64) []byte { return strconv.AppendInt(dst, i, 10) }
