// Package trim takes blanks off the ends of texts.
package trim

import (
	"bytes"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("trim", steps.Spec{
		Doc: config.Doc{
			Summary: "Takes blanks, or other characters, off both ends of texts.",
			Details: "Blanks are space, tab, newline, carriage return, form feed, vertical tab and NUL. In an array each text is trimmed; other values, and fields that are missing, stay as they are.",
			Example: "- trim: [user, path]\n- trim: {fields: [user], chars: '\"'}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `trim: [FIELD, …]` or `trim: {fields, chars}`.
type Config struct {
	Fields []steps.FieldPath `yaml:"fields,required" doc:"The fields."`
	Chars  string            `yaml:"chars" doc:"The characters to take off; blanks by default."`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.MappingNode {
		c.DecodeStruct(n, k)
		return
	}
	c.Decode(n, &k.Fields)
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, config.Schema(long{})}}
}

func (k *Config) Declare(d *steps.Decl) {
	for _, f := range k.Fields {
		d.Read(f.Name, f.Node)
		d.Write(f.Name, expr.Type{})
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	var names []string
	for _, f := range k.Fields {
		names = append(names, f.Name)
	}
	slots := each.Fields(b, names)
	chars := k.Chars
	if chars == "" {
		chars = " \t\n\r\f\v\x00"
	}
	return func() steps.Step {
		return &each.Step{Slots: slots, Elements: true, F: func(b *record.Batch, _, _ int, v record.Value) (record.Value, string) {
			if v.Kind() != record.String {
				return v, ""
			}
			p := b.Bytes(v)
			to := len(bytes.TrimRight(p, chars))
			from := to - len(bytes.TrimLeft(p[:to], chars))
			return v.Sub(from, to), ""
		}}
	}, nil
}
