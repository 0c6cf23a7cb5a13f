package rocketmq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// commits is how many offsets are told to brokers at a time.
const commits = 8

// Committed moves the brokers' offsets to what a checkpoint has committed. What could not be told is told with the next one.
func (s *Source) Committed(ctx context.Context, positions map[*record.Split]record.Position) error {
	s.mu.Lock()
	for sp, p := range positions {
		if q := s.opened[sp.ID]; q != nil && q.split == sp {
			q.mu.Lock()
			q.committed = p.Offset
			q.recent = append(q.recent, p.Offset)
			if len(q.recent) > state.Keep {
				q.recent = slices.Delete(q.recent, 0, 1)
			}
			q.mu.Unlock()
		}
	}
	var due []*queue
	for _, q := range s.opened {
		q.mu.Lock()
		if q.split != nil && q.committed != q.told && !q.reset {
			due = append(due, q)
		}
		q.mu.Unlock()
	}
	s.mu.Unlock()

	errs := make([]error, len(due))
	var wg sync.WaitGroup
	turns := make(chan struct{}, commits)
	for i, q := range due {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs[i] = s.tell(ctx, q)
		})
	}
	wg.Wait()
	s.mu.Lock()
	stopped := s.stopped
	close(s.tick)
	s.tick = make(chan struct{})
	s.last = s.now()
	s.mu.Unlock()
	if stopped { // the drain's checkpoint: nothing else closes the connection that it made
		s.client.Close()
	}
	return errors.Join(errs...)
}

// tell moves the broker's offset of a queue, unless someone else has.
func (s *Source) tell(ctx context.Context, q *queue) error {
	addr, err := s.addr(q)
	if err != nil {
		return err
	}
	at, has, err := s.client.Offset(ctx, addr, s.cfg.Group, q.Queue)
	if err != nil {
		return err
	}
	q.mu.Lock()
	to := q.committed
	// A broker that is killed forgets the offsets of the last seconds: what is back after a new connection is no reset.
	forgot := at < to && s.client.Connected(addr).After(q.toldAt)
	foreign := has && at != q.told && at != to && (at > to || at < q.recent[0] && !forgot)
	if foreign {
		q.told = to // nothing is told until the queue is taken anew
		if q.reset = !q.given; q.reset {
			q.interrupt(errReset)
		}
	}
	q.mu.Unlock()
	if foreign {
		return nil
	}
	if err := s.client.SetOffset(ctx, addr, s.cfg.Group, q.Queue, to); err != nil {
		return err
	}
	q.mu.Lock()
	q.told, q.toldAt = to, time.Now()
	q.mu.Unlock()
	return nil
}

// Lag gives the messages behind a split's committed position.
func (s *Source) Lag(sp *state.Split) (n int64, ok bool) {
	s.mu.Lock()
	q := s.opened[sp.ID]
	s.mu.Unlock()
	if q == nil {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(0, q.end-sp.Position().Offset), true
}
