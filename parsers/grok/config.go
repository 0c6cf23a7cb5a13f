package grok

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
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

	Parser
}

var _ steps.Config = (*Config)(nil)

func (g *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" || r.Kind == yaml.SequenceNode {
		config.Defaults(g)
		if r.Kind == yaml.ScalarNode {
			g.Add(c, r)
		} else {
			for _, p := range r.Content {
				g.Add(c, config.Resolve(p))
			}
		}
	} else {
		foreign.Decode(c, n, g)
		for i := range g.Patterns {
			c.In(fmt.Sprintf("patterns[%d]", i), func() { g.Add(c, &g.Patterns[i]) })
		}
	}
	g.Init("grok", c, n, g.Field, g.Overwrite)
	set, _ := Set(g.Set)
	if g.Dict = maps.Clone(set); g.Dict == nil {
		return
	}
	maps.Copy(g.Dict, c.Patterns)
	for _, d := range g.Definitions {
		if !nameForm.MatchString(d.Key) {
			c.Errorf(d.Node, "definitions: %q is no pattern's name; use letters, digits and _", d.Key)
		}
		g.Dict[d.Key] = d.Value
	}
	for _, d := range g.Definitions {
		if _, err := Compile(d.Value, g.Dict, nil); err != nil {
			c.In("definitions."+d.Key, func() { c.Errorf(d.Node, "%v", err) })
		}
	}
}

var foreign = steps.Foreign{"match": "`field: FIELD` and `patterns: [PATTERN, …]`", "pattern_definitions": "definitions", "patterns_dir": "`definitions`, or `patterns` in a shared file",
	"named_captures_only": "nothing: only what has a name captures", "break_on_match": "nothing: the first pattern that matches counts", "keep_empty_captures": "nothing: an empty capture makes no field"}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		config.StructSchema(reflect.TypeFor[Config]())}}
}
