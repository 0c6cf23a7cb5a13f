package rocketmq

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/test/proxy"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one running source over a store. A checkpoint is made when the source asks for one, or by commit.
type rig struct {
	t     testing.TB
	s     *Source
	out   *sourcetest.Output
	stop  context.CancelFunc
	done  chan error
	mu    sync.Mutex
	seen  map[*record.Split]record.Position // what Committed was told
	quiet bool                              // no checkpoint succeeds
}

func conf(c *services.Cluster, group, topic string) *Config {
	cfg := &Config{}
	config.Defaults(cfg)
	cfg.NameServers = []config.Text{{Value: c.NameServer}}
	cfg.Group, cfg.Topics, cfg.Start = group, []Topic{{Name: topic}}, "first"
	return cfg
}

func run(t testing.TB, cfg *Config, store *sourcetest.Store, once bool, tune ...func(*Source)) *rig {
	t.Helper()
	table := record.NewTable()
	for _, n := range []string{"message", "@queue", "@broker", "@keys"} {
		table.Slot(n)
	}
	src, err := cfg.Build(&sources.Build{Build: steps.Build{Table: table, Name: "in"}, Once: once, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, s: src.(*Source), out: sourcetest.New(store, table), done: make(chan error, 1), seen: map[*record.Split]record.Position{}}
	r.s.look = 100 * time.Millisecond
	for _, f := range tune {
		f(r.s)
	}
	r.out.OnCheckpoint = r.commit
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	go func() { r.done <- r.s.Run(ctx, r.out) }()
	t.Cleanup(func() { cancel() })
	return r
}

// commit is a checkpoint of all that was sent.
func (r *rig) commit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet {
		return
	}
	now := map[string]record.Position{}
	for id, sp := range r.out.Commit().Splits {
		now[id] = sp.Position()
	}
	positions := map[*record.Split]record.Position{}
	r.s.mu.Lock()
	for id, q := range r.s.opened {
		if p := now[id]; q.split != nil && p != r.seen[q.split] {
			positions[q.split] = p
			r.seen[q.split] = p
		}
	}
	r.s.mu.Unlock()
	r.s.Committed(context.Background(), positions)
}

func (r *rig) wait(what string, ok func(v sourcetest.View) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	if err := r.out.Wait(ctx, ok); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

func (r *rig) count(n int) {
	r.t.Helper()
	r.wait(fmt.Sprint(n, " messages"), func(v sourcetest.View) bool { return v.Count() >= n })
}

// end stops the source and gives the store that it leaves.
func (r *rig) end() *sourcetest.Store {
	r.t.Helper()
	r.stop()
	r.finish()
	return r.out.Commit()
}

func (r *rig) finish() {
	r.t.Helper()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Error(err)
		}
	case <-time.After(30 * time.Second):
		r.t.Fatal("Run doesn't end")
	}
	if err := r.out.Err(); err != nil {
		r.t.Error(err)
	}
}

// send sends texts to the topic's queues in turn.
func send(t testing.TB, c *services.Cluster, topic string, texts ...string) {
	t.Helper()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range texts {
		q := r.Write[i%len(r.Write)]
		err := c.Client.Send(t.Context(), r.Masters[q.Broker], q, 0, []byte(s), nil)
		for try := 0; try < 20 && rocketmq.IsCode(err, rocketmq.SystemBusy); try++ { // it didn't take the message in time
			time.Sleep(100 * time.Millisecond)
			err = c.Client.Send(t.Context(), r.Masters[q.Broker], q, 0, []byte(s), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func texts(from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = strconv.Itoa(from + i)
	}
	return out
}

// at gives the group's offsets by queue; -1 where there is none.
func at(t testing.TB, c *services.Cluster, group, topic string) []int64 {
	t.Helper()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	for _, q := range r.Read {
		n, ok, err := c.Client.Offset(t.Context(), r.Masters[q.Broker], group, q)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			n = -1
		}
		out = append(out, n)
	}
	return out
}

func set(t testing.TB, c *services.Cluster, group, topic string, n int64) {
	t.Helper()
	r, err := c.Client.Route(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	join := slices.Min(at(t, c, group, topic)) < 0
	sub := []rocketmq.Subscription{{Topic: topic, Kind: "TAG", Filter: "*"}}
	for _, q := range r.Read {
		if join { // the group may not be there yet
			if err := c.Client.Heartbeat(t.Context(), r.Masters[q.Broker], "test", group, sub); err != nil {
				t.Fatal(err)
			}
			if err := c.Client.Leave(t.Context(), r.Masters[q.Broker], "test", group); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Client.SetOffset(t.Context(), r.Masters[q.Broker], group, q, n); err != nil {
			t.Fatal(err)
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// The broker's offset doesn't move by itself, however long a read goes without a checkpoint; a checkpoint moves it exactly so far.
func TestOffsetMovesByCheckpoints(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	send(t, c, topic, texts(0, 20)...)
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	r.count(20)
	time.Sleep(6 * time.Second) // longer than clients' usual job that sends offsets; -1: none is there
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{-1, -1}) {
		t.Errorf("offsets %v without a checkpoint", got)
	}
	r.commit()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{10, 10}) {
		t.Errorf("offsets %v after a checkpoint", got)
	}
	r.mu.Lock()
	r.quiet = true
	r.mu.Unlock()
	send(t, c, topic, texts(20, 2)...)
	r.count(22)
	r.end()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{10, 10}) {
		t.Errorf("offsets %v after a stop that committed nothing", got)
	}
}

// Where a group begins, what an operator's changes do, and that the store's position goes before a lost commit.
func TestWhereItBegins(t *testing.T) {
	c := services.RocketMQ(t)
	topic := c.Topic(t, 1)
	send(t, c, topic, texts(0, 20)...)
	var mid time.Time
	time.Sleep(50 * time.Millisecond)
	mid = time.Now()
	time.Sleep(50 * time.Millisecond)
	send(t, c, topic, texts(20, 20)...)
	last := func(start string) (*rig, string) {
		cfg := conf(c, services.Unique("g"), topic)
		cfg.Start = start
		if t, err := time.Parse(time.RFC3339Nano, start); err == nil {
			cfg.start = t
		}
		return run(t, cfg, sourcetest.NewStore(), false), cfg.Group
	}
	r, _ := last("first")
	r.count(40)
	r.end()
	r, _ = last(mid.Format(time.RFC3339Nano))
	r.count(20)
	if got := sorted(r.out.Messages()); !slices.Equal(got, sorted(texts(20, 20))) {
		t.Errorf("by time: %v", got)
	}
	r.end()
	r, group := last("last")
	r.wait("both queues", func(v sourcetest.View) bool { return v.Splits() == 2 && v.Idle() })
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{20, 20}) {
		t.Errorf("the beginning isn't told to the broker: %v", got)
	}
	send(t, c, topic, texts(40, 2)...)
	r.count(2)
	r.commit()
	store := r.end()

	// A commit that the broker has lost: the store's position counts.
	set(t, c, group, topic, 20)
	send(t, c, topic, texts(42, 2)...)
	r = run(t, conf(c, group, topic), store, false)
	r.count(2)
	if got := sorted(r.out.Messages()); !slices.Equal(got, texts(42, 2)) {
		t.Errorf("after a lost commit: %v", got)
	}
	r.commit()
	store = r.end()

	// An operator's reset back: from there, in a new epoch.
	set(t, c, group, topic, 15)
	r = run(t, conf(c, group, topic), store, false)
	r.count(14)
	r.commit()
	store = r.end()
	for _, s := range store.Splits {
		if s.Epoch != 1 || s.Position().Offset != 22 {
			t.Errorf("after a reset: %+v", s)
		}
	}
	// And forward.
	send(t, c, topic, texts(44, 8)...)
	set(t, c, group, topic, 25)
	r = run(t, conf(c, group, topic), store, false)
	r.count(2)
	if got := sorted(r.out.Messages()); !slices.Equal(got, texts(50, 2)) {
		t.Errorf("after a reset forward: %v", got)
	}
	// While it runs: back.
	r.commit()
	set(t, c, group, topic, 3)
	send(t, c, topic, texts(52, 2)...)
	r.count(4)
	r.commit()
	r.count(4 + 2*24)
	r.commit()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{27, 27}) {
		t.Errorf("offsets %v", got)
	}
	r.stop()
	<-r.done
}

// Bodies that can't be read are dead letters; none is half-read; those that can be are decompressed.
func TestBodies(t *testing.T) {
	c := services.RocketMQ(t)
	topic := c.Topic(t, 1)
	route := c.Route(t, topic, 2)
	q := route.Write[0]
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(bytes.Repeat([]byte("zlib "), 1000))
	w.Close()
	e, _ := zstd.NewWriter(nil)
	zs := e.EncodeAll(bytes.Repeat([]byte("zstd "), 1000), nil)
	bomb := e.EncodeAll(make([]byte, 8<<20), nil)
	e.Close()
	l4 := func(text []byte) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		w.Write(text)
		w.Close()
		return out.Bytes()
	}
	for _, m := range []struct {
		flag int32
		body []byte
	}{{0, []byte("plain\nwith a second line")}, {1, z.Bytes()}, {1 | 3<<8, z.Bytes()}, {1 | 2<<8, zs}, {1 | 1<<8, l4(bytes.Repeat([]byte("lz4 "), 1000))}, {1 | 1<<8, l4(make([]byte, 8<<20))}, {1 | 1<<8, []byte("no lz4")}, {1 | 7<<8, []byte("new")}, {1, []byte("no zlib")},
		{1 | 2<<8, bomb}, {0, bytes.Repeat([]byte("x"), 2000)}, {0, []byte("\xff\xfe\x00")}} {
		if err := c.Client.Send(t.Context(), route.Masters[q.Broker], q, m.flag, m.body, rocketmq.AppendProp(nil, "KEYS", []byte("k"))); err != nil {
			t.Fatal(err)
		}
	}
	cfg := conf(c, services.Unique("g"), topic)
	cfg.MaxMessage = 6000
	r := run(t, cfg, sourcetest.NewStore(), true)
	r.finish()
	want := []struct{ text, failed string }{{"plain\nwith a second line", ""}, {strings.Repeat("zlib ", 1000), ""}, {strings.Repeat("zlib ", 1000), ""}, {strings.Repeat("zstd ", 1000), ""},
		{strings.Repeat("lz4 ", 1000), ""}, {"", "too long"}, {"no lz4", "lz4"}, {"new", "unknown way"}, {"no zlib", "zlib"}, {"", "too long"}, {strings.Repeat("x", 2000), ""}, {"\xff\xfe\x00", ""}}
	got := r.out.Records()
	if len(got) != len(want) {
		t.Fatalf("%d records", len(got))
	}
	for i, g := range got {
		w := want[i]
		if w.failed == "" && (g.Message() != w.text || g.Failed != "") || w.failed != "" && !strings.Contains(g.Failed, w.failed) || g.Pos.Offset != int64(i) {
			t.Errorf("%d: %q %q at %v", i, g.Message()[:min(40, len(g.Message()))], g.Failed, g.Pos)
		}
		if len(g.Raw) > 6000 {
			t.Errorf("%d: %d bytes kept", i, len(g.Raw))
		}
	}
}

// What a broker stores as one batch comes as messages with offsets of their own, also from the middle of a batch.
func TestBatchTopic(t *testing.T) {
	c := services.RocketMQ(t)
	topic := c.TopicWith(t, 1, "+queue.type=BatchCQ")
	route := c.Route(t, topic, 2)
	q := route.Write[0]
	for i := range 20 {
		var b []byte
		for j := range 10 {
			b = rocketmq.AppendInner(b, 0, []byte(strconv.Itoa(10*i+j)), rocketmq.AppendProp(nil, "KEYS", []byte(fmt.Sprint("k", j))))
		}
		if err := c.Client.SendBatch(t.Context(), route.Masters[q.Broker], q, b); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{0, 37} {
		group := services.Unique("g")
		if from > 0 {
			set(t, c, group, topic, from)
		}
		r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
		r.count(200 - int(from))
		for i, g := range r.out.Records() {
			if n := int(from) + i; g.Message() != strconv.Itoa(n) || g.Pos.Offset != int64(n) || g.Fields["@keys"] != fmt.Sprint("k", n%10) || g.Failed != "" {
				t.Fatalf("%d: %+v", n, g)
			}
		}
		r.commit()
		r.end()
	}
}

// A static topic is refused, with the reason.
func TestStaticTopic(t *testing.T) {
	c := services.RocketMQ(t)
	topic := services.Unique("t")
	c.Admin(t, "updateStaticTopic", "-t", topic, "-qn", "4", "-c", "DefaultCluster")
	r := run(t, conf(c, services.Unique("g"), topic), sourcetest.NewStore(), false)
	select {
	case err := <-r.done:
		var static *rocketmq.ErrStatic
		if !errors.As(err, &static) || !strings.Contains(err.Error(), "static topic") {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

// A second instance gets its half within 5 s, a killed one's queues go back within 5 s, and what was checkpointed at the change comes to one of them only.
func TestHandover(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 4), services.Unique("g")
	send(t, c, topic, texts(0, 400)...)
	a := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	a.count(400)
	begin := time.Now()
	b := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	b.wait("queues", func(v sourcetest.View) bool { return v.Splits() == 4 })
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("taken over after %s", took)
	}
	send(t, c, topic, texts(400, 400)...)
	await(t, "all messages", func() bool { return a.out.Count()+b.out.Count() >= 800 })
	if a.out.Count() != 600 || b.out.Count() != 200 {
		t.Errorf("%d and %d messages", a.out.Count(), b.out.Count())
	}
	b.commit()
	begin = time.Now()
	b.s.client.Close() // as a kill: the connections are gone, and it doesn't come back
	b.s.cfg.NameServers = nil
	b.stop()
	<-b.done
	send(t, c, topic, texts(800, 8)...)
	a.count(608)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("taken back after %s", took)
	}
	a.commit()
	if got := at(t, c, group, topic); slices.Max(got) != 101 || slices.Min(got) != 101 {
		t.Errorf("offsets %v", got)
	}
	a.stop()
	<-a.done
}

// Where the checkpoint of a revoked queue doesn't come in time, the pipeline is taken back to its last commit.
func TestRevokeWithoutCheckpoint(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	send(t, c, topic, texts(0, 20)...)
	cfg := conf(c, group, topic)
	cfg.Revoke = config.Duration(300 * time.Millisecond)
	a := run(t, cfg, sourcetest.NewStore(), false)
	a.quiet = true
	a.count(20)
	b := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	b.count(10)
	select {
	case err := <-a.done:
		if err == nil || a.out.Aborted() == nil || !strings.Contains(err.Error(), "another instance") {
			t.Errorf("%v, aborted with %v", err, a.out.Aborted())
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
	b.end()
}

// An instance without checkpoints leaves the group, so that the other takes its queues; when they succeed it comes back.
func TestStall(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	send(t, c, topic, texts(0, 2)...)
	cfg := conf(c, group, topic)
	cfg.Stall = config.Duration(time.Second)
	a := run(t, cfg, sourcetest.NewStore(), false)
	a.quiet = true
	a.count(2)
	a.wait("trouble", func(v sourcetest.View) bool {
		return v.Trouble() != nil && strings.Contains(v.Trouble().Error(), "left the consumer group")
	})
	route := c.Route(t, topic, 2)
	await(t, "an empty group", func() bool {
		m, _ := c.Client.Members(t.Context(), route.Masters["broker-a"], group)
		return len(m) == 0
	})
	a.mu.Lock()
	a.quiet = false
	a.mu.Unlock()
	a.commit()
	a.wait("no trouble", func(v sourcetest.View) bool { return v.Trouble() == nil })
	send(t, c, topic, texts(2, 2)...)
	a.count(4)
	// Once more, and now another instance does its work.
	a.mu.Lock()
	a.quiet = true
	a.mu.Unlock()
	a.wait("trouble", func(v sourcetest.View) bool { return v.Trouble() != nil })
	b := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	b.count(2)
	b.commit()
	await(t, "an abort", func() bool { return a.out.Aborted() != nil })
	a.stop()
	<-a.done
	b.end()
}

// All name servers are away: what is known goes on, trouble is told, and it is over when they are back.
func TestNameServersAway(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	p := proxy.New(t, c.NameServer)
	cfg := conf(c, group, topic)
	cfg.NameServers = []config.Text{{Value: p.Addr}}
	r := run(t, cfg, sourcetest.NewStore(), false, func(s *Source) { s.refresh = 100 * time.Millisecond })
	send(t, c, topic, texts(0, 2)...)
	r.count(2)
	p.Down(true)
	r.wait("trouble", func(v sourcetest.View) bool {
		return v.Trouble() != nil && strings.Contains(v.Trouble().Error(), "name server")
	})
	send(t, c, topic, texts(2, 2)...)
	r.count(4)
	p.Down(false)
	r.wait("no trouble", func(v sourcetest.View) bool { return v.Trouble() == nil })
	r.commit()
	r.end()
}

// TLS verifies the broker: its self-signed certificate is refused unless that is allowed.
func TestTLS(t *testing.T) {
	c := services.RocketMQ(t)
	topic := c.Topic(t, 1)
	send(t, c, topic, texts(0, 4)...)
	cfg := conf(c, services.Unique("g"), topic)
	cfg.TLS = &rocketmq.TLS{}
	r := run(t, cfg, sourcetest.NewStore(), false)
	r.wait("trouble", func(v sourcetest.View) bool {
		return v.Trouble() != nil && strings.Contains(v.Trouble().Error(), "certificate")
	})
	r.end()
	cfg = conf(c, services.Unique("g"), topic)
	cfg.TLS = &rocketmq.TLS{Insecure: true}
	r = run(t, cfg, sourcetest.NewStore(), false)
	r.count(4)
	r.end()
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Queues that are added while it runs are read from their first message; those that may not be read any more are settled.
func TestQueuesAdded(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	cfg := conf(c, group, topic)
	cfg.Start = "last"
	r := run(t, cfg, sourcetest.NewStore(), false, func(s *Source) { s.refresh = 100 * time.Millisecond })
	r.wait("queues", func(v sourcetest.View) bool { return v.Splits() == 2 && v.Idle() })
	for _, a := range c.Brokers {
		if err := c.Client.CreateTopic(t.Context(), a, topic, 2, 2, 6, ""); err != nil {
			t.Fatal(err)
		}
	}
	c.Route(t, topic, 4)
	send(t, c, topic, texts(0, 8)...)
	r.count(8)
	if err := c.Client.CreateTopic(t.Context(), c.Brokers[0], topic, 1, 1, 6, ""); err != nil {
		t.Fatal(err)
	}
	await(t, "the queue's end", func() bool { r.s.mu.Lock(); defer r.s.mu.Unlock(); return len(r.s.opened) == 3 })
	r.commit()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{2, 2, 2}) {
		t.Errorf("offsets %v", got)
	}
	r.end()
}

// The admin tool sets a running group's offsets back: everything since comes again, in a new epoch.
func TestAdminResetsWhileItRuns(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 1), services.Unique("g")
	begin := time.Now()
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	n := 0
	for range 20 { // the first position leaves the last 16
		send(t, c, topic, texts(n, 2)...)
		n += 2
		r.count(n)
		r.commit()
	}
	c.Admin(t, "resetOffsetByTime", "-g", group, "-t", topic, "-s", strconv.FormatInt(begin.UnixMilli(), 10))
	send(t, c, topic, texts(n, 2)...)
	for end := time.Now().Add(30 * time.Second); r.out.Count() < 2*n+2; time.Sleep(50 * time.Millisecond) {
		r.commit()
		if time.Now().After(end) {
			t.Fatalf("%d messages of %d", r.out.Count(), 2*n+2)
		}
	}
	r.commit()
	for _, s := range r.out.Commit().Splits {
		if s.Epoch != 1 || s.Position().Offset != int64(n/2+1) {
			t.Errorf("%+v", s)
		}
	}
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{int64(n/2 + 1), int64(n/2 + 1)}) {
		t.Errorf("offsets %v", got)
	}
	r.end()
}

// Connections that are lost again and again lose and double nothing.
func TestLostConnections(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 2), services.Unique("g")
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false)
	n := 0
	for range 20 {
		send(t, c, topic, texts(n, 40)...)
		n += 40
		r.count(n - 20)
		r.s.client.Close()
		r.commit()
	}
	r.count(n)
	got := r.out.Messages()
	if slices.Sort(got); len(got) != n || len(slices.Compact(got)) != n {
		t.Errorf("%d messages of %d", len(got), n)
	}
	r.commit()
	if got := at(t, c, group, topic); !slices.Equal(got, []int64{200, 200, 200, 200}) {
		t.Errorf("offsets %v", got)
	}
	r.end()
}

// With nothing to do there are no commits and no more goroutines, however often it looks.
func TestIdle(t *testing.T) {
	c := services.RocketMQ(t)
	topic, group := c.Topic(t, 4), services.Unique("g")
	r := run(t, conf(c, group, topic), sourcetest.NewStore(), false, func(s *Source) {
		s.heartbeat, s.look, s.refresh = 20*time.Millisecond, 10*time.Millisecond, 20*time.Millisecond
	})
	r.wait("queues", func(v sourcetest.View) bool { return v.Splits() == 8 && v.Idle() })
	time.Sleep(200 * time.Millisecond)
	before, events := runtime.NumGoroutine(), r.out.Events()
	set(t, c, group, topic, 0) // a commit of the source's would be told apart: the store's position is 0 as well
	time.Sleep(3 * time.Second)
	if now := runtime.NumGoroutine(); now > before+3 {
		t.Errorf("%d goroutines, %d before", now, before)
	}
	if now := r.out.Events(); now != events {
		t.Errorf("%d events in an idle time", now-events)
	}
	r.end()
}

// Topics and groups of a namespace have its name before theirs, and records have the plain ones.
func TestNamespace(t *testing.T) {
	c := services.RocketMQ(t)
	name := services.Unique("t")
	for _, a := range c.Brokers {
		if err := c.Client.CreateTopic(t.Context(), a, "ns%"+name, 1, 1, 6, ""); err != nil {
			t.Fatal(err)
		}
	}
	c.Route(t, "ns%"+name, 2)
	send(t, c, "ns%"+name, "a", "b")
	cfg := conf(c, services.Unique("g"), name)
	cfg.Namespace = "ns"
	r := run(t, cfg, sourcetest.NewStore(), false)
	r.count(2)
	r.commit()
	r.end()
	if got := at(t, c, "ns%"+cfg.Group, "ns%"+name); !slices.Equal(got, []int64{1, 1}) {
		t.Errorf("offsets %v", got)
	}
}
