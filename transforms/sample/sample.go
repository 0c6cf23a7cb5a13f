// Package sample keeps a share of the records.
package sample

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("sample", steps.Spec{
		Doc: config.Doc{
			Summary: "Keeps a share of the records and drops the others, which count as filtered.",
			Details: "Which records are kept depends on their place in the source, so it is the same after a restart, or, with `by`, on the values of fields: all records of one trace are kept, or none. With `when` beside the step only those for which it is TRUE are sampled; the others stay.",
			Example: "- sample: 10%\n  when: http.response.status_code < 400\n- sample: {rate: 0.01, by: [trace.id]}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `sample: RATE` or `sample: {rate, by}`.
type Config struct {
	Rate rate              `yaml:"rate,required" doc:"The share to keep: a number from 0 to 1, or a percentage such as 10%."`
	By   []steps.FieldPath `yaml:"by" doc:"Fields whose values decide, in place of the record's place in the source."`
}

type rate float64

func (r *rate) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a share")
	if !ok {
		return
	}
	text, percent := strings.CutSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		c.Errorf(n, "want a number from 0 to 1 or a percentage such as 10%%, got %q", s)
	}
	*r = rate(f)
}

// JSONSchema is how a share appears in the schema.
func (rate) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "number", "minimum": 0, "maximum": 1}, map[string]any{"type": "string", "pattern": `^[0-9.]+ *%$`}}}
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		k.Rate.UnmarshalConfig(c, n)
		return
	}
	(steps.Foreign{"percentage": "rate"}).Decode(c, n, k)
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{rate(0).JSONSchema(), config.Schema(long{})}}
}

func (k *Config) Declare(d *steps.Decl) {
	for _, f := range k.By {
		d.Read(f.Name, f.Node)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	key := b.Key(k.By)
	limit := uint64(math.MaxUint64)
	if k.Rate < 1 {
		limit = uint64(float64(k.Rate) * (1 << 63) * 2)
	}
	return func() steps.Step {
		s := &step{key: key.Own(), limit: limit, all: k.Rate >= 1}
		s.each = s.one
		return s
	}, nil
}

type step struct {
	key   expr.Key
	limit uint64 // hashes below it are kept
	all   bool
	each  func(int) record.Outcome
	b     *record.Batch
	buf   []byte
	split uint64
}

func (s *step) Apply(b *record.Batch) {
	if s.all {
		return
	}
	s.b = b
	if s.split = fnv; b.Split != nil {
		s.split = add(fnv, []byte(b.Split.ID))
	}
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	h := uint64(fnv)
	if s.key.Len() == 0 {
		p := s.b.Pos(i)
		s.buf = binary.LittleEndian.AppendUint64(s.buf[:0], uint64(p.Offset))
		s.buf = binary.LittleEndian.AppendUint64(s.buf, uint64(p.Index))
		h = add(s.split, s.buf)
	}
	for n := range s.key.Len() {
		s.buf = s.b.AppendPlain(s.buf[:0], s.key.Value(s.b, i, n))
		h = add(h, append(s.buf, 0))
	}
	if mix(h) < s.limit {
		return record.Keep
	}
	return record.Drop
}

// FNV-1a with 64 bits, and the finaliser of MurmurHash3, without which near numbers have near hashes.
const fnv = 14695981039346656037

func add(h uint64, p []byte) uint64 {
	for _, c := range p {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
