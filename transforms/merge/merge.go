// Package merge joins fields' values in arrays.
package merge

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("merge", steps.Spec{
		Doc: config.Doc{
			Summary: "Adds fields' values to another field, which becomes an array of all.",
			Details: "Arrays give their elements. A field that is missing or NULL adds nothing; the one that is added to becomes an array in any other case. Fields below it, those of an object, are added below the other field, unless that has a value of its own; of two with one name the added one counts.",
			Example: "- merge: {all_tags: [tags, more_tags], hosts: host}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `merge: {INTO: FIELD or [FIELD, …], …}`.
type Config struct {
	Fields config.Map[[]steps.FieldPath]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	k.Fields.UnmarshalConfig(c, n)
	k.names = steps.Paths(c, k.Fields)
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[[]steps.FieldPath]{}.JSONSchema() }

func (k *Config) Declare(d *steps.Decl) {
	for i, f := range k.Fields {
		for _, from := range f.Value {
			d.Read(from.Name, from.Node)
		}
		d.Write(k.names[i], expr.Type{})
		d.WriteUnder = append(d.WriteUnder, k.names[i])
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	type rule struct {
		into int
		from []int
	}
	var rules []rule
	for i, f := range k.Fields {
		r := rule{into: b.Slot(k.names[i])}
		for _, from := range f.Value {
			r.from = append(r.from, b.Slot(from.Name))
		}
		rules = append(rules, r)
	}
	return func() steps.Step {
		objects := make([][]object, len(rules))
		for i, f := range k.Fields {
			for _, from := range f.Value {
				objects[i] = append(objects[i], newObject(b.Table, from.Name, k.names[i]))
			}
		}
		var items []record.Value
		add := func(b *record.Batch, v record.Value) {
			switch {
			case v.IsNull():
			case v.Kind() == record.Array:
				items = append(items, b.Items(v)...)
			default:
				items = append(items, v)
			}
		}
		return stepFunc(func(b *record.Batch) {
			for _, rec := range b.Sel {
				i := int(rec)
				for n, r := range rules {
					items = items[:0]
					add(b, b.Get(i, r.into))
					any := false
					for k, from := range r.from {
						v := b.Get(i, from)
						any = any || !v.IsNull()
						add(b, v)
						if b.Get(i, r.into).IsNull() {
							objects[n][k].add(b, i)
						}
					}
					if any {
						b.Set(i, r.into, b.PutItems(record.Array, items))
					}
				}
			}
		})
	}, nil
}

// object adds what lies below one path below another.
type object struct {
	from, to string
	moves    []move
	extras   []extra
}

type move struct {
	from, to int // slots; to is -1 where the new name has none
	name     string
}

type extra struct{ name, val record.Value }

func newObject(t *record.Table, from, to string) object {
	o := object{from: from, to: to}
	for _, slot := range steps.SlotsUnder(t, from) {
		if name := t.Name(slot); name != from {
			name = to + name[len(from):]
			o.moves = append(o.moves, move{slot, t.Find(name), name})
		}
	}
	return o
}

func (o *object) add(b *record.Batch, i int) {
	if o.from == o.to {
		return
	}
	o.extras = o.extras[:0]
	if b.HasOverflow(i) {
		for name, v := range b.Overflow(i) {
			if text := b.Bytes(name); len(text) > len(o.from) && record.Under(text, o.from) {
				off := len(b.Buf)
				b.Buf = append(append(b.Buf, o.to...), text[len(o.from):]...)
				o.extras = append(o.extras, extra{b.Since(off), v})
			}
		}
	}
	for _, m := range o.moves {
		switch v := b.Get(i, m.from); {
		case v.Kind() == record.Missing:
		case m.to >= 0:
			b.Set(i, m.to, v)
		default:
			b.SetOverflow(i, b.PutString(m.name), v)
		}
	}
	for _, x := range o.extras {
		b.SetNamed(i, x.name, x.val)
	}
}

type stepFunc func(b *record.Batch)

func (f stepFunc) Apply(b *record.Batch) { f(b) }
