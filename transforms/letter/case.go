// Package letter changes the case of letters.
package letter

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/letters"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("case", steps.Spec{
		Doc: config.Doc{
			Summary: "Changes the case of letters in texts.",
			Details: "`capitalize` makes the first letter upper case and the others lower case. Letters follow Unicode, without regard to a language. In an array each text is changed; other values, and fields that are missing, stay as they are.",
			Example: "- case: {lower: [http.request.method, host], upper: country, capitalize: name}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `case: {upper: FIELDS, lower: FIELDS, capitalize: FIELDS}`.
type Config struct {
	Upper      []steps.FieldPath `yaml:"upper" doc:"Fields to put in upper case."`
	Lower      []steps.FieldPath `yaml:"lower" doc:"Fields to put in lower case."`
	Capitalize []steps.FieldPath `yaml:"capitalize" doc:"Fields to begin with a capital letter, the rest in lower case."`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	ok := steps.Foreign{"uppercase": "upper", "lowercase": "lower"}.Decode(c, n, k)
	if ok && len(k.Upper)+len(k.Lower)+len(k.Capitalize) == 0 {
		c.Errorf(n, "no field is named; write for example `case: {lower: [host]}`")
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (k *Config) each(f func(p *steps.FieldPath, to string)) {
	for i := range k.Upper {
		f(&k.Upper[i], "uppercase")
	}
	for i := range k.Lower {
		f(&k.Lower[i], "lowercase")
	}
	for i := range k.Capitalize {
		f(&k.Capitalize[i], "capitalize")
	}
}

func (k *Config) Declare(d *steps.Decl) {
	k.each(func(p *steps.FieldPath, _ string) {
		d.Read(p.Name, p.Node)
		d.Write(p.Name, expr.Type{})
	})
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	var names, to []string
	k.each(func(p *steps.FieldPath, how string) { names, to = append(names, p.Name), append(to, how) })
	slots := each.Fields(b, names)
	return func() steps.Step {
		return &each.Step{Slots: slots, Elements: true, F: func(b *record.Batch, _, k int, v record.Value) (record.Value, string) {
			if v.Kind() != record.String {
				return v, ""
			}
			off := len(b.Buf)
			b.Buf = letters.Append(b.Buf, b.Bytes(v), to[k])
			return b.Since(off), ""
		}}
	}, nil
}
