package pipeline

import (
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// worker runs the plan's nodes over batches. Each lane has one for the stateless part;
// the ordered end has one for the stages and what comes after them.
type worker struct {
	r     *Runner
	steps []steps.Step // per node; nil for stages
	env   expr.Env
	sub   []int32 // scratch: records that a `when` selects
	rest  []int32 // scratch: the others
	enc   *record.Encoder
	hears bool // the node at hand is a stage that gets the source's records
	least int  // sinks before this place get nothing: a replayed letter's failed step
}

func newWorker(r *Runner) *worker {
	w := &worker{r: r, steps: make([]steps.Step, len(r.plan.Nodes)), enc: record.NewEncoder(r.plan.Table, nil, true)}
	for i, n := range r.plan.Nodes {
		if n.Stage {
			continue
		}
		w.steps[i] = n.Make()
	}
	return w
}

// run takes a batch from place `from` to place `to`: through the nodes between them, feeding
// the sinks at every place behind a node that it ran, and at place 0.
func (w *worker) run(it *item, from, to int) {
	if from == 0 {
		for _, f := range it.b.Fails {
			w.letter(it, "source", f)
		}
		clear(it.b.Fails)
		it.b.Fails = it.b.Fails[:0]
		w.feed(it, 0)
	}
	for k := from; k < to; k++ {
		n := w.r.plan.Nodes[k]
		// A window goes by the times of records that were dropped before it, too.
		w.hears = it.fired == nil && w.r.hears[k]
		if len(it.b.Sel) == 0 && !w.hears {
			if to <= w.r.first || len(w.r.hears) == 0 {
				break
			}
			continue
		}
		if n.Stage {
			w.apply(it, n, w.r.stages[k])
		} else {
			w.apply(it, n, w.steps[k])
		}
		w.feed(it, k+1)
	}
}

// fire takes the records that the stage at node `from` has fired through the steps behind it. What
// reaches a sink or the next stage becomes a firing, to be delivered once it is committed.
func (w *worker) fire(it *item, from int, seq map[string]int64) (out []state.Firing) {
	if br := w.r.plan.Nodes[from].branch; br != nil {
		br.mark(it.b)
	}
	collect := func(target string, sel []int32) {
		for _, i := range sel {
			out = append(out, state.Firing{Target: target, Seq: seq[target], Data: record.AppendRecord(nil, it.b, int(i))})
			seq[target]++
		}
	}
	for k := from + 1; len(it.b.Sel) > 0; k++ {
		last := k == len(w.r.plan.Nodes)
		w.each(it, k, func(si int, sel []int32) { collect(w.r.plan.Sinks[si].Name, sel) })
		if last {
			break
		}
		n := w.r.plan.Nodes[k]
		if br := w.r.plan.Nodes[from].branch; br != nil && n.branch != br {
			continue // another branch's
		}
		if n.Stage {
			collect(stageTarget(n), it.b.Sel)
			break
		}
		w.apply(it, n, w.steps[k])
	}
	return out
}

// stageTarget is the outbox's name of a stage, apart from the sinks'.
func stageTarget(n *Node) string { return "step:" + n.Name }

// when gives the records of the branch for which cond is TRUE; all of them where there is neither. Valid until the next call.
func (w *worker) when(br *branch, cond *expr.Program, b *record.Batch) []int32 {
	if cond == nil && br == nil {
		return b.Sel
	}
	w.env.B = b
	w.sub = w.sub[:0]
	for _, i := range b.Sel {
		if (br == nil || br.has(b, int(i))) && (cond == nil || cond.True(&w.env, int(i))) {
			w.sub = append(w.sub, i)
		}
	}
	return w.sub
}

// takes tells whether a node with a condition, or in a branch, works on record i. w.env.B is set.
func (w *worker) takes(n *Node, b *record.Batch, i int) bool {
	return (n.branch == nil || n.branch.has(b, i)) && (n.When == nil || n.When.True(&w.env, i))
}

// apply runs one step on the records that its `when` selects and settles the failures.
func (w *worker) apply(it *item, n *Node, s interface{ Apply(*record.Batch) }) {
	b := it.b
	if n.step.Spec.Expands {
		w.expand(it, n, s)
		return
	}
	if n.When == nil && n.branch == nil {
		s.Apply(b)
		if len(b.Fails) > 0 {
			w.settle(it, n)
		}
		return
	}
	w.env.B = b
	w.sub, w.rest = w.sub[:0], w.rest[:0]
	for _, i := range b.Sel {
		if w.takes(n, b, int(i)) {
			w.sub = append(w.sub, i)
		} else {
			w.rest = append(w.rest, i)
		}
	}
	if len(w.sub) == 0 && !w.hears {
		return
	}
	full := b.Sel
	b.Sel = w.sub
	s.Apply(b)
	if len(b.Fails) > 0 {
		w.settle(it, n)
	}
	w.sub = b.Sel
	b.Sel = merge(full[:0], w.sub, w.rest)
}

// merge appends two ascending lists in order.
func merge(dst, a, b []int32) []int32 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			dst, a = append(dst, a[0]), a[1:]
		} else {
			dst, b = append(dst, b[0]), b[1:]
		}
	}
	return append(append(dst, a...), b...)
}

// settle does with the records that a step failed what its on_error says.
func (w *worker) settle(it *item, n *Node) {
	b := it.b
	switch n.OnError {
	case "drop":
		it.count.filtered += int64(len(b.Fails))
	case "keep":
		back := make([]int32, 0, len(b.Fails))
		name := b.PutString(n.Name)
		for _, f := range b.Fails {
			b.Set(int(f.Rec), n.slots[0], b.PutString(f.Reason))
			b.Set(int(f.Rec), n.slots[1], name)
			back = append(back, f.Rec)
		}
		b.Sel = merge(make([]int32, 0, len(b.Sel)+len(back)), b.Sel, back)
	default:
		for _, f := range b.Fails {
			w.letter(it, n.Name, f)
		}
	}
	clear(b.Fails)
	b.Fails = b.Fails[:0]
}

func (w *worker) letter(it *item, step string, f record.Failure) {
	b, i := it.b, int(f.Rec)
	it.count.dead++
	raw := b.Raw(i)
	l := deadletter.Letter{Time: w.r.now(), Pipeline: w.r.plan.Name, Step: step, Reason: w.r.mask(f.Reason), Split: b.Split, Pos: b.Pos(i)}
	l.Record = w.enc.Append(nil, b, i)
	if raw.Kind() == record.String || raw.Kind() == record.Bytes {
		l.Raw = append([]byte(nil), b.Bytes(raw)...)
	}
	it.letters = append(it.letters, l)
}

// feed encodes the living records for the sinks at place k.
func (w *worker) feed(it *item, k int) {
	if len(it.b.Sel) > 0 {
		w.each(it, k, func(si int, sel []int32) { w.r.caches[si].Encode(&it.enc[si], it.b, sel) })
	}
}

// each calls f with every sink at place k and the living records that go to it. At the last place,
// records that no sink takes count as filtered, the others as out.
func (w *worker) each(it *item, k int, f func(si int, sel []int32)) {
	b := it.b
	last := k == len(w.r.plan.Nodes)
	count := last && w.r.allWhen // only then a record may go to no sink
	if count {
		it.taken = append(it.taken[:0], make([]bool, b.Len())...)
	}
	for si, s := range w.r.plan.Sinks {
		if s.At != k || k < w.least {
			continue
		}
		sel := w.when(s.conf.branch, s.When, b)
		if len(sel) == 0 {
			continue
		}
		if count {
			for _, i := range sel {
				it.taken[i] = true
			}
		}
		f(si, sel)
	}
	switch {
	case count:
		for _, i := range b.Sel {
			if it.taken[i] {
				it.count.out++
			} else {
				it.count.filtered++
			}
		}
	case last:
		it.count.out += int64(len(b.Sel))
	}
}
