package windows

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// aligned are windows whose bounds don't depend on the data. Where each fires once, windows share slices: a slice is `every`
// long and part of size/every windows. Where they fire more often, each window has its own groups.
type aligned struct {
	core
	assigner
	shared bool // slices; else the list below has windows

	list  []*slice // by start, then generation
	last  *slice   // the one that took the last record
	spare []*table

	gen     uint32
	fired   int64 // shared: windows up to this end have fired; a place
	pending []*pending
	blocks  map[int64]*block // of slices that don't change any more, by start
	prefix  *block           // cumulate: what the window that fired last was put together of
	closed  int              // groups of slices that are shut and haven't all fired
	head    int              // slices at the list's front that are shut
	garbage []*slice         // whose rows the store may forget
	next    int64            // the event time, or watermark where shared, at which something fires first; unknown: to be found
	early   time.Time
	unsaved int   // rows that have changed since the last checkpoint
	partial int   // partial rows
	loads   int   // how many rows this checkpoint may still read
	round   int64 // early firings so far
	cuts    int64 // checkpoints
	spilt   bool  // it has been said that memory doesn't hold all
	one     one

	fireAtOnce, loadAtOnce int
	ended                  bool // all windows fire, and the store forgets them before it is over
	fireAll                bool // an early firing is due
}

const unknown = never + 2

// slice is one slice, or one window where windows don't share.
type slice struct {
	start, end int64 // places
	gen        uint32
	from, to   int64 // instants
	fold       int64 // cumulate: the end of the window whose firing it came after, or its own
	close      int64 // the instant at which the last window that it is part of ends
	shut       bool  // its last window is closed: its groups are open no more
	begun      bool  // not shared: it has fired
	frozen     bool  // a closed window that hasn't fired yet takes from it: records go to another generation
	t          *table
	forgot     int // rows of garbage whose entries are gone

	groups int    // those of the table, without partial rows, and the cold ones
	stored int    // rows that the store has
	cold   bool   // the store may have rows that the table hasn't
	fresh  bool   // not shared: some of them may not have fired
	again  bool   // some of those may be at or before `after`
	after  []byte // the entries of the store up to this one have been looked at; nil: none
	began  int64  // the early firing that was due when the first was looked at
	round  int64  // and when the first was that time that all have been looked at
	used   int64  // the checkpoint that had rows of it last
	noted  bool   // the store has its note
	note   note
}

// pending is a closed window that fires with the next checkpoints.
type pending struct {
	start, end int64
	gen        uint32 // takes slices up to this generation
	from       []*slice
	ready      bool
	t          *table // put together; nil where it is the only slice's
	own        bool   // t is for this window only
	order      []uint32
	at         int
	cursor     []byte // rows up to this key have fired
}

func newAligned(c core) *aligned {
	a := &aligned{core: c, shared: c.Emit == "final", fired: never, next: unknown, fireAtOnce: fireAtOnce, loadAtOnce: loadAtOnce}
	size, every := c.lengths()
	a.assigner = assigner{size: size.D().Milliseconds(), every: every.D().Milliseconds(), offset: time.Duration(c.Offset).Milliseconds(), zone: c.zone, grow: c.Cumulate != nil}
	return a
}

// Apply absorbs the records.
func (a *aligned) Apply(b *record.Batch) {
	a.env.B = b
	now := a.now()
	mk := a.marks.batch(b.Split, now)
	nowMs := now.UnixMilli()
	processing := a.processing()
	if processing {
		if w := a.marks.water; w != never && nowMs <= w { // the clock was set back
			nowMs = w + 1
		}
		a.clock(nowMs)
	}
	sel := b.Sel
	for i := range b.Len() {
		ms := nowMs
		if len(sel) == 0 || int(sel[0]) != i {
			if processing {
				continue
			}
			var ok bool
			if ms, ok = a.passing(b, i, nowMs); !ok {
				continue
			}
		} else {
			sel = sel[1:]
			if !processing {
				var ok bool
				if ms, ok = a.timeOfRecord(b, i); !ok {
					a.noTime(b, i)
					continue
				}
				if a.ahead > 0 && ms > nowMs+a.ahead {
					a.tooEarly(b, i, ms)
					continue
				}
			}
			if a.shared {
				a.count(b, i, ms)
			} else {
				a.countEach(b, i, ms)
			}
		}
		if ms > mk.max && !processing {
			a.marks.advance(mk, ms)
			if a.marks.event >= a.next-1 {
				a.closing()
			}
		}
	}
	b.Sel = b.Sel[:0]
	a.changed = true
}

// clock sets event time to the clock's.
func (a *aligned) clock(ms int64) {
	a.marks.reach(ms)
	if a.marks.event >= a.next-1 {
		a.closing()
	}
}

// count takes a record into its slice.
func (a *aligned) count(b *record.Batch, i int, ms int64) {
	s := a.last
	if s == nil || s.frozen || ms < s.from || ms >= s.to {
		if s = a.find(ms); s == nil {
			a.tooLate(b, i, ms)
			return
		}
		a.last = s
	} else if a.marks.water >= s.close-1 {
		a.tooLate(b, i, ms)
		return
	}
	if a.put(b, i, s) {
		b.Absorbed++
	}
}

func (a *aligned) put(b *record.Batch, i int, s *slice) bool {
	key := a.key(b, i)
	hash := hashOf(key)
	if a.open >= a.MaxKeys && s.t.lookup(key, hash) < 0 && !a.mayBeCold(s) || len(key) > maxKey {
		a.tooMany(b, i)
		return false
	}
	r, made := s.t.find(key, hash)
	row := s.t.row(r)
	if made {
		a.made(s, row)
	}
	a.mark(s.t, row, r)
	a.add(i, &s.t.mem, row[headWords:])
	return true
}

// mark notes that a row has changed.
func (a *aligned) mark(t *table, row []uint64, r uint32) {
	if row[1]&flagDirty == 0 {
		row[1] |= flagDirty
		t.dirty = append(t.dirty, r)
		if a.unsaved++; a.unsaved == storeAtOnce {
			a.due = true
		}
	}
	if !a.shared && row[1]&flagFresh == 0 {
		row[1] |= flagFresh
		t.fresh = append(t.fresh, r)
	}
}

// countEach takes a record into every window that it is part of.
func (a *aligned) countEach(b *record.Batch, i int, ms int64) {
	start := a.slice(a.place(ms))
	taken, late := false, true
	for end := start + a.every; end <= a.lastEnd(start); end += a.every {
		s := a.last
		if s == nil || s.end != end || s.start != a.start(end) {
			to := a.instant(end)
			if a.marks.water >= to-1 {
				continue
			}
			s = a.at(a.start(end), end, 0)
			a.last = s
		} else if a.marks.water >= s.to-1 {
			continue
		}
		late = false
		if !a.put(b, i, s) {
			if taken { // the record counts once
				b.Fails = b.Fails[:len(b.Fails)-1]
			}
			return
		}
		if !taken {
			taken = true
			b.Absorbed++
		}
	}
	if late {
		a.tooLate(b, i, ms)
	}
}

// find gives the slice that takes records of an instant now; nil where they are late.
func (a *aligned) find(ms int64) *slice {
	start := a.slice(a.place(ms))
	i := a.search(start, 0)
	for ; i < len(a.list) && a.list[i].start == start; i++ {
		if s := a.list[i]; !s.frozen {
			if a.marks.water >= s.close-1 {
				return nil
			}
			return s
		}
	}
	if i > 0 && a.list[i-1].start == start {
		if a.marks.water >= a.list[i-1].close-1 {
			return nil
		}
		return a.at(start, start+a.every, a.gen)
	}
	if a.marks.water >= a.instant(a.lastEnd(start))-1 {
		return nil
	}
	return a.at(start, start+a.every, a.gen)
}

func (a *aligned) search(start int64, gen uint32) int {
	return sort.Search(len(a.list), func(i int) bool {
		s := a.list[i]
		return s.start > start || s.start == start && s.gen >= gen
	})
}

// at gives the slice or window with those bounds, made where it isn't there.
func (a *aligned) at(start, end int64, gen uint32) *slice {
	i := a.search(start, gen)
	for j := i; j < len(a.list) && a.list[j].start == start && a.list[j].gen == gen; j++ {
		if a.list[j].end == end {
			return a.list[j]
		}
	}
	s := &slice{start: start, end: end, gen: gen, from: a.instant(start), to: a.instant(end), t: a.newTable()}
	s.close, s.fold = s.to, max(end, a.fired)
	if a.shared {
		s.close = a.instant(a.lastEnd(start))
		if w := a.marks.water; w != never { // windows that had nothing are closed too
			a.fired = max(a.fired, a.slice(a.place(w+1)))
		}
	}
	a.list = slices.Insert(a.list, i, s)
	a.head = min(a.head, i)
	a.next = unknown
	return s
}

func (a *aligned) newTable() *table {
	if n := len(a.spare); n > 0 {
		t := a.spare[n-1]
		a.spare = a.spare[:n-1]
		return t
	}
	return &table{width: headWords + a.words}
}

// recycle keeps the memory of tables that aren't used any more, not much of it.
func (a *aligned) recycle(t *table) {
	if len(a.spare) < 4 && t.bytes() < 8<<20 {
		t.reset()
		a.spare = append(a.spare, t)
	}
}

// closing finds what event time has closed, and when it does so next.
func (a *aligned) closing() {
	if !a.shared {
		a.dueEach()
		return
	}
	for {
		end, ok := a.nextEnd()
		if !ok {
			a.next = 1<<63 - 1
			return
		}
		at := a.instant(end)
		if a.marks.water < at-1 {
			// The watermark is behind event time by the delay.
			a.next = at + a.marks.delay
			return
		}
		p := &pending{start: a.start(end), end: end, gen: a.gen}
		a.gen++ // what is made from here on is not for it
		if a.size != a.every {
			a.freeze(p)
		}
		a.pending = append(a.pending, p)
		a.fired = end
		a.shut(end)
		a.due = true
	}
}

// shut takes the slices whose last window ends there out of the count of open groups.
func (a *aligned) shut(end int64) {
	for i := a.search(end-a.size, 0); i < len(a.list) && a.list[i].start < end; i++ {
		s := a.list[i]
		if s.shut || a.lastEnd(s.start) > end {
			if !a.grow {
				return
			}
			continue
		}
		s.shut = true
		a.open -= s.groups
		a.closed += s.groups
	}
}

// Backlogged tells whether so much waits to fire that the source should wait.
func (a *aligned) Backlogged() bool { return len(a.pending) > 1000 || a.closed > a.MaxKeys }

// freeze keeps later records out of the slices that a closed window takes from.
func (a *aligned) freeze(p *pending) {
	for _, s := range a.list {
		if s.start >= p.end {
			break
		}
		if s.start >= p.start && s.gen <= p.gen {
			s.frozen = true
		}
	}
	if a.last != nil && a.last.frozen {
		a.last = nil
	}
}

// nextEnd is the first end after `fired` of a window that has a slice.
func (a *aligned) nextEnd() (int64, bool) {
	for a.head < len(a.list) && a.list[a.head].shut {
		a.head++
	}
	for _, s := range a.list[a.head:] {
		end := s.end
		if a.fired != never {
			end = max(end, a.fired+a.every)
		}
		if end <= a.lastEnd(s.start) {
			return end, true
		}
	}
	return 0, false
}

// dueEach finds whether a window that fires for the first time, or closes, has been reached.
func (a *aligned) dueEach() {
	a.next = 1<<63 - 1
	for _, s := range a.list {
		switch {
		case a.marks.water >= s.to-1:
			a.due = true
		case a.marks.event >= s.to-1:
			a.due = a.due || !s.begun
			s.begun = true
			a.next = min(a.next, s.to+a.marks.delay)
		default:
			a.next = min(a.next, s.to)
		}
	}
}

// SplitEnded tells that nothing more comes from a split.
func (a *aligned) SplitEnded(s *record.Split) {
	a.marks.ended(s.ID)
	a.changed = true
	if a.marks.event >= a.next-1 {
		a.closing()
	}
}

// Tick lets time go on by the clock.
func (a *aligned) Tick(now time.Time) {
	water := a.marks.water
	if a.processing() {
		if len(a.list) > 0 {
			a.clock(now.UnixMilli())
		}
	} else {
		a.marks.tick(now)
		if a.marks.event >= a.next-1 {
			a.closing()
		}
	}
	a.changed = a.changed || a.marks.water != water
	if d := a.Early.D(); d > 0 {
		if a.early.IsZero() {
			a.early = now.Add(d)
		}
		if !now.Before(a.early) {
			a.early = now.Add(d)
			a.fireAll, a.due = true, true
			a.round++
		}
	}
	a.publish(a.sum(), now)
}

func (a *aligned) sum() (s steps.Holding) {
	s.Windows = len(a.list)
	s.Bytes = a.bytes()
	return s
}

// End fires all windows: the source has ended by itself.
func (a *aligned) End() {
	most := int64(never)
	for _, s := range a.list {
		most = max(most, s.close)
	}
	if most > never {
		a.marks.event = max(a.marks.event, most-1)
		a.marks.water = max(a.marks.water, most-1)
	}
	a.changed, a.ended = true, true
	a.closing()
}

// Checkpoint fires what is due and gives what has changed.
func (a *aligned) Checkpoint(out *record.Batch) []state.KV {
	k := &kv{stage: a.name, list: make([]state.KV, 0, a.unsaved+min(a.closed, a.fireAtOnce)+8)}
	a.due, a.unsaved = false, 0
	a.cuts++
	a.loads = a.loadAtOnce
	if !a.complete() {
		return nil
	}
	a.env.B = out
	if a.shared {
		a.firePending(out, k)
	} else {
		a.fireEach(out, k)
	}
	a.collect(k)
	a.due = a.due || a.ended && len(a.garbage) > 0
	if a.lost {
		return nil
	}
	for _, s := range a.list {
		a.storeRows(k, s)
		a.storeNote(k, s)
	}
	if a.changed || len(k.list) > 0 {
		m := meta{gen: a.gen, fired: a.fired}
		for _, p := range a.pending {
			m.pending = append(m.pending, pendingMark{p.end, p.gen})
		}
		if len(a.pending) > 0 {
			m.cursor = a.pending[0].cursor
		}
		a.storeHead(k, m)
	}
	a.spill()
	return k.list
}

// storeRows puts the rows that have changed.
func (a *aligned) storeRows(k *kv, s *slice) {
	t := s.t
	if len(t.dirty) == 0 {
		return
	}
	s.used = a.cuts
	before := len(k.list)
	size := 0
	for _, r := range t.dirty {
		row := t.row(r)
		row[1] &^= flagDirty
		if row[1]&flagGone != 0 {
			continue
		}
		if row[1]&flagStored == 0 {
			row[1] |= flagStored
			s.stored++
		}
		k.put(func(d []byte) []byte { return rowKey(d, a.keyStart(s), s.gen, t.key(row)) }, func(d []byte) []byte {
			d = append(d, codecVersion, byte(row[1]&flagFresh))
			d = binary.AppendUvarint(d, row[1]>>firingBit)
			return a.appendRow(d, &t.mem, row[headWords:])
		})
		e := &k.list[len(k.list)-1]
		size += len(e.Value)
		if a.rows {
			e.Row = a.person(s.from, s.to, row[1]>>firingBit, t.key(row), &t.mem, row[headWords:])
		}
	}
	if n := len(k.list) - before; n > 0 {
		t.encoded = size / n
	}
	t.dirty = t.dirty[:0]
}

// keyStart tells slices, or windows, apart in the store: windows that begin together have different ends.
func (a *aligned) keyStart(s *slice) int64 { return s.end }

// firePending fires closed windows.
func (a *aligned) firePending(out *record.Batch, k *kv) {
	room := a.fireAtOnce
	for len(a.pending) > 0 && room > 0 {
		p := a.pending[0]
		if !p.ready && !a.prepare(p) {
			break
		}
		a.changed = true // the head says how far firing is
		n := len(p.order)
		if p.t == nil && len(p.from) > 0 {
			n = p.from[0].t.n
		}
		room -= a.firePart(out, k, p, room)
		if p.at < n || p.t == nil && len(p.from) > 0 && p.from[0].cold {
			break
		}
		a.retire(p)
		a.pending = a.pending[1:]
	}
	if len(a.pending) > 0 {
		a.due = true
	}
	if len(a.pending) == 0 {
		a.pending = nil
	}
}

// prepare finds the slices of a window and puts them together. It is false where cold ones of them aren't read yet.
func (a *aligned) prepare(p *pending) bool {
	p.from = p.from[:0]
	for _, s := range a.list {
		if s.start >= p.start && s.start < p.end && s.gen <= p.gen {
			p.from = append(p.from, s)
		}
	}
	// The order shows where an aggregate keeps its values' order. It is Flink's: a hop begins with its newest slice, a
	// cumulating window has what came late behind what had fired by then.
	slices.SortStableFunc(p.from, func(x, y *slice) int {
		if !a.grow {
			return cmp.Compare(y.start, x.start)
		}
		return cmp.Or(cmp.Compare(x.fold, y.fold), cmp.Compare(y.start, x.start), cmp.Compare(x.gen, y.gen))
	})
	if a.size == a.every && len(p.from) <= 1 { // the slice is the window's alone: its rows go as they fire
		p.ready = true
		return true
	}
	if len(p.from) > 0 && !a.warm(p) {
		return false
	}
	p.ready = true
	if len(p.from) == 0 {
		return true
	}
	p.t = a.together(p)
	n := p.t.n
	p.order = make([]uint32, n)
	for i := range p.order {
		p.order[i] = uint32(i)
	}
	if n > a.fireAtOnce || len(p.cursor) > 0 {
		// It takes several checkpoints: the order must be the same after a restart.
		sort.Slice(p.order, func(i, j int) bool {
			return bytes.Compare(p.t.key(p.t.row(p.order[i])), p.t.key(p.t.row(p.order[j]))) < 0
		})
		if len(p.cursor) > 0 {
			p.at = sort.Search(n, func(i int) bool { return bytes.Compare(p.t.key(p.t.row(p.order[i])), p.cursor) > 0 })
		}
	}
	return true
}

// fireBytes is how many bytes of results go into one checkpoint.
const fireBytes = 16 << 20

// firePart fires up to room results of a window, or all of one that is put together and small.
func (a *aligned) firePart(out *record.Batch, k *kv, p *pending, room int) (fired int) {
	if len(p.from) == 0 {
		return 0
	}
	from, to := a.instant(p.start), a.instant(p.end)
	if p.t == nil {
		s := p.from[0]
		if s.cold {
			if fired = a.fireCold(out, k, s, room); s.cold {
				return fired
			}
		}
		for ; p.at < s.t.n && fired < room && len(out.Buf) < fireBytes; p.at++ {
			row := s.t.row(uint32(p.at))
			key := s.t.key(row)
			if row[1]&flagGone != 0 {
				continue
			}
			a.emit(out, from, to, key, &s.t.mem, row[headWords:], 0)
			a.forget(k, s, row)
			fired++
		}
		return fired
	}
	if n := len(p.order); n <= a.fireAtOnce {
		room = n
	}
	for ; p.at < len(p.order) && fired < room; p.at++ {
		row := p.t.row(p.order[p.at])
		a.emit(out, from, to, p.t.key(row), &p.t.mem, row[headWords:], 0)
		fired++
	}
	p.cursor = nil
	if p.at < len(p.order) {
		p.cursor = append([]byte(nil), p.t.key(p.t.row(p.order[p.at-1]))...)
	}
	return fired
}

// forget takes a row out of the store.
func (a *aligned) forget(k *kv, s *slice, row []uint64) {
	if row[1]&flagStored != 0 {
		k.put(func(d []byte) []byte { return rowKey(d, a.keyStart(s), s.gen, s.t.key(row)) }, nil)
		s.stored--
	}
	row[1] = row[1]&^flagStored | flagGone
}

// retire drops the slices that no later window needs.
func (a *aligned) retire(p *pending) {
	if p.own {
		a.recycle(p.t)
	}
	for start, b := range a.blocks {
		if start <= p.start {
			a.recycle(b.t)
			delete(a.blocks, start)
		}
	}
	if a.prefix != nil && a.lastEnd(a.prefix.start) <= p.end {
		a.recycle(a.prefix.t)
		a.prefix = nil
	}
	keep := a.list[:0]
	for _, s := range a.list {
		if a.lastEnd(s.start) > p.end {
			keep = append(keep, s)
			continue
		}
		a.discard(s)
	}
	clear(a.list[len(keep):])
	a.list, a.head = keep, 0
	a.full = a.full && a.open >= a.MaxKeys
}

// discard gives a slice up; its rows leave the store little by little.
func (a *aligned) discard(s *slice) {
	if a.last == s {
		a.last = nil
	}
	if s.shut {
		a.closed -= s.groups
	} else {
		a.open -= s.groups
	}
	if s.cold { // its entries leave the store in the store's order
		s.t, s.after = &table{width: headWords + a.words}, nil
	}
	a.garbage = append(a.garbage, s)
}

// collect makes the store forget rows of slices that are gone.
func (a *aligned) collect(k *kv) {
	room := 2 * a.fireAtOnce
	for len(a.garbage) > 0 && room > 0 {
		s := a.garbage[0]
		if s.cold {
			if room -= a.forgetCold(k, s, room); s.cold {
				return
			}
		}
		for ; s.forgot < s.t.n && room > 0; s.forgot++ {
			row := s.t.row(uint32(s.forgot))
			if row[1]&flagStored != 0 {
				a.forget(k, s, row)
				room--
			}
		}
		if s.forgot < s.t.n {
			return
		}
		if s.noted {
			k.put(func(d []byte) []byte { return noteKey(d, a.keyStart(s), s.gen) }, nil)
		}
		a.recycle(s.t)
		a.garbage = a.garbage[1:]
	}
	if len(a.garbage) == 0 {
		a.garbage = nil
	}
}

// fireEach fires what has changed in windows that event time has passed, and gives up those that are closed.
func (a *aligned) fireEach(out *record.Batch, k *kv) {
	room, left := a.fireAtOnce, false
	keep := a.list[:0]
	for _, s := range a.list {
		closed := a.marks.water >= s.to-1
		if over := a.marks.event >= s.to-1; over || a.fireAll {
			if s.fresh && (over || s.round != a.round) {
				a.loadFresh(s, room)
				left = left || s.fresh && (over || s.round != a.round)
			}
			room -= a.fireFresh(out, k, s, room, closed)
		}
		if !closed || len(s.t.fresh) > 0 || s.fresh {
			keep = append(keep, s)
			continue
		}
		a.discard(s)
	}
	clear(a.list[len(keep):])
	a.list, a.head = keep, 0
	a.next = unknown
	if room > 0 && !left {
		a.fireAll = false
	} else {
		a.due = true
	}
	a.full = a.full && a.open >= a.MaxKeys
}

// fireFresh fires up to room of the rows that have changed. The store forgets those of a closed window with it: they won't fire again.
func (a *aligned) fireFresh(out *record.Batch, k *kv, s *slice, room int, closed bool) (fired int) {
	t := s.t
	n := min(len(t.fresh), max(room, 0))
	for _, r := range t.fresh[:n] {
		row := t.row(r)
		row[1] = row[1]&^flagFresh + 1<<firingBit
		a.emit(out, s.from, s.to, t.key(row), &t.mem, row[headWords:], row[1]>>firingBit)
		if closed {
			a.forget(k, s, row)
			continue
		}
		if a.Emit == "delta" {
			a.drop(&t.mem, row[headWords:])
		}
		if row[1]&flagDirty == 0 {
			row[1] |= flagDirty
			t.dirty = append(t.dirty, r)
		}
	}
	t.fresh = t.fresh[:copy(t.fresh, t.fresh[n:])]
	return n
}
