package mysql

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Owner == "" {
		o.Owner = "test"
	}
	s, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// leasing acquires pipelines at their first commit.
type leasing struct {
	*Store
	mu   sync.Mutex
	mine map[string]bool
}

func (s *leasing) Commit(ctx context.Context, pipeline string, c *state.Commit) error {
	s.mu.Lock()
	mine := s.mine[pipeline]
	s.mu.Unlock()
	if !mine {
		if err := s.Acquire(context.WithoutCancel(ctx), pipeline, nil); err != nil {
			return err
		}
		s.mu.Lock()
		s.mine[pipeline] = true
		s.mu.Unlock()
	}
	return s.Store.Commit(ctx, pipeline, c)
}

func TestStore(t *testing.T) {
	for name, o := range map[string]Options{"plain": {Lease: time.Minute}, "small statements": {Lease: time.Minute, stmtBytes: 200}} {
		t.Run(name, func(t *testing.T) {
			statetest.Run(t, func(t *testing.T) state.Store {
				o.DSN = services.MySQL(t)
				return &leasing{Store: open(t, o), mine: map[string]bool{}}
			})
		})
	}
}
