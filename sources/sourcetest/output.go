// Package sourcetest runs sources without a pipeline: an Output that keeps what a source sends, and
// a Store that knows what a checkpoint at any moment would have committed.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/state"
)

// Store is what is committed. It outlives the Outputs of several runs.
type Store struct {
	Splits map[string]state.Split
	Fresh  bool
}

func NewStore() *Store { return &Store{Splits: map[string]state.Split{}, Fresh: true} }

func (s *Store) Clone() *Store {
	c := &Store{Splits: map[string]state.Split{}, Fresh: s.Fresh}
	for k, v := range s.Splits {
		v.Meta = maps.Clone(v.Meta)
		v.Recent = slices.Clone(v.Recent)
		c.Splits[k] = v
	}
	return c
}

// Record is a record as it was sent.
type Record struct {
	Split, Path string
	Pos         record.Position
	Raw         string
	Failed      string            // the reason; "" for a living record
	Fields      map[string]string // the table's fields, those that are missing left out
}

// Message is the record's text.
func (r Record) Message() string { return r.Fields["message"] }

// Output is a sources.Output for tests. Fields must be set before Run.
type Output struct {
	Table *record.Table
	// Block, where set, is called by each Send before it takes effect.
	Block func(ctx context.Context) error
	// Discard: records are counted, not kept; batches are used again.
	Discard bool
	// OnCheckpoint, where set, is called by Checkpoint, on a goroutine of its own.
	OnCheckpoint func()
	// Budget bounds the bytes between Batch and Send or Return; 0: no bound.
	Budget int

	mu       sync.Mutex
	cond     *sync.Cond
	store    *Store // at the run's start, and what Open committed
	start    *Store
	log      []event
	records  []Record
	count    int
	splits   map[string]*record.Split
	finished map[string]bool
	ended    map[string]bool // no batch may come any more
	idle     map[string]bool
	ends     map[string]record.Position
	troubles []error
	trouble  error
	lost     []Lost
	aborted  error
	errs     []error
	free     []*record.Batch
	out      int // batches that the source holds
	used     int
}

// Lost is what a source reported as lost.
type Lost struct {
	Path   string
	Bytes  int64
	Reason string
}

type event struct {
	split  string
	end    *record.Position
	upTo   int // records sent so far
	update *state.Split
	done   bool
	forget bool
	open   *state.Split
}

var _ sources.Output = (*Output)(nil)

// New makes an Output over what the store has. The store itself isn't changed; see Commit.
func New(store *Store, t *record.Table) *Output {
	o := &Output{Table: t, store: store.Clone(), start: store.Clone(), splits: map[string]*record.Split{},
		finished: map[string]bool{}, ended: map[string]bool{}, idle: map[string]bool{}, ends: map[string]record.Position{}}
	o.cond = sync.NewCond(&o.mu)
	return o
}

func (o *Output) bad(format string, args ...any) {
	o.errs = append(o.errs, fmt.Errorf(format, args...))
}

func (o *Output) Known() []state.Split {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.start.Clone().Splits
	if len(o.ended) > 0 { // one that was released may be opened again
		now := o.at(len(o.log)).Splits
		for id := range o.ended {
			known[id] = now[id]
		}
	}
	var out []state.Split
	for _, id := range slices.Sorted(maps.Keys(known)) {
		out = append(out, known[id])
	}
	return out
}

func (o *Output) Fresh() bool { return o.start.Fresh }

func (o *Output) Open(ctx context.Context, ss ...state.Split) ([]*record.Split, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.cond.Broadcast()
	var out []*record.Split
	for _, s := range ss {
		again := o.splits[s.ID] != nil
		if again && !o.ended[s.ID] {
			o.bad("split %s is opened twice", s.ID)
		}
		s.Meta = maps.Clone(s.Meta)
		if again {
			if k := o.at(len(o.log)).Splits[s.ID]; k.Epoch == s.Epoch {
				s.Recent = k.Recent
			}
			delete(o.ended, s.ID)
			delete(o.finished, s.ID)
		} else if k, ok := o.start.Splits[s.ID]; ok && k.Epoch == s.Epoch {
			s.Recent = k.Recent
		}
		sp := &record.Split{ID: s.ID, Epoch: s.Epoch, Path: s.Path, Index: len(o.splits)}
		o.splits[s.ID] = sp
		o.ends[s.ID] = s.Position()
		o.log = append(o.log, event{split: s.ID, open: &s, upTo: o.count})
		out = append(out, sp)
	}
	return out, nil
}

func (o *Output) Update(s state.Split) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Meta = maps.Clone(s.Meta)
	if !o.Discard {
		o.log = append(o.log, event{split: s.ID, update: &s, upTo: o.count})
	}
}

func (o *Output) Finish(sp *record.Split, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.cond.Broadcast()
	if o.ended[sp.ID] {
		o.bad("split %s is finished twice", sp.Path)
	}
	o.ended[sp.ID] = true
	if done {
		o.finished[sp.ID] = true
		o.log = append(o.log, event{split: sp.ID, done: true, upTo: o.count})
	}
}

func (o *Output) Forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = append(o.log, event{split: id, forget: true, upTo: o.count})
}

func (o *Output) Batch(ctx context.Context, sp *record.Split, size int) (*record.Batch, error) {
	stop := context.AfterFunc(ctx, func() { o.mu.Lock(); o.cond.Broadcast(); o.mu.Unlock() })
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.Budget > 0 && o.used > 0 && o.used+size > o.Budget {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		o.cond.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if sp == nil || o.splits[sp.ID] != sp {
		o.bad("a batch for a split that isn't open")
	}
	var b *record.Batch
	if n := len(o.free); n > 0 {
		b, o.free = o.free[n-1], o.free[:n-1]
	} else {
		b = record.NewBatch(o.Table)
	}
	b.Split, b.Size = sp, size
	o.used += size
	o.out++
	return b, nil
}

func (o *Output) Return(b *record.Batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recycle(b)
	o.cond.Broadcast()
}

func (o *Output) recycle(b *record.Batch) {
	o.used -= b.Size
	o.out--
	b.Reset()
	o.free = append(o.free, b)
}

func (o *Output) Send(ctx context.Context, b *record.Batch) error {
	if o.Block != nil {
		if err := o.Block(ctx); err != nil {
			o.Return(b)
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.cond.Broadcast()
	defer o.recycle(b)
	if err := ctx.Err(); err != nil {
		return err
	}
	id := b.Split.ID
	if o.ended[id] {
		o.bad("a batch of %s after it was finished", b.Split.Path)
	}
	if b.Start != o.ends[id] {
		o.bad("a batch of %s begins at %v, the one before ended at %v", b.Split.Path, b.Start, o.ends[id])
	}
	if b.End.Compare(b.Start) <= 0 && b.Len() > 0 {
		o.bad("a batch of %s with records goes from %v to %v", b.Split.Path, b.Start, b.End)
	}
	o.ends[id] = b.End
	o.count += b.Len()
	if o.Discard {
		return nil
	}
	fails := map[int32]string{}
	for _, f := range b.Fails {
		fails[f.Rec] = f.Reason
	}
	if len(b.Sel)+len(fails) != b.Len() {
		o.bad("%d records, %d alive, %d failed", b.Len(), len(b.Sel), len(fails))
	}
	last := record.Position{Offset: -1}
	for i := range b.Len() {
		p := b.Pos(i)
		if p.Compare(last) <= 0 || p.Compare(b.Start) < 0 || p.Compare(b.End) >= 0 {
			o.bad("record at %v in a batch from %v to %v, after %v", p, b.Start, b.End, last)
		}
		last = p
		r := Record{Split: id, Path: b.Split.Path, Pos: p, Raw: string(b.Bytes(b.Raw(i))), Failed: fails[int32(i)], Fields: map[string]string{}}
		for s, n := range b.Table.Names() {
			if v := b.Get(i, s); v.Kind() == record.String {
				r.Fields[n] = string(b.Bytes(v))
			} else if v.Kind() != record.Missing {
				r.Fields[n] = string(b.AppendPlain(nil, v))
			}
		}
		o.records = append(o.records, r)
	}
	end := b.End
	o.log = append(o.log, event{split: id, end: &end, upTo: o.count})
	return nil
}

func (o *Output) Idle(sp *record.Split, idle bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.idle[sp.ID] = idle
	o.cond.Broadcast()
}

func (o *Output) Committed(sp *record.Split) record.Position {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.store.Splits[sp.ID]
	return s.Position()
}

func (o *Output) Checkpoint() {
	if o.OnCheckpoint != nil {
		go o.OnCheckpoint()
	}
}

func (o *Output) Abort(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.aborted = err
	o.cond.Broadcast()
}

// Aborted is what Abort was called with, nil where it wasn't.
func (o *Output) Aborted() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.aborted
}

func (o *Output) Trouble(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trouble = err
	if err != nil {
		o.troubles = append(o.troubles, err)
	}
	o.cond.Broadcast()
}

func (o *Output) Lost(sp *record.Split, bytes int64, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = append(o.lost, Lost{sp.Path, bytes, reason})
	o.cond.Broadcast()
}

// Events is how many moments there are at which a checkpoint could have been, see At.
func (o *Output) Events() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.log)
}

// At is the store as a checkpoint after the first n events would have left it, and the records that
// it covers. Splits that were opened before the event are there in any case: Open commits.
func (o *Output) At(n int) (*Store, []Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	upTo := 0
	if n > 0 {
		upTo = o.log[n-1].upTo
	}
	return o.at(n), slices.Clone(o.records[:upTo])
}

func (o *Output) at(n int) *Store {
	s := o.start.Clone()
	for _, e := range o.log[:n] {
		k, known := s.Splits[e.split]
		switch {
		case e.open != nil:
			s.Fresh = false
			k = *e.open
			k.Recent = slices.Clone(k.Recent)
		case e.update != nil:
			if !known {
				continue
			}
			k.Path, k.Meta, k.Done = e.update.Path, e.update.Meta, e.update.Done
		case e.end != nil:
			k.Recent = append(k.Recent, *e.end)
			if len(k.Recent) > state.Keep {
				k.Recent = k.Recent[1:]
			}
		case e.done:
			k.Done = true
		}
		if e.forget {
			delete(s.Splits, e.split)
		} else {
			s.Splits[e.split] = k
		}
	}
	return s
}

// Commit is At for all that was sent.
func (o *Output) Commit() *Store {
	s, _ := o.At(o.Events())
	return s
}

// Records are all that were sent so far.
func (o *Output) Records() []Record {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.records)
}

// Messages are the records' texts.
func (o *Output) Messages() []string {
	var out []string
	for _, r := range o.Records() {
		out = append(out, r.Message())
	}
	return out
}

// Count is the number of records sent.
func (o *Output) Count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// Troubles are all that were reported; Trouble() of the interface sets them.
func (o *Output) Troubles() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.troubles)
}

// Losses are all that were reported.
func (o *Output) Losses() []Lost {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lost)
}

// Finished tells whether a split with that path was finished as done.
func (o *Output) Finished(path string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.finished {
		if o.splits[id].Path == path {
			return true
		}
	}
	return false
}

// Idles tells whether all open splits are idle.
func (o *Output) Idles() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.idles()
}

func (o *Output) idles() bool {
	n := 0
	for id := range o.splits {
		if !o.ended[id] {
			if !o.idle[id] {
				return false
			}
			n++
		}
	}
	return n > 0
}

// Wait waits until ok says so; it is asked after each change with o's own methods unusable, so it
// gets what it needs.
func (o *Output) Wait(ctx context.Context, ok func(v View) bool) error {
	stop := context.AfterFunc(ctx, func() { o.mu.Lock(); o.cond.Broadcast(); o.mu.Unlock() })
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !ok(View{o}) {
		if ctx.Err() != nil {
			return fmt.Errorf("%w with %d records, idle %v, lost %v, trouble %v", ctx.Err(), o.count, o.idles(), o.lost, o.trouble)
		}
		o.cond.Wait()
	}
	return nil
}

// View is what a condition of Wait sees.
type View struct{ o *Output }

func (v View) Count() int     { return v.o.count }
func (v View) Idle() bool     { return v.o.idles() }
func (v View) Trouble() error { return v.o.trouble }
func (v View) Lost() []Lost   { return v.o.lost }
func (v View) Finished() int  { return len(v.o.finished) }
func (v View) Splits() int    { return len(v.o.splits) }
func (v View) Last() []Record { return v.o.records }

// Err tells what the source did against the contract, batches that it kept included (call it after Run).
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	errs := o.errs
	if o.out != 0 {
		errs = append(errs, fmt.Errorf("%d batches were neither sent nor returned", o.out))
	}
	return errors.Join(errs...)
}
