// Package file is the sink that writes files of JSON lines or CSV.
package file

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/limits"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("file", sinks.Spec{
		Doc: config.Doc{
			Summary: "Writes files of JSON lines or CSV.",
			Details: "The path may be a template: `out-%{host}-%{+yyyy-MM-dd}.json`. A record's values can't lead out of the folder that the " +
				"template names: a value with a slash in it, `.` or `..` as a whole name, or an empty name makes the record a dead letter.\n\n" +
				"Rows are written exactly once in effect: the file's length is part of each checkpoint, and a start cuts off what came after the last one. " +
				"When the path is changed in the pipeline's file, the file that was written is left as it is. For that rsetl must be the only one that writes, and the file must not be moved between a checkpoint and a crash; a file that " +
				"was moved or truncated by another program is followed: writing goes on in a new file of that name, or at its new end.\n\n" +
				"CSV has one header line per file. A field is quoted where it must be; NULL is empty and an empty text is `\"\"`.",
			Example: "file: {path: /var/lib/rsetl/out.json, rotate: {size: 100MiB, keep: 5}}",
		},
		New: func() sinks.Config { return &Config{} },
		Guarantee: func(sinks.Config) string {
			return "exactly once in effect, each file by itself; void where another program writes to, moves or truncates the file, or it is removed"
		},
	})
}

// Config is the sink's options.
type Config struct {
	Path    steps.Template         `yaml:"path,required" doc:"The file, created with its folders where missing; may be a template."`
	Format  string                 `yaml:"format" doc:"json: an object a line; csv: with a header line." enum:"json,csv" default:"json"`
	Mode    string                 `yaml:"mode" doc:"What to do with a file that is there when the pipeline starts for the first time: append to it, or overwrite it." enum:"append,overwrite" default:"append"`
	Columns config.Map[steps.Expr] `yaml:"columns" doc:"What to write, by name: expressions. All fields where absent."`
	Rotate  Rotate                 `yaml:"rotate" doc:"When to go on with a new file; the old one gets the time in its name."`
}

// Rotate is when a file ends. It happens right after a checkpoint, so a file may be larger.
type Rotate struct {
	Size  config.Size     `yaml:"size" doc:"At this size; 0: never."`
	Every config.Duration `yaml:"every" doc:"When so much time has passed, at multiples of it in UTC; 0: never."`
	Keep  int             `yaml:"keep" doc:"How many rotated files to keep; 0: all." min:"0"`
}

var _ sinks.Config = (*Config)(nil)

// ConstPath is the path where it is no template, to find two sinks on one file.
func (c *Config) ConstPath() (string, bool) {
	if c.Path.Template == nil || !c.Path.IsConst() {
		return "", false
	}
	return c.constPath(), true
}

// AppendsTo is the path where the file is kept at the pipeline's first start.
func (c *Config) AppendsTo() (string, bool) {
	path, ok := c.ConstPath()
	return path, ok && c.Mode == "append"
}

// constPath undoes %% too.
func (c *Config) constPath() string {
	p := strings.ReplaceAll(c.Path.Source(), "%%", "%")
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return filepath.Clean(p)
}

// Declare tells what is read and checks the path.
func (c *Config) Declare(d *steps.Decl) {
	d.ReadTemplate(&c.Path)
	if len(c.Columns) == 0 {
		d.ReadAll = true
	}
	for i := range c.Columns {
		col := &c.Columns[i]
		d.ReadExpr(&col.Value)
		if record.IsMeta(col.Key) {
			d.Errorf(col.Node, "columns", "%s is a name for metadata; give the column another", col.Key)
		}
	}
	if c.Path.Template == nil {
		return
	}
	if src := c.Path.Source(); src == "" || strings.HasSuffix(src, "/") {
		d.Errorf(c.Path.Node, "path", "%q names a folder, not a file", src)
	} else if !c.Path.IsConst() {
		if why := newLayout(src).wrong(); why != "" {
			d.Errorf(c.Path.Node, "path", "%s", why)
		}
	}
}

// Build makes the sink; nothing is opened yet.
func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	s := &Sink{
		csv: c.Format == "csv", overwrite: c.Mode == "overwrite", rotate: c.Rotate,
		files: map[string]*file{}, committed: map[string]saved{}, overwritten: map[string]bool{},
		maxOpen: min(128, limits.OpenFiles()/4), maxKnown: 4096, fsync: (*os.File).Sync, now: b.Now, log: b.Log,
	}
	if path, ok := c.ConstPath(); ok {
		s.path = path
	} else {
		s.template = b.Template(&c.Path)
		s.layout = newLayout(c.Path.Source())
	}
	var names []string
	switch {
	case len(c.Columns) > 0:
		for i := range c.Columns {
			names = append(names, c.Columns[i].Key)
			s.columns = append(s.columns, b.Expr(&c.Columns[i].Value))
		}
	case s.csv:
		if b.OpenEnded {
			b.Errorf(nil, "", "a CSV file has the same columns from its first line on, and records here may have fields that are known only "+
				"at run time; list what to write in `columns: {name: expression}`")
		}
		names = b.Ship
		for _, n := range names {
			s.slots = append(s.slots, b.Slot(n))
		}
	default:
		s.json = record.NewEncoder(b.Table, append([]string{}, b.Ship...), b.OpenEnded) // never nil: that means all
	}
	if s.csv {
		s.header = appendHeader(nil, names)
		s.names = names
	} else if len(c.Columns) > 0 {
		own := record.NewTable()
		for _, n := range names {
			own.Slot(n)
		}
		s.json = record.NewEncoder(own, nil, false)
	}
	s.scratch.New = func() any { return &scratch{values: make([]record.Value, len(names))} }
	return s, nil
}

// scratch is what one call of Encode works with.
type scratch struct {
	env    expr.Env
	values []record.Value
	path   []byte
	cell   []byte
}
