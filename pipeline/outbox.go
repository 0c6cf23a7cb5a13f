package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// outbox delivers committed firings: records on their way to a sink or a later stage, in sequence. A
// target's entries are a split of their own whose offset is the sequence number, so that sinks treat
// them like any other. What a sink has taken before a marker leaves with that marker's commit.
type outbox struct {
	r       *Runner
	targets []string
	mu      sync.Mutex
	next    map[string]int64 // per target: the next number; the ordered end's
	stored  map[string]int64 // per target: the last committed number
	sent    map[string]int64 // per target: the last dispatched number
	fed     map[string]int64 // per target: the last number that passed the ordered end
	acked   map[string]int64 // per target: what the last commit removed up to
	splits  map[string]*record.Split
	wake    chan struct{}
}

// outboxBatch is how many firings one batch takes.
const outboxBatch = 500

func (o *outbox) init(r *Runner) {
	o.r = r
	o.next, o.stored, o.sent, o.fed, o.acked = map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}
	o.splits = map[string]*record.Split{}
	o.wake = make(chan struct{}, 1)
	for t, n := range r.snap.NextSeq {
		o.next[t] = n
		o.stored[t] = n - 1
	}
	o.targets = o.findTargets()
	for _, t := range o.targets {
		if o.next[t] == 0 {
			o.next[t] = 1
		}
		o.sent[t] = 0 // entries that were acknowledged are gone from the store; the rest is sent again
		o.splits[t] = &record.Split{ID: "outbox:" + t, Path: "firings to " + t}
	}
}

// findTargets lists all that may get firings: what is behind a stage, and what letters were replayed to.
func (o *outbox) findTargets() []string {
	var out []string
	replays := func(t string) bool { return o.r.snap.NextSeq[t] > 0 }
	for _, s := range o.r.plan.Sinks {
		if len(o.r.stages) > 0 && s.At > o.r.first || replays(s.Name) {
			out = append(out, s.Name)
		}
	}
	for i, n := range o.r.plan.Nodes {
		if n.Stage && i > o.r.first {
			out = append(out, stageTarget(n))
		}
	}
	for _, t := range slices.Sorted(maps.Keys(o.r.snap.NextSeq)) {
		if strings.HasPrefix(t, replayPrefix) {
			out = append(out, t)
		}
	}
	return out
}

// dirty tells whether a commit would remove entries.
func (o *outbox) dirty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for t, n := range o.fed {
		if n > o.acked[t] {
			return true
		}
	}
	return false
}

// cut gives what has passed, for a marker's commit.
func (o *outbox) cut() map[string]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]int64{}
	for t, n := range o.fed {
		if n > o.acked[t] {
			out[t] = n
		}
	}
	return out
}

func (o *outbox) committed(firings []state.Firing, acked map[string]int64) {
	o.mu.Lock()
	for _, f := range firings {
		o.stored[f.Target] = max(o.stored[f.Target], f.Seq)
	}
	for t, n := range acked {
		o.acked[t] = n
	}
	o.mu.Unlock()
	if len(firings) > 0 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// deliver sends stored firings as they are committed, until stop.
func (o *outbox) deliver(stop <-chan struct{}) {
	if len(o.splits) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(o.r.abort)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		if _, err := o.send(ctx); err != nil && ctx.Err() == nil {
			if o.r.trouble.set("outbox", err) {
				o.r.log.Error("cannot read firings; trying again", "err", err)
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			continue
		}
		o.r.trouble.clear("outbox")
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}

// send dispatches what is stored and not sent. One caller at a time.
func (o *outbox) send(ctx context.Context) (any bool, err error) {
	r := o.r
	for _, t := range o.targets {
		for {
			o.mu.Lock()
			after, last := o.sent[t], o.stored[t]
			o.mu.Unlock()
			if after >= last {
				break
			}
			fs, err := r.o.Store.Outbox(ctx, r.plan.Name, t, after, outboxBatch)
			if err != nil {
				return any, fmt.Errorf("read firings for %s: %w", t, err)
			}
			if len(fs) == 0 {
				o.mu.Lock()
				o.sent[t] = last
				o.mu.Unlock()
				break
			}
			if err := o.dispatch(ctx, t, fs); err != nil {
				return any, err
			}
			any = true
			o.mu.Lock()
			o.sent[t] = fs[len(fs)-1].Seq
			o.mu.Unlock()
		}
	}
	return any, nil
}

func (o *outbox) dispatch(ctx context.Context, target string, fs []state.Firing) error {
	r := o.r
	size := 0
	for _, f := range fs {
		size += 2 * len(f.Data)
	}
	it := r.newItem()
	b := it.b
	b.Split = o.splits[target]
	replay := strings.HasPrefix(target, replayPrefix) // their raw form is the message
	for _, f := range fs {
		i, err := record.DecodeRecord(b, f.Data, record.Position{Offset: f.Seq})
		if err != nil {
			r.release(it)
			return fmt.Errorf("firing %d for %s: %w", f.Seq, target, err)
		}
		if replay {
			b.SetRaw(i, messageOf(b, i))
		}
	}
	it.fired = &target
	seq := fs[len(fs)-1].Seq
	done := make(chan struct{})
	it.after = func() {
		o.mu.Lock()
		o.fed[target] = seq
		o.mu.Unlock()
		close(done)
	}
	it.seq = r.order.take()
	r.order.done(it)
	// One batch of a target at a time: that bounds memory, since firings hold no budget.
	select {
	case <-done:
		return nil
	case <-r.abort.Done():
		return context.Cause(r.abort)
	}
}

// feed runs at the ordered end: the fired batch goes to its sink or stage.
func (o *outbox) feed(it *item) {
	r := o.r
	if step, ok := strings.CutPrefix(*it.fired, replayPrefix); ok {
		r.feedReplay(it, step)
		return
	}
	for si, s := range r.plan.Sinks {
		if s.Name == *it.fired {
			r.caches[si].Encode(&it.enc[si], it.b, it.b.Sel)
			return
		}
	}
	for i, n := range r.plan.Nodes {
		if n.Stage && stageTarget(n) == *it.fired {
			if n.branch != nil {
				n.branch.mark(it.b)
			}
			r.end.run(it, i, len(r.plan.Nodes))
			r.noteDue()
			return
		}
	}
}

// drain sends what is stored once the source has ended. It tells whether anything was sent, so that
// another checkpoint is needed.
func (o *outbox) drain(ctx context.Context) (bool, error) {
	if len(o.splits) == 0 {
		return false, nil
	}
	sent, err := o.send(ctx)
	return sent || o.dirty(), err
}

// messageOf is the record's field message, wherever it is.
func messageOf(b *record.Batch, i int) record.Value {
	if slot := b.Table.FindBytes([]byte("message")); slot >= 0 {
		return b.Get(i, slot)
	}
	for name, v := range b.Overflow(i) {
		if string(b.Bytes(name)) == "message" {
			return v
		}
	}
	return record.Value{}
}
