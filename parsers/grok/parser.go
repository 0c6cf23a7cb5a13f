package grok

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// Parser is what the steps grok and regex have in common: patterns that are tried on a field, captures that become fields.
type Parser struct {
	Dict   Dictionary // nil: a pattern is a plain expression, `%{` is itself
	Prefix string     // of all fields

	kind      string
	field     steps.FieldPath
	overwrite []steps.FieldPath
	sources   []source
	compiled  []*Pattern
}

type source struct {
	text string
	node *yaml.Node
	path string
}

// Add takes a pattern's node.
func (p *Parser) Add(c *config.Context, n *yaml.Node) {
	if s, ok := c.Scalar(n, "a pattern"); ok {
		p.sources = append(p.sources, source{s, n, c.Path()})
	}
}

// Init is called when the options are read; n is the step's node.
func (p *Parser) Init(kind string, c *config.Context, n *yaml.Node, field steps.FieldPath, overwrite []steps.FieldPath) {
	if field.Name == "" {
		field.Name, field.Node = "message", n
	}
	p.kind, p.field, p.overwrite = kind, field, overwrite
	if len(p.sources) == 0 && !c.Errs.Failed() {
		c.Errorf(n, "want at least one pattern")
	}
}

func report(errs *config.Errors, s source, err error) {
	var e *Error
	if errors.As(err, &e) && e.Off >= 0 {
		errs.AddAt(s.node, e.Off, s.path, e.Msg)
		return
	}
	errs.Addf(s.node, s.path, "%v", err)
}

// Declare is steps.Config's.
func (p *Parser) Declare(d *steps.Decl) {
	d.Read(p.field.Name, p.field.Node)
	for _, s := range p.sources {
		x, err := Expand(s.text, p.Dict, nil)
		if err != nil {
			report(d.Errs, s, err)
			continue
		}
		times := map[string]int{}
		for _, c := range x.Captures {
			times[c.Field]++
		}
		for _, c := range x.Captures {
			t := expr.Type{}
			if times[c.Field] == 1 {
				t = castType(c.Cast)
			}
			d.Write(p.Prefix+c.Field, t)
			if !slices.ContainsFunc(p.overwrite, func(o steps.FieldPath) bool { return record.Under(p.Prefix+c.Field, o.Name) }) {
				d.Joins = append(d.Joins, p.Prefix+c.Field)
			}
		}
	}
}

func castType(cast string) expr.Type {
	switch cast {
	case "int":
		return expr.Type{Kind: expr.TBigInt}
	case "float":
		return expr.Type{Kind: expr.TDouble}
	case "boolean":
		return expr.Type{Kind: expr.TBoolean}
	}
	return expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
}

// Build is steps.Config's.
func (p *Parser) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{kind: p.kind, field: b.Slot(p.field.Name)}
	slots := map[int]bool{}
	p.compiled = nil
	for _, s := range p.sources {
		c, err := Compile(s.text, p.Dict, func(f string) bool { return b.Live(p.Prefix + f) })
		if err != nil {
			report(b.Errs, s, err)
			continue
		}
		p.compiled = append(p.compiled, c)
		if !c.Regex.Linear() && b.Errs != nil {
			b.Errs.Warnf(s.node, s.path, "this pattern runs on a backtracking engine, at most %s a text: %s", engine.Timeout, c.Regex.Why)
		}
		k := pattern{Pattern: c}
		for i, cp := range c.Captures {
			slot := b.Slot(p.Prefix + cp.Field)
			k.slots = append(k.slots, slot)
			k.again = append(k.again, slices.ContainsFunc(c.Captures[:i], func(o Capture) bool { return o.Field == cp.Field }))
			slots[slot] = true
		}
		m.patterns = append(m.patterns, k)
	}
	var list []*engine.Regex
	for i := range m.patterns {
		list = append(list, m.patterns[i].Regex)
	}
	m.set = engine.NewSet(list)
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		name := b.Table.Name(slot)
		m.fields = append(m.fields, slot)
		m.over = append(m.over, slices.ContainsFunc(p.overwrite, func(f steps.FieldPath) bool { return record.Under(name, f.Name) }))
	}
	m.reason = p.kind + ": no pattern matches: " + p.names()
	return func() steps.Step { return newStep(m) }, nil
}

// names are the patterns, for failures.
func (p *Parser) names() string {
	s := ""
	for i, src := range p.sources {
		if i > 0 {
			s += " | "
		}
		s += src.text
	}
	return short(s)
}

// Explain tells each pattern's engine and why.
func (p *Parser) Explain() []string {
	var out []string
	for _, c := range p.compiled {
		out = append(out, "pattern "+c.Source, fmt.Sprintf("  engine: %s; %d captures", c.Regex.Describe(), len(c.Captures)))
	}
	return out
}
