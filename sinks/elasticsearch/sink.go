package elasticsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// Sink sends bulk requests.
type Sink struct {
	c                          *Config
	pipeline, name, op         string
	enc                        *record.Encoder
	index, id, routing, ingest *expr.TemplateProgram
	version                    *expr.Program
	daySlot                    int       // of the time whose day makes the index; -1: it is made of more
	scratch                    sync.Pool // *scratch
	bodies                     sync.Pool // *[]byte
	progresses                 sync.Pool // *progress

	transport *http.Transport
	do        *doer
	client    atomic.Pointer[nodes]
	log       *slog.Logger
	largest   atomic.Int64 // bytes of a request at most, learned from a 413; 0: not known

	mu      sync.Mutex
	running map[*sinks.Chunk]*progress // chunks that were delivered in part
}

var (
	_ sinks.Sink       = (*Sink)(nil)
	_ sinks.Starter    = (*Sink)(nil)
	_ sinks.Identified = (*Sink)(nil)
	_ sinks.Describer  = (*Sink)(nil)
	_ sinks.Abandoner  = (*Sink)(nil)
	_ sinks.Prober     = (*Sink)(nil)
)

// Identify takes the name that the default ids are made of.
func (s *Sink) Identify(pipeline string) { s.pipeline = pipeline }

// Start connects and asks a node for its version.
func (s *Sink) Start(ctx context.Context, env *sinks.Env) error {
	s.log = env.Log
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.do == nil {
		if err := s.connect(); err != nil {
			return err
		}
	}
	a, err := s.request(ctx, "GET", "/", nil, nil)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusForbidden: // asking may be forbidden where writing isn't
		return nil
	case a.status >= 300:
		return s.refused(a)
	}
	var about struct {
		Version struct{ Number string }
	}
	json.Unmarshal(a.body, &about)
	s.log.Debug("connected to Elasticsearch", "sink", s.name, "version", about.Version.Number)
	return nil
}

// Probe asks a node for its version.
func (s *Sink) Probe(ctx context.Context) error {
	defer s.Stop(ctx)
	return s.Start(ctx, &sinks.Env{})
}

func (s *Sink) Stop(context.Context) error {
	s.mu.Lock()
	clear(s.running)
	s.mu.Unlock()
	if s.do != nil {
		s.transport.CloseIdleConnections()
		s.do = nil
	}
	return nil
}

// What became of a row.
const (
	waiting uint8 = iota
	done
	skipped
	rejected
)

// progress is what became of a chunk's rows, over all attempts.
type progress struct {
	rows    []place
	state   []uint8 // of rows
	reasons map[int]string
	tries   map[int]int // of rows that made the server stumble
	again   bool        // there was an attempt before
	todo    []int
	answers []itemAnswer

	// Of this attempt.
	failed     int    // rows that are to be tried again
	why        string // for the first of them
	retryAfter time.Duration
}

type place struct{ part, row int }

func (s *Sink) progress(c *sinks.Chunk) *progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.running[c]; p != nil {
		p.again, p.failed, p.why, p.retryAfter = true, 0, "", 0
		return p
	}
	p, _ := s.progresses.Get().(*progress)
	if p == nil {
		p = &progress{}
	}
	n := c.Rows()
	*p = progress{rows: slices.Grow(p.rows[:0], n), state: slices.Grow(p.state[:0], n)[:n], todo: p.todo[:0], answers: p.answers[:0]}
	clear(p.state)
	for i := range c.Parts {
		for k := range c.Parts[i].Ends {
			p.rows = append(p.rows, place{i, k})
		}
	}
	s.running[c] = p
	return p
}

// Deliver sends what of the chunk isn't settled yet. What is settled stays so when the chunk is tried again.
func (s *Sink) Deliver(ctx context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	p := s.progress(c)
	if p.again && s.op != "create" && s.version == nil {
		s.reopen(c, p)
	}
	p.todo = p.todo[:0]
	for i, st := range p.state {
		if st == waiting {
			p.todo = append(p.todo, i)
		}
	}
	if err := s.send(ctx, c, p, p.todo); err != nil {
		return nil, err
	}
	if p.failed > 0 {
		err := fmt.Errorf("elasticsearch: %d of %d items were not taken, the first with %s", p.failed, len(p.rows), p.why)
		if p.retryAfter > 0 {
			err = sinks.RetryAfter(err, p.retryAfter)
		}
		return nil, err
	}
	defer s.forget(c)
	var rejects []sinks.Reject
	for i, st := range p.state {
		switch st {
		case skipped:
			c.Skipped++
		case rejected:
			rejects = append(rejects, sinks.Reject{Part: p.rows[i].part, Row: p.rows[i].row, Reason: p.reasons[i]})
		}
	}
	return rejects, nil
}

// Abandon gives the rows of a chunk that are not in.
func (s *Sink) Abandon(c *sinks.Chunk) (out []sinks.Reject) {
	p := s.progress(c)
	defer s.forget(c)
	for i, st := range p.state {
		switch st {
		case skipped:
			c.Skipped++
		case waiting, rejected:
			out = append(out, sinks.Reject{Part: p.rows[i].part, Row: p.rows[i].row, Reason: p.reasons[i]})
		}
	}
	return out
}

func (s *Sink) forget(c *sinks.Chunk) {
	s.mu.Lock()
	p := s.running[c]
	delete(s.running, c)
	s.mu.Unlock()
	if p != nil {
		clear(p.answers[:cap(p.answers)])
		s.progresses.Put(p)
	}
}

// reopen has rows sent again that are settled but behind a waiting one of the same id: else the older would go over the newer.
func (s *Sink) reopen(c *sinks.Chunk, p *progress) {
	waits := map[string]bool{}
	for i, st := range p.state {
		at := p.rows[i]
		row := c.Parts[at.part].Row(at.row)
		row = row[:bytes.IndexByte(row, '\n')]
		switch {
		case st == waiting:
			waits[string(row)] = true
		case st == done && waits[string(row)]:
			p.state[i] = waiting
		}
	}
}

// send sends rows in one request, or in several where that is too large or refused.
func (s *Sink) send(ctx context.Context, c *sinks.Chunk, p *progress, rows []int) error {
	if len(rows) == 0 {
		return nil
	}
	payload, buf := s.payload(c, p, rows)
	if buf != nil {
		defer s.bodies.Put(buf)
	}
	if most := s.largest.Load(); most > 0 && int64(len(payload)) > most && len(rows) > 1 {
		return s.halves(ctx, c, p, rows)
	}
	a, err := s.request(ctx, "POST", "/_bulk", url.Values{"filter_path": {filterPath}}, payload)
	if err != nil {
		return err
	}
	switch {
	case a.status == http.StatusOK:
		return s.settle(p, rows, a)
	case a.status == http.StatusRequestEntityTooLarge && len(rows) > 1:
		s.largest.Store(max(int64(len(payload))/2, 64<<10))
		return s.halves(ctx, c, p, rows)
	case a.status == http.StatusBadRequest && len(rows) > 1:
		return s.halves(ctx, c, p, rows)
	case a.status == http.StatusBadRequest || a.status == http.StatusRequestEntityTooLarge:
		p.reject(rows[0], "the request with this document alone: "+a.explain())
		return nil
	}
	return s.refused(a)
}

func (s *Sink) halves(ctx context.Context, c *sinks.Chunk, p *progress, rows []int) error {
	mid := len(rows) / 2
	if err := s.send(ctx, c, p, rows[:mid]); err != nil {
		return err
	}
	return s.send(ctx, c, p, rows[mid:])
}

// payload is the rows' bytes: those of the chunk itself where they are all of one part, else in a buffer.
func (s *Sink) payload(c *sinks.Chunk, p *progress, rows []int) (data []byte, buf *[]byte) {
	first, last := p.rows[rows[0]], p.rows[rows[len(rows)-1]]
	if first.part == last.part && last.row-first.row == len(rows)-1 {
		part := &c.Parts[first.part]
		from := 0
		if first.row > 0 {
			from = part.Ends[first.row-1]
		}
		return part.Data[from:part.Ends[last.row]], nil
	}
	buf, _ = s.bodies.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	data = (*buf)[:0]
	for _, i := range rows {
		at := p.rows[i]
		data = append(data, c.Parts[at.part].Row(at.row)...)
	}
	*buf = data
	return data, buf
}

// maxTries is how often an item is sent that makes the server fail (500) before it counts as the culprit.
const maxTries = 6

// settle takes down what the answer says of each row; nothing, where it can't be read as a whole.
func (s *Sink) settle(p *progress, rows []int, a *answer) error {
	p.answers = p.answers[:0]
	n, err := items(a.body, func(_, status int, raw []byte) { p.answers = append(p.answers, itemAnswer{status, raw}) })
	if err == nil && n != len(rows) {
		err = fmt.Errorf("%w: it has %d items for %d", errAnswer, n, len(rows))
	}
	if err != nil {
		return err
	}
	for k := range p.answers {
		it := &p.answers[k]
		i := rows[k]
		switch {
		case it.status < 300:
			p.state[i] = done
		case it.status == http.StatusConflict && (s.op == "create" || s.version != nil):
			p.state[i] = skipped
		default:
			p.failure(i, it)
		}
	}
	if p.failed > 0 {
		p.retryAfter = max(p.retryAfter, a.retryAfter)
	}
	return nil
}

// itemAnswer is what the answer says of one row.
type itemAnswer struct {
	status int
	err    []byte
}

// failure decides whether a row that was not taken is tried again.
func (p *progress) failure(i int, it *itemAnswer) {
	f := parseFailure(it.err)
	switch {
	case it.status == http.StatusInternalServerError:
		if p.tries == nil {
			p.tries = map[int]int{}
		}
		if p.tries[i]++; p.tries[i] >= maxTries {
			p.reject(i, fmt.Sprintf("%d %s (%d times)", it.status, f, maxTries))
			return
		}
	case it.status > 500, it.status == http.StatusTooManyRequests, it.status == http.StatusConflict, it.status == http.StatusRequestTimeout,
		it.status == http.StatusUnauthorized, it.status == http.StatusForbidden, setup(f):
	default:
		p.reject(i, fmt.Sprintf("%d %s", it.status, f))
		return
	}
	if p.failed++; p.failed == 1 {
		p.why = fmt.Sprintf("%d %s", it.status, f)
	}
}

// setup tells of an answer that is about the cluster, not the document: it has as many shards as it may, or has no
// such ingest pipeline.
func setup(f *failure) bool {
	switch f.Type {
	case "validation_exception", "illegal_argument_exception":
		if strings.Contains(f.Reason, "shards open") || strings.HasPrefix(f.Reason, "pipeline with id [") {
			return true
		}
	}
	return f.CausedBy != nil && setup(f.CausedBy)
}

func (p *progress) reject(i int, reason string) {
	if p.reasons == nil {
		p.reasons = map[int]string{}
	}
	p.state[i], p.reasons[i] = rejected, reason
}

// refused is the error of an answer that refuses the request, whatever is in it.
func (s *Sink) refused(a *answer) error {
	hint := ""
	switch a.status {
	case http.StatusUnauthorized:
		hint = "; check user and password, or api_key"
	case http.StatusForbidden:
		hint = "; the user needs the privileges create_index, create, index for these indexes (and write for updates)"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		hint = "; is this Elasticsearch, and the URL in hosts its root?"
	case http.StatusNotAcceptable, http.StatusUnsupportedMediaType:
		hint = "; see compatible_with"
	}
	if 300 <= a.status && a.status < 400 {
		hint = "; it sends elsewhere: give that URL in hosts"
	}
	err := errors.New("elasticsearch answers " + a.explain() + hint)
	if a.retryAfter > 0 {
		err = sinks.RetryAfter(err, a.retryAfter)
	}
	return err
}
