package mysql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sql"
)

// dialect is one connection for the rows, and one for DDL, which would commit an open transaction.
type dialect struct {
	cfg   *mysql.Config
	db    *stdsql.DB
	conn  *stdsql.Conn
	t     *sql.Table
	env   *sinks.Env
	acted bool // if_exists was acted on in this process

	text      string // the collation of texts: by bytes
	maxPacket int
	maxStmt   int // bytes of a statement at most
	testStmt  int // tests: a smaller maxStmt

	table  []column       // the table's, in its order; none: it isn't there yet
	index  map[string]int // by name in lower case
	in     []int          // for each column of the plan: its place in table, -1 where it isn't there yet
	dyn    []string       // columns that came with the data
	shapes map[string]*shape
	plain  *shape // of rows without fields of their own
	last   *shape // of the row before
	stmts  map[string]*stmt
	stale  bool // the table may have changed
	ddls   int  // done on this connection's behalf
	tx     tx
}

type column struct {
	name string
	as   class
}

// The session's settings. Strict for every engine; times in UTC; a lock on the table's form is not awaited for a day.
const sqlMode = "'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'"

// sessionDefaults are settings that a DSN may change. wait_timeout is how long the server keeps the session, and the locks of its
// transaction, of a client that is gone without a word; one that ends while there is nothing to write is opened anew.
var sessionDefaults = map[string]string{"lock_wait_timeout": "60", "wait_timeout": "120"}

const (
	readTimeout = 5 * time.Minute // above any wait for a lock
)

// stmtBytes is where a statement ends: some hundred rows. Larger ones are slower, the server's caches hold these.
const stmtBytes = 128_000

func session(from *mysql.Config) (*mysql.Config, error) {
	c, err := mysqlconn.Session(from, sqlMode, readTimeout)
	if err != nil {
		return nil, err
	}
	for k, v := range sessionDefaults {
		if c.Params[k] == "" {
			c.Params[k] = v
		}
	}
	return c, nil
}

func (d *dialect) Open(ctx context.Context, t *sql.Table, env *sinks.Env) (err error) {
	d.t, d.env = t, env
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := d.connect(ctx); err != nil {
		return err
	}
	if err := d.conn.QueryRowContext(ctx, `SELECT @@max_allowed_packet`).Scan(&d.maxPacket); err != nil {
		return d.wrap("ask for max_allowed_packet", err)
	}
	if d.text, err = d.collation(ctx); err != nil {
		return err
	}
	d.maxStmt = min(stmtBytes, d.maxPacket-4096)
	if d.testStmt > 0 {
		d.maxStmt = d.testStmt
	}
	if err := d.positions(ctx); err != nil {
		return err
	}
	if err := d.prepareTable(ctx); err != nil {
		return err
	}
	d.acted = true
	return nil
}

func (d *dialect) connect(ctx context.Context) error {
	d.Close()
	cfg, err := session(d.cfg)
	if err != nil {
		return d.permanent("the DSN: %w", err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return d.permanent("the DSN: %w", err)
	}
	d.db = stdsql.OpenDB(connector)
	d.conn, err = d.db.Conn(ctx)
	return d.wrap("connect", err)
}

// collation is the server's best that compares texts by their bytes: those without padding tell "a" from "a ".
func (d *dialect) collation(ctx context.Context) (name string, err error) {
	err = d.conn.QueryRowContext(ctx, `SELECT collation_name FROM information_schema.collations WHERE collation_name IN ('utf8mb4_nopad_bin', 'utf8mb4_0900_bin', 'utf8mb4_bin') ORDER BY collation_name = 'utf8mb4_bin' LIMIT 1`).Scan(&name)
	return name, d.wrap("ask for the collations", err)
}

// Probe connects, and looks for the table where the sink wouldn't make it.
func (d *dialect) Probe(ctx context.Context, t *sql.Table) error {
	defer d.Close()
	d.t = t
	if err := d.connect(ctx); err != nil {
		return err
	}
	rows, err := d.conn.QueryContext(ctx, `SELECT * FROM `+quote(t.Options.Table)+` LIMIT 0`)
	if err != nil {
		if mysqlconn.Number(err) == erNoSuchTable && t.Options.CreateTable {
			return nil
		}
		return d.wrap("look at the table", err)
	}
	return rows.Close()
}

func (d *dialect) Close() error {
	d.forget()
	if d.conn != nil {
		d.conn.Close()
		d.conn = nil
	}
	if d.db == nil {
		return nil
	}
	err := d.db.Close()
	d.db = nil
	return err
}

// positions makes the position table where it is missing.
func (d *dialect) positions(ctx context.Context) error {
	rows, err := d.conn.QueryContext(ctx, `SELECT epoch, pos, idx, recent FROM rsetl_positions LIMIT 0`)
	if err == nil {
		return d.wrap("read rsetl_positions", errors.Join(rows.Err(), rows.Close()))
	}
	if mysqlconn.Number(err) != erNoSuchTable {
		return d.wrap("read rsetl_positions", err)
	}
	_, err = d.conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS rsetl_positions ("+
		"pipeline VARBINARY(255) NOT NULL, sink VARBINARY(255) NOT NULL, split VARBINARY(1024) NOT NULL, epoch BIGINT NOT NULL, "+
		"pos BIGINT NOT NULL, idx INT NOT NULL, recent TEXT NOT NULL, path TEXT CHARACTER SET utf8mb4, "+
		"PRIMARY KEY (pipeline, sink, split)) ENGINE=InnoDB")
	return d.wrap("make the table rsetl_positions", err)
}

// prepareTable makes sure of the sink's table.
func (d *dialect) prepareTable(ctx context.Context) error {
	o := d.t.Options
	if strings.EqualFold(o.Table, "rsetl_positions") {
		return d.permanent("the table name %q is reserved", o.Table)
	}
	var kind string
	var engine stdsql.NullString
	err := d.conn.QueryRowContext(ctx, `SELECT table_type, engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?`, o.Table).Scan(&kind, &engine)
	there := err == nil
	if err != nil && !errors.Is(err, stdsql.ErrNoRows) {
		return d.wrap("look for the table "+o.Table, err)
	}
	if there && kind != "BASE TABLE" {
		return d.permanent("%s is a %s; give a table's name", o.Table, strings.ToLower(kind))
	}
	if d.env.Fresh && !d.acted {
		if there && o.IfExists == "fail" {
			return d.permanent("the table %s is there already (if_exists: fail)", o.Table)
		}
		where := ` AND split LIKE 'outbox:%'` // their numbers begin anew with the state
		if there && o.IfExists == "replace" {
			if err := d.ddl(ctx, `DROP TABLE `+quote(o.Table)); err != nil {
				return err
			}
			there = false
		}
		if !there {
			where = "" // the rows that the positions speak of are gone
		}
		if _, err := d.conn.ExecContext(ctx, `DELETE FROM rsetl_positions WHERE pipeline = ? AND sink = ?`+where, d.env.Pipeline, d.env.Name); err != nil {
			return d.wrap("forget old positions", err)
		}
	}
	if there {
		if err := d.checkEngine(ctx, engine.String); err != nil {
			return err
		}
		if err := d.readTable(ctx); err != nil {
			return err
		}
		return d.planColumns(ctx)
	}
	if !o.CreateTable {
		return d.permanent("there is no table %s in the database %s; make it, or set `create_table: true`", o.Table, d.cfg.DBName)
	}
	d.setTable(nil)
	if !d.typed() {
		return nil // the first row brings the types
	}
	return d.create(ctx, nil)
}

// typed tells whether the plan's types suffice to make the table.
func (d *dialect) typed() bool {
	known := map[string]bool{}
	for _, c := range d.t.Columns {
		if c.Type.Kind != expr.TAny && c.Type.Kind != expr.TNull {
			known[strings.ToLower(c.Name)] = true
		}
	}
	for _, k := range d.t.Options.Key {
		if !known[strings.ToLower(k)] {
			return false
		}
	}
	return len(known) > 0
}

func (d *dialect) checkEngine(ctx context.Context, engine string) error {
	var tx stdsql.NullString
	err := d.conn.QueryRowContext(ctx, `SELECT transactions FROM information_schema.engines WHERE engine = ?`, engine).Scan(&tx)
	if err != nil && !errors.Is(err, stdsql.ErrNoRows) {
		return d.wrap("look at the table's engine", err)
	}
	if err == nil && tx.String != "YES" {
		return d.permanent("the table %s is of the engine %s, which has no transactions, so rows and position could not commit together; ALTER TABLE %s ENGINE=InnoDB",
			d.t.Options.Table, engine, quote(d.t.Options.Table))
	}
	return nil
}

// planColumns makes sure that the table has the plan's columns, and the key's index.
func (d *dialect) planColumns(ctx context.Context) error {
	o := d.t.Options
	for _, c := range d.t.Columns {
		if _, ok := d.index[strings.ToLower(c.Name)]; ok {
			continue
		}
		if !o.CreateTable {
			var have []string
			for _, h := range d.table {
				have = append(have, h.name)
			}
			return d.permanent("the table %s has no column %s (it has %s); add it, map it with `columns`, or set `create_table: true`",
				o.Table, c.Name, strings.Join(have, ", "))
		}
		typ := d.columnType(c.Type, false)
		if typ == "" {
			continue // it comes with its first value
		}
		if err := d.addColumn(ctx, c.Name, typ); err != nil {
			return d.configError(err)
		}
	}
	return d.checkKey(ctx)
}

// configError makes what the server says about the plan's columns an error that ends the pipeline, where
// trying again can't mend it.
func (d *dialect) configError(err error) error {
	switch n := mysqlconn.Number(err); {
	case n == 0, n == erLockDeadlock, n == erLockWait, n == erTableAccess, n == erDBAccess, n == erSpecialAccess, n == erReadOnly:
		return err
	}
	return sinks.Permanent(err)
}

// readTable reads the table's columns.
func (d *dialect) readTable(ctx context.Context) error {
	rows, err := d.conn.QueryContext(ctx, `SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? ORDER BY ordinal_position`, d.t.Options.Table)
	if err != nil {
		return d.wrap("read the table's columns", err)
	}
	defer rows.Close()
	var table []column
	for rows.Next() {
		var name, typ string
		if err := rows.Scan(&name, &typ); err != nil {
			return d.wrap("read the table's columns", err)
		}
		table = append(table, column{name, classOf(strings.ToLower(typ))})
	}
	if err := rows.Err(); err != nil {
		return d.wrap("read the table's columns", err)
	}
	d.setTable(table)
	return nil
}

func (d *dialect) setTable(table []column) {
	d.forget()
	d.table, d.index, d.stale = table, map[string]int{}, false
	for i, c := range table {
		d.index[strings.ToLower(c.name)] = i
	}
	d.in = d.in[:0]
	for _, c := range d.t.Columns {
		if i, ok := d.index[strings.ToLower(c.Name)]; ok {
			d.in = append(d.in, i)
		} else {
			d.in = append(d.in, -1)
		}
	}
}

// checkKey looks for a unique index on exactly the key. Others that rows could meet are refused: the server
// would take the row that it finds there for the same.
func (d *dialect) checkKey(ctx context.Context) error {
	o := d.t.Options
	if o.Mode == "insert" || len(d.table) == 0 {
		return nil
	}
	rows, err := d.conn.QueryContext(ctx, `SELECT s.index_name, s.column_name, s.sub_part IS NOT NULL, c.extra LIKE '%auto_increment%'
		FROM information_schema.statistics s LEFT JOIN information_schema.columns c USING (table_schema, table_name, column_name)
		WHERE s.table_schema = DATABASE() AND s.table_name = ? AND s.non_unique = 0`, o.Table)
	if err != nil {
		return d.wrap("read the table's indexes", err)
	}
	defer rows.Close()
	key, ours := map[string]bool{}, map[string]bool{}
	for _, k := range o.Key {
		key[strings.ToLower(k)] = true
	}
	for _, c := range d.t.Columns {
		ours[strings.ToLower(c.Name)] = true
	}
	type index struct {
		in, out int
		part    bool
		counter bool // an AUTO_INCREMENT that no row sets
	}
	indexes := map[string]*index{}
	for rows.Next() {
		var name string
		var col stdsql.NullString
		var part bool
		var auto stdsql.NullBool
		if err := rows.Scan(&name, &col, &part, &auto); err != nil {
			return d.wrap("read the table's indexes", err)
		}
		x := indexes[name]
		if x == nil {
			x = &index{}
			indexes[name] = x
		}
		low := strings.ToLower(col.String)
		if key[low] {
			x.in++
		} else {
			x.out++
		}
		x.part = x.part || part
		x.counter = x.counter || auto.Bool && !ours[low]
	}
	if err := rows.Err(); err != nil {
		return d.wrap("read the table's indexes", err)
	}
	found, foreign := false, ""
	for name, x := range indexes {
		switch {
		case x.in == len(key) && x.out == 0 && !x.part:
			found = true
		case !x.counter:
			foreign = name
		}
	}
	if !found {
		return d.permanent("mode %s needs a unique index of table %s on exactly (%s); make it: ALTER TABLE %s ADD UNIQUE (%s)",
			o.Mode, o.Table, strings.Join(o.Key, ", "), quote(o.Table), d.keyList())
	}
	if foreign != "" {
		return d.permanent("mode %s: the table %s has another unique index, %s; a row that meets it would change a row with another key. Drop it, or use it as the key", o.Mode, o.Table, foreign)
	}
	return nil
}

func (d *dialect) keyList() string {
	var q []string
	for _, k := range d.t.Options.Key {
		q = append(q, quote(k))
	}
	return strings.Join(q, ", ")
}

// create makes the table of the plan's columns and, where row isn't nil, of those that it brings.
func (d *dialect) create(ctx context.Context, row *sql.Row) error {
	o := d.t.Options
	isKey := map[string]bool{}
	for _, k := range o.Key {
		isKey[strings.ToLower(k)] = true
	}
	var defs []string
	have := map[string]bool{}
	add := func(name, typ string) {
		low := strings.ToLower(name)
		if typ == "" && isKey[low] {
			typ = d.keyText()
		}
		if typ != "" && !have[low] {
			defs = append(defs, quote(name)+" "+typ)
			have[low] = true
		}
	}
	for i, c := range d.t.Columns {
		typ := d.columnType(c.Type, isKey[strings.ToLower(c.Name)])
		if typ == "" && row != nil {
			typ = d.valueType(&row.Cells[i], isKey[strings.ToLower(c.Name)])
		}
		add(c.Name, typ)
	}
	if row != nil {
		for i, n := range row.Names {
			if columnName(string(n)) == "" {
				add(string(n), d.valueType(&row.Cells[len(d.t.Columns)+i], isKey[strings.ToLower(string(n))]))
			}
		}
	}
	if len(defs) == 0 {
		return nil
	}
	for _, k := range o.Key {
		add(k, "")
	}
	if len(o.Key) > 0 {
		defs = append(defs, "UNIQUE ("+d.keyList()+")")
	}
	err := d.ddl(ctx, `CREATE TABLE `+quote(o.Table)+` (`+strings.Join(defs, ", ")+`) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE `+d.text)
	if err != nil && mysqlconn.Number(err) != erTableExists {
		return d.configError(err)
	}
	return d.readTable(ctx)
}

func (d *dialect) addColumn(ctx context.Context, name, typ string) error {
	err := d.ddl(ctx, `ALTER TABLE `+quote(d.t.Options.Table)+` ADD COLUMN `+quote(name)+` `+typ)
	if err != nil && mysqlconn.Number(err) != erDupFieldname {
		return err
	}
	return d.readTable(ctx)
}

// ddl runs a statement on a connection of its own.
func (d *dialect) ddl(ctx context.Context, text string) error {
	what, _, _ := strings.Cut(text, "(")
	d.ddls++
	_, err := d.db.ExecContext(ctx, text)
	return d.wrap(what, err)
}

// keyText is the type of texts in the key: an index takes 3072 bytes.
func (d *dialect) keyText() string {
	return fmt.Sprintf("VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE %s", min(255, 3000/4/max(1, len(d.t.Options.Key))), d.text)
}

func (d *dialect) longText() string { return "LONGTEXT CHARACTER SET utf8mb4 COLLATE " + d.text }

// columnType is the column of a type of the plan, "" where the plan doesn't know it.
func (d *dialect) columnType(t expr.Type, key bool) string {
	switch t.Kind {
	case expr.TAny, expr.TNull:
		return ""
	case expr.TBoolean:
		return "BOOLEAN"
	case expr.TTinyInt, expr.TSmallInt, expr.TInt, expr.TBigInt:
		return "BIGINT"
	case expr.TFloat, expr.TDouble:
		return "DOUBLE"
	case expr.TDecimal:
		return decimal(t.Prec, t.Scale)
	case expr.TDate:
		return "DATE"
	case expr.TTime:
		return "TIME(6)"
	case expr.TTimestamp, expr.TTimestampLTZ:
		return "DATETIME(6)"
	case expr.TBinary, expr.TVarbinary:
		if key {
			return fmt.Sprintf("VARBINARY(%d)", 3000/max(1, len(d.t.Options.Key)))
		}
		return "LONGBLOB"
	case expr.TArray, expr.TMap, expr.TRow:
		return "JSON"
	}
	text := d.longText()
	if key {
		text = d.keyText()
	}
	if (t.Kind == expr.TVarchar || t.Kind == expr.TChar) && t.Prec > 0 && t.Prec <= maxVarchar { // CAST(x AS VARCHAR(20))
		text = fmt.Sprintf("VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE %s", t.Prec, d.text)
	}
	return text
}

// maxVarchar is the longest VARCHAR that is made: more of them would fill a row.
const maxVarchar = 1000

// decimal is the type for decimals of that precision, 0 where it is not known. The server has 65 digits, 30 of them behind the point (38 in MariaDB).
func decimal(prec, scale int) string {
	switch {
	case prec <= 0:
		prec, scale = 65, 30
	case prec > 65:
		prec = 65
	}
	return fmt.Sprintf("DECIMAL(%d,%d)", prec, min(scale, 30, prec))
}

// valueType is the column of a value whose type the plan doesn't know, "" for NULL.
func (d *dialect) valueType(c *sql.Cell, key bool) string {
	t := expr.Type{}
	switch c.Kind {
	case record.Missing, record.Null:
		return ""
	case record.Bool:
		t.Kind = expr.TBoolean
	case record.Int:
		t.Kind = expr.TBigInt
	case record.Float:
		t.Kind = expr.TDouble
	case record.Decimal:
		t.Kind = expr.TDecimal
	case record.Date:
		t.Kind = expr.TDate
	case record.Clock:
		t.Kind = expr.TTime
	case record.Time:
		t.Kind = expr.TTimestamp
	case record.Bytes:
		t.Kind = expr.TVarbinary
	case record.Array, record.Map:
		t.Kind = expr.TArray
	default:
		t.Kind = expr.TVarchar
	}
	return d.columnType(t, key)
}

var (
	_ sql.Dialect  = (*dialect)(nil)
	_ sql.Literals = (*dialect)(nil)
	_ sql.Prober   = (*dialect)(nil)
)
