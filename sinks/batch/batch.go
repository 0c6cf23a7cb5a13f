// Package batch is what all sinks share: caches of encoded rows, one per split,
// their flushing in chunks, retries, dead letters and accounting.
//
// Rows pass through a Cache in this order: Encode on any lane, Add at the lane's
// ordered end, delivery by goroutines of the cache's own that exist only while there is
// something due. Mark cuts the stream for a checkpoint; Flush waits for what is before the cut.
//
// What a Preparer must have committed before its first byte is committed through
// Options.Commit, out of band: it waits for no marker, since the lane that would
// carry the marker may be the one that waits in Add for this very sink.
package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// ErrStopped is returned by calls that wait when the cache is stopped.
var ErrStopped = errors.New("sink is stopped")

// Options are what a Cache works with.
type Options struct {
	Pipeline, Name string
	Config         sinks.BatchConfig // zero fields get the defaults
	Log            *slog.Logger      // nil: discarded
	Letters        deadletter.Sink
	// Now gives the time in dead letters and status; nil: time.Now. Intervals and
	// backoffs always use the time package.
	Now func() time.Time
	// Commit makes a Preparer's state durable, as this sink's part in state.Commit.Parts
	// and without anything else. It is called from a goroutine of the cache's, never between a
	// Flush that returned and its Committed; the runner serialises it with its other commits.
	// Its errors are retried. Required for a Preparer.
	Commit func(ctx context.Context, part []byte) error
	// Fatal is told of an error that trying again can't mend (sinks.Permanent); it ends the
	// context of Start. Nil: such errors are retried like others.
	Fatal func(error)
	// GiveUp is after how long without success the rows that can't be delivered are dead-lettered; 0: never. It
	// doesn't apply to Marked sinks and Preparers.
	GiveUp time.Duration
	// BackoffMin and BackoffMax bound the pauses between attempts; 100ms and 30s where zero.
	BackoffMin, BackoffMax time.Duration
}

// Counts is a sink's ledger. Received = Delivered + Rejected + Skipped + held.
type Counts struct{ Received, Delivered, Rejected, Skipped int64 }

func (c *Counts) add(o Counts) {
	c.Received += o.Received
	c.Delivered += o.Delivered
	c.Rejected += o.Rejected
	c.Skipped += o.Skipped
}

func (c Counts) held() int64 { return c.Received - c.Delivered - c.Rejected - c.Skipped }

// Status is what a Cache is up to.
type Status struct {
	Started bool
	Blocked bool      // the last attempt failed; it is being retried
	Since   time.Time // since when it is blocked
	Err     error     // the last failure, nil where not blocked
	Rows    int64     // held
	Bytes   int64     // held, bookkeeping included
}

// rowCost is what a row costs beside its bytes: its end and its position.
const rowCost = 24

// Cache holds a sink's rows until they are delivered.
//
// Generations: rows between two calls of Mark have one generation, and a chunk holds
// rows of one generation only, so that counts and commits split exactly at a mark.
type Cache struct {
	o       Options
	sink    sinks.Sink
	marked  sinks.Marked    // nil where the sink isn't one
	prep    sinks.Preparer  // nil where the sink isn't one
	starter sinks.Starter   // nil where the sink isn't one
	desc    sinks.Describer // nil where the sink isn't one
	enc     atomic.Pointer[describing]
	cfg     sinks.BatchConfig
	pools   pools

	// deliver ends when Stop gives up waiting for what is in flight; run ends when Stop begins.
	deliver, run       context.Context
	endDeliver, endRun context.CancelFunc
	goroutines         sync.WaitGroup

	mu       sync.Mutex
	started  bool // the sink's Start succeeded
	hopeless bool // it has failed for GiveUp: chunks are given up meanwhile
	begun    bool // the sink's Start was called
	stopped  bool
	splits   map[*record.Split]*split
	spare    []*split
	due      dueHeap       // splits that hold rows and have none in flight
	active   int           // delivering goroutines
	pressed  int           // callers of Add that wait for memory
	bytes    int64         // held
	rows     int64         // held, encode rejects included
	changed  chan struct{} // closed and forgotten when something happens that a waiter may wait for
	timer    *time.Timer
	timerAt  time.Time // zero: not set

	gen     uint64     // of rows that are added now; from 1
	open    uint64     // Marked only: rows of later generations wait
	base    Counts     // of the generations before first
	first   uint64     // generation of gens[0]
	gens    []genState // one for each generation from first to gen
	isMark  bool       // Marked only: the sink's Mark succeeded for generation open and is not Committed
	owed    bool       // the runner has called Committed, the sink's has not succeeded yet
	part    []byte     // what Mark returned and is not committed
	hasPart bool

	blocked  bool
	since    time.Time
	lastErr  error
	lastAt   string // what failed
	loggedAt time.Time
	logged   bool // a failure of this blockade was logged
}

type genState struct {
	Counts
	pending int // segments
}

// New makes the cache of a sink. Start begins deliveries.
func New(s sinks.Sink, o Options) *Cache {
	var def sinks.BatchConfig
	config.Defaults(&def)
	cfg := o.Config
	if cfg.Size <= 0 {
		cfg.Size = def.Size
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = def.Bytes
	}
	if cfg.Interval <= 0 {
		cfg.Interval = def.Interval
	}
	if cfg.Memory <= 0 {
		cfg.Memory = def.Memory
	}
	if cfg.InFlight <= 0 {
		cfg.InFlight = def.InFlight
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BackoffMin <= 0 {
		o.BackoffMin = 100 * time.Millisecond
	}
	if o.BackoffMax <= 0 {
		o.BackoffMax = 30 * time.Second
	}
	c := &Cache{o: o, sink: s, cfg: cfg, splits: map[*record.Split]*split{}, gen: 1, open: 1, first: 1, gens: make([]genState, 1)}
	c.marked, _ = s.(sinks.Marked)
	c.prep, _ = s.(sinks.Preparer)
	c.starter, _ = s.(sinks.Starter)
	c.desc, _ = s.(sinks.Describer)
	if c.prep != nil {
		c.cfg.InFlight = 1
		if o.Commit == nil {
			panic("batch: sink " + o.Name + " is a Preparer and Options.Commit is nil")
		}
	}
	return c
}

// Start begins deliveries. The sink's own Start is tried, with backoff, in the
// background until it succeeds or the cache is stopped; Status shows it. Deliveries end
// with Stop or when ctx ends, which also ends those in flight.
func (c *Cache) Start(ctx context.Context, env *sinks.Env) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != nil || c.stopped {
		return
	}
	c.deliver, c.endDeliver = context.WithCancel(ctx)
	c.run, c.endRun = context.WithCancel(c.deliver)
	if c.starter == nil {
		c.started = true
		c.kick()
		return
	}
	c.begun = true
	c.goroutines.Go(func() {
		err := c.retry(c.run, "start", func(ctx context.Context) error {
			err := c.starter.Start(ctx, env)
			if err == nil && c.prep != nil && !c.prep.Ready() {
				err = c.prepare()
			}
			if err != nil && c.givesUp() {
				c.mu.Lock()
				c.hopeless = true
				c.broadcast()
				c.kick()
				c.mu.Unlock()
			}
			return err
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.started, c.hopeless = err == nil, false
		c.broadcast()
		c.kick()
	})
}

// Add copies a lane's encoded rows of one split behind what is there. It is called at the
// ordered end, by one goroutine at a time, and waits while the cache is over its memory
// until a delivery makes room; rows that are more than that by themselves are let in alone.
func (c *Cache) Add(ctx context.Context, s *record.Split, e *Encoded) error {
	n := len(e.Ends) + len(e.Rejects)
	if n == 0 {
		return nil
	}
	size := int64(len(e.Data) + len(e.Ends)*rowCost + len(e.text) + len(e.Rejects)*rowCost)
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.stopped && c.bytes > 0 && c.bytes+size > int64(c.cfg.Memory) {
		c.pressed++
		c.kick()
		err := c.wait(ctx)
		c.pressed--
		if err != nil {
			return fmt.Errorf("sink %s: waiting for memory: %w", c.o.Name, err)
		}
	}
	if c.stopped {
		return fmt.Errorf("sink %s: %w", c.o.Name, ErrStopped)
	}
	q := c.splits[s]
	if q == nil {
		if k := len(c.spare); k > 0 {
			q, c.spare = c.spare[k-1], c.spare[:k-1]
		} else {
			q = &split{at: -1}
		}
		q.split = s
		c.splits[s] = q
	}
	c.bytes += size
	c.rows += int64(n)
	g := &c.gens[len(c.gens)-1]
	g.Received += int64(n)

	now := time.Now()
	wasFull, wasEmpty := false, q.head == nil
	if !wasEmpty {
		wasFull = c.full(q.head)
	}
	for from := 0; from < len(e.Ends); {
		t := c.tail(q, now)
		from += t.fill(e, from, c.cfg.Size, int(c.cfg.Bytes), &c.pools)
		if from < len(e.Ends) {
			t.sealed = true
		}
	}
	if len(e.Rejects) > 0 {
		c.tail(q, now).reject(e)
	}
	switch { // a split that is in flight is in neither case: its head is there and sealed
	case wasEmpty:
		c.due.push(q, c.key(q.head))
	case !wasFull && c.full(q.head):
		c.due.fix(q, c.key(q.head))
	}
	c.kick()
	return nil
}

// tail is the segment that takes q's next rows.
func (c *Cache) tail(q *split, now time.Time) *segment {
	if t := q.tail; t != nil && !t.sealed && t.gen == c.gen && !c.full(t) {
		return t
	}
	t := c.pools.segment()
	t.gen, t.since = c.gen, now
	if q.tail == nil {
		q.head = t
	} else {
		q.tail.sealed = true
		q.tail.next = t
	}
	q.tail = t
	c.gens[len(c.gens)-1].pending++
	return t
}

func (c *Cache) full(t *segment) bool {
	return t.sealed || len(t.ends) >= c.cfg.Size || len(t.data) >= int(c.cfg.Bytes)
}

// key is when a segment is due by itself.
func (c *Cache) key(t *segment) dueKey {
	if c.full(t) {
		return dueKey{t.gen, t.since}
	}
	return dueKey{t.gen, t.since.Add(c.cfg.Interval.D())}
}

// Mark cuts: all rows added so far are before the mark it returns. It is called at the ordered end.
func (c *Cache) Mark() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.gen
	c.gen++
	c.gens = append(c.gens, genState{})
	c.kick()
	return m
}

// Flush returns when every row before the mark is delivered, skipped or rejected
// with a durable letter, and, where the sink is Marked, its Mark has succeeded. Then part
// is the state to commit, if changed. It keeps trying until ctx ends or the cache is
// stopped; it may be called again, and gives the same part until Committed. A Flush of a
// later mark before Committed gives the earlier one up; its commit must not have been tried then.
func (c *Cache) Flush(ctx context.Context, mark uint64) (part []byte, changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed {
		c.mu.Unlock()
		err := c.Committed(ctx)
		c.mu.Lock()
		if err != nil {
			return nil, false, err
		}
	}
	if mark > c.open {
		c.open, c.isMark = mark, false
	}
	c.kick()
	for !c.started && !c.hopeless || c.pending(mark) > 0 {
		if err := c.wait(ctx); err != nil {
			return nil, false, c.flushError(err)
		}
	}
	for c.first < mark { // what is before an earlier mark is complete: no one asks for it apart
		c.base.add(c.gens[0].Counts)
		c.gens = c.gens[1:]
		c.first++
	}
	if c.marked == nil || c.isMark || mark < c.open {
		return c.part, c.hasPart, nil
	}
	if c.stopped {
		return nil, false, c.flushError(ErrStopped)
	}
	run := c.run
	c.mu.Unlock()
	both, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(run, cancel)
	err = c.retry(both, "mark", func(ctx context.Context) error {
		part, err = c.marked.Mark(ctx)
		return err
	})
	unhook()
	cancel()
	c.mu.Lock()
	if err != nil {
		return nil, false, c.flushError(err)
	}
	c.isMark = true
	if part != nil {
		c.part, c.hasPart = part, true
	}
	return c.part, c.hasPart, nil
}

func (c *Cache) flushError(err error) error {
	if c.lastErr != nil {
		return fmt.Errorf("sink %s: not flushed: %w; last failure: %w", c.o.Name, err, c.lastErr)
	}
	return fmt.Errorf("sink %s: not flushed: %w", c.o.Name, err)
}

// Committed tells that what Flush returned is committed; a Marked sink's deliveries go
// on. It retries the sink's own Committed until ctx ends; after an error it may be called again.
func (c *Cache) Committed(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.marked == nil || !c.isMark {
		return nil
	}
	c.owed = true
	run := c.run
	c.mu.Unlock()
	both, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(run, cancel)
	err := c.retry(both, "after commit", c.marked.Committed)
	unhook()
	cancel()
	c.mu.Lock()
	if err != nil {
		return fmt.Errorf("sink %s: after commit: %w", c.o.Name, err)
	}
	c.owed, c.isMark, c.part, c.hasPart = false, false, nil, false
	c.open++
	c.kick()
	return nil
}

// pending is the number of segments before the mark.
func (c *Cache) pending(mark uint64) int {
	n := 0
	for i := range c.gens {
		if c.first+uint64(i) <= mark {
			n += c.gens[i].pending
		}
	}
	return n
}

// CountsAt is the ledger of the rows before the mark, the latest or the one that was last flushed.
func (c *Cache) CountsAt(mark uint64) Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.base
	for i := range c.gens {
		if c.first+uint64(i) <= mark {
			n.add(c.gens[i].Counts)
		}
	}
	return n
}

// Counts is the ledger of all rows, and how many are held.
func (c *Cache) Counts() (now Counts, held int64) {
	n := c.CountsAt(^uint64(0))
	return n, n.held()
}

// SetCounts sets the ledger as it was committed, before Start.
func (c *Cache) SetCounts(n Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = n
}

// Status tells what the cache is up to.
func (c *Cache) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{Started: c.started, Blocked: c.blocked, Since: c.since, Err: c.lastErr, Rows: c.rows, Bytes: c.bytes}
}

// stopGrace is how long Stop waits for deliveries whose context it has ended.
const stopGrace = 5 * time.Second

// Stop ends deliveries and stops the sink; nothing is flushed. What is in flight is
// awaited until ctx ends, then its context is ended too. Calls that wait return ErrStopped.
func (c *Cache) Stop(ctx context.Context) error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.broadcast()
	run := c.run
	c.mu.Unlock()
	if run == nil {
		return nil
	}
	c.endRun()
	ended := make(chan struct{})
	go func() { c.goroutines.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		c.endDeliver()
		grace := time.NewTimer(stopGrace)
		defer grace.Stop()
		select {
		case <-ended:
		case <-grace.C:
			return fmt.Errorf("sink %s: a delivery goes on though it was cancelled %s ago; the sink is left open", c.o.Name, stopGrace)
		}
	}
	c.endDeliver()
	if !c.begun {
		return nil
	}
	if err := c.starter.Stop(ctx); err != nil {
		return fmt.Errorf("stop sink %s: %w", c.o.Name, err)
	}
	return nil
}

// wait waits for broadcast or ctx's end. c.mu is held by the caller and given up meanwhile.
func (c *Cache) wait(ctx context.Context) error {
	if c.stopped {
		return ErrStopped
	}
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	ch := c.changed
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Cache) broadcast() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// atLetters is what is being done where dead letters are written.
const atLetters = "dead letters"

// logEvery is how often a sink's failures are logged at most.
const logEvery = 30 * time.Second

// retry calls f until it succeeds or ctx ends.
func (c *Cache) retry(ctx context.Context, what string, f func(context.Context) error) error {
	for n := 0; ; n++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := f(ctx)
		if err == nil {
			c.succeeded(what)
			return nil
		}
		if ctx.Err() != nil || err == errGivenUp {
			return err
		}
		if sinks.IsPermanent(err) && c.o.Fatal != nil {
			c.o.Fatal(c.failed(what, err))
			<-ctx.Done()
			return err
		}
		if !c.pause(ctx, n, c.failed(what, err)) {
			return err
		}
	}
}

// failed notes a failure for status and log.
func (c *Cache) failed(what string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	if !c.blocked {
		c.blocked, c.since = true, now
	}
	c.lastErr, c.lastAt = err, what
	if sinks.IsPermanent(err) && c.o.Fatal != nil {
		return err // the pipeline fails with it, and says so
	}
	if at := time.Now(); c.loggedAt.IsZero() || at.Sub(c.loggedAt) >= logEvery {
		c.loggedAt, c.logged = at, true
		c.o.Log.Warn("sink failed, it is tried again", "sink", c.o.Name, "at", what, "error", err, "blocked_since", c.since, "rows_held", c.rows)
	}
	return err
}

func (c *Cache) succeeded(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.blocked || what == atLetters && c.lastAt != atLetters { // the letters of a sink that fails
		return
	}
	if c.logged {
		c.o.Log.Info("sink works again", "sink", c.o.Name, "blocked_since", c.since)
	}
	c.blocked, c.since, c.lastErr, c.logged = false, time.Time{}, nil, false
}

// givesUp tells whether the sink has failed for so long that chunks are given up.
func (c *Cache) givesUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.GiveUp > 0 && c.marked == nil && c.prep == nil && c.blocked && c.o.Now().Sub(c.since) >= c.o.GiveUp
}

// pause waits before attempt n+1; false where ctx ended.
func (c *Cache) pause(ctx context.Context, n int, err error) bool {
	d := c.o.BackoffMax
	if n < 20 {
		d = min(c.o.BackoffMin<<n, c.o.BackoffMax)
	}
	d = d/2 + rand.N(d/2+1)
	if after, ok := sinks.After(err); ok {
		d = after
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
