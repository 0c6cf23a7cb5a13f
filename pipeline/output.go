package pipeline

import (
	"context"
	"fmt"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/state"
)

// output is what the running source sees of the runner.
type output struct{ r *Runner }

func (o *output) Known() []state.Split { return o.r.splits.list() }
func (o *output) Fresh() bool          { return o.r.snap.Fresh }

func (o *output) Open(ctx context.Context, s ...state.Split) ([]*record.Split, error) {
	r := o.r
	var changed []state.Split
	known := map[string]state.Split{}
	for _, k := range r.splits.list() {
		known[k.ID] = k
	}
	for i := range s {
		k, ok := known[s[i].ID]
		if ok && k.Epoch == s[i].Epoch && k.Path == s[i].Path && k.Done == s[i].Done && sameMeta(k.Meta, s[i].Meta) {
			s[i].Recent = k.Recent
			continue
		}
		changed = append(changed, s[i])
		if ok && k.Epoch == s[i].Epoch {
			s[i].Recent = k.Recent
		}
	}
	if len(changed) > 0 {
		c := &state.Commit{Splits: changed}
		// The first commit of all holds the dead letters' mark: what is written behind it comes again after a crash.
		if _, ok := r.snap.Parts[lettersPart]; !ok && !r.marked {
			mark, err := r.letters.Mark()
			if err != nil {
				return nil, fmt.Errorf("dead letters: %w", err)
			}
			c.Parts = map[string][]byte{lettersPart: mark}
		}
		if err := r.commit(ctx, c); err != nil {
			return nil, fmt.Errorf("commit new splits: %w", err)
		}
		r.marked = true
	}
	out := make([]*record.Split, len(s))
	for i := range s {
		out[i] = r.splits.add(s[i])
	}
	r.watch(func(w SplitWatcher) {
		for _, sp := range out {
			w.SplitOpened(sp)
		}
	})
	return out, nil
}

func sameMeta(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || w != v {
			return false
		}
	}
	return true
}

// inOrder runs f when everything that was sent before has passed the ordered end.
func (r *Runner) inOrder(f func()) {
	r.order.done(&item{do: f, seq: r.order.take()}) // without a batch: those are for the source
}

func (o *output) Update(s state.Split) { o.r.inOrder(func() { o.r.splits.update(s) }) }
func (o *output) Forget(id string)     { o.r.inOrder(func() { o.r.splits.forget(id) }) }

func (o *output) Finish(s *record.Split, done bool) {
	if done {
		o.r.inOrder(func() { o.r.splits.finish(s) })
	}
	o.r.watch(func(w SplitWatcher) { w.SplitEnded(s) })
}

func (o *output) Batch(ctx context.Context, s *record.Split, size int) (*record.Batch, error) {
	if err := o.r.gate.wait(ctx); err != nil {
		return nil, err
	}
	if err := o.r.brake.wait(ctx); err != nil {
		return nil, err
	}
	if err := o.r.budget.acquire(ctx, size); err != nil {
		return nil, err
	}
	it := o.r.newItem()
	it.b.Split, it.b.Size = s, size
	return it.b, nil
}

func (o *output) Return(b *record.Batch) { o.r.release(b.Owner.(*item)) }

// Send counts what the source made, settles what it failed, and dispatches the batch.
func (o *output) Send(ctx context.Context, b *record.Batch) error {
	r, it := o.r, b.Owner.(*item)
	it.count.in = int64(b.Len())
	r.ledger.read(it.count.in)
	it.seq = r.order.take()
	select {
	case r.work <- it:
		return nil
	case <-ctx.Done():
	case <-r.abort.Done():
	}
	// The number is taken: an empty item keeps the others' order. What was read stays uncommitted.
	r.ledger.read(-it.count.in)
	it.do = func() {}
	r.order.done(it)
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(r.abort)
}

func (o *output) Idle(s *record.Split, idle bool) {
	o.r.splits.mu.Lock()
	o.r.splits.open[s.Index].idle = idle
	o.r.splits.mu.Unlock()
	o.r.watch(func(w SplitWatcher) { w.SplitIdle(s, idle) })
}

func (o *output) Committed(s *record.Split) record.Position { return o.r.splits.position(s) }

func (o *output) Checkpoint() { o.r.Checkpoint() }

func (o *output) Abort(err error) { o.r.Fail(err) }

func (o *output) Trouble(err error) {
	if err == nil {
		o.r.trouble.clear("source")
		return
	}
	if o.r.trouble.set("source", err) {
		o.r.log.Warn("source has trouble; it tries again", "err", err)
	}
}

func (o *output) Lost(s *record.Split, bytes int64, reason string) {
	o.r.splits.mu.Lock()
	o.r.splits.open[s.Index].lost += bytes
	o.r.splits.mu.Unlock()
	o.r.ledger.lose(bytes)
	o.r.log.Error("data is gone before it was read", "path", s.Path, "split", s.ID, "bytes", bytes, "reason", reason)
}

var _ sources.Aligner = (*output)(nil)

// EventTime is how far the first window has come in the split.
func (o *output) EventTime(s *record.Split) (int64, bool) {
	if o.r.byTime == nil {
		return 0, false
	}
	return o.r.splits.at(s).event.Load(), true
}
