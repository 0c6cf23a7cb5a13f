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
			Details: "All renames of one step happen at once, so two fields can be swapped. A field that is missing is left out; the new name then keeps what it had, otherwise it and what lies below it is replaced.",
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
		d.Mention(r.names[i], f.Node)
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
			p := pair{from: r.names[i], to: f.Value.Name}
			for _, slot := range steps.SlotsUnder(b.Table, p.from) {
				name := p.to + b.Table.Name(slot)[len(p.from):]
				s.moves = append(s.moves, move{from: slot, to: b.Table.Find(name), name: name, pair: i})
			}
			p.clear = steps.SlotsUnder(b.Table, p.to)
			s.pairs = append(s.pairs, p)
		}
		s.vals = make([]record.Value, len(s.moves))
		s.rename = func(name []byte) (string, bool) {
			if p := s.pairOf(name); p != nil {
				return p.to + string(name[len(p.from):]), true
			}
			return "", false
		}
		s.replaced = func(name []byte) bool {
			for i := range s.pairs {
				if p := &s.pairs[i]; p.found && record.Under(name, p.to) {
					return s.pairOf(name) == nil
				}
			}
			return false
		}
		return s
	}, nil
}

type pair struct {
	from, to string
	clear    []int // slots at and below to
	found    bool  // the record has something at or below from
}

type move struct {
	from, to int // to: -1 where the new name has no slot
	name     string
	pair     int
}

type step struct {
	moves    []move
	pairs    []pair
	vals     []record.Value
	rename   func(name []byte) (string, bool)
	replaced func(name []byte) bool
}

// pairOf is the rename that a name falls under, nil where there is none.
func (s *step) pairOf(name []byte) *pair {
	for i := range s.pairs {
		if record.Under(name, s.pairs[i].from) {
			return &s.pairs[i]
		}
	}
	return nil
}

func (s *step) Apply(b *record.Batch) {
	for _, rec := range b.Sel {
		i := int(rec)
		for k := range s.pairs {
			s.pairs[k].found = false
		}
		for k, m := range s.moves {
			s.vals[k] = b.Get(i, m.from)
			b.Set(i, m.from, record.Value{})
			if s.vals[k].Kind() != record.Missing {
				s.pairs[m.pair].found = true
			}
		}
		over := b.HasOverflow(i)
		if over {
			for name := range b.Overflow(i) {
				if p := s.pairOf(b.Bytes(name)); p != nil {
					p.found = true
				}
			}
			b.UnsetOverflow(i, s.replaced)
		}
		for k := range s.pairs {
			if s.pairs[k].found {
				for _, slot := range s.pairs[k].clear {
					b.Set(i, slot, record.Value{})
				}
			}
		}
		if over {
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
