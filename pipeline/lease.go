package pipeline

import (
	"context"
	"fmt"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/stores"
)

// StoreOf gives the store that holds the plan's state.
func StoreOf(ctx context.Context, p *Plan, s *stores.Stores) (state.Store, error) {
	r := p.Options.State.Remote
	if r == nil {
		return s.Local(), nil
	}
	remote, err := s.Remote(ctx, r.DSN.Value, r.Prefix, r.Lease.D())
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: state: %w", p.Name, err)
	}
	snap, err := remote.Load(ctx, p.Name)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: read its state: %w", p.Name, err)
	}
	if !snap.Fresh {
		return remote, nil
	}
	if snap, err = s.Local().Load(ctx, p.Name); err != nil {
		return nil, fmt.Errorf("pipeline %s: read its state: %w", p.Name, err)
	}
	if !snap.Fresh {
		return nil, fmt.Errorf("pipeline %s: its state is in the state directory, and %s has none of it: positions are not moved. Take `state: {remote: …}` out again, or give the pipeline another `name:` to begin anew", p.Name, r.Where())
	}
	return remote, nil
}

// acquire makes the pipeline this process's where its store is shared; lost is told when it no longer is.
func acquire(ctx context.Context, store state.Store, name string, lost func(error)) error {
	l, ok := store.(state.Leased)
	if !ok {
		return nil
	}
	return l.Acquire(ctx, name, lost)
}

// Release gives a pipeline that doesn't run up to other processes, where its store is shared.
func Release(ctx context.Context, store state.Store, name string) error {
	l, ok := store.(state.Leased)
	if !ok {
		return nil
	}
	return l.Release(ctx, name)
}
