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
	local, err := s.Local().Load(ctx, p.Name)
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: read its state: %w", p.Name, err)
	}
	elsewhere := string(local.Parts[elsewherePart])
	if r == nil {
		if elsewhere != "" {
			return nil, fmt.Errorf("pipeline %s: its state is in the database %s, and would not be moved here: everything would be read and delivered again. Put `state: {remote: …}` back, or give the pipeline another `name:` where that is what you want", p.Name, elsewhere)
		}
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
	if snap.Fresh && !local.Fresh && elsewhere == "" {
		return nil, fmt.Errorf("pipeline %s: its state is in the state directory, and %s has none of it: positions are not moved. Take `state: {remote: …}` out again, or give the pipeline another `name:`: then everything is read and delivered again", p.Name, r.Where())
	}
	if elsewhere != r.Where() {
		if err := s.Local().Commit(ctx, p.Name, &state.Commit{Parts: map[string][]byte{elsewherePart: []byte(r.Where())}}); err != nil {
			return nil, fmt.Errorf("pipeline %s: note where its state is: %w", p.Name, err)
		}
	}
	return remote, nil
}

// elsewherePart says, in the state directory, in which database a pipeline's state is.
const elsewherePart = "elsewhere"

// Elsewhere is the database that has a pipeline's state; "" where the snapshot is its state.
func Elsewhere(s *state.Snapshot) string { return string(s.Parts[elsewherePart]) }

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
