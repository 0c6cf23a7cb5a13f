package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// Stage is a stateful step: a window, dedupe, a join. It runs at the lane's
// ordered end, in one goroutine, split by split in order, and so does everything
// behind it. A steps.Maker of such a step returns a Step that implements Stage.
type Stage interface {
	// Apply absorbs records (taking them out of Sel and counting them in
	// b.Absorbed) or lets them pass.
	Apply(b *record.Batch)
	// Restore is called once, before anything else, with a reader of the committed state, which it may keep.
	Restore(ctx context.Context, load state.Keyed) error
	// Checkpoint is called when a marker passes. It returns the state that changed since
	// the last call and adds the records that fire to out, an empty batch; they run through
	// the steps behind the stage and are committed together with the state, then delivered.
	Checkpoint(out *record.Batch) []state.KV
	// Due tells after Apply whether something fires, so that a checkpoint should come early.
	Due() bool
}

// What follows is for stages that have to do with time. All of it is called at the ordered end too.

// SplitWatcher is a stage that wants to hear of the source's splits: opened before a split's first record, ended after its last.
type SplitWatcher interface {
	SplitOpened(s *record.Split)
	SplitIdle(s *record.Split, idle bool)
	SplitEnded(s *record.Split)
}

// EventTimer is a stage that goes by event time. ByTime is constant; EventTime is called at the ordered end, after a batch of that split.
type EventTimer interface {
	ByTime() bool
	EventTime(s *record.Split) int64 // milliseconds since 1970, math.MinInt64 before the first record
}

// Timed is a stage that something happens in by the clock.
type Timed interface {
	// Tick is called several times a second, whether records come or not.
	Tick(now time.Time)
}

// Ender is a stage that fires what it holds when the source has ended by itself. It is not called where the pipeline is stopped.
type Ender interface{ End() }

// Absorber is a stage that may let no record pass: the stages behind it get firings only, and hear of no split.
type Absorber interface{ Absorbs() bool }

// Backlogger is a stage that may have so much to fire that the source should wait for the next checkpoints.
type Backlogger interface{ Backlogged() bool }

// Reporter is a stage that tells what it holds. Any goroutine may call it.
type Reporter interface{ Status() steps.Holding }

// tickEvery is how often stages are told of the clock.
const tickEvery = 100 * time.Millisecond

// ordered calls f with the stages in plan order.
func (r *Runner) ordered(f func(i int, st Stage) bool) {
	for i := range r.plan.Nodes {
		if st := r.stages[i]; st != nil && !f(i, st) {
			return
		}
	}
}

// watch calls f, at the ordered end, with the stages that get the source's records.
func (r *Runner) watch(f func(w SplitWatcher)) {
	if len(r.stages) == 0 {
		return
	}
	r.inOrder(func() {
		r.watching(f)
		r.noteDue()
	})
}

func (r *Runner) watching(f func(w SplitWatcher)) {
	r.reached(func(_ int, st Stage) {
		if w, ok := st.(SplitWatcher); ok {
			f(w)
		}
	})
}

// reached calls f with the stages that get the source's records: in each branch those up to the first that lets none pass.
func (r *Runner) reached(f func(i int, st Stage)) {
	var ended []*branch
	r.ordered(func(i int, st Stage) bool {
		br := r.plan.Nodes[i].branch
		if slices.Contains(ended, br) {
			return true
		}
		f(i, st)
		if a, ok := st.(Absorber); ok && a.Absorbs() {
			ended = append(ended, br)
			return br != nil
		}
		return true
	})
}

// findHears takes down which stages get the source's records.
func (r *Runner) findHears() {
	r.hears = map[int]bool{}
	r.reached(func(i int, _ Stage) { r.hears[i] = true })
}

// timer is what tells the splits' event times: the first stage that gets the source's records and goes by it, in each branch; nil where
// there is none.
func (r *Runner) timer() EventTimer {
	var all timers
	seen := map[*branch]bool{}
	r.reached(func(i int, st Stage) {
		br := r.plan.Nodes[i].branch
		if t, ok := st.(EventTimer); ok && t.ByTime() && !seen[br] && !seen[nil] {
			seen[br] = true
			all = append(all, t)
		}
	})
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

// timers are the stages of several branches: a split's event time is the largest that one of them has seen.
type timers []EventTimer

func (timers) ByTime() bool { return true }

func (t timers) EventTime(s *record.Split) int64 {
	out := int64(math.MinInt64)
	for _, one := range t {
		out = max(out, one.EventTime(s))
	}
	return out
}

// noteDue asks for a checkpoint where a stage has something to fire. It runs at the ordered end.
func (r *Runner) noteDue() {
	due, slow := false, false
	for _, st := range r.stages {
		due = due || st.Due()
		if b, ok := st.(Backlogger); ok {
			slow = slow || b.Backlogged()
		}
	}
	r.due.Store(due)
	r.brake.set(slow)
	if due {
		r.Checkpoint()
	}
}

// ticks tells stages of the clock until stop.
func (r *Runner) ticks(stop <-chan struct{}) {
	var timed []Timed
	r.ordered(func(_ int, st Stage) bool {
		if t, ok := st.(Timed); ok {
			timed = append(timed, t)
		}
		return true
	})
	if len(timed) == 0 {
		return
	}
	var under atomic.Bool // the one before hasn't run: a sink holds the ordered end up
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-stop:
			return
		case <-r.abort.Done():
			return
		}
		if under.Swap(true) {
			continue
		}
		now := r.now() // not when it gets there: what is read meanwhile is behind it
		r.inOrder(func() {
			defer under.Store(false)
			for _, st := range timed {
				st.Tick(now)
			}
			r.noteDue()
		})
	}
}

// endStage fires what a stage holds.
func (r *Runner) endStage(ctx context.Context, st Stage) error {
	done := make(chan struct{})
	go r.inOrder(func() {
		defer close(done)
		if e, ok := st.(Ender); ok {
			e.End()
		}
		r.noteDue()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// StageStatus gives what the stages hold, by step.
func (r *Runner) StageStatus() map[string]steps.Holding {
	var out map[string]steps.Holding
	for i, n := range r.plan.Nodes {
		if s, ok := r.stages[i].(Reporter); ok {
			if out == nil {
				out = map[string]steps.Holding{}
			}
			out[n.Name] = s.Status()
		}
	}
	return out
}

// Definitions gives what the state of each stage depends on, by step.
func (p *Plan) Definitions() map[string]string {
	out := map[string]string{}
	for _, n := range p.Nodes {
		if d, ok := n.step.Config.(interface{ Definition() string }); ok && n.Stage {
			out[n.Name] = d.Definition()
		}
	}
	return out
}

// Release tells, before a stop, with what the next version's stages will be: those of this run that are gone or defined in
// another way fire what they hold when it stops.
func (r *Runner) Release(next map[string]string) {
	var names []string
	for name, def := range r.plan.Definitions() {
		if next[name] != def {
			names = append(names, name)
		}
	}
	r.released.Store(&names)
}

// closing lists the stages that fire what they hold when the run ends: all where the source has ended by itself.
func (r *Runner) closing(ended bool) (out []Stage) {
	var names []string
	if l := r.released.Load(); l != nil {
		names = *l
	}
	r.ordered(func(i int, st Stage) bool {
		if ended || slices.Contains(names, r.plan.Nodes[i].Name) {
			out = append(out, st)
		}
		return true
	})
	return out
}

// stagesPart holds the names of the stages that may hold something.
const stagesPart = "stages"

// holdingPart holds, for people, what stages held about when a checkpoint was made, as JSON.
const holdingPart = "holding"

// orphans refuses state of stages that the plan doesn't have any more: what they hold would be lost.
func (r *Runner) orphans(ctx context.Context) error {
	var now []string
	r.ordered(func(i int, st Stage) bool {
		if _, ok := st.(Ender); ok {
			now = append(now, r.plan.Nodes[i].Name)
		}
		return true
	})
	r.stageNames = strings.Join(now, "\n")
	before := string(r.snap.Parts[stagesPart])
	if before == r.stageNames {
		r.stageNames = ""
		return nil
	}
	for _, name := range strings.Split(before, "\n") {
		if name == "" || slices.Contains(now, name) {
			continue
		}
		held := 0
		for _, prefix := range []string{"w", "s"} {
			err := r.o.Store.Range(ctx, r.plan.Name, name, []byte(prefix), nil, func(_, _ []byte) error { held++; return nil })
			if err != nil {
				return fmt.Errorf("pipeline %s: step %s: read its state: %w", r.plan.Name, name, err)
			}
		}
		if held > 0 {
			return fmt.Errorf("pipeline %s: there is no step %s any more, and its windows hold %d groups that have not fired: put the step back and let it run, or drop the state with `rsetl state reset`, after which everything is read and delivered again", r.plan.Name, name, held)
		}
	}
	return nil
}
