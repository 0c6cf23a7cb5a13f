package state

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Leased is a store that several processes share. A pipeline is one process's at a time.
type Leased interface {
	// Acquire makes the pipeline this process's until Release. It doesn't wait: a *HeldError tells whose it is and until when.
	// lost is called once, from another goroutine, when the lease is gone for good: someone else has it, or it could not be
	// renewed in time. Where this process has it already that is no error, and lost takes the place of the one before.
	Acquire(ctx context.Context, pipeline string, lost func(error)) error
	// Release gives the pipeline up. Where this process doesn't have it that is no error.
	Release(ctx context.Context, pipeline string) error
}

// HeldError: another process has the pipeline.
type HeldError struct {
	Pipeline string
	Owner    string
	Until    time.Time // when its lease ends where it isn't renewed, by this machine's clock
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("pipeline %s is run by the instance %s", e.Pipeline, e.Owner)
}

// askEvery is how often one that stands by asks for the pipeline, where the lease doesn't end sooner.
const askEvery = time.Second

// Again is in how long to ask once more.
func (e *HeldError) Again() time.Duration {
	return min(max(time.Until(e.Until), 0)+50*time.Millisecond, askEvery)
}

// ErrLost: the process no longer has the pipeline that it wants to commit for.
var ErrLost = errors.New("the pipeline's lease is lost: another instance may run it")
