package pipeline

import (
	"context"
	"fmt"
	"strings"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// Reset says what of a pipeline's state begins anew.
type Reset struct {
	Split string `json:"split,omitempty"` // its id or path; "": every split
	All   bool   `json:"all,omitempty"`   // forget everything: positions, windows, counts
}

// ResetState sets positions back to the splits' beginnings and raises their splits' epochs, so that transactional sinks take again what comes again.
// With every split windows and other stages begin anew too. It tells how many splits that were. The pipeline doesn't run.
func ResetState(ctx context.Context, store state.Store, name string, r Reset) (int, error) {
	if err := acquire(ctx, store, name, func(error) {}); err != nil {
		return 0, err
	}
	s, err := store.Load(ctx, name)
	if err != nil {
		return 0, err
	}
	if r.All {
		return len(s.Splits), store.Remove(ctx, name)
	}
	var c state.Commit
	for _, sp := range s.Splits {
		if r.Split != "" && sp.ID != r.Split && sp.Path != r.Split {
			continue
		}
		sp.Epoch++
		sp.Done = false
		sp.Recent = []record.Position{{}}
		c.Splits = append(c.Splits, sp)
	}
	if len(c.Splits) == 0 {
		if r.Split != "" {
			return 0, fmt.Errorf("%s has no split %s; `rsetl state show %s` lists them", name, r.Split, name)
		}
		return 0, fmt.Errorf("%s has no positions", name)
	}
	if r.Split == "" { // what windows hold comes again
		for _, stage := range strings.Split(string(s.Parts[stagesPart]), "\n") {
			if stage == "" {
				continue
			}
			err := store.Range(ctx, name, stage, nil, nil, func(key, _ []byte) error {
				c.State = append(c.State, state.KV{Stage: stage, Key: append([]byte(nil), key...)})
				return nil
			})
			if err != nil {
				return 0, err
			}
		}
	}
	return len(c.Splits), store.Commit(ctx, name, &c)
}
