package pebble

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("RSETL_TEST_OPEN"); dir != "" { // the other process of TestInUse
		_, err := Open(dir, Options{})
		fmt.Print(err, errors.Is(err, state.ErrInUse))
		os.Exit(0)
	}
	// Pebble leaves this one behind where Open fails late, by a read.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

func TestStore(t *testing.T) {
	statetest.Run(t, func(t *testing.T) state.Store { return open(t, t.TempDir()+"/state", Options{}) })
}

func TestStoreInMemory(t *testing.T) {
	statetest.Run(t, func(t *testing.T) state.Store {
		return open(t, "/state", Options{FS: vfs.NewMem(), memTable: 64 << 10})
	})
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestRemains: what a rename that did not come to its end has copied is no state, and no part of one that begins.
func TestRemains(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	err := s.use(ctx, func(db *pebble.DB) error {
		b := db.NewBatch()
		defer b.Close()
		b.Set(key("p", 'a', "part"), []byte("x"), nil)
		b.Set(key("p", 'q', "t"), make([]byte, 8), nil)
		b.Set(key("p", 's', "id"), []byte(splitGolden), nil)
		b.Set(outboxKey("p", "t", 1), []byte("x"), nil)
		b.Set(stateKey("p", "w", []byte("k")), []byte("x"), nil)
		return b.Commit(pebble.Sync)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"fresh true\n", "fresh false\n"} {
		if got, err := statetest.Dump(s, "p", []string{"t"}, []string{"w"}); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
		statetest.Commit(t, s, "p", &state.Commit{})
	}
}
