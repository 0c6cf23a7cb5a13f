// Package lookup adds to a record what a table has for one of its fields.
package lookup

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/letters"
	"github.com/rsetl/rsetl/internal/reload"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("lookup", steps.Spec{
		Doc: config.Doc{
			Summary: "Adds to a record what a file, CSV or JSON, has for the value of a field.",
			Details: "A CSV file has the columns' names in its first line; the column `key`, by default the first, has the values that are looked for, and the other columns become fields, all texts. A JSON file is an object whose members are the values that are looked for, or an array of objects that have a member `key`; " +
				"members of what is found become fields, of the types that they have. Fields go below `target`, into the record itself by default; single values, as in `{\"web1\": \"Berlin\"}` or a `dictionary` in the step itself, become `target`. With `fields` only these are taken.\n\n" +
				"A value that the table doesn't have adds nothing, or what `default` says; with `missing: fail` it is a failure. Of a key that comes twice the last row counts. " +
				"The file is looked at every `refresh`; when it has changed, all of the new one is used from the next batch on, and one that can't be read leaves the old. While there never was one that can be read, records fail.",
			Example: "- lookup: {field: host, file: hosts.csv, key: name, fields: [team, room], target: owner}\n- lookup: {field: status, target: status_text, dictionary: {'200': fine, '404': not there}, default: other}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `lookup: {field, file, …}`.
type Config struct {
	Field      steps.FieldPath    `yaml:"field,required" doc:"The field whose value is looked for."`
	File       string             `yaml:"file" doc:"The path of the table; its name ends in .csv or .json."`
	Dictionary config.Map[string] `yaml:"dictionary" doc:"The table itself, in place of a file: texts by values."`
	Key        string             `yaml:"key" doc:"The column, or member, with the values that are looked for; a CSV file's first column by default."`
	Separator  string             `yaml:"separator" doc:"What separates a CSV file's columns." default:","`
	Fields     []string           `yaml:"fields" doc:"The columns, or members, that are taken; all others by default."`
	Target     steps.FieldPath    `yaml:"target" doc:"The path below which the fields go, or the field that gets a single value."`
	Default    *string            `yaml:"default" doc:"What target gets where the table has nothing."`
	Missing    string             `yaml:"missing" doc:"What becomes of a record for which the table has nothing." enum:"keep,fail" default:"keep"`
	IgnoreCase bool               `yaml:"ignore_case" doc:"Letters' case doesn't count when the value is looked for."`
	MaxSize    config.Size        `yaml:"max_size" doc:"The largest file that is read." default:"64MiB"`
	Refresh    config.Duration    `yaml:"refresh" doc:"How often to look whether the file has changed." default:"10s"`
}

var foreign = steps.Foreign{"source": "field", "dictionary_path": "file", "destination": "target", "fallback": "default", "refresh_interval": "refresh", "exact": "nothing: values are the same or not", "regex": "a step `set` with CASE", "override": "nothing: target is replaced",
	"refresh_behaviour": "nothing: the new file replaces the old", "iterate_on": "nothing", "yaml_load_aliases": "nothing"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if !foreign.Decode(c, n, k) {
		return
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	switch {
	case (k.File == "") == (len(k.Dictionary) == 0):
		c.Errorf(n, "want one of file and dictionary")
	case k.File == "" && k.Target.Name == "":
		c.Errorf(n, "key \"target\" is missing: the field that gets the dictionary's text")
	case k.Default != nil && k.Target.Name == "":
		c.Errorf(n, "default: key \"target\" is missing")
	case k.File != "" && formatOf(k.File) == "":
		c.Errorf(n, "file: want a name that ends in .csv, .tsv or .json, got %q", k.File)
	case utf8.RuneCountInString(k.Separator) != 1:
		c.Errorf(n, "separator: want one character")
	case k.Refresh.D() < time.Second:
		c.Errorf(n, "refresh: want at least 1s")
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	if k.Target.Name != "" {
		d.Write(k.Target.Name, expr.Type{})
	}
	switch {
	case k.File == "":
	case len(k.Fields) > 0:
		for _, f := range k.Fields {
			d.Write(k.path(f), expr.Type{})
		}
	default:
		steps.DeclareTarget(d, k.Target.Name)
	}
}

func (k *Config) path(column string) string {
	if k.Target.Name == "" {
		return steps.FieldName([]byte(column))
	}
	return k.Target.Name + "." + column
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field, target := b.Slot(k.Field.Name), -1
	if k.Target.Name != "" && b.Live(k.Target.Name) {
		target = b.Slot(k.Target.Name)
	}
	for _, f := range k.Fields {
		if b.Live(k.path(f)) {
			b.Slot(k.path(f))
		}
	}
	get := func() (*table, error) { return nil, nil }
	if k.File == "" {
		t := k.dictionary()
		get = func() (*table, error) { return t, nil }
	} else {
		if _, err := os.Stat(k.File); err != nil {
			b.Errs.Warnf(b.Node, b.Path+".file", "%v; records fail until it is there", err)
		}
		get = reload.New(k.File, k.Refresh.D(), b.Log, k.load).Get
	}
	return func() steps.Step {
		s := &step{Config: k, field: field, target: target, get: get, found: steps.NewFound(b, k.Target.Name, 1<<30)}
		if k.Target.Name != "" {
			s.below = steps.NewBelow(b.Table, k.Target.Name)
		}
		s.each = s.one
		return s
	}, nil
}

type step struct {
	*Config
	field  int
	target int // -1: nothing reads it
	get    func() (*table, error)
	found  *steps.Found
	below  *steps.Below // nil without a target
	each   func(int) record.Outcome
	b      *record.Batch
	table  *table
	msg    string
	buf    []byte
	fold   []byte
	vals   []record.Value
}

func (s *step) Apply(b *record.Batch) {
	t, err := s.get()
	s.b, s.table, s.msg = b, t, ""
	if err != nil {
		s.msg = "lookup: " + err.Error()
	}
	s.found.Batch(b)
	b.Each(s.each)
	s.b, s.table = nil, nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	v := b.Get(i, s.field)
	if s.msg != "" {
		b.Fail(i, s.msg)
		return record.Failed
	}
	var row found
	ok := false
	if !v.IsNull() {
		s.buf = b.AppendPlain(s.buf[:0], v)
		key := s.buf
		if s.IgnoreCase {
			s.fold = letters.Append(s.fold[:0], key, "lowercase")
			key = s.fold
		}
		row, ok = s.table.rows.get(key)
	}
	if !ok {
		return s.missing(i)
	}
	vs, err := record.DecodeValues(b, row.values, row.n, s.vals[:0])
	if err != nil {
		panic(fmt.Sprintf("lookup: a row of its own can't be read: %v", err))
	}
	s.vals = vs
	if row.single {
		s.put(i, vs[0])
		return record.Keep
	}
	s.found.Begin()
	for _, v := range vs {
		c, w := binary.Uvarint(row.columns)
		row.columns = row.columns[w:]
		s.found.AddObject(s.table.columns[c], v)
	}
	s.found.Put(i)
	return record.Keep
}

func (s *step) missing(i int) record.Outcome {
	switch {
	case s.Default != nil:
		s.put(i, s.b.PutString(*s.Default))
	case s.Missing == "fail":
		s.b.Fail(i, fmt.Sprintf("lookup: the table has nothing for %.80q", s.b.AppendPlain(nil, s.b.Get(i, s.field))))
		return record.Failed
	}
	return record.Keep
}

// put gives the target a single value.
func (s *step) put(i int, v record.Value) {
	s.below.Clear(s.b, i)
	if s.target >= 0 {
		s.b.Set(i, s.target, v)
	}
}
