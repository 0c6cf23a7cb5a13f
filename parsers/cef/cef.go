// Package cef parses messages in the Common Event Format of security devices.
package cef

import (
	"bytes"
	"fmt"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("cef", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses CEF, `CEF:0|Vendor|Product|1.0|100|Name|5|src=10.0.0.1 msg=all of it`.",
			Details: "The header gives `cefVersion`, `deviceVendor`, `deviceProduct`, `deviceVersion`, `deviceEventClassId`, `name` and `severity`; what stands before it, often syslog's, `syslog`. " +
				"Of the extension each key is a field, under its full name where the format has one: `src` is `sourceAddress`; `full_names: false` leaves keys as they are. Values are texts; blanks within them are part of them, a backslash escapes `=`, `|` and itself, `\\n` is a newline. An empty value makes no field.\n\n" +
				"With `labels: true` a field that a device has named itself goes by that name: `cs1=x cs1Label=Rule Name` is `Rule Name`. A text without a whole header is a failure.",
			Example: "- cef: message\n- cef: {field: message, target: cef, labels: true}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `cef: FIELD` or the long form.
type Config struct {
	Field     steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target    steps.FieldPath `yaml:"target" doc:"The path below which the fields go, in place of what was there; the record itself by default."`
	FullNames bool            `yaml:"full_names" doc:"Give the extension's keys their full names." default:"true"`
	Labels    bool            `yaml:"labels" doc:"Give custom fields, such as cs1, the names that their labels have."`
	MaxFields int             `yaml:"max_fields" doc:"The most keys that one text may have." default:"10000" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !(steps.Foreign{"source": "field", "raw_data_field": "nothing: the field that is parsed stays", "delimiter": "nothing: one record is one message", "reverse_mapping": "nothing"}).Decode(c, n, k) {
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
		s := &step{Config: k, field: field, found: steps.NewFound(b, k.Target.Name, k.MaxFields)}
		s.each = s.one
		return s
	}, nil
}

type pair struct{ k0, k1, v0, v1 int }

type step struct {
	*Config
	field int
	found *steps.Found
	each  func(int) record.Outcome
	b     *record.Batch
	pairs []pair
	key   []byte
	named map[string]record.Value // the names that labels give, by the key
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.found.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "cef")
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

var header = [...]string{"cefVersion", "deviceVendor", "deviceProduct", "deviceVersion", "deviceEventClassId", "name", "severity"}

const tooMany = "cef: more than max_fields keys"

// parse reads a message. The text tells what is wrong.
func (s *step) parse(in []byte, src record.Value) string {
	at := bytes.Index(in, []byte("CEF:"))
	if at < 0 {
		return fmt.Sprintf("cef: no CEF: in %.80q", in)
	}
	if before := bytes.TrimRight(in[:at], " "); len(before) > 0 && !s.found.Add([]byte("syslog"), src.Sub(0, len(before))) {
		return tooMany
	}
	at += len("CEF:")
	for k := range header {
		from, escaped := at, false
		for at < len(in) && in[at] != '|' {
			if in[at] == '\\' && at+1 < len(in) {
				escaped = true
				at++
			}
			at++
		}
		if at >= len(in) && k < len(header)-1 {
			return fmt.Sprintf("cef: the header ends within %s; seven parts with | behind them are expected", header[k])
		}
		end := min(at, len(in))
		s.key = append(s.key[:0], header[k]...)
		if end > from && !s.found.Add(s.key, s.text(in, src, from, end, escaped)) {
			return tooMany
		}
		at++
	}
	if at >= len(in) {
		return ""
	}
	s.extension(in, at)
	if s.Labels {
		s.label(in)
	}
	for _, p := range s.pairs {
		if p.v0 == p.v1 {
			continue
		}
		s.name(in[p.k0:p.k1])
		escaped := bytes.IndexByte(in[p.v0:p.v1], '\\') >= 0
		if !s.found.Add(s.key, s.text(in, src, p.v0, p.v1, escaped)) {
			return tooMany
		}
	}
	return ""
}

// extension cuts `key=value key=value`: a value ends before the last blank in front of the next key.
func (s *step) extension(in []byte, at int) {
	s.pairs = s.pairs[:0]
	open := false
	for i := at; i < len(in) && len(s.pairs) <= s.MaxFields; i++ {
		switch in[i] {
		case '\\':
			i++
			continue
		case '=':
		default:
			continue
		}
		k := i
		for k > at && keyByte(in[k-1]) {
			k--
		}
		if k == i || k > at && in[k-1] != ' ' {
			continue // no key: the = is part of the value
		}
		if open {
			s.close(in, k)
		}
		s.pairs = append(s.pairs, pair{k0: k, k1: i, v0: i + 1})
		at, open = i+1, true
	}
	if open {
		s.close(in, len(in))
	}
}

// close ends the last value before in[end], blanks left out.
func (s *step) close(in []byte, end int) {
	p := &s.pairs[len(s.pairs)-1]
	for end > p.v0 && (in[end-1] == ' ' || in[end-1] == '\n' || in[end-1] == '\r') {
		end--
	}
	p.v1 = end
}

func keyByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c-'0' <= 9 || c == '_' || c == '.' || c == '-' || c == '[' || c == ']' || c >= 0x80
}

// label notes the names that cs1Label and the like give, and takes the labels out.
func (s *step) label(in []byte) {
	clear(s.named)
	keep := s.pairs[:0]
	for _, p := range s.pairs {
		key := in[p.k0:p.k1]
		base, ok := bytes.CutSuffix(key, []byte("Label"))
		if !ok || len(base) == 0 || p.v0 == p.v1 {
			keep = append(keep, p)
			continue
		}
		if s.named == nil {
			s.named = map[string]record.Value{}
		}
		s.named[string(base)] = record.MakeRef(record.String, p.v0, p.v1-p.v0)
	}
	s.pairs = keep
	if len(s.named) == 0 {
		return
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		if v, ok := s.named[string(in[p.k0:p.k1])]; ok {
			p.k0, p.k1 = v.Off(), v.Off()+v.Len()
		}
	}
}

// name puts a key's field into s.key.
func (s *step) name(key []byte) {
	if s.FullNames {
		if full, ok := fullNames[string(key)]; ok {
			s.key = append(s.key[:0], full...)
			return
		}
	}
	s.key = append(s.key[:0], key...)
}

// text is a part of the message, escapes resolved.
func (s *step) text(in []byte, src record.Value, from, to int, escaped bool) record.Value {
	if !escaped {
		return src.Sub(from, to)
	}
	off := len(s.b.Buf)
	for i := from; i < to; i++ {
		c := in[i]
		if c == '\\' && i+1 < to {
			switch in[i+1] {
			case 'n':
				c = '\n'
				i++
			case 'r':
				c = '\r'
				i++
			case '\\', '=', '|':
				c = in[i+1]
				i++
			}
		}
		s.b.Buf = append(s.b.Buf, c)
	}
	return s.b.Since(off)
}
