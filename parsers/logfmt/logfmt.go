// Package logfmt parses lines of logfmt.
package logfmt

import (
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("logfmt", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses logfmt, `level=info msg=\"it works\" debug`, and makes a field of each key.",
			Details: "A value in double quotes has JSON's escapes; one without ends at the next blank. A key without `=` is TRUE, one with nothing behind it an empty text. Of a key that comes twice the last value counts. " +
				"Values are texts: `convert` makes numbers of them. A text without any `=` is a failure, and so is a quote that isn't closed.",
			Example: "- logfmt: message\n- logfmt: {field: line, target: app}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `logfmt: FIELD` or the long form.
type Config struct {
	Field     steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target    steps.FieldPath `yaml:"target" doc:"The path below which the fields go, in place of what was there; the record itself by default."`
	MaxFields int             `yaml:"max_fields" doc:"The most keys that one text may have." default:"10000" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !(steps.Foreign{"source": "field"}).Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	steps.DeclareTarget(d, k.Target.Name)
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field := b.Slot(k.Field.Name)
	return func() steps.Step {
		s := &step{field: field, found: steps.NewFound(b, k.Target.Name, k.MaxFields)}
		s.each = s.one
		return s
	}, nil
}

type step struct {
	field int
	found *steps.Found
	each  func(int) record.Outcome
	b     *record.Batch
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.found.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "logfmt")
	if msg == "" {
		s.found.Begin()
		msg = s.parse(s.b.Bytes(src), src)
	}
	if msg != "" {
		s.b.Fail(i, msg)
		return record.Failed
	}
	s.found.Put(i)
	return record.Keep
}

// parse reads the pairs. The message tells what is wrong.
func (s *step) parse(in []byte, src record.Value) string {
	pairs := 0
	for at := 0; at < len(in); {
		if in[at] <= ' ' {
			at++
			continue
		}
		from := at
		for at < len(in) && in[at] > ' ' && in[at] != '=' && in[at] != '"' {
			at++
		}
		if at == from {
			return fmt.Sprintf("logfmt: a key is expected at byte %d, there is %q", at+1, in[at:min(len(in), at+12)])
		}
		key := in[from:at]
		v := record.MakeBool(true)
		if at < len(in) && in[at] == '"' {
			return fmt.Sprintf("logfmt: a quote within the key at byte %d", from+1)
		}
		if at < len(in) && in[at] == '=' {
			pairs++
			at++
			if at < len(in) && in[at] == '"' {
				end, escaped := closing(in, at+1)
				if end < 0 {
					return fmt.Sprintf("logfmt: the quote at byte %d is not closed", at+1)
				}
				if v = src.Sub(at+1, end); escaped {
					off := len(s.b.Buf)
					s.b.Buf = unescape(s.b.Buf, in[at+1:end])
					v = s.b.Since(off)
				}
				at = end + 1
				if at < len(in) && in[at] > ' ' {
					return fmt.Sprintf("logfmt: something follows the closing quote at byte %d", at+1)
				}
			} else {
				from := at
				for at < len(in) && in[at] > ' ' {
					at++
				}
				v = src.Sub(from, at)
			}
		}
		if !s.found.Add(key, v) {
			return "logfmt: more than max_fields keys"
		}
	}
	if pairs == 0 {
		return fmt.Sprintf("logfmt: no key=value in %.80q", in)
	}
	return ""
}

// closing finds the quote that ends a value.
func closing(in []byte, at int) (end int, escaped bool) {
	for ; at < len(in); at++ {
		switch in[at] {
		case '"':
			return at, escaped
		case '\\':
			escaped = true
			at++
		}
	}
	return -1, false
}
