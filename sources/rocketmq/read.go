package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
)

const (
	// pullMessages is how many messages are asked for at a time; a broker gives 32 unless it is told otherwise.
	pullMessages = 256
	// batchMessages ends a batch.
	batchMessages = 512
	// longPoll is how long the broker waits for a message where there is none.
	longPoll = 15 * time.Second
)

var errReset = errors.New("the broker's offset was moved")

// read reads and sends until ctx ends, the queue is read (once), or its position was moved (errReset).
func (s *Source) read(ctx context.Context, q *queue) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var bodies [][]byte
	size, count := 0, 0
	q.mu.Lock()
	offset := q.sent
	q.interrupt = cancel
	q.mu.Unlock()
	flushed := offset
	idle := false
	flush := func() error {
		if offset == flushed {
			return nil
		}
		if idle {
			idle = false
			s.out.Idle(q.split, false)
		}
		err := s.batch(ctx, q, bodies, size, flushed, offset)
		clear(bodies)
		bodies, size, count, flushed = bodies[:0], 0, 0, offset
		return err
	}
	limit := int(s.cfg.BatchBytes)
	wait := time.Duration(0)
	for {
		q.mu.Lock()
		reset := q.reset
		q.mu.Unlock()
		if reset {
			return errReset
		}
		if s.once && offset >= q.target {
			return flush()
		}
		var p rocketmq.Pulled
		err := s.retry(ctx, q, func(addr string) (err error) {
			p, err = s.client.Pull(ctx, addr, s.cfg.Group, q.Queue, &q.topic.sub, offset, pullMessages, limit, wait)
			return err
		})
		if err != nil {
			return err
		}
		q.mu.Lock()
		q.end = p.End
		q.mu.Unlock()
		wait = 0
		switch p.Code {
		case rocketmq.Success:
			if p.Next <= offset {
				return fmt.Errorf("%s: the broker answers a read at %d with messages that end at %d", q, offset, p.Next)
			}
			bodies = append(bodies, p.Body)
			size += len(p.Body)
			count += len(p.Body) / 128
			offset = p.Next
			if size < limit && count < batchMessages {
				continue
			}
		case rocketmq.PullOffsetMoved:
			if err := flush(); err != nil {
				return err
			}
			return errReset
		default:
			if p.Next > offset { // what the filter left out
				offset = p.Next
				if p.Code == rocketmq.PullRetry && offset-flushed < 1<<16 {
					continue
				}
				break
			}
			if offset > flushed {
				break
			}
			if !idle {
				idle = true
				s.out.Idle(q.split, true)
			}
			wait = longPoll
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
}

// slots are the fields that the plan reads, -1 for the others.
type slots struct {
	message, topic, broker, queue, offset, keys, tags, properties, born, stored, split, received, source int
}

func findSlots(t *record.Table) slots {
	return slots{message: t.Find("message"), topic: t.Find("@topic"), broker: t.Find("@broker"), queue: t.Find("@queue"), offset: t.Find("@offset"),
		keys: t.Find("@keys"), tags: t.Find("@tags"), properties: t.Find("@properties"), born: t.Find("@born"), stored: t.Find("@stored"),
		split: t.Find("@split"), received: t.Find("@received"), source: t.Find("@source")}
}

// batch makes a batch of what was read and sends it.
func (s *Source) batch(ctx context.Context, q *queue, bodies [][]byte, size int, from, to int64) error {
	var first rocketmq.Message
	if len(bodies) > 0 {
		if _, err := rocketmq.Next(bodies[0], &first); err == nil { // before the wait for memory, which may be long
			q.note(from, first.Stored)
		}
	}
	b, err := s.out.Batch(ctx, q.split, 2*size+1024)
	if err != nil {
		return err
	}
	b.Start, b.End = record.Position{Offset: from}, record.Position{Offset: to}
	f := filler{s: s, q: q, b: b, next: from, received: s.now()}
	f.constants()
	for _, p := range bodies {
		for len(p) > 0 {
			var m rocketmq.Message
			if p, err = rocketmq.Next(p, &m); err != nil {
				s.out.Return(b)
				return fmt.Errorf("%s: between %d and %d: %w", q, from, to, err)
			}
			f.message(&m)
		}
	}
	return s.send(ctx, q, b)
}

// filler makes records of messages.
type filler struct {
	s        *Source
	q        *queue
	b        *record.Batch
	next     int64 // the first offset that is not in the batch yet
	received time.Time

	topic, broker, split, source record.Value
	props                        []record.Value
}

func (f *filler) constants() {
	s, b := f.s, f.b
	if s.slots.topic >= 0 {
		f.topic = b.PutString(f.q.topic.Name)
	}
	if s.slots.broker >= 0 {
		f.broker = b.PutString(f.q.Broker)
	}
	if s.slots.split >= 0 {
		f.split = b.PutString(f.q.split.ID)
	}
	if s.slots.source >= 0 {
		f.source = b.PutString(s.source)
	}
}

// message takes a message as the broker stores it.
func (f *filler) message(m *rocketmq.Message) {
	if m.Inner == 0 {
		f.add(m, "")
		return
	}
	if m.Problems != "" {
		f.add(m, m.Problems)
		return
	}
	base := m.Offset
	if !m.Unwrap {
		f.add(m, fmt.Sprintf("it holds %d messages in a form that rsetl doesn't know", m.Inner))
		return
	}
	if m.Compressed() {
		body, err := m.AppendBody(nil, 16*int(f.s.cfg.MaxMessage))
		if err != nil {
			f.add(m, fmt.Sprintf("it holds %d messages: %v", m.Inner, err))
			return
		}
		m.Body = body
		m.SysFlag = 0
	}
	rest := m.Body
	for i := range m.Inner {
		one := *m
		one.Offset, one.SysFlag = base+int64(i), 0
		var err error
		if rest, err = rocketmq.NextInner(rest, &one); err != nil {
			m.Offset = base + int64(i)
			f.add(m, fmt.Sprintf("it holds %d messages, of which %d could be read: %v", m.Inner, i, err))
			return
		}
		f.add(&one, "")
	}
}

// add makes a record of one message. bad is why it can't be read, "": it can.
func (f *filler) add(m *rocketmq.Message, bad string) {
	s, b := f.s, f.b
	if m.Offset < f.next { // of a batch that begins before the position
		return
	}
	if t := f.q.topic.tags; len(t) > 0 && !has(t, m.Prop("TAGS")) {
		return
	}
	f.next = m.Offset + 1
	start := len(b.Buf)
	var err error
	if bad == "" {
		if b.Buf, err = m.AppendBody(b.Buf, int(s.cfg.MaxMessage)); err != nil {
			bad = err.Error()
		}
	}
	if bad != "" && len(b.Buf) == start {
		b.Buf = append(b.Buf, m.Body[:min(len(m.Body), int(s.cfg.MaxMessage))]...)
	}
	text := b.Since(start)
	r := b.Add(record.Position{Offset: m.Offset}, text)
	if bad == "" && f.q.origin.repeated(m.Prop(rocketmq.OriginProp)) {
		b.Sel = b.Sel[:len(b.Sel)-1]
		b.Filtered++
		return
	}
	row := b.Row(r)
	put := func(slot int, v record.Value) {
		if slot >= 0 {
			row[slot] = v
		}
	}
	put(s.slots.message, text)
	put(s.slots.topic, f.topic)
	put(s.slots.broker, f.broker)
	put(s.slots.split, f.split)
	put(s.slots.source, f.source)
	put(s.slots.queue, record.MakeInt(int64(f.q.ID)))
	put(s.slots.offset, record.MakeInt(m.Offset))
	put(s.slots.born, millis(m.Born))
	put(s.slots.stored, millis(m.Stored))
	if s.slots.received >= 0 {
		row[s.slots.received] = record.MakeTime(f.received.Unix(), uint32(f.received.Nanosecond()/1e6*1e6), 3)
	}
	if s.slots.keys >= 0 {
		if v := m.Prop("KEYS"); v != nil {
			row[s.slots.keys] = b.PutBytes(v)
		}
	}
	if s.slots.tags >= 0 {
		if v := m.Prop("TAGS"); v != nil {
			row[s.slots.tags] = b.PutBytes(v)
		}
	}
	if s.slots.properties >= 0 {
		f.props = f.props[:0]
		m.EachProp(func(k, v []byte) { f.props = append(f.props, b.PutBytes(k), b.PutBytes(v)) })
		row[s.slots.properties] = b.PutItems(record.Map, f.props)
	}
	if bad != "" {
		b.FailRecord(r, bad)
	}
}

func has(list []string, tag []byte) bool {
	for _, t := range list {
		if t == string(tag) {
			return true
		}
	}
	return false
}

func millis(ms int64) record.Value {
	sec, rest := ms/1000, ms%1000
	if rest < 0 {
		sec, rest = sec-1, rest+1000
	}
	return record.MakeTime(sec, uint32(rest)*1e6, 3)
}
