// Package json parses JSON texts straight into a record's fields.
package json

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("json", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses a JSON object and makes fields of its members.",
			Details: "Nested objects become dotted paths, as everywhere; a key with a dot is a path too. Arrays, and objects within them, stay values. Whole numbers are BIGINT, others DOUBLE; " +
				"what these would change is DECIMAL, up to 1000 digits. A field that is there already is replaced; of a key that comes twice in an object the last counts. " +
				"A key that is the name of metadata, such as `@path`, becomes `at_path`, and one like `[a][b]` is the path `a.b`.\n\n" +
				"With `target` the object goes below that path, in place of all that was there, and the value may be of any type. " +
				"Without, a value that is no object is a failure; so are text behind the value and nesting deeper than `max_depth`. A record that fails is left as it was.",
			Example: "- json: message\n- json: {field: message, target: doc}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `json: FIELD` or `json: {field, target, replace, max_depth}`.
type Config struct {
	Field     steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target    steps.FieldPath `yaml:"target" doc:"The path below which the members go; the record itself by default."`
	Replace   bool            `yaml:"replace" doc:"Take the parsed field away, unless the object has one of that name."`
	MaxFields int             `yaml:"max_fields" doc:"The most members, those of nested objects included, that one record may have." default:"10000" min:"1"`
	Checks    bool            `yaml:"event_checks" doc:"Check what has a meaning in Logstash's events: a top member @timestamp that is no ISO 8601 time becomes _@timestamp, and tags that are no texts fail the record."`
	MaxDepth  int             `yaml:"max_depth" doc:"The deepest nesting that is accepted." default:"64" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (j *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(j)
		j.Field.UnmarshalConfig(c, n)
	} else {
		c.DecodeStruct(n, j)
	}
	if j.Field.Name == "" {
		j.Field.Name, j.Field.Node = "message", n
	}
	if j.MaxDepth > maxDepth {
		c.Errorf(n, "max_depth is at most %d", maxDepth)
	}
	if record.IsMeta(j.Target.Name) {
		c.Errorf(j.Target.Node, "target: %s is metadata and can't be set", j.Target.Name)
	}
}

const maxDepth = 512

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (j *Config) Declare(d *steps.Decl) {
	d.Read(j.Field.Name, j.Field.Node)
	if j.Replace {
		d.Removes = append(d.Removes, j.Field.Name)
	}
	if j.Target.Name == "" {
		d.WriteAny = true
		return
	}
	d.Write(j.Target.Name, expr.Type{})
	d.WriteUnder = append(d.WriteUnder, j.Target.Name)
}

func (j *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{field: b.Slot(j.Field.Name), target: j.Target.Name, replace: j.Replace, depth: j.MaxDepth, fields: j.MaxFields, checks: j.Checks && j.Target.Name == "", table: b.Table, live: b.Live}
	if m.target != "" && b.Live(m.target) {
		b.Slot(m.target)
	}
	return func() steps.Step {
		s := &step{maker: m}
		if m.target != "" {
			s.clear = steps.SlotsUnder(m.table, m.target)
			s.below = func(name []byte) bool { return record.Under(name, m.target) }
		}
		s.forget()
		s.each = s.one
		return s
	}, nil
}

type maker struct {
	field   int
	target  string
	replace bool
	depth   int
	fields  int
	checks  bool
	table   *record.Table
	live    func(string) bool
}
