// Package rename gives fields other names.
package rename

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("rename", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives fields other names, with all that lies below them.",
			Details: "All renames of one step happen at once, so two fields can be swapped. A field that is missing is left out; the new name then keeps what it had, otherwise it and what lies below it is replaced. `a[2]` is the third element of an array, which then has one less; an old name with `%{field}` in it is taken from the record. These two come after the others.",
			Example: "- rename: {source.address: client.ip, http.response.status_code: status}\n- rename: {'tags[0]': kind, 'field_%{kind}': value}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `rename: {OLD: NEW, …}`.
type Config struct {
	Fields config.Map[steps.FieldPath]
	names  []string    // "" where others has it
	others []each.Name // elements and templates, beside Fields
}

var _ steps.Config = (*Config)(nil)

func (r *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	r.Fields.UnmarshalConfig(c, n)
	plain := make(config.Map[steps.FieldPath], len(r.Fields))
	for i, f := range r.Fields {
		n := each.ParseName(c, f.Key, f.Node)
		if plain[i] = f; n.Tmpl != nil || n.At != each.Whole {
			plain[i].Key = "a" // a path that is good
		}
		r.others = append(r.others, n)
	}
	r.names = steps.Paths(c, plain)
	for i, n := range r.others {
		if n.Tmpl != nil || n.At != each.Whole {
			r.names[i] = ""
		}
	}
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
			if k != i && r.names[i] != "" && other != "" && record.Under(r.names[i], other) {
				c.Errorf(f.Node, "%q lies below %q, which is renamed too", r.names[i], other)
			}
		}
	}
}

func (*Config) JSONSchema() map[string]any { return config.Map[steps.FieldPath]{}.JSONSchema() }

func (r *Config) Declare(d *steps.Decl) {
	for i, f := range r.Fields {
		if r.names[i] == "" {
			if n := r.others[i]; n.Tmpl != nil {
				d.ReadTemplate(n.Tmpl)
				d.ReadAll = true
			} else {
				d.Read(n.Path, n.Node)
				d.Write(n.Path, expr.Type{})
			}
			d.Write(f.Value.Name, expr.Type{})
			d.WriteUnder = append(d.WriteUnder, f.Value.Name)
			continue
		}
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
	tmpls := make([]*expr.TemplateProgram, len(r.Fields))
	for i := range r.Fields {
		if t := r.others[i].Tmpl; t != nil {
			tmpls[i] = b.Template(t)
		}
	}
	return func() steps.Step {
		s := &step{}
		for i, f := range r.Fields {
			if r.names[i] == "" {
				o := other{to: f.Value.Name, toSlot: b.Table.Find(f.Value.Name), at: r.others[i].At, tmpl: tmpls[i], below: steps.NewBelow(b.Table, f.Value.Name)}
				if o.tmpl == nil {
					o.slot = b.Table.Find(r.others[i].Path)
				}
				s.others = append(s.others, o)
				continue
			}
			p := pair{from: r.names[i], to: f.Value.Name}
			for _, slot := range steps.SlotsUnder(b.Table, p.from) {
				name := p.to + b.Table.Name(slot)[len(p.from):]
				s.moves = append(s.moves, move{from: slot, to: b.Table.Find(name), name: name, pair: len(s.pairs)})
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
	others   []other
	env      expr.Env
	name     []byte
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
	s.env.B = b
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
		for k := range s.others {
			s.other(b, i, &s.others[k])
		}
	}
}

// other is a rename whose old name is an array's element or a template.
type other struct {
	slot, at int
	tmpl     *expr.TemplateProgram
	to       string
	toSlot   int // -1: nothing reads it
	below    *steps.Below
}

func (s *step) other(b *record.Batch, i int, o *other) {
	if o.tmpl == nil {
		e, rest, ok := each.Take(b, b.Get(i, o.slot), o.at)
		if !ok {
			return
		}
		b.Set(i, o.slot, rest)
		o.below.Clear(b, i)
		if o.toSlot >= 0 {
			b.Set(i, o.toSlot, e)
		}
		return
	}
	var ok bool
	if s.name, ok = o.tmpl.Append(s.name[:0], &s.env, i); !ok || len(s.name) == 0 {
		return
	}
	from := string(s.name)
	type moved struct {
		name string
		val  record.Value
	}
	var moves []moved
	for slot, name := range b.Table.Names() {
		if v := b.Get(i, slot); v.Kind() != record.Missing && record.Under(name, from) && !record.IsMeta(name) {
			moves = append(moves, moved{o.to + name[len(from):], v})
			b.Set(i, slot, record.Value{})
		}
	}
	if b.HasOverflow(i) {
		for name, v := range b.Overflow(i) {
			if text := b.Bytes(name); record.Under(text, from) {
				moves = append(moves, moved{o.to + string(text[len(from):]), v})
			}
		}
		b.UnsetOverflow(i, func(name []byte) bool { return record.Under(name, from) })
	}
	if len(moves) == 0 {
		return
	}
	o.below.Clear(b, i)
	for _, m := range moves {
		b.SetNamed(i, b.PutString(m.name), m.val)
	}
}
