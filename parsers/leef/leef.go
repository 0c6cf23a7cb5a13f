// Package leef parses messages in the Log Event Extended Format, QRadar's.
package leef

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("leef", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses LEEF, versions 1.0 and 2.0.",
			Details: "The header gives `leefVersion`, `deviceVendor`, `deviceProduct`, `deviceVersion` and `deviceEventClassId`; what stands before it, often syslog's, `syslog`. Each attribute is a field under its key, its value a text. " +
				"Attributes are separated by tabs, or by what version 2.0 names behind the event's id: a character, or its code as in `x5E` or `0x5E`. An empty value makes no field. A text without a whole header is a failure.",
			Example: "- leef: message\n- leef: {field: message, target: leef}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `leef: FIELD` or the long form.
type Config struct {
	Field     steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target    steps.FieldPath `yaml:"target" doc:"The path below which the fields go, in place of what was there; the record itself by default."`
	Delimiter string          `yaml:"delimiter" doc:"What separates attributes where the message doesn't say; a tab by default."`
	MaxFields int             `yaml:"max_fields" doc:"The most attributes that one text may have." default:"10000" min:"1"`
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
	if k.Delimiter == "" {
		k.Delimiter = "\t"
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
		s := &step{Config: k, field: field, found: steps.NewFound(b, k.Target.Name, k.MaxFields)}
		s.each = s.one
		return s
	}, nil
}

type step struct {
	*Config
	field int
	found *steps.Found
	each  func(int) record.Outcome
	b     *record.Batch
	key   []byte
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.found.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "leef")
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

var header = [...]string{"leefVersion", "deviceVendor", "deviceProduct", "deviceVersion", "deviceEventClassId"}

const tooMany = "leef: more than max_fields attributes"

// parse reads a message. The text tells what is wrong.
func (s *step) parse(in []byte, src record.Value) string {
	at := bytes.Index(in, []byte("LEEF:"))
	if at < 0 {
		return fmt.Sprintf("leef: no LEEF: in %.80q", in)
	}
	if before := bytes.TrimRight(in[:at], " "); len(before) > 0 && !s.found.Add([]byte("syslog"), src.Sub(0, len(before))) {
		return tooMany
	}
	at += len("LEEF:")
	version := at
	for k := range header {
		n := bytes.IndexByte(in[at:], '|')
		if n < 0 {
			return fmt.Sprintf("leef: the header ends within %s; five parts with | behind them are expected", header[k])
		}
		s.key = append(s.key[:0], header[k]...)
		if n > 0 && !s.found.Add(s.key, src.Sub(at, at+n)) {
			return tooMany
		}
		at += n + 1
	}
	delim := s.Delimiter
	if in[version] == '2' {
		n := bytes.IndexByte(in[at:], '|')
		if n >= 0 && n <= 6 {
			if d, ok := delimiter(string(in[at : at+n])); ok {
				at += n + 1
				if d != "" {
					delim = d
				}
			}
		}
	}
	rest := in[at:]
	for len(rest) > 0 {
		n := bytes.Index(rest, []byte(delim))
		part := rest
		if n >= 0 {
			part, rest = rest[:n], rest[n+len(delim):]
		} else {
			rest = nil
		}
		from := len(in) - len(rest) - len(part)
		if n >= 0 {
			from -= len(delim)
		}
		eq := bytes.IndexByte(part, '=')
		if eq < 1 {
			continue // no attribute
		}
		end := len(part)
		for rest == nil && end > eq+1 && (part[end-1] == '\n' || part[end-1] == '\r') {
			end--
		}
		if key := bytes.TrimSpace(part[:eq]); len(key) > 0 && end > eq+1 && !s.found.Add(key, src.Sub(from+eq+1, from+end)) {
			return tooMany
		}
	}
	return ""
}

// delimiter reads what version 2.0 has for one: a character, or its code.
func delimiter(text string) (d string, ok bool) {
	switch {
	case text == "":
		return "", true
	case len(text) == 1:
		return text, true
	}
	hex, ok := strings.CutPrefix(strings.TrimPrefix(text, "0"), "x")
	if !ok {
		return "", false
	}
	n, err := strconv.ParseUint(hex, 16, 16)
	if err != nil || n == 0 {
		return "", false
	}
	return string(rune(n)), true
}
