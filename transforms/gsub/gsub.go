// Package gsub replaces what a regular expression matches.
package gsub

import (
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("gsub", steps.Spec{
		Doc: config.Doc{
			Summary: "Replaces every match of a regular expression in texts.",
			Details: "A flat list of field, expression and replacement, three by three, applied in order. The syntax is grok's, Ruby's: `^` and `$` match at lines, `.` doesn't match a newline. In a replacement `\\1` is what the first group matched, `\\0` all of it, " +
				"`\\k<name>` a named group, `\\\\` a backslash. `%{field}` stands for a field, in expressions and replacements. In an array each text is changed; other values, and fields that are missing, stay as they are.",
			Example: "- gsub: [path, '/', '_', message, '[?&]token=[^&]*', '']",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `gsub: [FIELD, EXPRESSION, REPLACEMENT, …]`.
type Config struct {
	rules []rule
}

type rule struct {
	field   steps.FieldPath
	src     string
	pattern *steps.Template // where it has %{field}
	repl    string
	replT   *steps.Template
	re      *regex
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	r := config.Resolve(n)
	if r.Kind != yaml.SequenceNode {
		c.Errorf(n, "want a list of field, expression and replacement, as in `gsub: [path, '/', '_']`")
		return
	}
	items := r.Content
	if len(items) > 0 && config.Resolve(items[0]).Kind == yaml.SequenceNode { // [[field, expression, replacement], …]
		items = nil
		for _, l := range r.Content {
			if l = config.Resolve(l); l.Kind != yaml.SequenceNode || len(l.Content) != 3 {
				c.Errorf(l, "want a list of field, expression and replacement")
				return
			}
			items = append(items, l.Content...)
		}
	}
	if len(items) == 0 || len(items)%3 != 0 {
		c.Errorf(n, "want field, expression and replacement, three by three; there are %d values", len(items))
		return
	}
	for i := 0; i < len(items); i += 3 {
		var u rule
		u.field.UnmarshalConfig(c, items[i])
		var ok1, ok2 bool
		if u.src, ok1 = c.Scalar(items[i+1], "an expression"); !ok1 {
			continue
		}
		if u.repl, ok2 = c.Scalar(items[i+2], "a replacement"); !ok2 {
			continue
		}
		if hasField(u.src) {
			u.pattern = &steps.Template{}
			u.pattern.UnmarshalConfig(c, items[i+1])
		} else {
			re, err := compile(u.src)
			if err != nil {
				c.Errorf(items[i+1], "the expression %q: %v", u.src, err)
				continue
			}
			u.re = re
		}
		if hasField(u.repl) {
			u.replT = &steps.Template{}
			u.replT.UnmarshalConfig(c, items[i+2])
		}
		k.rules = append(k.rules, u)
	}
}

// hasField tells whether a text has %{field} in it.
func hasField(s string) bool {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && s[i+1] == '{' {
			return true
		}
	}
	return false
}

// JSONSchema describes the list.
func (Config) JSONSchema() map[string]any {
	return map[string]any{"type": "array", "description": "field, expression, replacement, three by three"}
}

func (k *Config) Declare(d *steps.Decl) {
	for i := range k.rules {
		u := &k.rules[i]
		d.Read(u.field.Name, u.field.Node)
		d.Write(u.field.Name, expr.Type{})
		d.ReadTemplate(u.pattern)
		d.ReadTemplate(u.replT)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	var names []string
	for _, u := range k.rules {
		names = append(names, u.field.Name)
	}
	slots := each.Fields(b, names)
	type prog struct{ pattern, repl *expr.TemplateProgram }
	progs := make([]prog, len(k.rules))
	for i := range k.rules {
		u := &k.rules[i]
		progs[i] = prog{b.Template(u.pattern), b.Template(u.replT)}
	}
	return func() steps.Step {
		var env expr.Env
		var buf []byte
		subs := make([]*substituter, len(k.rules))
		for i := range k.rules {
			subs[i] = &substituter{re: k.rules[i].re, parts: parseReplacement([]byte(k.rules[i].repl))}
		}
		return &each.Step{Slots: slots, Elements: true, F: func(b *record.Batch, i, f int, v record.Value) (record.Value, string) {
			if v.Kind() != record.String {
				return v, ""
			}
			env.B = b
			s := subs[f]
			if p := progs[f].pattern; p != nil {
				var ok bool
				if buf, ok = p.Append(buf[:0], &env, i); !ok {
					return v, ""
				}
				if s.src != string(buf) || s.re == nil {
					re, err := compile(string(buf))
					if err != nil {
						return v, "gsub: the expression " + string(buf[:min(len(buf), 80)]) + ": " + err.Error()
					}
					s.src, s.re = string(buf), re
				}
			}
			parts := s.parts
			if p := progs[f].repl; p != nil {
				var ok bool
				if buf, ok = p.Append(buf[:0], &env, i); !ok {
					return v, ""
				}
				parts = parseReplacement(append([]byte(nil), buf...))
			}
			off := len(b.Buf)
			out, changed, err := s.re.replace(b.Buf, b.Bytes(v), parts)
			if err != nil {
				return v, "gsub: " + err.Error()
			}
			if !changed {
				return v, ""
			}
			b.Buf = out
			return b.Since(off), ""
		}}
	}, nil
}

type substituter struct {
	re    *regex
	src   string // what re was compiled from, where it depends on the record
	parts []part
}
