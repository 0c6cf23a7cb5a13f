// Package dissect cuts texts at fixed delimiters.
package dissect

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("dissect", steps.Spec{
		Doc: config.Doc{
			Summary: "Cuts a text at fixed delimiters, without regular expressions.",
			Details: "`%{name}` takes what stands before the delimiter that follows it, which is all up to the next `%{`; the last takes the rest. An empty stretch is an empty text. " +
				"`%{name->}` takes a delimiter that is repeated as one; `%{+name}` appends to a field with the delimiter before it in between, `%{+name/2}` says in which order; `%{?name}` and `%{}` take a stretch and drop it; " +
				"`%{&name}` gives its stretch to the field whose name `%{?name}`, `%{*name}` or `%{name}` has taken. Nested fields are `%{a.b}` or `%{[a][b]}`. " +
				"The text must begin with what stands before the first `%{`; what follows the last delimiter is not looked at.\n\n" +
				"A field that is there already is replaced. A text without one of the delimiters is a failure; nothing is set then. `convert_datatype` makes numbers; a stretch that is none stays text.",
			Example: "- dissect: '%{ts} %{+ts} %{host} %{program}[%{pid}]: %{msg}'\n- dissect: {field: path, pattern: '/%{api}/%{version}/%{rest}', convert_datatype: {version: int}}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `dissect: PATTERN` or the long form.
type Config struct {
	Field   steps.FieldPath           `yaml:"field" doc:"The field to parse; message by default."`
	Pattern string                    `yaml:"pattern" doc:"The pattern."`
	Mapping config.Map[string]        `yaml:"mapping" doc:"Patterns by the field that each is for, in place of field and pattern; applied in order."`
	Target  steps.FieldPath           `yaml:"target" doc:"The path below which the fields go; the record itself by default."`
	Convert config.Map[convertTarget] `yaml:"convert_datatype" doc:"Fields to make numbers of: int or float."`

	rules []rule
}

// rule is one pattern for one field.
type rule struct {
	field string
	node  *yaml.Node
	pat   *pattern
}

// convertTarget is int or float.
type convertTarget string

func (t *convertTarget) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a type")
	if ok && s != "int" && s != "float" {
		c.Errorf(n, "%q is no type to convert to%s", s, config.Meant(s, []string{"int", "float"}))
	}
	*t = convertTarget(s)
}

// JSONSchema lists the types.
func (convertTarget) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []string{"int", "float"}}
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		k.Pattern, _ = c.Scalar(n, "a pattern")
	} else if !(steps.Foreign{"source": "field"}).Decode(c, n, k) {
		return
	}
	if k.Target.Name != "" && record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if k.Pattern != "" && len(k.Mapping) > 0 {
		c.Errorf(n, "give pattern or mapping, not both")
	}
	if k.Pattern == "" && len(k.Mapping) == 0 && len(k.Convert) == 0 {
		c.Errorf(n, "key %q is missing", "pattern")
		return
	}
	add := func(field string, at *yaml.Node, text string) {
		p, err := parse(text)
		if err != nil {
			c.Errorf(at, "%v", err)
			return
		}
		for _, name := range p.names() {
			if k.Target.Name == "" && record.IsMeta(name) {
				c.Errorf(at, "%s: names with @ are metadata and can't be set", name)
			}
		}
		k.rules = append(k.rules, rule{field, at, p})
	}
	if k.Pattern != "" {
		add(k.Field.Name, k.Field.Node, k.Pattern)
	}
	for _, e := range k.Mapping {
		path, err := expr.ParsePath(e.Key)
		if err != nil {
			c.Errorf(e.Node, "%v", err)
			continue
		}
		c.In(e.Key, func() { add(path, e.Node, e.Value) })
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (k *Config) path(name string) string {
	if k.Target.Name != "" {
		return k.Target.Name + "." + name
	}
	return name
}

func (k *Config) Declare(d *steps.Decl) {
	for _, r := range k.rules {
		d.Read(r.field, r.node)
		for _, n := range r.pat.names() {
			t := expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
			for _, e := range k.Convert {
				if e.Key == n {
					t = expr.Type{}
				}
			}
			d.Write(k.path(n), t)
		}
		if r.pat.indirect {
			if k.Target.Name != "" {
				d.WriteUnder = append(d.WriteUnder, k.Target.Name)
			} else {
				d.WriteAny = true
			}
		}
	}
	for _, e := range k.Convert {
		if p, err := expr.ParsePath(e.Key); err == nil {
			d.Write(k.path(p), expr.Type{})
		}
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{}
	var names []string
	for _, r := range k.rules {
		ru := ruleStep{field: b.Slot(r.field), pat: r.pat}
		for _, n := range r.pat.names() {
			path := k.path(n)
			slot := -1
			if b.Live(path) {
				slot = b.Slot(path)
			}
			ru.slots = append(ru.slots, slot)
			ru.over = append(ru.over, len(names))
			names = append(names, path)
		}
		m.rules = append(m.rules, ru)
	}
	for _, e := range k.Convert {
		p, err := expr.ParsePath(e.Key)
		if err != nil {
			b.Errorf(e.Node, "convert_datatype", "%v", err)
			continue
		}
		if p = k.path(p); b.Live(p) {
			m.converts = append(m.converts, conversion{b.Slot(p), e.Value})
		}
	}
	return func() steps.Step {
		s := &step{maker: m, over: steps.NewOverwriter(b.Table, names)}
		s.names = steps.NewNames(b.Table, b.Live, func(key []byte) string {
			if k.Target.Name != "" {
				return k.Target.Name + "." + string(key)
			}
			return steps.FieldName(key)
		})
		s.each = s.one
		return s
	}, nil
}
