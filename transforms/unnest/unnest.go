// Package unnest makes several records of one.
package unnest

import (
	"bytes"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("unnest", steps.Spec{
		Doc: config.Doc{
			Summary: "Makes a record of each element of an array, or of each piece of a text between terminators.",
			Details: "Each record has the other fields too, and the element in the field, or in `target`, where the field stays as it was. Elements that are objects become fields below it. NULL elements and empty pieces are left out; " +
				"a record whose array or text has nothing at all stays as it is, and so does a text without the terminator. " +
				"In the ledger the new records count as made, the one that they come from as absorbed; their positions are that one's with an index. A field that is no text and no array is a failure.",
			Example: "- unnest: records\n- unnest: {field: message, terminator: ';', target: part}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
		Expands: true,
	})
}

// Config is `unnest: FIELD` or `unnest: {field, terminator, target}`.
type Config struct {
	Field      steps.FieldPath `yaml:"field" doc:"The array or text; message by default."`
	Terminator string          `yaml:"terminator" doc:"What separates a text's pieces; a newline by default."`
	Target     steps.FieldPath `yaml:"target" doc:"The field that gets the element; the field itself by default."`
	MaxRecords int             `yaml:"max_records" doc:"The most records that are made of one; more is a failure." default:"10000" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !(steps.Foreign{"source": "field"}).Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if k.Terminator == "" {
		k.Terminator = "\n"
	}
	if t := k.Target; record.IsMeta(t.Name) {
		c.Errorf(t.Node, "target: %s is metadata and can't be set", t.Name)
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (k *Config) target() string {
	if k.Target.Name != "" {
		return k.Target.Name
	}
	return k.Field.Name
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	d.Write(k.target(), expr.Type{})
	d.WriteUnder = append(d.WriteUnder, k.target())
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field, target := b.Slot(k.Field.Name), b.Slot(k.target())
	return func() steps.Step {
		return &step{Config: k, field: field, target: target, below: steps.NewBelow(b.Table, k.target())}
	}, nil
}

type step struct {
	*Config
	field, target int
	below         *steps.Below
	sel           []int32
	items         []record.Value
	path          []byte
}

func (s *step) Apply(b *record.Batch) {
	in := append(s.sel[:0], b.Sel...)
	s.sel = in
	out := b.Sel[:0]
	for _, rec := range in {
		i := int(rec)
		v := b.Get(i, s.field)
		s.items = s.items[:0]
		switch v.Kind() {
		case record.String:
			s.pieces(b.Bytes(v), v)
		case record.Array:
			for _, e := range b.Items(v) {
				if !e.IsNull() {
					s.items = append(s.items, e)
				}
			}
		case record.Missing, record.Null:
			b.Fail(i, "unnest: the field is missing")
			continue
		default:
			b.Fail(i, "unnest: the field is no text and no array but "+v.Kind().String())
			continue
		}
		switch n := len(s.items); {
		case n == 0 || n == 1 && v.Kind() == record.String && s.items[0] == v:
			out = append(out, rec)
			continue
		case n > s.MaxRecords:
			b.Fail(i, "unnest: more than max_records elements")
			continue
		case n == 1:
			s.put(b, i, s.items[0])
			out = append(out, rec)
			continue
		}
		b.Absorbed++
		b.Made += len(s.items)
		for _, e := range s.items {
			j := b.Clone(i)
			s.put(b, j, e)
			out = append(out, int32(j))
		}
	}
	b.Sel = out
}

// pieces cuts a text, empty pieces left out.
func (s *step) pieces(p []byte, v record.Value) {
	term := []byte(s.Terminator)
	for at := 0; at <= len(p); {
		n := bytes.Index(p[at:], term)
		if n < 0 {
			n = len(p) - at
		}
		if n > 0 {
			s.items = append(s.items, v.Sub(at, at+n))
		}
		at += n + len(term)
	}
}

// maxDepth bounds the nesting of objects that become fields.
const maxDepth = 64

// put gives record i the element.
func (s *step) put(b *record.Batch, i int, e record.Value) {
	s.below.Clear(b, i)
	if e.Kind() == record.Map && e.Len() > 0 {
		s.path = append(s.path[:0], b.Table.Name(s.target)...)
		s.object(b, i, e, 1)
		return
	}
	b.Set(i, s.target, e)
}

func (s *step) object(b *record.Batch, i int, m record.Value, depth int) {
	from := len(s.path)
	kv := b.Items(m)
	for k := 0; k+1 < len(kv); k += 2 {
		s.path = append(s.path[:from], '.')
		s.path = b.AppendPlain(s.path, kv[k])
		if v := kv[k+1]; v.Kind() == record.Map && v.Len() > 0 && depth < maxDepth {
			s.object(b, i, v, depth+1)
		} else {
			b.SetNamed(i, b.PutBytes(s.path), v)
		}
	}
	s.path = s.path[:from]
}
