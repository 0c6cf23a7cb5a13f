package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/services"
)

const short = 700 * time.Millisecond

// TestHeld: one process at a time; what has no lease can read, and can't commit.
func TestHeld(t *testing.T) {
	dsn := services.MySQL(t)
	a, b := open(t, Options{DSN: dsn, Owner: "a:1", Lease: time.Minute}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: time.Minute})
	lostA := acquire(t, a, "p")
	h := wantHeld(t, b.Acquire(ctx, "p", nil), "p", "a:1")
	if left := time.Until(h.Until); left < 50*time.Second || left > time.Minute {
		t.Errorf("it is a's for %v", left)
	}
	statetest.Commit(t, a, "p", counted(1))
	if err := b.Commit(ctx, "p", counted(2)); err == nil || !strings.Contains(err.Error(), "acquire it first") {
		t.Errorf("a commit without a lease: %v", err)
	}
	want(t, "what b reads", statetest.Load(t, b, "p").Counters, map[string]int64{"in": 1})
	acquire(t, b, "q") // another pipeline
	if err := b.Release(ctx, "p"); err != nil {
		t.Error("releasing what isn't held:", err)
	}
	if err := a.Release(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if err := a.Commit(ctx, "p", counted(2)); err == nil {
		t.Error("a commit after the release")
	}
	acquire(t, b, "p")
	statetest.Commit(t, b, "p", counted(3))
	wantHeld(t, a.Acquire(ctx, "p", nil), "p", "b:2")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	acquire(t, a, "p")
	acquire(t, a, "q")
	want(t, "counters", statetest.Load(t, a, "p").Counters, map[string]int64{"in": 3})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	want(t, "rows after all", query(t, dsn, "SELECT name, owner, token, lease_until FROM rsetl_pipelines"), "p|||NULL")
	if len(lostA) > 0 {
		t.Error("a release is no loss:", <-lostA)
	}
}

// TestAcquireAgain: the last one's lost counts.
func TestAcquireAgain(t *testing.T) {
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Lease: short})
	first := acquire(t, s, "p")
	second := acquire(t, s, "p")
	execute(t, dsn, "UPDATE rsetl_pipelines SET token = 'x', owner = 'b:2'")
	if err := wait(t, "lost", second); !errors.Is(err, state.ErrLost) || !strings.Contains(err.Error(), "b:2") {
		t.Errorf("lost: %v", err)
	}
	for range 2 { // until the next Acquire
		if err := s.Commit(ctx, "p", counted(1)); !errors.Is(err, state.ErrLost) {
			t.Errorf("a commit after that: %v", err)
		}
	}
	if err := s.Remove(ctx, "p"); err != nil && !errors.As(err, new(*state.HeldError)) {
		t.Error(err)
	}
	if err := s.Commit(ctx, "p", counted(1)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a commit after another's work: %v", err)
	}
	eventually(t, "the row is free", func() bool { return s.Acquire(ctx, "p", nil) == nil })
	statetest.Commit(t, s, "p", counted(1))
	if len(first)+len(second) > 0 {
		t.Error("told twice")
	}
}

// TestOwnRow: a process that lost its lease by its own clock takes it again at once where nobody else has it.
func TestOwnRow(t *testing.T) {
	dsn := services.MySQL(t)
	a, b := open(t, Options{DSN: dsn, Lease: time.Minute}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: time.Minute})
	lost := acquire(t, a, "p")
	a.held("p").lose("test")
	wait(t, "lost", lost)
	wantHeld(t, b.Acquire(ctx, "p", nil), "p", "test")
	if err := a.Release(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	acquire(t, a, "p")
	statetest.Commit(t, a, "p", counted(1))
	want(t, "epoch", query(t, dsn, "SELECT epoch FROM rsetl_pipelines"), 2)
}

// TestRenewed: a lease outlives its length as long as its process lives.
func TestRenewed(t *testing.T) {
	dsn := services.MySQL(t)
	a, b := open(t, Options{DSN: dsn, Owner: "a:1", Lease: short}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: short})
	lost := acquire(t, a, "p")
	for end := time.Now().Add(3 * short); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		wantHeld(t, b.Acquire(ctx, "p", nil), "p", "a:1")
	}
	statetest.Commit(t, a, "p", counted(1))
	if len(lost) > 0 {
		t.Error(<-lost)
	}
}

// TestTakeover: a process that isn't heard of loses its pipeline after a lease, and knows it by itself.
func TestTakeover(t *testing.T) {
	dsn := services.MySQL(t)
	slow, p := through(t, dsn)
	a, b := open(t, Options{DSN: slow, Owner: "a:1", Lease: short}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: short})
	lost := acquire(t, a, "p")
	statetest.Commit(t, a, "p", counted(1))
	wall := hold(t, p, "", false)
	begun := time.Now()
	wantHeld(t, b.Acquire(ctx, "p", nil), "p", "a:1")
	err := wait(t, "lost", lost)
	if !errors.Is(err, state.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("a knew it after %v", took)
	}
	if err := a.Commit(ctx, "p", counted(2)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a's commit: %v", err)
	}
	eventually(t, "b takes it", func() bool { return b.Acquire(ctx, "p", nil) == nil })
	want(t, "what b finds", statetest.Load(t, b, "p").Counters, map[string]int64{"in": 1})
	statetest.Commit(t, b, "p", counted(3))
	wall.release()
	if err := a.Commit(ctx, "p", counted(2)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a's commit when it is back: %v", err)
	}
	wantHeld(t, a.Acquire(ctx, "p", nil), "p", "b:2")
	want(t, "counters", statetest.Load(t, a, "p").Counters, map[string]int64{"in": 3})
}

// TestFenced: a commit that was in the middle when another took the pipeline changes nothing, though its process believes in its lease.
func TestFenced(t *testing.T) {
	full := func(by string) *state.Commit {
		return &state.Commit{Splits: []state.Split{{ID: "of " + by}}, Parts: map[string][]byte{by: []byte(by)},
			State: []state.KV{{Stage: "w", Key: []byte(by), Value: []byte(by)}}, Firings: []state.Firing{{Target: by, Seq: 1, Data: []byte(by)}}}
	}
	for _, at := range []string{"START TRANSACTION", "SELECT version", "INSERT INTO `rsetl_keyed`", "UPDATE `rsetl_pipelines` SET version"} {
		t.Run(at, func(t *testing.T) {
			dsn := services.MySQL(t)
			slow, p := through(t, dsn)
			a, b := open(t, Options{DSN: slow, Owner: "a:1", Lease: time.Minute}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: time.Minute})
			lost := acquire(t, a, "p")
			statetest.Commit(t, a, "p", full("before"))
			wall := hold(t, p, at, true)
			done := make(chan error, 1)
			go func() { done <- a.Commit(ctx, "p", full("late")) }()
			wait(t, at, wall.reached)
			execute(t, dsn, "UPDATE rsetl_pipelines SET lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")
			acquire(t, b, "p")
			statetest.Commit(t, b, "p", full("b"))
			before := dump(t, b, "p")
			wall.release()
			err := wait(t, "a's commit", done)
			if !errors.Is(err, state.ErrLost) || !strings.Contains(err.Error(), "b:2") {
				t.Errorf("a's commit: %v", err)
			}
			if err := wait(t, "lost", lost); !errors.Is(err, state.ErrLost) {
				t.Errorf("lost: %v", err)
			}
			want(t, "state", dump(t, b, "p"), before)
			if strings.Contains(before, "late") || !strings.Contains(before, `state "w" "b"`) || !strings.Contains(before, `state "w" "before"`) {
				t.Error(before)
			}
			want(t, "versions", query(t, dsn, "SELECT k, version FROM rsetl_keyed ORDER BY k"), "b|2\nbefore|1")
		})
	}
}

// TestAsleep: an owner that fell asleep in the middle of a commit keeps rows locked that the next one writes, until the server ends
// its session.
func TestAsleep(t *testing.T) {
	dsn := services.MySQL(t)
	slow, p := through(t, dsn)
	a, b := open(t, Options{DSN: slow, Lease: short, idle: time.Second}), open(t, Options{DSN: dsn, Lease: short, idle: time.Second})
	acquire(t, a, "p")
	c := func(v string) *state.Commit {
		return &state.Commit{Splits: []state.Split{{ID: "s"}}, Parts: map[string][]byte{"x": []byte(v)}, State: []state.KV{{Stage: "w", Key: []byte("k"), Value: []byte(v)}}}
	}
	wall := hold(t, p, "UPDATE `rsetl_pipelines` SET version", false)
	done := make(chan error, 1)
	go func() { done <- a.Commit(ctx, "p", c("a")) }()
	wait(t, "the commit", wall.reached)
	eventually(t, "b takes it", func() bool { return b.Acquire(ctx, "p", nil) == nil })
	statetest.Commit(t, b, "p", c("b"))
	before := dump(t, b, "p")
	wall.release()
	if err := wait(t, "a's commit", done); !errors.Is(err, state.ErrLost) {
		t.Error(err)
	}
	want(t, "state", dump(t, b, "p"), before)
	want(t, "parts", string(statetest.Load(t, b, "p").Parts["x"]), "b")
}

// TestLateCommit: a COMMIT that is still on its way when its caller gives up can't come after the next Load.
func TestLateCommit(t *testing.T) {
	dsn := services.MySQL(t)
	slow, p := through(t, dsn)
	s := open(t, Options{DSN: slow, Lease: time.Minute})
	acquire(t, s, "p")
	statetest.Commit(t, s, "p", counted(1))
	wall := hold(t, p, "COMMIT", true)
	ctx2, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Commit(ctx2, "p", counted(2)) }()
	wait(t, "the commit", wall.reached)
	cancel()
	if err := wait(t, "the commit's error", done); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	loaded := make(chan *state.Snapshot, 1)
	go func() {
		snap, err := s.Load(ctx, "p")
		if err != nil {
			t.Error(err)
		}
		loaded <- snap
	}()
	eventually(t, "the load waits", func() bool {
		return len(loaded) > 0 || query(t, dsn, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'UPDATE % SET epoch%'") == "1"
	})
	wall.release()
	want(t, "what Load gave", wait(t, "load", loaded).Counters, map[string]int64{"in": 2})
	statetest.Commit(t, s, "p", counted(3))
	want(t, "counters", statetest.Load(t, s, "p").Counters, map[string]int64{"in": 3})
	want(t, "commits", query(t, dsn, "SELECT version FROM rsetl_pipelines"), "3")
}

// TestLostMayRelease: lost may call the store.
func TestLostMayRelease(t *testing.T) {
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Lease: short})
	done := make(chan error, 1)
	err := s.Acquire(ctx, "p", func(error) { done <- s.Release(ctx, "p") })
	if err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, "DELETE FROM rsetl_pipelines")
	if err := wait(t, "release", done); err != nil {
		t.Error(err)
	}
	acquire(t, s, "p")
	statetest.Commit(t, s, "p", counted(1))
}

// TestMoveLeases: what changes a pipeline as a whole needs its lease, takes it where nobody has it, and leaves leases as they were.
func TestMoveLeases(t *testing.T) {
	dsn := services.MySQL(t)
	a, b := open(t, Options{DSN: dsn, Owner: "a:1", Lease: time.Minute}), open(t, Options{DSN: dsn, Owner: "b:2", Lease: time.Minute})
	lostA := acquire(t, a, "p")
	statetest.Commit(t, a, "p", counted(1))
	wantHeld(t, b.Remove(ctx, "p"), "p", "a:1")
	wantHeld(t, b.Rename(ctx, "p", "new"), "p", "a:1")
	acquire(t, b, "theirs")
	wantHeld(t, a.Rename(ctx, "p", "theirs"), "theirs", "b:2")
	statetest.Commit(t, a, "p", counted(2))
	if err := a.Rename(ctx, "p", "new"); err != nil {
		t.Fatal(err)
	}
	statetest.Commit(t, a, "p", counted(3)) // the name is still a's
	acquire(t, b, "new")                    // and this one nobody's
	statetest.Commit(t, b, "new", &state.Commit{Parts: map[string][]byte{"x": {}}})
	want(t, "p", statetest.Load(t, b, "p").Counters, map[string]int64{"in": 3})
	want(t, "new", statetest.Load(t, a, "new").Counters, map[string]int64{"in": 2})
	wantHeld(t, b.Acquire(ctx, "p", nil), "p", "a:1")
	if err := a.Remove(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, b.Acquire(ctx, "p", nil), "p", "a:1")
	statetest.Commit(t, a, "p", counted(4))
	if err := a.Release(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if !statetest.Load(t, a, "p").Fresh {
		t.Error("it is still there")
	}
	acquire(t, a, "p")
	want(t, "rows", query(t, dsn, "SELECT name, owner, version FROM rsetl_pipelines ORDER BY name"), "new|b:2|3\np|a:1|0\ntheirs|b:2|0")
	if len(lostA) > 0 {
		t.Error(<-lostA)
	}
}

// TestSweep: what a removal left is deleted by the next one, in pieces.
func TestSweep(t *testing.T) {
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Lease: time.Minute})
	acquire(t, s, "p")
	c := &state.Commit{Splits: []state.Split{{ID: "a"}}, Parts: map[string][]byte{"a": {}}, Firings: []state.Firing{{Target: "t"}}}
	for i := range sweepRows + 5 {
		c.State = append(c.State, state.KV{Stage: "w", Key: fmt.Append(nil, i), Value: []byte("v")})
	}
	statetest.Commit(t, s, "p", c)
	l := s.held("p")
	if err := s.remove(ctx, l); err != nil { // without what follows in Remove
		t.Fatal(err)
	}
	want(t, "state", dump(t, s, "p"), "fresh true\n")
	want(t, "rows", query(t, dsn, "SELECT COUNT(*) FROM rsetl_keyed"), sweepRows+5)
	if err := s.Release(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	for _, table := range append(s.name.state(), s.name.pipelines) {
		want(t, table, query(t, dsn, "SELECT COUNT(*) FROM "+table), "0")
	}
}

// TestRace: of many that acquire at once, one has it; each commits only while it has it.
func TestRace(t *testing.T) {
	dsn := services.MySQL(t)
	var wg sync.WaitGroup
	total := 12
	for i := range 4 {
		s := open(t, Options{DSN: dsn, Owner: fmt.Sprint(i), Lease: time.Minute})
		wg.Go(func() {
			for k := 0; k < total; {
				err := s.Acquire(ctx, "p", nil)
				if errors.As(err, new(*state.HeldError)) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				snap, err := s.Load(ctx, "p")
				if err == nil {
					err = s.Commit(ctx, "p", counted(snap.Counters["in"]+1))
				}
				if err == nil {
					err = s.Release(ctx, "p")
				}
				if err != nil {
					t.Error(err)
					return
				}
				k++
			}
		})
	}
	wg.Wait()
	s := open(t, Options{DSN: dsn})
	want(t, "commits", statetest.Load(t, s, "p").Counters["in"], 4*total)
}
