package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state"
)

// want is what a unit should be; the last one wins.
type want struct {
	v     *version // nil only where gone
	gone  bool     // the file was deleted
	force bool     // start anew though nothing changed
	seq   uint64
}

// unit is one pipeline: what should run, what runs, and the goroutine that brings both together. Only that
// goroutine starts and stops runs.
type unit struct {
	m    *Manager
	wake chan struct{}

	mu       sync.Mutex
	name     string
	want     want
	handled  uint64 // the last want that was taken up
	changed  chan struct{}
	tasks    []task
	paused   bool
	memory   string   // the version of a run of the program before
	current  *version // what runs, or is to run again
	run      *run
	draining bool
	finished bool
	err      error // why it doesn't run
	retryAt  time.Time
	rejected *Rejected
	note     string
	started  time.Time
	last     *pipeline.Report // of the run before, or the store's
	lastAt   time.Time        // of the last checkpoint
	store    state.Store      // where its state is; nil: not known yet
	waits    bool             // another instance runs it; err says which
	restarts int64
	from     string // the name that its state has in the store; "" before the first start. Only the goroutine changes it

	// The goroutine's own.
	prev    *version  // what ran before current and runs again where that doesn't last
	proved  time.Time // from then on current has proved to work
	attempt int
	retry   *time.Timer
	taking  uint64    // the want that it works on
	names   []string  // what it has claimed
	looked  time.Time // standing by: when the ledger was read last
}

// run is one run of a version.
type run struct {
	r       *pipeline.Runner
	v       *version
	cancel  context.CancelFunc
	done    chan error
	started time.Time
}

// Rejected is a new version that doesn't run, while the old one does.
type Rejected struct {
	Version  string    `json:"version,omitempty"`
	Error    string    `json:"error"`
	Mistakes []Mistake `json:"mistakes,omitempty"`
}

func (m *Manager) newUnit(name, from string) *unit {
	return &unit{m: m, wake: make(chan struct{}, 1), name: name, from: from, changed: make(chan struct{})}
}

func (u *unit) log() *slog.Logger { return u.m.o.Log.With("pipeline", u.nameNow()) }

func (u *unit) nameNow() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name
}

// ask changes what the unit should be. It is called with Manager.mu held.
func (u *unit) ask(w want) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := u.want; old.v != nil && w.v != nil && !w.force && !old.gone && old.v.name == w.v.name && old.v.hash == w.v.hash &&
		old.v.file.path == w.v.file.path && errText(old.v.err) == errText(w.v.err) && slices.Equal(old.v.places, w.v.places) {
		u.want.v = w.v
		return
	}
	if w.v == nil {
		w.v = u.want.v
	}
	w.seq = u.want.seq + 1
	u.want = w
	u.poke()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (u *unit) poke() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// edit changes what others see and tells those who wait.
func (u *unit) edit(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f()
	close(u.changed)
	u.changed = make(chan struct{})
}

// settled waits until the unit has taken up what is wanted now.
func (u *unit) settled(ctx context.Context) error {
	u.mu.Lock()
	seq := u.want.seq
	u.mu.Unlock()
	for {
		u.mu.Lock()
		done, ch := u.handled >= seq, u.changed
		u.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return fmt.Errorf("pipeline %s: %w", u.nameNow(), ctx.Err())
		case <-u.m.ended:
			return ErrStopping
		}
	}
}

func (u *unit) loop() {
	m := u.m
	defer m.loops.Done()
	u.retry = time.NewTimer(time.Hour)
	u.retry.Stop()
	defer u.retry.Stop()
	for {
		u.mu.Lock()
		w, handled, tasks := u.want, u.handled, len(u.tasks)
		u.mu.Unlock()
		switch {
		case m.stopping.Err() != nil:
			u.refuse(ErrStopping)
			u.stop()
			u.release()
			u.claim()
			return
		case w.gone:
			u.retry.Stop()
			u.stop()
			u.release()
			u.leave()
			u.claim()
			u.prev = nil
			u.edit(func() { u.current, u.rejected, u.err, u.finished, u.handled = nil, nil, nil, false, w.seq })
			if m.drop(u) {
				u.refuse(fmt.Errorf("%w: %s: its file is gone", ErrUnknown, u.nameNow()))
				u.log().Info("pipeline stopped, its file is gone; its state is kept")
				u.edit(func() {})
				return
			}
			continue
		case w.seq != handled:
			u.taking = w.seq
			u.take(w)
			u.edit(func() { u.handled = w.seq })
			continue
		case tasks > 0:
			u.service()
			continue
		}
		var ended chan error
		if u.run != nil {
			ended = u.run.done
		}
		select {
		case <-u.wake:
		case err := <-ended:
			u.ended(err)
		case <-u.retry.C:
			waits := u.standsBy()
			if waits && u.pausedNow() { // a pause is for what runs here: others may have the pipeline
				u.retry.Reset(pausedTry)
				continue
			}
			if !waits {
				u.edit(func() { u.restarts++ })
			}
			if err := u.start(u.current); err != nil {
				u.fail(err)
			} else if waits {
				u.log().Info("pipeline taken over; it runs here now")
			}
		case <-m.stopping.Done():
		}
	}
}

// take brings the unit to what is wanted.
func (u *unit) take(w want) {
	v := w.v
	if v.err != nil {
		u.m.count("rejected")
		u.log().Error("pipeline file has mistakes; what ran goes on", "file", v.file.path, "err", v.err)
		u.committed()
		u.edit(func() {
			u.rejected = &Rejected{Version: v.hash, Error: v.err.Error(), Mistakes: v.places}
			if u.current == nil {
				u.err = v.err
			}
		})
		return
	}
	u.edit(func() { u.rejected, u.note = nil, "" })
	if u.current != nil && u.current.hash == v.hash && u.from == v.name && !w.force {
		u.edit(func() { u.current = v }) // comments, or another path
		return
	}
	u.reload(v)
}

// reload stops what runs and starts v from the committed state; where v doesn't start, what ran before runs again.
func (u *unit) reload(v *version) {
	begin := time.Now()
	old := u.current
	// A renamed pipeline has nothing to go back to: its state is moved, or that is tried again.
	healthy := (u.run != nil || u.finished) && u.from == v.name
	u.retry.Stop()
	u.edit(func() { u.draining = u.run != nil })
	defer u.edit(func() { u.draining = false })
	if u.run != nil {
		u.run.r.Release(v.stages)
	}
	u.stop()
	if u.m.stopping.Err() != nil {
		return
	}
	u.attempt = 0
	err := u.start(v)
	switch {
	case err == nil:
		u.prev = nil
		if healthy {
			u.prev, u.proved = old, time.Now().Add(u.m.o.Probation)
		}
		u.edit(func() { u.draining = false })
		u.ready()
		if u.run != nil && u.run.v == v {
			u.m.count("ok")
			u.log().Info("pipeline runs", "version", v.hash, "file", v.file.path, "took", time.Since(begin).Round(time.Millisecond).String())
		}
	case u.m.stopping.Err() != nil:
	case healthy && !held(err):
		u.back(v, old, err)
	default:
		if !held(err) {
			u.m.count("start_failed")
		}
		u.edit(func() { u.current = v })
		u.fail(err)
	}
}

// back runs the old version again, since v doesn't work.
func (u *unit) back(v, old *version, err error) {
	u.m.count("start_failed")
	u.prev = nil
	u.log().Error("the new version does not start; the old one runs again", "version", v.hash, "file", v.file.path, "old", old.hash, "err", err)
	u.edit(func() {
		u.current = old
		u.rejected = &Rejected{Version: v.hash, Error: fmt.Sprintf("%s: it did not start, the version before runs again: %s", v.file.path, v.hide(err.Error()))}
	})
	if err := u.start(old); err != nil {
		u.fail(err)
	}
}

// ready waits a little, until the new run's sinks have started or one has said why it can't.
func (u *unit) ready() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(u.m.o.Ready)
	defer limit.Stop()
	for !u.run.r.Started() {
		select {
		case <-tick.C:
		case <-limit.C:
			return
		case err := <-u.run.done:
			u.ended(err)
			return
		case <-u.m.stopping.Done():
			return
		}
	}
	select { // a sink that can't start has ended it by now, mostly
	case err := <-u.run.done:
		u.ended(err)
	default:
	}
}

// start runs v from the committed state.
func (u *unit) start(v *version) error {
	names := append([]string{"pipeline " + v.name}, v.outputs...)
	if u.from != "" && u.from != v.name {
		names = append(names, "pipeline "+u.from)
	}
	if err := u.claimAll(names); err != nil {
		return err
	}
	ctx := context.Background()
	plan, again := u.m.load(&v.file)
	if again.err != nil {
		return again.err
	}
	store, err := u.open(ctx, plan)
	if err != nil {
		return err
	}
	if u.from != "" && u.from != v.name {
		if err := u.move(ctx, v.name); err != nil {
			return err
		}
		u.claim(names[:len(names)-1]...)
	}
	u.edit(func() { u.from = v.name })
	r, err := pipeline.NewRunner(ctx, plan, pipeline.RunOptions{Store: store, StateDir: u.m.o.StateDir, Letters: u.m.letters(plan), Log: u.m.o.Log})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	n := &run{r: r, v: v, cancel: cancel, done: make(chan error, 1), started: time.Now()}
	u.edit(func() {
		if u.paused {
			r.Pause()
		}
		u.current, u.run, u.err, u.finished, u.started, u.retryAt, u.waits = v, n, nil, false, n.started, time.Time{}, false
	})
	go func() { n.done <- r.Run(ctx) }()
	return nil
}

// move gives the state and the dead letters the file's new name. It can be done again after a crash.
func (u *unit) move(ctx context.Context, to string) error {
	from := u.from
	err := u.store.Rename(ctx, from, to)
	switch {
	case errors.Is(err, state.ErrConflict):
		u.log().Warn("the file was renamed, but its new name has state already and goes on from that", "from", from, "to", to)
	case err != nil:
		return fmt.Errorf("move the state of %s to %s: %w", from, to, err)
	default:
		if err := pipeline.Moved(ctx, u.store, from, to, u.m.defaultLetters(from), u.m.defaultLetters(to)); err != nil {
			return fmt.Errorf("move the state of %s to %s: %w", from, to, err)
		}
		u.log().Info("the file was renamed; its state moved along", "from", from, "to", to)
	}
	if err := pipeline.Release(ctx, u.store, from); err != nil {
		u.log().Warn("the former name could not be given up; other instances may have it when the lease ends", "name", from, "err", err)
	}
	if u.store != u.m.o.Store { // there is a note of where the state is, under the old name
		if s, err := u.m.o.Store.Load(ctx, from); err == nil && pipeline.Elsewhere(s) != "" {
			if err := u.m.o.Store.Remove(ctx, from); err != nil {
				return fmt.Errorf("move the state of %s to %s: %w", from, to, err)
			}
		}
	}
	u.edit(func() { u.from = to })
	u.m.memorise() // before another pipeline may have the old name
	return nil
}

// leave moves the state of a pipeline that was renamed and then deleted, before it ran under its new name.
func (u *unit) leave() {
	name := u.nameNow()
	if u.from == "" || u.from == name {
		return
	}
	err := u.claimAll([]string{"pipeline " + u.from, "pipeline " + name})
	if err == nil {
		err = u.move(context.Background(), name)
	}
	if err != nil {
		u.log().Warn("the pipeline's state keeps its old name", "old", u.from, "err", err)
	}
}

// stop ends the run: it drains, or gives up after the version's `drain`.
func (u *unit) stop() {
	n := u.run
	if n == nil {
		return
	}
	u.edit(func() { u.draining = true })
	n.cancel()
	err := <-n.done
	u.over(n)
	u.edit(func() {
		u.draining = false
		if err != nil {
			u.note = "the run before: " + n.v.hide(err.Error())
		}
	})
	if err != nil {
		u.log().Warn("pipeline stopped before everything was committed; that is read again", "err", err)
		u.m.check(err)
	}
}

// over takes down what the run has come to.
func (u *unit) over(n *run) {
	n.cancel()
	rep := n.r.Report()
	at := n.r.LastCheckpoint()
	u.edit(func() {
		u.run, u.last = nil, &rep
		if !at.IsZero() {
			u.lastAt = at
		}
	})
}

// ended deals with a run that ended by itself.
func (u *unit) ended(err error) {
	n := u.run
	u.over(n)
	if err == nil {
		u.release()
		u.log().Info("pipeline finished: its source has ended")
		u.edit(func() { u.finished = true })
		return
	}
	u.m.check(err)
	if prev := u.prev; prev != nil && time.Now().Before(u.proved) && !errors.Is(err, state.ErrLost) {
		u.back(n.v, prev, err)
		return
	}
	if time.Since(n.started) > 2*u.m.o.BackoffMax {
		u.attempt = 0
	}
	u.fail(err)
}

// fail notes why nothing runs, and when it is tried again.
func (u *unit) fail(err error) {
	if held(err) {
		u.standby(err)
		return
	}
	u.release()
	d := u.m.o.BackoffMax
	if u.attempt < 16 {
		d = min(d, u.m.o.BackoffMin<<u.attempt)
	}
	u.attempt++
	d = d/2 + rand.N(d/2+1)
	u.retry.Reset(d)
	u.committed()
	msg := errors.New(u.current.hide(err.Error()))
	u.edit(func() { u.err, u.retryAt, u.waits = msg, time.Now().Add(d), false })
	u.log().Error("pipeline failed; it is started again", "in", d.Round(time.Millisecond).String(), "err", msg)
}

// committed reads the ledger of a pipeline that hasn't run yet.
func (u *unit) committed() {
	u.mu.Lock()
	name, has := u.name, u.last != nil || u.run != nil
	u.mu.Unlock()
	if has {
		return
	}
	if s, err := u.storeNow().Load(context.Background(), name); err == nil {
		rep := pipeline.CommittedReport(name, s)
		u.edit(func() { u.last = &rep })
	}
}

// claimAll waits until no other pipeline uses the names: files that only one may write, and states.
func (u *unit) claimAll(names []string) error {
	if u.claim(names...) == "" {
		return nil
	}
	u.claim(slices.DeleteFunc(slices.Clone(u.names), func(n string) bool { return !strings.HasPrefix(n, "pipeline ") })...)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(u.m.o.ClaimWait)
	defer limit.Stop()
	for {
		by := u.claim(names...)
		if by == "" {
			return nil
		}
		u.mu.Lock()
		stale := u.want.seq != u.taking
		u.mu.Unlock()
		select {
		case <-tick.C:
			if !stale {
				continue
			}
		case <-limit.C:
		case <-u.m.stopping.Done():
		}
		return errors.New(by)
	}
}

// claim makes names the unit's own, and only them. Where one is another's, nothing changes and that is told.
func (u *unit) claim(names ...string) string {
	m := u.m
	m.claimMu.Lock()
	defer m.claimMu.Unlock()
	for _, n := range names {
		if other := m.claims[n]; other != nil && other != u {
			return fmt.Sprintf("%s is in use by pipeline %s", n, other.nameNow())
		}
	}
	for _, n := range u.names {
		delete(m.claims, n)
	}
	u.names = names
	for _, n := range names {
		m.claims[n] = u
	}
	return ""
}

// The states of a pipeline.
const (
	Running  = "running"
	Blocked  = "blocked"
	Paused   = "paused"
	Draining = "draining"
	Failed   = "failed"
	Finished = "finished"
	Standby  = "standby" // another instance runs it
)

// Status is a pipeline as it is now, with its ledgers.
type Status struct {
	Pipeline       string           `json:"pipeline"`
	State          string           `json:"state"`
	Version        string           `json:"version"` // of what runs, or is to run again
	File           string           `json:"file"`
	StartedAt      *time.Time       `json:"started_at"`
	Error          string           `json:"error"`
	Rejected       *Rejected        `json:"rejected,omitempty"`
	Note           string           `json:"note,omitempty"`
	LastCheckpoint *time.Time       `json:"last_checkpoint"`
	NextTry        *time.Time       `json:"next_try,omitempty"`
	Paused         bool             `json:"paused,omitempty"`
	Restarts       int64            `json:"restarts"`
	Lag            *int64           `json:"lag,omitempty"`
	LagMillis      *int64           `json:"lag_ms,omitempty"`
	SourceErrors   map[string]int64 `json:"source_errors,omitempty"`
	pipeline.Report
	Splits []pipeline.SplitStatus `json:"splits,omitempty"`
	known  bool                   // the ledgers are
}

func (u *unit) status(splits bool) Status {
	u.mu.Lock()
	s := Status{Pipeline: u.name, Paused: u.paused, Restarts: u.restarts, Rejected: u.rejected, Note: u.note, File: u.want.v.file.path}
	cur, n, last := u.current, u.run, u.last
	at := u.lastAt
	failed, finished, draining, retryAt, started, waits := u.err, u.finished, u.draining, u.retryAt, u.started, u.waits
	waiting := u.handled != u.want.seq
	u.mu.Unlock()

	if cur != nil {
		s.Version = cur.hash
	}
	if !started.IsZero() {
		s.StartedAt = new(started.UTC())
	}
	if n != nil {
		rep := n.r.Report()
		s.Report, s.known = rep, true
		if t := n.r.LastCheckpoint(); !t.IsZero() {
			at = t
		}
		if splits {
			s.Splits = n.r.Positions()
		}
		if lag, ok := n.r.Lag(); ok {
			s.Lag = &lag
		}
		if d, ok := n.r.LagTime(); ok {
			s.LagMillis = new(d.Milliseconds())
		}
		s.SourceErrors = n.r.SourceErrors()
	} else if last != nil {
		s.Report, s.known = *last, true
	}
	if n == nil && splits {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		if snap, err := u.storeNow().Load(ctx, s.Pipeline); err == nil {
			s.Splits = pipeline.CommittedPositions(snap)
		}
		cancel()
	}
	if !at.IsZero() {
		s.LastCheckpoint = new(at.UTC())
	}
	s.Report.Pipeline = s.Pipeline
	if s.Sinks == nil {
		s.Sinks = []pipeline.SinkReport{}
	}
	switch {
	case draining:
		s.State = Draining
	case n != nil:
		s.State = Running
		if s.Paused {
			s.State = Paused
		}
		if t := n.r.Troubles(); len(t) > 0 {
			s.State = Blocked
			var parts []string
			for part, err := range t {
				parts = append(parts, part+": "+err)
			}
			sort.Strings(parts)
			s.Error = n.v.hide(strings.Join(parts, "; "))
		}
	case finished:
		s.State = Finished
	case waits:
		s.State, s.Note, s.Stages = Standby, failed.Error(), nil // what windows hold is the other's to say
		if s.Paused {
			s.State = Paused
		}
	case failed == nil && waiting:
		s.State = Running // it is being started
	default:
		s.State = Failed
	}
	if s.State == Failed && !retryAt.IsZero() {
		s.NextTry = new(retryAt.UTC())
	}
	switch {
	case failed != nil && !waits:
		s.Error = failed.Error()
	case s.Rejected != nil:
		s.Error = s.Rejected.Error
	}
	return s
}
