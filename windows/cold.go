package windows

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// A slice is cold while the store may have rows of it that its table hasn't. All are after a start; and where the tables take more
// than `memory`, those that were used longest ago become cold at the end of a checkpoint, when the store has all that they hold.
//
// Records don't wait for the store: what comes for a group that isn't in the table makes a partial row, which the next checkpoint
// completes before it does anything else. Behind that all rows of tables are whole, and a row in a table stands for the store's.

const (
	// readAtOnce is how many partial rows ask for an early checkpoint: it reads the store for each.
	readAtOnce = 2_000
	// readBatch is how many of them are read in one call.
	readBatch = 1_000
	// loadAtOnce bounds the rows that one checkpoint reads of cold slices beside them, so that records wait for some milliseconds only.
	loadAtOnce = 10_000
)

// errEnough ends a Range.
var errEnough = errors.New("enough")

// one is a group outside of tables: scratch.
type one struct {
	words []uint64
	mem   expr.Mem
}

func (a *aligned) clearOne() []uint64 {
	if a.one.words == nil {
		a.one.words = make([]uint64, a.words)
	}
	clear(a.one.words)
	return a.one.words
}

// mayBeCold tells, where there are max_keys groups, whether a group that isn't in the table is let in as it may be one of them.
func (a *aligned) mayBeCold(s *slice) bool { return s.cold && a.open < a.MaxKeys+a.MaxKeys/8 }

// made counts a row that is new in a table.
func (a *aligned) made(s *slice, row []uint64) {
	if !s.cold {
		s.groups++
		a.open++
		return
	}
	row[1] |= flagPart
	if a.partial++; a.partial == readAtOnce {
		a.due = true
	}
}

// found counts a group that wasn't in the store.
func (a *aligned) found(s *slice) {
	s.groups++
	if s.shut {
		a.closed++
	} else {
		a.open++
	}
}

// failed ends the stage: the store's reader gives an error when the run is over.
func (a *aligned) failed(err error) {
	var d *DamagedError
	if errors.As(err, &d) {
		panic(d)
	}
	a.lost = true
}

// DamagedError: what the store has can't be read.
type DamagedError struct {
	Step string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the state of window %s: %v", e.Step, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Is makes it a state.ErrCorrupt.
func (e *DamagedError) Is(target error) bool { return target == state.ErrCorrupt }

func (a *aligned) damaged(format string, args ...any) error {
	return &DamagedError{a.name, fmt.Errorf(format, args...)}
}

// complete puts what the store has of groups before what came for them while they were cold. It is false where the run is over.
func (a *aligned) complete() bool {
	if a.lost {
		return false
	}
	if a.partial == 0 {
		return true
	}
	a.partial = 0
	a.env.B = a.scratchBatch()
	var rows []uint32
	for _, s := range a.list {
		if !s.cold {
			continue
		}
		rows = rows[:0]
		for _, r := range s.t.dirty {
			if s.t.row(r)[1]&flagPart != 0 {
				rows = append(rows, r)
			}
		}
		// The store finds keys that are near each other faster.
		slices.SortFunc(rows, func(x, y uint32) int { return bytes.Compare(s.t.key(s.t.row(x)), s.t.key(s.t.row(y))) })
		for part := range slices.Chunk(rows, readBatch) {
			if err := a.completePart(s, part); err != nil {
				a.failed(err)
				return false
			}
		}
	}
	return true
}

func (a *aligned) completePart(s *slice, rows []uint32) error {
	t := s.t
	keys := make([][]byte, len(rows))
	var buf []byte
	for i, r := range rows {
		at := len(buf)
		buf = rowKey(buf, a.keyStart(s), s.gen, t.key(t.row(r)))
		keys[i] = buf[at:len(buf):len(buf)]
	}
	err := a.load.Get(keys, func(i int, v []byte) error {
		a.scratch.Reset()
		row := t.row(rows[i])
		rd := reader{p: v}
		flags, firing, err := rd.rowHead()
		if err != nil {
			return a.damaged("%w", err)
		}
		w := a.clearOne()
		if !a.readRow(rd.p, &t.mem, w) {
			return a.damaged("a group's aggregates are damaged")
		}
		a.merge(&t.mem, w, &t.mem, row[headWords:])
		a.drop(&t.mem, row[headWords:])
		copy(row[headWords:], w)
		row[1] = row[1]&(flagDirty|flagFresh) | flagStored | firing<<firingBit
		if flags&flagFresh != 0 && row[1]&flagFresh == 0 {
			row[1] |= flagFresh
			t.fresh = append(t.fresh, rows[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range rows {
		if row := t.row(r); row[1]&flagPart != 0 {
			row[1] &^= flagPart
			a.found(s)
		}
	}
	return nil
}

// entries calls f with the store's entries of a slice behind s.after until it says that it has enough. They are looked at for the first
// time since s.after was nil; those that the table has are left out. done tells whether there are no more.
func (a *aligned) entries(s *slice, f func(key, group []byte, r *reader, flags, firing uint64) error, enough func() bool) (done bool) {
	scratch := a.scratchBatch()
	err := a.load.Range(rowKey(nil, a.keyStart(s), s.gen, nil), s.after, func(key, v []byte) error {
		if a.loads <= 0 || enough() {
			return errEnough
		}
		a.loads--
		s.after = append(s.after[:0], key...)
		group := key[rowHead:]
		if s.t.lookup(group, hashOf(group)) >= 0 {
			return nil
		}
		if len(group) > maxKey || !a.validKey(scratch, group) {
			return a.damaged("a group's key is damaged")
		}
		r := reader{p: v}
		flags, firing, err := r.rowHead()
		if err != nil {
			return a.damaged("%w", err)
		}
		return f(key, group, &r, flags, firing)
	})
	switch {
	case err == nil:
		return true
	case !errors.Is(err, errEnough):
		a.failed(err)
	}
	return false
}

// rowHead is how long an entry's key is before the group's.
const rowHead = 1 + 8 + 4

// loadRow puts a group into a table.
func (a *aligned) loadRow(t *table, group []byte, r *reader, flags, firing uint64) error {
	n, _ := t.find(group, hashOf(group))
	row := t.row(n)
	row[1] = flagStored | firing<<firingBit
	if flags&flagFresh != 0 {
		row[1] |= flagFresh
		t.fresh = append(t.fresh, n)
	}
	if !a.readRow(r.p, &t.mem, row[headWords:]) {
		return a.damaged("a group's aggregates are damaged")
	}
	return nil
}

// warm reads the slices that a window is put together of, as far as no block has them. It is false where that isn't finished.
func (a *aligned) warm(p *pending) bool {
	for i, s := range p.from {
		if !s.cold || a.have(p, i) {
			continue
		}
		if s.after == nil {
			s.t.reserve(s.groups)
		}
		done := a.entries(s, func(_, group []byte, r *reader, flags, firing uint64) error {
			return a.loadRow(s.t, group, r, flags, firing)
		}, func() bool { return false })
		if !done {
			return false
		}
		s.cold, s.after = false, nil
	}
	return true
}

// fireCold fires up to room groups of a cold slice that is a window's alone, as the store has them in order. They are forgotten with
// this checkpoint. Behind the last one the slice isn't cold any more.
func (a *aligned) fireCold(out *record.Batch, k *kv, s *slice, room int) (fired int) {
	done := a.entries(s, func(key, group []byte, r *reader, _, _ uint64) error {
		w := a.clearOne()
		if !a.readRow(r.p, &a.one.mem, w) {
			return a.damaged("a group's aggregates are damaged")
		}
		a.emit(out, s.from, s.to, group, &a.one.mem, w, 0)
		a.drop(&a.one.mem, w)
		k.put(func(d []byte) []byte { return append(d, key...) }, nil)
		s.stored--
		fired++
		return nil
	}, func() bool { return fired >= room || len(out.Buf) >= fireBytes })
	a.one.mem = expr.Mem{}
	if done {
		s.cold, s.after = false, nil
	}
	return fired
}

// forgetCold makes the store forget up to room rows of a cold slice that is gone.
func (a *aligned) forgetCold(k *kv, s *slice, room int) (gone int) {
	err := a.load.Range(rowKey(nil, a.keyStart(s), s.gen, nil), s.after, func(key, _ []byte) error {
		if gone >= room {
			return errEnough
		}
		gone++
		s.after = append(s.after[:0], key...)
		k.put(func(d []byte) []byte { return append(d, key...) }, nil)
		return nil
	})
	switch {
	case err == nil:
		s.cold = false
	case !errors.Is(err, errEnough):
		a.failed(err)
	}
	return gone
}

// loadFresh reads groups of a window that have not fired, about as many as there is room for.
func (a *aligned) loadFresh(s *slice, room int) {
	if s.after == nil {
		s.began = a.round
		if s.groups < int(a.Memory)/(8*s.t.width+24) { // all have room, and the index needn't grow step by step
			s.t.reserve(s.groups)
		}
	}
	done := a.entries(s, func(_, group []byte, r *reader, flags, firing uint64) error {
		if flags&flagFresh == 0 {
			return nil
		}
		return a.loadRow(s.t, group, r, flags, firing)
	}, func() bool { return len(s.t.fresh) >= room })
	if done {
		s.fresh, s.again, s.after, s.round = s.again, false, nil, s.began
	}
}

// bytes is about the memory of all groups.
func (a *aligned) bytes() (n int) {
	for _, s := range a.list {
		n += s.t.bytes()
	}
	for _, s := range a.garbage {
		n += s.t.bytes()
	}
	for _, b := range a.blocks {
		n += b.t.bytes()
	}
	if a.prefix != nil {
		n += a.prefix.t.bytes()
	}
	if len(a.pending) > 0 && a.pending[0].own {
		n += a.pending[0].t.bytes()
	}
	return n
}

// spill makes slices cold, those that were used longest ago first, until the memory is within its bound. Their rows are all given to
// the checkpoint that is about to be committed, which is there when the next one reads.
func (a *aligned) spill() {
	if a.load == nil {
		return
	}
	over := a.bytes() - int(a.Memory)
	if over <= 0 {
		return
	}
	if !a.spilt {
		a.spilt = true
		a.log.Info("a window's groups take more than its memory; some are in the store only until they are needed, which is slower", "step", a.name, "memory", a.Memory.String())
	}
	var can []*slice
	for _, s := range a.list {
		if s.t.n > 0 && !a.pinned(s) {
			can = append(can, s)
		}
	}
	slices.SortStableFunc(can, func(x, y *slice) int { return cmp.Compare(x.used, y.used) })
	for _, s := range can {
		if over <= 0 {
			return
		}
		over -= s.t.bytes()
		a.chill(s)
	}
}

// pinned tells whether a slice's table is in use beyond this checkpoint.
func (a *aligned) pinned(s *slice) bool {
	if len(a.pending) > 0 && slices.Contains(a.pending[0].from, s) {
		return true
	}
	// What has been read to fire is not read again, so that firing goes on in whatever memory.
	return !a.shared && a.marks.event >= s.to-1 && len(s.t.fresh) > 0
}

func (a *aligned) chill(s *slice) {
	switch {
	case a.shared:
		s.after = nil
	case len(s.t.fresh) > 0 && s.fresh && s.after != nil:
		s.again = true
	case len(s.t.fresh) > 0:
		s.fresh = true
	}
	s.cold = true
	s.t = &table{width: headWords + a.words}
}

// storeNote puts what a start must know of a slice without its rows.
func (a *aligned) storeNote(k *kv, s *slice) {
	n := note{rows: s.stored, fresh: !a.shared && (s.fresh || len(s.t.fresh) > 0), frozen: s.frozen, fold: s.fold}
	if s.noted && n == s.note || !s.noted && s.stored == 0 {
		return
	}
	s.noted, s.note = true, n
	k.put(func(d []byte) []byte { return noteKey(d, a.keyStart(s), s.gen) }, n.append)
}

// Restore reads what there is, but for the groups.
func (a *aligned) Restore(_ context.Context, load state.Keyed) error {
	a.keep(load)
	m, any, err := a.restoreHead(load)
	if err != nil || !any {
		return err
	}
	a.gen, a.fired = m.gen, m.fired
	done := m.fired // windows up to here have fired but for the pending ones
	if len(m.pending) > 0 {
		done = m.pending[0].end - 1
	}
	if m.version < headVersion {
		err = a.countRows(load, done)
	} else {
		err = load.Range([]byte{'n'}, nil, func(key, v []byte) error {
			var n note
			if err := n.read(v); err != nil {
				return err
			}
			if len(key) != rowHead {
				return fmt.Errorf("the key of what it says of a window's groups is damaged")
			}
			a.restore(key, n, done).noted = true
			return nil
		})
	}
	if err != nil {
		return err
	}
	a.fired = m.fired // not what making the slices has found: what comes late would be put together in another order
	for i, pm := range m.pending {
		p := &pending{start: a.start(pm.end), end: pm.end, gen: pm.gen}
		if i == 0 {
			p.cursor = m.cursor
		}
		if a.size != a.every {
			a.freeze(p)
		}
		a.pending = append(a.pending, p)
		a.due = true
	}
	if a.shared {
		for _, s := range a.list {
			if a.lastEnd(s.start) <= a.fired {
				s.shut = true
				a.open -= s.groups
				a.closed += s.groups
			}
		}
	}
	a.closing()
	return nil
}

// restore makes a cold slice of a note, or garbage where its windows have fired.
func (a *aligned) restore(key []byte, n note, done int64) *slice {
	end := int64(binary.BigEndian.Uint64(key[1:]) ^ 1<<63)
	gen := binary.BigEndian.Uint32(key[9:])
	start := end - a.every
	if !a.shared {
		start = a.start(end)
	}
	var s *slice
	if a.shared && a.lastEnd(start) <= done || !a.shared && !n.fresh && a.marks.water >= a.instant(end)-1 {
		s = &slice{start: start, end: end, gen: gen, t: &table{width: headWords + a.words}}
		a.garbage = append(a.garbage, s)
	} else {
		s = a.at(start, end, gen)
		s.fold, s.frozen = n.fold, n.frozen
		s.groups = n.rows
		a.open += n.rows
	}
	s.cold, s.fresh, s.stored, s.note = true, n.fresh, n.rows, n
	return s
}

// countRows makes the notes that a store of an earlier version doesn't have.
func (a *aligned) countRows(load state.Keyed, done int64) error {
	var at []byte
	var n note
	add := func() {
		if n.rows > 0 {
			s := a.restore(at, n, done)
			s.fold = max(s.end, a.fired)
		}
	}
	err := load.Range([]byte{'w'}, nil, func(key, v []byte) error {
		if len(key) < rowHead {
			return fmt.Errorf("a group's key is damaged")
		}
		r := reader{p: v}
		flags, _, err := r.rowHead()
		if err != nil {
			return err
		}
		if !bytes.Equal(at, key[:rowHead]) {
			add()
			at, n = append(at[:0], key[:rowHead]...), note{}
		}
		n.rows++
		n.fresh = n.fresh || flags&flagFresh != 0
		return nil
	})
	add()
	return err
}
