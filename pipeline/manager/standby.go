package manager

import (
	"context"
	"errors"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state"
)

// pausedTry is how often a paused instance that stands by looks whether it is to go on.
const pausedTry = time.Second

// lookEvery is how often an instance that stands by reads what the other one has committed, for its status.
const lookEvery = 5 * time.Second

func (u *unit) standsBy() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.waits
}

func (u *unit) pausedNow() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.paused
}

// held tells whether another instance has the pipeline.
func held(err error) bool {
	var h *state.HeldError
	return errors.As(err, &h)
}

// standby waits for the instance that has the pipeline to stop or to lose it.
func (u *unit) standby(err error) {
	var h *state.HeldError
	errors.As(err, &h)
	u.retry.Reset(h.Again())
	told := u.standsBy()
	if now := time.Now(); !told || now.Sub(u.looked) > lookEvery {
		u.looked = now
		u.edit(func() { u.last = nil })
		u.committed()
	}
	u.edit(func() { u.err, u.retryAt, u.waits = h, time.Time{}, true })
	if !told {
		u.log().Info("another instance runs the pipeline; this one stands by", "instance", h.Owner)
	}
}

// open finds the store that has the plan's state.
func (u *unit) open(ctx context.Context, p *pipeline.Plan) (state.Store, error) {
	store, err := pipeline.StoreOf(ctx, p, u.m.stores)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	before := u.store
	u.mu.Unlock()
	if before != nil && before != store {
		u.release()
	}
	u.edit(func() { u.store = store })
	return store, nil
}

// storeNow is where the pipeline's state is, as far as that is known.
func (u *unit) storeNow() state.Store {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.store == nil {
		return u.m.o.Store
	}
	return u.store
}

// release lets other instances have the pipeline. A reload doesn't: it goes on here.
func (u *unit) release() {
	u.mu.Lock()
	store, name := u.store, u.from
	u.mu.Unlock()
	if store == nil || name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := pipeline.Release(ctx, store, name); err != nil {
		u.log().Warn("the pipeline could not be given up; other instances take it when the lease ends", "err", err)
	}
}
