package rocketmq

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/rsetl/rsetl/internal/rocketmq"
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
			q.marks = slices.DeleteFunc(q.marks, func(m mark) bool { return m.last < p.Offset })
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

	err := s.tellAll(ctx, due, false)
	s.mu.Lock()
	stopped := s.stopped
	close(s.tick)
	s.tick = make(chan struct{})
	s.last = s.now()
	s.mu.Unlock()
	if stopped { // the drain's checkpoint: nothing else closes the connection that it made
		s.client.Close()
	}
	return err
}

// tellAll moves the brokers' offsets of those queues, some at a time.
func (s *Source) tellAll(ctx context.Context, due []*queue, again bool) error {
	errs := make([]error, len(due))
	var wg sync.WaitGroup
	turns := make(chan struct{}, commits)
	for i, q := range due {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs[i] = s.tell(ctx, q, again)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// remind tells brokers that were started anew the offsets that they may have forgotten, those of idle queues too. From then on an offset that
// is behind is an operator's.
func (s *Source) remind(ctx context.Context) {
	runs := map[string]string{}
	for _, addr := range s.brokers() {
		if b, err := s.boot(ctx, addr); err == nil {
			runs[addr] = b.id
		}
	}
	s.mu.Lock()
	opened := slices.Collect(maps.Values(s.opened))
	s.mu.Unlock()
	var due []*queue
	for _, q := range opened {
		addr, err := s.addr(q)
		q.mu.Lock()
		if run := runs[addr]; err == nil && run != "" && run != q.boot && q.told >= 0 && !q.reset && !q.given {
			due = append(due, q)
		}
		q.mu.Unlock()
	}
	if err := s.tellAll(ctx, due, true); err != nil && ctx.Err() == nil {
		s.log.Debug("remind a broker of offsets", "err", err) // the next turn tries again
	}
}

// tell moves the broker's offset of a queue, unless someone else has. again: it was told that before. After a checkpoint it is told also
// where the queue is being given up: its next owner waits for that.
func (s *Source) tell(ctx context.Context, q *queue, again bool) error {
	q.telling.Lock()
	defer q.telling.Unlock()
	if again {
		s.mu.Lock()
		released := q.split == nil
		s.mu.Unlock()
		if released { // someone else tells its offset now
			return nil
		}
	}
	addr, err := s.addr(q)
	if err != nil {
		return err
	}
	at, has, err := s.client.Offset(ctx, addr, s.cfg.Group, q.Queue)
	if err != nil {
		return err
	}
	// A broker that can't tell its start yet has just started: what is behind there is forgotten, and told now.
	boot, err := s.boot(ctx, addr)
	starting := rocketmq.IsCode(err, rocketmq.SystemError)
	if err != nil && !starting {
		return err
	}
	q.mu.Lock()
	to := q.committed
	forgot := starting || boot.id != q.boot
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
	q.told = to
	if !starting {
		q.boot = boot.id
	}
	q.mu.Unlock()
	return nil
}
