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
			Details: "Formats are tried in order: `ISO8601`, `UNIX` (seconds, with a fraction or without), `UNIX_MS`, `UNIX_US`, `UNIX_NS`, `TAI64N`, a format of strftime such as `%d/%b/%Y:%H:%M:%S %z`, or a pattern: " +
				"`yyyy` year (`yy`: two digits, of a year at most 19 years ahead), `MM` month, `MMM` its name or short name in `locale`, as that language writes it, or all in small or capital letters, `dd` day, `DDD` day of the year, `HH` hour, `hh` hour of twelve with `a` for AM and PM, `mm` minute, `ss` second, " +
				"`SSS` fraction (as many digits as letters or fewer; nine are kept), `EEE` the day's name (read, not checked), `xxxx` year of weeks, `ww` its week, `e` day of the week from Monday, 1, `G` era, `Z` offset, `z` or `ZZZ` zone; other texts in single quotes. A day or hour of one letter may be filled with a blank, as in `Feb  4`.\n\n" +
				"A text without offset is in `zone` (the pipeline's by default); of a time that comes twice when clocks go back the first is meant, unless an abbreviation such as EST tells; one that clocks leave out is a failure. " +
				"The abbreviations of American zones, read by `z`, mean the zone with its summer time. Without a year it is the latest year that puts the time at most a day ahead " +
				"of now: December read in January is last year's (see `without_year`). A text without a date fails, it is never silently the first of January; with `today: true` it is today's. " +
				"A wrong day's name moves nothing. A field that is a time already is taken as it is.\n\n" +
				"With `lenient: true` names of months and days are read in any case of letters, shortened or not, with a point or without; a blank in a pattern stands for one or more; a fraction may have more digits than letters, and follow a comma in `UNIX`; " +
				"24:00:00 is the next midnight, a leap second, 23:59:60, the second after it, and a time that clocks leave out is taken with the offset of before.",
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
	Zone    zoneText        `yaml:"zone" doc:"The zone of texts without one, an IANA name or an offset; %{field} takes it from the record. The pipeline's by default."`
	Locale  string          `yaml:"locale" doc:"The language of the names of months and days, such as fr or pt-BR." default:"en"`
	Today   bool            `yaml:"today" doc:"A format without a date means today, in its zone."`
	Lenient bool            `yaml:"lenient" doc:"Read more than the formats say: see above."`
	NoYear  noYear          `yaml:"without_year" doc:"The year of a format without one: recent is the latest that puts the time at most a day ahead of now; calendar is Logstash's: this year, but last year's December in January, and next year's January in December; a text without a date is 1 January then." default:"recent"`

	parsers []parser
	formats []string
}

// zoneText is a zone's name, or a template of one.
type zoneText struct {
	loc  *time.Location
	tmpl steps.Template
}

// UnmarshalConfig reads the name.
func (z *zoneText) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a zone")
	if !ok {
		return
	}
	if strings.Contains(s, "%{") {
		z.tmpl.UnmarshalConfig(c, n)
		return
	}
	if z.loc = location(s); z.loc == nil && c.Known() {
		c.Errorf(n, "unknown time zone %q; write an IANA name like Europe/Berlin, or an offset like +05:30", s)
	}
}

// JSONSchema is how a zone appears in the schema.
func (zoneText) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "description": "zone or text with %{field}"}
}

// location finds a zone by its name or offset, nil where there is none.
func location(name string) *time.Location {
	t := stamp{}
	if readOffset([]byte(name), 0, &t) == len(name) {
		return time.FixedZone(name, t.zoneAt)
	}
	loc, _ := time.LoadLocation(name)
	return loc
}

// noYear is how a year is found that a text doesn't have.
type noYear string

func (y *noYear) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "recent or calendar")
	if ok && s != "recent" && s != "calendar" {
		c.Errorf(n, "want recent or calendar, got %q%s", s, config.Meant(s, []string{"recent", "calendar"}))
	}
	*y = noYear(s)
}

// JSONSchema lists the ways.
func (noYear) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"recent", "calendar"}}
}

var _ steps.Config = (*Config)(nil)

func (d *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if !(steps.Foreign{"match": "`field: FIELD` and `formats: [FORMAT, …]`", "timezone": "zone"}).Decode(c, n, d) {
		return
	}
	names, err := localeOf(d.Locale)
	if err != nil {
		c.In("locale", func() { c.Errorf(n, "%v", err) })
	}
	if d.Target.Name == "" {
		d.Target.Name, d.Target.Node = "@timestamp", n
	}
	if record.IsMeta(d.Target.Name) {
		c.Errorf(d.Target.Node, "target: %s is metadata and can't be set", d.Target.Name)
	}
	if len(d.Formats) == 0 && !c.Errs.Failed() {
		c.Errorf(n, "formats: want at least one")
	}
	for i := range d.Formats {
		c.In(fmt.Sprintf("formats[%d]", i), func() {
			s, ok := c.Scalar(&d.Formats[i], "a format")
			if !ok {
				return
			}
			p, err := compile(s, names, d.Lenient)
			if err != nil {
				hint := ""
				if m := config.Nearest(s, []string{"ISO8601", "UNIX", "UNIX_MS", "UNIX_US", "UNIX_NS", "TAI64N"}); m != "" {
					hint = "; did you mean " + m + "?"
				}
				c.Errorf(&d.Formats[i], "%v%s", err, hint)
				return
			}
			d.parsers = append(d.parsers, p)
			d.formats = append(d.formats, s)
		})
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (d *Config) Declare(dc *steps.Decl) {
	dc.Read(d.Field.Name, d.Field.Node)
	dc.ReadTemplate(&d.Zone.tmpl)
	dc.Write(d.Target.Name, expr.Type{Kind: expr.TTimestampLTZ, Prec: 9})
}

func (d *Config) Build(b *steps.Build) (steps.Maker, error) {
	zone := b.Zone
	if d.Zone.loc != nil {
		zone = d.Zone.loc
	}
	s := &step{field: b.Slot(d.Field.Name), target: b.Slot(d.Target.Name), parsers: d.parsers, clock: clock{now: b.Now, zone: zone, today: d.Today, lenient: d.Lenient, calendar: d.NoYear == "calendar"},
		zone: b.Template(&d.Zone.tmpl), reason: "date: the text has none of the formats " + strings.Join(d.formats, ", ")}
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
	zone          *expr.TemplateProgram // nil: all records have the same
	zones         map[string]*time.Location
	name          []byte
	env           expr.Env
	reason        string
	each          func(int) record.Outcome
	b             *record.Batch
	buf           []byte
}

func (s *step) Apply(b *record.Batch) {
	s.b, s.clock.year = b, 0
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
	if s.zone != nil && !s.setZone(i) {
		return record.Failed
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

// setZone takes the record's zone; false where it names none.
func (s *step) setZone(i int) bool {
	var ok bool
	s.env.B = s.b
	if s.name, ok = s.zone.Append(s.name[:0], &s.env, i); !ok {
		s.b.Fail(i, "date: the field that names the zone is missing")
		return false
	}
	loc, seen := s.zones[string(s.name)]
	if !seen {
		loc = location(string(s.name))
		if s.zones == nil || len(s.zones) > 1000 {
			s.zones = map[string]*time.Location{}
		}
		s.zones[string(s.name)] = loc
	}
	if loc == nil {
		s.b.Fail(i, fmt.Sprintf("date: unknown time zone %.80q", s.name))
		return false
	}
	if loc != s.clock.zone {
		s.clock.zone, s.clock.from, s.clock.to = loc, 0, 0
	}
	return true
}
