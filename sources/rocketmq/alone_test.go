package rocketmq

import (
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/test/services"
)

// TestAlone: where state is kept by keys a second instance refuses to run, and the first keeps its queues.
func TestAlone(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 2), services.Unique("g")
	alone := func(s *Source) { s.alone = true }
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false, alone)
	send(t, c, topic, texts(0, 40)...)
	r.count(40)
	second := run(t, conf(c, group, topic), sourcetest.NewStore(), false, alone)
	select {
	case err := <-second.done:
		if err == nil || !strings.Contains(err.Error(), "needs all queues to itself") {
			t.Errorf("the second ends with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the second instance goes on")
	}
	send(t, c, topic, texts(40, 80)...)
	r.count(80)
	r.end()
}
