package windows

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// sessions are windows of records of one key that are at most `gap` apart. A record that lies between two sessions makes
// one of them. Those that the watermark has closed take nothing more.
type sessions struct {
	core
	gap   int64
	byKey map[string]*session // the first of a key's sessions
	heap  []*session          // by at
	mem   expr.Mem
	id    uint64
	dirty []*session
	near  []*session // scratch
	gone  []uint64   // stored ones that the store may forget
}

// session is open, or closed and not fired yet.
type session struct {
	id         uint64
	key        string
	start, end int64
	at         int64 // its place in the heap: its end when it was put there, or earlier than now
	next       *session
	words      []uint64
	dirty      bool
	stored     bool
	dead       bool // merged into another, or fired
}

func newSessions(c core) *sessions {
	return &sessions{core: c, gap: c.Session.D().Milliseconds(), byKey: map[string]*session{}}
}

// Apply absorbs the records.
func (s *sessions) Apply(b *record.Batch) {
	s.env.B = b
	now := s.now()
	mk := s.marks.batch(b.Split, now)
	nowMs := now.UnixMilli()
	processing := s.processing()
	if processing {
		if w := s.marks.water; w != never && nowMs <= w {
			nowMs = w + 1
		}
		s.marks.reach(nowMs)
	}
	sel := b.Sel
	for i := range b.Len() {
		ms := nowMs
		if len(sel) == 0 || int(sel[0]) != i {
			if processing {
				continue
			}
			var ok bool
			if ms, ok = s.passing(b, i, nowMs); !ok {
				continue
			}
		} else {
			sel = sel[1:]
			if !processing {
				var ok bool
				if ms, ok = s.timeOfRecord(b, i); !ok {
					s.noTime(b, i)
					continue
				}
				if s.ahead > 0 && ms > nowMs+s.ahead {
					s.tooEarly(b, i, ms)
					continue
				}
			}
			s.count(b, i, ms)
		}
		if ms > mk.max && !processing {
			s.marks.advance(mk, ms)
		}
	}
	b.Sel = b.Sel[:0]
	s.changed = true
	s.look()
}

// look finds whether a session has ended.
func (s *sessions) look() {
	for len(s.heap) > 0 && s.heap[0].at-1 <= s.marks.water {
		if top := s.heap[0]; !top.dead && top.end == top.at {
			s.due = true
			return
		} else if top.dead {
			s.pop()
		} else {
			top.at = top.end
			s.down(0)
		}
	}
}

func (s *sessions) count(b *record.Batch, i int, ms int64) {
	key := s.key(b, i)
	first := s.byKey[string(key)]
	end := ms + s.gap
	var into *session
	s.near = s.near[:0]
	for x := first; x != nil; x = x.next {
		if x.end-1 <= s.marks.water || ms > x.end || x.start > end {
			continue
		}
		// Of two that become one the one that began first stays: its records come first.
		if s.near = append(s.near, x); into == nil || x.id < into.id {
			into = x
		}
	}
	for _, x := range s.near {
		into.start, into.end = min(into.start, x.start, ms), max(into.end, x.end, end)
		if x != into {
			s.merge(&s.mem, into.words, &s.mem, x.words)
			s.release(x)
		}
	}
	if into == nil {
		if end-1 <= s.marks.water {
			s.tooLate(b, i, ms)
			return
		}
		if s.open >= s.MaxKeys || len(key) > maxKey {
			s.tooMany(b, i)
			return
		}
		s.id++
		into = &session{id: s.id, key: string(key), start: ms, end: end, at: end, next: first, words: make([]uint64, s.words)}
		if first != nil {
			into.key = first.key
		}
		s.byKey[into.key] = into
		s.open++
		s.push(into)
	}
	s.touch(into)
	s.add(i, &s.mem, into.words)
	b.Absorbed++
}

func (s *sessions) touch(x *session) {
	if !x.dirty {
		x.dirty = true
		if s.dirty = append(s.dirty, x); len(s.dirty) == storeAtOnce {
			s.due = true
		}
	}
}

// release takes a session out of all but the heap.
func (s *sessions) release(x *session) {
	x.dead = true
	s.drop(&s.mem, x.words)
	if x.stored {
		s.gone = append(s.gone, x.id)
	}
	s.open--
	s.full = s.full && s.open >= s.MaxKeys
	first := s.byKey[x.key]
	if first == x {
		if x.next == nil {
			delete(s.byKey, x.key)
		} else {
			s.byKey[x.key] = x.next
		}
		return
	}
	for y := first; y != nil; y = y.next {
		if y.next == x {
			y.next = x.next
			return
		}
	}
}

// less orders by end, then by which began first.
func (s *sessions) less(i, j int) bool {
	x, y := s.heap[i], s.heap[j]
	return x.at < y.at || x.at == y.at && x.id < y.id
}

func (s *sessions) push(x *session) {
	s.heap = append(s.heap, x)
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			return
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (s *sessions) down(i int) {
	for {
		l := 2*i + 1
		if l >= len(s.heap) {
			return
		}
		if l+1 < len(s.heap) && s.less(l+1, l) {
			l++
		}
		if !s.less(l, i) {
			return
		}
		s.heap[i], s.heap[l] = s.heap[l], s.heap[i]
		i = l
	}
}

func (s *sessions) pop() {
	n := len(s.heap) - 1
	s.heap[0] = s.heap[n]
	s.heap[n] = nil
	s.heap = s.heap[:n]
	s.down(0)
}

// SplitEnded tells that nothing more comes from a split.
func (s *sessions) SplitEnded(sp *record.Split) {
	s.marks.ended(sp.ID)
	s.changed = true
	s.look()
}

// Tick lets time go on by the clock.
func (s *sessions) Tick(now time.Time) {
	water := s.marks.water
	if s.processing() {
		if s.open > 0 {
			s.marks.reach(now.UnixMilli())
		}
	} else {
		s.marks.tick(now)
	}
	s.changed = s.changed || s.marks.water != water
	s.look()
	s.publish(steps.Holding{Windows: s.open, Bytes: s.open*(160+8*s.words) + s.mem.Bytes()}, now)
}

// Backlogged tells whether so much waits to fire that the source should wait.
func (s *sessions) Backlogged() bool { return s.due && s.open > s.MaxKeys/2 }

// End fires all sessions: the source has ended by itself.
func (s *sessions) End() {
	for _, x := range s.heap {
		if !x.dead {
			s.marks.water = max(s.marks.water, x.end-1)
		}
	}
	s.marks.event = max(s.marks.event, s.marks.water)
	s.changed = true
	s.look()
}

// Checkpoint fires sessions that have ended and gives what has changed.
func (s *sessions) Checkpoint(out *record.Batch) []state.KV {
	s.due = false
	s.env.B = out
	k := &kv{stage: s.name}
	for room := fireAtOnce; room > 0 && len(s.heap) > 0 && s.heap[0].at-1 <= s.marks.water; {
		x := s.heap[0]
		switch {
		case x.dead:
			s.pop()
		case x.end != x.at:
			x.at = x.end
			s.down(0)
		default:
			s.pop()
			s.emit(out, x.start, x.end, []byte(x.key), &s.mem, x.words, 0)
			s.release(x)
			room--
		}
	}
	s.look()
	for _, id := range s.gone {
		k.put(func(d []byte) []byte { return sessionKey(d, id) }, nil)
	}
	s.gone = s.gone[:0]
	for _, x := range s.dirty {
		x.dirty = false
		if x.dead {
			continue
		}
		x.stored = true
		k.put(func(d []byte) []byte { return sessionKey(d, x.id) }, func(d []byte) []byte {
			d = binary.AppendVarint(binary.AppendVarint(append(d, codecVersion), x.start), x.end)
			d = append(binary.AppendUvarint(d, uint64(len(x.key))), x.key...)
			return s.appendRow(d, &s.mem, x.words)
		})
		if s.rows {
			k.list[len(k.list)-1].Row = s.person(x.start, x.end, 0, []byte(x.key), &s.mem, x.words)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	if s.changed || len(k.list) > 0 {
		s.storeHead(k, meta{})
	}
	return k.list
}

// Restore reads the state.
func (s *sessions) Restore(_ context.Context, load state.Keyed) error {
	s.keep(load)
	_, any, err := s.restoreHead(load)
	if err != nil || !any {
		return err
	}
	scratch := record.NewBatch(s.table)
	err = load.Range([]byte{'s'}, nil, func(key, v []byte) error {
		r := reader{p: v}
		if err := r.version(); err != nil {
			return err
		}
		x := &session{start: r.varint(), end: r.varint(), key: string(r.text()), words: make([]uint64, s.words), stored: true}
		if r.bad || len(key) != 9 || !s.validKey(scratch, []byte(x.key)) || !s.readRow(r.p, &s.mem, x.words) {
			return fmt.Errorf("a session is damaged")
		}
		x.id, x.at = binary.BigEndian.Uint64(key[1:]), x.end
		s.id = max(s.id, x.id)
		x.next = s.byKey[x.key]
		s.byKey[x.key] = x
		s.open++
		s.push(x)
		return nil
	})
	s.look()
	return err
}
