// Package rename gives fields other names.
package rename

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("rename", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives fields other names, with all that lies below them.",
			Details: "All renames of one step happen at once, so two fields can be swapped. A field that is missing is left out; the new name then keeps what it had.",
			Example: "- rename: {source.address: client.ip, http.response.status_code: status}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `rename: {OLD: NEW, …}`.
type Config struct {
	Fields config.Map[steps.FieldPath]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (r *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	r.Fields.UnmarshalConfig(c, n)
	r.names = steps.Paths(c, r.Fields)
	to := map[string]bool{}
	for i, f := range r.Fields {
		if to[f.Value.Name] {
			c.Errorf(f.Value.Node, "two fields are renamed to %q", f.Value.Name)
		}
		to[f.Value.Name] = true
		if record.IsMeta(f.Value.Name) {
			c.Errorf(f.Value.Node, "%s: names with @ are metadata and can't be set", f.Value.Name)
		}
		for k, other := range r.names {
			if k != i && record.Under(r.names[i], other) {
				c.Errorf(f.Node, "%q lies below %q, which is renamed too", r.names[i], other)
			}
		}
	}
}

func (*Config) JSONSchema() map[string]any { return config.Map[steps.FieldPath]{}.JSONSchema() }

func (r *Config) Declare(d *steps.Decl) {
	for i, f := range r.Fields {
		d.Renames = append(d.Renames, [2]string{r.names[i], f.Value.Name})
	}
}

func (r *Config) Build(b *steps.Build) (steps.Maker, error) {
	for _, f := range r.Fields {
		if b.Live(f.Value.Name) {
			b.Slot(f.Value.Name)
		}
	}
	return func() steps.Step {
		s := &step{}
		for i, f := range r.Fields {
			from, to := r.names[i], f.Value.Name
			s.paths = append(s.paths, [2]string{from, to})
			for _, slot := range steps.SlotsUnder(b.Table, from) {
				name := to + b.Table.Name(slot)[len(from):]
				s.moves = append(s.moves, move{from: slot, to: b.Table.Find(name), name: name})
			}
		}
		s.vals = make([]record.Value, len(s.moves))
		s.rename = func(name []byte) (string, bool) {
			for _, p := range s.paths {
				if record.Under(name, p[0]) {
					return p[1] + string(name[len(p[0]):]), true
				}
			}
			return "", false
		}
		return s
	}, nil
}

type move struct {
	from, to int // to: -1 where the new name has no slot
	name     string
}

type step struct {
	moves  []move
	paths  [][2]string
	vals   []record.Value
	rename func(name []byte) (string, bool)
}

func (s *step) Apply(b *record.Batch) {
	for _, rec := range b.Sel {
		i := int(rec)
		for k, m := range s.moves {
			s.vals[k] = b.Get(i, m.from)
			b.Set(i, m.from, record.Value{})
		}
		if b.HasOverflow(i) {
			b.RenameOverflow(i, s.rename)
		}
		for k, m := range s.moves {
			switch {
			case s.vals[k].Kind() == record.Missing:
			case m.to >= 0:
				b.Set(i, m.to, s.vals[k])
			default:
				b.SetOverflow(i, b.PutString(m.name), s.vals[k])
			}
		}
	}
}
