package pipeline

import (
	"context"
	"sync"
)

// budget bounds the bytes between the source and the sinks' caches. Only the
// source acquires; nothing downstream waits for it, so nothing can deadlock on it.
type budget struct {
	mu   sync.Mutex
	free int
	all  int
	wait chan struct{} // closed when bytes come back
}

func newBudget(n int) *budget { return &budget{free: n, all: n, wait: make(chan struct{})} }

// acquire waits until n bytes are free; more than there are in all is let in alone.
func (b *budget) acquire(ctx context.Context, n int) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.mu.Lock()
		if b.free >= n || b.free == b.all {
			b.free -= n
			b.mu.Unlock()
			return nil
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
	b.free += n
	close(b.wait)
	b.wait = make(chan struct{})
	b.mu.Unlock()
}
