package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/batch"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/state"
)

// RunOptions say where and how a plan runs.
type RunOptions struct {
	Store    state.Store
	StateDir string // where components may keep files; "" for none
	Letters  string // the dead letters' file
	Log      *slog.Logger
	Now      func() time.Time
}

// Runner is one run of a plan: source, lanes, caches, checkpoints. It is used once.
type Runner struct {
	plan *Plan
	o    RunOptions
	log  *slog.Logger
	now  func() time.Time

	snap    *state.Snapshot
	origin  string // the name that sinks know
	birth   bool   // it is still to be committed
	caches  []*batch.Cache
	letters *deadletter.Writer
	budget  *budget
	work    chan *item
	order   sequencer
	end     *worker       // the ordered end's
	stages  map[int]Stage // by node
	first   int           // the first stage's node; len(Nodes) where there is none
	allWhen bool          // every sink at the last place has a `when`

	pool    pool
	commits sync.Mutex // one commit at a time

	splits     splitTable
	ledger     ledger
	outbox     outbox
	due        atomic.Bool              // a stage has something to fire
	running    atomic.Bool              // Run was called
	released   atomic.Pointer[[]string] // stages that fire what they hold at a stop
	hears      map[int]bool             // nodes whose stages get the source's records
	byTime     EventTimer               // the first window, for sources that read splits side by side
	stageNames string                   // stagesPart, where it isn't committed yet
	marked     bool                     // the source's: the dead letters' mark is in the store
	request    chan struct{}            // an early checkpoint is wanted
	flushes    chan chan struct{}       // someone waits for a checkpoint; closed when it is committed
	gate       gate
	brake      gate // shut while stages have much to fire
	trouble    trouble

	// abort is cancelled when the pipeline gives up what is not committed: nothing
	// after that changes the state.
	abort  context.Context
	cancel context.CancelCauseFunc
}

// NewRunner prepares a run: it reads the pipeline's state and makes caches, lanes and stages.
// It starts nothing.
func NewRunner(ctx context.Context, p *Plan, o RunOptions) (*Runner, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = p.now
	}
	r := &Runner{plan: p, o: o, now: o.Now, log: slog.New(masked{o.Log.Handler(), p.File.Errs.Mask}).With("pipeline", p.Name), stages: map[int]Stage{}, first: len(p.Nodes)}
	var err error
	r.abort, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	// The lease stays the process's when the run is over: who starts runs gives it up.
	if err := acquire(ctx, o.Store, p.Name, r.cancel); err != nil {
		return nil, fmt.Errorf("pipeline %s: %w", p.Name, err)
	}
	if r.snap, err = o.Store.Load(ctx, p.Name); err != nil {
		return nil, fmt.Errorf("pipeline %s: read its state: %w", p.Name, err)
	}
	if r.origin, r.birth, err = origin(ctx, o.Store, p.Name, r.snap); err != nil {
		return nil, fmt.Errorf("pipeline %s: read the names that sinks know: %w", p.Name, err)
	}
	size, age := p.Options.DeadLetter.Bounds()
	r.letters, err = deadletter.Open(o.Letters, r.snap.Parts[lettersPart], deadletter.Options{Log: r.log, Passed: passed(r.snap.Splits), MaxSize: size, MaxAge: age})
	if err != nil {
		return nil, fmt.Errorf("pipeline %s: dead letters: %w", p.Name, err)
	}
	r.budget = newBudget(int(p.Options.Memory), 8+4*p.Options.Workers)
	r.request = make(chan struct{}, 1)
	r.flushes = make(chan chan struct{})
	r.work = make(chan *item, p.Options.Workers)
	r.order.init(func(it *item) { r.guard("the ordered end", func() { r.finish(it) }) })
	r.ledger.load(r.snap.Counters)
	r.splits.load(r.snap.Splits)
	r.allWhen = true
	for _, s := range p.Sinks {
		if id, ok := s.Sink.(sinks.Identified); ok {
			id.Identify(r.origin)
		}
		if s.At == len(p.Nodes) && s.When == nil && s.conf.branch == nil {
			r.allWhen = false
		}
		c := batch.New(s.Sink, batch.Options{Pipeline: p.Name, Name: s.Name, Config: s.conf.Common.Batch, Log: r.log,
			Letters: r.letters, Now: r.now, GiveUp: s.conf.Common.OnFailure.After.D(), Commit: r.commitPart(s.Name),
			Fatal: func(err error) { r.cancel(fmt.Errorf("sink %s: %w", s.Name, err)) }})
		c.SetCounts(loadCounts(r.snap.Counters, s.Name))
		r.caches = append(r.caches, c)
	}
	for i, n := range p.Nodes {
		if !n.Stage {
			continue
		}
		if i < r.first {
			r.first = i
		}
		st, ok := n.Make().(Stage)
		if !ok {
			return nil, fmt.Errorf("pipeline %s: step %s is no stage", p.Name, n.Name)
		}
		if err := st.Restore(ctx, &keyed{r: r, stage: n.Name}); err != nil {
			return nil, fmt.Errorf("pipeline %s: step %s: read its state: %w", p.Name, n.Name, err)
		}
		r.stages[i] = st
	}
	if err := r.orphans(ctx); err != nil {
		return nil, err
	}
	r.findHears()
	r.byTime = r.timer()
	r.end = newWorker(r)
	r.outbox.init(r)
	return r, nil
}

// passed tells whether a record's position is before its split's committed one.
func passed(splits []state.Split) func(string, int64, record.Position) bool {
	type at struct {
		epoch int64
		pos   record.Position
	}
	by := map[string]at{}
	for i := range splits {
		by[splits[i].ID] = at{splits[i].Epoch, splits[i].Position()}
	}
	return func(split string, epoch int64, pos record.Position) bool {
		a, ok := by[split]
		return ok && epoch == a.epoch && pos.Compare(a.pos) < 0
	}
}

// ErrDrain is wrapped by Run's error when a stop ended before everything was committed.
var ErrDrain = errors.New("not everything was committed")

var errEnded = errors.New("pipeline has ended")

// Run runs the pipeline until its source ends or ctx does; then it flushes and commits what was
// read. When ctx ends that may take the plan's `drain`; what isn't done by then is given up
// and named in the error: it will be read again.
func (r *Runner) Run(ctx context.Context) (err error) {
	r.running.Store(true)
	start := time.Now()
	defer func() { r.ledger.ended(time.Since(start)) }()
	for i, c := range r.caches {
		s := r.plan.Sinks[i]
		c.Start(r.abort, &sinks.Env{Pipeline: r.origin, Name: s.Name, Log: r.log, Fresh: len(r.snap.Counters) == 0,
			State: r.snap.Parts[sinkPart(s.Name)], StateDir: r.o.StateDir})
	}
	var lanes sync.WaitGroup
	for range r.plan.Options.Workers {
		w := newWorker(r)
		lanes.Go(func() {
			for it := range r.work {
				if !r.guard("a step", func() { w.run(it, 0, r.first) }) {
					it.do = func() {} // what it is worth is unknown; its number still counts
				}
				r.order.done(it)
			}
		})
	}
	stopCheckpoints := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { r.checkpoints(stopCheckpoints) })
	background.Go(func() { r.outbox.deliver(stopCheckpoints) })
	background.Go(func() { r.ticks(stopCheckpoints) })

	srcErr := r.readSource(ctx)
	close(r.work)

	// The source has ended: drain. A deadline runs only once ctx has ended.
	drained := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-drained:
			return
		}
		t := time.NewTimer(r.plan.Options.Drain.D())
		defer t.Stop()
		select {
		case <-t.C:
			r.cancel(fmt.Errorf("%w within drain: %s", ErrDrain, r.plan.Options.Drain))
		case <-drained:
		}
	}()
	lanes.Wait()
	close(stopCheckpoints)
	background.Wait()
	err = r.drain(srcErr == nil && ctx.Err() == nil)
	close(drained)
	if err != nil {
		err = r.undone(err)
		r.cancel(err)
	}
	r.cancel(errEnded)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	for i, c := range r.caches {
		if e := c.Stop(stop); e != nil {
			err = errors.Join(err, fmt.Errorf("stop sink %s: %w", r.plan.Sinks[i].Name, e))
		}
	}
	if e := r.letters.Close(); e != nil {
		err = errors.Join(err, fmt.Errorf("dead letters: %w", e))
	}
	if srcErr != nil {
		err = errors.Join(fmt.Errorf("source %s: %w", r.plan.File.Source.Kind, srcErr), err)
	}
	return err
}

// mask hides the file's secrets.
func (r *Runner) mask(text string) string {
	if r.plan.File == nil {
		return text
	}
	return r.plan.File.Errs.Mask(text)
}

// guard runs f. A panic is a fault of rsetl's: this pipeline is given up with it, back to its last commit, and the
// others go on.
func (r *Runner) guard(what string, f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("internal error; please report it", "in", what, "panic", p, "stack", string(debug.Stack()))
			r.cancel(fmt.Errorf("internal error in %s: %v", what, p))
		}
	}()
	f()
	return true
}

// readSource runs the source until it or ctx ends, or the run is given up.
func (r *Runner) readSource(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.abort, cancel)()
	if !r.guard("the source", func() { err = r.plan.Source.Run(ctx, &output{r: r}) }) {
		return context.Cause(r.abort)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// drain makes checkpoints until nothing is left to commit, firings included. Where the source has ended by itself, stages fire
// what they hold, one after the other; else only those that were released do.
func (r *Runner) drain(ended bool) error {
	open := r.closing(ended)
	for {
		if err := r.checkpoint(r.abort); err != nil {
			return err
		}
		left, err := r.outbox.drain(r.abort)
		if err != nil {
			return err
		}
		if left || r.splits.dirty() || r.due.Load() {
			continue
		}
		if len(open) == 0 {
			return nil
		}
		if err := r.endStage(r.abort, open[0]); err != nil {
			return err
		}
		open = open[1:]
	}
}

// undone adds to a drain's error what was not done.
func (r *Runner) undone(err error) error {
	if cause := context.Cause(r.abort); cause != nil {
		err = cause
	}
	for i, c := range r.caches {
		if st := c.Status(); st.Rows > 0 || st.Blocked {
			why := ""
			if st.Err != nil && !strings.Contains(err.Error(), st.Err.Error()) {
				why = ": " + st.Err.Error()
			}
			err = fmt.Errorf("%w; sink %s holds %d rows%s", err, r.plan.Sinks[i].Name, st.Rows, why)
		}
	}
	return fmt.Errorf("%w; what is not committed will be read again at the next start", err)
}

// Fail gives the run up with that cause: nothing more is committed, what is not will be read again.
func (r *Runner) Fail(cause error) { r.cancel(cause) }

// Checkpoint asks for an early checkpoint. It doesn't wait.
func (r *Runner) Checkpoint() {
	select {
	case r.request <- struct{}{}:
	default:
	}
}

// finish is the ordered end: batches come here in dispatch order, one at a time.
func (r *Runner) finish(it *item) {
	if it.do != nil {
		it.do()
		r.release(it)
		return
	}
	b := it.b
	switch {
	case it.fired != nil:
		r.outbox.feed(it)
	case r.first < len(r.plan.Nodes):
		r.end.run(it, r.first, len(r.plan.Nodes))
		r.noteDue()
		if r.byTime != nil {
			r.splits.at(b.Split).event.Store(r.byTime.EventTime(b.Split))
		}
	}
	for i := range it.letters {
		if err := r.write(&it.letters[i]); err != nil {
			r.release(it)
			return
		}
	}
	for i, c := range r.caches {
		if len(it.enc[i].Ends) == 0 && len(it.enc[i].Rejects) == 0 {
			continue
		}
		if err := c.Add(r.abort, b.Split, &it.enc[i]); err != nil {
			r.cancel(fmt.Errorf("sink %s: %w", r.plan.Sinks[i].Name, err))
			r.release(it)
			return
		}
	}
	it.count.filtered += int64(b.Filtered)
	it.count.made += int64(b.Made)
	it.count.absorbed += int64(b.Absorbed)
	r.ledger.pass(it.count)
	if it.fired == nil {
		r.splits.pass(b.Split, b.End)
	}
	if it.after != nil {
		it.after()
	}
	r.release(it)
}

// write appends a dead letter, for as long as that takes: dropping it would lose a record.
func (r *Runner) write(l *deadletter.Letter) error {
	wait := 100 * time.Millisecond
	for {
		err := r.letters.Append(l)
		if err == nil {
			r.trouble.clear("dead letters")
			return nil
		}
		if r.trouble.set("dead letters", err) {
			r.log.Error("cannot write a dead letter; trying again", "err", err)
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, 10*time.Second)
		case <-r.abort.Done():
			return context.Cause(r.abort)
		}
	}
}

// release gives an item's memory back.
func (r *Runner) release(it *item) {
	if it.b == nil { // made by inOrder
		return
	}
	r.budget.release(it.b.Size)
	it.reset()
	r.pool.put(it)
}

// newItem takes an item from the pool or makes one.
func (r *Runner) newItem() *item {
	if it := r.pool.get(); it != nil {
		return it
	}
	it := &item{b: record.NewBatch(r.plan.Table), enc: make([]batch.Encoded, len(r.caches))}
	it.b.Owner = it
	return it
}

var _ sources.Output = (*output)(nil)
