// Package regex parses text with regular expressions whose named groups become fields. It is grok without a dictionary.
package regex

import (
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/parsers/grok"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("regex", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses a text with a regular expression whose named groups become fields.",
			Details: "The syntax is grok's, Ruby's, without `%{NAME}`: `(?<field>…)` captures, with a dotted path or `[a][b]` for a nested field and `(?<field:int>…)` (also `float`, `boolean`) for a number; " +
				"other groups don't. Of several patterns the first that matches counts. A pattern may match anywhere in the text; `^` and `$` match at lines, `\\A` and `\\z` at the text's ends, `.` matches a newline as well.\n\n" +
				"A name that captures twice gives an array, an empty capture no field. A field that is there already becomes an array of the old and the new value, " +
				"unless it, or a path above it, is listed in `overwrite`. With `target` all fields go below that path.",
			Example: "- regex: '^(?<level>[A-Z]+) +(?<http.status:int>\\d+) (?<rest>.*)'\n- regex: {field: line, patterns: ['id=(?<id>\\d+)', 'name=(?<name>\\w+)'], target: user}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `regex: PATTERN` or the long form.
type Config struct {
	Field     steps.FieldPath   `yaml:"field" doc:"The field to parse; message by default."`
	Pattern   yaml.Node         `yaml:"pattern" doc:"The pattern, where there is one."`
	Patterns  []yaml.Node       `yaml:"patterns" doc:"Patterns; the first that matches counts."`
	Target    steps.FieldPath   `yaml:"target" doc:"The path below which the fields go; the record itself by default."`
	Overwrite []steps.FieldPath `yaml:"overwrite" doc:"Fields whose old value is replaced by what is captured."`

	grok.Parser
}

var _ steps.Config = (*Config)(nil)

func (r *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if s := config.Resolve(n); s.Kind == yaml.ScalarNode && s.Tag != "!!null" {
		r.Add(c, s)
	} else if s.Kind == yaml.SequenceNode {
		for _, p := range s.Content {
			r.Add(c, config.Resolve(p))
		}
	} else {
		c.DecodeStruct(n, r)
		if r.Pattern.Kind != 0 {
			if len(r.Patterns) > 0 {
				c.Errorf(&r.Pattern, "give pattern or patterns, not both")
			}
			c.In("pattern", func() { r.Add(c, &r.Pattern) })
		}
		for i := range r.Patterns {
			c.In(fmt.Sprintf("patterns[%d]", i), func() { r.Add(c, &r.Patterns[i]) })
		}
	}
	if t := r.Target; t.Name != "" {
		if strings.HasPrefix(t.Name, "@") && !record.Under(t.Name, "@timestamp") {
			c.Errorf(t.Node, "target: names with @ are metadata and can't be set")
		}
		r.Prefix = t.Name + "."
	}
	r.Init("regex", c, n, r.Field, r.Overwrite)
}

// JSONSchema describes all forms.
func (Config) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		config.StructSchema(reflect.TypeFor[Config]())}}
}
