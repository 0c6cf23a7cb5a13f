package pipeline

import "sync"

// sequencer puts what the workers return back into dispatch order. Whoever brings the item that is
// next runs the ordered end for it and for all that wait behind it; the others leave at once.
type sequencer struct {
	end     func(*item)
	mu      sync.Mutex
	last    uint64 // the last number given out
	next    uint64 // the number that is next at the end
	waiting map[uint64]*item
	running bool
}

func (s *sequencer) init(end func(*item)) {
	s.end, s.waiting, s.next = end, map[uint64]*item{}, 1
}

// take gives the next number.
func (s *sequencer) take() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

// done brings an item back. Every number that was taken must come back, if with an empty item.
func (s *sequencer) done(it *item) {
	s.mu.Lock()
	s.waiting[it.seq] = it
	if s.running {
		s.mu.Unlock()
		return
	}
	s.running = true
	for {
		it, ok := s.waiting[s.next]
		if !ok {
			break
		}
		delete(s.waiting, s.next)
		s.next++
		s.mu.Unlock()
		s.end(it)
		s.mu.Lock()
	}
	s.running = false
	s.mu.Unlock()
}

// pool keeps items for reuse, so that memory is bounded by what was in flight at once.
type pool struct {
	mu   sync.Mutex
	free []*item
}

// keepBatch is the largest memory of a batch that is kept for reuse.
const keepBatch = 4 << 20

func (p *pool) get() *item {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return nil
	}
	it := p.free[n-1]
	p.free = p.free[:n-1]
	return it
}

func (p *pool) put(it *item) {
	if it.b.Cap() > keepBatch {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, it)
}
