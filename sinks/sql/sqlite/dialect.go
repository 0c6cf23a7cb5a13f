package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
)

// dialect is one connection to one file.
type dialect struct {
	path  string
	c     *sqlite3.Conn
	file  fs.FileInfo // of the file that is open
	t     *sql.Table
	env   *sinks.Env
	acted bool // if_exists was acted on in this process

	// schema is the file's schema version that cols, index and shapes are of; -1: they are of a
	// transaction that was rolled back.
	schema int64
	cols   []string       // columns of the table, in its order
	index  map[string]int // by name, see fold
	plain  *shape         // of rows without fields of their own
	shapes map[string]*shape
	last   *shape // the shape of the row before
	pos    positionStmts
	tx     tx
}

type positionStmts struct{ get, add, move, schema *sqlite3.Stmt }

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// fold makes names equal that SQLite takes for the same: it knows the case of ASCII letters only.
func fold(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// busy is how long a statement waits for another process' lock.
const busy = 5 * time.Second

func (d *dialect) Open(ctx context.Context, t *sql.Table, env *sinks.Env) (err error) {
	d.Close()
	d.t, d.env = t, env
	if err := d.makeFile(); err != nil {
		return err
	}
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: d.path}).EscapedPath()}
	if d.c, err = sqlite3.OpenContext(ctx, u.String()); err != nil {
		return d.wrap(err)
	}
	defer func() {
		if err == nil {
			d.c.SetInterrupt(context.Background()) // ctx is Open's alone
			return
		}
		d.Close()
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}()
	if err := d.c.BusyTimeout(busy); err != nil {
		return err
	}
	if err := d.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF`); err != nil {
		return err
	}
	if err := d.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	defer func() {
		if err != nil && !d.c.GetAutocommit() {
			d.c.SetInterrupt(context.Background())
			d.exec(`ROLLBACK`)
		}
	}()
	if err := d.prepareTable(); err != nil {
		return err
	}
	for _, s := range []struct {
		to  **sqlite3.Stmt
		sql string
	}{
		{&d.pos.get, `SELECT epoch, "offset", idx, recent FROM rsetl_positions WHERE pipeline = ? AND sink = ? AND split = ?`},
		{&d.pos.add, `INSERT INTO rsetl_positions (pipeline, sink, split, epoch, "offset", idx, recent, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&d.pos.move, `UPDATE rsetl_positions SET epoch = ?, "offset" = ?, idx = ?, recent = ? WHERE pipeline = ? AND sink = ? AND split = ? AND epoch = ? AND "offset" = ? AND idx = ?`},
		{&d.pos.schema, `PRAGMA schema_version`},
	} {
		if *s.to, _, err = d.c.PrepareFlags(s.sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return d.wrap(err)
		}
	}
	if err := d.readSchema(true); err != nil {
		return err
	}
	if err := d.checkKey(); err != nil {
		return err
	}
	if err := d.exec(`COMMIT`); err != nil {
		return err
	}
	d.acted = true
	return nil
}

// makeFile makes the file where it is missing: SQLite would make it readable for all.
func (d *dialect) makeFile() error {
	dir := filepath.Dir(d.path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the folder of %s: %w", d.path, err)
	}
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if errors.Is(err, fs.ErrExist) {
		if f, err = os.OpenFile(d.path, os.O_RDWR, 0); err != nil {
			return fmt.Errorf("open the database: %w", err)
		}
		defer f.Close()
	} else if err != nil {
		return fmt.Errorf("make the database: %w", err)
	} else {
		defer f.Close()
		folder, err := os.Open(dir)
		if err == nil {
			err = errors.Join(folder.Sync(), folder.Close())
		}
		if err != nil {
			return fmt.Errorf("make %s: %w", d.path, err)
		}
	}
	if d.file, err = f.Stat(); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if !d.file.Mode().IsRegular() {
		return sinks.Permanent(fmt.Errorf("%s is not a regular file", d.path))
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
		return sinks.Permanent(fmt.Errorf("%s: not a SQLite database; give another path: %w", d.path, err))
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED):
		return fmt.Errorf("%s: another process has kept it locked for %s: %w", d.path, busy, err)
	case errors.Is(err, sqlite3.FULL):
		return fmt.Errorf("%s: %w; make room on its disk", d.path, err)
	case errors.Is(err, sqlite3.CORRUPT):
		return fmt.Errorf("%s: %w; restore it from a backup or give another path", d.path, err)
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, sqlite3.PERM):
		return fmt.Errorf("%s: %w; rsetl's user must be able to write it and its folder", d.path, err)
	}
	return fmt.Errorf("%s: %w", d.path, err)
}

func (d *dialect) permanent(format string, a ...any) error {
	return sinks.Permanent(fmt.Errorf("%s: "+format, append([]any{d.path}, a...)...))
}

// prepareTable makes the position table and the sink's, inside a transaction.
func (d *dialect) prepareTable() error {
	o := d.t.Options
	if reserved(o.Table) {
		return d.permanent("the table name %q is reserved", o.Table)
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
	if kind, err := d.kind(); err != nil {
		return err
	} else if kind != "" && kind != "table" {
		return d.permanent("%s is a %s; give a table's name", o.Table, kind)
	}
	if d.env.Fresh && !d.acted {
		if len(d.cols) > 0 && o.IfExists == "fail" {
			return d.permanent("the table %s is there already (if_exists: fail)", o.Table)
		}
		where := ` AND split LIKE 'outbox:%'` // their numbers begin anew with the state
		if len(d.cols) > 0 && o.IfExists == "replace" {
			if err := d.exec(`DROP TABLE ` + quote(o.Table)); err != nil {
				return err
			}
			d.cols, d.index = nil, map[string]int{}
		}
		if len(d.cols) == 0 {
			where = "" // the rows that the positions speak of are gone
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
	}
	if len(d.cols) == 0 {
		if !o.CreateTable {
			return d.permanent("there is no table %s; make it, or set `create_table: true`", o.Table)
		}
		return d.create()
	}
	for _, c := range d.t.Columns {
		if _, ok := d.index[fold(c.Name)]; ok {
			continue
		}
		if !o.CreateTable {
			return d.permanent("the table %s has no column %s (it has %s); add it, map it with `columns`, or set `create_table: true`",
				o.Table, c.Name, strings.Join(d.cols, ", "))
		}
		if err := d.addColumn(c.Name, columnType(c.Type)); err != nil {
			return err
		}
	}
	return nil
}

func reserved(table string) bool {
	t := fold(table)
	return t == "rsetl_positions" || strings.HasPrefix(t, "sqlite_")
}

// checkKey tries the key against the table's unique indexes. A table whose columns come with the rows is
// looked at with its first.
func (d *dialect) checkKey() error {
	o := d.t.Options
	if o.Mode == "insert" || len(d.cols) == 0 {
		return nil
	}
	st, _, err := d.c.Prepare(`INSERT INTO ` + quote(o.Table) + ` (` + quote(d.cols[0]) + `) VALUES (NULL) ON CONFLICT (` + d.keyList() + `) DO NOTHING`)
	if err != nil {
		if errCode(err) == sqlite3.ERROR {
			return d.permanent("mode %s needs a unique index of table %s on exactly (%s): %w", o.Mode, o.Table, strings.Join(o.Key, ", "), err)
		}
		return d.wrap(err)
	}
	return st.Close()
}

func (d *dialect) keyList() string {
	var q []string
	for _, k := range d.t.Options.Key {
		q = append(q, quote(k))
	}
	return strings.Join(q, ", ")
}

// query gives the first column of the statement's rows.
func (d *dialect) query(text, arg string) (out []string, err error) {
	st, _, err := d.c.Prepare(text)
	if err != nil {
		return nil, d.wrap(err)
	}
	defer st.Close()
	if err := st.BindText(1, arg); err != nil {
		return nil, d.wrap(err)
	}
	for st.Step() {
		out = append(out, st.ColumnText(0))
	}
	return out, d.wrap(st.Err())
}

// kind is what sqlite_schema calls the table: table, view; "" where there is none.
func (d *dialect) kind() (string, error) {
	out, err := d.query(`SELECT type FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE`, d.t.Options.Table)
	if err != nil || len(out) == 0 {
		return "", err
	}
	return out[0], nil
}

// columns reads the table's columns; none where there is no table.
func (d *dialect) columns() error {
	names, err := d.query(`SELECT name FROM pragma_table_info(?)`, d.t.Options.Table)
	if err != nil {
		return err
	}
	d.forget()
	d.cols, d.index = nil, map[string]int{}
	for _, n := range names {
		d.know(n)
	}
	return nil
}

func (d *dialect) know(name string) {
	d.index[fold(name)] = len(d.cols)
	d.cols = append(d.cols, name)
}

// readSchema reads the columns where the schema is not the one they are of.
func (d *dialect) readSchema(known bool) error {
	st := d.pos.schema
	version := int64(0)
	if st.Step() {
		version = st.ColumnInt64(0)
	}
	if err := errors.Join(st.Err(), st.Reset()); err != nil {
		return d.wrap(err)
	}
	if version != d.schema && !known {
		if err := d.columns(); err != nil {
			return err
		}
	}
	d.schema = version
	return nil
}

// forget closes the statements that are made for the columns as they were.
func (d *dialect) forget() {
	for k, s := range d.shapes {
		s.close()
		delete(d.shapes, k)
	}
	d.plain.close()
	d.plain, d.last = nil, nil
}

// create makes the table of the plan's columns; where it knows none yet, the first row brings them.
func (d *dialect) create() error {
	o := d.t.Options
	var defs []string
	have := map[string]bool{}
	for _, c := range d.t.Columns {
		defs = append(defs, strings.TrimSpace(quote(c.Name)+" "+columnType(c.Type)))
		have[fold(c.Name)] = true
	}
	for _, k := range o.Key {
		if !have[fold(k)] {
			defs = append(defs, quote(k))
			have[fold(k)] = true
		}
	}
	if len(defs) == 0 {
		return nil
	}
	if len(o.Key) > 0 {
		defs = append(defs, "UNIQUE ("+d.keyList()+")")
	}
	if err := d.exec(`CREATE TABLE ` + quote(o.Table) + ` (` + strings.Join(defs, ", ") + `)`); err != nil {
		if errCode(err) == sqlite3.ERROR {
			return sinks.Permanent(err) // too many columns, the same one twice, ...
		}
		return err
	}
	return d.columns()
}

func (d *dialect) addColumn(name, typ string) error {
	text := `ALTER TABLE ` + quote(d.t.Options.Table) + ` ADD COLUMN ` + strings.TrimSpace(quote(name)+" "+typ)
	if len(d.cols) == 0 {
		text = `CREATE TABLE ` + quote(d.t.Options.Table) + ` (` + strings.TrimSpace(quote(name)+" "+typ) + `)`
	}
	if err := d.exec(text); err != nil {
		return err
	}
	d.forget()
	d.know(name)
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
	d.c.SetInterrupt(context.Background())
	d.forget()
	for _, st := range []*sqlite3.Stmt{d.pos.get, d.pos.add, d.pos.move, d.pos.schema} {
		st.Close() // nil is fine
	}
	d.pos = positionStmts{}
	err := d.c.Close()
	d.c = nil
	return err
}

var _ sql.Dialect = (*dialect)(nil)
