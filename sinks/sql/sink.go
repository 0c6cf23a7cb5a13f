package sql

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"weak"

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
	// Advance stores a split's position, under the later of its and old's epoch. It compares with old (ok false: none was stored) and fails with
	// ErrFenced where someone else has changed it.
	Advance(split *record.Split, old Stored, ok bool, to record.Position) error
	// Insert writes one row. A *RowError means that this row can't go, and that the others may.
	Insert(r *Row) error
	Commit() error
	// Rollback undoes everything; after Commit it does nothing.
	Rollback()
}

// Literals is a Dialect whose encoded rows hold SQL literals: they are made on the lanes, and what delivers only
// copies them. Both methods are called by any number of goroutines at once.
type Literals interface {
	// AppendLiteral appends a value that isn't NULL. plain is false where the literal is good for no column as it is.
	AppendLiteral(dst []byte, b *record.Batch, v record.Value) (out []byte, plain bool)
	// Plain makes a cell with a literal an ordinary one, for dead letters.
	Plain(c *Cell)
}

// Flusher is a Tx that collects rows and writes them together.
type Flusher interface {
	// Flush writes what Insert and Advance took, the rows in their order. It is called once, before the dead
	// letters and Commit, and returns the rows that can't go; the others are in.
	Flush() ([]Refused, error)
}

// Refused is a row that Flush could not write.
type Refused struct {
	Row    int // the number of its Insert since Begin, from 0, among those that returned no error
	Reason string
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
var ErrFenced = errors.New("another writer has moved or removed this split's position; is the pipeline running twice on this table? If not, restart it to go on from there")

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
	rows    Row
	rejects []sinks.Reject
	written []place // of a Flusher's rows

	// owned is what this sink has stored. A split that comes back to the pipeline after another
	// instance has had it is another *record.Split. Weak, because nobody says that one is done with.
	owned map[weak.Pointer[record.Split]]own
	prune int   // owned is cleaned when it is this large
	moved []own // of the delivery that is under way
}

// place is a row's place in the chunk.
type place struct{ part, row int }

// own is a split's position as this sink knows it.
type own struct {
	split   *record.Split // in moved only
	stored  Stored
	ok      bool
	doubt   record.Position // what a Commit that failed may have stored all the same
	inDoubt bool
	epoch   int64 // of doubt
}

// fits tells whether the stored position is ours.
func (o *own) fits(p Stored, ok bool) bool {
	if ok == o.ok && (!ok || p.Position == o.stored.Position && p.Epoch == o.stored.Epoch) {
		return true
	}
	return ok && o.inDoubt && p.Position == o.doubt && p.Epoch == o.epoch
}

// New makes the sink of a dialect.
func New(o *Options, cols []Column, openEnded bool, d Dialect) *Sink {
	extra := openEnded && len(o.Columns) == 0
	var sure, maybe []Column
	for _, c := range cols {
		if c.unsure {
			maybe = append(maybe, c)
		} else {
			sure = append(sure, c)
		}
	}
	s := &Sink{t: Table{Options: o, Columns: sure, Extra: extra}, d: d, enc: encoder{cols: sure, maybe: maybe, extra: extra}}
	s.enc.lits, _ = d.(Literals)
	s.rows.literals = s.enc.lits != nil
	s.envs.New = func() any { return new(expr.Env) }
	return s
}

var (
	_ sinks.Sink      = (*Sink)(nil)
	_ sinks.Starter   = (*Sink)(nil)
	_ sinks.Describer = (*Sink)(nil)
	_ sinks.Mapper    = (*Sink)(nil)
	_ sinks.Prober    = (*Sink)(nil)
)

// Dialect is the sink's, for the tests of dialects.
func (s *Sink) Dialect() Dialect { return s.d }

// NewRow is an empty row that decodes what Encode gives, for the tests of dialects.
func (s *Sink) NewRow() *Row { return &Row{literals: s.enc.lits != nil} }

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
	if env.Log == nil {
		e := *env
		e.Log = slog.New(slog.DiscardHandler)
		env = &e
	}
	return s.d.Open(ctx, &s.t, env)
}

func (s *Sink) Stop(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.d.Close()
}

// Prober is a Dialect that can try the connection without writing anything.
type Prober interface {
	Probe(ctx context.Context, t *Table) error
}

// Probe tries the connection, where the dialect can.
func (s *Sink) Probe(ctx context.Context) error {
	if p, ok := s.d.(Prober); ok {
		return p.Probe(ctx, &s.t)
	}
	return nil
}

// FieldOf gives the field that a column is filled from, ok false where that is an expression.
func (s *Sink) FieldOf(column string) (field string, ok bool) {
	if len(s.t.Options.Columns) == 0 {
		return column, true
	}
	for i := range s.t.Options.Columns {
		if c := &s.t.Options.Columns[i]; c.Key == column && c.Value.Expr != nil {
			root := c.Value.Root()
			return root.Name, root.Op == expr.OpField
		}
	}
	return "", false
}

// Deliver writes the chunk and its splits' positions in one transaction.
func (s *Sink) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.deliver(ctx, c); err != nil {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	return nil, nil
}

func (s *Sink) deliver(ctx context.Context, c *sinks.Chunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tx, err := s.d.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	s.rejects, s.moved, s.written = s.rejects[:0], s.moved[:0], s.written[:0]
	flusher, _ := tx.(Flusher)
	skipped := 0
	for pi := range c.Parts {
		p := &c.Parts[pi]
		old, ok, err := tx.Position(p.Split.ID)
		if err != nil {
			return err
		}
		mine, known := s.owned[weak.Make(p.Split)]
		epoch := p.Split.Epoch
		if p.Split.Shared && ok { // the instance that had it before may have seen a reset
			epoch = max(epoch, old.Epoch)
		}
		if ok && old.Epoch > epoch || known && !mine.fits(old, ok) {
			return fmt.Errorf("split %s (%s): %w", p.Split.ID, p.Split.Path, ErrFenced)
		}
		same := ok && old.Epoch == epoch
		last, any := record.Position{}, false
		for i := range p.Ends {
			if same && p.Pos[i].Compare(old.Position) <= 0 {
				skipped++
				continue
			}
			s.rows.Decode(p.Row(i), len(s.t.Columns))
			if err := tx.Insert(&s.rows); err != nil {
				var re *RowError
				if !errors.As(err, &re) {
					return err
				}
				s.rejects = append(s.rejects, sinks.Reject{Part: pi, Row: i, Reason: re.Reason})
			} else if flusher != nil {
				s.written = append(s.written, place{pi, i})
			}
			last, any = p.Pos[i], true
		}
		m := own{split: p.Split, stored: old, ok: ok, epoch: epoch}
		if any {
			if err := tx.Advance(p.Split, old, ok, last); err != nil {
				return err
			}
			m.doubt, m.inDoubt = last, true
		}
		s.moved = append(s.moved, m)
	}
	if flusher != nil {
		refused, err := flusher.Flush()
		if err != nil {
			return err
		}
		for _, r := range refused {
			at := s.written[r.Row]
			s.rejects = append(s.rejects, sinks.Reject{Part: at.part, Row: at.row, Reason: r.Reason})
		}
	}
	if len(s.rejects) > 0 {
		if err := c.Letters(s.rejects); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
	}
	s.own()
	if err := tx.Commit(); err != nil {
		return err
	}
	for i := range s.moved {
		if m := &s.moved[i]; m.inDoubt {
			m.stored = Stored{Epoch: m.epoch, Position: m.doubt}
			m.ok, m.inDoubt = true, false
		}
	}
	s.own()
	c.Skipped = skipped
	return nil
}

// own notes what the delivery has stored, or may have.
func (s *Sink) own() {
	if s.owned == nil {
		s.owned = map[weak.Pointer[record.Split]]own{}
	}
	for _, m := range s.moved {
		w := weak.Make(m.split)
		m.split, m.stored.Recent = nil, ""
		s.owned[w] = m
	}
	if len(s.owned) > s.prune {
		for w := range s.owned {
			if w.Value() == nil {
				delete(s.owned, w)
			}
		}
		s.prune = 2*len(s.owned) + 64
	}
}

// Describe turns an encoded row into the JSON object that a dead letter shows.
func (s *Sink) Describe(dst, row []byte) []byte {
	r := Row{literals: s.enc.lits != nil}
	r.Decode(row, len(s.t.Columns))
	if r.Plain != nil {
		r.Expand()
	}
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
		if r.literals && !r.Cells[i].IsNull() {
			s.enc.lits.Plain(&r.Cells[i])
		}
		dst = r.Cells[i].appendJSON(dst)
	}
	return append(dst, '}')
}

func appendInt(dst []byte, i int64) []byte { return strconv.AppendInt(dst, i, 10) }
