package manager

import (
	"context"
	"fmt"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline"
)

// task is work on a pipeline's state, done while it doesn't run: it is drained before and started anew after.
type task struct {
	f    func(ctx context.Context) error
	done chan error
}

// between has f done by the unit's goroutine while nothing of the pipeline runs, and waits for it.
func (u *unit) between(ctx context.Context, f func(ctx context.Context) error) error {
	t := task{f, make(chan error, 1)}
	u.mu.Lock()
	u.tasks = append(u.tasks, t)
	u.mu.Unlock()
	u.poke()
	select {
	case err := <-t.done:
		return err
	case <-u.m.ended:
		return ErrStopping
	case <-ctx.Done(): // it is done all the same, if it can be
		return ctx.Err()
	}
}

// takeTasks empties the list.
func (u *unit) takeTasks() []task {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.tasks
	u.tasks = nil
	return out
}

// refuse ends tasks that can't be done any more.
func (u *unit) refuse(err error) {
	for _, t := range u.takeTasks() {
		t.done <- err
	}
}

// service does the tasks.
func (u *unit) service() {
	if u.current == nil {
		u.refuse(fmt.Errorf("%w: %s: its file has mistakes", ErrNotRun, u.nameNow()))
		return
	}
	u.retry.Stop()
	u.stop()
	if u.m.stopping.Err() != nil {
		u.refuse(ErrStopping)
		return
	}
	for _, t := range u.takeTasks() {
		t.done <- t.f(context.Background())
	}
	u.edit(func() { u.last = nil }) // counts may have changed
	if err := u.start(u.current); err != nil {
		u.fail(err)
	}
}

// lettersOf is the letter file of what runs, or is to run.
func (u *unit) lettersOf() (v *version, path string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if v = u.current; v == nil {
		return nil, "", fmt.Errorf("%w: %s: its file has mistakes", ErrNotRun, u.name)
	}
	return v, v.outputs[len(v.outputs)-1], nil
}

// Dead lists a pipeline's dead letters that the filter selects, the newest last, at most limit of them; total says how many
// there are.
func (m *Manager) Dead(ctx context.Context, name string, f *deadletter.Filter, limit int) (letters []*deadletter.Entry, total int64, err error) {
	u, err := m.unit(name)
	if err != nil {
		return nil, 0, err
	}
	_, path, err := u.lettersOf()
	if err != nil {
		return nil, 0, err
	}
	done, err := pipeline.Replayed(ctx, u.storeNow(), name)
	if err != nil {
		return nil, 0, err
	}
	return ReadDead(path, done, f, limit)
}

// ReadDead reads the letters at path; done are those that were replayed.
func ReadDead(path string, done map[string]bool, f *deadletter.Filter, limit int) (letters []*deadletter.Entry, total int64, err error) {
	err = deadletter.Read(path, func(e *deadletter.Entry) error {
		if f.Match(e) {
			total++
			e.Replayed = done[e.ID]
			if letters = append(letters, e); len(letters) >= 2*limit { // keeps the newest without moving them each time
				letters = append(letters[:0], letters[len(letters)-limit:]...)
			}
		}
		return nil
	})
	return letters[max(0, len(letters)-limit):], total, err
}

// Replay puts the selected dead letters through the pipeline again: failures of steps from its start, rejects of a sink
// into that sink. A letter is replayed once. The pipeline is drained and started for it.
func (m *Manager) Replay(ctx context.Context, name string, f *deadletter.Filter) (out *pipeline.Replay, err error) {
	u, err := m.unit(name)
	if err != nil {
		return nil, err
	}
	err = u.between(ctx, func(ctx context.Context) error {
		v, path, err := u.lettersOf()
		if err != nil {
			return err
		}
		plan, again := m.load(&v.file)
		if again.err != nil {
			return again.err
		}
		store, err := pipeline.StoreOf(ctx, plan, m.stores)
		if err != nil {
			return err
		}
		out, err = pipeline.ReplayLetters(ctx, store, plan, path, f)
		return err
	})
	return out, err
}

// Reset sets a pipeline's positions back; it is drained and started for it.
func (m *Manager) Reset(ctx context.Context, name string, r pipeline.Reset) (n int, err error) {
	u, err := m.unit(name)
	if err != nil {
		return 0, err
	}
	err = u.between(ctx, func(ctx context.Context) error {
		v, _, err := u.lettersOf()
		if err != nil {
			return err
		}
		plan, again := m.load(&v.file)
		if again.err != nil {
			return again.err
		}
		if r.All {
			n, err = pipeline.ForgetAll(ctx, plan, m.stores)
			return err
		}
		store, err := pipeline.StoreOf(ctx, plan, m.stores)
		if err != nil {
			return err
		}
		n, err = pipeline.ResetState(ctx, store, name, r)
		return err
	})
	return n, err
}
