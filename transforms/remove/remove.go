// Package remove takes fields away.
package remove

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("remove", steps.Spec{
		Doc: config.Doc{
			Summary: "Takes fields away, with all that lies below them.",
			Details: "A field that isn't there is no failure. `a[2]` is the third element of an array, `a[-1]` the last; of several elements of one array the later ones are counted in what the earlier ones leave. A name with `%{field}` in it is taken from the record.",
			Example: "- remove: [message, http.request]\n- remove: ['tags[0]', 'field_%{kind}']",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `remove: [FIELD, …]`.
type Config struct{ Fields []each.Name }

var _ steps.Config = (*Config)(nil)

func (r *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	c.Decode(n, &r.Fields)
	if len(r.Fields) == 0 && !c.Errs.Failed() {
		c.Errorf(n, "want at least one field")
	}
}

func (*Config) JSONSchema() map[string]any { return config.Schema([]each.Name{}) }

func (r *Config) Declare(d *steps.Decl) {
	for _, f := range r.Fields {
		switch {
		case f.Tmpl != nil:
			d.ReadTemplate(f.Tmpl)
		case f.At != each.Whole:
			d.Read(f.Path, f.Node)
			d.Write(f.Path, expr.Type{})
		default:
			d.Removes = append(d.Removes, f.Path)
			d.Mention(f.Path, f.Node)
		}
	}
}

func (r *Config) Build(b *steps.Build) (steps.Maker, error) {
	var tmpls []*expr.TemplateProgram
	for _, f := range r.Fields {
		if f.Tmpl != nil {
			tmpls = append(tmpls, b.Template(f.Tmpl))
		}
	}
	return func() steps.Step {
		s := &step{tmpls: tmpls}
		for _, f := range r.Fields {
			switch {
			case f.Tmpl != nil:
			case f.At != each.Whole:
				s.elements = append(s.elements, element{b.Table.Find(f.Path), f.At})
			default:
				s.paths = append(s.paths, f.Path)
				s.slots = append(s.slots, steps.SlotsUnder(b.Table, f.Path)...)
			}
		}
		s.named = func(name []byte) bool { return record.Under(name, string(s.name)) }
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

	elements []element
	tmpls    []*expr.TemplateProgram
	env      expr.Env
	name     []byte // of the record's template
	named    func(name []byte) bool
}

type element struct{ slot, at int }

func (s *step) Apply(b *record.Batch) {
	s.env.B = b
	for _, i := range b.Sel {
		for _, t := range s.tmpls {
			var ok bool
			if s.name, ok = t.Append(s.name[:0], &s.env, int(i)); ok && len(s.name) > 0 {
				s.remove(b, int(i))
			}
		}
		row := b.Row(int(i))
		for _, slot := range s.slots {
			row[slot] = record.Value{}
		}
		if b.HasOverflow(int(i)) {
			b.UnsetOverflow(int(i), s.match)
		}
		for _, e := range s.elements {
			if _, rest, ok := each.Take(b, row[e.slot], e.at); ok {
				row[e.slot] = rest
			}
		}
	}
}

// remove takes away the field s.name, and what lies below it.
func (s *step) remove(b *record.Batch, i int) {
	for slot, name := range b.Table.Names() {
		if record.Under(name, string(s.name)) && !record.IsMeta(name) {
			b.Set(i, slot, record.Value{})
		}
	}
	if b.HasOverflow(i) {
		b.UnsetOverflow(i, s.named)
	}
}
