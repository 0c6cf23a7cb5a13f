package rocketmq

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/steps/steptest"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is a name server and a broker in one that has one topic, t, with queues 0 and 1.
type broker struct {
	addr string
	mu   sync.Mutex
	got  map[string][]string // by queue
	code func(queue string, bodies []string) int
}

func newBroker(t *testing.T) *broker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &broker{addr: l.Addr().String(), got: map[string][]string{}}
	ended := make(chan struct{})
	go func() { defer close(ended); rocketmq.Serve(l, b.answer) }()
	t.Cleanup(func() { l.Close(); <-ended })
	return b
}

func (b *broker) answer(c *rocketmq.Command) *rocketmq.Command {
	if c.Code == 105 {
		if c.Fields["topic"] != "t" {
			return &rocketmq.Command{Code: rocketmq.TopicMissing, Remark: "no such topic"}
		}
		return &rocketmq.Command{Body: []byte(`{"brokerDatas":[{"brokerName":"b","cluster":"c","brokerAddrs":{"0":"` + b.addr + `"}}],` +
			`"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":2,"writeQueueNums":2}]}`)}
	}
	var bodies []string
	if c.Code == 310 {
		bodies = []string{string(c.Body)}
	}
	for p := c.Body; c.Code == 320 && len(p) > 0; {
		var m rocketmq.Message
		var err error
		if p, err = rocketmq.NextInner(p, &m); err != nil {
			return nil
		}
		bodies = append(bodies, string(m.Body))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	code := 0
	if b.code != nil {
		code = b.code(c.Fields["e"], bodies)
	}
	if code < 0 {
		return nil
	}
	if code == 0 {
		b.got[c.Fields["e"]] = append(b.got[c.Fields["e"]], bodies...)
	}
	return &rocketmq.Command{Code: code, Remark: "as the test wants"}
}

func (b *broker) sink(t *testing.T, more string) *sinktest.Built {
	return sinktest.Build(t, newConfig(), "{name_servers: ['"+b.addr+"'], topic: t, body: '%{m}'"+more+"}", sinktest.Plan{Fields: "m STRING, k STRING"}).Start(t, true)
}

func newConfig() *Config {
	c := &Config{}
	config.Defaults(c)
	return c
}

// Flow control and a lost connection: what was taken isn't sent again, the rest is, in order; the broker's wish to wait is passed on.
func TestRetry(t *testing.T) {
	for _, code := range []int{rocketmq.SystemBusy, rocketmq.FlowControl, rocketmq.FlushDiskTimeout, rocketmq.NoPermission, -1} {
		b := newBroker(t)
		s := b.sink(t, ", sharding_key: '%{k}'")
		busy := 2
		b.code = func(q string, bodies []string) int {
			if q == "1" && busy > 0 {
				busy--
				return code
			}
			return 0
		}
		var recs []string
		for i := range 100 {
			recs = append(recs, fmt.Sprintf(`{"m": "%03d", "k": "key %d"}`, i, i%7))
		}
		c := sinktest.Chunk(new([]string), s.Part(t, &record.Split{ID: "x"}, 0, recs...))
		tries := 0
		for {
			tries++
			rejects, err := s.Deliver(t.Context(), c)
			if err == nil {
				if len(rejects) != 0 {
					t.Error(rejects)
				}
				break
			}
			if after, ok := sinks.After(err); ok != (code == rocketmq.SystemBusy || code == rocketmq.FlowControl) || ok && after <= 0 {
				t.Errorf("%d: %v %v", code, after, err)
			}
		}
		all := append(slices.Clone(b.got["0"]), b.got["1"]...)
		if tries != 3 || len(all) != 100 || !slices.IsSorted(b.got["0"]) || !slices.IsSorted(b.got["1"]) || len(b.got["0"]) == 0 || len(b.got["1"]) == 0 {
			t.Errorf("%d: %d tries, %d and %d messages", code, tries, len(b.got["0"]), len(b.got["1"]))
		}
		slices.Sort(all)
		if len(slices.Compact(all)) != 100 {
			t.Errorf("%d: messages twice", code)
		}
	}
}

// A message that the broker refuses for its content is found among the others.
func TestRefused(t *testing.T) {
	b := newBroker(t)
	s := b.sink(t, "")
	b.code = func(_ string, bodies []string) int {
		if slices.Contains(bodies, "bad") {
			return rocketmq.MessageIllegal
		}
		return 0
	}
	out := s.Send(t.Context(), s.Part(t, &record.Split{ID: "x"}, 0, `{"m":"a"}`, `{"m":"b"}`, `{"m":"bad"}`, `{"m":"c"}`, `{"m":"bad"}`))
	if out.Err != nil || len(out.Rejects) != 2 || !strings.HasPrefix(out.Rejects[0], "0/2: ") || !strings.HasPrefix(out.Rejects[1], "0/4: ") || !strings.Contains(out.Rejects[0], "as the test wants") {
		t.Errorf("%+v", out)
	}
	if got := append(b.got["0"], b.got["1"]...); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}
}

// A chunk that is given up tells what was delivered.
func TestAbandon(t *testing.T) {
	b := newBroker(t)
	s := b.sink(t, ", sharding_key: '%{k}'")
	b.code = func(q string, _ []string) int { return map[string]int{"1": rocketmq.SystemBusy}[q] }
	var recs []string
	for i := range 20 {
		recs = append(recs, fmt.Sprintf(`{"m": "%03d", "k": "key %d"}`, i, i))
	}
	c := sinktest.Chunk(new([]string), s.Part(t, &record.Split{ID: "x"}, 0, recs...))
	if _, err := s.Deliver(t.Context(), c); err == nil {
		t.Fatal("delivered")
	}
	left := s.Sink.(*Sink).Abandon(c)
	if len(left)+len(b.got["0"]) != 20 || len(left) == 0 {
		t.Errorf("%d left, %d delivered", len(left), len(b.got["0"]))
	}
}

// What a message can't hold is the record's failure.
func TestEncode(t *testing.T) {
	for _, c := range []struct{ conf, rec, want string }{
		{"body: '%{m}'", `{"m": ""}`, "empty"},
		{"body: '%{m}'", `{"k": "x"}`, "body: a field"},
		{"key: '%{k}'", `{"m": "a", "k": "a\u0001b"}`, "key: the value holds the byte 1"},
		{"tag: '%{k}'", `{"m": "a", "k": "\u0002"}`, "tag: "},
		{"sharding_key: '%{k}'", `{"m": "a"}`, "sharding_key: a field"},
		{"properties: {p: '%{k}'}", `{"m": "a", "k": "a\u0001"}`, "properties.p: "},
		{"key: '%{k}'", `{"m": "a", "k": "` + strings.Repeat("x", 40000) + `"}`, "RocketMQ takes"},
		{"max_message: 2000", `{"m": "` + strings.Repeat("x", 2000) + `"}`, "max_message is 2000"},
		{"topic: '%{k}'", `{"m": "a", "k": "` + strings.Repeat("x", 200) + `"}`, "200 bytes"},
		{"key: '%{k}', tag: '%{k}'", `{"m": "a"}`, ""},
	} {
		conf := "{name_servers: ['127.0.0.1:1'], " + c.conf
		if !strings.Contains(c.conf, "topic") {
			conf += ", topic: t"
		}
		s := sinktest.Build(t, newConfig(), conf+"}", sinktest.Plan{Fields: "m STRING, k STRING"})
		b := record.NewBatch(s.Table)
		b.Split = &record.Split{ID: "x"}
		steptest.Put(t, b, b.Add(record.Position{}, record.Value{}), c.rec)
		row, err := s.Encode(nil, b, 0)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.conf, err)
		}
		if err != nil && len(row) != 0 {
			t.Errorf("%s: %d bytes are left", c.conf, len(row))
		}
	}
	s := sinktest.Build(t, newConfig(), "{name_servers: ['127.0.0.1:1'], topic: t, body: '%{m}', key: '%{k}'}", sinktest.Plan{Fields: "m STRING, k STRING"})
	p := s.Part(t, &record.Split{ID: "sp", Epoch: 2}, 7, `{"m": "a\"b", "k": "x"}`)
	if got := string(s.Sink.(*Sink).Describe(nil, p.Row(0))); got != `{"topic":"t","key":"x","body":"a\"b"}` {
		t.Error(got)
	}
	var m rocketmq.Message
	if _, err := rocketmq.NextInner(s.Sink.(*Sink).decode(p.Row(0)).message, &m); err != nil || string(m.Prop(rocketmq.OriginProp)) != "ns/p|s|sp|2|7|0" {
		t.Errorf("%v %s", err, m.Props)
	}
}

// A topic that isn't there keeps the sink from starting, and says what to do; a real broker refuses a message that is too long for it alone.
func TestRealBroker(t *testing.T) {
	c := services.RocketMQ(t)
	s := sinktest.Build(t, newConfig(), "{name_servers: ['"+c.NameServer+"'], topic: "+services.Unique("absent")+"}", sinktest.Plan{Fields: "m STRING"})
	err := s.Sink.(sinks.Prober).Probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "doesn't exist") {
		t.Error(err)
	}
	static := services.Unique("t")
	c.Admin(t, "updateStaticTopic", "-t", static, "-qn", "4", "-c", "DefaultCluster")
	time.Sleep(time.Second)
	s = sinktest.Build(t, newConfig(), "{name_servers: ['"+c.NameServer+"'], topic: "+static+"}", sinktest.Plan{Fields: "m STRING"})
	if err := s.Sink.(sinks.Prober).Probe(t.Context()); err == nil || !sinks.IsPermanent(err) || !strings.Contains(err.Error(), "static topic") {
		t.Error(err)
	}
	topic := c.Topic(t, 1)
	s = sinktest.Build(t, newConfig(), "{name_servers: ['"+c.NameServer+"'], topic: "+topic+", body: '%{m}', max_message: 16MiB}", sinktest.Plan{Fields: "m STRING"}).Start(t, true)
	out := s.Send(t.Context(), s.Part(t, &record.Split{ID: "x"}, 0, `{"m":"a"}`, `{"m":"`+strings.Repeat("x", 5<<20)+`"}`, `{"m":"b"}`))
	if out.Err != nil || len(out.Rejects) != 1 || !strings.HasPrefix(out.Rejects[0], "0/1: ") {
		t.Errorf("%+v", out)
	}
}
