// Package dedupe lets one of several records with the same keys through.
package dedupe

import (
	"fmt"
	"sync/atomic"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("dedupe", steps.Spec{
		Doc: config.Doc{
			Summary: "Lets one of several records with the same keys through.",
			Details: "`keep: first` lets the first through and drops those that come within the time after it; `keep: last` holds the newest and lets it go when that time is over. What is dropped counts as filtered. " +
				"NULL is a key's value like others. The keys that were seen are kept in memory and, with each checkpoint, where the pipeline's `state` says, so that a restart changes nothing; of more than `max_keys` the oldest is let go. " +
				"The time is the clock's, or, with `time`, that of a field: the largest that has come.",
			Example: "- dedupe: {by: [request_id], within: 10m}\n- dedupe: {by: [host, job], keep: last, within: 1m, time: '@timestamp'}",
		},
		New:      func() steps.Config { return &Config{} },
		CanFail:  true,
		Stateful: true,
	})
}

// Config is `dedupe: {…}`.
type Config struct {
	By      []steps.FieldPath `yaml:"by,required" doc:"The keys: fields whose values make two records the same."`
	Keep    string            `yaml:"keep" doc:"Which record goes through." enum:"first,last" default:"first"`
	Within  config.Duration   `yaml:"within" doc:"How long after the first a record is the same." default:"1h"`
	Time    steps.FieldPath   `yaml:"time" doc:"The field with the event time; without it the time is the clock's. A record without one fails."`
	MaxKeys int               `yaml:"max_keys" doc:"How many keys are remembered." default:"1000000" min:"1"`
}

var _ steps.Config = (*Config)(nil)

// UnmarshalConfig takes a field, a list of them, or the options.
func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	switch r := config.Resolve(n); {
	case r.Kind == yaml.ScalarNode && r.Tag != "!!null":
		config.Defaults(k)
		k.By = make([]steps.FieldPath, 1)
		k.By[0].UnmarshalConfig(c, n)
		return
	case r.Kind == yaml.SequenceNode:
		config.Defaults(k)
		c.Decode(n, &k.By)
	case !(steps.Synonyms{"fields": "by", "key": "by", "keys": "by", "ttl": "within", "window": "within", "timeout": "within", "cache_size": "max_keys"}).Decode(c, n, k):
		return
	}
	if len(k.By) == 0 {
		c.Errorf(n, "by: want at least one field")
	}
	if k.Within <= 0 {
		c.Errorf(n, "within: want more than no time")
	}
}

// JSONSchema describes the forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema([]steps.FieldPath{}), config.Schema(long{})}}
}

// Declare tells what is read. A record that is held goes on with all that it has.
func (k *Config) Declare(d *steps.Decl) {
	for _, f := range k.By {
		d.Read(f.Name, f.Node)
	}
	if k.Time.Name != "" {
		d.Read(k.Time.Name, k.Time.Node)
	}
}

// Explain says what holds.
func (k *Config) Explain() []string {
	what := fmt.Sprintf("the first of each key within %s goes on", k.Within)
	if k.Keep == "last" {
		what = fmt.Sprintf("the last of each key goes on %s after the first has come", k.Within)
	}
	return []string{what, "state: in memory, changes to the store at each checkpoint"}
}

// Definition is what state depends on.
func (k *Config) Definition() string {
	s := fmt.Sprintf("keep=%s time=%s", k.Keep, k.Time.Name)
	for _, f := range k.By {
		s += fmt.Sprintf(" by=%q", f.Name)
	}
	return s
}

// Build makes the stage.
func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	p := stage{Config: k, name: b.Name, now: b.Now, timeSlot: -1}
	p.by = b.Key(k.By)
	if k.Time.Name != "" {
		p.timeSlot = b.Slot(k.Time.Name)
		e, err := expr.Parse("TRY_CAST(" + expr.QuotePath(k.Time.Name) + " AS TIMESTAMP(9))")
		if err == nil {
			p.timeOf, err = b.Compiler.Compile(e)
		}
		if err != nil {
			return nil, fmt.Errorf("time: %w", err)
		}
	}
	return func() steps.Step {
		s := p
		s.byKey, s.count = map[string]*entry{}, &atomic.Int64{}
		return &s
	}, nil
}

// stage is one run's step, at the ordered end.
type stage struct {
	*Config
	name     string
	now      func() time.Time
	by       expr.Key
	timeSlot int
	timeOf   *expr.Program

	env   expr.Env
	byKey map[string]*entry
	queue []*entry // by time; those that are over were let go
	time  int64    // milliseconds: the largest that has come, or the clock's
	dirty []*entry
	gone  []uint64
	id    uint64
	ready []*entry // last: they fire at the next checkpoint
	keyb  []byte
	count *atomic.Int64
}

// entry is a key that was seen.
type entry struct {
	id            uint64 // names it in the store
	key           string
	at            int64 // when the first came
	split         string
	pos           record.Position // of the record that came last
	data          []byte          // last: the record
	dirty, stored bool
	over, fired   bool
}

// Absorbs tells that with `last` no record passes by itself.
func (s *stage) Absorbs() bool { return s.Keep == "last" }

// Apply lets first records pass and drops, or holds, the others.
func (s *stage) Apply(b *record.Batch) {
	s.env.B = b
	if s.timeSlot < 0 {
		s.time = max(s.time, s.now().UnixMilli())
	}
	keep := b.Sel[:0]
	for _, r := range b.Sel {
		i := int(r)
		if s.timeSlot >= 0 {
			ms, ok := s.eventTime(b, i)
			if !ok {
				b.Fail(i, "dedupe: "+s.Time.Name+", the event time, is missing or no time")
				continue
			}
			s.time = max(s.time, ms)
		}
		s.expire()
		key := s.by.Append(s.keyb[:0], b, i)
		s.keyb = key
		e := s.byKey[string(key)]
		if e != nil {
			b.Filtered++
			if s.Keep == "last" {
				s.hold(e, b, i)
			}
			continue
		}
		s.id++
		e = &entry{id: s.id, key: string(key), at: s.time}
		s.byKey[e.key] = e
		s.queue = append(s.queue, e)
		if s.Keep == "last" {
			s.hold(e, b, i)
			b.Absorbed++
		} else {
			s.touch(e, b, i)
			keep = append(keep, r)
		}
		if len(s.byKey) > s.MaxKeys {
			s.first()
		}
	}
	b.Sel = keep
	s.count.Store(int64(len(s.byKey)))
}

// Status gives the number of keys; any goroutine may call it.
func (s *stage) Status() steps.Holding { return steps.Holding{Keys: int(s.count.Load())} }

func (s *stage) eventTime(b *record.Batch, i int) (int64, bool) {
	v := b.Get(i, s.timeSlot)
	if v.Kind() != record.Time {
		v = s.timeOf.Eval(&s.env, i)
	}
	if v.Kind() != record.Time || v.Sec() > 1<<52 || v.Sec() < -1<<52 {
		return 0, false
	}
	return v.Sec()*1000 + int64(v.Nsec()/1e6), true
}

func (s *stage) touch(e *entry, b *record.Batch, i int) {
	if b.Split != nil {
		e.split = b.Split.ID
	}
	e.pos = b.Pos(i)
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, e)
	}
}

func (s *stage) hold(e *entry, b *record.Batch, i int) {
	e.data = record.AppendRecord(e.data[:0], b, i)
	s.touch(e, b, i)
}

// expire lets go what is over.
func (s *stage) expire() {
	for len(s.queue) > 0 && s.queue[0].at+s.Within.D().Milliseconds() <= s.time {
		s.first()
	}
}

// first lets the oldest go.
func (s *stage) first() {
	e := s.queue[0]
	s.queue[0] = nil
	if s.queue = s.queue[1:]; len(s.queue) == 0 {
		s.queue = nil
	}
	e.over = true
	delete(s.byKey, e.key)
	if s.Keep == "last" {
		s.ready = append(s.ready, e)
		return
	}
	if e.stored {
		s.gone = append(s.gone, e.id)
	}
}

// Tick lets time go on by the clock.
func (s *stage) Tick(now time.Time) {
	if s.timeSlot < 0 {
		s.time = max(s.time, now.UnixMilli())
		s.expire()
	}
}

// End lets go what is held: the source has ended.
func (s *stage) End() {
	for s.Keep == "last" && len(s.queue) > 0 {
		s.first()
	}
}

// Due tells whether held records go on.
func (s *stage) Due() bool { return len(s.ready) > 0 }
