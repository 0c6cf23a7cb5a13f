// Package mysql writes rows to a table of MySQL or MariaDB, exactly once in effect.
package mysql

import (
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("mysql", sinks.Spec{
		Doc: config.Doc{
			Summary: "Writes rows to a table of MySQL or MariaDB.",
			Details: "Rows go in multi-row statements; rows and the position of their split commit in one transaction (table `rsetl_positions`), so that a " +
				"restart or a lost connection writes none twice. The session has strict SQL mode and the time zone UTC, whatever the server's defaults are. " +
				"A row that the table refuses (too long, a wrong type, a constraint), or that the server would change to make it fit, goes to the " +
				"dead letters with the server's message; the others go in.\n\n" +
				"`create_table` makes columns of the types that the plan knows: BIGINT, DOUBLE, BOOLEAN, DECIMAL, DATE, DATETIME(6), LONGTEXT, LONGBLOB, " +
				"JSON for arrays and objects, and VARCHAR for texts in the key. A field whose type is known at run time only becomes a column with its first value that isn't NULL, " +
				"of that value's type. Texts compare by their bytes. Times are stored in UTC with microseconds.\n\n" +
				"For upsert, replace and ignore the table needs a unique index on exactly the columns of `key`, and no other that rows could meet. Rows whose key holds NULL are found by it too; " +
				"each of those takes a statement of its own. A number with a fraction is refused by an integer column, not rounded.\n\n" +
				"The table must be of a transactional engine (InnoDB). The DSN is that of go-sql-driver: `user:password@tcp(host:3306)/database?tls=true`; keep the password out of the file with `${file:PATH}` or `${NAME}`.",
			Example: "- mysql: {dsn: '${file:/run/secrets/dsn}', table: web_errors, create_table: true, mode: upsert, key: [window_start, host, status]}",
		},
		New: func() sinks.Config { return &Config{} },
		Guarantee: func(c sinks.Config) string {
			return c.(*Config).Guarantee() + ", the table is changed to an engine without transactions, or a trigger writes to such a table"
		},
		Batch: &sinks.BatchConfig{Size: 5000, Bytes: 4 << 20},
	})
}

// Config is `mysql:`.
type Config struct {
	DSN config.Text `yaml:"dsn,required" doc:"Where the database is: user:password@tcp(host:3306)/database."`
	sql.Options

	parsed *driver.Config
}

var _ sinks.Config = (*Config)(nil)

func (c *Config) Declare(d *steps.Decl) {
	c.Options.Declare(d)
	if c.DSN.Unknown {
		return
	}
	p, why := mysqlconn.Check(c.DSN.Value)
	if why != "" {
		d.Errorf(c.DSN.Node, "dsn", "%s", why)
	}
	if p == nil {
		return
	}
	if p.Passwd != "" {
		d.Errs.Hide(p.Passwd)
	}
	c.parsed = p
}

func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	cols := c.Compile(b)
	if c.parsed == nil { // nothing is ever run then
		c.parsed = driver.NewConfig()
	}
	return sql.New(&c.Options, cols, b.OpenEnded, &dialect{cfg: c.parsed}), nil
}

// AppendsTo is the table, where it is kept at the pipeline's first start.
func (c *Config) AppendsTo() (string, bool) {
	if c.parsed == nil {
		return "", false
	}
	return fmt.Sprintf("%s/%s.%s", c.parsed.Addr, c.parsed.DBName, c.Table), c.Mode == "insert" && c.IfExists == "append"
}
