package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/proxy"
	"github.com/rsetl/rsetl/test/services"
)

// once is a hook for one fault, at a piece to the server that holds the text.
func once(what string, f proxy.Fault) proxy.Hook {
	var done atomic.Bool
	return func(up bool, piece []byte) proxy.Fault {
		if up && bytes.Contains(piece, []byte(what)) && done.CompareAndSwap(false, true) {
			return f
		}
		return proxy.Fault{}
	}
}

func TestTransient(t *testing.T) {
	for err, yes := range map[error]bool{
		&driver.MySQLError{Number: 1205}: true, &driver.MySQLError{Number: 1213}: true, &driver.MySQLError{Number: 4031}: true, driver.ErrInvalidConn: true,
		&net.OpError{Op: "dial", Err: errors.New("refused")}: true,
		&driver.MySQLError{Number: 1406}:                     false, &driver.MySQLError{Number: 1290}: false, context.Canceled: false, state.ErrConflict: false,
	} {
		if got := transient(fmt.Errorf("x: %w", err)); got != yes {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestFaults has each failure of the network alone: the commit goes through and is there once.
func TestFaults(t *testing.T) {
	dsn := services.MySQL(t)
	slow, p := through(t, dsn)
	s := open(t, Options{DSN: slow, Lease: time.Minute, stmtBytes: 1000})
	for i, c := range []struct {
		name    string
		hook    proxy.Hook
		commits int // that the server has made
	}{
		{"none", nil, 1},
		{"reset before the transaction", once("START TRANSACTION", proxy.Fault{Cut: true}), 1},
		{"reset in a statement", once("INSERT INTO `rsetl_keyed`", proxy.Fault{Cut: true, Keep: 300}), 1},
		{"a statement's answer is lost", once("INSERT INTO `rsetl_outbox`", proxy.Fault{Last: true}), 1},
		{"reset at the last statement", once("UPDATE `rsetl_pipelines` SET version", proxy.Fault{Cut: true}), 1},
		{"its answer is lost", once("UPDATE `rsetl_pipelines` SET version", proxy.Fault{Last: true}), 1},
		{"reset before the commit", once("COMMIT", proxy.Fault{Cut: true}), 1},
		{"the commit's answer is lost", once("COMMIT", proxy.Fault{Last: true}), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprint("p", i)
			acquire(t, s, name)
			statetest.Commit(t, s, name, &state.Commit{Splits: []state.Split{{ID: "s"}}, Positions: map[string]state.Advance{"s": {To: record.Position{Offset: 1}}},
				Firings: []state.Firing{{Target: "t", Seq: 1, Data: []byte("f1")}}, State: []state.KV{{Stage: "w", Key: []byte("old"), Value: []byte("x")}}})
			next := &state.Commit{Positions: map[string]state.Advance{"s": {To: record.Position{Offset: 2}}}, Counters: map[string]int64{"in": 5},
				Firings: []state.Firing{{Target: "t", Seq: 2, Data: []byte("f2")}}, Acked: map[string]int64{"t": 1}, State: []state.KV{{Stage: "w", Key: []byte("old")}}}
			want1 := "fresh false\nsplit \"s\" epoch 0 path \"\" meta map[] done false recent [{1 0} {2 0}]\ncounter \"in\" 5\nnext \"t\" 3\nfiring \"t\" 2 \"f2\"\n"
			for i := range 100 {
				next.State = append(next.State, state.KV{Stage: "w", Key: fmt.Appendf(nil, "k%02d", i), Value: []byte("v")})
				want1 += fmt.Sprintf("state \"w\" \"k%02d\" 1 bytes \"v\"\n", i)
			}
			p.Set(c.hook)
			err := s.Commit(ctx, name, next)
			p.Set(nil)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "state", dump(t, s, name), want1)
			want(t, "commits", query(t, dsn, "SELECT version FROM rsetl_pipelines WHERE name = '"+name+"'"), 1+c.commits)
		})
	}
}

// TestDown: while the server can't be reached a commit waits, as long as its context and the lease do; then it says why.
func TestDown(t *testing.T) {
	slow, p := through(t, services.MySQL(t))
	s := open(t, Options{DSN: slow, Lease: 2 * time.Second})
	lost := acquire(t, s, "p")
	statetest.Commit(t, s, "p", counted(1))
	p.Down(true)
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := s.Commit(soon, "p", counted(2))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit with a deadline: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Commit(ctx, "p", counted(3)) }()
	p.Down(false)
	if err := wait(t, "the commit", done); err != nil {
		t.Errorf("a commit when the server is back: %v", err)
	}
	p.Down(true)
	if err := s.Commit(ctx, "p", counted(4)); !errors.Is(err, state.ErrLost) {
		t.Errorf("a commit when the server stays away: %v", err)
	}
	if err := wait(t, "lost", lost); !errors.Is(err, state.ErrLost) {
		t.Errorf("lost: %v", err)
	}
	if _, err := s.Load(ctx, "p"); err == nil {
		t.Error("it loads")
	}
	p.Down(false)
	acquire(t, s, "p")
	want(t, "counters", statetest.Load(t, s, "p").Counters, map[string]int64{"in": 3})
}

// TestChaos resets connections at random for many commits, and starts anew from what is loaded where one fails, as a pipeline does.
func TestChaos(t *testing.T) {
	dsn := services.MySQL(t)
	slow, p := through(t, dsn)
	s := open(t, Options{DSN: slow, Lease: time.Minute, stmtBytes: 500})
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(7, 7))
	p.Set(func(up bool, piece []byte) (f proxy.Fault) {
		mu.Lock()
		defer mu.Unlock()
		switch r.IntN(60) {
		case 0:
			f.Cut, f.Keep = true, r.IntN(len(piece)+1)
		case 1:
			f.Last = up
		}
		return f
	})
	model := map[string]string{} // keyed state
	var in int64
	retry := func(what string, f func(ctx context.Context) error) {
		t.Helper()
		for try := 0; ; try++ {
			err := f(ctx)
			if err == nil {
				return
			}
			if try > 200 || errors.Is(err, state.ErrLost) || errors.Is(err, state.ErrConflict) {
				t.Fatal(what, err)
			}
		}
	}
	retry("acquire", func(ctx context.Context) error { return s.Acquire(ctx, "p", func(err error) { t.Error(err) }) })
	failed := 0
	for turn := int64(1); turn <= 150; turn++ {
		c := counted(in + 1)
		c.Splits = []state.Split{{ID: "s"}}
		c.Positions = map[string]state.Advance{"s": {To: record.Position{Offset: in + 1}}}
		next := map[string]string{}
		for k, v := range model {
			next[k] = v
		}
		for range 30 {
			mu.Lock()
			key, gone := fmt.Sprint("k", r.IntN(200)), r.IntN(3) == 0
			mu.Unlock()
			if gone {
				c.State = append(c.State, state.KV{Stage: "w", Key: []byte(key)})
				delete(next, key)
			} else {
				next[key] = fmt.Sprint("v", turn)
				c.State = append(c.State, state.KV{Stage: "w", Key: []byte(key), Value: []byte(next[key])})
			}
		}
		limit, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		err := s.Commit(limit, "p", c)
		cancel()
		var snap *state.Snapshot
		retry("load", func(ctx context.Context) (err error) { snap, err = s.Load(ctx, "p"); return err })
		switch {
		case snap.Counters["in"] == in+1:
			model, in = next, in+1
		case err == nil || snap.Counters["in"] != in:
			t.Fatalf("turn %d, after %v: the counter is %v, it was %d", turn, err, snap.Counters, in)
		}
		if err != nil {
			failed++
		}
		if in > 0 && snap.Splits[0].Position().Offset != in {
			t.Fatalf("counter %d, position %v", in, snap.Splits[0].Recent)
		}
		got := map[string]string{}
		retry("range", func(ctx context.Context) error {
			return s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error { got[string(k)] = string(v); return nil })
		})
		want(t, "keyed state", got, model)
		if t.Failed() {
			t.Fatalf("in turn %d", turn)
		}
	}
	t.Logf("%d commits, %d of them with errors, %d there", 150, failed, in)
	if failed == 0 || in < 50 {
		t.Error("too few or too many faults to tell anything")
	}
	p.Set(nil)
}

// TestPacket: the server's limit is a value's. One that exceeds it is told as that, and nothing of its commit is there.
func TestPacket(t *testing.T) {
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Lease: time.Minute})
	acquire(t, s, "p")
	var packet int
	fmt.Sscan(query(t, dsn, "SELECT @@max_allowed_packet"), &packet)
	big := make([]byte, packet-packetRest)
	for i := range big {
		big[i] = byte(i*i>>3 + i)
	}
	copy(big, "'\\\"\x00'\n\r\x1a''")
	value := func(v []byte) *state.Commit {
		return &state.Commit{State: []state.KV{{Stage: "w", Key: []byte("a"), Value: []byte("small")}, {Stage: "w", Key: []byte("k"), Value: v}}}
	}
	err := s.Commit(ctx, "p", value(append(big, 'x')))
	if err == nil || !strings.Contains(err.Error(), "max_allowed_packet") || !strings.Contains(err.Error(), "step w") || len(err.Error()) > 400 {
		t.Fatalf("too large a value: %v", err)
	}
	if !statetest.Load(t, s, "p").Fresh {
		t.Error("something of it is there")
	}
	c := value(big)
	c.Firings = []state.Firing{{Target: "t", Seq: 1, Data: big}}
	c.Parts = map[string][]byte{"x": big}
	c.State = append(c.State, state.KV{Stage: "w", Key: big, Value: big[:1000]})
	statetest.Commit(t, s, "p", c)
	n := 0
	if err := s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error {
		switch {
		case string(k) == "a" && string(v) == "small", string(k) == "k" && bytes.Equal(v, big), bytes.Equal(k, big) && bytes.Equal(v, big[:1000]):
			n++
		default:
			t.Errorf("%d bytes, %d bytes", len(k), len(v))
		}
		return nil
	}); err != nil || n != 3 {
		t.Error(n, err)
	}
	if fs, err := s.Outbox(ctx, "p", "t", 0, 9); err != nil || len(fs) != 1 || !bytes.Equal(fs[0].Data, big) {
		t.Error("the firing is another", err)
	}
	if !bytes.Equal(statetest.Load(t, s, "p").Parts["x"], big) {
		t.Error("the part is another")
	}
}
