package pipeline

import (
	"context"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// Stage is a stateful step: a window, dedupe, a join. It runs at the lane's
// ordered end, in one goroutine, split by split in order, and so does everything
// behind it. A steps.Maker of such a step returns a Step that implements Stage.
type Stage interface {
	// Apply absorbs records (taking them out of Sel and counting them in
	// b.Absorbed) or lets them pass.
	Apply(b *record.Batch)
	// Restore is called once, before anything else, with a reader of the committed state.
	Restore(ctx context.Context, load func(prefix []byte, f func(key, value []byte) error) error) error
	// Checkpoint is called when a marker passes. It returns the state that changed since
	// the last call and adds the records that fire to out, an empty batch; they run through
	// the steps behind the stage and are committed together with the state, then delivered.
	Checkpoint(out *record.Batch) []state.KV
	// Due tells after Apply whether something fires, so that a checkpoint should come early.
	Due() bool
}
