package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
)

// dialect is one connection to one file.
type dialect struct {
	path  string
	c     *sqlite3.Conn
	t     *sql.Table
	env   *sinks.Env
	ddone bool // if_exists was acted on in this process

	cols  []string       // columns of the table, in its order
	index map[string]int // by lower-case name
	stmts map[string]*sqlite3.Stmt
	pos   positionStmts
}

type positionStmts struct{ get, add, move *sqlite3.Stmt }

// maxStmts bounds the prepared statements: rows with other fields need others.
const maxStmts = 64

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (d *dialect) Open(ctx context.Context, t *sql.Table, env *sinks.Env) (err error) {
	d.Close()
	d.t, d.env = t, env
	if err := os.MkdirAll(filepath.Dir(d.path), 0o750); err != nil {
		return fmt.Errorf("make the folder of %s: %w", d.path, err)
	}
	// SQLite would make the file readable for all.
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	f.Close()
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: d.path}).EscapedPath()}
	if d.c, err = sqlite3.OpenContext(ctx, u.String()); err != nil {
		return fmt.Errorf("open %s: %w", d.path, err)
	}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := d.c.BusyTimeout(5 * time.Second); err != nil {
		return err
	}
	if err := d.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF`); err != nil {
		return err
	}
	if err := d.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if d.c != nil && !d.c.GetAutocommit() {
			d.exec(`ROLLBACK`)
		}
	}()
	if err := d.prepareTable(); err != nil {
		return err
	}
	if err := d.exec(`COMMIT`); err != nil {
		return err
	}
	d.stmts = map[string]*sqlite3.Stmt{}
	for _, s := range []struct {
		to  **sqlite3.Stmt
		sql string
	}{
		{&d.pos.get, `SELECT epoch, "offset", idx, recent FROM rsetl_positions WHERE pipeline = ? AND sink = ? AND split = ?`},
		{&d.pos.add, `INSERT INTO rsetl_positions (pipeline, sink, split, epoch, "offset", idx, recent, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&d.pos.move, `UPDATE rsetl_positions SET epoch = ?, "offset" = ?, idx = ?, recent = ? WHERE pipeline = ? AND sink = ? AND split = ? AND epoch = ? AND "offset" = ? AND idx = ?`},
	} {
		st, _, err := d.c.Prepare(s.sql)
		if err != nil {
			return d.wrap(err)
		}
		*s.to = st
	}
	return nil
}

func (d *dialect) exec(sql string) error { return d.wrap(d.c.Exec(sql)) }

func (d *dialect) wrap(err error) error {
	if err == nil {
		return nil
	}
	switch {
	case errors.Is(err, sqlite3.NOTADB):
		return fmt.Errorf("%s: not a SQLite database; give another path: %w", d.path, err)
	case errors.Is(err, sqlite3.BUSY):
		return fmt.Errorf("%s: another process keeps it locked: %w", d.path, err)
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

// prepareTable makes the position table and the sink's, inside a transaction.
func (d *dialect) prepareTable() error {
	o := d.t.Options
	if strings.EqualFold(o.Table, "rsetl_positions") || strings.HasPrefix(strings.ToLower(o.Table), "sqlite_") {
		return fmt.Errorf("%s: the table name %q is reserved", d.path, o.Table)
	}
	err := d.exec(`CREATE TABLE IF NOT EXISTS rsetl_positions (
		pipeline TEXT NOT NULL, sink TEXT NOT NULL, split TEXT NOT NULL, epoch INTEGER NOT NULL,
		"offset" INTEGER NOT NULL, idx INTEGER NOT NULL, recent TEXT NOT NULL, path TEXT,
		PRIMARY KEY (pipeline, sink, split)) WITHOUT ROWID`)
	if err != nil {
		return err
	}
	if err := d.columns(); err != nil {
		return err
	}
	if d.env.Fresh && !d.ddone {
		if len(d.cols) > 0 && o.IfExists == "fail" {
			return sinks.Permanent(fmt.Errorf("%s: the table %s is there already (if_exists: fail)", d.path, o.Table))
		}
		where := ` AND split LIKE 'outbox:%'` // their numbers begin anew with the state
		if len(d.cols) > 0 && o.IfExists == "replace" {
			if err := d.exec(`DROP TABLE ` + quote(o.Table)); err != nil {
				return err
			}
			d.cols, d.index = nil, map[string]int{}
			where = ""
		}
		st, _, err := d.c.Prepare(`DELETE FROM rsetl_positions WHERE pipeline = ? AND sink = ?` + where)
		if err != nil {
			return d.wrap(err)
		}
		st.BindText(1, d.env.Pipeline)
		st.BindText(2, d.env.Name)
		if err := errors.Join(st.Exec(), st.Close()); err != nil {
			return d.wrap(err)
		}
		d.ddone = true
	}
	if len(d.cols) == 0 {
		if !o.CreateTable {
			return fmt.Errorf("%s: there is no table %s; make it, or set `create_table: true`", d.path, o.Table)
		}
		return d.create()
	}
	for _, c := range d.t.Columns {
		if _, ok := d.index[strings.ToLower(c.Name)]; ok {
			continue
		}
		if !o.CreateTable {
			return fmt.Errorf("%s: the table %s has no column %s (it has %s); add it, map it with `columns`, or set `create_table: true`",
				d.path, o.Table, c.Name, strings.Join(d.cols, ", "))
		}
		if err := d.addColumn(c.Name, columnType(c.Type)); err != nil {
			return err
		}
	}
	return nil
}

// columns reads the table's columns; none where there is no table.
func (d *dialect) columns() error {
	d.cols, d.index = nil, map[string]int{}
	st, _, err := d.c.Prepare(`SELECT name FROM pragma_table_info(?)`)
	if err != nil {
		return d.wrap(err)
	}
	defer st.Close()
	st.BindText(1, d.t.Options.Table)
	for st.Step() {
		d.know(st.ColumnText(0))
	}
	return d.wrap(st.Err())
}

func (d *dialect) know(name string) {
	d.index[strings.ToLower(name)] = len(d.cols)
	d.cols = append(d.cols, name)
}

// create makes the table of the plan's columns; where it knows none yet, the first row brings them.
func (d *dialect) create() error {
	o := d.t.Options
	var defs []string
	have := map[string]bool{}
	for _, c := range d.t.Columns {
		defs = append(defs, strings.TrimSpace(quote(c.Name)+" "+columnType(c.Type)))
		have[strings.ToLower(c.Name)] = true
	}
	for _, k := range o.Key {
		if !have[strings.ToLower(k)] {
			defs = append(defs, quote(k))
		}
	}
	if len(defs) == 0 {
		return nil
	}
	if len(o.Key) > 0 {
		var q []string
		for _, k := range o.Key {
			q = append(q, quote(k))
		}
		defs = append(defs, "UNIQUE ("+strings.Join(q, ", ")+")")
	}
	if err := d.exec(`CREATE TABLE ` + quote(o.Table) + ` (` + strings.Join(defs, ", ") + `)`); err != nil {
		return err
	}
	return d.columns()
}

func (d *dialect) addColumn(name, typ string) error {
	if len(d.cols) == 0 {
		if err := d.exec(`CREATE TABLE ` + quote(d.t.Options.Table) + ` (` + strings.TrimSpace(quote(name)+" "+typ) + `)`); err != nil {
			return err
		}
	} else if err := d.exec(`ALTER TABLE ` + quote(d.t.Options.Table) + ` ADD COLUMN ` + strings.TrimSpace(quote(name)+" "+typ)); err != nil {
		return err
	}
	d.know(name)
	for k, st := range d.stmts {
		st.Close()
		delete(d.stmts, k)
	}
	return nil
}

// columnType is the declared type of a column. Without one, SQLite keeps each value as it is: right
// for fields whose type is known at run time only.
func columnType(t expr.Type) string {
	switch t.Kind {
	case expr.TBoolean:
		return "BOOLEAN"
	case expr.TTinyInt, expr.TSmallInt, expr.TInt, expr.TBigInt:
		return "INTEGER"
	case expr.TFloat, expr.TDouble:
		return "REAL"
	case expr.TAny, expr.TNull:
		return ""
	case expr.TBinary, expr.TVarbinary:
		return "BLOB"
	}
	return "TEXT"
}

func (d *dialect) Close() error {
	if d.c == nil {
		return nil
	}
	for _, st := range d.stmts {
		st.Close()
	}
	for _, st := range []*sqlite3.Stmt{d.pos.get, d.pos.add, d.pos.move} {
		if st != nil {
			st.Close()
		}
	}
	d.stmts, d.pos = nil, positionStmts{}
	err := d.c.Close()
	d.c = nil
	return err
}

var _ sql.Dialect = (*dialect)(nil)
var _ = record.Missing
