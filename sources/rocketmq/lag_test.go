package rocketmq

import (
	"testing"
	"time"

	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/test/services"
)

// The lag in time is that of the first message without a commit, and nothing once all are committed, however long ago they came.
func TestLag(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	r.wait("queues", func(v sourcetest.View) bool { return v.Splits() == 2 && v.Idle() })
	lag := func() (n int64, longest time.Duration) {
		for _, s := range r.out.Commit().Splits {
			d, ok := r.s.LagTime(&s)
			if !ok {
				t.Errorf("%s: the time isn't known", s.Path)
			}
			longest = max(longest, d)
		}
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		for _, q := range r.s.opened {
			n += q.end - q.committed
		}
		return n, longest
	}
	between := func(what string, n int64, from, to time.Time) {
		t.Helper()
		before := time.Now()
		got, d := lag()
		low, high := before.Sub(to)-200*time.Millisecond, time.Since(from)+200*time.Millisecond
		if got != n || d < low || d > high {
			t.Errorf("%s: %d messages, %s; want %d, %s to %s", what, got, d, n, low, high)
		}
	}
	if n, d := lag(); n != 0 || d != 0 {
		t.Errorf("at the start: %d messages, %s", n, d)
	}
	var sent []time.Time
	for i := range 3 { // with more than a second between them
		sent = append(sent, time.Now())
		send(t, c, topic, texts(2*i, 2)...)
		r.count(2 * (i + 1))
		sent = append(sent, time.Now())
		between("sent", int64(2*(i+1)), sent[0], sent[1])
		if i == 0 {
			time.Sleep(1100 * time.Millisecond)
		}
	}
	r.commit()
	if n, d := lag(); n != 0 || d != 0 {
		t.Errorf("committed: %d messages, %s", n, d)
	}
	time.Sleep(300 * time.Millisecond)
	from := time.Now()
	send(t, c, topic, texts(6, 2)...)
	r.count(8)
	between("after a commit", 2, from, time.Now())
	if _, ok := r.s.LagTime(&state.Split{ID: "other"}); ok {
		t.Error("the lag of a split that isn't its own")
	}
	r.end()
	if e := r.s.Errors(); e["refused"] != 0 || e["connect"] != 0 {
		t.Errorf("errors %v", e)
	}
}
