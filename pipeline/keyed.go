package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/rsetl/rsetl/state"
)

// keyed reads a stage's committed state.
type keyed struct {
	r     *Runner
	stage string
}

func (k *keyed) Rows() bool {
	q, ok := k.r.o.Store.(interface{ Queryable() bool })
	return ok && q.Queryable()
}

func (k *keyed) Range(prefix, after []byte, f func(key, value []byte) error) error {
	last := after
	return k.retry(func() (mine bool, err error) {
		err = k.r.o.Store.Range(k.r.abort, k.r.plan.Name, k.stage, prefix, last, func(key, value []byte) error {
			if err := f(key, value); err != nil {
				mine = true
				return err
			}
			last = append([]byte{}, key...)
			return nil
		})
		return mine, err
	})
}

func (k *keyed) Get(keys [][]byte, f func(i int, value []byte) error) error {
	seen := make([]bool, len(keys))
	return k.retry(func() (mine bool, err error) {
		err = k.r.o.Store.Get(k.r.abort, k.r.plan.Name, k.stage, keys, func(i int, value []byte) error {
			if seen[i] {
				return nil
			}
			seen[i] = true
			if err := f(i, value); err != nil {
				mine = true
				return err
			}
			return nil
		})
		return mine, err
	})
}

// retry calls read until it succeeds, fails with an error of its caller's, or the run is over. Before the run has begun a failure is told at
// once: the start is tried again as a whole.
func (k *keyed) retry(read func() (mine bool, err error)) error {
	r := k.r
	wait := 100 * time.Millisecond
	for {
		mine, err := read()
		if err == nil {
			r.trouble.clear("state")
			return nil
		}
		if mine || !r.running.Load() || errors.Is(err, state.ErrFailed) || errors.Is(err, state.ErrCorrupt) {
			return err
		}
		if r.trouble.set("state", err) {
			r.log.Warn("the state can't be read; it is tried again", "step", k.stage, "err", err)
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-r.abort.Done():
			t.Stop()
			return context.Cause(r.abort)
		}
		wait = min(2*wait, 5*time.Second)
	}
}
