package rocketmq

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/test/services"
)

func sink(c *services.Cluster, topic, more string) string {
	return fmt.Sprintf("sinks: [{rocketmq: {name_servers: ['%s'], topic: '%s'%s}}]\ncheckpoint: {interval: 500ms}\n", c.NameServer, topic, more)
}

func numbers(t testing.TB, path string, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d,\"host\":\"h%d\"}\n", i, i%10)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// consume reads a topic with RocketMQ's Go client until n messages came.
func consume(t testing.TB, c *services.Cluster, topic string, n int) []*primitive.MessageExt {
	t.Helper()
	skipRace(t)
	p, err := mq.NewPushConsumer(consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.NameServer})), consumer.WithGroupName(services.Unique("g")),
		consumer.WithInstance(services.Unique("i")), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var out []*primitive.MessageExt
	err = p.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, ms...)
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	await(t, time.Minute, "messages at the Go client", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(out) >= n
	})
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(out)
}

// RocketMQ's own client gets what the sink sent: body, key, tag, properties, in order for each sharding key.
func TestSink(t *testing.T) {
	c := services.RocketMQ(t)
	topic, dir := c.Topic(t, 4), t.TempDir()
	const n = 3000
	numbers(t, filepath.Join(dir, "in"), n)
	once(t, dir, "source: {file: {paths: ["+filepath.Join(dir, "in")+"], start: beginning}, codec: json}\n"+
		sink(c, topic, ", key: 'k%{id}', tag: web, sharding_key: '%{host}', properties: {Host: '%{host}', none: '%{absent}'}"))
	got := consume(t, c, topic, n)
	if len(got) != n {
		t.Fatalf("%d messages", len(got))
	}
	slices.SortFunc(got, func(a, b *primitive.MessageExt) int {
		return strings.Compare(fmt.Sprintf("%s %d %09d", a.Queue.BrokerName, a.Queue.QueueId, a.QueueOffset), fmt.Sprintf("%s %d %09d", b.Queue.BrokerName, b.Queue.QueueId, b.QueueOffset))
	})
	last, queue, used := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, m := range got {
		var row struct {
			ID   int
			Host string
		}
		if err := json.Unmarshal(m.Body, &row); err != nil {
			t.Fatal(err)
		}
		q := fmt.Sprint(m.Queue.BrokerName, m.Queue.QueueId)
		used[q] = true
		if m.GetKeys() != fmt.Sprint("k", row.ID) || m.GetTags() != "web" || m.GetProperty("Host") != row.Host || m.GetProperty("none") != "" || m.GetProperty("__SHARDINGKEY") != row.Host {
			t.Fatalf("%v", m)
		}
		if before, ok := last[row.Host]; ok && before >= row.ID || queue[row.Host] != "" && queue[row.Host] != q {
			t.Fatalf("%s: %d after %d, queue %s after %s", row.Host, row.ID, before, q, queue[row.Host])
		}
		last[row.Host], queue[row.Host] = row.ID, q
		if o := m.GetProperty(rocketmq.OriginProp); !strings.HasPrefix(o, "default/p|rocketmq|") {
			t.Fatalf("origin %q", o)
		}
	}
	if len(last) != 10 || len(used) < 3 {
		t.Errorf("%d keys on %d queues", len(last), len(used))
	}
}

// What the sink sends again is dropped by rsetl's source, also by another instance and after a restart; others see it twice.
func TestRepeatsAreDropped(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir := c.Topic(t, 2), services.Unique("g"), t.TempDir()
	const n = 2000
	in := filepath.Join(dir, "in")
	numbers(t, in, n)
	yaml := "source: {file: {paths: [" + in + "], start: beginning}, codec: json}\n" + sink(c, topic, "")
	out := filepath.Join(dir, "out")
	read := source(c, group, topic, "") + "sinks: [{file: {path: " + out + "}}]\n"
	once(t, filepath.Join(dir, "w"), yaml)
	once(t, filepath.Join(dir, "r1"), read)
	// The same again, as after a crash before the commit: a state from before, the split's id is the same.
	p := filepath.Join(dir, "w", "state")
	if err := os.RemoveAll(p); err != nil {
		t.Fatal(err)
	}
	if len(lines(t, out)) != n {
		t.Fatalf("%d rows", len(lines(t, out)))
	}
	resend(t, c, topic, 700)
	if _, ends := offsets(t, c, group, topic); ends != n+700 {
		t.Fatalf("%d messages", ends)
	}
	text := once(t, filepath.Join(dir, "r2"), source(c, group, topic, "")+"sinks: [{file: {path: "+out+"2}}]\n")
	if rows := lines(t, out+"2"); len(rows) != 0 || !strings.Contains(text, "filtered 700") {
		t.Errorf("%d rows\n%s", len(rows), text)
	}
	text = once(t, filepath.Join(dir, "r3"), source(c, services.Unique("g"), topic, "")+"sinks: [{file: {path: "+out+"3}}]\n")
	if rows := lines(t, out+"3"); len(rows) != n {
		t.Errorf("%d rows\n%s", len(rows), text)
	}
}

// resend sends the last n messages of the topic's only used queue again.
func resend(t *testing.T, c *services.Cluster, topic string, n int64) {
	r := c.Route(t, topic, 4)
	sub := rocketmq.Subscription{Topic: topic, Kind: "TAG", Filter: "*"}
	for _, q := range r.Read {
		_, end, err := c.Client.Bounds(t.Context(), r.Masters[q.Broker], q)
		if err != nil {
			t.Fatal(err)
		}
		for at := end - n; end > 0 && at < end; {
			p, err := c.Client.Pull(t.Context(), r.Masters[q.Broker], "rsetl_check", q, &sub, at, 32, 1<<20, 0)
			if err != nil || p.Code != rocketmq.Success {
				t.Fatal(p.Code, err)
			}
			var batch []byte
			for body := p.Body; len(body) > 0; {
				var m rocketmq.Message
				if body, err = rocketmq.Next(body, &m); err != nil {
					t.Fatal(err)
				}
				if m.Offset < end {
					batch = rocketmq.AppendInner(batch, 0, m.Body, m.Props)
				}
			}
			if err := c.Client.SendBatch(t.Context(), r.Masters[q.Broker], q, batch); err != nil {
				t.Fatal(err)
			}
			at = p.Next
		}
	}
}

// Killed at any moment, the sink's pipeline loses nothing, and a rsetl source behind it gets each record once.
func TestSinkKilled(t *testing.T) {
	c := services.RocketMQ(t)
	topic, dir := c.Topic(t, 4), t.TempDir()
	in := filepath.Join(dir, "in")
	const n = 30_000
	numbers(t, in, n)
	yaml := "source: {file: {paths: [" + in + "], start: beginning}, codec: json}\n" +
		strings.Replace(sink(c, topic, ", sharding_key: '%{host}'"), "}}]", "}, batch: {size: 500, interval: 20ms}}]", 1)
	yaml = strings.Replace(yaml, "interval: 500ms", "interval: 150ms", 1)
	w := filepath.Join(dir, "w")
	for i := range 4 {
		p := start(t, w, yaml)
		want := int64(2000 * (i + 1))
		await(t, 30*time.Second, "some messages", func() bool { _, ends := offsets(t, c, "rsetl_none", topic); return ends >= want })
		p.kill()
	}
	once(t, w, yaml)
	out := filepath.Join(dir, "out")
	once(t, filepath.Join(dir, "r"), source(c, services.Unique("g"), topic, "")+"sinks: [{file: {path: "+out+"}}]\n")
	ids := map[string]int{}
	for _, r := range lines(t, out) {
		ids[r["message"].(string)]++
	}
	twice := 0
	for _, k := range ids {
		if k > 1 {
			twice++
		}
	}
	_, ends := offsets(t, c, "rsetl_none", topic)
	t.Logf("%d messages of %d records; %d twice behind the source", ends, n, twice)
	if len(ids) != n || twice != 0 {
		t.Errorf("%d records of %d, %d twice", len(ids), n, twice)
	}
}

// A delay in one of the fixed steps keeps the message back.
func TestDelay(t *testing.T) {
	c := services.RocketMQ(t)
	topic, dir := c.Topic(t, 1), t.TempDir()
	numbers(t, filepath.Join(dir, "in"), 3)
	begin := time.Now()
	once(t, dir, "source: {file: {paths: ["+filepath.Join(dir, "in")+"], start: beginning}}\n"+sink(c, topic, ", delay: 5s, body: '%{message}'"))
	if got := consume(t, c, topic, 3); len(got) != 3 || time.Since(begin) < 4*time.Second {
		t.Errorf("%d messages after %s", len(got), time.Since(begin))
	}
}
