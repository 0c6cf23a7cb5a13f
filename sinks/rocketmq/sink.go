package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// Sink sends messages.
type Sink struct {
	cfg        *Config
	origin     string // how origins begin
	constTopic []byte // nil: the topic is a template
	topic      *expr.TemplateProgram
	body       *expr.TemplateProgram
	json       *record.Encoder // nil where body is there
	key, tag   *expr.TemplateProgram
	shard      *expr.TemplateProgram
	props      []prop
	fixed      []byte // properties that all messages have
	scratch    sync.Pool

	client *rocketmq.Client
	log    *slog.Logger

	mu       sync.Mutex
	routes   map[string]*route
	progress map[*sinks.Chunk]*progress
}

var (
	_ sinks.Sink      = (*Sink)(nil)
	_ sinks.Starter   = (*Sink)(nil)
	_ sinks.Describer = (*Sink)(nil)
	_ sinks.Abandoner = (*Sink)(nil)
	_ sinks.Prober    = (*Sink)(nil)
)

type route struct {
	*rocketmq.Route
	asked time.Time
}

// routeAge is how long a route is used; an error makes it be asked for again at once.
const routeAge = 30 * time.Second

// progress is what is settled of a chunk that is tried again: rows by number over all parts.
type progress struct {
	settled []bool
	rejects []sinks.Reject
}

// Start looks the topic up where it is the same for all records.
func (s *Sink) Start(ctx context.Context, env *sinks.Env) error {
	s.log = env.Log
	return s.open(ctx)
}

func (s *Sink) open(ctx context.Context) (err error) {
	if s.client == nil {
		if s.client, err = s.cfg.Connection.Client(nil); err != nil {
			return err
		}
	}
	if s.constTopic == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err = s.route(ctx, string(s.constTopic))
	var static *rocketmq.ErrStatic
	if errors.As(err, &static) {
		return sinks.Permanent(err)
	}
	return err
}

// Stop closes the connections.
func (s *Sink) Stop(context.Context) error {
	if s.client != nil {
		s.client.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.progress)
	return nil
}

// Probe looks the topic up.
func (s *Sink) Probe(ctx context.Context) error {
	defer s.Stop(ctx)
	return s.open(ctx)
}

func (s *Sink) route(ctx context.Context, topic string) (*rocketmq.Route, error) {
	s.mu.Lock()
	r := s.routes[topic]
	s.mu.Unlock()
	if r != nil && time.Since(r.asked) < routeAge {
		return r.Route, nil
	}
	now, err := s.client.Route(ctx, topic)
	switch {
	case rocketmq.IsCode(err, rocketmq.TopicMissing):
		return nil, fmt.Errorf("topic %s doesn't exist; create it, as with `mqadmin updateTopic`: %w", topic, err)
	case err == nil && len(now.Write) == 0:
		return nil, fmt.Errorf("topic %s has no queue that may be written to", topic)
	case err == nil:
		s.mu.Lock()
		s.routes[topic] = &route{now, time.Now()}
		s.mu.Unlock()
		return now, nil
	}
	var static *rocketmq.ErrStatic
	if r != nil && !errors.As(err, &static) { // the name servers are away; the brokers may be there
		return r.Route, nil
	}
	return nil, err
}

// lane is what a chunk has for one queue, in order.
type lane struct {
	queue rocketmq.Queue
	addr  string
	rows  []place
}

type place struct{ part, row, n int }

// maxLanes bounds the queues that are sent to at a time.
const maxLanes = 8

// Deliver sends what of the chunk is not settled yet. Queues are sent to side by side, each in order.
func (s *Sink) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	s.mu.Lock()
	p := s.progress[c]
	if p == nil {
		p = &progress{settled: make([]bool, c.Rows())}
		s.progress[c] = p
	}
	s.mu.Unlock()
	lanes, err := s.lanes(ctx, c, p)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(lanes))
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, maxLanes)
	for i, l := range lanes {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			errs[i] = s.sendLane(ctx, c, p, l, &mu)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		s.mu.Lock()
		for _, r := range s.routes {
			r.asked = time.Time{}
		}
		s.mu.Unlock()
		if rocketmq.IsCode(err, rocketmq.SystemBusy, rocketmq.FlowControl) {
			return nil, sinks.RetryAfter(err, 500*time.Millisecond)
		}
		return nil, err
	}
	s.mu.Lock()
	delete(s.progress, c)
	s.mu.Unlock()
	return p.rejects, nil
}

// lanes puts the rows to their queues.
func (s *Sink) lanes(ctx context.Context, c *sinks.Chunk, p *progress) ([]*lane, error) {
	var out []*lane
	by := map[rocketmq.Queue]*lane{}
	var last *rocketmq.Route
	var lastTopic []byte
	n := 0
	for pi := range c.Parts {
		for i := range c.Parts[pi].Ends {
			at := place{pi, i, n}
			n++
			if p.settled[at.n] {
				continue
			}
			r := s.decode(c.Parts[pi].Row(i))
			if last == nil || string(r.topic) != string(lastTopic) {
				route, err := s.route(ctx, string(r.topic))
				if err != nil {
					return nil, err
				}
				last, lastTopic = route, r.topic
			}
			q := last.Write[int(uint64(r.hash)*uint64(len(last.Write))>>32)]
			l := by[q]
			if l == nil {
				l = &lane{queue: q, addr: last.Masters[q.Broker]}
				by[q] = l
				out = append(out, l)
			}
			l.rows = append(l.rows, at)
		}
	}
	return out, nil
}

func (s *Sink) sendLane(ctx context.Context, c *sinks.Chunk, p *progress, l *lane, mu *sync.Mutex) error {
	var buf []byte
	from := 0
	send := func(to int) error {
		if err := s.send(ctx, c, p, l, l.rows[from:to], buf, mu); err != nil {
			return err
		}
		from, buf = to, buf[:0]
		return nil
	}
	limit := int(s.cfg.MaxMessage) * 3 / 4
	for i, at := range l.rows {
		m := s.decode(c.Parts[at.part].Row(at.row)).message
		if i > from && (len(buf)+len(m) > limit || len(s.fixed) > 0) {
			if err := send(i); err != nil {
				return err
			}
		}
		buf = append(buf, m...)
	}
	return send(len(l.rows))
}

// send sends rows as one batch; where it is refused for its content, its halves.
func (s *Sink) send(ctx context.Context, c *sinks.Chunk, p *progress, l *lane, rows []place, batch []byte, mu *sync.Mutex) error {
	var err error
	if len(rows) == 1 {
		var m rocketmq.Message
		if _, err = rocketmq.NextInner(batch, &m); err == nil {
			err = s.client.Send(ctx, l.addr, l.queue, 0, m.Body, m.Props)
		}
	} else {
		err = s.client.SendBatch(ctx, l.addr, l.queue, batch)
	}
	refused := rocketmq.IsCode(err, rocketmq.MessageIllegal) || tooLong(err)
	switch {
	case err != nil && !refused:
		return err
	case refused && len(rows) > 1:
		half := len(rows) / 2
		cut := 0
		for _, at := range rows[:half] {
			cut += len(s.decode(c.Parts[at.part].Row(at.row)).message)
		}
		if err := s.send(ctx, c, p, l, rows[:half], batch[:cut], mu); err != nil {
			return err
		}
		return s.send(ctx, c, p, l, rows[half:], batch[cut:], mu)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, at := range rows {
		p.settled[at.n] = true
		if refused {
			p.rejects = append(p.rejects, sinks.Reject{Part: at.part, Row: at.row, Reason: err.Error()})
		}
	}
	return nil
}

// tooLong tells whether a broker refuses a batch for the length of a message, which it may do with a system error.
func tooLong(err error) bool {
	var e *rocketmq.Error
	return errors.As(err, &e) && e.Code == rocketmq.SystemError && strings.Contains(e.Remark, "size exceeded")
}

// Abandon gives the rows that are not settled.
func (s *Sink) Abandon(c *sinks.Chunk) []sinks.Reject {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.progress[c]
	delete(s.progress, c)
	if p == nil {
		p = &progress{settled: make([]bool, c.Rows())}
	}
	out := p.rejects
	n := 0
	for pi := range c.Parts {
		for i := range c.Parts[pi].Ends {
			if !p.settled[n] {
				out = append(out, sinks.Reject{Part: pi, Row: i})
			}
			n++
		}
	}
	return out
}
