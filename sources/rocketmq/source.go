package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
)

// Source is one member of a consumer group.
type Source struct {
	cfg    *Config
	name   string // of the cluster in splits' ids, "": the cluster's own
	source string
	member string // the client's id in the group
	table  *record.Table
	log    *slog.Logger
	once   bool
	alone  bool // all queues must be this instance's
	now    func() time.Time
	order  []*topic
	topics map[string]*topic // by the name in the configuration
	slots  slots
	// heartbeat, look and refresh are how often membership is renewed, members are looked at and routes are asked for.
	heartbeat, look, refresh time.Duration
	handover                 time.Duration // how long a queue is left to who may have had it

	client  *rocketmq.Client
	out     sources.Output
	changed chan struct{} // a broker told that the group's members changed, or a queue asks for a look
	ended   chan *queue   // its goroutine has ended
	joined  map[string]bool
	beat    time.Time // the last heartbeats
	routed  time.Time // the last successful look at all routes
	members []string  // as last seen
	crowd   time.Time // alone: since when there are other members; zero: there are none
	stalled bool      // it has left the group

	mu       sync.Mutex
	queues   map[rocketmq.Queue]*queue // whose goroutines run; Run's goroutine alone changes it
	opened   map[string]*queue         // by split id: what Committed and Lag are about
	routes   map[string]*rocketmq.Route
	troubles map[string]error
	boots    map[string]boot // by the broker's address
	tick     chan struct{}   // closed and replaced by each Committed
	last     time.Time       // the last Committed, or when there was nothing to commit
	stopped  bool            // Run has returned
	aborted  bool
}

var (
	_ sources.Source    = (*Source)(nil)
	_ sources.Committer = (*Source)(nil)
)

type topic struct {
	Topic
	tags []string
	sub  rocketmq.Subscription
	// first are the queues that were there when the topic was first asked for, for which `start` applies; nil: it was not yet.
	first map[rocketmq.Queue]bool
}

var (
	errRevoked = errors.New("queue goes to another instance")
	errStalled = errors.New("instance has left the group")
	errStop    = errors.New("source stops")
	errDone    = errors.New("there is nothing to read")
)

// leaveTime bounds what Run does when its context has ended.
const leaveTime = 5 * time.Second

// Run is the membership, until ctx ends; with once until every queue that is this instance's is read to where it ended at the start.
func (s *Source) Run(ctx context.Context, out sources.Output) error {
	client, err := s.cfg.Connection.Client(s.notify)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.client = client
	s.mu.Unlock()
	s.out = out
	s.slots = findSlots(s.table)
	s.routes, s.joined, s.boots = map[string]*rocketmq.Route{}, map[string]bool{}, map[string]boot{}
	s.mu.Lock()
	s.tick, s.last = make(chan struct{}), time.Now()
	s.mu.Unlock()
	err = s.run(ctx)
	s.leave(ctx)
	return err
}

func (s *Source) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *Source) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case q := <-s.ended:
			if err := s.dropped(q); err != nil {
				return err
			}
			if s.once && s.allDone() {
				return nil
			}
		case <-s.changed:
		case <-timer.C:
		}
		if err := s.turn(ctx); err == errDone {
			return nil
		} else if err != nil {
			return err
		}
		timer.Reset(s.look)
	}
}

// turn does what is due: routes, heartbeats, members, queues. An error is one that trying again can't mend.
func (s *Source) turn(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	if s.checkStall(ctx) {
		return nil
	}
	if time.Since(s.routed) >= s.refresh {
		if err := s.lookup(ctx); err != nil {
			return err
		}
	}
	s.heartbeats(ctx)
	s.remind(ctx)
	return s.rebalance(ctx)
}

// lookup asks for the routes. Where that fails those of before stay.
func (s *Source) lookup(ctx context.Context) error {
	var failed error
	for _, t := range s.order {
		r, err := s.client.Route(ctx, t.Name)
		var static *rocketmq.ErrStatic
		switch {
		case errors.As(err, &static):
			return err
		case err != nil:
			failed = errors.Join(failed, err)
			if t.first == nil && rocketmq.IsCode(err, rocketmq.TopicMissing) {
				t.first = map[rocketmq.Queue]bool{}
			}
			continue
		}
		if t.first == nil {
			t.first = map[rocketmq.Queue]bool{}
			for _, q := range r.Read {
				t.first[q] = true
			}
		}
		s.mu.Lock()
		s.routes[t.Name] = r
		s.mu.Unlock()
	}
	if failed == nil {
		s.routed = time.Now()
	}
	s.trouble("routes", failed)
	return nil
}

// brokers are the masters' addresses of all topics.
func (s *Source) brokers() []string {
	set := map[string]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.routes {
		for _, a := range r.Masters {
			set[a] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// heartbeats keeps the membership at every broker; at once where a connection is new.
func (s *Source) heartbeats(ctx context.Context) {
	all := time.Since(s.beat) >= s.heartbeat || s.client.Dialed().After(s.beat)
	begin := time.Now()
	var failed error
	var mu sync.Mutex
	var wg sync.WaitGroup
	addrs := s.brokers()
	for _, a := range addrs {
		if !all && s.joined[a] {
			continue
		}
		wg.Go(func() {
			err := s.client.Heartbeat(ctx, a, s.member, s.cfg.Group, s.subscriptions())
			mu.Lock()
			defer mu.Unlock()
			s.joined[a] = err == nil
			if err != nil {
				failed = errors.Join(failed, err)
			}
		})
	}
	wg.Wait()
	if all && failed == nil && len(addrs) > 0 {
		s.beat = begin
		if d := s.client.Dialed(); d.After(begin) { // made by these very heartbeats
			s.beat = d
		}
	}
	if ctx.Err() == nil {
		s.trouble("membership", failed)
	}
}

func (s *Source) subscriptions() []rocketmq.Subscription {
	subs := make([]rocketmq.Subscription, len(s.order))
	for i, t := range s.order {
		subs[i] = t.sub
	}
	return subs
}

// settleTime is how long after a new connection to a broker the members that were known are believed in: a broker
// that was restarted learns them anew, one by one.
const settleTime = 4 * time.Second

// crowdTime is how long other members are overlooked by one that has the group alone: an instance of rsetl refuses to run and goes.
const crowdTime = 5 * time.Second

// rebalance looks who is in the group, and starts and revokes queues.
func (s *Source) rebalance(ctx context.Context) error {
	members := map[string]bool{}
	asked := false
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, a := range s.brokers() {
		wg.Go(func() {
			list, err := s.client.Members(ctx, a, s.cfg.Group)
			if err != nil {
				return // heartbeats and reads tell of it
			}
			mu.Lock()
			defer mu.Unlock()
			asked = true
			for _, m := range list {
				members[m] = true
			}
		})
	}
	wg.Wait()
	if time.Since(s.client.Dialed()) < settleTime {
		for _, m := range s.members {
			members[m] = true
		}
	}
	if !asked || !members[s.member] { // a broker that has just come back doesn't know this one yet: nothing changes
		return nil
	}
	now := slices.Sorted(maps.Keys(members))
	if s.alone && len(now) > 1 {
		if len(s.members) == 0 { // this one came second
			return fmt.Errorf("consumer group %s has %d other members: a pipeline that keeps state by keys (a window, dedupe) needs all queues to itself, since a key's messages may be on any of them; stop the other instances, give this one a group of its own, or keep the state in a database (`state: {remote: …}`), so that one instance runs and the others stand by", s.cfg.Group, len(now)-1)
		}
		if s.crowd.IsZero() {
			s.crowd = time.Now()
		}
		if time.Since(s.crowd) > crowdTime {
			s.trouble("group", fmt.Errorf("consumer group %s has %d other members, which may read the same messages as this pipeline: it keeps state by keys and reads all queues; give it a group of its own", s.cfg.Group, len(now)-1))
		}
		now = []string{s.member} // the other one refuses to run
	} else if s.alone {
		s.crowd = time.Time{}
		s.trouble("group", nil)
	}
	if !slices.Equal(now, s.members) {
		s.log.Info("members of the consumer group", "group", s.cfg.Group, "members", len(now))
		s.members = now
	}
	mine := map[rocketmq.Queue]*topic{}
	for _, t := range s.order {
		s.mu.Lock()
		r := s.routes[t.Name]
		s.mu.Unlock()
		if r == nil {
			continue
		}
		list, _ := rocketmq.Allocate(r.Read, now, s.member)
		for _, q := range list {
			mine[q] = t
		}
	}
	var begun []*queue
	s.mu.Lock()
	for k, q := range s.queues {
		if mine[k] == nil {
			q.cancel(errRevoked)
		}
	}
	for k, t := range mine {
		if s.queues[k] != nil || s.once && s.done(k) {
			continue // also one that is still being revoked: its end brings us here again
		}
		q := s.newQueue(k, t)
		s.queues[k] = q
		begun = append(begun, q)
	}
	s.mu.Unlock()
	for _, q := range begun {
		qctx, cancel := context.WithCancelCause(ctx)
		q.cancel = cancel
		go func() {
			q.err = s.serve(qctx, q, len(now) > 1)
			s.ended <- q
		}()
	}
	if s.once && len(mine) == 0 && len(s.queues) == 0 && len(s.routes) == len(s.order) {
		return errDone
	}
	return nil
}

// done tells whether a queue was read to its end. mu is held.
func (s *Source) done(k rocketmq.Queue) bool {
	for _, q := range s.opened {
		if q.Queue == k && q.done {
			return true
		}
	}
	return false
}

// allDone tells, with once, whether all of this instance's queues are read.
func (s *Source) allDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		if !q.done {
			return false
		}
	}
	return true
}

// dropped takes a queue out whose goroutine has ended.
func (s *Source) dropped(q *queue) error {
	s.trouble(q.String(), nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.done = q.over && q.err == nil; !q.done {
		delete(s.queues, q.Queue)
	}
	return q.err
}

// trouble notes what is being retried, nil where it works; the first by name is reported.
func (s *Source) trouble(what string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		if s.troubles[what] == nil {
			return
		}
		delete(s.troubles, what)
	} else {
		s.troubles[what] = err
	}
	for _, k := range slices.Sorted(maps.Keys(s.troubles)) {
		s.out.Trouble(s.troubles[k])
		return
	}
	s.out.Trouble(nil)
}

// checkStall leaves the group where no checkpoint has come for too long, and tells whether it is out of it.
func (s *Source) checkStall(ctx context.Context) bool {
	s.mu.Lock()
	pending := false
	for _, q := range s.opened {
		if q.unsettled() {
			pending = true
			break
		}
	}
	if !pending {
		s.last = time.Now()
	}
	since := time.Since(s.last)
	s.mu.Unlock()
	switch {
	case !s.stalled && pending && since >= s.cfg.Stall.D():
		s.stalled = true
		s.log.Warn("no checkpoint for too long; leaving the consumer group so that others take the queues", "group", s.cfg.Group, "stall", s.cfg.Stall.D())
		s.halt(errStalled)
		s.leaveGroup(ctx)
		s.trouble("stall", fmt.Errorf("no checkpoint for %s: this instance has left the consumer group %s until there is one", s.cfg.Stall.D(), s.cfg.Group))
	case s.stalled && !pending:
		s.stalled = false
		s.members = nil
		s.trouble("stall", nil)
		s.log.Info("checkpoints are made again; joining the consumer group", "group", s.cfg.Group)
		s.mu.Lock()
		s.last = time.Now()
		s.mu.Unlock()
	case s.stalled:
		s.overtaken(ctx)
	}
	return s.stalled
}

// overtaken gives the pipeline up where another instance has committed what this one still holds.
func (s *Source) overtaken(ctx context.Context) {
	s.mu.Lock()
	var held []*queue
	for _, q := range s.opened {
		if q.unsettled() {
			held = append(held, q)
		}
	}
	s.mu.Unlock()
	for _, q := range held {
		addr, err := s.addr(q)
		if err != nil {
			continue
		}
		at, ok, err := s.client.Offset(ctx, addr, s.cfg.Group, q.Queue)
		q.mu.Lock()
		beyond := err == nil && ok && at > q.committed
		q.mu.Unlock()
		if beyond {
			s.abort(fmt.Errorf("queue %s was taken over by another instance while this one made no checkpoint for %s", q, s.cfg.Stall.D()))
			return
		}
	}
}

// abort gives up what is not committed.
func (s *Source) abort(err error) {
	s.mu.Lock()
	s.aborted = true
	s.mu.Unlock()
	s.out.Abort(err)
}

// halt ends the queues' goroutines and waits for them.
func (s *Source) halt(cause error) {
	s.mu.Lock()
	running := map[*queue]bool{}
	for _, q := range s.queues {
		q.cancel(cause)
		running[q] = true
	}
	for _, q := range s.queues {
		if q.done {
			delete(running, q) // its goroutine has ended and was taken note of
		}
	}
	s.mu.Unlock()
	for len(running) > 0 {
		q := <-s.ended
		delete(running, q)
		s.dropped(q)
	}
	s.mu.Lock()
	clear(s.queues)
	s.mu.Unlock()
}

// leave ends the membership: what was read is committed first, where that doesn't take long.
func (s *Source) leave(ctx context.Context) {
	s.halt(errStop)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	s.mu.Lock()
	var held []*queue
	for _, q := range s.opened {
		if q.unsettled() && !s.aborted {
			held = append(held, q)
		}
	}
	s.mu.Unlock()
	for _, q := range held {
		if s.settle(ctx, q) != nil {
			break
		}
	}
	s.leaveGroup(ctx)
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.client.Close()
}

func (s *Source) leaveGroup(ctx context.Context) {
	var wg sync.WaitGroup
	for _, a := range s.brokers() {
		if s.joined[a] {
			wg.Go(func() { s.client.Leave(ctx, a, s.member, s.cfg.Group) })
		}
	}
	wg.Wait()
	clear(s.joined)
	s.beat = time.Time{}
}

// addr is the address of the broker that has the queue.
func (s *Source) addr(q *queue) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.routes[q.topic.Name]; r != nil && r.Masters[q.Broker] != "" {
		return r.Masters[q.Broker], nil
	}
	return "", fmt.Errorf("broker %s, which has queue %s, is not known to the name servers", q.Broker, q)
}
