package rocketmq

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/test/services"
)

func source(c *services.Cluster, group, topic, more string) string {
	return fmt.Sprintf("source: {rocketmq: {name_servers: ['%s'], group: %s, topics: [{name: %s}], start: first%s}}\ncheckpoint: {interval: 500ms}\n", c.NameServer, group, topic, more)
}

// All messages of another client come once, with their metadata, and the broker's offsets are at the ends.
func TestOnce(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir := c.Topic(t, 8), services.Unique("g"), t.TempDir()
	const n = 5000
	produce(t, c, topic, 0, n, func(i int) string { return fmt.Sprint("message ", i) })
	out := filepath.Join(dir, "out")
	yaml := source(c, group, topic, "") + unindent(`
steps: [{set: {n: "@properties['n']", k: '@keys', g: '@tags', q: '@queue', b: '@broker', o: '@offset', born: '@born', t: '@topic'}}]
sinks: [{file: {path: `+out+`}}]`)
	once(t, dir, yaml)
	rows := lines(t, out)
	seen := map[string]bool{}
	queues := map[string]int64{}
	for _, r := range rows {
		var i int
		fmt.Sscan(r["n"].(string), &i)
		if r["message"] != fmt.Sprint("message ", i) || r["k"] != fmt.Sprint("k", i) || r["g"] != []string{"a", "b", "c"}[i%3] || r["t"] != topic {
			t.Fatalf("%v", r)
		}
		at, err := time.Parse(time.RFC3339, r["born"].(string))
		if err != nil || time.Since(at) > 5*time.Minute || time.Since(at) < -time.Minute {
			t.Fatalf("born %v %v", r["born"], err)
		}
		seen[r["n"].(string)] = true
		q := fmt.Sprint(r["b"], r["q"])
		var o int64
		fmt.Sscan(fmt.Sprint(r["o"]), &o)
		if o != queues[q] {
			t.Fatalf("offset %d of queue %s, want %d", o, q, queues[q])
		}
		queues[q]++
	}
	if len(rows) != n || len(seen) != n || len(queues) != 16 {
		t.Fatalf("%d rows, %d different, %d queues", len(rows), len(seen), len(queues))
	}
	if sum, ends := offsets(t, c, group, topic); sum != n || ends != n {
		t.Errorf("offsets %d of %d", sum, ends)
	}
	produce(t, c, topic, n, 100, func(i int) string { return fmt.Sprint("message ", i) })
	once(t, dir, yaml)
	if rows := lines(t, out); len(rows) != n+100 {
		t.Errorf("%d rows after the second run", len(rows))
	}
}

// Filters: tags, and SQL92, which loses nothing; the offsets pass what is left out.
func TestFilters(t *testing.T) {
	c := services.RocketMQ(t)
	topic := c.Topic(t, 2)
	produce(t, c, topic, 0, 1000, func(i int) string { return fmt.Sprint(i) })
	for _, f := range []struct {
		filter string
		ok     func(i int) bool
	}{
		{"tags: 'a||b'", func(i int) bool { return i%3 < 2 }},
		{"tags: ' c '", func(i int) bool { return i%3 == 2 }},
		{"tags: nothing", func(i int) bool { return false }},
		{"sql: n >= 900 AND TAGS = 'a'", func(i int) bool { return i >= 900 && i%3 == 0 }},
	} {
		group, dir := services.Unique("g"), t.TempDir()
		out := filepath.Join(dir, "out")
		once(t, dir, strings.Replace(source(c, group, topic, ""), "name: "+topic, "name: "+topic+", "+f.filter, 1)+"sinks: [{file: {path: "+out+"}}]\n")
		var got, want []int
		for _, r := range lines(t, out) {
			var i int
			fmt.Sscan(r["message"].(string), &i)
			got = append(got, i)
		}
		for i := range 1000 {
			if f.ok(i) {
				want = append(want, i)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d messages, want %d", f.filter, len(got), len(want))
		}
		if sum, ends := offsets(t, c, group, topic); sum != ends {
			t.Errorf("%s: offsets %d of %d", f.filter, sum, ends)
		}
	}
}

// An operator's reset, seen by one instance, is taken over by another with the queue: its epoch is the table's.
func TestResetIsTakenOver(t *testing.T) {
	c := services.RocketMQ(t)
	dsn := services.MySQL(t)
	topic, group, dir := c.Topic(t, 1), services.Unique("g"), t.TempDir()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	yaml := strings.Replace(source(c, group, topic, ""), "interval: 500ms", "interval: 50ms", 1) +
		"sinks: [{mysql: {dsn: '" + dsn + "', table: r, columns: {m: message}, create_table: true}, batch: {interval: 10ms}}]\n"
	count := func() (n int) {
		if err := db.QueryRow("SELECT COUNT(*) FROM r").Scan(&n); err != nil {
			return 0
		}
		return n
	}
	b := start(t, filepath.Join(dir, "b"), yaml) // it has the queues first, and goes
	put(t, c, topic, 200)
	await(t, 20*time.Second, "rows", func() bool { return count() == 200 })
	b.stop(t)
	a := start(t, filepath.Join(dir, "a"), yaml)
	for i := 1; i <= 20; i++ { // as many commits that the first is out of the last 16
		put(t, c, topic, 200)
		await(t, 20*time.Second, "rows", func() bool { return count() == 200*(i+1) })
		time.Sleep(100 * time.Millisecond)
	}
	a.stop(t)
	r := c.Route(t, topic, 2)
	for _, q := range r.Read {
		if err := c.Client.SetOffset(t.Context(), r.Masters[q.Broker], group, q, 0); err != nil {
			t.Fatal(err)
		}
	}
	a = start(t, filepath.Join(dir, "a"), yaml)
	await(t, 20*time.Second, "all rows again", func() bool { return count() == 2*4200 })
	a.stop(t)
	b = start(t, filepath.Join(dir, "b"), yaml)
	put(t, c, topic, 200)
	await(t, 20*time.Second, "the other instance's rows", func() bool { return count() == 2*4200+200 })
	b.stop(t)
}

// put sends n messages to the topic's queues in turn.
func put(t testing.TB, c *services.Cluster, topic string, n int) {
	t.Helper()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	batches := make([][]byte, len(r.Write))
	for i := range n {
		batches[i%len(batches)] = rocketmq.AppendInner(batches[i%len(batches)], 0, []byte(fmt.Sprint("message ", i)), nil)
	}
	for i, q := range r.Write {
		err := c.Client.SendBatch(t.Context(), r.Masters[q.Broker], q, batches[i])
		for try := 0; try < 20 && rocketmq.IsCode(err, rocketmq.SystemBusy); try++ { // it didn't take them in time
			time.Sleep(100 * time.Millisecond)
			err = c.Client.SendBatch(t.Context(), r.Masters[q.Broker], q, batches[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A killed instance's queues are read by the other within 5 s.
func TestTakeoverAfterKill(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group, dir := c.Topic(t, 4), services.Unique("g"), t.TempDir()
	yaml := func(i string) string {
		return source(c, group, topic, "") + "sinks: [{file: {path: " + filepath.Join(dir, i) + "}, batch: {interval: 50ms}}]\n"
	}
	a := start(t, filepath.Join(dir, "ia"), yaml("a"))
	b := start(t, filepath.Join(dir, "ib"), yaml("b"))
	taken := func(p *process) int {
		return strings.Count(p.output(), "queue taken") - strings.Count(p.output(), "queue given up")
	}
	await(t, 20*time.Second, "shared queues", func() bool { return taken(a) == 4 && taken(b) == 4 })
	put(t, c, topic, 80)
	await(t, 20*time.Second, "rows", func() bool { sum, _ := offsets(t, c, group, topic); return sum == 80 })
	begin := time.Now()
	a.kill()
	put(t, c, topic, 80)
	await(t, 20*time.Second, "all queues", func() bool { sum, _ := offsets(t, c, group, topic); return sum == 160 })
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("taken over after %s", took)
	}
	b.stop(t)
	if n := len(lines(t, filepath.Join(dir, "a"))) + len(lines(t, filepath.Join(dir, "b"))); n != 160 {
		t.Errorf("%d rows", n)
	}
}

// RocketMQ's own client in the same group: the two share the queues, and each message comes to one of them.
func TestMixedGroup(t *testing.T) {
	skipRace(t)
	c := services.RocketMQ(t)
	topic, group, dir := c.Topic(t, 4), services.Unique("g"), t.TempDir()
	p, err := mq.NewPushConsumer(consumer.WithNsResolver(primitive.NewPassthroughResolver([]string{c.NameServer})), consumer.WithGroupName(group),
		consumer.WithInstance(services.Unique("i")), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		t.Fatal(err)
	}
	var theirs atomic.Int64
	err = p.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		theirs.Add(int64(len(ms)))
		return consumer.ConsumeSuccess, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown()
	out := filepath.Join(dir, "out")
	a := start(t, dir, source(c, group, topic, "")+"sinks: [{file: {path: "+out+"}, batch: {interval: 50ms}}]\n")
	await(t, 30*time.Second, "half of the queues", func() bool { return strings.Count(a.output(), "queue taken") == 4 })
	time.Sleep(2 * time.Second) // the client's part of the change
	put(t, c, topic, 800)
	await(t, 30*time.Second, "all messages", func() bool { return theirs.Load()+int64(len(lines(t, out))) >= 800 })
	if n := len(lines(t, out)); n != 400 || theirs.Load() != 400 {
		t.Errorf("%d and %d messages", n, theirs.Load())
	}
	a.stop(t)
}

// Messages of the Java client: one by one, as lists, long ones (which it compresses), and lists in a batch topic, which a broker stores as one.
func TestJavaProducer(t *testing.T) {
	c := services.RocketMQ(t)
	type run struct {
		attributes string
		flag       int32 // of the messages
		services.JavaRun
	}
	runs := []run{{"", 0, services.JavaRun{N: 300, Batch: 1, Compression: "ZLIB"}}, {"", 0, services.JavaRun{N: 300, Batch: 10, Compression: "ZLIB"}},
		{"", 1 | 3<<8, services.JavaRun{N: 40, Batch: 1, Padding: 20000, Compression: "ZLIB"}}, {"", 1 | 1<<8, services.JavaRun{N: 40, Batch: 1, Padding: 20000, Compression: "LZ4"}},
		{"", 1 | 2<<8, services.JavaRun{N: 40, Batch: 1, Padding: 20000, Compression: "ZSTD"}},
		{"+queue.type=BatchCQ", -1, services.JavaRun{N: 200, Batch: 10, Compression: "ZLIB"}}}
	var jobs []services.JavaRun
	for i := range runs {
		runs[i].Topic = c.TopicWith(t, 2, runs[i].attributes)
		jobs = append(jobs, runs[i].JavaRun)
	}
	c.Java(t, jobs...)
	for _, k := range runs {
		dir := t.TempDir()
		if k.flag >= 0 {
			r := c.Route(t, k.Topic, 4)
			sub := rocketmq.Subscription{Topic: k.Topic, Kind: "TAG", Filter: "*"}
			p, err := c.Client.Pull(t.Context(), r.Masters[r.Read[0].Broker], "rsetl_check", r.Read[0], &sub, 0, 1, 1<<20, 0)
			var m rocketmq.Message
			if err == nil {
				_, err = rocketmq.Next(p.Body, &m)
			}
			if err != nil || m.SysFlag&0x701 != k.flag {
				t.Errorf("%+v: flag %x: %v", k, m.SysFlag, err)
			}
		}
		out := filepath.Join(dir, "out")
		once(t, dir, source(c, services.Unique("g"), k.Topic, "")+unindent(`
steps: [{set: {n: "@properties['n']", k: '@keys'}}]
sinks: [{file: {path: `+out+`}}]`))
		seen := map[string]bool{}
		for _, r := range lines(t, out) {
			n := fmt.Sprint(r["n"])
			if r["message"] != "java "+n+" "+strings.Repeat("x", k.Padding) || r["k"] != "k"+n {
				t.Fatalf("%+v: %.80v", k, r)
			}
			seen[n] = true
		}
		if rows := len(lines(t, out)); rows != k.N || len(seen) != k.N {
			t.Errorf("%+v: %d rows, %d different", k, rows, len(seen))
		}
	}
}
