package windows

import (
	"math"
	"time"

	"github.com/rsetl/rsetl/record"
)

// never is before all times.
const never = math.MinInt64

// mark is what is known of one split's event time, in milliseconds.
type mark struct {
	id     string
	max    int64 // the largest seen; never: none yet
	live   bool
	idle   bool      // the source has nothing to read from it
	since  time.Time // idle: from then on
	out    bool      // idle for long enough: it doesn't hold the others back
	own    bool      // firings of a stage before: idle whenever nothing comes
	stored int64     // max as the store has it
}

// marks are the watermark: the smallest event time of the live splits, and that less the delay.
type marks struct {
	by      map[string]*mark
	list    []*mark
	last    *mark // of the last batch
	delay   int64
	idle    time.Duration
	event   int64 // event time: what the smallest split has reached; never goes back
	water   int64 // the watermark; never goes back
	arrived time.Time
	gone    []string // splits whose mark the store may forget
}

func (m *marks) init(delay int64, idle time.Duration) {
	m.by, m.delay, m.idle, m.event, m.water = map[string]*mark{}, delay, idle, never, never
}

func (m *marks) get(id string) *mark {
	k := m.by[id]
	if k == nil {
		k = &mark{id: id, max: never, stored: never}
		m.by[id] = k
		m.list = append(m.list, k)
	}
	return k
}

// batch gives the mark of the split that a batch is from.
func (m *marks) batch(s *record.Split, now time.Time) *mark {
	m.arrived = now
	id := ""
	if s != nil {
		id = s.ID
	}
	k := m.last
	if k == nil || k.id != id {
		k = m.get(id)
		m.last = k
	}
	if !k.live {
		k.live, k.own, k.idle = true, true, true
	}
	if k.own {
		k.since = now
	} else {
		k.idle = false
	}
	k.out = false
	return k
}

func (m *marks) opened(id string) {
	k := m.get(id)
	k.live, k.own, k.idle, k.out = true, false, false, false
}

func (m *marks) setIdle(id string, idle bool, now time.Time) {
	k := m.get(id)
	if !k.live || k.idle == idle {
		return
	}
	k.idle, k.since, k.out = idle, now, false
}

func (m *marks) ended(id string) {
	k := m.by[id]
	if k == nil {
		return
	}
	delete(m.by, id)
	for i := range m.list {
		if m.list[i] == k {
			m.list = append(m.list[:i], m.list[i+1:]...)
			break
		}
	}
	if m.last == k {
		m.last = nil
	}
	m.gone = append(m.gone, id)
	m.settle()
}

// advance notes an event time larger than all before in the split.
func (m *marks) advance(k *mark, ms int64) {
	old := k.max
	k.max = ms
	if len(m.list) == 1 {
		m.reach(k.reached())
	} else if old <= m.event {
		m.settle()
	}
}

// reached is the split's event time. Firings of one window have one time and come one after the other: it is over when a
// later one comes.
func (k *mark) reached() int64 {
	if k.own && k.max != never {
		return k.max - 1
	}
	return k.max
}

func (m *marks) reach(event int64) {
	if event > m.event {
		m.event = event
	}
	if m.event > never && m.event-m.delay > m.water {
		m.water = m.event - m.delay
	}
}

// settle finds the smallest event time of the live splits.
func (m *marks) settle() {
	least, any := int64(math.MaxInt64), false
	for _, k := range m.list {
		if k.live && !k.out {
			any = true
			least = min(least, k.reached())
		}
	}
	if any {
		m.reach(least)
	}
}

// tick lets splits that are idle for long enough go. Where all are, time goes on as the clock does, from the largest
// event time and from when the last record came, `idle` behind.
func (m *marks) tick(now time.Time) {
	if m.arrived.IsZero() { // after a start
		m.arrived = now
	}
	all, changed, most := true, false, int64(never)
	for _, k := range m.list {
		if !k.live {
			continue
		}
		if k.idle && !k.out && now.Sub(k.since) >= m.idle {
			k.out, changed = true, true
		}
		all = all && k.out
		most = max(most, k.max)
	}
	if changed {
		m.settle()
	}
	if all && most > never {
		if ahead := now.Sub(m.arrived) - m.idle; ahead > 0 {
			m.reach(most + ahead.Milliseconds())
		}
	}
}
