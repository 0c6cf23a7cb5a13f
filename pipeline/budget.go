package pipeline

import (
	"context"
	"sync"
)

// budget bounds the bytes between the source and the sinks' caches, and the batches: what workers have
// run ahead of a slow one waits to be put in order. Only the source acquires; nothing downstream waits
// for it, so nothing can deadlock on it.
type budget struct {
	mu      sync.Mutex
	free    int
	all     int
	batches int           // that may still be taken; those of no bytes don't count
	wait    chan struct{} // closed when bytes come back; nil where no one waits
}

func newBudget(bytes, batches int) *budget { return &budget{free: bytes, all: bytes, batches: batches} }

// acquire waits until n bytes are free; more than there are in all is let in alone.
func (b *budget) acquire(ctx context.Context, n int) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.mu.Lock()
		if (b.free >= n || b.free == b.all) && (b.batches > 0 || n == 0) {
			b.free -= n
			if n > 0 {
				b.batches--
			}
			b.mu.Unlock()
			return nil
		}
		if b.wait == nil {
			b.wait = make(chan struct{})
		}
		w := b.wait
		b.mu.Unlock()
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *budget) release(n int) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.batches++
	if b.wait != nil {
		close(b.wait)
		b.wait = nil
	}
}
