package batch

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rsetl/rsetl/sinks"
)

func (l *letters) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

func giveUp(o *Options) { o.GiveUp = time.Minute }

// TestGiveUp has a sink that is down for longer than on_failure allows, and comes back.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		f := &fake{deliver: func(n int, _ *sinks.Chunk) ([]sinks.Reject, error) {
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return nil, nil
		}}
		b := newBench(t, f, sinks.BatchConfig{Size: 2}, giveUp)
		b.start()
		defer b.stop()
		b.mustAdd("a", "1", "2")
		synctest.Wait()
		down.Store(true)
		b.mustAdd("a", "3", "4", "5", "6")
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if n := b.letters.count(); n != 0 {
			t.Errorf("%d letters after 50s", n)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		equal(t, b.letters.count(), 4)
		tries := f.attempts()
		b.mustAdd("a", "7", "8") // still down: one try, and it is given up
		synctest.Wait()
		equal(t, f.attempts(), tries+1)
		equal(t, b.letters.count(), 6)
		if s := b.c.Status(); !s.Blocked || s.Rows != 0 {
			t.Errorf("%+v", s)
		}
		down.Store(false)
		b.mustAdd("a", "9", "10")
		synctest.Wait()
		if s := b.c.Status(); s.Blocked {
			t.Errorf("%+v", s)
		}
		equal(t, f.got(), []string{"a:1", "a:2", "a:9", "a:10"})
		n, held := b.c.Counts()
		equal(t, n, Counts{Received: 10, Delivered: 4, Rejected: 6})
		equal(t, held, 0)
		equal(t, b.letters.synced, 6)
		for i, l := range b.letters.all {
			if !strings.Contains(l.Reason, "given up, as the sink has failed since ") || !strings.Contains(l.Reason, "connection refused") || l.Pos.Offset != int64(i+2) {
				t.Errorf("%+v", l)
			}
		}
	})
}

// TestGiveUpAtStart has a sink that can't be opened.
func TestGiveUpAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{fails: 1 << 30}
		b := newBench(t, o, sinks.BatchConfig{Size: 1}, giveUp)
		b.start()
		b.mustAdd("a", "1")
		m := b.c.Mark()
		if _, _, err := b.c.Flush(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		equal(t, b.letters.count(), 1)
		if r := b.letters.all[0].Reason; strings.Contains(r, errNotStarted.Error()) {
			t.Error(r)
		}
		equal(t, o.attempts(), 0)
		b.stop()
	})
}

// TestGiveUpLetters: letters that can't be written are waited for, whatever else.
func TestGiveUpLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{deliver: func(int, *sinks.Chunk) ([]sinks.Reject, error) { return nil, errors.New("down") }}
		b := newBench(t, f, sinks.BatchConfig{Size: 1}, giveUp)
		b.letters.fail = 5
		b.start()
		defer b.stop()
		b.mustAdd("a", "1")
		m := b.c.Mark()
		if _, _, err := b.c.Flush(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		equal(t, b.letters.count(), 1)
		equal(t, b.letters.fail, 0)
	})
}
