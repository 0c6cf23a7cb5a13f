// Package rocketmq is the sink that sends messages to Apache RocketMQ.
package rocketmq

import (
	"slices"
	"strings"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/rocketmq"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("rocketmq", sinks.Spec{
		Doc: config.Doc{
			Summary: "Sends messages to Apache RocketMQ (4.x, 5.x).",
			Details: "A message's body is the record as a JSON object, or what `body` says. Messages go in batches of one queue each; the broker's answer is awaited, and what a broker refuses for the moment " +
				"(flow control, a topic that doesn't exist, no permission) is sent again, with backoff, until it is taken. What it refuses for its content is a dead letter.\n\n" +
				"All records of a split go to one queue, in order; with `sharding_key` all that have the same key. Each message carries its origin (pipeline, sink, split, epoch, offset, index) in the property `rsetl_origin`: " +
				"when a message is sent again after a crash it comes to the same queue, and rsetl's source drops it there, as long as the topic's queues stay the same. Other consumers see it twice.\n\n" +
				"The topic must exist. `delay` sends each message by itself: RocketMQ has no delay in batches.",
			Example: "- rocketmq: {name_servers: ['127.0.0.1:9876'], topic: errors, key: '%{id}', tag: web}",
		},
		New: func() sinks.Config { return &Config{} },
		Guarantee: func(sinks.Config) string {
			return "at least once; each message carries its origin, so that a rsetl source drops what it has taken, as long as the topic's queues stay the same"
		},
		Batch: &sinks.BatchConfig{Size: 4000, Bytes: 1 << 20, Memory: 16 << 20, InFlight: 2},
	})
}

// Config is `rocketmq:`.
type Config struct {
	rocketmq.Connection
	Topic       steps.Template             `yaml:"topic,required" doc:"The topic; may be a template."`
	Body        *steps.Template            `yaml:"body" doc:"The body, a template such as '%{message}'; the record as a JSON object where absent."`
	Key         *steps.Template            `yaml:"key" doc:"The message's key, a template: brokers index messages by it."`
	Tag         *steps.Template            `yaml:"tag" doc:"The message's tag, a template."`
	ShardingKey *steps.Template            `yaml:"sharding_key" doc:"Messages with the same value go to the same queue, in order; a template. By default all of a split do."`
	Properties  config.Map[steps.Template] `yaml:"properties" doc:"Further properties: a template by name."`
	Delay       config.Duration            `yaml:"delay" doc:"Consumers get the message so much later. 1s, 5s, 10s, 30s, 1m to 10m, 20m, 30m, 1h and 2h work everywhere; other times need a 5.x broker's timer." default:"0s"`
	MaxMessage  config.Size                `yaml:"max_message" doc:"The longest message, the broker's maxMessageSize." default:"4MiB" min:"1024"`
}

var _ sinks.Config = (*Config)(nil)

var foreign = map[string]string{
	"namesrv_addr": "`name_servers`", "namesrvAddr": "`name_servers`", "nameServer": "`name_servers`", "bootstrap_servers": "`name_servers`",
	"topic_id": "`topic`", "message_key": "`key`", "keys": "`key`", "tags": "`tag`", "partition_key": "`sharding_key`", "shardingKey": "`sharding_key`", "max_message_size": "`max_message`",
	"batch_size": "`batch: {size: N}` beside the sink", "codec": "`body`", "format": "`body`",
}

// UnmarshalConfig reads the options.
func (c *Config) UnmarshalConfig(x *config.Context, n *yaml.Node) {
	x.DecodeStruct(rocketmq.Foreign(x, n, foreign), c)
}

// system are properties that RocketMQ itself writes or reads.
var system = []string{"KEYS", "TAGS", "WAIT", "DELAY", "UNIQ_KEY", "TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS", "INNER_NUM", "TRAN_MSG", "PGROUP", "__SHARDINGKEY", rocketmq.OriginProp}

// Declare tells what is read and checks what needs no server.
func (c *Config) Declare(d *steps.Decl) {
	c.Connection.Declare(d)
	d.ReadTemplate(&c.Topic)
	for _, t := range []*steps.Template{c.Body, c.Key, c.Tag, c.ShardingKey} {
		d.ReadTemplate(t)
	}
	for i := range c.Properties {
		p := &c.Properties[i]
		d.ReadTemplate(&p.Value)
		switch {
		case slices.Contains(system, p.Key):
			d.Errorf(p.Value.Node, "properties", "%s is RocketMQ's own; see key, tag, sharding_key and delay", p.Key)
		case p.Key == "" || strings.ContainsAny(p.Key, "\x01\x02"):
			d.Errorf(p.Value.Node, "properties", "%q is no name for a property", p.Key)
		}
	}
	if c.Body == nil {
		d.ReadAll = true
	}
	if c.Topic.Template != nil && c.Topic.Source() == "" {
		d.Errorf(c.Topic.Node, "topic", "topic is empty")
	}
	if c.Delay < 0 {
		d.Errorf(nil, "delay", "want a time of 0 or more")
	}
}

// levels are the delays that every broker has, from level 1.
var levels = []time.Duration{time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
	6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour}

// Build makes the sink.
func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	s := &Sink{cfg: c, origin: b.Pipeline + "|" + b.Name + "|", topic: b.Template(&c.Topic), progress: map[*sinks.Chunk]*progress{}, routes: map[string]*route{}}
	if c.Topic.IsConst() {
		s.constTopic, _ = s.topic.Append(nil, &expr.Env{}, 0)
	}
	template := func(t *steps.Template) *expr.TemplateProgram {
		if t == nil {
			return nil
		}
		return b.Template(t)
	}
	s.body, s.key, s.tag, s.shard = template(c.Body), template(c.Key), template(c.Tag), template(c.ShardingKey)
	if s.body == nil {
		s.json = record.NewEncoder(b.Table, append([]string{}, b.Ship...), b.OpenEnded)
	}
	for i := range c.Properties {
		s.props = append(s.props, prop{c.Properties[i].Key, b.Template(&c.Properties[i].Value)})
	}
	if d := c.Delay.D(); d > 0 {
		if level := slices.Index(levels, d); level >= 0 {
			s.fixed = rocketmq.AppendProp(s.fixed, "DELAY", appendInt(nil, int64(level+1)))
		} else {
			s.fixed = rocketmq.AppendProp(s.fixed, "TIMER_DELAY_MS", appendInt(nil, d.Milliseconds()))
		}
	}
	s.scratch = sync.Pool{New: func() any { return &scratch{env: new(expr.Env)} }}
	return s, nil
}
