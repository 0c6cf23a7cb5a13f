package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/text"
	"github.com/rsetl/rsetl/state"
)

const (
	blockSize   = 128 << 10
	turnBlocks  = 8                     // blocks that a file is read for before the next one's turn
	minPass     = 20 * time.Millisecond // between two looks at files that had nothing, whatever the notices
	minScan     = 50 * time.Millisecond // between two searches for new files, whatever the notices
	retryFirst  = 500 * time.Millisecond
	retryMost   = 30 * time.Second
	copyWait    = time.Minute    // how long a copy of a file that is still there waits for what becomes of it
	forgetAfter = 24 * time.Hour // how long a file that is gone is remembered, to know a copy of it again
	onceTries   = 3
	maxDecoders = 4       // files that are decompressed at a time
	keepDecoder = 1 << 20 // a decoder that got further than this while looking at the file is kept
)

// Source reads files.
type Source struct {
	cfg     Config
	exclude []string
	format  *text.Format
	table   *record.Table
	once    bool // finite: read what is there
	atEnd   bool // start: end
	now     func() time.Time
	log     *slog.Logger
	block   int
	notify  bool
}

var _ sources.Source = (*Source)(nil)

// entry is one split that is open in this run.
type entry struct {
	st   state.Split
	sp   *record.Split
	m    meta
	path string
	h    *handle // nil: not open now
	c    *text.Cutter
	head []byte // the content's first bytes, until there are enough for the fingerprint
	size int64  // of the file when last looked at
	seen stamp  // the file when last looked at; zero: it is to be looked at again

	active  bool // in the queue: there may be something to read
	idle    bool // as last told to the runner
	checked bool // the handle was found to be the right file since it last had nothing new
	after   *entry
	grown   time.Time // when it last grew
	left    time.Time // when its path was found to be gone; zero: it is there
	busy    bool      // being read: its handle stays
	used    int64     // for closing the least recently used handle
	next    time.Time // not before then, after an error
	wait    time.Duration
	tries   int
	limit   int64 // finite: what was there at first; -1 not known yet
}

// run is the state of one Run. All of it is the reading goroutine's.
type run struct {
	*Source
	ctx     context.Context
	out     sources.Output
	entries []*entry // in the order they were found
	byID    map[fileID]*entry
	paths   map[string]*entry // as the last scan found them
	queue   []*entry
	known   map[string]*known
	waiting map[fileID]time.Time // files that look like copies of others, since when
	unborn  map[string]bool      // paths that match but aren't opened yet
	open    int
	tick    int64

	items    chan item
	sent     chan error // the sender's end
	w        *watcher
	scanned  time.Time
	scanCost time.Duration
	polled   time.Time
	over     []byte // scratch: the bytes before a block, as they are now
	first    bool
	scanning bool
	rescan   bool
	trouble  map[string]error
	said     map[string]bool // logged once
	failed   []error         // what makes a finite run fail in the end
}

// item is one thing to tell the runner, in order.
type item struct {
	b      *record.Batch
	update *state.Split
	idle   int8 // 1, -1
	sp     *record.Split
	finish bool
	done   bool
	forget string
}

// Run reads until ctx ends or, where the source is finite, all files are read.
func (s *Source) Run(ctx context.Context, out sources.Output) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Source: s, ctx: ctx, out: out, byID: map[fileID]*entry{}, paths: map[string]*entry{}, known: map[string]*known{},
		waiting: map[fileID]time.Time{}, unborn: map[string]bool{}, items: make(chan item, 2), sent: make(chan error, 1),
		trouble: map[string]error{}, said: map[string]bool{}, first: true}
	for _, st := range out.Known() {
		r.known[st.ID] = &known{st: st, m: decodeMeta(st.Meta), pos: st.Position().Offset}
	}
	if s.notify && !s.once {
		r.w = newWatcher(s.log)
	}
	go r.send(cancel)
	err := r.loop()
	// What is in items was read and may be sent still, unless the sender has failed.
	close(r.items)
	if e := <-r.sent; err == nil || errors.Is(err, context.Canceled) && e != nil {
		err = e
	}
	if r.w != nil {
		r.w.close()
	}
	for _, e := range r.entries {
		r.close(e)
	}
	if err != nil && ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	if err == nil && s.once {
		err = errors.Join(r.failed...)
	}
	return err
}

// send is the second goroutine: it tells the runner what was read, in order.
func (r *run) send(cancel context.CancelCauseFunc) {
	var err error
	for it := range r.items {
		if err != nil {
			if it.b != nil {
				r.out.Return(it.b)
			}
			continue
		}
		if err = r.tell(it); err != nil {
			cancel(err)
		}
	}
	r.sent <- err
}

// tell tells the runner one thing.
func (r *run) tell(it item) error {
	switch {
	case it.b != nil:
		if it.update != nil {
			r.out.Update(*it.update)
		}
		return r.out.Send(r.ctx, it.b)
	case it.finish:
		r.out.Finish(it.sp, it.done)
		if it.update != nil {
			r.out.Update(*it.update)
		}
	case it.idle != 0:
		r.out.Idle(it.sp, it.idle > 0)
	case it.forget != "":
		r.out.Forget(it.forget)
	case it.update != nil:
		r.out.Update(*it.update)
	}
	return nil
}

// put hands an item to the sender. While that is blocked, new files are still looked for.
func (r *run) put(it item) error {
	if r.once { // nothing else is to be done meanwhile
		return r.tell(it)
	}
	select { // so that one that can be sent is, also at the end
	case r.items <- it:
		return nil
	default:
	}
	for {
		t := time.NewTimer(r.untilScan())
		select {
		case r.items <- it:
			t.Stop()
			return nil
		case <-r.ctx.Done():
			t.Stop()
			if it.b != nil {
				r.out.Return(it.b)
			}
			return r.ctx.Err()
		case <-t.C:
		case <-r.wake():
			t.Stop()
			r.notices()
		}
		if err := r.scanIfDue(); err != nil {
			if it.b != nil {
				r.out.Return(it.b)
			}
			return err
		}
	}
}

// batch waits for the budget; new files are looked for meanwhile.
func (r *run) batch(e *entry, size int) (*record.Batch, error) {
	for {
		if r.once {
			return r.out.Batch(r.ctx, e.sp, size)
		}
		ctx, cancel := context.WithTimeout(r.ctx, max(r.untilScan(), time.Millisecond))
		b, err := r.out.Batch(ctx, e.sp, size)
		cancel()
		if err == nil || r.ctx.Err() != nil || ctx.Err() == nil {
			return b, err
		}
		if err := r.scanIfDue(); err != nil {
			return nil, err
		}
	}
}

// untilScan is how long it is until new files are looked for again. After a notice that is soon, but
// in a folder where files come and go all the time it takes only a small part of the time.
func (r *run) untilScan() time.Duration {
	if r.once || r.scanning {
		return time.Hour
	}
	d := r.cfg.Scan.D()
	if len(r.unborn) > 0 {
		d = min(d, r.cfg.Poll.D())
	}
	if r.rescan {
		d = min(d, max(minScan, 20*r.scanCost))
	}
	return max(time.Until(r.scanned.Add(d)), 0)
}

func (r *run) scanIfDue() error {
	if r.untilScan() > 0 {
		return nil
	}
	return r.scan()
}

func (r *run) wake() <-chan struct{} {
	if r.w == nil {
		return nil
	}
	return r.w.wake
}

// notices takes what the operating system told: files that changed are looked at at once.
func (r *run) notices() {
	names, rescan := r.w.take()
	if rescan {
		r.rescan = true
	}
	if len(names) == 0 {
		return
	}
	for p := range r.unborn {
		r.rescan = r.rescan || names[p]
	}
	for p := range names {
		if e := r.paths[p]; e != nil {
			r.activate(e)
		}
	}
}

func (r *run) activate(e *entry) {
	if !e.active && e.sp != nil {
		e.active = true
		r.queue = append(r.queue, e)
	}
}

func (r *run) loop() error {
	if err := r.scan(); err != nil {
		return err
	}
	r.first = false
	for _, e := range r.entries {
		r.activate(e)
	}
	for {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.scanIfDue(); err != nil {
			return err
		}
		if len(r.queue) > 0 {
			if err := r.turn(); err != nil {
				return err
			}
			continue
		}
		if r.once && len(r.entries) == 0 {
			return nil
		}
		if err := r.rest(); err != nil {
			return err
		}
	}
}

// turn reads the next file for a while.
func (r *run) turn() error {
	side := r.oldestFirst()
	e := r.queue[0]
	r.queue = r.queue[1:]
	if e.sp == nil { // finished since
		return nil
	}
	if e.after != nil && e.after.sp != nil && e.after.active && !r.once {
		if len(r.queue) > 0 {
			r.queue = append(r.queue, e)
			return nil
		}
	}
	e.after = nil
	if !r.once && e.h != nil && e.h.kind != plain && e.h.dec == nil && r.decoders() >= maxDecoders {
		r.queue = append(r.queue, e) // those that have one are in the queue too
		return nil
	}
	blocks := turnBlocks
	if r.once && !side {
		blocks = 1 << 30
	}
	e.busy = true
	defer func() { e.busy = false }()
	// A compressed file is read to its end: going on in its middle later would take memory, or time.
	for n := 0; n < blocks || side && e.h != nil && e.h.kind != plain; n++ {
		more, err := r.read(e)
		if err != nil {
			return err
		}
		if !more || e.sp == nil {
			e.active = false
			if e.sp != nil && !e.idle && e.next.IsZero() {
				e.idle = true
				return r.put(item{sp: e.sp, idle: 1})
			}
			return nil
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	r.queue = append(r.queue, e)
	return nil
}

// oldestFirst brings the file whose records are oldest to the queue's front, where the source is finite and windows follow. It is false where
// files are read one after the other.
func (r *run) oldestFirst() bool {
	a, ok := r.out.(sources.Aligner)
	if !r.once || !ok || len(r.queue) < 2 {
		return false
	}
	least, at := int64(math.MaxInt64), 0
	for i, e := range r.queue {
		if e.sp == nil {
			continue
		}
		ms, ok := a.EventTime(e.sp)
		if !ok {
			return false
		}
		if ms < least {
			least, at = ms, i
		}
	}
	e := r.queue[at]
	copy(r.queue[1:at+1], r.queue[:at])
	r.queue[0] = e
	return true
}

// decoders counts the files that are being decompressed: each takes memory, up to some MiB.
func (r *run) decoders() (n int) {
	for _, e := range r.queue {
		if e.h != nil && e.h.dec != nil {
			n++
		}
	}
	return n
}

// pollEvery is how often all files are looked at: less often where notices tell of every change.
func (r *run) pollEvery() time.Duration {
	if r.w != nil && r.w.trusted() {
		return trustedPolls * r.cfg.Poll.D()
	}
	return r.cfg.Poll.D()
}

// trustedPolls is how many polls are left to notices.
const trustedPolls = 5

// rest waits until there may be something to do: all files had nothing.
func (r *run) rest() error {
	poll := r.pollEvery()
	d := min(max(time.Until(r.polled.Add(poll)), 0), r.untilScan())
	if r.once {
		d = time.Hour
	}
	now := r.now()
	for _, e := range r.entries {
		if t := e.c.Deadline(); !t.IsZero() {
			d = min(d, max(t.Sub(now), 0))
		}
		if !e.next.IsZero() {
			d = min(d, max(time.Until(e.next), 0))
		}
	}
	gap := time.NewTimer(min(d, minPass))
	select {
	case <-gap.C:
	case <-r.ctx.Done():
		gap.Stop()
		return r.ctx.Err()
	}
	if d > minPass {
		t := time.NewTimer(d - minPass)
		select {
		case <-t.C:
		case <-r.wake():
			t.Stop()
			r.notices()
			if time.Until(r.polled.Add(poll)) > 0 {
				return nil // the files that were named, and a scan where one is due
			}
		case <-r.ctx.Done():
			t.Stop()
			return r.ctx.Err()
		}
	}
	r.polled = time.Now()
	for _, e := range r.entries {
		if e.next.IsZero() || !r.polled.Before(e.next) {
			r.activate(e)
		}
	}
	return nil
}

// read reads one block of e. more: there may be more at once.
func (r *run) read(e *entry) (more bool, err error) {
	if !e.next.IsZero() {
		if time.Now().Before(e.next) {
			return false, nil
		}
		e.next = time.Time{}
	}
	if e.h == nil {
		if fi, err := os.Stat(e.path); err == nil && e.left.IsZero() && !r.once && e.seen != (stamp{}) && idOf(fi) == e.m.id && stampOf(fi) == e.seen {
			return false, nil // as it was when its handle was closed
		}
		if ok, err := r.reopen(e); !ok {
			return false, err
		}
	}
	r.tick++
	e.used = r.tick
	fi, err := e.h.stat()
	if err != nil {
		return false, r.retry(e, "read", err)
	}
	if e.h.kind == plain && e.c.ReadOffset() == 0 && fi.Size() > 0 {
		if err := e.h.sniff(r.once || !e.left.IsZero()); err == errPartial {
			return r.nothing(e, fi)
		} else if err != nil {
			return false, r.retry(e, "read", err)
		}
	}
	if e.h.kind != plain {
		return r.readPacked(e, fi)
	}

	avail := fi.Size() - e.c.ReadOffset()
	if (avail != 0 || stampOf(fi) != e.seen) && !e.checked || avail < 0 {
		// Between two looks it may have been cut off and written anew.
		ok, err := r.same(e, fi)
		if err != nil {
			return false, r.retry(e, "read", err)
		}
		if !ok {
			return r.replaced(e, fi)
		}
		e.checked = true
	}
	e.seen = stampOf(fi)
	if fi.Size() != e.size {
		e.size, e.grown = fi.Size(), time.Now()
	}
	if r.once {
		if e.limit < 0 {
			e.limit = fi.Size()
		}
		avail = min(avail, e.limit-e.c.ReadOffset())
	}
	if avail <= 0 {
		if !r.once {
			e.checked = false
		}
		return r.nothing(e, fi)
	}
	n := int(min(int64(e.c.Want(r.block)), avail))
	b, err := r.begin(e, n)
	if err != nil {
		return false, err
	}
	p := e.c.Begin(b, n)
	// What was read before is read along: a block of something that took its place since the look is not taken for more of it.
	known := e.c.Before()
	r.over = append(r.over[:0], known...)
	m, err := readOver(e.h.f, r.over, p, e.c.ReadOffset())
	if string(r.over) != string(known) || m > 0 && !e.beginsAs(p[:m]) {
		r.out.Return(b)
		if fi, err = e.h.stat(); err != nil {
			return false, r.retry(e, "read", err)
		}
		return r.replaced(e, fi)
	}
	if m == 0 && err != nil {
		r.out.Return(b)
		if err == io.EOF { // it shrank just now
			return true, nil
		}
		return false, r.retry(e, "read", err)
	}
	e.begins(p[:m])
	e.c.Cut(b, m, text.More)
	r.mended(e)
	return true, r.deliver(e, b)
}

// begin takes a batch for a block of n bytes.
func (r *run) begin(e *entry, n int) (*record.Batch, error) {
	if e.idle {
		e.idle = false
		if err := r.put(item{sp: e.sp, idle: -1}); err != nil {
			return nil, err
		}
	}
	return r.batch(e, e.c.Room(n))
}

// deliver sends a batch, or gives it back where it has nothing.
func (r *run) deliver(e *entry, b *record.Batch) error {
	if b.Start == b.End && b.Len() == 0 {
		r.out.Return(b)
		return nil
	}
	e.m.push(anchorOf(e.c.End(), e.c.Tail()))
	return r.put(item{b: b, update: e.state()})
}

// beginsAs tells whether p, the first block, is of the content that the fingerprint was made of.
func (e *entry) beginsAs(p []byte) bool {
	if e.c.ReadOffset() > 0 || e.m.print.n == 0 {
		return true
	}
	if len(p) < e.m.print.n {
		head, err := e.h.head(e.m.print.n)
		if err != nil {
			return true // what is wrong is found out when it is read
		}
		p = head
	}
	return e.m.print.fits(p)
}

// begins lets the fingerprint grow with p, which was read at ReadOffset: it is made of what was read,
// so that it can't be of something that took the file's place since.
func (e *entry) begins(p []byte) {
	off := e.c.ReadOffset()
	if e.m.print.n >= printLen || off >= printLen || int64(len(e.head)) < off {
		return
	}
	e.head = append(e.head[:off], p[:min(len(p), printLen-int(off))]...)
	if len(e.head) > e.m.print.n {
		e.m.print = printOf(e.head)
	}
	if len(e.head) == printLen {
		e.head = nil
	}
}

// state is what the store is to know of e now.
func (e *entry) state() *state.Split {
	e.st.Path, e.st.Meta = e.path, e.m.encode()
	st := e.st
	st.Recent = nil
	return &st
}

// nothing is what to do where e has no more to read now.
func (r *run) nothing(e *entry, fi fs.FileInfo) (bool, error) {
	r.mended(e)
	switch {
	case r.once:
		mode := text.Final
		if fi.Size() > e.c.ReadOffset() && e.h.kind == plain {
			mode = text.Flush // it grows: its last line may be half written
		}
		return false, r.finish(e, mode)
	case !e.left.IsZero():
		if time.Since(later(e.left, e.grown)) >= r.cfg.RotateWait.D() {
			return false, r.finish(e, text.Final)
		}
	}
	if t := e.c.Deadline(); !t.IsZero() && !r.now().Before(t) {
		return false, r.flush(e, text.Flush)
	}
	return false, nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// flush ends what is held open.
func (r *run) flush(e *entry, mode text.Mode) error {
	if e.c.Held() == 0 {
		return nil
	}
	b, err := r.begin(e, 0)
	if err != nil {
		return err
	}
	e.c.Begin(b, 0)
	e.c.Cut(b, 0, mode)
	return r.deliver(e, b)
}

// finish ends the split: nothing more will come of it.
func (r *run) finish(e *entry, mode text.Mode) error {
	if err := r.flush(e, mode); err != nil {
		return err
	}
	var died int64
	if e.h != nil {
		if fi, err := e.h.stat(); err == nil {
			died = deleted(fi)
		}
	}
	return r.drop(e, died)
}

// drop takes e out of the run as done. What it was is remembered, to know a copy of it again.
func (r *run) drop(e *entry, died int64) error {
	r.close(e)
	sp := e.sp
	e.sp = nil
	e.active = false
	if r.byID[e.m.id] == e {
		delete(r.byID, e.m.id)
	}
	if i := slices.Index(r.entries, e); i >= 0 {
		r.entries = slices.Delete(r.entries, i, i+1)
	}
	r.mended(e)
	e.st.Done = true
	if !r.once {
		e.m.gone = r.now().Unix()
	}
	st := e.state()
	r.known[e.st.ID] = &known{st: *st, m: e.m, pos: e.c.End(), used: true, died: died}
	return r.put(item{sp: sp, finish: true, done: true, update: st})
}

// same tells whether the open file still has what was read of it.
func (r *run) same(e *entry, fi fs.FileInfo) (bool, error) {
	if e.h.kind == plain && fi.Size() < e.c.ReadOffset() {
		return false, nil
	}
	known := e.c.Before()
	if len(known) == 0 {
		return true, nil
	}
	tail, err := e.h.tail(e.c.ReadOffset())
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return len(tail) >= len(known) && string(tail[len(tail)-len(known):]) == string(known), nil
}

// replaced is called when the file behind e was truncated or written anew in place: a copy of what
// it was may carry on its split; what it is now is a new one.
func (r *run) replaced(e *entry, fi fs.FileInfo) (bool, error) {
	h := e.h
	e.h = nil // not to be closed with e
	r.open--
	delete(r.byID, e.m.id)
	e.left = time.Now()
	path, left := e.path, e.size-e.c.ReadOffset()
	id := e.m.id
	moved := false
	if !r.once {
		var err error
		if moved, err = r.carryOn(e); err != nil {
			h.close()
			return false, err
		}
	}
	if !moved {
		if left > 0 {
			r.out.Lost(e.sp, left, "the file was truncated before all of it was read")
		}
		r.log.Info("file was truncated or replaced; it is read from the beginning", "path", path, "was_at", e.c.End())
		if err := r.finish(e, text.Final); err != nil {
			h.close()
			return false, err
		}
	}
	n, err := r.fresh(h, fi, path, id, 0)
	if err != nil {
		h.close()
		return false, err
	}
	if err := r.openAll([]*entry{n}); err != nil {
		return false, err
	}
	r.activate(n)
	return moved, nil
}

// carryOn looks for a copy of e's file among those that match, which then is e's file.
func (r *run) carryOn(e *entry) (bool, error) {
	for _, f := range r.list() {
		id := idOf(f.fi)
		if r.byID[id] != nil || id == e.m.id {
			continue
		}
		h, fi, err := openFile(f.path)
		if err != nil {
			continue
		}
		if h.sniff(true) == nil {
			head, _ := h.head(printLen)
			if e.m.print.n > 0 && e.m.print.fits(head) {
				e.c.Rewind()
				e.h = h
				ok, err := r.same(e, fi)
				if ok && err == nil {
					e.m.id, e.path, e.c.Path = idOf(fi), f.path, f.path
					e.size, e.left, e.checked, e.grown = fi.Size(), time.Time{}, true, time.Now()
					r.byID[e.m.id], r.paths[e.path] = e, e
					r.open++
					delete(r.waiting, e.m.id)
					r.log.Info("file was copied and truncated; its copy is read on", "path", f.path, "offset", e.c.End())
					return true, r.put(item{update: e.state()})
				}
				e.h = nil
			}
		}
		h.close()
	}
	return false, nil
}

// readPacked reads one block of a compressed file.
func (r *run) readPacked(e *entry, fi fs.FileInfo) (bool, error) {
	if e.h.seen == stampOf(fi) {
		return r.ended(e, fi)
	}
	if e.h.seen != (stamp{}) && !e.checked {
		e.h.stopDecoder() // it changed since it came to an end
		ok, err := r.same(e, fi)
		if err != nil && e.h.bad == nil {
			ok = true // damaged or incomplete before the position: as it was
		}
		if !ok {
			return r.replaced(e, fi)
		}
	}
	e.checked = true
	n := e.c.Want(r.block)
	b, err := r.begin(e, n)
	if err != nil {
		return false, err
	}
	p := e.c.Begin(b, n)
	m, err := e.h.readAt(p, e.c.ReadOffset())
	e.begins(p[:m])
	e.c.Cut(b, m, text.More)
	if derr := r.deliver(e, b); derr != nil {
		return false, derr
	}
	if fi.Size() != e.size {
		e.size, e.grown = fi.Size(), time.Now()
	}
	if err == nil && m > 0 {
		return true, nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return false, r.retry(e, "read", err)
	}
	e.h.stopDecoder()
	e.h.seen, e.checked = stampOf(fi), false
	e.h.bad = nil
	if err != io.EOF && err != nil {
		e.h.bad = fmt.Errorf("%s is damaged or incomplete behind byte %d of its content: %w", e.path, e.c.ReadOffset(), err)
	}
	return r.ended(e, fi)
}

// ended is what to do at the end of a compressed file's content.
func (r *run) ended(e *entry, fi fs.FileInfo) (bool, error) {
	if e.h.bad == nil {
		return r.nothing(e, fi)
	}
	bad := e.h.bad
	if r.once || !e.left.IsZero() && time.Since(later(e.left, e.grown)) >= r.cfg.RotateWait.D() {
		r.out.Trouble(bad)
		r.out.Lost(e.sp, 0, bad.Error())
		return false, r.finish(e, text.Final)
	}
	r.setTrouble(e.path, bad)
	return false, nil
}

// retry reports what failed on e and puts it off.
func (r *run) retry(e *entry, what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) && !r.once {
		return nil // the next scan finds out
	}
	err = fmt.Errorf("cannot %s %s: %w", what, e.path, unpath(err))
	e.tries++
	if r.once && e.tries >= onceTries {
		r.log.Error("file is left out", "path", e.path, "err", err)
		r.failed = append(r.failed, err)
		return r.release(e)
	}
	if e.h != nil {
		e.h.stopDecoder()
	}
	e.wait = min(max(2*e.wait, retryFirst), retryMost)
	e.next = time.Now().Add(e.wait)
	r.setTrouble(e.path, err)
	return nil
}

// unpath takes the path out of an error whose text names it anyway.
func unpath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// release lets go of e without its being done.
func (r *run) release(e *entry) error {
	r.close(e)
	sp := e.sp
	e.sp, e.active = nil, false
	delete(r.byID, e.m.id)
	if i := slices.Index(r.entries, e); i >= 0 {
		r.entries = slices.Delete(r.entries, i, i+1)
	}
	return r.put(item{sp: sp, finish: true})
}

func (r *run) mended(e *entry) {
	e.wait, e.tries, e.next = 0, 0, time.Time{}
	r.clearTrouble(e.path)
}

// setTrouble reports what is wrong with a path, once per kind of failure.
func (r *run) setTrouble(path string, err error) {
	if old := r.trouble[path]; old != nil && old.Error() == err.Error() {
		return
	}
	r.trouble[path] = err
	r.out.Trouble(err)
}

func (r *run) clearTrouble(path string) {
	if _, ok := r.trouble[path]; !ok {
		return
	}
	delete(r.trouble, path)
	if len(r.trouble) == 0 {
		r.out.Trouble(nil)
		return
	}
	for _, p := range slices.Sorted(maps.Keys(r.trouble)) {
		r.out.Trouble(r.trouble[p])
		return
	}
}

func (r *run) close(e *entry) {
	if e.h != nil {
		e.h.close()
		e.h = nil
		r.open--
	}
}

// reopen opens the handle of a file that has none now. ok is false where there is nothing to read.
func (r *run) reopen(e *entry) (ok bool, err error) {
	h, fi, err := openFile(e.path)
	if err == nil && idOf(fi) != e.m.id {
		h.close()
		err = &fs.PathError{Op: "open", Path: e.path, Err: fs.ErrNotExist}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if p := findInode(e.path, e.m.id); p != "" {
			h, fi, err = openFile(p)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if !e.left.IsZero() || r.once {
			if n := e.size - e.c.ReadOffset(); n > 0 {
				r.out.Lost(e.sp, n, "the file vanished before all of it was read")
			}
			if r.once {
				r.log.Warn("file vanished before it was read", "path", e.path)
			}
			return false, r.finish(e, text.Final)
		}
		return false, nil // the next scan says what became of it
	}
	if err != nil {
		return false, r.retry(e, "open", err)
	}
	if err := h.sniff(r.once || !e.left.IsZero()); err != nil && err != errPartial {
		h.close()
		return false, r.retry(e, "read", err)
	}
	r.adopt(e, h)
	if e.c.End() > 0 {
		ok, err := r.same(e, fi)
		if err != nil {
			r.close(e)
			return false, r.retry(e, "read", err)
		}
		if !ok {
			_, err := r.replaced(e, fi)
			return false, err
		}
		e.checked = true
	}
	return true, nil
}

// adopt gives e its handle.
func (r *run) adopt(e *entry, h *handle) {
	r.makeRoom(false)
	e.h = h
	r.open++
}

// makeRoom closes handles where there are as many as there may be: of those with nothing to read the
// ones that were not used for longest, unless idle says so then others too. Files that left their
// path keep theirs, they couldn't be opened again.
func (r *run) makeRoom(idle bool) {
	for r.open >= r.cfg.MaxOpen {
		var lru *entry
		for _, e := range r.entries {
			if e.h == nil || e.busy || !e.left.IsZero() || !e.c.Deadline().IsZero() || idle && e.active {
				continue
			}
			if lru == nil || !e.active && lru.active || e.active == lru.active && e.used < lru.used {
				lru = e
			}
		}
		if lru == nil {
			return
		}
		lru.seen = stamp{}
		if fi, err := lru.h.stat(); err == nil && !lru.active && (lru.h.kind != plain && stampOf(fi) == lru.h.seen || lru.h.kind == plain && fi.Size() == lru.c.ReadOffset()) {
			lru.seen = stampOf(fi)
		}
		lru.c.Rewind()
		lru.checked = false
		r.close(lru)
	}
}
