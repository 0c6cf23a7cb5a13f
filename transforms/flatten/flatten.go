// Package flatten gives nested fields names of one part.
package flatten

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("flatten", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives nested fields names of one part: `a.b.c` becomes `a_b_c`.",
			Details: "All nested fields, or those below the paths that are listed. Values are not looked into: arrays stay, and so do objects within them. A field of the new name that is there already is replaced.",
			Example: "- flatten: [http, url]\n- flatten: {fields: [http], separator: '-'}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `flatten: [PATH, …]` or `flatten: {fields, separator}`.
type Config struct {
	Fields    []steps.FieldPath `yaml:"fields" doc:"The paths whose fields are meant; all by default."`
	Separator string            `yaml:"separator" doc:"What stands between the parts of the new names." default:"_"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.SequenceNode || r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		c.Decode(n, &k.Fields)
	} else {
		c.DecodeStruct(n, k)
	}
	if strings.Contains(k.Separator, ".") {
		c.Errorf(n, "separator: a dot separates the parts of nested names")
	}
	for _, f := range k.Fields {
		if strings.HasPrefix(f.Name, "@") {
			c.Errorf(f.Node, "%s: names with @ are metadata", f.Name)
		}
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, config.Schema(long{})}}
}

func (k *Config) Declare(d *steps.Decl) {
	for _, f := range k.Fields {
		d.Read(f.Name, f.Node)
	}
	if len(k.Fields) == 0 {
		d.ReadAll = true
	}
	d.WriteAny = true
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	return func() steps.Step {
		s := &step{sep: k.Separator}
		for _, f := range k.Fields {
			s.paths = append(s.paths, f.Name)
		}
		for slot, name := range b.Table.Names() {
			if s.meant(name) {
				to := strings.ReplaceAll(name, ".", k.Separator)
				s.moves = append(s.moves, move{from: slot, to: b.Table.Find(to), name: to})
			}
		}
		s.rename = func(name []byte) (string, bool) {
			if n := string(name); s.meant(n) {
				return strings.ReplaceAll(n, ".", k.Separator), true
			}
			return "", false
		}
		return s
	}, nil
}

type move struct {
	from, to int // slots; to is -1 where the new name has none
	name     string
}

type step struct {
	sep    string
	paths  []string
	moves  []move
	rename func(name []byte) (string, bool)
}

// meant tells whether a field gets another name.
func (s *step) meant(name string) bool {
	if !strings.Contains(name, ".") || record.IsMeta(name) {
		return false
	}
	for _, p := range s.paths {
		if record.Under(name, p) {
			return true
		}
	}
	return len(s.paths) == 0
}

func (s *step) Apply(b *record.Batch) {
	for _, rec := range b.Sel {
		i := int(rec)
		if b.HasOverflow(i) {
			b.RenameOverflow(i, s.rename)
		}
		for _, m := range s.moves {
			v := b.Get(i, m.from)
			if v.Kind() == record.Missing {
				continue
			}
			b.Set(i, m.from, record.Value{})
			if m.to >= 0 {
				b.Set(i, m.to, v)
			} else {
				b.SetOverflow(i, b.PutString(m.name), v)
			}
		}
	}
}
