package each

import (
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// Name is how a step names a field: `a.b`, an array's element, `a[2]`, or a template, `field_%{kind}`.
type Name struct {
	Path string          // of the field, or of the array; "" for a template
	At   int             // the element's place; Whole: the field itself
	Tmpl *steps.Template // nil: the name is constant
	Node *yaml.Node
}

// UnmarshalConfig reads the name.
func (f *Name) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if s, ok := c.Scalar(n, "a field"); ok {
		*f = ParseName(c, s, n)
	}
}

// JSONSchema is how a name appears in the schema.
func (Name) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "description": "field, a dotted path; an array's element as in a[2]; or a text with %{field}"}
}

// ParseName reads a name that stands at n.
func ParseName(c *config.Context, s string, n *yaml.Node) Name {
	f := Name{At: Whole, Node: n}
	if strings.Contains(s, "%{") {
		t, err := expr.ParseTemplate(s)
		if err != nil {
			steps.Report(c.Errs, n, c.Path(), err)
			return f
		}
		f.Tmpl = &steps.Template{Template: t, Node: n}
		return f
	}
	s, f.At = Element(s)
	p, err := expr.ParsePath(s)
	if err != nil {
		steps.Report(c.Errs, n, c.Path(), err)
	}
	f.Path = p
	return f
}

// Take takes element at out of an array: the element, and the array that is left. ok is false where there is none.
func Take(b *record.Batch, v record.Value, at int) (e, rest record.Value, ok bool) {
	at, ok = place(v, at)
	if !ok {
		return e, rest, false
	}
	items := b.Items(v)
	left := make([]record.Value, 0, len(items)-1)
	left = append(append(left, items[:at]...), items[at+1:]...)
	return items[at], b.PutItems(record.Array, left), true
}

// Put gives an array another element in place of the one at that place; out is v where there is none.
func Put(b *record.Batch, v record.Value, at int, e record.Value) (out record.Value) {
	at, ok := place(v, at)
	if !ok {
		return v
	}
	out = b.PutItems(record.Array, b.Items(v))
	b.Items(out)[at] = e
	return out
}

func place(v record.Value, at int) (int, bool) {
	if v.Kind() != record.Array {
		return 0, false
	}
	if at < 0 {
		at += v.Len()
	}
	return at, at >= 0 && at < v.Len()
}
