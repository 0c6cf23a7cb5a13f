package batch

import (
	"math/bits"
	"sort"
	"sync"
	"time"

	"github.com/rsetl/rsetl/record"
)

// segment is a run of one split's rows of one generation, within the limits of a
// chunk: it is delivered as a whole, as one part of a chunk.
type segment struct {
	gen    uint64
	since  time.Time // when its first row came
	sealed bool      // takes no more rows
	next   *segment

	data    []byte
	ends    []int
	pos     []record.Position
	rejects []Rejected
	text    []byte
}

// fill takes rows of e from number from on, as many as there is room for, and returns how
// many. An empty segment takes at least one.
func (t *segment) fill(e *Encoded, from, maxRows, maxBytes int, p *pools) int {
	base := 0
	if from > 0 {
		base = e.Ends[from-1]
	}
	most := min(len(e.Ends)-from, maxRows-len(t.ends))
	ends := e.Ends[from : from+most]
	room := maxBytes - len(t.data) + base
	n := sort.Search(most, func(i int) bool { return ends[i] > room })
	if n == 0 {
		if len(t.ends) > 0 || most == 0 {
			return 0
		}
		n = 1
	}
	data := e.Data[base:ends[n-1]]
	if need := len(t.data) + len(data); need > cap(t.data) {
		p.grow(t, need)
	}
	shift := len(t.data) - base
	t.data = append(t.data, data...)
	for _, end := range ends[:n] {
		t.ends = append(t.ends, end+shift)
	}
	t.pos = append(t.pos, e.Pos[from:from+n]...)
	return n
}

// reject takes over e's rejected records.
func (t *segment) reject(e *Encoded) {
	shift := len(t.text)
	t.text = append(t.text, e.text...)
	for _, r := range e.Rejects {
		r.record += shift
		r.raw += shift
		t.rejects = append(t.rejects, r)
	}
}

// cost is what the segment counts for in the cache's memory.
func (t *segment) cost() int64 {
	return int64(len(t.data) + len(t.ends)*rowCost + len(t.text) + len(t.rejects)*rowCost)
}

// Buffers are pooled by powers of two, so that a small split never sits on a large
// one and a buffer is at most twice what is in it.
const (
	minClass = 12
	maxClass = 24
)

// pools hold segments by the size of their buffer; the garbage collector empties
// those of idle sinks.
type pools struct {
	empty sync.Pool // segments without a buffer
	class [maxClass - minClass + 1]sync.Pool
}

// segment gives an empty segment; its buffer comes with the first rows.
func (p *pools) segment() *segment {
	if t, ok := p.empty.Get().(*segment); ok {
		return t
	}
	return &segment{}
}

// grow gives t a buffer for n bytes and keeps what is in it.
func (p *pools) grow(t *segment, n int) {
	k := max(bits.Len(uint(n-1)), minClass)
	if k > maxClass {
		t.data = append(make([]byte, 0, n), t.data...)
		return
	}
	donor, ok := p.class[k-minClass].Get().(*segment)
	if !ok {
		donor = p.segment()
		donor.data = make([]byte, 0, 1<<k)
	}
	old := t.data
	t.data = append(donor.data[:0], old...)
	donor.data = old
	if cap(donor.ends) > cap(t.ends) && cap(donor.pos) > cap(t.pos) {
		ends, pos := t.ends, t.pos
		t.ends, t.pos = append(donor.ends[:0], ends...), append(donor.pos[:0], pos...)
		donor.ends, donor.pos = ends, pos
	}
	p.put(donor)
}

// put takes a segment back that nobody uses any more.
func (p *pools) put(t *segment) {
	clear(t.rejects)
	*t = segment{data: t.data[:0], ends: t.ends[:0], pos: t.pos[:0], rejects: t.rejects[:0], text: t.text[:0]}
	if most := 4*cap(t.data) + 4096; cap(t.ends)*rowCost > most || cap(t.text) > most || cap(t.rejects)*rowCost > most {
		t.ends, t.pos, t.rejects, t.text = nil, nil, nil, nil
	}
	switch k := bits.Len(uint(cap(t.data))) - 1; {
	case cap(t.data) == 0:
		p.empty.Put(t)
	case k >= minClass && k <= maxClass && cap(t.data) == 1<<k:
		p.class[k-minClass].Put(t)
	}
}

// split is one split's queue of segments, oldest first. Only the last is not sealed.
type split struct {
	split      *record.Split
	head, tail *segment
	key        dueKey // of head, while in the due heap
	at         int    // place in the due heap; -1 while head is in flight, and where there is none
}

// dueKey orders splits: earlier generations first, a checkpoint waits for them; then by when they are due.
type dueKey struct {
	gen uint64
	at  time.Time
}

func (k dueKey) less(o dueKey) bool {
	if k.gen != o.gen {
		return k.gen < o.gen
	}
	return k.at.Before(o.at)
}

// dueHeap is a binary heap of splits by key.
type dueHeap []*split

func (h *dueHeap) push(q *split, k dueKey) {
	q.key = k
	*h = append(*h, q)
	q.at = len(*h) - 1
	h.up(q.at)
}

func (h *dueHeap) pop() *split {
	old := *h
	q, last := old[0], old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	if last != q {
		(*h)[0], last.at = last, 0
		h.down(0)
	}
	q.at = -1
	return q
}

// fix moves q, which is in the heap, to where its new key belongs.
func (h *dueHeap) fix(q *split, k dueKey) {
	q.key = k
	h.up(q.at)
	h.down(q.at)
}

func (h dueHeap) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h[i].key.less(h[p].key) {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h dueHeap) down(i int) {
	for {
		l := 2*i + 1
		if l >= len(h) {
			return
		}
		if l+1 < len(h) && h[l+1].key.less(h[l].key) {
			l++
		}
		if !h[l].key.less(h[i].key) {
			return
		}
		h.swap(i, l)
		i = l
	}
}

func (h dueHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
