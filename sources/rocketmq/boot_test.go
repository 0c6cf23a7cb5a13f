package rocketmq

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/test/services"
)

// A broker that was killed has forgotten the last commits: the store's position counts, however few they were. After that an operator's
// reset counts, as before.
func TestKilledBroker(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	send(t, c, topic, texts(0, 20)...)
	set(t, c, group, topic, 5)
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	r.count(10)
	r.commit()
	store := r.end()
	set(t, c, group, topic, 10)

	c.Broker(t, "kill", "a")
	c.Broker(t, "start", "a")
	route := c.Route(t, topic, 2)
	a := rocketmq.Queue{Topic: topic, Broker: "broker-a", ID: 0}
	await(t, "the broker", func() bool {
		_, _, err := c.Client.Offset(t.Context(), route.Masters[a.Broker], group, a)
		return err == nil
	})
	set(t, c, group, topic, 3) // before all that the store remembers: at broker-a forgotten, at broker-b an operator's
	r = run(t, conf(c, group, topic), store, false)
	r.count(7)
	r.wait("queues", func(v sourcetest.View) bool { return v.Splits() == 2 && v.Idle() })
	if n, _, err := c.Client.Offset(t.Context(), route.Masters[a.Broker], group, a); n != 10 || err != nil {
		t.Errorf("offset %d at broker-a before any commit: %v", n, err)
	}
	r.commit()
	store = r.end()
	for _, s := range store.Splits {
		if s.Position().Offset != 10 || (s.Epoch == 0) != strings.Contains(s.Path, "broker-a") {
			t.Errorf("%+v", s)
		}
	}
	if n := r.out.Count(); n != 7 {
		t.Errorf("%d messages, want those of broker-b from 3", n)
	}
	if _, up, err := c.Client.Boot(t.Context(), route.Masters[a.Broker]); err != nil || up > fresh {
		t.Fatalf("up for %s: %v", up, err)
	}
	set(t, c, group, topic, 2)
	r = run(t, conf(c, group, topic), store, false)
	r.count(16)
	r.commit()
	r.end()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{10, 10}) {
		t.Errorf("offsets %v", got)
	}
}

// A running instance tells a broker that has forgotten an idle queue's offset, before a message or an operator comes.
func TestKilledBrokerIsReminded(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	send(t, c, topic, texts(0, 20)...)
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	for n := range 20 {
		r.count(20 + 2*n)
		r.commit()
		send(t, c, topic, texts(20+2*n, 2)...)
	}
	r.count(60)
	r.commit()
	c.Broker(t, "kill", "a")
	c.Broker(t, "start", "a")
	route := c.Route(t, topic, 2)
	a := rocketmq.Queue{Topic: topic, Broker: "broker-a", ID: 0}
	await(t, "the offset", func() bool {
		n, _, err := c.Client.Offset(t.Context(), route.Masters[a.Broker], group, a)
		id, _, err2 := c.Client.Boot(t.Context(), route.Masters[a.Broker])
		return err == nil && n == 30 && err2 == nil && r.told(a, id)
	})
	set(t, c, group, topic, 4) // an operator's
	send(t, c, topic, texts(60, 2)...)
	for end := time.Now().Add(30 * time.Second); r.out.Count() < 62+2*27; time.Sleep(50 * time.Millisecond) {
		r.commit()
		if time.Now().After(end) {
			t.Fatalf("%d messages", r.out.Count())
		}
	}
	r.commit()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{31, 31}) {
		t.Errorf("offsets %v", got)
	}
	r.end()
}

// told tells whether the queue's broker was told its offset in that run.
func (r *rig) told(k rocketmq.Queue, boot string) bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for _, q := range r.s.opened {
		if q.Queue == k {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.boot == boot
		}
	}
	return false
}
