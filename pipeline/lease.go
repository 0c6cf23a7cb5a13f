package pipeline

import (
	"context"
	"fmt"
	"strings"

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
	elsewhere, begun := strings.CutSuffix(string(local.Parts[elsewherePart]), begunMark)
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
	note := r.Where()
	if snap.Fresh {
		const out = "give the pipeline another `name:` where it should begin anew: then everything is read and delivered again"
		switch {
		case elsewhere == "" && !local.Fresh:
			return nil, fmt.Errorf("pipeline %s: its state is in the state directory, and %s has none of it: positions are not moved. Take `state: {remote: …}` out again, or %s", p.Name, r.Where(), out)
		case elsewhere != "" && elsewhere != r.Where():
			return nil, fmt.Errorf("pipeline %s: its state is in the database %s, and %s has none of it: positions are not moved. Put the former back, or %s", p.Name, elsewhere, r.Where(), out)
		case elsewhere != "" && !begun:
			return nil, fmt.Errorf("pipeline %s: its state was in the database %s, which has none of it any more. Restore that, or give it up with `rsetl state reset --all`: then everything is read and delivered again", p.Name, r.Where())
		}
		note += begunMark
	}
	if string(local.Parts[elsewherePart]) != note {
		if err := s.Local().Commit(ctx, p.Name, &state.Commit{Parts: map[string][]byte{elsewherePart: []byte(note)}}); err != nil {
			return nil, fmt.Errorf("pipeline %s: note where its state is: %w", p.Name, err)
		}
	}
	return remote, nil
}

// ForgetAll removes all state of a plan that doesn't run, and the note of where it is. It tells how many splits there were.
func ForgetAll(ctx context.Context, p *Plan, s *stores.Stores) (n int, err error) {
	if r := p.Options.State.Remote; r != nil {
		remote, err := s.Remote(ctx, r.DSN.Value, r.Prefix, r.Lease.D())
		if err != nil {
			return 0, err
		}
		if n, err = ResetState(ctx, remote, p.Name, Reset{All: true}); err != nil {
			return 0, err
		}
	}
	local, err := ResetState(ctx, s.Local(), p.Name, Reset{All: true})
	return n + local, err
}

// elsewherePart says, in the state directory, in which database a pipeline's state is; with begunMark behind it where it was empty when
// the pipeline was started last: there may be nothing yet.
const (
	elsewherePart = "elsewhere"
	begunMark     = " (begun)"
)

// Elsewhere is the database that has a pipeline's state; "" where the snapshot is its state.
func Elsewhere(s *state.Snapshot) string {
	return strings.TrimSuffix(string(s.Parts[elsewherePart]), begunMark)
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
