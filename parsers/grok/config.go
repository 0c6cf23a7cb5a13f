package grok

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("grok", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses a text with named patterns and makes fields of what they capture.",
			Details: "A pattern is a regular expression with references: `%{NAME}`, `%{NAME:field}`, `%{NAME:field:int}` (also `float`, `boolean`), `%{NAME:[a][b]}` for `a.b`, " +
				"`%{NAME=regex}` for a definition on the spot; a named group `(?<field>…)` captures too, other groups don't. Of several patterns the first that matches counts. " +
				"A pattern may match anywhere in the text; `^` and `$` pin it. `.` matches a newline as well.\n\n" +
				"A name that captures twice gives an array, an empty capture no field. A field that is there already becomes an array of the old and the new value, " +
				"unless it is listed in `overwrite`. The set `ecs` names fields as the Elastic Common Schema does, `legacy` as Logstash did before. " +
				"`rsetl grok` tries a pattern and shows where it stops.",
			Example: "- grok: '%{COMBINEDAPACHELOG}'\n- grok:\n    field: line\n    patterns: ['%{DAY:day} %{REQ:request.id}', '%{GREEDYDATA:rest}']\n    definitions: {REQ: '[0-9a-f]{8}'}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `grok: PATTERN` or the long form.
type Config struct {
	Field       steps.FieldPath    `yaml:"field" doc:"The field to parse; message by default."`
	Set         string             `yaml:"set" doc:"The patterns' set: ecs or legacy." enum:"ecs,legacy" default:"ecs"`
	Patterns    []yaml.Node        `yaml:"patterns,required" doc:"Patterns; the first that matches counts."`
	Definitions config.Map[string] `yaml:"definitions" doc:"Patterns of your own, by name."`
	Overwrite   []steps.FieldPath  `yaml:"overwrite" doc:"Fields whose old value is replaced by what is captured."`

	sources  []source
	dict     Dictionary
	compiled []*Pattern
}

type source struct {
	text string
	node *yaml.Node
	path string
}

var _ steps.Config = (*Config)(nil)

func (g *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" || r.Kind == yaml.SequenceNode {
		config.Defaults(g)
		if r.Kind == yaml.ScalarNode {
			g.addSource(c, r)
		} else {
			for _, p := range r.Content {
				g.addSource(c, config.Resolve(p))
			}
		}
	} else {
		c.DecodeStruct(n, g)
		for i := range g.Patterns {
			c.In(fmt.Sprintf("patterns[%d]", i), func() { g.addSource(c, &g.Patterns[i]) })
		}
	}
	if g.Field.Name == "" {
		g.Field.Name, g.Field.Node = "message", n
	}
	set, _ := Set(g.Set)
	g.dict = maps.Clone(set)
	for _, d := range g.Definitions {
		if g.dict == nil {
			break
		}
		g.dict[d.Key] = d.Value
	}
}

func (g *Config) addSource(c *config.Context, n *yaml.Node) {
	if s, ok := c.Scalar(n, "a pattern"); ok {
		g.sources = append(g.sources, source{s, n, c.Path()})
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (g *Config) report(errs *config.Errors, s source, err error) {
	var e *Error
	if errors.As(err, &e) && e.Off >= 0 {
		errs.AddAt(s.node, e.Off, s.path, e.Msg)
		return
	}
	errs.Addf(s.node, s.path, "%v", err)
}

func (g *Config) Declare(d *steps.Decl) {
	d.Read(g.Field.Name, g.Field.Node)
	if g.dict == nil {
		return
	}
	for _, s := range g.sources {
		x, err := Expand(s.text, g.dict, nil)
		if err != nil {
			g.report(d.Errs, s, err)
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
			d.Write(c.Field, t)
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

func (g *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{field: b.Slot(g.Field.Name)}
	slots := map[int]bool{}
	for _, s := range g.sources {
		p, err := Compile(s.text, g.dict, b.Live)
		if err != nil {
			g.report(b.Errs, s, err)
			continue
		}
		g.compiled = append(g.compiled, p)
		if p.Regex.Engine != "regexp" && b.Errs != nil {
			b.Errs.Warnf(s.node, s.path, "this pattern runs on a backtracking engine, with %s a text at most: %s", "50ms", p.Regex.Why)
		}
		c := pattern{Pattern: p}
		for i, cp := range p.Captures {
			slot := b.Slot(cp.Field)
			c.slots = append(c.slots, slot)
			repeated := slices.ContainsFunc(p.Captures[:i], func(o Capture) bool { return o.Field == cp.Field })
			c.again = append(c.again, repeated)
			slots[slot] = true
		}
		m.patterns = append(m.patterns, c)
	}
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		name := b.Table.Name(slot)
		m.fields = append(m.fields, slot)
		m.over = append(m.over, slices.ContainsFunc(g.Overwrite, func(f steps.FieldPath) bool { return f.Name == name }))
	}
	m.reason = "grok: no pattern matches: " + g.names()
	return func() steps.Step { return newStep(m) }, nil
}

// names are the patterns, for failures.
func (g *Config) names() string {
	s := ""
	for i, p := range g.sources {
		if i > 0 {
			s += " | "
		}
		s += p.text
		if len(s) > 200 {
			return s[:200] + "…"
		}
	}
	return s
}

// Explain tells each pattern's engine and why.
func (g *Config) Explain() []string {
	var out []string
	for _, p := range g.compiled {
		out = append(out, fmt.Sprintf("pattern %s", p.Source), fmt.Sprintf("  engine: %s, since %s; %d captures", p.Regex.Engine, p.Regex.Why, len(p.Captures)))
	}
	return out
}
