// Package stores has the state stores of one process: the state directory's, and those in databases, each opened once.
package stores

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/mysql"
)

// Stores is usable from any goroutine.
type Stores struct {
	local state.Store
	log   *slog.Logger

	mu   sync.Mutex
	open map[place]*mysql.Store
}

type place struct {
	dsn, prefix string
	lease       time.Duration
}

// New gives the stores beside the local one, which stays its caller's.
func New(local state.Store, log *slog.Logger) *Stores {
	return &Stores{local: local, log: log, open: map[place]*mysql.Store{}}
}

// Local is the state directory's.
func (s *Stores) Local() state.Store { return s.local }

// Remote gives the store in a database, opened where it isn't yet.
func (s *Stores) Remote(ctx context.Context, dsn, prefix string, lease time.Duration) (state.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{dsn, prefix, lease}
	if st := s.open[at]; st != nil {
		return st, nil
	}
	st, err := mysql.Open(ctx, mysql.Options{DSN: dsn, Prefix: prefix, Lease: lease, Log: s.log})
	if err != nil {
		return nil, err
	}
	s.open[at] = st
	return st, nil
}

// Remotes lists the databases' stores that are open.
func (s *Stores) Remotes() (out []state.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.open {
		out = append(out, st)
	}
	return out
}

// Close closes the databases' stores and gives their leases up.
func (s *Stores) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for at, st := range s.open {
		errs = append(errs, st.Close())
		delete(s.open, at)
	}
	return errors.Join(errs...)
}
