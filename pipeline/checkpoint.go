package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/state"
)

// lettersPart is the store's part that holds the dead letters' mark.
const lettersPart = "dead"

func sinkPart(name string) string { return "sink." + name }

// marker is one checkpoint on its way behind the last batches. When it passes the ordered
// end it takes down what everything before it has come to.
type marker struct {
	passed   chan struct{} // closed when it has passed the ordered end
	whole    bool          // it holds all that it should: nothing failed on the way
	commit   state.Commit
	advanced []*splitState
	marks    []uint64 // per sink
	fed      map[string]int64
	letters  []byte // the dead letters' mark
}

// passes tells whether a position is before what the marker's commit commits of its split.
func (m *marker) passes(split string, epoch int64, pos record.Position) bool {
	a, ok := m.commit.Positions[split]
	return ok && a.Epoch == epoch && pos.Compare(a.To) < 0
}

// checkpoints makes one every interval, or earlier where one is asked for, as long as there is something to
// commit. It ends with stop, in the middle of none.
func (r *Runner) checkpoints(stop <-chan struct{}) {
	interval := r.plan.Options.Checkpoint.Interval.D()
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		var flushed chan struct{}
		select {
		case <-stop:
			return
		case <-r.abort.Done():
			return
		case <-timer.C:
		case <-r.request:
		case flushed = <-r.flushes:
		}
		if flushed != nil || r.splits.dirty() || r.outbox.dirty() || r.stagesDue() || r.due.Load() {
			if err := r.checkpoint(r.abort); err != nil && r.abort.Err() == nil {
				r.cancel(err)
				return
			}
			if flushed != nil && r.abort.Err() == nil {
				close(flushed)
			}
		}
		timer.Reset(interval)
	}
}

// checkpoint sends a marker behind the last batches and commits what is before it, trying until that
// succeeds, ctx ends or the store can't go on. Checkpoints are made one at a time.
func (r *Runner) checkpoint(ctx context.Context) error {
	m := &marker{passed: make(chan struct{})}
	// The ordered end may wait for a sink's memory; the checkpoint itself must not run it.
	go r.inOrder(func() { r.pass(m) })
	select {
	case <-m.passed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !m.whole {
		return context.Cause(r.abort)
	}
	wait := 100 * time.Millisecond
	for {
		err := r.flushAndCommit(ctx, m)
		if err == nil {
			r.trouble.clear("checkpoint")
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, state.ErrFailed) || errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrLost) {
			return err
		}
		if r.trouble.set("checkpoint", err) {
			r.log.Error("checkpoint failed; nothing is committed, trying again", "err", err)
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, 10*time.Second)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.after(ctx, m)
}

// pass runs at the ordered end.
func (r *Runner) pass(m *marker) {
	defer close(m.passed)
	defer r.failMarker(m)
	c := &m.commit
	r.fire(c)
	r.noteDue()
	m.advanced = r.splits.cut(c)
	c.Counters = map[string]int64{}
	r.ledger.cut(c.Counters)
	c.Counters["dead_let_go"] += r.letters.LetGo()
	// Letters that are written from here on belong to what comes after the marker, or come too early for it; both
	// are read again after a restart. Where the mark can't be had, the one before stays: it covers more.
	if mark, err := r.letters.Mark(); err == nil {
		m.letters = mark
	}
	for _, cache := range r.caches {
		m.marks = append(m.marks, cache.Mark())
	}
	m.fed = r.outbox.cut()
	c.Acked = m.fed
	m.whole = true
}

// failMarker ends the run where the marker isn't whole, before anyone can commit it: a stage has panicked, and what others gave must
// not be committed without the positions that go with it.
func (r *Runner) failMarker(m *marker) {
	if m.whole {
		return
	}
	p := recover()
	if err, ok := p.(error); ok && errors.Is(err, state.ErrCorrupt) {
		r.cancel(err)
		return
	}
	r.cancel(fmt.Errorf("internal error in a checkpoint: %v", p))
	panic(p)
}

// fire asks the stages for changed state and what fires, and takes the records through the steps behind.
func (r *Runner) fire(c *state.Commit) {
	for i, n := range r.plan.Nodes {
		st := r.stages[i]
		if st == nil {
			continue
		}
		it := r.newItem()
		it.b.Split = &record.Split{ID: stageTarget(n)}
		c.State = append(c.State, st.Checkpoint(it.b)...)
		it.b.Made = it.b.Len()
		c.Firings = append(c.Firings, r.end.fire(it, i, r.outbox.next)...)
		for j := range it.letters {
			if r.write(&it.letters[j]) != nil {
				break
			}
		}
		it.count.made += int64(it.b.Made)
		it.count.absorbed += int64(it.b.Absorbed)
		it.count.filtered += int64(it.b.Filtered)
		r.ledger.pass(it.count)
		r.release(it)
	}
}

func (r *Runner) stagesDue() bool { return len(r.stages) > 0 && r.ledger.moved() }

// flushAndCommit makes everything before the marker durable, then commits. All of it may be repeated.
func (r *Runner) flushAndCommit(ctx context.Context, m *marker) error {
	if err := r.letters.Sync(); err != nil {
		return fmt.Errorf("sync dead letters: %w", err)
	}
	parts := map[string][]byte{}
	errs := make([]error, len(r.caches))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, c := range r.caches {
		wg.Go(func() {
			part, changed, err := c.Flush(ctx, m.marks[i])
			if errs[i] = err; err == nil && changed {
				mu.Lock()
				parts[sinkPart(r.plan.Sinks[i].Name)] = part
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := r.letters.Void(m.passes); err != nil {
		return err
	}
	if m.letters != nil {
		parts[lettersPart] = m.letters
	}
	if held := r.StageStatus(); held != nil {
		if text, err := json.Marshal(held); err == nil {
			parts[holdingPart] = text
		}
	}
	if r.stageNames != "" {
		parts[stagesPart] = []byte(r.stageNames)
	}
	m.commit.Parts = parts
	for i, c := range r.caches {
		putCounts(m.commit.Counters, r.plan.Sinks[i].Name, c.CountsAt(m.marks[i]))
	}
	return r.commit(ctx, &m.commit)
}

// commit serialises the pipeline's commits.
func (r *Runner) commit(ctx context.Context, c *state.Commit) error {
	r.commits.Lock()
	defer r.commits.Unlock()
	if err := r.abort.Err(); err != nil {
		return context.Cause(r.abort)
	}
	if r.birth {
		parts := maps.Clone(c.Parts)
		if parts == nil {
			parts = map[string][]byte{}
		}
		parts[originPart] = []byte(r.origin)
		c.Parts = parts
	}
	err := r.o.Store.Commit(ctx, r.plan.Name, c)
	if err == nil {
		r.birth = false
	}
	return err
}

// commitPart commits one sink's part alone: what it must have recorded before its first byte.
func (r *Runner) commitPart(sink string) func(context.Context, []byte) error {
	return func(ctx context.Context, part []byte) error {
		return r.commit(ctx, &state.Commit{Parts: map[string][]byte{sinkPart(sink): part}})
	}
}

// after tells everyone of the commit.
func (r *Runner) after(ctx context.Context, m *marker) error {
	positions := r.splits.committed(&m.commit, m.advanced)
	r.ledger.committed(r.now())
	r.letters.Committed()
	r.outbox.committed(m.commit.Firings, m.fed)
	if c, ok := r.plan.Source.(sources.Committer); ok {
		if err := c.Committed(ctx, positions); err != nil && r.trouble.set("commit to the source", err) {
			r.log.Warn("the source did not take the committed positions; the next checkpoint tells them again", "err", err)
		}
	}
	// Every sink must hear of the commit, whatever another answers: one that doesn't could later commit old lengths.
	var errs []error
	for i, c := range r.caches {
		if err := c.Committed(ctx); err != nil {
			errs = append(errs, fmt.Errorf("sink %s: %w", r.plan.Sinks[i].Name, err))
		}
	}
	return errors.Join(errs...)
}
