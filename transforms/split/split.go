// Package split cuts texts into arrays.
package split

import (
	"bytes"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("split", steps.Spec{
		Doc: config.Doc{
			Summary: "Cuts texts at a separator into arrays. Several records of one are made by `unnest`.",
			Details: "Empty pieces at the end are left out. A single blank as the separator stands for any run of blanks, and those at the ends don't count; the empty separator cuts between all characters. " +
				"Values that are no texts, and fields that are missing, stay as they are.",
			Example: "- split: {tags: ',', path: /}",
		},
		New: func() steps.Config { return &Config{} },
	})
}

// Config is `split: {FIELD: SEPARATOR, …}`.
type Config struct {
	Fields config.Map[string]
	names  []string
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode {
		c.Errorf(n, "want a mapping of fields and separators, as in `split: {tags: ','}`; several records are made by `unnest: %s`", r.Value)
		return
	}
	k.Fields.UnmarshalConfig(c, n)
	for _, f := range k.Fields {
		if f.Key == "terminator" || f.Key == "target" && len(k.Fields) > 1 {
			c.Errorf(f.Node, "several records are made by `unnest: {field, terminator, target}`; `split` makes arrays")
			return
		}
	}
	k.names = steps.Paths(c, k.Fields)
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[string]{}.JSONSchema() }

func (k *Config) Declare(d *steps.Decl) {
	for i, n := range k.names {
		d.Read(n, k.Fields[i].Node)
		d.Write(n, expr.Type{})
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	slots := each.Fields(b, k.names)
	var seps [][]byte
	for _, f := range k.Fields {
		seps = append(seps, []byte(f.Value))
	}
	return func() steps.Step {
		var items []record.Value
		return &each.Step{Slots: slots, F: func(b *record.Batch, _, k int, v record.Value) (record.Value, string) {
			if v.Kind() != record.String {
				return v, ""
			}
			items = Cut(items[:0], b.Bytes(v), v, seps[k])
			return b.PutItems(record.Array, items), ""
		}}
	}, nil
}

// Cut appends the pieces of a text, parts of v.
func Cut(dst []record.Value, p []byte, v record.Value, sep []byte) []record.Value {
	switch {
	case len(sep) == 0:
		for at := 0; at < len(p); {
			_, n := utf8.DecodeRune(p[at:])
			dst = append(dst, v.Sub(at, at+n))
			at += n
		}
		return dst
	case len(sep) == 1 && sep[0] == ' ':
		for at := 0; at < len(p); {
			for at < len(p) && blank(p[at]) {
				at++
			}
			from := at
			for at < len(p) && !blank(p[at]) {
				at++
			}
			if at > from {
				dst = append(dst, v.Sub(from, at))
			}
		}
		return dst
	}
	from := len(dst)
	for at := 0; ; {
		n := bytes.Index(p[at:], sep)
		if n < 0 {
			dst = append(dst, v.Sub(at, len(p)))
			break
		}
		dst = append(dst, v.Sub(at, at+n))
		at += n + len(sep)
	}
	for len(dst) > from && dst[len(dst)-1].Len() == 0 {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func blank(c byte) bool { return c == ' ' || c-'\t' < 5 }
