// Package filter keeps or drops records by a condition.
package filter

import (
	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"

	"gopkg.in/yaml.v3"
)

func init() {
	steps.MustRegister("filter", steps.Spec{
		Doc: config.Doc{
			Summary: "Keeps the records for which the condition is TRUE; the others count as filtered.",
			Details: "A condition that is NULL (a field is missing, a text is no number) is not TRUE: the record goes.",
			Example: "- filter: http.response.status_code >= 500",
		},
		New: func() steps.Config { return &Config{keep: true} },
	})
	steps.MustRegister("drop", steps.Spec{
		Doc: config.Doc{
			Summary: "Drops the records for which the condition is TRUE; they count as filtered.",
			Details: "A condition that is NULL (a field is missing, a text is no number) is not TRUE: the record stays.",
			Example: "- drop: url.path LIKE '/health%'",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `filter: EXPR` or `drop: EXPR`.
type Config struct {
	Cond steps.Expr
	keep bool
}

var _ steps.Config = (*Config)(nil)

func (f *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) { f.Cond.UnmarshalConfig(c, n) }

func (*Config) JSONSchema() map[string]any { return steps.Expr{}.JSONSchema() }

func (f *Config) Declare(d *steps.Decl) {
	d.ReadExpr(&f.Cond)
	d.Pure = true
}

func (f *Config) Build(b *steps.Build) (steps.Maker, error) {
	p := b.Cond(&f.Cond)
	return func() steps.Step { return &step{cond: p, keep: f.keep} }, nil
}

type step struct {
	cond *expr.Program
	keep bool
	env  expr.Env
}

func (s *step) Apply(b *record.Batch) {
	s.env.B = b
	n := len(b.Sel)
	keep := b.Sel[:0]
	for _, i := range b.Sel {
		if s.cond.True(&s.env, int(i)) == s.keep {
			keep = append(keep, i)
		}
	}
	b.Sel = keep
	b.Filtered += n - len(keep)
}
