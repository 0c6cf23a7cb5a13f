package steps

import (
	"log/slog"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
)

// Decl collects what one component does to the fields. A field is its dotted
// path. Removing or keeping a path covers what lies below it.
type Decl struct {
	Errs *config.Errors
	// Node is the component's YAML node, for errors without a better place.
	Node *yaml.Node
	Path string // the component's path in the file
	// EventTime is the field that %{+…} means here; "" for @timestamp.
	EventTime string

	ReadFields  []string
	ReadNodes   []*yaml.Node // beside ReadFields: where each is named
	ReadBare    []bool       // beside ReadFields: it is a bare word of an expression, which may be meant as a text
	ReadAll     bool         // reads whatever is there (a sink without columns)
	Mentions    []Mention
	WriteFields []Field
	WriteAny    bool     // may write fields known only at run time (json)
	WriteUnder  []string // may write any field below these paths (json with target)
	Joins       []string // written fields that become arrays of the old and the new value where they are there already
	Removes     []string
	KeepOnly    []string // nil: keeps all; else all but these (and what lies below) are removed
	Renames     [][2]string
	Pure        bool // can't fail, and does nothing but write WriteFields (filters may run before it)
}

// Field is a field and its type where known (the zero Type is ANY).
type Field struct {
	Name string
	Type expr.Type
}

// Read declares a field that is read. n is where it is named (nil: the component).
// That no step before can make it is a load error.
func (d *Decl) Read(name string, n *yaml.Node) {
	if n == nil {
		n = d.Node
	}
	d.ReadFields = append(d.ReadFields, name)
	d.ReadNodes = append(d.ReadNodes, n)
	d.ReadBare = append(d.ReadBare, false)
}

// ReadExpr declares what an expression reads.
func (d *Decl) ReadExpr(e *Expr) {
	if e == nil || e.Expr == nil {
		return
	}
	for _, f := range e.Expr.Fields() {
		d.Read(f, e.Node)
		d.ReadBare[len(d.ReadBare)-1] = true
	}
}

// ReadTemplate declares what a template reads.
func (d *Decl) ReadTemplate(t *Template) {
	if t == nil || t.Template == nil {
		return
	}
	for _, f := range t.Template.FieldsFor(d.EventTime) {
		d.Read(f, t.Node)
	}
}

// Mention declares a field that is removed, kept or renamed at n: that nothing can have made it is a load error.
func (d *Decl) Mention(name string, n *yaml.Node) {
	d.Mentions = append(d.Mentions, Mention{name, n})
}

// Mention is a field and where it is named.
type Mention struct {
	Name string
	Node *yaml.Node
}

// Write declares a field that may be written.
func (d *Decl) Write(name string, t expr.Type) {
	d.WriteFields = append(d.WriteFields, Field{name, t})
}

// Errorf reports a load error at n (nil: the component). path is the key's path below the component, may be "".
func (d *Decl) Errorf(n *yaml.Node, path, format string, args ...any) {
	if n == nil {
		n = d.Node
	}
	switch {
	case path == "":
		path = d.Path
	case d.Path != "":
		path = d.Path + "." + path
	}
	d.Errs.Addf(n, path, format, args...)
}

// Build is what a component gets to compile itself. Table is not frozen yet.
type Build struct {
	Decl     // of this component: Errs, Node and Errorf are for Build's errors too
	Table    *record.Table
	Compiler *expr.Compiler
	Pipeline string
	Name     string // the component's name within the pipeline
	Zone     *time.Location
	Now      func() time.Time
	Log      *slog.Logger
	StateDir string
	// LiveFn tells whether anything later reads the field or ships it.
	LiveFn func(name string) bool
	// Ship lists the fields known to the plan that are shipped at this place, metadata
	// excluded, in slot order: for sinks.
	Ship []string
	// OpenEnded: records may have more fields than Ship here.
	OpenEnded bool
	// Unsure tells of a field in Ship that nothing in the plan is known to make: it has a slot since an expression names it,
	// or had before it was removed, and the data may bring it. Nil: none is.
	Unsure func(name string) bool
	// TypeOf is the static type of a field at this place.
	TypeOf func(name string) expr.Type
}

// Slot is the field's slot.
func (b *Build) Slot(name string) int { return b.Table.Slot(name) }

// Key reads the fields that records are grouped by.
func (b *Build) Key(by []FieldPath) expr.Key {
	names := make([]string, len(by))
	for i, f := range by {
		names[i] = f.Name
	}
	return expr.NewKey(b.Compiler, names)
}

// Live tells whether anything later reads the field, or something below it, or ships it.
func (b *Build) Live(name string) bool { return b.LiveFn == nil || b.LiveFn(name) }

// Expr compiles an expression; a failure is reported at its place and gives nil.
func (b *Build) Expr(e *Expr) *expr.Program {
	if e == nil || e.Expr == nil {
		return nil
	}
	p, err := b.Compiler.Compile(e.Expr)
	if err != nil {
		e.Report(b.Errs, err)
		return nil
	}
	return p
}

// Cond compiles a condition, which must be BOOLEAN or of a type that is known at run time only.
func (b *Build) Cond(e *Expr) *expr.Program {
	p := b.Expr(e)
	if p == nil {
		return nil
	}
	switch t := p.Type(); t.Kind {
	case expr.TBoolean, expr.TAny:
		return p
	case expr.TNull:
		b.Errs.Addf(e.Node, e.path, "a condition is never TRUE here: it is always NULL")
	default:
		b.Errs.Addf(e.Node, e.path, "a condition is TRUE or FALSE, this is a %s; compare it, as in `x > 0`, `x = 'text'` or `x IS NOT NULL`", strings.TrimSuffix(t.String(), " NOT NULL"))
	}
	return nil
}

// Template compiles a template; a failure is reported at its place and gives nil.
func (b *Build) Template(t *Template) *expr.TemplateProgram {
	if t == nil || t.Template == nil {
		return nil
	}
	p, err := b.Compiler.CompileTemplate(t.Template)
	if err != nil {
		t.Report(b.Errs, err)
		return nil
	}
	return p
}
