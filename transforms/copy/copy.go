// Package copy gives fields' values to other fields too.
package copy

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("copy", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives fields' values to other fields too, with all that lies below them.",
			Details: "All copies of one step see the record as it was. A field that is missing is left out; the other then keeps what it had, otherwise it and what lies below it is replaced.",
			Example: "- copy: {host.name: source, http: original.http}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `copy: {FROM: TO, …}`.
type Config struct {
	Fields config.Map[steps.FieldPath]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	k.Fields.UnmarshalConfig(c, n)
	k.names = nil
	to := map[string]bool{}
	for _, f := range k.Fields {
		var p steps.FieldPath
		p.UnmarshalConfig(c, f.Node)
		k.names = append(k.names, p.Name)
		if to[f.Value.Name] {
			c.Errorf(f.Value.Node, "two fields are copied to %q", f.Value.Name)
		}
		to[f.Value.Name] = true
		if record.IsMeta(f.Value.Name) {
			c.Errorf(f.Value.Node, "%s: names with @ are metadata and can't be set", f.Value.Name)
		}
		if record.Under(f.Value.Name, p.Name) || record.Under(p.Name, f.Value.Name) {
			c.Errorf(f.Value.Node, "%q and %q lie in each other", p.Name, f.Value.Name)
		}
	}
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[steps.FieldPath]{}.JSONSchema() }

func (k *Config) Declare(d *steps.Decl) {
	for i, f := range k.Fields {
		d.Read(k.names[i], f.Node)
		d.Write(f.Value.Name, expr.Type{})
		d.WriteUnder = append(d.WriteUnder, f.Value.Name)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	var pairs [][2]string
	for i, f := range k.Fields {
		if b.Live(f.Value.Name) {
			b.Slot(f.Value.Name)
			pairs = append(pairs, [2]string{k.names[i], f.Value.Name})
		}
	}
	return func() steps.Step { return newStep(b.Table, pairs) }, nil
}

type pair struct {
	from, to string
	clear    *steps.Below
	moves    []move
	found    bool
}

type move struct {
	from, to int // slots; to is -1 where the new name has none
	name     string
	val      record.Value
}

type extra struct{ name, val record.Value }

type step struct {
	pairs  []pair
	extras []extra // of one record: what has no slot
}

func newStep(t *record.Table, pairs [][2]string) *step {
	s := &step{}
	for _, fp := range pairs {
		p := pair{from: fp[0], to: fp[1], clear: steps.NewBelow(t, fp[1])}
		for _, slot := range steps.SlotsUnder(t, p.from) {
			name := p.to + t.Name(slot)[len(p.from):]
			p.moves = append(p.moves, move{from: slot, to: t.Find(name), name: name})
		}
		s.pairs = append(s.pairs, p)
	}
	return s
}

func (s *step) Apply(b *record.Batch) {
	for _, rec := range b.Sel {
		s.one(b, int(rec))
	}
}

func (s *step) one(b *record.Batch, i int) {
	over := b.HasOverflow(i)
	s.extras = s.extras[:0]
	for k := range s.pairs {
		p := &s.pairs[k]
		p.found = false
		for m := range p.moves {
			v := b.Get(i, p.moves[m].from)
			p.moves[m].val = v
			p.found = p.found || v.Kind() != record.Missing
		}
		if !over {
			continue
		}
		for name, v := range b.Overflow(i) {
			if text := b.Bytes(name); record.Under(text, p.from) {
				p.found = true
				off := len(b.Buf)
				b.Buf = append(append(b.Buf, p.to...), text[len(p.from):]...)
				s.extras = append(s.extras, extra{b.Since(off), v})
			}
		}
	}
	for k := range s.pairs {
		if p := &s.pairs[k]; p.found {
			p.clear.Clear(b, i)
		}
	}
	for k := range s.pairs {
		for _, m := range s.pairs[k].moves {
			switch {
			case m.val.Kind() == record.Missing:
			case m.to >= 0:
				b.Set(i, m.to, m.val)
			default:
				b.SetOverflow(i, b.PutString(m.name), m.val)
			}
		}
	}
	for _, x := range s.extras {
		b.SetNamed(i, x.name, x.val)
	}
}
