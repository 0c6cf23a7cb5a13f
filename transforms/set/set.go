// Package set gives fields the values of expressions.
package set

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("set", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives fields the values of expressions.",
			Details: "All expressions see the record as it was before the step. A bare word is a field; a text is written in quotes within the expression: `level: \"'info'\"`, or with `add`.",
			Example: "- set: {host: source.address, slow: duration_ms > 1000}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `set: {FIELD: EXPR, …}`.
type Config struct {
	Fields config.Map[steps.Expr]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (s *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.MappingNode && r.Style == yaml.FlowStyle {
		// `{a: F(b, 1)}` is to YAML the key a with the text `F(b` and the key `1)` without a value.
		for i := 0; i+1 < len(r.Content); i += 2 {
			if v := r.Content[i+1]; v.Tag == "!!null" && v.Value == "" {
				c.Errorf(r.Content[i], "a comma within {…} ends the value: put the expression in quotes, or each field on a line of its own")
				return
			}
		}
	}
	s.Fields.UnmarshalConfig(c, n)
	s.names = steps.Paths(c, s.Fields)
}

func (*Config) JSONSchema() map[string]any { return config.Map[steps.Expr]{}.JSONSchema() }

func (s *Config) Declare(d *steps.Decl) {
	for i := range s.Fields {
		d.ReadExpr(&s.Fields[i].Value)
	}
	for _, n := range s.names {
		d.Removes = append(d.Removes, n)
		d.Write(n, expr.Type{})
	}
	d.Pure = true
}

func (s *Config) Build(b *steps.Build) (steps.Maker, error) {
	var progs []*expr.Program
	var slots []int
	var names []string
	for i := range s.Fields {
		p := b.Expr(&s.Fields[i].Value)
		if p == nil || !b.Live(s.names[i]) {
			continue
		}
		progs = append(progs, p)
		slots = append(slots, b.Slot(s.names[i]))
		names = append(names, s.names[i])
	}
	return func() steps.Step {
		return &step{progs: progs, slots: slots, vals: make([]record.Value, len(progs)), over: steps.NewOverwriter(b.Table, names)}
	}, nil
}

type step struct {
	progs []*expr.Program
	slots []int
	vals  []record.Value
	env   expr.Env
	over  *steps.Overwriter
}

func (s *step) Apply(b *record.Batch) {
	s.env.B = b
	for _, i := range b.Sel {
		for k, p := range s.progs {
			v := p.Eval(&s.env, int(i))
			if v.Kind() == record.Missing {
				v = record.MakeNull()
			}
			s.vals[k] = v
		}
		for k := range s.slots {
			s.over.Clear(b, int(i), k)
		}
		row := b.Row(int(i))
		for k, slot := range s.slots {
			row[slot] = s.vals[k]
		}
	}
}
