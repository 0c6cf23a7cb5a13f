// Package add gives fields literals and filled templates.
package add

import (
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("add", steps.Spec{
		Doc: config.Doc{
			Summary: "Gives fields literals and filled templates.",
			Details: "Numbers, `true`, `false` and `null` keep their YAML type; texts are templates: `%{field}` stands for a field of the record as it was before the step, `%{+yyyy.MM.dd}` for the date of `@timestamp`, an array for its elements with commas between; a list of literals is an array. " +
				"A field that is there already is replaced. Where a template's field is missing or NULL, the field stays as it was. `a[2]` is the third element of an array that is there, `a[-1]` the last. A name may be a template too.",
			Example: "- add: {env: prod, title: 'error on %{host}', version: 2}\n- add: {'tags[0]': first, 'count_%{host}': 1}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `add: {FIELD: VALUE, …}`.
type Config struct {
	Fields config.Map[Value]
	names  []each.Name
}

// Value is a YAML scalar, or a list of them.
type Value struct {
	node *yaml.Node
	tmpl *steps.Template // texts
	list []Value
	text string
}

// UnmarshalConfig reads the value.
func (v *Value) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	v.node = config.Resolve(n)
	switch v.node.Kind {
	case yaml.SequenceNode:
		for _, item := range v.node.Content {
			var e Value
			e.UnmarshalConfig(c, item)
			if e.node.Kind == yaml.SequenceNode {
				c.Errorf(item, "a list within a list; use set with an expression like ARRAY[ARRAY[1, 2]]")
			} else if e.tmpl != nil && e.tmpl.Template != nil && !e.tmpl.IsConst() {
				c.Errorf(item, "a template within a list; use set with an expression like ARRAY[host, 'x']")
			}
			v.list = append(v.list, e)
		}
	case yaml.MappingNode:
		c.Errorf(n, "a mapping; write dotted names instead, as in `add: {a.b: 1}`")
	default:
		var ok bool
		if v.text, ok = c.Scalar(n, "a value"); ok && v.node.Tag != "!!int" && v.node.Tag != "!!float" && v.node.Tag != "!!bool" && v.node.Tag != "!!null" {
			v.tmpl = &steps.Template{}
			v.tmpl.UnmarshalConfig(c, n)
		}
	}
}

// JSONSchema is how a value appears in the schema.
func (Value) JSONSchema() map[string]any {
	return map[string]any{"description": "a literal or a text with %{field}"}
}

// literal gives the value of a scalar that is no text.
func (v *Value) literal(b *steps.Build) record.Value {
	switch v.node.Tag {
	case "!!bool":
		return record.MakeBool(strings.EqualFold(v.text, "true"))
	case "!!int":
		if i, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			return record.MakeInt(i)
		}
	case "!!float":
		if f, ok := float(v.text); ok {
			return record.MakeFloat(f)
		}
	case "!!null":
		return record.MakeNull()
	}
	return b.Table.Const(v.text)
}

// float reads a YAML float: `1_000.5`, `.inf`, `-.inf` and `.nan` too.
func float(s string) (float64, bool) {
	s = strings.NewReplacer("_", "", ".inf", "inf", ".Inf", "inf", ".INF", "inf", ".nan", "nan", ".NaN", "nan", ".NAN", "nan").Replace(s)
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

// typ is the type of the field that gets the value.
func (v *Value) typ() expr.Type {
	switch {
	case v.node == nil || v.node.Kind == yaml.SequenceNode:
	case v.tmpl != nil:
		return expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
	case v.node.Tag == "!!bool":
		return expr.Type{Kind: expr.TBoolean}
	case v.node.Tag == "!!int":
		if _, err := strconv.ParseInt(v.text, 0, 64); err == nil {
			return expr.Type{Kind: expr.TBigInt}
		}
	case v.node.Tag == "!!float":
		return expr.Type{Kind: expr.TDouble}
	}
	return expr.Type{}
}

var _ steps.Config = (*Config)(nil)

func (a *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	a.Fields.UnmarshalConfig(c, n)
	for _, f := range a.Fields {
		n := each.ParseName(c, f.Key, f.Node)
		if p := n.Path; strings.HasPrefix(p, "@") && !record.Under(p, "@timestamp") {
			c.Errorf(f.Node, "%s: names with @ are metadata and can't be set; only @timestamp can", p)
		}
		a.names = append(a.names, n)
	}
}

func (*Config) JSONSchema() map[string]any { return config.Map[Value]{}.JSONSchema() }

func (a *Config) Declare(d *steps.Decl) {
	for i := range a.Fields {
		d.ReadTemplate(a.Fields[i].Value.tmpl)
	}
	for i, n := range a.names {
		switch {
		case n.Tmpl != nil:
			d.ReadTemplate(n.Tmpl)
			d.WriteAny = true
		case n.At != each.Whole:
			d.Read(n.Path, n.Node)
			d.Write(n.Path, expr.Type{})
		default:
			d.Write(n.Path, a.Fields[i].Value.typ())
		}
	}
	d.Pure = true
}

func (a *Config) Build(b *steps.Build) (steps.Maker, error) {
	var fields []field
	var names []string
	for i := range a.Fields {
		v := &a.Fields[i].Value
		var f field
		switch {
		case v.node.Kind == yaml.SequenceNode:
			items := make([]record.Value, len(v.list))
			for k := range v.list {
				items[k] = v.list[k].literalOrText(b)
			}
			f.lit = record.MakeRef(record.Array, b.Table.ConstElems(items), len(items))
		case v.tmpl != nil && !v.tmpl.IsConst():
			f.tmpl = b.Template(v.tmpl)
		default:
			f.lit = v.literalOrText(b)
		}
		f.at = a.names[i].At
		if t := a.names[i].Tmpl; t != nil {
			f.slot, f.name = -1, b.Template(t)
		} else if !b.Live(a.names[i].Path) {
			continue
		} else {
			f.slot = b.Slot(a.names[i].Path)
		}
		fields = append(fields, f)
		names = append(names, a.names[i].Path)
	}
	return func() steps.Step {
		return &step{fields: fields, vals: make([]record.Value, len(fields)), over: steps.NewOverwriter(b.Table, names),
			named: steps.NewNames(b.Table, b.Live, steps.FieldName)}
	}, nil
}

func (v *Value) literalOrText(b *steps.Build) record.Value {
	if v.tmpl == nil {
		return v.literal(b)
	}
	p := b.Template(v.tmpl)
	if p == nil {
		return record.Value{}
	}
	// A constant template needs no record; its escapes are resolved here.
	text, _ := p.Append(nil, &expr.Env{}, 0)
	return b.Table.Const(string(text))
}

type field struct {
	slot int                   // -1: name gives it
	at   int                   // an element's place
	name *expr.TemplateProgram // nil: constant
	lit  record.Value
	tmpl *expr.TemplateProgram
}

type step struct {
	fields []field
	vals   []record.Value
	env    expr.Env
	buf    []byte
	over   *steps.Overwriter
	named  *steps.Names
}

func (s *step) Apply(b *record.Batch) {
	s.env.B = b
	s.named.Batch(b)
	for _, i := range b.Sel {
		for k := range s.fields {
			f := &s.fields[k]
			v := f.lit
			if f.tmpl != nil {
				var ok bool
				if s.buf, ok = f.tmpl.Append(s.buf[:0], &s.env, int(i)); ok {
					v = b.PutBytes(s.buf)
				} else {
					v = record.Value{}
				}
			}
			s.vals[k] = v
		}
		for k := range s.fields {
			if f := &s.fields[k]; s.vals[k].Kind() != record.Missing && f.slot >= 0 && f.at == each.Whole {
				s.over.Clear(b, int(i), k)
			}
		}
		for k := range s.fields {
			f := &s.fields[k]
			switch {
			case s.vals[k].Kind() == record.Missing:
			case f.name != nil:
				var ok bool
				if s.buf, ok = f.name.Append(s.buf[:0], &s.env, int(i)); ok && len(s.buf) > 0 {
					s.named.Begin()
					s.named.Open(int(i))
					s.named.Put(int(i), s.named.Find(s.buf), s.vals[k])
				}
			case f.at != each.Whole:
				b.Set(int(i), f.slot, each.Put(b, b.Get(int(i), f.slot), f.at, s.vals[k]))
			default:
				b.Set(int(i), f.slot, s.vals[k])
			}
		}
	}
}
