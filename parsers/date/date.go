// Package date makes times of texts and numbers.
package date

import (
	"fmt"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("date", steps.Spec{
		Doc: config.Doc{
			Summary: "Makes a time of a text: the event's time, `@timestamp`, unless another target is given.",
			Details: "Formats are tried in order: `ISO8601`, `UNIX` (seconds, with a fraction or without), `UNIX_MS`, `UNIX_US`, `UNIX_NS`, or a pattern: " +
				"`yyyy` year, `MM` month, `MMM` its name, `dd` day, `HH` hour, `hh` hour of twelve with `a` for AM and PM, `mm` minute, `ss` second, `SSS` fraction (any number of digits), " +
				"`EEE` the day's name (read, not checked), `Z` offset, `z` zone; other texts in single quotes. A blank stands for one or more.\n\n" +
				"A text without offset is in `zone` (the pipeline's by default). Where the format has no year, it is the one that lies nearest before now: December read in January is " +
				"last year's. A format without a date fails: it is never silently the first of January.",
			Example: "- date: {field: timestamp, formats: ['dd/MMM/yyyy:HH:mm:ss Z']}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `date:`.
type Config struct {
	Field   steps.FieldPath `yaml:"field,required" doc:"The field to read."`
	Formats []yaml.Node     `yaml:"formats,required" doc:"Formats, tried in order."`
	Target  steps.FieldPath `yaml:"target" doc:"The field to set; @timestamp by default."`
	Zone    string          `yaml:"zone" doc:"The zone of texts without one, an IANA name; the pipeline's by default."`

	parsers []parser
	formats []string
}

var _ steps.Config = (*Config)(nil)

func (d *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	c.DecodeStruct(n, d)
	if d.Target.Name == "" {
		d.Target.Name, d.Target.Node = "@timestamp", n
	}
	for i := range d.Formats {
		c.In(fmt.Sprintf("formats[%d]", i), func() {
			s, ok := c.Scalar(&d.Formats[i], "a format")
			if !ok {
				return
			}
			p, err := compile(s)
			if err != nil {
				hint := ""
				if m := config.Nearest(s, []string{"ISO8601", "UNIX", "UNIX_MS", "UNIX_US", "UNIX_NS"}); m != "" {
					hint = "; did you mean " + m + "?"
				}
				c.Errorf(&d.Formats[i], "%v%s", err, hint)
				return
			}
			d.parsers = append(d.parsers, p)
			d.formats = append(d.formats, s)
		})
	}
	if d.Zone != "" {
		if _, err := time.LoadLocation(d.Zone); err != nil {
			c.Errorf(n, "zone: unknown time zone %q; write an IANA name like Europe/Berlin", d.Zone)
		}
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (d *Config) Declare(dc *steps.Decl) {
	dc.Read(d.Field.Name, d.Field.Node)
	dc.Write(d.Target.Name, expr.Type{Kind: expr.TTimestampLTZ, Prec: 9})
}

func (d *Config) Build(b *steps.Build) (steps.Maker, error) {
	zone := b.Zone
	if d.Zone != "" {
		zone, _ = time.LoadLocation(d.Zone)
	}
	s := &step{field: b.Slot(d.Field.Name), target: b.Slot(d.Target.Name), parsers: d.parsers, clock: clock{now: b.Now, zone: zone},
		reason: "date: the text has none of the formats " + strings.Join(d.formats, ", ")}
	return func() steps.Step {
		w := *s
		w.each = (&w).one
		return &w
	}, nil
}

type step struct {
	field, target int
	parsers       []parser
	clock         clock
	reason        string
	each          func(int) record.Outcome
	b             *record.Batch
	buf           []byte
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	v := b.Get(i, s.field)
	var text []byte
	switch v.Kind() {
	case record.Time:
		b.Set(i, s.target, v)
		return record.Keep
	case record.String, record.Bytes:
		text = b.Bytes(v)
	case record.Missing, record.Null:
		b.Fail(i, "date: the field is missing")
		return record.Failed
	default:
		s.buf = b.AppendPlain(s.buf[:0], v)
		text = s.buf
	}
	for _, p := range s.parsers {
		if t, ok := p(text, &s.clock); ok {
			b.Set(i, s.target, t)
			return record.Keep
		}
	}
	b.Fail(i, fmt.Sprintf("%s: %.80q", s.reason, text))
	return record.Failed
}
