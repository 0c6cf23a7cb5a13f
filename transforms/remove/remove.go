// Package remove takes fields away.
package remove

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("remove", steps.Spec{
		Doc: config.Doc{
			Summary: "Takes fields away, with all that lies below them.",
			Details: "A field that isn't there is no failure.",
			Example: "- remove: [message, http.request]",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `remove: [FIELD, …]`.
type Config struct{ Fields []steps.FieldPath }

var _ steps.Config = (*Config)(nil)

func (r *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	c.Decode(n, &r.Fields)
	if len(r.Fields) == 0 && !c.Errs.Failed() {
		c.Errorf(n, "want at least one field")
	}
}

func (*Config) JSONSchema() map[string]any { return config.Schema([]steps.FieldPath{}) }

func (r *Config) Declare(d *steps.Decl) {
	for _, f := range r.Fields {
		d.Removes = append(d.Removes, f.Name)
		d.Mention(f.Name, f.Node)
	}
}

func (r *Config) Build(b *steps.Build) (steps.Maker, error) {
	return func() steps.Step {
		s := &step{}
		for _, f := range r.Fields {
			s.paths = append(s.paths, f.Name)
			s.slots = append(s.slots, steps.SlotsUnder(b.Table, f.Name)...)
		}
		s.match = func(name []byte) bool {
			for _, p := range s.paths {
				if record.Under(name, p) {
					return true
				}
			}
			return false
		}
		return s
	}, nil
}

type step struct {
	slots []int
	paths []string
	match func(name []byte) bool
}

func (s *step) Apply(b *record.Batch) {
	for _, i := range b.Sel {
		row := b.Row(int(i))
		for _, slot := range s.slots {
			row[slot] = record.Value{}
		}
		if b.HasOverflow(int(i)) {
			b.UnsetOverflow(int(i), s.match)
		}
	}
}
