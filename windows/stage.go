package windows

import (
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// plan is a window step that is built: what all its runs share. It is immutable.
type plan struct {
	*Config
	name string
	now  func() time.Time
	log  *slog.Logger
	zone *time.Location

	table      *record.Table
	timeSlot   int
	timeOf     *expr.Program
	by         []int
	keys       expr.Key
	calls      []*expr.AggCall
	texts      []string // of each call, for people
	inOrder    bool     // the order in which groups are merged shows
	offs       []int    // of each call's words
	aggSlots   []int
	words      int
	progs      []*expr.Program // select
	slots      []int
	names      []string
	having     *expr.Program
	startSlot  int
	endSlot    int
	firingSlot int
}

func (p *plan) stage() steps.Step {
	c := core{plan: p, ahead: p.Ahead.D().Milliseconds(), status: &atomic.Pointer[steps.Holding]{}, over: steps.NewOverwriter(p.table, p.names)}
	c.marks.init(p.Delay.D().Milliseconds(), p.Idle.D())
	if p.Session != 0 {
		return newSessions(c)
	}
	return newAligned(c)
}

// fireAtOnce bounds the results that one checkpoint takes, so that a window of any size fires in bounded memory. A
// window that is put together of slices is fired in one go up to it.
const fireAtOnce = 10_000

// storeAtOnce is how many changed groups ask for an early checkpoint: they take memory until it is committed.
const storeAtOnce = 200_000

// core is what all windows of a run have: the clock of events, keys, results, counts.
type core struct {
	*plan
	marks marks
	env   expr.Env
	over  *steps.Overwriter
	keyb  []byte
	vals  []record.Value

	ahead   int64
	arrival uint64
	late    int64
	open    int // groups
	full    bool
	changed bool // the meta entry is to be stored
	due     bool // something fires at the next checkpoint
	status  *atomic.Pointer[steps.Holding]

	load    state.Keyed // nil where there is no store
	rows    bool        // the store wants state.Row
	lost    bool        // the run is over: the store can't be read
	scratch *record.Batch
}

// keep keeps the store's reader.
func (c *core) keep(load state.Keyed) { c.load, c.rows = load, load.Rows() }

// scratchBatch is an empty batch for values in passing.
func (c *core) scratchBatch() *record.Batch {
	if c.scratch == nil {
		c.scratch = record.NewBatch(c.table)
	}
	c.scratch.Reset()
	return c.scratch
}

// Status gives what held at the last checkpoint or tick; any goroutine may call it.
func (c *core) Status() steps.Holding {
	s := c.status.Load()
	if s == nil {
		return steps.Holding{}
	}
	return *s
}

func (c *core) publish(s steps.Holding, now time.Time) {
	s.Late, s.Keys = c.late, c.open
	if w := c.marks.water; w != never {
		t := time.UnixMilli(w)
		s.Watermark = t.UTC().Format("2006-01-02T15:04:05.999Z07:00")
		s.LagMillis = now.Sub(t).Milliseconds()
	}
	c.status.Store(&s)
}

// timeOfRecord gives the event time in milliseconds.
func (c *core) timeOfRecord(b *record.Batch, i int) (int64, bool) {
	v := b.Get(i, c.timeSlot)
	if v.Kind() != record.Time {
		if v = c.timeOf.Eval(&c.env, i); v.Kind() != record.Time {
			return 0, false
		}
	}
	sec := v.Sec()
	if sec > math.MaxInt64/2000 || sec < math.MinInt64/2000 {
		return 0, false
	}
	return sec*1000 + int64(v.Nsec()/1e6), true
}

// passing gives the time of a record that isn't for the window: it was dropped, or goes another way. Its time counts all the same.
func (c *core) passing(b *record.Batch, i int, now int64) (int64, bool) {
	switch b.Get(i, c.timeSlot).Kind() {
	case record.Time, record.String, record.Date:
		ms, ok := c.timeOfRecord(b, i)
		return ms, ok && (c.ahead <= 0 || ms <= now+c.ahead)
	}
	return 0, false
}

func (c *core) noTime(b *record.Batch, i int) {
	if b.Get(i, c.timeSlot).IsNull() {
		b.Fail(i, "window: "+c.Time.Name+", the event time, is missing")
		return
	}
	b.Fail(i, "window: "+c.Time.Name+" is no time but "+b.Get(i, c.timeSlot).Kind().String())
}

// tooLate settles a record whose windows are closed.
func (c *core) tooLate(b *record.Batch, i int, ms int64) {
	c.late++
	c.changed = true
	if c.Late == "drop" {
		b.Filtered++
		return
	}
	b.Fail(i, fmt.Sprintf("window: late: its time is %s, the watermark is at %s", stamp(ms), stamp(c.marks.water)))
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// tooEarly settles a record that is ahead of the clock.
func (c *core) tooEarly(b *record.Batch, i int, ms int64) {
	b.Fail(i, fmt.Sprintf("window: its time is %s, more than %s ahead of the clock", stamp(ms), c.Ahead))
}

func (c *core) tooMany(b *record.Batch, i int) {
	if !c.full {
		c.full = true
		c.log.Error("a window has more groups than max_keys; records for others fail", "step", c.name, "max_keys", c.MaxKeys)
	}
	b.Fail(i, fmt.Sprintf("window: more than max_keys (%d) groups are open", c.MaxKeys))
}

// key puts the group's key into keyb.
func (c *core) key(b *record.Batch, i int) []byte {
	c.keyb = c.keys.Append(c.keyb[:0], b, i)
	return c.keyb
}

// add takes record i into the aggregates' words.
func (c *core) add(i int, m *expr.Mem, w []uint64) {
	c.arrival++
	c.env.Arrival = c.arrival
	for k, call := range c.calls {
		call.Add(&c.env, i, m, w[c.offs[k]:])
	}
}

func (c *core) merge(m *expr.Mem, w []uint64, om *expr.Mem, o []uint64) {
	for k, call := range c.calls {
		call.Merge(&c.env, m, w[c.offs[k]:], om, o[c.offs[k]:])
	}
}

func (c *core) drop(m *expr.Mem, w []uint64) {
	for k, call := range c.calls {
		call.Drop(m, w[c.offs[k]:c.offs[k]+call.Words()])
	}
}

// emit adds the result of one group to out.
func (c *core) emit(out *record.Batch, from, to int64, key []byte, m *expr.Mem, w []uint64, firing uint64) {
	i := out.Add(record.Position{Offset: place(from, to, key, firing)}, record.Value{})
	vs, err := record.DecodeValues(out, key, len(c.by), c.vals[:0])
	if err != nil {
		panic(fmt.Sprintf("windows: a key of its own can't be read: %v", err))
	}
	for k, slot := range c.by {
		out.Set(i, slot, vs[k])
	}
	out.Set(i, c.startSlot, makeTime(from))
	out.Set(i, c.endSlot, makeTime(to))
	if c.firingSlot >= 0 {
		out.Set(i, c.firingSlot, record.MakeInt(int64(firing)))
	}
	c.env.B = out
	for k, call := range c.calls {
		out.Set(i, c.aggSlots[k], call.Result(&c.env, m, w[c.offs[k]:]))
	}
	if c.having != nil && !c.having.True(&c.env, i) {
		out.Sel = out.Sel[:len(out.Sel)-1]
		out.Filtered++
		return
	}
	vs = vs[:0]
	for _, p := range c.progs {
		v := p.Eval(&c.env, i)
		if v.Kind() == record.Missing {
			v = record.MakeNull()
		}
		vs = append(vs, v)
	}
	for _, slot := range c.aggSlots {
		out.Set(i, slot, record.Value{})
	}
	for k, slot := range c.slots {
		c.over.Clear(out, i, k)
		out.Set(i, slot, vs[k])
	}
	c.vals = vs
}

// place names a result: a step behind that fails it writes one dead letter, in whatever order results fire after a restart.
func place(from, to int64, key []byte, firing uint64) int64 {
	h := uint64(14695981039346656037) // FNV-1a
	for _, x := range [...]uint64{uint64(from), uint64(to), firing} {
		h = (h ^ x) * 1099511628211
		h ^= h >> 32
	}
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return int64(h >> 1)
}

func makeTime(ms int64) record.Value {
	sec := floorTo(ms, 1000, 0)
	digits := 0
	if ms != sec {
		digits = 3
	}
	return record.MakeTime(sec/1000, uint32(ms-sec)*1e6, digits)
}

// Split hooks: all of them run at the ordered end.

// SplitOpened tells that the source begins with a split, or goes on with it.
func (c *core) SplitOpened(s *record.Split) { c.marks.opened(s.ID); c.changed = true }

// SplitIdle tells that the source has nothing to read from a split, or again has.
func (c *core) SplitIdle(s *record.Split, idle bool) { c.marks.setIdle(s.ID, idle, c.now()) }

// ByTime tells whether event time counts.
func (c *core) ByTime() bool { return !c.processing() }

// EventTime is the largest time that a split has brought.
func (c *core) EventTime(s *record.Split) int64 { return c.marks.get(s.ID).max }

// Absorbs tells that no record passes: what is behind gets firings only.
func (c *core) Absorbs() bool { return true }

// Due tells whether something fires.
func (c *core) Due() bool { return c.due }

// kv collects changed entries in one piece of memory.
type kv struct {
	stage string
	buf   []byte
	list  []state.KV
}

// put adds what key and value append.
func (k *kv) put(key func([]byte) []byte, value func([]byte) []byte) {
	if cap(k.buf)-len(k.buf) < 256 {
		k.buf = make([]byte, 0, 64<<10)
	}
	at := len(k.buf)
	k.buf = key(k.buf)
	mid := len(k.buf)
	e := state.KV{Stage: k.stage, Key: k.buf[at:mid:mid]}
	if value != nil {
		k.buf = value(k.buf)
		e.Value = k.buf[mid:len(k.buf):len(k.buf)]
	}
	k.list = append(k.list, e)
	if cap(k.buf) > 64<<10 { // it has grown: growing on would keep a copy of all that is in it each time
		k.buf = nil
	}
}
