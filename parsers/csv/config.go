// Package csv parses lines of comma-separated values.
package csv

import (
	"slices"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("csv", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses a line of comma-separated values (RFC 4180) and makes a field of each column.",
			Details: "A value in quotes may have separators and newlines in it, a doubled quote is one; blanks around the quotes don't count. The row ends at the first newline outside quotes. " +
				"An empty value is NULL, one in quotes (`\"\"`) an empty text. Where no columns are listed they are `column1`, `column2` and so on; a row with more columns than are listed fails, unless `autogenerate_column_names` says what to do. A column that is missing at the row's end makes no field.\n\n" +
				"`convert` makes numbers, booleans and times of columns; what can't be converted stays text. A quote within an unquoted value, or one that isn't closed, is a failure, and so is an empty line, unless `skip_empty_rows` says to leave it as it is.",
			Example: "- csv: [time, host, status]\n- csv: {columns: [time, host, status, bytes], separator: ';', convert: {status: integer, bytes: integer}}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `csv: [COLUMN, …]` or the long form.
type Config struct {
	Field        steps.FieldPath    `yaml:"field" doc:"The field to parse; message by default."`
	Target       steps.FieldPath    `yaml:"target" doc:"The path below which the fields go; the record itself by default."`
	Columns      []steps.FieldPath  `yaml:"columns" doc:"The columns' fields, in order."`
	Separator    string             `yaml:"separator" doc:"What separates columns: one character or several." default:","`
	Quote        string             `yaml:"quote_char" doc:"The character for quotes; none switches quoting off." default:"\""`
	Escape       string             `yaml:"escape_char" doc:"A character before a quote, within quotes, that makes the quote part of the value, such as \\; a doubled quote does in any case."`
	SkipHeader   bool               `yaml:"skip_header" doc:"Drop rows whose values are the columns' names; they count as filtered."`
	SkipEmpty    bool               `yaml:"skip_empty_columns" doc:"An empty value makes no field."`
	SkipRows     bool               `yaml:"skip_empty_rows" doc:"An empty text is left as it is, instead of being a failure."`
	Autogenerate *bool              `yaml:"autogenerate_column_names" doc:"What to do with columns beyond those listed: true names them column1, column2 and so on, false leaves them out. By default a row that has some fails where columns are listed; else they are named."`
	Autodetect   bool               `yaml:"autodetect_column_names" doc:"The first row of each split (file) names its columns, in place of columns; it is dropped and counts as filtered. The rows are then parsed one after the other, on one core."`
	Convert      config.Map[target] `yaml:"convert" doc:"Types of columns: integer, float, boolean, date (2024-01-02), date_time (2024-01-02T03:04:05Z)."`
	MaxColumns   int                `yaml:"max_columns" doc:"The most columns that a row may have." default:"10000" min:"1"`

	quote, escape int // bytes, -1: none
}

// target is a type to convert to.
type target string

var types = []string{"integer", "float", "boolean", "date", "date_time"}

func (t *target) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a type")
	if ok && !slices.Contains(types, s) {
		c.Errorf(n, "%q is no type to convert to%s", s, config.Meant(s, types))
	}
	*t = target(s)
}

// JSONSchema lists the types.
func (target) JSONSchema() map[string]any { return map[string]any{"type": "string", "enum": types} }

var foreign = steps.Foreign{"source": "field", "autogenerate_column_name": "autogenerate_column_names"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	switch r := config.Resolve(n); {
	case r.Kind == yaml.SequenceNode:
		config.Defaults(k)
		for _, e := range r.Content {
			var f steps.FieldPath
			f.UnmarshalConfig(c, e)
			k.Columns = append(k.Columns, f)
		}
	case r.Kind == yaml.ScalarNode && r.Tag != "!!null":
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	case !foreign.Decode(c, n, k):
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	if k.Autodetect && len(k.Columns) > 0 {
		c.Errorf(n, "columns and autodetect_column_names: want one of them")
	}
	if k.Separator == "" || !utf8.ValidString(k.Separator) {
		c.Errorf(n, "separator: want at least one character")
		return
	}
	one := func(key, s string) int {
		switch {
		case s == "" || s == "none":
			return -1
		case len(s) > 1 || s[0] >= utf8.RuneSelf:
			c.In(key, func() { c.Errorf(n, "want one ASCII character, got %q", s) })
		}
		return int(s[0])
	}
	k.quote, k.escape = one("quote_char", k.Quote), one("escape_char", k.Escape)
	if k.quote >= 0 && k.Separator[0] == byte(k.quote) {
		c.Errorf(n, "separator: it begins with the character for quotes")
	}
	for i, f := range k.Columns {
		if k.Target.Name == "" && record.IsMeta(f.Name) {
			c.Errorf(f.Node, "columns[%d]: names with @ are metadata and can't be set", i)
		}
	}
}

// JSONSchema describes all forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, config.Schema(long{})}}
}

func (k *Config) path(column string) string {
	if k.Target.Name != "" {
		return k.Target.Name + "." + column
	}
	return column
}

// Stateful tells that the step must see the rows in order, see pipeline.Stage.
func (k *Config) Stateful() bool { return k.Autodetect }

// auto tells whether columns without a name get one.
func (k *Config) auto() bool {
	if k.Autogenerate != nil {
		return *k.Autogenerate
	}
	return len(k.Columns) == 0
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	for _, f := range k.Columns {
		d.Write(k.path(f.Name), expr.Type{})
	}
	switch {
	case k.Target.Name != "":
		d.Write(k.Target.Name, expr.Type{})
		d.WriteUnder = append(d.WriteUnder, k.Target.Name)
	case k.auto() || k.Autodetect:
		d.WriteAny = true
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{field: b.Slot(k.Field.Name), sep: []byte(k.Separator), quote: k.quote, escape: k.escape, skipHeader: k.SkipHeader,
		skipEmpty: k.SkipEmpty, skipRows: k.SkipRows, auto: k.auto(), exact: k.Autogenerate == nil && len(k.Columns) > 0, max: k.MaxColumns, target: k.Target.Name, zone: b.Zone, convert: map[string]target{}}
	for _, e := range k.Convert {
		p, err := expr.ParsePath(e.Key)
		if err != nil {
			b.Errorf(e.Node, "convert", "%v", err)
			continue
		}
		m.convert[p] = e.Value
	}
	var names []string
	for _, f := range k.Columns {
		path := k.path(f.Name)
		c := column{name: f.Name, slot: -1, to: m.convert[f.Name]}
		if b.Live(path) {
			c.slot = b.Slot(path)
		}
		c.over = len(names)
		names = append(names, path)
		m.columns = append(m.columns, c)
	}
	if k.Target.Name != "" && b.Live(k.Target.Name) {
		b.Slot(k.Target.Name)
	}
	return func() steps.Step {
		s := &step{maker: m, over: steps.NewOverwriter(b.Table, names)}
		s.names = steps.NewNames(b.Table, b.Live, func(key []byte) string { return k.path(string(key)) })
		if m.target != "" {
			s.below = steps.NewBelow(b.Table, m.target)
		}
		s.each = s.one
		if k.Autodetect {
			s.head = &headed{step: s, name: b.Name, heads: map[string][]string{}, changed: map[string]bool{}}
			return s.head
		}
		return s
	}, nil
}
