package rocketmq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// queue is one queue while it is this instance's.
type queue struct {
	rocketmq.Queue
	topic  *topic
	cancel context.CancelCauseFunc
	err    error
	over   bool // with once: its goroutine has read it to its end
	done   bool // the same, once Run's goroutine has heard of it
	split  *record.Split
	origin origins
	target int64 // with once: where it ended at the start

	telling   sync.Mutex // held while the broker's offset is moved
	mu        sync.Mutex
	sent      int64                   // End of the last batch sent
	committed int64                   // by the last checkpoint
	told      int64                   // the broker's offset as it was last seen or set; -1: it has none
	boot      string                  // of the broker that was last told, see boot.id
	recent    []int64                 // committed positions, the oldest first
	end       int64                   // the offset that the queue's next message gets, as last heard
	marks     []mark                  // of what was read and isn't committed
	given     bool                    // revoked: the broker's offset is someone else's, too
	reset     bool                    // the broker's offset was moved by someone else: begin anew
	interrupt context.CancelCauseFunc // ends the read under way
}

func (s *Source) newQueue(k rocketmq.Queue, t *topic) *queue {
	return &queue{Queue: k, topic: t, cancel: func(error) {}, interrupt: func(error) {}}
}

// unsettled tells whether something that was sent is not committed, at the broker too.
func (q *queue) unsettled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.split != nil && q.committed < q.sent
}

// splitID is the same on every instance, and for no other data.
func (s *Source) splitID(q *queue) string {
	name := s.name
	if name == "" {
		s.mu.Lock()
		if r := s.routes[q.topic.Name]; r != nil {
			name = r.Cluster[q.Broker]
		}
		s.mu.Unlock()
	}
	h := sha256.Sum256([]byte(strings.Join([]string{"rocketmq", name, s.client.Wrap(s.cfg.Group), q.Topic, q.Broker, strconv.Itoa(q.ID)}, "\x00")))
	return hex.EncodeToString(h[:16])
}

// serve reads the queue as long as it is this instance's. An error is one that trying again can't mend.
// others: the group has other members.
func (s *Source) serve(ctx context.Context, q *queue, others bool) error {
	for {
		if others { // who had the queue hears of the change now too, and commits what it has read
			others = false
			if pause(ctx, s.handover) != nil {
				return nil
			}
		}
		if err := s.acquire(ctx, q); err != nil {
			return ended(ctx, err)
		}
		err := s.read(ctx, q)
		switch {
		case errors.Is(err, errReset):
			s.log.Info("the broker's offset of a queue was moved by someone else; it is read from there", "queue", q.String())
			if err := s.settle(ctx, q); err != nil && ctx.Err() == nil {
				return err
			}
			s.release(q)
			if pause(ctx, 200*time.Millisecond) == nil {
				continue
			}
			return nil
		case err != nil && ctx.Err() == nil:
			return err
		}
		break
	}
	switch {
	case ctx.Err() == nil: // with once
		q.over = true
		return nil
	case context.Cause(ctx) == errRevoked:
		q.mu.Lock()
		q.given = true
		q.mu.Unlock()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Revoke.D())
		defer cancel()
		if err := s.settle(last, q); err != nil {
			err = fmt.Errorf("queue %s goes to another instance, and what was read of it could not be committed within %s", q, s.cfg.Revoke.D())
			s.abort(err)
			return err
		}
		s.release(q)
		s.log.Info("queue given up", "queue", q.String(), "offset", q.sent)
	}
	return nil
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retry calls f until it succeeds or ctx ends.
func (s *Source) retry(ctx context.Context, q *queue, f func(addr string) error) error {
	wait := 200 * time.Millisecond
	for {
		addr, err := s.addr(q)
		if err == nil {
			err = f(addr)
		}
		if err == nil {
			s.trouble(q.String(), nil)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.trouble(q.String(), err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
		wait = min(2*wait, 2*time.Second)
	}
}

// acquire finds out where to begin and opens the split.
func (s *Source) acquire(ctx context.Context, q *queue) error {
	id := s.splitID(q)
	var at, first, next int64
	var has bool
	var now boot
	err := s.retry(ctx, q, func(addr string) (err error) {
		if at, has, err = s.client.Offset(ctx, addr, s.cfg.Group, q.Queue); err != nil {
			return err
		}
		if now, err = s.boot(ctx, addr); err != nil {
			return err
		}
		first, next, err = s.client.Bounds(ctx, addr, q.Queue)
		if rocketmq.IsCode(err, rocketmq.NoPermission) { // who may read may not ask for these, but every answer to a read has them
			var p rocketmq.Pulled
			p, err = s.client.Pull(ctx, addr, s.cfg.Group, q.Queue, &q.topic.sub, 0, 1, 1, 0)
			first, next = p.First, p.End
		}
		return err
	})
	if err != nil {
		return err
	}
	st := state.Split{ID: id, Path: q.Queue.String(), Meta: map[string]string{"group": s.cfg.Group}}
	known := false
	for _, k := range s.out.Known() {
		if k.ID == id {
			st, known = k, len(k.Recent) > 0
		}
	}
	st.Done = false
	own := st.Position().Offset
	start, anew := own, false
	switch {
	case !known && has:
		start = at
	case !known:
		if start, err = s.begin(ctx, q, first, next); err != nil {
			return err
		}
	case !has, at == own:
	case at > own:
		start = at
	case at < st.Recent[0].Offset:
		before := st.Meta["boot"]
		if q.boot != "" { // it was taken by this run, and was moved
			before = q.boot
		}
		if now.may(before) {
			s.log.Warn("the broker has just started and its offset of a queue is far behind; that counts as forgotten", "queue", q.String(), "position", own, "offset", at)
			break
		}
		start, anew = at, true
	}
	var gone int64
	switch {
	case start < first:
		if known || has {
			gone = first - start
		}
		start = first
	case start > next: // the queue is not the one it was
		s.log.Warn("a queue ends before the position; it was made anew, and is read from its beginning", "queue", q.String(), "position", start, "end", next)
		start, anew = first, known
	}
	from := own
	switch {
	case anew:
		st.Epoch++
		st.Recent = []record.Position{{Offset: start}}
		from = start
		s.log.Warn("the group's offset was set back; the queue begins a new epoch", "queue", q.String(), "position", own, "offset", start, "epoch", st.Epoch)
	case !known:
		st.Recent = []record.Position{{Offset: start}}
		from = start
	}
	if now.known {
		st.Meta = map[string]string{"group": s.cfg.Group, "boot": now.id}
	}
	sp, err := s.out.Open(ctx, st)
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.sent, q.committed, q.end, q.told, q.boot, q.reset = from, from, next, -1, now.id, false
	q.target = next
	everyone := !has && start == first && (s.cfg.Start == "first" || s.cfg.Start == "" && s.once)
	switch {
	case has:
		q.told = at
	case everyone: // as good as told, see below
		q.told = start
	}
	q.recent, q.marks = q.recent[:0], nil
	for _, p := range st.Recent {
		q.recent = append(q.recent, p.Offset)
	}
	q.mu.Unlock()
	s.mu.Lock()
	q.split = sp[0]
	q.split.Shared = true
	s.opened[id] = q
	s.mu.Unlock()
	if gone > 0 {
		s.out.Lost(q.split, gone, fmt.Sprintf("%d messages were removed by the broker before they were read (the number stands for bytes)", gone))
	}
	lost := has && known && start == own && at < own
	// So that another instance that takes the queue begins here too, though no message comes before. Where it would anyway nothing is told: a
	// busy broker may carry such a request out seconds later, and set back what others have committed meanwhile.
	if !has && !everyone || lost {
		err := s.retry(ctx, q, func(addr string) error { return s.client.SetOffset(ctx, addr, s.cfg.Group, q.Queue, start) })
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.told = start
		q.mu.Unlock()
	}
	if from != start {
		b, err := s.out.Batch(ctx, q.split, 1)
		if err != nil {
			return err
		}
		b.Start, b.End = record.Position{Offset: from}, record.Position{Offset: start}
		if err := s.send(ctx, q, b); err != nil {
			return err
		}
	}
	s.log.Info("queue taken", "queue", q.String(), "offset", start, "broker_offset", at, "epoch", st.Epoch)
	return s.recall(ctx, q, first, start)
}

// begin is where a queue begins for which there is no position.
func (s *Source) begin(ctx context.Context, q *queue, first, next int64) (int64, error) {
	start := s.cfg.Start
	if start == "" && !s.once {
		start = "last"
	}
	if start == "first" || start == "" || !s.out.Fresh() || !q.topic.first[q.Queue] {
		return first, nil
	}
	if start == "last" {
		return next, nil
	}
	at := first
	err := s.retry(ctx, q, func(addr string) (err error) {
		at, err = s.client.OffsetAt(ctx, addr, q.Queue, s.cfg.start)
		return err
	})
	return max(at, first), err
}

// settle waits for a checkpoint that covers what was sent.
func (s *Source) settle(ctx context.Context, q *queue) error {
	for {
		s.mu.Lock()
		tick := s.tick
		s.mu.Unlock()
		if !q.unsettled() {
			return nil
		}
		s.out.Checkpoint()
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// release tells the runner that no batch of the split comes any more.
func (s *Source) release(q *queue) {
	q.telling.Lock()
	s.mu.Lock()
	sp := q.split
	if s.opened[sp.ID] == q {
		delete(s.opened, sp.ID)
	}
	q.split = nil
	s.mu.Unlock()
	q.telling.Unlock()
	s.out.Idle(sp, true)
	s.out.Finish(sp, false)
}

func (s *Source) send(ctx context.Context, q *queue, b *record.Batch) error {
	end := b.End.Offset
	q.mu.Lock()
	before := q.sent
	q.sent = end
	q.mu.Unlock()
	if err := s.out.Send(ctx, b); err != nil {
		q.mu.Lock()
		q.sent = before
		q.mu.Unlock()
		return err
	}
	return nil
}
