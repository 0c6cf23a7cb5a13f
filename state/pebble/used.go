package pebble

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsetl/rsetl/state"
)

// A database whose log was emptied or removed opens as if nothing had ever been committed. So the first commit leaves a
// trace in two places, the database and a file beside it; where only the file is left, commits are gone.
const usedFile = "USED"

var usedKey = []byte{'u'}

// markUsed makes the file once a commit is durable. Where that fails, the next commit tries again.
func (s *Store) markUsed() {
	if s.used.Load() {
		return
	}
	s.marking.Lock() // pipelines commit at once; they would rename each other's file
	defer s.marking.Unlock()
	if s.used.Load() {
		return
	}
	f := s.o.FS
	if err := writeSynced(f, s.dir, f.PathJoin(s.dir, usedFile), "rsetl has committed to this state\n"); err != nil {
		s.o.Log.Warn("state store: can't note that it is in use", "err", err)
		return
	}
	s.used.Store(true)
}

// checkUsed compares the two places when the database is opened.
func (s *Store) checkUsed(db *pebble.DB) error {
	f := s.o.FS
	_, err := f.Stat(f.PathJoin(s.dir, usedFile))
	s.used.Store(err == nil)
	if err != nil {
		return nil
	}
	_, closer, err := db.Get(usedKey)
	if err == nil {
		return closer.Close()
	}
	if errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("open state directory %s: %w: it was committed to, and the database is empty; nothing was changed: %s", s.dir, state.ErrCorrupt, restore)
	}
	return err
}
