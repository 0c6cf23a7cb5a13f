// Package throttle bounds the records of a key in a time.
package throttle

import (
	"context"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/twogen"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("throttle", steps.Spec{
		Doc: config.Doc{
			Summary: "Lets no more than a number of records of each key pass in a time; the others are dropped and count as filtered.",
			Details: "Times are cut into periods, from 1970 on. With `time` a record's period is that of its own time, so that old logs are thinned like live ones; a record that is older than the newest of its key counts in the newest's period, and one without a time is a failure. Without, it is the clock's.\n\n" +
				"Records are looked at in order, on one core. Counts are not kept over a restart. What `by` gives are the keys, all records are one where it isn't there; of more than `max_keys` those that were not seen for longest are forgotten and begin at nought.",
			Example: "- throttle: {by: [host, error.code], max: 100, per: 1m}\n- throttle: {max: 1000, per: 1s, time: '@timestamp'}",
		},
		New:      func() steps.Config { return &Config{} },
		CanFail:  true,
		Stateful: true,
	})
}

// Config is `throttle: {by, max, per, time}`.
type Config struct {
	By      []steps.FieldPath `yaml:"by" doc:"The fields whose values are the key; all records are one by default."`
	Max     int               `yaml:"max,required" doc:"How many records of a key may pass in a period." min:"0"`
	Per     config.Duration   `yaml:"per,required" doc:"How long a period is."`
	Time    steps.FieldPath   `yaml:"time" doc:"The field with the record's time; the clock's by default."`
	MaxKeys int               `yaml:"max_keys" doc:"How many keys are remembered at most." default:"100000" min:"2"`
}

var foreign = steps.Foreign{"key": "by", "period": "per", "after_count": "max", "before_count": "nothing: only what is above max is dropped", "max_age": "nothing", "max_counters": "max_keys"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if foreign.Decode(c, n, k) && k.Per.D() < time.Millisecond {
		c.Errorf(n, "per: want at least 1ms")
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (k *Config) Declare(d *steps.Decl) {
	for _, f := range k.By {
		d.Read(f.Name, f.Node)
	}
	if k.Time.Name != "" {
		d.Read(k.Time.Name, k.Time.Node)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &step{max: k.Max, per: k.Per.D().Milliseconds(), time: -1, now: b.Now}
	m.key = b.Key(k.By)
	if k.Time.Name != "" {
		m.time = b.Slot(k.Time.Name)
	}
	return func() steps.Step {
		s := *m
		s.key = m.key.Own()
		s.counts = twogen.New[count](k.MaxKeys)
		s.each = (&s).one
		return &s
	}, nil
}

// count is what has passed of a key in its newest period.
type count struct {
	period int64
	n      int
}

// step is a stage, see pipeline.Stage.
type step struct {
	key    expr.Key
	time   int // -1: the clock's
	max    int
	per    int64 // ms
	now    func() time.Time
	counts *twogen.Cache[count]
	each   func(int) record.Outcome
	b      *record.Batch
	clock  int64
	buf    []byte
}

func (s *step) Apply(b *record.Batch) {
	s.b, s.clock = b, s.now().UnixMilli()
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b, at := s.b, s.clock
	if s.time >= 0 {
		v := b.Get(i, s.time)
		if v.Kind() != record.Time {
			msg := "throttle: the field with the time is missing"
			if !v.IsNull() {
				msg = "throttle: the field with the time is no time but " + v.Kind().String() + "; a date step makes one"
			}
			b.Fail(i, msg)
			return record.Failed
		}
		at = v.Sec()*1000 + int64(v.Nsec()/1e6)
	}
	period := at / s.per
	if at%s.per < 0 {
		period--
	}
	s.buf = s.key.Append(s.buf[:0], b, i)
	c := s.counts.Get(s.buf)
	if c == nil {
		c = s.counts.Put(s.buf, count{period: period})
	}
	if period > c.period {
		c.period, c.n = period, 0
	}
	if c.n >= s.max {
		return record.Drop
	}
	c.n++
	return record.Keep
}

// Restore has nothing to read.
func (s *step) Restore(context.Context, state.Keyed) error {
	return nil
}

// Checkpoint has nothing to keep.
func (s *step) Checkpoint(*record.Batch) []state.KV { return nil }

// Due tells that nothing fires.
func (s *step) Due() bool { return false }
