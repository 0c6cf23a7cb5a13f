package batch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a sink in memory. Its row is the text of the field v.
type fake struct {
	mu      sync.Mutex
	rows    []string // delivered, as "split:row"
	chunks  []int    // rows of each delivered chunk
	parts   []int    // parts of each
	sizes   []int    // bytes of each
	tries   int
	flying  map[*record.Split]bool
	most    int                                                 // most chunks in flight
	deliver func(n int, c *sinks.Chunk) ([]sinks.Reject, error) // n counts from 1
	slow    time.Duration
}

func (f *fake) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	v := b.Bytes(b.Lookup(i, "v"))
	if strings.HasPrefix(string(v), "!") {
		return append(dst, "half of it"...), errors.New("can't encode " + string(v))
	}
	return append(dst, v...), nil
}

func (f *fake) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	f.mu.Lock()
	if f.flying == nil {
		f.flying = map[*record.Split]bool{}
	}
	size := 0
	for _, p := range c.Parts {
		if f.flying[p.Split] {
			panic("two chunks of one split in flight")
		}
		f.flying[p.Split] = true
		size += len(p.Data)
	}
	f.tries++
	n := f.tries
	inFlight := 0
	for _, on := range f.flying {
		if on {
			inFlight++
		}
	}
	f.most = max(f.most, inFlight)
	f.mu.Unlock()
	if f.slow > 0 {
		time.Sleep(f.slow)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range c.Parts {
		f.flying[p.Split] = false
	}
	var rejects []sinks.Reject
	if f.deliver != nil {
		var err error
		if rejects, err = f.deliver(n, c); err != nil {
			return nil, err
		}
	}
	no := map[[2]int]bool{}
	for _, r := range rejects {
		no[[2]int{r.Part, r.Row}] = true
	}
	for i, p := range c.Parts {
		for k := range p.Ends {
			if !no[[2]int{i, k}] {
				f.rows = append(f.rows, p.Split.ID+":"+string(p.Row(k)))
			}
		}
	}
	f.chunks, f.parts, f.sizes = append(f.chunks, c.Rows()), append(f.parts, len(c.Parts)), append(f.sizes, size)
	return rejects, nil
}

func (f *fake) got() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.rows...)
}

func (f *fake) attempts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// letters are dead letters in memory.
type letters struct {
	mu     sync.Mutex
	all    []deadletter.Letter
	synced int
	fail   int // so many calls fail
}

func (l *letters) Append(x *deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail > 0 {
		l.fail--
		return errors.New("disk full")
	}
	c := *x
	c.Record, c.Raw = []byte(string(x.Record)), []byte(string(x.Raw))
	l.all = append(l.all, c)
	return nil
}

func (l *letters) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail > 0 {
		l.fail--
		return errors.New("disk full")
	}
	l.synced = len(l.all)
	return nil
}

type bench struct {
	t       testing.TB
	c       *Cache
	letters *letters
	splits  map[string]*record.Split
	batch   *record.Batch
	enc     Encoded
	next    int64
}

func newBench(t testing.TB, s sinks.Sink, cfg sinks.BatchConfig, edit ...func(*Options)) *bench {
	l := &letters{}
	o := Options{Pipeline: "default/p", Name: "s", Config: cfg, Letters: l}
	for _, e := range edit {
		e(&o)
	}
	table := record.NewTable()
	table.Slot("v")
	return &bench{t: t, c: New(s, o), letters: l, splits: map[string]*record.Split{}, batch: record.NewBatch(table)}
}

func (b *bench) start() { b.c.Start(context.Background(), &sinks.Env{}) }

func (b *bench) add(ctx context.Context, split string, rows ...string) error {
	s := b.splits[split]
	if s == nil {
		s = &record.Split{ID: split, Index: len(b.splits)}
		b.splits[split] = s
	}
	b.batch.Reset()
	b.batch.Split = s
	for _, r := range rows {
		i := b.batch.Add(record.Position{Offset: b.next}, b.batch.PutString("raw "+r))
		b.batch.Set(i, 0, b.batch.PutString(r))
		b.next++
	}
	b.enc.Reset()
	b.c.Encode(&b.enc, b.batch, b.batch.Sel)
	return b.c.Add(ctx, s, &b.enc)
}

func (b *bench) mustAdd(split string, rows ...string) {
	b.t.Helper()
	if err := b.add(context.Background(), split, rows...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) stop() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.c.Stop(ctx); err != nil {
		b.t.Error(err)
	}
}

func numbers(n int) []string {
	var out []string
	for i := range n {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, f, sinks.BatchConfig{})
		b.start()
		defer b.stop()
		b.mustAdd("a", "1", "2")
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		equal(t, f.got(), []string{})
		b.mustAdd("a", "3") // joins; the interval counts from the first row
		time.Sleep(time.Millisecond)
		synctest.Wait()
		equal(t, f.got(), []string{"a:1", "a:2", "a:3"})
		b.mustAdd("a", "4")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		equal(t, len(f.got()), 3)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		equal(t, len(f.got()), 4)
		n, held := b.c.Counts()
		equal(t, n, Counts{Received: 4, Delivered: 4})
		equal(t, held, 0)
	})
}

func TestSizeAndBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, f, sinks.BatchConfig{Size: 10, Bytes: 50})
		b.start()
		defer b.stop()
		b.mustAdd("a", numbers(9)...)
		synctest.Wait()
		equal(t, f.chunks, []int{})
		b.mustAdd("a", "9")
		synctest.Wait()
		equal(t, f.chunks, []int{10})
		f.chunks, f.sizes = nil, nil
		b.mustAdd("a", strings.Repeat("x", 20), strings.Repeat("x", 20), strings.Repeat("x", 20), strings.Repeat("y", 200), "z")
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, f.sizes, []int{40, 20, 200, 1})
		b.mustAdd("a", numbers(35)...)
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, f.chunks[4:], []int{10, 10, 10, 5})
	})
}

func TestManySmallSplitsMakeFewChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, f, sinks.BatchConfig{})
		b.start()
		defer b.stop()
		for i := range 1000 {
			b.mustAdd(fmt.Sprintf("s%d", i), "x")
			time.Sleep(time.Microsecond)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		equal(t, len(f.got()), 1000)
		equal(t, f.parts, []int{1000})
	})
}

// An idle cache must cost nothing: no goroutine, no timer.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &fake{}, sinks.BatchConfig{})
		b.start()
		b.mustAdd("a", "1")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.c.mu.Lock()
		if b.c.active != 0 || !b.c.timerAt.IsZero() || len(b.c.splits) != 0 {
			t.Errorf("%d goroutines, timer %v, %d splits", b.c.active, b.c.timerAt, len(b.c.splits))
		}
		b.c.mu.Unlock()
		b.stop()
	})
}

func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		f := &fake{deliver: func(n int, _ *sinks.Chunk) ([]sinks.Reject, error) {
			at = append(at, time.Now())
			switch {
			case n <= 3:
				return nil, errors.New("connection refused")
			case n == 4:
				return nil, fmt.Errorf("429: %w", sinks.RetryAfter(errors.New("slow down"), 77*time.Second))
			}
			return nil, nil
		}}
		b := newBench(t, f, sinks.BatchConfig{Size: 1})
		b.start()
		defer b.stop()
		b.mustAdd("a", "1")
		synctest.Wait()
		if s := b.c.Status(); !s.Blocked || s.Err == nil || s.Err.Error() != "connection refused" || s.Rows != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		equal(t, f.got(), []string{"a:1"})
		if s := b.c.Status(); s.Blocked || s.Err != nil || s.Rows != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
		for i, limits := range [][2]time.Duration{{50 * time.Millisecond, 100 * time.Millisecond}, {100 * time.Millisecond, 200 * time.Millisecond},
			{200 * time.Millisecond, 400 * time.Millisecond}, {77 * time.Second, 77 * time.Second}} {
			if d := at[i+1].Sub(at[i]); d < limits[0] || d > limits[1] {
				t.Errorf("pause %d is %s, want %v", i, d, limits)
			}
		}
	})
}

func TestBackoffIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{deliver: func(int, *sinks.Chunk) ([]sinks.Reject, error) { return nil, errors.New("down") }}
		b := newBench(t, f, sinks.BatchConfig{Size: 1})
		b.start()
		b.mustAdd("a", "1")
		time.Sleep(time.Hour)
		synctest.Wait()
		before := f.attempts()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := f.attempts() - before; n < 20 || n > 40 {
			t.Errorf("%d attempts in 10 minutes, want one every 15s to 30s", n)
		}
		equal(t, b.c.Status().Since, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Local())
		b.stop()
		_, held := b.c.Counts()
		equal(t, held, 1)
	})
}

func TestRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{deliver: func(n int, c *sinks.Chunk) ([]sinks.Reject, error) {
			if n == 1 {
				c.Skipped = 2
				return nil, errors.New("503")
			}
			c.Skipped++
			return []sinks.Reject{{Part: 0, Row: 1, Reason: "too long"}}, nil
		}}
		b := newBench(t, f, sinks.BatchConfig{Size: 10})
		b.letters.fail = 2
		b.start()
		defer b.stop()
		b.mustAdd("a", "1", "2", "!3", "4")
		m := b.c.Mark()
		b.mustAdd("a", "5")
		if _, changed, err := b.c.Flush(context.Background(), m); err != nil || changed {
			t.Fatal(changed, err)
		}
		equal(t, b.c.CountsAt(m), Counts{Received: 4, Delivered: 1, Rejected: 2, Skipped: 1})
		equal(t, b.letters.synced, 2)
		var got []string
		for _, l := range b.letters.all {
			got = append(got, fmt.Sprintf("%s %s %s %s %d %s %s", l.Pipeline, l.Sink, l.Split.ID, l.Reason, l.Pos.Offset, l.Record, l.Raw))
		}
		equal(t, got, []string{`default/p s a can't encode !3 2 {"v":"!3"} raw !3`, `default/p s a too long 1 {"row":"2"} `})
		n, held := b.c.Counts()
		equal(t, n.Received, 5)
		equal(t, held, 1)
	})
}

// A transactional sink writes its letters itself, before it commits; when the commit fails
// the rows are rejected again, but have their letters already.
func TestLettersOfTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := 0
		f := &fake{}
		f.deliver = func(n int, c *sinks.Chunk) ([]sinks.Reject, error) {
			if err := c.Letters([]sinks.Reject{{Part: 0, Row: 0, Reason: "bad"}}); err != nil {
				l++
				return nil, err
			}
			if n <= 3 {
				return nil, errors.New("deadlock")
			}
			return nil, nil
		}
		b := newBench(t, f, sinks.BatchConfig{Size: 2})
		b.letters.fail = 1
		b.start()
		defer b.stop()
		b.mustAdd("a", "1", "2")
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, len(b.letters.all), 1)
		equal(t, b.letters.synced, 1)
		equal(t, l, 1)
		n, held := b.c.Counts()
		equal(t, n, Counts{Received: 2, Delivered: 1, Rejected: 1})
		equal(t, held, 0)
	})
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := true
		f := &fake{deliver: func(int, *sinks.Chunk) ([]sinks.Reject, error) {
			if block {
				return nil, errors.New("down")
			}
			return nil, nil
		}}
		b := newBench(t, f, sinks.BatchConfig{Memory: 1000})
		b.start()
		defer b.stop()
		b.mustAdd("a", strings.Repeat("x", 5000)) // alone
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := b.add(ctx, "a", "y"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if s := b.c.Status(); !s.Blocked || s.Rows != 1 || s.Bytes != 5024 {
			t.Errorf("%+v", s)
		}
		done := make(chan error)
		go func() { done <- b.add(context.Background(), "a", "y") }()
		f.mu.Lock()
		block = false
		f.mu.Unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
		// Waiting for memory makes due what is there, long before the interval.
		at := time.Now()
		b.mustAdd("b", strings.Repeat("x", 900))
		b.mustAdd("b", strings.Repeat("x", 900))
		if d := time.Since(at); d > 100*time.Millisecond {
			t.Errorf("waited %s", d)
		}
		n, held := b.c.Counts()
		equal(t, n.Received, 4)
		equal(t, held, 1)
	})
}

// A checkpoint doesn't wait for the interval, nor for rows behind it.
func TestFlushIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		b := newBench(t, f, sinks.BatchConfig{Interval: config.Duration(time.Hour)})
		b.start()
		at := time.Now()
		b.mustAdd("a", "1")
		b.mustAdd("b", "2")
		m := b.c.Mark()
		b.mustAdd("a", "3")
		if _, _, err := b.c.Flush(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		equal(t, time.Since(at), time.Duration(0))
		synctest.Wait()
		equal(t, len(f.got()), 2)
		b.stop()
	})
}

func TestFlushEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{deliver: func(int, *sinks.Chunk) ([]sinks.Reject, error) { return nil, errors.New("no route to host") }}
		b := newBench(t, f, sinks.BatchConfig{})
		b.start()
		b.mustAdd("a", "1")
		m := b.c.Mark()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, _, err := b.c.Flush(ctx, m)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no route to host") {
			t.Error(err)
		}
		stopped := make(chan error)
		go func() { _, _, err := b.c.Flush(context.Background(), m); stopped <- err }()
		waiting := make(chan error)
		go func() { waiting <- b.add(context.Background(), "a", strings.Repeat("x", 9<<20)) }()
		synctest.Wait()
		b.stop()
		if err := <-stopped; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
		if err := <-waiting; !errors.Is(err, ErrStopped) {
			t.Error(err)
		}
	})
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{slow: time.Second}
		b := newBench(t, f, sinks.BatchConfig{Size: 10, InFlight: 3})
		b.start()
		defer b.stop()
		at := time.Now()
		for range 2 {
			for _, s := range []string{"a", "b", "c", "d"} {
				b.mustAdd(s, numbers(10)...)
			}
		}
		m := b.c.Mark()
		if _, _, err := b.c.Flush(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		equal(t, f.most, 3)
		equal(t, time.Since(at), 3*time.Second) // 8 chunks, 3 at a time
	})
}

func TestStopAwaitsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{slow: 10 * time.Second}
		b := newBench(t, f, sinks.BatchConfig{Size: 1})
		b.start()
		b.mustAdd("a", "1", "2")
		synctest.Wait()
		b.stop()
		equal(t, f.got(), []string{"a:1"})
		n, held := b.c.Counts()
		equal(t, n, Counts{Received: 2, Delivered: 1})
		equal(t, held, 1)
		b.stop()
	})
}

// opener is a sink whose Start fails.
type opener struct {
	fake
	fails, starts, stops int
}

func (o *opener) Start(context.Context, *sinks.Env) error {
	o.starts++
	if o.starts <= o.fails {
		return errors.New("not there yet")
	}
	return nil
}
func (o *opener) Stop(context.Context) error { o.stops++; return nil }

func TestStartIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{fails: 3}
		b := newBench(t, o, sinks.BatchConfig{})
		b.start()
		b.mustAdd("a", "1")
		synctest.Wait()
		if s := b.c.Status(); s.Started || !s.Blocked || s.Err == nil {
			t.Errorf("%+v", s)
		}
		m := b.c.Mark()
		if _, _, err := b.c.Flush(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		equal(t, o.starts, 4)
		equal(t, o.got(), []string{"a:1"})
		b.stop()
		equal(t, o.stops, 1)

		never := &opener{fails: 1 << 30}
		b = newBench(t, never, sinks.BatchConfig{})
		b.start()
		time.Sleep(time.Hour)
		b.stop()
		equal(t, never.stops, 1)
	})
}

// marker is a sink like a file: Marked and a Preparer.
type marker struct {
	fake
	ready     bool
	unready   int // this delivery is unprepared though it was ready
	log       []string
	failMarks int
	marks     int
}

func (m *marker) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	if m.unready > 0 {
		m.unready--
		m.ready = false
	}
	if !m.ready {
		return nil, sinks.ErrUnprepared
	}
	r, err := m.fake.Deliver(ctx, c)
	m.log = append(m.log, fmt.Sprintf("deliver %d", c.Rows()))
	return r, err
}
func (m *marker) Ready() bool { return m.ready }
func (m *marker) Prepare(context.Context) ([]byte, error) {
	m.log = append(m.log, "prepare")
	return []byte("prep"), nil
}
func (m *marker) Prepared(context.Context) error {
	m.log = append(m.log, "prepared")
	m.ready = true
	return nil
}
func (m *marker) Mark(context.Context) ([]byte, error) {
	if m.failMarks > 0 {
		m.failMarks--
		return nil, errors.New("fsync failed")
	}
	m.marks++
	m.log = append(m.log, "mark")
	return []byte(fmt.Sprintf("state %d", m.marks)), nil
}
func (m *marker) Committed(context.Context) error {
	m.log = append(m.log, "committed")
	return nil
}

func TestMarkedAndPreparer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &marker{failMarks: 2}
		commits := 0
		b := newBench(t, m, sinks.BatchConfig{Size: 1000}, func(o *Options) {
			o.Commit = func(_ context.Context, part []byte) error {
				if commits++; commits == 1 {
					return errors.New("store is busy")
				}
				m.log = append(m.log, "commit "+string(part))
				return nil
			}
		})
		b.start()
		b.mustAdd("a", "1", "2")
		mark := b.c.Mark()
		b.mustAdd("a", "3")
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, strings.Join(m.log, ", "), "prepare, prepare, commit prep, prepared, deliver 2")
		m.log = nil
		part, changed, err := b.c.Flush(context.Background(), mark)
		if string(part) != "state 1" || !changed || err != nil {
			t.Fatal(string(part), changed, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, strings.Join(m.log, ", "), "mark") // row 3 waits
		if part, changed, _ = b.c.Flush(context.Background(), mark); string(part) != "state 1" || !changed {
			t.Error("the second Flush gives", string(part), changed)
		}
		m.unready = 1
		if err := b.c.Committed(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := b.c.Committed(context.Background()); err != nil { // once is enough
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, strings.Join(m.log, ", "), "mark, committed, prepare, commit prep, prepared, deliver 1")
		equal(t, b.c.CountsAt(mark), Counts{Received: 2, Delivered: 2})
		b.stop()
	})
}

// A lane that waits for memory can't carry a marker: the first commit must come without.
func TestPreparerWithFullMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &marker{}
		b := newBench(t, m, sinks.BatchConfig{Memory: 100}, func(o *Options) {
			o.Commit = func(context.Context, []byte) error { return nil }
		})
		b.start()
		for i := range 20 {
			b.mustAdd("a", strings.Repeat("x", 50+i))
		}
		b.stop()
	})
}

func TestGivenUpMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &marker{ready: true}
		b := newBench(t, m, sinks.BatchConfig{}, func(o *Options) { o.Commit = func(context.Context, []byte) error { return nil } })
		b.start()
		b.mustAdd("a", "1")
		one := b.c.Mark()
		if _, _, err := b.c.Flush(context.Background(), one); err != nil {
			t.Fatal(err)
		}
		b.mustAdd("a", "2")
		two := b.c.Mark()
		part, _, err := b.c.Flush(context.Background(), two)
		if err != nil || string(part) != "state 2" {
			t.Fatal(string(part), err)
		}
		equal(t, b.c.CountsAt(two), Counts{Received: 2, Delivered: 2})
		b.stop()
	})
}

func TestCountsAreRestored(t *testing.T) {
	b := newBench(t, &fake{}, sinks.BatchConfig{})
	b.c.SetCounts(Counts{Received: 10, Delivered: 7, Rejected: 2, Skipped: 1})
	b.start()
	b.mustAdd("a", "1")
	m := b.c.Mark()
	b.mustAdd("a", "2")
	if _, _, err := b.c.Flush(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	equal(t, b.c.CountsAt(m), Counts{Received: 11, Delivered: 8, Rejected: 2, Skipped: 1})
	b.stop()
}

// TestRandom drives a cache with everything at once and checks what must always hold.
func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { random(t, seed) })
	}
}

func random(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 99))
	cfg := sinks.BatchConfig{Size: 1 + r.IntN(20), Bytes: config.Size(20 + r.IntN(100)), Memory: config.Size(200 + r.IntN(3000)), InFlight: 1 + r.IntN(4)}
	var mu sync.Mutex
	delivered := map[string][]int{} // by split, in order
	rejected := map[string]bool{}
	dice := rand.New(rand.NewPCG(seed, 100)) // the sink's, under mu
	chunk := func(n int, c *sinks.Chunk) ([]sinks.Reject, error) {
		mu.Lock()
		defer mu.Unlock()
		size := 0
		for _, p := range c.Parts {
			size += len(p.Data)
		}
		if c.Rows() > cfg.Size || c.Rows() > 1 && size > int(cfg.Bytes) {
			t.Errorf("seed %d: a chunk of %d rows, %d bytes", seed, c.Rows(), size)
		}
		c.Skipped = 0
		if dice.IntN(4) == 0 {
			return nil, errors.New("no")
		}
		var out []sinks.Reject
		for i, p := range c.Parts {
			for k := range p.Ends {
				n, _ := strconv.Atoi(strings.TrimRight(string(p.Row(k)), "."))
				if int64(n) != p.Pos[k].Offset {
					t.Errorf("seed %d: row %d has position %d", seed, n, p.Pos[k].Offset)
				}
				if dice.IntN(10) == 0 {
					out = append(out, sinks.Reject{Part: i, Row: k, Reason: "bad"})
					rejected[p.Split.ID+strconv.Itoa(n)] = true
				}
				delivered[p.Split.ID] = append(delivered[p.Split.ID], n)
			}
		}
		return out, nil
	}
	var s sinks.Sink = &fake{deliver: chunk, slow: time.Duration(r.IntN(3)) * 100 * time.Millisecond}
	marked := seed%3 == 0
	if marked {
		s = &marker{fake: fake{deliver: chunk}}
	}
	b := newBench(t, s, cfg, func(o *Options) { o.Commit = func(context.Context, []byte) error { return nil } })
	b.letters.fail = r.IntN(5)
	b.start()
	want := map[string][]int{}
	var received int64
	var flushes sync.WaitGroup
	var before int64
	checkpoint := make(chan struct{}, 1)
	for range 150 {
		switch r.IntN(8) {
		case 0:
			time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		case 1:
			flushes.Wait()
			m := b.c.Mark()
			at := received
			checkpoint <- struct{}{}
			flushes.Go(func() {
				defer func() { <-checkpoint }()
				if _, _, err := b.c.Flush(context.Background(), m); err != nil {
					t.Error(err)
				}
				n := b.c.CountsAt(m)
				if n.Received != at || n.held() != 0 || at < before {
					t.Errorf("seed %d: at the mark %+v, want %d received and none held", seed, n, at)
				}
				before = at
				if err := b.c.Committed(context.Background()); err != nil {
					t.Error(err)
				}
			})
		default:
			split := string(rune('a' + r.IntN(5)))
			var rows []string
			for range 1 + r.IntN(30) {
				n := int(b.next) + len(rows)
				row := strconv.Itoa(n)
				if r.IntN(20) == 0 {
					row = "!" + row
				} else {
					row += strings.Repeat(".", r.IntN(9)*r.IntN(9))
					want[split] = append(want[split], n)
				}
				rows = append(rows, row)
				received++
			}
			b.mustAdd(split, rows...)
			now, held := b.c.Counts()
			if now.Received != received || now.Received != now.Delivered+now.Rejected+now.Skipped+held {
				t.Errorf("seed %d: %+v held %d, received %d", seed, now, held, received)
			}
		}
	}
	flushes.Wait()
	if r.IntN(2) == 0 { // stop in the middle
		b.stop()
		for split, got := range delivered {
			for i, n := range got {
				if want[split][i] != n {
					t.Fatalf("seed %d: split %s: row %d is %d, want %d", seed, split, i, n, want[split][i])
				}
			}
		}
		now, held := b.c.Counts()
		if now.Received != received || held != b.c.Status().Rows {
			t.Errorf("seed %d: %+v held %d, %+v", seed, now, held, b.c.Status())
		}
		return
	}
	m := b.c.Mark()
	if _, _, err := b.c.Flush(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	equal(t, delivered, want)
	now, held := b.c.Counts()
	if now.Received != received || held != 0 || now.Rejected != int64(len(b.letters.all)) || b.letters.synced != len(b.letters.all) {
		t.Errorf("seed %d: %+v held %d, received %d, letters %d synced %d", seed, now, held, received, len(b.letters.all), b.letters.synced)
	}
	if st := b.c.Status(); st.Rows != 0 || st.Bytes != 0 {
		t.Errorf("seed %d: %+v", seed, st)
	}
	b.stop()
}

func BenchmarkCache(bm *testing.B) {
	for _, splits := range []int{1, 100} {
		bm.Run(fmt.Sprintf("splits=%d", splits), func(bm *testing.B) {
			b := newBench(bm, nothing{}, sinks.BatchConfig{})
			b.start()
			row := strings.Repeat("x", 200)
			var all []*record.Split
			for i := range splits {
				all = append(all, &record.Split{ID: strconv.Itoa(i)})
			}
			for i := range 250 {
				k := b.batch.Add(record.Position{Offset: int64(i)}, record.Value{})
				b.batch.Set(k, 0, b.batch.PutString(row))
			}
			bm.SetBytes(250 * 200)
			bm.ReportAllocs()
			for i := 0; bm.Loop(); i++ {
				b.enc.Reset()
				b.c.Encode(&b.enc, b.batch, b.batch.Sel)
				if err := b.c.Add(context.Background(), all[i%splits], &b.enc); err != nil {
					bm.Fatal(err)
				}
			}
			b.stop()
		})
	}
}

type nothing struct{}

func (nothing) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	return append(dst, b.Bytes(b.Get(i, 0))...), nil
}
func (nothing) Deliver(context.Context, *sinks.Chunk) ([]sinks.Reject, error) { return nil, nil }
