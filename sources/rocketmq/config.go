// Package rocketmq reads topics of Apache RocketMQ as a member of a consumer group.
//
// Run's goroutine keeps the membership and decides which queues are this instance's. Each queue has a
// goroutine of its own, which finds out where to begin, reads, and settles when the queue is given up. The broker's offset of a queue
// is moved by Committed alone, after a checkpoint.
package rocketmq

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sources.MustRegister("rocketmq", sources.Spec{
		Doc: config.Doc{
			Summary: "Reads topics of Apache RocketMQ (4.x, 5.x) as a member of a consumer group.",
			Details: details,
			Example: "rocketmq:\n  name_servers: ['127.0.0.1:9876']\n  group: rsetl-orders\n  topics: [{name: orders, tags: 'paid || shipped'}]\n  start: first\n",
		},
		New: func() sources.Config { return &Config{} },
	})
}

const details = `Instances of one group share the queues; each queue is a split. The broker's offset of a queue moves only after a checkpoint that
covers it, and the broker's answer is awaited. A queue that goes to another instance is checkpointed first, within ` + "`revoke`" + `; where that fails the
pipeline goes back to its last commit. An instance that has made no checkpoint for ` + "`stall`" + ` (a sink that is down) leaves the group, so that others take its queues, and comes back when
everything it had read is committed. Members of other clients may be in the group; they share queues by the same rule.

One message is one record: its body is the field ` + "`message`" + `. Metadata: ` + "`@topic`, `@broker`, `@queue` (number), `@offset`, `@keys`, `@tags`, `@properties` (a map), `@born` and `@stored` (times), `@split`, `@received`, `@source`." + `

Where a queue begins: at the position of the last checkpoint; where the broker's offset is ahead of it (another instance had the queue, or an operator moved
the offset forward), there; where the broker's offset is before the last 16 committed positions, an operator has set it back: reading begins there, in a new
epoch, so that transactional sinks take the messages again. Within the last 16 it can't be told from a lost commit and counts as one; ` + "`rsetl state reset`" + ` is the way then. A broker that is killed forgets
the offsets of its last seconds. So where the broker has been started since the instance last had the queue, and less than a minute ago, an offset that is far behind counts as
forgotten and is written over: set offsets back a minute after a broker's start or later. Where there is neither, ` + "`start`" + ` says.

A pipeline with windows or other state by keys takes its group alone: an instance that finds another member refuses to run. With several
instances on one transactional sink, one that never had a queue can't tell that its offset was set back: the sink skips what its position covers. Let one that had the queue run when you
set the offset back, or give the source another ` + "`id`" + ` with it.

The filter is sent with each read and tags are compared again here, so instances of one group with different filters don't lose messages to
each other's subscriptions; but what one of them skips is skipped for the group. Give a changed filter a new group where that matters.

Dead letters: bodies compressed in other ways than zlib, LZ4 and zstd, damaged ones, and those longer than ` + "`max_message`" + `; batches of unknown form. Batches that the broker stores as one (batch topics) are unwrapped, each
message with its offset. Static topics (logical queues) are refused. A message from rsetl's own sink that is there a second time is dropped and counted as filtered.`

// Topic is one of the topics.
type Topic struct {
	Name string `yaml:"name,required" doc:"The topic."`
	Tags string `yaml:"tags" doc:"Read messages with these tags only: a || b; all where absent."`
	SQL  string `yaml:"sql" doc:"Read messages whose properties fulfil this SQL92 condition, as in a > 5 AND b = 'x'; the broker needs enablePropertyFilter=true."`
}

// Config is the options of the source.
type Config struct {
	rocketmq.Connection
	Group      string          `yaml:"group,required" doc:"The consumer group."`
	Topics     []Topic         `yaml:"topics,required" doc:"The topics."`
	Start      string          `yaml:"start" doc:"Where the group begins in a queue for which neither rsetl nor the broker has a position: first, last, or a time (2026-01-31T00:00:00Z): the messages stored since. Queues that turn up later are read from their first message. Default: last; first with --once."`
	MaxMessage config.Size     `yaml:"max_message" doc:"The longest body, decompressed." default:"4MiB" min:"1"`
	BatchBytes config.Size     `yaml:"batch_bytes" doc:"About so many bytes of a queue are read at a time." default:"256KiB" min:"1"`
	Revoke     config.Duration `yaml:"revoke" doc:"How long the checkpoint may take that a queue needs before another instance has it." default:"10s" min:"1"`
	Stall      config.Duration `yaml:"stall" doc:"After so long without a checkpoint the instance leaves the group until there is one." default:"2m" min:"1"`

	start time.Time
}

var foreign = map[string]string{
	"bootstrap_servers": "`name_servers`", "namesrv_addr": "`name_servers`", "namesrvAddr": "`name_servers`", "nameServer": "`name_servers`", "group_id": "`group`", "consumerGroup": "`group`",
	"consumer_group": "`group`", "topic": "`topics: [{name: …}]`", "auto_offset_reset": "`start`", "consume_from_where": "`start`", "tag": "`topics: [{name: …, tags: …}]`",
}

// UnmarshalConfig reads the options.
func (c *Config) UnmarshalConfig(ctx *config.Context, n *yaml.Node) {
	ctx.DecodeStruct(rocketmq.Foreign(ctx, n, foreign), c)
}

// Declare tells what the source writes and checks what needs no server.
func (c *Config) Declare(d *steps.Decl) {
	c.Connection.Declare(d)
	if c.Group == "" {
		d.Errorf(nil, "group", "give the consumer group")
	}
	if len(c.Topics) == 0 {
		d.Errorf(nil, "topics", "give at least one topic, as in [{name: orders}]")
	}
	seen := map[string]bool{}
	for _, t := range c.Topics {
		switch {
		case t.Name == "":
			d.Errorf(nil, "topics", "a topic has no name")
		case seen[t.Name]:
			d.Errorf(nil, "topics", "%s is there twice", t.Name)
		case t.Tags != "" && t.SQL != "":
			d.Errorf(nil, "topics", "%s: give tags or sql, not both", t.Name)
		case t.Tags != "" && t.Tags != "*" && len(tags(t.Tags)) == 0:
			d.Errorf(nil, "topics", "%s: %q names no tag", t.Name, t.Tags)
		}
		seen[t.Name] = true
	}
	switch c.Start {
	case "", "first", "last":
	default:
		t, err := time.Parse(time.RFC3339, c.Start)
		if err != nil {
			d.Errorf(nil, "start", "%q is not first, last or a time as 2026-01-31T00:00:00Z", c.Start)
		}
		c.start = t
	}
	text := expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
	sure := text
	sure.NotNull = true
	number := expr.Type{Kind: expr.TBigInt, NotNull: true}
	moment := expr.Type{Kind: expr.TTimestampLTZ, Prec: 3, NotNull: true}
	for _, n := range []string{"message", "@topic", "@broker", "@split", "@source"} {
		d.Write(n, sure)
	}
	d.Write("@keys", text)
	d.Write("@tags", text)
	d.Write("@queue", number)
	d.Write("@offset", number)
	d.Write("@born", moment)
	d.Write("@stored", moment)
	d.Write("@received", moment)
	d.Write("@properties", expr.Type{Kind: expr.TMap, Key: &sure, Elem: &sure, NotNull: true})
}

// Follows says what a run waits for.
func (c *Config) Follows() string {
	var names []string
	for _, t := range c.Topics {
		names = append(names, t.Name)
	}
	return "reading " + strings.Join(names, ", ") + " as group " + c.Group
}

func tags(s string) []string {
	var out []string
	for _, t := range strings.Split(s, "||") {
		if t = strings.TrimSpace(t); t != "" && t != "*" {
			out = append(out, t)
		}
	}
	return out
}

// Build makes the source.
func (c *Config) Build(b *sources.Build) (sources.Source, error) {
	if e := strings.ToLower(b.Common.Encoding); e != "" && e != "utf-8" && e != "utf8" {
		return nil, fmt.Errorf("encoding: %s is for sources of lines; a message's body is taken as it is", b.Common.Encoding)
	}
	var id [4]byte
	rand.Read(id[:])
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "rsetl"
	}
	s := &Source{cfg: c, name: b.Common.ID, table: b.Table, log: b.Log, once: b.Once, alone: b.Alone, now: b.Clock,
		member: fmt.Sprintf("%s@%d#%s", host, os.Getpid(), hex.EncodeToString(id[:])),
		source: b.Common.ID, changed: make(chan struct{}, 1), ended: make(chan *queue, 16),
		queues: map[rocketmq.Queue]*queue{}, opened: map[string]*queue{}, troubles: map[string]error{}, topics: map[string]*topic{},
		heartbeat: 10 * time.Second, look: 2 * time.Second, refresh: 10 * time.Second, handover: 1500 * time.Millisecond}
	if s.now == nil {
		s.now = time.Now
	}
	if s.source == "" {
		s.source = b.Name
	}
	for i := range c.Topics {
		t := &topic{Topic: c.Topics[i], tags: tags(c.Topics[i].Tags)}
		t.sub = rocketmq.Subscription{Topic: t.Name, Kind: "TAG", Filter: "*", Version: s.now().UnixMilli()}
		switch {
		case t.SQL != "":
			t.sub.Kind, t.sub.Filter = "SQL92", t.SQL
		case len(t.tags) > 0:
			t.sub.Filter = strings.Join(t.tags, "||")
		}
		s.topics[t.Name] = t
		s.order = append(s.order, t)
	}
	return s, nil
}
