// Package kv parses texts of key-value pairs.
package kv

import (
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("kv", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses pairs such as `user=jane status=200` and makes a field of each.",
			Details: "Values may stand in double or single quotes, or in (), [] or <>; a backslash before a quote within quotes makes it part of the value, one before a blank keeps the blank in an unquoted key or value. " +
				"Only the first separator of a pair splits: `a=b=c` is `a` with the value `b=c`. A key that comes several times gives an array. " +
				"Keys with a dot are paths, as everywhere; a key that is the name of metadata, such as `@path`, becomes `at_path`. A field that is there already is replaced. An array of texts is parsed element by element.\n\n" +
				"`field_split` and `value_split` are the characters that separate, in the syntax of a regular expression's character class; for longer separators there are the patterns, in which a value ends at its line's end too. " +
				"A text without any pair is a failure, unless `default_keys` has something for it.",
			Example: "- kv: message\n- kv: {field: query, field_split: '&?', target: url.args}\n- kv: {value_split: ':', field_split: ',', trim_key: ' ', trim_value: ' ', exclude_keys: [token]}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `kv: FIELD` or the long form.
type Config struct {
	Field             steps.FieldPath        `yaml:"field" doc:"The field to parse; message by default."`
	Target            steps.FieldPath        `yaml:"target" doc:"The path below which the fields go, in place of what was there; the record itself by default."`
	FieldSplit        string                 `yaml:"field_split" doc:"The characters that separate pairs." default:" "`
	FieldSplitPattern string                 `yaml:"field_split_pattern" doc:"A regular expression that separates pairs, in place of field_split."`
	ValueSplit        string                 `yaml:"value_split" doc:"The characters that separate a key from its value." default:"="`
	ValueSplitPattern string                 `yaml:"value_split_pattern" doc:"A regular expression that separates a key from its value, in place of value_split."`
	Whitespace        string                 `yaml:"whitespace" doc:"lenient: blanks around the separator of key and value don't count; strict: they do." enum:"lenient,strict" default:"lenient"`
	SpacedValues      bool                   `yaml:"spaced_values" doc:"A value goes on to the next key, separators of pairs included, as in CEF: rt=Mar 25 2016 src=10.0.0.1."`
	IncludeBrackets   bool                   `yaml:"include_brackets" doc:"Values may stand in (), [] or <>, which are taken off." default:"true"`
	Prefix            steps.Template         `yaml:"prefix" doc:"A text to put before each key; %{field} is allowed."`
	IncludeKeys       []steps.Template       `yaml:"include_keys" doc:"The only keys that are taken, as they stand in the text; %{field} is allowed."`
	ExcludeKeys       []steps.Template       `yaml:"exclude_keys" doc:"Keys that are left out; %{field} is allowed."`
	DefaultKeys       config.Map[defaultKey] `yaml:"default_keys" doc:"Fields, with their values, for keys that the text doesn't have; %{field} is allowed."`
	Duplicates        bool                   `yaml:"allow_duplicate_values" doc:"A key with the same value several times gives an array of all; else each value counts once." default:"true"`
	Empty             bool                   `yaml:"allow_empty_values" doc:"A key with an empty value gives an empty text; else it is left out."`
	TrimKey           string                 `yaml:"trim_key" doc:"Characters to take off both ends of keys."`
	TrimValue         string                 `yaml:"trim_value" doc:"Characters to take off both ends of values."`
	RemoveCharKey     string                 `yaml:"remove_char_key" doc:"Characters to take out of keys."`
	RemoveCharValue   string                 `yaml:"remove_char_value" doc:"Characters to take out of values."`
	TransformKey      string                 `yaml:"transform_key" doc:"What to do with keys' letters." enum:"lowercase,uppercase,capitalize"`
	TransformValue    string                 `yaml:"transform_value" doc:"What to do with values' letters." enum:"lowercase,uppercase,capitalize"`
	Recursive         bool                   `yaml:"recursive" doc:"Parse values too; one that has pairs becomes an object."`
	Checks            bool                   `yaml:"event_checks" doc:"A key that a Logstash event takes no text under fails the record: @timestamp, @metadata, and one with a bracket that is not all of the form [a][b]."`
	MaxFields         int                    `yaml:"max_fields" doc:"The most pairs that one text may have." default:"10000" min:"1"`

	layout layout
}

// defaultKey is a default's text.
type defaultKey struct{ steps.Template }

var foreign = steps.Foreign{"source": "field"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !foreign.Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	l := &k.layout
	l.strict, l.spaced, l.brackets, l.empty, l.recursive, l.max = k.Whitespace == "strict", k.SpacedValues, k.IncludeBrackets, k.Empty, k.Recursive, k.MaxFields
	chars := func(key, s string) charset {
		cs, err := newCharset(s)
		if err != nil {
			c.In(key, func() { c.Errorf(n, "%v", err) })
		}
		return cs
	}
	pattern := func(key, s string) *regexp.Regexp {
		re, err := regexp.Compile("(?m)" + s)
		if err != nil {
			hint := ""
			if strings.Contains(s, "(?=") || strings.Contains(s, "(?!") || strings.Contains(s, "(?<") {
				hint = "; look-around is not needed here: `spaced_values: true` lets a value go on to the next key"
			}
			c.In(key, func() { c.Errorf(n, "%q: %v%s", s, strings.TrimPrefix(err.Error(), "error parsing regexp: "), hint) })
		} else if re.MatchString("") {
			c.In(key, func() { c.Errorf(n, "%q matches the empty text", s) })
		}
		return re
	}
	if k.FieldSplit == "" || k.ValueSplit == "" {
		c.Errorf(n, "field_split and value_split have at least one character")
		return
	}
	l.fs, l.vs = chars("field_split", k.FieldSplit), chars("value_split", k.ValueSplit)
	if l.patterns = k.FieldSplitPattern != "" || k.ValueSplitPattern != ""; l.patterns {
		fs, vs := k.FieldSplitPattern, k.ValueSplitPattern
		if fs == "" {
			fs = "[" + k.FieldSplit + "]"
		}
		if vs == "" {
			vs = "[" + k.ValueSplit + "]"
		}
		if k.SpacedValues {
			c.Errorf(n, "spaced_values goes with field_split and value_split, not with patterns")
		}
		l.fsRE, l.vsRE = pattern("field_split_pattern", fs), pattern("value_split_pattern", vs)
		if l.fsRE != nil {
			l.fsHere, _ = regexp.Compile(`(?m)\A(?:` + fs + ")")
		}
		if !l.strict && l.vsRE != nil {
			l.vsRE, _ = regexp.Compile("(?m) *(?:" + vs + ") *")
		}
	}
	for _, t := range []struct {
		key, chars string
		to         *charset
	}{{"trim_key", k.TrimKey, &l.trimKey}, {"trim_value", k.TrimValue, &l.trimValue}, {"remove_char_key", k.RemoveCharKey, &l.removeKey}, {"remove_char_value", k.RemoveCharValue, &l.removeValue}} {
		if t.chars != "" {
			*t.to = chars(t.key, t.chars)
		}
	}
	l.caseKey, l.caseValue = k.TransformKey, k.TransformValue
	l.classify()
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	for i := range k.IncludeKeys {
		d.ReadTemplate(&k.IncludeKeys[i])
	}
	for i := range k.ExcludeKeys {
		d.ReadTemplate(&k.ExcludeKeys[i])
	}
	for i := range k.DefaultKeys {
		d.ReadTemplate(&k.DefaultKeys[i].Value.Template)
	}
	if k.Prefix.Template != nil {
		d.ReadTemplate(&k.Prefix)
	}
	if k.Target.Name != "" {
		d.Write(k.Target.Name, expr.Type{})
		d.WriteUnder = append(d.WriteUnder, k.Target.Name)
		return
	}
	if names, ok := k.known(); ok {
		for _, n := range names {
			d.Write(n, expr.Type{})
		}
		return
	}
	d.WriteAny = true
}

// known are the fields that can come out, where the options name them all.
func (k *Config) known() (names []string, ok bool) {
	if len(k.IncludeKeys) == 0 || k.Recursive || k.TransformKey != "" || k.TrimKey != "" || k.RemoveCharKey != "" {
		return nil, false
	}
	prefix, ok := constant(&k.Prefix)
	if !ok {
		return nil, false
	}
	for i := range k.IncludeKeys {
		s, ok := constant(&k.IncludeKeys[i])
		if !ok {
			return nil, false
		}
		names = append(names, steps.FieldName([]byte(prefix+s)))
	}
	for _, e := range k.DefaultKeys {
		names = append(names, steps.FieldName([]byte(e.Key)))
	}
	return names, true
}

// constant is a template's text where it has no fields in it.
func constant(t *steps.Template) (string, bool) {
	if t.Template == nil {
		return "", true
	}
	if !t.IsConst() {
		return "", false
	}
	var cp expr.Compiler
	cp.Table = record.NewTable()
	p, err := cp.CompileTemplate(t.Template)
	if err != nil {
		return "", false
	}
	text, ok := p.Append(nil, &expr.Env{}, 0)
	return string(text), ok
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{layout: k.layout, field: b.Slot(k.Field.Name), target: k.Target.Name, dups: k.Duplicates, checks: k.Checks && k.Target.Name == "", table: b.Table, live: b.Live}
	m.liveAll = k.Target.Name == "" || b.Live(k.Target.Name)
	if k.Target.Name != "" && m.liveAll {
		b.Slot(k.Target.Name)
	}
	if names, ok := k.known(); ok && m.target == "" {
		for _, n := range names {
			if b.Live(n) {
				b.Slot(n)
			}
		}
	}
	m.include, m.exclude = filterOf(b, k.IncludeKeys), filterOf(b, k.ExcludeKeys)
	if k.Prefix.Template != nil {
		if text, ok := constant(&k.Prefix); ok {
			m.prefix = text
		} else {
			m.prefixTmpl = b.Template(&k.Prefix)
		}
	}
	for i := range k.DefaultKeys {
		e := &k.DefaultKeys[i]
		m.defaults = append(m.defaults, deflt{key: e.Key, tmpl: b.Template(&e.Value.Template)})
	}
	return func() steps.Step { return newStep(m) }, nil
}

// filter is a set of keys, some of which may depend on the record.
type filter struct {
	on    bool
	fixed []string
	tmpls []*expr.TemplateProgram
}

func filterOf(b *steps.Build, ts []steps.Template) filter {
	f := filter{on: len(ts) > 0}
	for i := range ts {
		if s, ok := constant(&ts[i]); ok {
			f.fixed = append(f.fixed, s)
		} else if p := b.Template(&ts[i]); p != nil {
			f.tmpls = append(f.tmpls, p)
		}
	}
	return f
}

func (f *filter) has(key []byte, s *step, i int) bool {
	if slices.ContainsFunc(f.fixed, func(k string) bool { return k == string(key) }) {
		return true
	}
	for _, t := range f.tmpls {
		var ok bool
		if s.buf, ok = t.Append(s.buf[:0], &s.env, i); ok && string(s.buf) == string(key) {
			return true
		}
	}
	return false
}
