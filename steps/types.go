package steps

import (
	"errors"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
)

// Expr is an expression in a YAML file: the type of a config field that holds one.
type Expr struct {
	*expr.Expr
	Node *yaml.Node
	path string
}

// UnmarshalConfig parses the expression. Scalars that aren't strings (`v: 1`) are literals.
func (e *Expr) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	e.Node, e.path = n, c.Path()
	src, ok := c.Scalar(n, "an expression")
	if !ok {
		return
	}
	if n.Tag == "!!null" {
		src = "NULL"
	}
	x, err := expr.Parse(src)
	if err != nil {
		e.Report(c.Errs, err)
		return
	}
	if x, err = c.Functions.Expand(x); err != nil {
		e.Report(c.Errs, err)
		return
	}
	e.Expr = x
	// Unknown functions and the like are told here, whatever else is wrong with the file. Types are not known yet.
	if _, err := (&expr.Compiler{Table: record.NewTable()}).Compile(x); err != nil {
		e.Report(c.Errs, err)
	}
}

// Report adds an *expr.Error at its place in the file.
func (e *Expr) Report(errs *config.Errors, err error) { Report(errs, e.Node, e.path, err) }

// JSONSchema is how an expression appears in the schema.
func (Expr) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean", "null"}, "description": "SQL expression"}
}

// Template is a text with `%{field}` in it: the type of a config field that holds one.
type Template struct {
	*expr.Template
	Node *yaml.Node
	path string
}

// UnmarshalConfig parses the template.
func (t *Template) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	t.Node, t.path = n, c.Path()
	src, ok := c.Scalar(n, "a text")
	if !ok {
		return
	}
	x, err := expr.ParseTemplate(src)
	if err != nil {
		t.Report(c.Errs, err)
		return
	}
	t.Template = x
}

// Report adds an *expr.Error at its place in the file.
func (t *Template) Report(errs *config.Errors, err error) { Report(errs, t.Node, t.path, err) }

// JSONSchema is how a template appears in the schema.
func (Template) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "description": "text with %{field}"}
}

// Report adds an error about the text of node n; an *expr.Error at its place in it.
func Report(errs *config.Errors, n *yaml.Node, path string, err error) {
	var xe *expr.Error
	if !errors.As(err, &xe) {
		errs.Addf(n, path, "%v", err)
		return
	}
	msg := xe.Msg
	if xe.Hint != "" {
		msg += "; " + xe.Hint
	}
	errs.AddAt(n, xe.Off, path, msg)
}

// FieldPath is a field's dotted path in a YAML file.
type FieldPath struct {
	Name string
	Node *yaml.Node
}

// UnmarshalConfig checks the path.
func (f *FieldPath) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	f.Node = n
	s, ok := c.Scalar(n, "a field")
	if !ok {
		return
	}
	p, err := expr.ParsePath(s)
	if err != nil {
		Report(c.Errs, n, c.Path(), err)
		return
	}
	f.Name = p
}

// JSONSchema is how a field appears in the schema.
func (FieldPath) JSONSchema() map[string]any {
	return map[string]any{"type": "string", "description": "field, a dotted path"}
}

// Paths checks the keys of a mapping as fields' paths.
func Paths[T any](c *config.Context, m config.Map[T]) []string {
	var out []string
	for _, e := range m {
		p, err := expr.ParsePath(e.Key)
		if err != nil {
			Report(c.Errs, e.Node, c.Path(), err)
		} else if strings.HasPrefix(p, "@") && !record.Under(p, "@timestamp") {
			c.Errorf(e.Node, "%s: names with @ are metadata and can't be set; only @timestamp can", p)
		}
		out = append(out, p)
	}
	return out
}
