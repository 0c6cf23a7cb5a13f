package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// chunk is one delivery: the first segments of one or several splits, of one generation.
type chunk struct {
	sinks.Chunk
	gen    uint64
	splits []*split
	bytes  int

	attempt  int
	rejected int64 // rows that this attempt rejected
	// letters are the rows whose letters are written, with the last attempt that rejected them. A
	// sink may reject a row again when its transaction did not commit.
	letters map[[2]int]int
}

func (ch *chunk) take(q *split) {
	t := q.head
	t.sealed = true // it is complete as it is delivered
	ch.gen = t.gen
	ch.splits = append(ch.splits, q)
	ch.bytes += len(t.data)
	if len(t.ends) > 0 {
		ch.Parts = append(ch.Parts, sinks.Part{Split: q.split, Data: t.data, Ends: t.ends, Pos: t.pos})
	}
}

// kick starts goroutines for what is due. c.mu is held by the caller.
func (c *Cache) kick() {
	if !c.started && !c.hopeless || c.stopped || c.run.Err() != nil {
		return
	}
	for c.active < c.cfg.InFlight && c.anyDue(time.Now()) {
		// The chunk is taken here, not by the goroutine, so that the next look sees what is left.
		ch := c.next()
		c.active++
		c.goroutines.Go(func() { c.work(ch) })
	}
}

// anyDue tells whether a chunk may be delivered now, and sets the timer where one will be later.
func (c *Cache) anyDue(now time.Time) bool {
	if len(c.due) == 0 {
		return false
	}
	k := c.due[0].key
	if c.marked != nil && (c.isMark || k.gen > c.open) {
		return false
	}
	if k.gen < c.gen || c.pressed > 0 || !k.at.After(now) {
		return true
	}
	if c.timerAt.IsZero() || k.at.Before(c.timerAt) {
		c.timerAt = k.at
		if c.timer == nil {
			c.timer = time.AfterFunc(k.at.Sub(now), c.wake)
		} else {
			c.timer.Reset(k.at.Sub(now))
		}
	}
	return false
}

func (c *Cache) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timerAt = time.Time{}
	c.kick()
}

// maxMisfits bounds the search for splits that fit into what is left of a chunk.
const maxMisfits = 16

// next makes a chunk of the split that is due first and those after it that fit, due or
// not: a thousand small splits make few chunks.
func (c *Cache) next() *chunk {
	ch := &chunk{}
	q := c.due.pop()
	rows := len(q.head.ends)
	ch.take(q)
	var misfits [maxMisfits]*split
	n := 0
	for len(c.due) > 0 && n < maxMisfits && rows < c.cfg.Size && c.due[0].key.gen == ch.gen {
		q := c.due.pop()
		if t := q.head; rows+len(t.ends) <= c.cfg.Size && ch.bytes+len(t.data) <= int(c.cfg.Bytes) {
			rows += len(t.ends)
			ch.take(q)
		} else {
			misfits[n] = q
			n++
		}
	}
	for _, q := range misfits[:n] {
		c.due.push(q, q.key)
	}
	return ch
}

// work delivers chunks until nothing is due.
func (c *Cache) work(ch *chunk) {
	for {
		done := c.send(ch)
		c.mu.Lock()
		if done {
			c.finish(ch)
		}
		c.broadcast()
		if !done || c.stopped || c.run.Err() != nil || !c.anyDue(time.Now()) {
			c.active--
			c.mu.Unlock()
			return
		}
		ch = c.next()
		c.kick() // finishing may have made more due than this goroutine takes
		c.mu.Unlock()
	}
}

// finish accounts for a delivered chunk and frees its segments. c.mu is held by the caller.
func (c *Cache) finish(ch *chunk) {
	g := &c.gens[ch.gen-c.first]
	rows := int64(ch.Rows())
	skipped := min(int64(ch.Skipped), rows-ch.rejected)
	g.Delivered += rows - ch.rejected - skipped
	g.Rejected += ch.rejected
	g.Skipped += skipped
	c.rows -= rows
	for i, q := range ch.splits {
		t := q.head
		g.pending--
		g.Rejected += int64(len(t.rejects))
		c.rows -= int64(len(t.rejects))
		c.bytes -= t.cost()
		q.head = t.next
		c.pools.put(t)
		ch.splits[i] = nil
		if q.head != nil {
			c.due.push(q, c.key(q.head))
			continue
		}
		q.tail = nil
		delete(c.splits, q.split)
		q.split = nil
		if len(c.spare) < maxSpare {
			c.spare = append(c.spare, q)
		}
	}
}

const maxSpare = 64

// send delivers a chunk, with as many attempts as it takes. It gives false where the cache
// was stopped first; then nothing is known to be delivered.
func (c *Cache) send(ch *chunk) bool {
	if c.retry(c.run, atLetters, func(context.Context) error { return c.refused(ch) }) != nil {
		return false
	}
	if len(ch.Parts) == 0 {
		return true
	}
	ch.Letters = func(rejects []sinks.Reject) error { return c.letters(ch, rejects) }
	var rejects []sinks.Reject
	given := false
	err := c.retry(c.run, "deliver", func(context.Context) error {
		var err error
		if rejects, err = c.attempt(ch); err != nil && !sinks.IsPermanent(err) && c.run.Err() == nil && c.givesUp() {
			rejects, given = c.abandon(ch, err), true
			return errGivenUp
		}
		return err
	})
	if given {
		err = nil
	}
	if err != nil {
		return false
	}
	if len(rejects) == 0 {
		return true
	}
	// The chunk is delivered: what is left to do must not be given up for Stop unless letters can't be written.
	return c.retry(c.run, atLetters, func(context.Context) error { return ch.Letters(rejects) }) == nil ||
		ch.Letters(rejects) == nil
}

// errGivenUp ends the attempts of a chunk; the sink is as blocked as before.
var errGivenUp = errors.New("given up")

// errNotStarted: the sink's Start has not succeeded.
var errNotStarted = errors.New("the sink could not be started")

// abandon gives the rows that a chunk's dead letters are for.
func (c *Cache) abandon(ch *chunk, err error) []sinks.Reject {
	c.mu.Lock()
	if c.lastErr != nil && errors.Is(err, errNotStarted) {
		err = c.lastErr
	}
	reason := fmt.Sprintf("given up, as the sink has failed since %s: %v", c.since.UTC().Format(time.RFC3339), err)
	c.mu.Unlock()
	ch.attempt++
	ch.rejected, ch.Skipped = 0, 0
	var out []sinks.Reject
	if a, ok := c.sink.(sinks.Abandoner); ok {
		out = a.Abandon(&ch.Chunk)
	} else {
		for i := range ch.Parts {
			for k := range ch.Parts[i].Ends {
				out = append(out, sinks.Reject{Part: i, Row: k})
			}
		}
	}
	for i := range out {
		if out[i].Reason == "" {
			out[i].Reason = reason
		}
	}
	return out
}

// maxPrepare bounds how often one attempt prepares the sink before that counts as a failure.
const maxPrepare = 3

func (c *Cache) attempt(ch *chunk) ([]sinks.Reject, error) {
	for n := 0; ; n++ {
		if c.prep != nil && !c.prep.Ready() {
			if n == maxPrepare {
				return nil, sinks.ErrUnprepared
			}
			if err := c.prepare(); err != nil {
				return nil, err
			}
		}
		if c.notStarted() {
			return nil, errNotStarted
		}
		ch.attempt++
		ch.rejected, ch.Skipped = 0, 0
		rejects, err := c.sink.Deliver(c.deliver, &ch.Chunk)
		if err == nil || c.prep == nil || !errors.Is(err, sinks.ErrUnprepared) || c.prep.Ready() {
			return rejects, err
		}
	}
}

func (c *Cache) notStarted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.started
}

// prepare has the sink's next state committed.
func (c *Cache) prepare() error {
	state, err := c.prep.Prepare(c.deliver)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	if err := c.o.Commit(c.deliver, state); err != nil {
		return fmt.Errorf("commit before the first delivery: %w", err)
	}
	if err := c.prep.Prepared(c.deliver); err != nil {
		return fmt.Errorf("after the commit: %w", err)
	}
	return nil
}

// refused writes the letters of records that could not be encoded.
func (c *Cache) refused(ch *chunk) error {
	n := 0
	for i, q := range ch.splits {
		t := q.head
		from := 0
		for k := range t.rejects {
			r := &t.rejects[k]
			l := deadletter.Letter{Reason: r.Reason, Split: q.split, Pos: r.Pos, Record: t.text[from:r.record]}
			if r.hasRaw {
				l.Raw = t.text[r.record:r.raw]
			}
			from = r.raw
			n++
			key := [2]int{-1 - i, k}
			if _, ok := ch.letters[key]; ok {
				continue
			}
			if err := c.letter(&l); err != nil {
				return err
			}
			ch.written(key, 0)
		}
	}
	if n == 0 {
		return nil
	}
	return c.o.Letters.Sync()
}

// letters writes and syncs the letters of rows that the sink rejected.
func (c *Cache) letters(ch *chunk, rejects []sinks.Reject) error {
	var scratch []byte
	for _, r := range rejects {
		if r.Part < 0 || r.Part >= len(ch.Parts) || r.Row < 0 || r.Row >= len(ch.Parts[r.Part].Ends) {
			return fmt.Errorf("sink %s rejects row %d of part %d, which the chunk doesn't have", c.o.Name, r.Row, r.Part)
		}
		key := [2]int{r.Part, r.Row}
		at, ok := ch.letters[key]
		if !ok {
			p := &ch.Parts[r.Part]
			scratch = c.describe(scratch[:0], p.Row(r.Row))
			if err := c.letter(&deadletter.Letter{Reason: r.Reason, Split: p.Split, Pos: p.Pos[r.Row], Record: scratch}); err != nil {
				return err
			}
		}
		if !ok || at != ch.attempt {
			ch.written(key, ch.attempt)
			ch.rejected++
		}
	}
	if len(rejects) == 0 {
		return nil
	}
	return c.o.Letters.Sync()
}

func (ch *chunk) written(key [2]int, attempt int) {
	if ch.letters == nil {
		ch.letters = map[[2]int]int{}
	}
	ch.letters[key] = attempt
}

func (c *Cache) letter(l *deadletter.Letter) error {
	l.Time, l.Pipeline, l.Sink = c.o.Now(), c.o.Pipeline, c.o.Name
	return c.o.Letters.Append(l)
}

// describe shows an encoded row as a JSON object.
func (c *Cache) describe(dst, row []byte) []byte {
	if c.desc != nil {
		return c.desc.Describe(dst, row)
	}
	for len(row) > 0 && (row[len(row)-1] == '\n' || row[len(row)-1] == '\r') {
		row = row[:len(row)-1]
	}
	if len(row) > 0 && row[0] == '{' && json.Valid(row) {
		return append(dst, row...)
	}
	dst = append(dst, `{"row":`...)
	dst = record.AppendJSONString(dst, row)
	return append(dst, '}')
}
