package rocketmq

import (
	"time"

	"github.com/rsetl/rsetl/state"
)

// mark is when the broker stored the first message of batches that begin from first to last, to a tenth of a second.
type mark struct {
	first, last int64
	stored      int64 // ms since 1970
}

// note marks a batch that begins at first.
func (q *queue) note(first, stored int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.marks); n > 0 {
		if m := &q.marks[n-1]; stored-m.stored < 100 {
			m.last = first
			return
		}
	}
	q.marks = append(q.marks, mark{first, first, stored})
}

// Lag gives the messages behind a split's committed position.
func (s *Source) Lag(sp *state.Split) (n int64, ok bool) {
	q := s.queueOf(sp)
	if q == nil {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.end-sp.Position().Offset), true
}

// LagTime is how long ago the broker stored the first message that isn't committed, 0 where all are. It isn't known as long as none was read,
// or the filter leaves them all out.
func (s *Source) LagTime(sp *state.Split) (d time.Duration, ok bool) {
	q := s.queueOf(sp)
	if q == nil {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.end <= q.committed:
		return 0, true
	case len(q.marks) == 0:
		return 0, false
	}
	return max(0, s.now().Sub(time.UnixMilli(q.marks[0].stored))), true
}

func (s *Source) queueOf(sp *state.Split) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[sp.ID]
}

// Errors counts what failed between this source and its servers, by kind, since the run began.
func (s *Source) Errors() map[string]int64 {
	s.mu.Lock()
	c := s.client
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.Errors()
}
