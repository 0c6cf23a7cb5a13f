// Package sqlite writes rows to a table of a SQLite file, exactly once in effect.
package sqlite

import (
	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("sqlite", sinks.Spec{
		Doc: config.Doc{
			Summary: "Writes rows to a table of a SQLite file.",
			Details: "Times are stored as RFC 3339 text in UTC, decimals as text, arrays and objects as JSON, booleans as 0 and 1. " +
				"Rows and the position of their split commit in one transaction (table `rsetl_positions`), so that a restart writes none twice. " +
				"A row that the table refuses (a constraint, a type) goes to the dead letters with SQLite's reason.",
			Example: "- sqlite: {path: errors.db, table: errors, create_table: true}",
		},
		New: func() sinks.Config { return &Config{} },
		Guarantee: func(c sinks.Config) string {
			return c.(*Config).Guarantee()
		},
		Batch: &sinks.BatchConfig{Size: 5000, Bytes: 4 << 20},
	})
}

// Config is `sqlite:`.
type Config struct {
	Path string `yaml:"path,required" doc:"The database file; made where it is missing, its folder too."`
	sql.Options
}

var _ sinks.Config = (*Config)(nil)

func (c *Config) Declare(d *steps.Decl) {
	if c.Path == "" || c.Path == ":memory:" {
		d.Errorf(nil, "path", "want the path of a file; a database in memory would be gone at the end")
	}
	c.Options.Declare(d)
}

func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	cols := c.Compile(b)
	return sql.New(&c.Options, cols, b.OpenEnded, &dialect{path: c.Path}), nil
}

// AppendsTo is the database where the table is kept at the pipeline's first start.
func (c *Config) AppendsTo() (string, bool) {
	return c.Path, c.Mode == "insert" && c.IfExists == "append"
}
