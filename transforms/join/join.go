// Package join makes texts of arrays.
package join

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("join", steps.Spec{
		Doc: config.Doc{
			Summary: "Makes a text of an array, with a separator between its elements.",
			Details: "NULL is an empty text, objects and arrays are JSON. Values that are no arrays, and fields that are missing, stay as they are.",
			Example: "- join: {tags: ', '}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `join: {FIELD: SEPARATOR, …}`.
type Config struct {
	Fields config.Map[string]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	k.Fields.UnmarshalConfig(c, n)
	k.names = steps.Paths(c, k.Fields)
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[string]{}.JSONSchema() }

func (k *Config) Declare(d *steps.Decl) {
	for i, n := range k.names {
		d.Read(n, k.Fields[i].Node)
		d.Write(n, expr.Type{})
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	slots := each.Fields(b, k.names)
	return func() steps.Step {
		var buf []byte
		return &each.Step{Slots: slots, F: func(b *record.Batch, _, f int, v record.Value) (record.Value, string) {
			if v.Kind() != record.Array {
				return v, ""
			}
			buf = buf[:0]
			for i, e := range b.Items(v) {
				if i > 0 {
					buf = append(buf, k.Fields[f].Value...)
				}
				buf = b.AppendPlain(buf, e)
			}
			return b.PutBytes(buf), ""
		}}
	}, nil
}
