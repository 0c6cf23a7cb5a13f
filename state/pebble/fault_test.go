package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
)

var ctx = context.Background()

const dir = "/var/lib/rsetl"

// injected is errorfs.FS, which doesn't see what is done with recycled log files.
type injected struct {
	*errorfs.FS
	inj errorfs.Injector
}

func inject(fs vfs.FS, i errorfs.Injector) vfs.FS { return injected{errorfs.Wrap(fs, i), i} }

func (f injected) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.inj.MaybeError(errorfs.Op{Kind: errorfs.OpReuseForWrite, Path: from}); err != nil {
		return nil, err
	}
	cloning.RLock()
	file, err := f.FS.Unwrap().ReuseForWrite(from, to, c)
	cloning.RUnlock()
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(file, f.inj), nil
}

// cloning keeps ReuseForWrite and CrashClone of a vfs.MemFS apart: the one takes its read lock twice, which deadlocks when the
// other asks for the write lock in between.
var cloning sync.RWMutex

// A step changes the state as a whole; what it does may be repeated until it succeeds.
type step func(s *Store) error

func commitStep(k int64) step {
	return func(s *Store) error {
		p := "ns/old"
		if k > 5 {
			p = "ns/new"
		}
		c := &state.Commit{
			Positions: map[string]state.Advance{"a": {To: record.Position{Offset: k}}},
			Counters:  map[string]int64{"in": k},
			Parts:     map[string][]byte{"mark": fmt.Append(nil, k)},
			State: []state.KV{
				{Stage: "w", Key: fmt.Append(nil, "k", k), Value: bytes.Repeat([]byte{byte(k)}, 3000)},
				{Stage: "w", Key: []byte("same"), Value: fmt.Append(nil, k)},
				{Stage: "w", Key: fmt.Append(nil, "k", k-3)},
			},
			Firings: []state.Firing{{Target: "t", Seq: 2 * k, Data: fmt.Append(nil, k)}, {Target: "t", Seq: 2*k + 1, Data: fmt.Append(nil, -k)}},
			Acked:   map[string]int64{"t": 2*k - 3},
		}
		if k == 0 {
			c.Splits = []state.Split{{ID: "a", Path: "/a"}, {ID: "gone"}}
		}
		if k == 2 {
			c.Forget = []string{"gone"}
		}
		if k == 7 { // more than the log's buffer and half a memtable
			c.State = append(c.State, state.KV{Stage: "w", Key: []byte("large"), Value: bytes.Repeat([]byte("x"), 200<<10)})
		}
		return s.Commit(ctx, p, c)
	}
}

func steps() []step {
	flush := func(s *Store) error {
		return s.use(ctx, func(db *pebble.DB) error { return db.Flush() })
	}
	compact := func(s *Store) error {
		e := s.cur
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return s.use(ctx, func(db *pebble.DB) error {
			go func() {
				select {
				case <-e.failed:
					cancel()
				case <-ctx.Done():
				}
			}()
			return db.Compact(ctx, []byte{0}, []byte{255}, false)
		})
	}
	rename := func(s *Store) error {
		err := s.Rename(ctx, "ns/old", "ns/new")
		if errors.Is(err, state.ErrConflict) { // an attempt that failed has done it
			if snap, e := s.Load(ctx, "ns/old"); e == nil && snap.Fresh {
				return nil
			}
		}
		return err
	}
	return []step{
		commitStep(0), commitStep(1), flush, commitStep(2), compact, commitStep(3), flush, commitStep(4), commitStep(5), rename, commitStep(6),
		commitStep(7), commitStep(8), compact, commitStep(9),
		func(s *Store) error { return s.Remove(ctx, "ns/other") },
	}
}

func dump(s state.Store) (string, error) {
	var out string
	for _, p := range []string{"ns/old", "ns/new", "ns/other"} {
		d, err := statetest.Dump(s, p, []string{"t"}, []string{"w"})
		if err != nil {
			return "", err
		}
		out += d
	}
	names, err := s.Pipelines(ctx)
	return out + strings.Join(names, " "), err
}

// expected are the states before the first step and after each.
var expected = sync.OnceValue(func() (out []string) {
	s, err := Open(dir, small(vfs.NewMem()))
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for _, f := range append([]step{func(*Store) error { return nil }}, steps()...) {
		if err := f(s); err != nil {
			panic(err)
		}
		d, err := dump(s)
		if err != nil {
			panic(err)
		}
		out = append(out, d)
	}
	return out
})

func small(fs vfs.FS) Options {
	return Options{FS: fs, memTable: 64 << 10, renameChunk: 5000, pauseMin: time.Microsecond, pauseMax: time.Millisecond}
}

// check opens fs and wants one of the states from number from to number to.
func check(t *testing.T, what string, fs vfs.FS, from, to int) {
	t.Helper()
	s, err := Open(dir, small(fs))
	if err != nil {
		t.Fatalf("%s: open: %v", what, err)
	}
	defer s.Close()
	got, err := dump(s)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for i := from; i <= min(to, len(expected())-1); i++ {
		if got == expected()[i] {
			return
		}
	}
	t.Fatalf("%s: the state is none of numbers %d to %d:\n%s\nwant\n%s", what, from, to, got, expected()[from])
}

// TestCrashes takes a copy of the disk, with what a crash would leave of it, before every file-system operation.
func TestCrashes(t *testing.T) {
	mem := vfs.NewCrashableMem()
	var done atomic.Int64 // steps that have returned; -1: Open has not
	done.Store(-1)
	type crash struct {
		fs       *vfs.MemFS
		from, to int // steps that had returned before and after the copy was made: other goroutines go on
		op       errorfs.Op
	}
	var mu sync.Mutex
	var crashes []crash
	rng := rand.New(rand.NewPCG(1, 2))
	fs := inject(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		at := int(done.Load())
		percents := []int{0, 50, 100}
		if at < 0 || strings.Contains(op.Path, "marker.") || strings.Contains(op.Path, "MANIFEST") { // what depends on the order of directory entries
			percents = append(percents, slices.Repeat([]int{50}, 10)...)
		}
		for _, percent := range percents {
			cloning.Lock()
			c := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			cloning.Unlock()
			crashes = append(crashes, crash{c, at, int(done.Load()), op})
		}
		return nil
	}))
	s, err := Open(dir, small(fs))
	if err != nil {
		t.Fatal(err)
	}
	done.Store(0)
	for i, f := range steps() {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
		done.Store(int64(i + 1))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes", len(crashes))
	for i, c := range crashes {
		check(t, fmt.Sprintf("crash %d (after step %d, before %v of %s)", i, c.from, c.op.Kind, c.op.Path), c.fs, max(c.from, 0), c.to+1)
	}
}

// TestFaults fails each file-system operation once, and from each on all writes until the disk is mended.
func TestFaults(t *testing.T) {
	for _, lasting := range []bool{false, true} {
		t.Run(fmt.Sprintf("lasting=%v", lasting), func(t *testing.T) {
			t.Parallel()
			i := 0
			stride := 1
			if testing.Short() {
				stride = 7
			}
			for ; faulty(t, i, lasting); i += stride {
			}
			if i < 100 {
				t.Errorf("only %d operations", i)
			}
			t.Logf("%d operations", i)
		})
	}
}

// faulty tells whether there was an operation number n.
func faulty(t *testing.T, n int, lasting bool) bool {
	mem := vfs.NewCrashableMem()
	var count atomic.Int64
	var mended, fired atomic.Bool
	var what atomic.Value
	cause := error(syscall.EIO)
	if lasting {
		cause = syscall.ENOSPC
	}
	fs := inject(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		i := int(count.Add(1)) - 1
		if mended.Load() || i < n || i > n && (!lasting || op.Kind.ReadOrWrite() == errorfs.OpIsRead) {
			return nil
		}
		if op.Kind == errorfs.OpFilePreallocate || op.Kind == errorfs.OpGetDiskUsage {
			return nil
		}
		fired.Store(true)
		what.Store(fmt.Sprintf("operation %d, %v of %s", n, op.Kind, op.Path))
		return cause
	}))
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	failed := func(at int, doing string, err error) {
		if !fired.Load() {
			t.Fatalf("%s failed without a fault: %v", doing, err)
		}
		if !errors.Is(err, cause) && !errors.Is(err, state.ErrCorrupt) {
			t.Fatalf("%v: %s: the error doesn't tell the cause: %v", what.Load(), doing, err)
		}
		if errors.Is(err, state.ErrCorrupt) || errors.Is(err, state.ErrInUse) || errors.Is(err, state.ErrForeign) || errors.Is(err, state.ErrFailed) {
			t.Fatalf("%v: %s: the error misleads: %v", what.Load(), doing, err)
		}
		for _, percent := range []int{0, 50, 100}[n%3 : n%3+1] {
			check(t, fmt.Sprintf("%v, %s failed, %d%% kept", what.Load(), doing, percent), mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), at, at+1)
		}
	}
	until := func(at int, doing string, f func() error) {
		t.Helper()
		for tries := 0; ; tries++ {
			err := f()
			if err == nil {
				return
			}
			if tries == 0 {
				failed(at, doing, err)
			}
			if tries == 3 {
				mended.Store(true)
			}
			if tries > 5000 {
				t.Fatalf("%v: %s doesn't recover: %v", what.Load(), doing, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
	var s *Store
	until(0, "open", func() (err error) { s, err = Open(dir, small(fs)); return err })
	for i, f := range steps() {
		until(i, fmt.Sprint("step ", i), func() error { return f(s) })
	}
	last := len(expected()) - 1
	until(last, "dump", func() error {
		got, err := dump(s)
		if err == nil && got != expected()[last] {
			t.Fatalf("%v: the state is\n%s\nwant\n%s", what.Load(), got, expected()[last])
		}
		return err
	})
	begun := time.Now()
	s.Close() // may tell of a fault
	if d := time.Since(begun); d > 5*time.Second {
		t.Fatalf("%v: Close took %v", what.Load(), d)
	}
	mended.Store(true)
	check(t, fmt.Sprintf("%v, closed", what.Load()), mem, last, last)
	return int(count.Load()) > n
}

// TestFailedAndClosed closes a store whose disk stays broken, in the midst of calls.
func TestFailedAndClosed(t *testing.T) {
	mem := vfs.NewMem()
	var broken atomic.Bool
	fs := inject(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.EIO
		}
		return nil
	}))
	s, err := Open(dir, small(fs))
	if err != nil {
		t.Fatal(err)
	}
	statetest.Commit(t, s, "p", &state.Commit{Counters: map[string]int64{"in": 1}})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := 0; ; k++ {
				err := s.Commit(ctx, fmt.Sprint("p", i), &state.Commit{Parts: map[string][]byte{"x": make([]byte, 20<<10)}})
				if errors.Is(err, errClosed) {
					return
				}
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	broken.Store(true)
	time.Sleep(50 * time.Millisecond)
	begun := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if d := time.Since(begun); d > 2*time.Second {
		t.Errorf("Close took %v", d)
	}
	broken.Store(false)
	s = open(t, dir, small(mem))
	if n := statetest.Load(t, s, "p").Counters["in"]; n != 1 {
		t.Errorf("in is %d", n)
	}
}
