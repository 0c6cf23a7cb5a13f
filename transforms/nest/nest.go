// Package nest puts fields below a path.
package nest

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/rename"
)

func init() {
	steps.MustRegister("nest", steps.Spec{
		Doc: config.Doc{
			Summary: "Puts fields, with all that lies below them, below a path.",
			Details: "`nest: {client: [ip, port]}` makes `client.ip` and `client.port` of `ip` and `port`; of a dotted name the last part stays. A field that is missing is left out. The reverse is `flatten`, or `rename`.",
			Example: "- nest: {client: [ip, port], http: [method, status]}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `nest: {PATH: [FIELD, …], …}`: a rename of each.
type Config struct{ rename.Config }

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	var paths config.Map[[]steps.FieldPath]
	before := c.Errs.Count()
	paths.UnmarshalConfig(c, n)
	renames := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
	for _, e := range paths {
		into, err := expr.ParsePath(e.Key)
		if err != nil {
			c.Errorf(e.Node, "%v", err)
			continue
		}
		for _, f := range e.Value {
			from, to := *f.Node, *f.Node
			from.Kind, from.Tag = yaml.ScalarNode, "!!str"
			to.Kind, to.Tag = yaml.ScalarNode, "!!str"
			to.Value = quoted(into + "." + last(f.Name))
			renames.Content = append(renames.Content, &from, &to)
		}
	}
	if c.Errs.Count() == before {
		k.Config.UnmarshalConfig(c, renames)
	}
}

// last is a path's last part.
func last(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[i+1:]
		}
	}
	return path
}

// quoted writes a path so that any of its names is one.
func quoted(path string) string {
	if _, err := expr.ParsePath(path); err == nil {
		return path
	}
	out := "`"
	for _, r := range path {
		if r == '`' {
			out += "`"
		}
		out += string(r)
	}
	return out + "`"
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[[]steps.FieldPath]{}.JSONSchema() }
