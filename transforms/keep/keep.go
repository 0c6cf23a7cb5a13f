// Package keep takes all fields away but some.
package keep

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("keep", steps.Spec{
		Doc: config.Doc{
			Summary: "Takes all fields away but these and what lies below them.",
			Details: "Fields that are not kept are not even extracted where nothing before reads them.",
			Example: "- keep: ['@timestamp', source.address, http.response]",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `keep: [FIELD, …]`.
type Config struct{ Fields []steps.FieldPath }

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	c.Decode(n, &k.Fields)
	if len(k.Fields) == 0 && !c.Errs.Failed() {
		c.Errorf(n, "want at least one field")
	}
}

func (*Config) JSONSchema() map[string]any { return config.Schema([]steps.FieldPath{}) }

func (k *Config) Declare(d *steps.Decl) {
	d.KeepOnly = []string{}
	for _, f := range k.Fields {
		d.KeepOnly = append(d.KeepOnly, f.Name)
		d.Mention(f.Name, f.Node)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	return func() steps.Step {
		s := &step{}
		kept := func(name string) bool {
			for _, f := range k.Fields {
				if record.Under(name, f.Name) {
					return true
				}
			}
			return false
		}
		for i, n := range b.Table.Names() {
			if !record.IsMeta(n) && !kept(n) {
				s.slots = append(s.slots, i)
			}
		}
		s.match = func(name []byte) bool {
			for _, f := range k.Fields {
				if record.Under(name, f.Name) {
					return false
				}
			}
			return true
		}
		return s
	}, nil
}

type step struct {
	slots []int
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
