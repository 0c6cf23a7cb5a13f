package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/state"
)

// originPart holds the name under which sinks know a pipeline, where that isn't its own: a file's new name must not
// hide from a transactional sink the positions that it has.
const originPart = "origin"

// origin gives the name under which sinks know the pipeline. A pipeline without state whose name is still that of a
// renamed one at the sinks gets another; birth tells that it must be part of the first commit.
func origin(ctx context.Context, store state.Store, name string, s *state.Snapshot) (as string, birth bool, err error) {
	if as := s.Parts[originPart]; as != nil {
		return string(as), false, nil
	}
	if !s.Fresh {
		return name, false, nil
	}
	others, err := store.Pipelines(ctx)
	if err != nil {
		return "", false, err
	}
	var taken []string
	for _, other := range others {
		o, err := store.Load(ctx, other)
		if err != nil {
			return "", false, err
		}
		if as := o.Parts[originPart]; as != nil {
			taken = append(taken, string(as))
		}
	}
	as = name
	for n := 2; slices.Contains(taken, as); n++ {
		as = name + "~" + strconv.Itoa(n)
	}
	return as, as != name, nil
}

// Moved completes the rename of a pipeline's state in the store: its dead letters move from the path letters to the
// path now, where they were there, and sinks go on to know it under the name it had. The pipeline doesn't run. What
// was done already, before a crash, is not done twice.
func Moved(ctx context.Context, store state.Store, from, name, letters, now string) error {
	s, err := store.Load(ctx, name)
	if err != nil || s.Fresh {
		return err
	}
	parts := map[string][]byte{}
	if s.Parts[originPart] == nil {
		parts[originPart] = []byte(from)
	}
	if mark := deadletter.Mark(s.Parts[lettersPart]); mark != nil {
		moved, err := deadletter.Move(mark, letters, now)
		if err != nil {
			return fmt.Errorf("move the dead letters of %s: %w", name, err)
		}
		if moved != nil {
			parts[lettersPart] = moved
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if err := acquire(ctx, store, name, func(error) {}); err != nil {
		return err
	}
	return store.Commit(ctx, name, &state.Commit{Parts: parts})
}
