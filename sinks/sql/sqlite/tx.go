package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/state"
)

type tx struct {
	d   *dialect
	old context.Context // the connection's interrupt before this transaction
	key strings.Builder
}

func (d *dialect) Begin(ctx context.Context) (sql.Tx, error) {
	if d.c == nil {
		if err := d.Open(ctx, d.t, d.env); err != nil {
			return nil, err
		}
	}
	t := &tx{d: d, old: d.c.SetInterrupt(ctx)}
	if err := d.exec(`BEGIN IMMEDIATE`); err != nil {
		d.c.SetInterrupt(t.old)
		return nil, err
	}
	return t, nil
}

func (t *tx) Commit() error {
	err := t.d.exec(`COMMIT`)
	if err == nil {
		t.d.c.SetInterrupt(t.old)
	}
	return err
}

// Rollback undoes what is not committed. Columns that were added in it are gone too, so they are read anew.
func (t *tx) Rollback() {
	d := t.d
	if d.c == nil {
		return
	}
	d.c.SetInterrupt(t.old)
	if d.c.GetAutocommit() {
		return
	}
	for k, st := range d.stmts {
		st.Close()
		delete(d.stmts, k)
	}
	if d.exec(`ROLLBACK`) != nil || d.columns() != nil {
		d.Close() // Begin opens it again
	}
}

func (t *tx) Position(split string) (p sql.Stored, ok bool, err error) {
	st := t.d.pos.get
	defer st.Reset()
	st.BindText(1, t.d.env.Pipeline)
	st.BindText(2, t.d.env.Name)
	st.BindText(3, split)
	if st.Step() {
		ok = true
		p.Epoch = st.ColumnInt64(0)
		p.Offset = st.ColumnInt64(1)
		p.Index = int32(st.ColumnInt64(2))
		p.Recent = st.ColumnText(3)
	}
	return p, ok, t.d.wrap(st.Err())
}

func (t *tx) Advance(split *record.Split, old sql.Stored, ok bool, to record.Position) error {
	if !ok {
		st := t.d.pos.add
		defer st.Reset()
		st.BindText(1, t.d.env.Pipeline)
		st.BindText(2, t.d.env.Name)
		st.BindText(3, split.ID)
		st.BindInt64(4, split.Epoch)
		st.BindInt64(5, to.Offset)
		st.BindInt64(6, int64(to.Index))
		st.BindText(7, format(to))
		st.BindText(8, split.Path)
		err := st.Exec()
		if errors.Is(err, sqlite3.CONSTRAINT) {
			return fmt.Errorf("split %s (%s): %w", split.ID, split.Path, sql.ErrFenced)
		}
		return t.d.wrap(err)
	}
	st := t.d.pos.move
	defer st.Reset()
	recent := strings.Fields(old.Recent)
	if old.Epoch != split.Epoch {
		recent = nil
	}
	recent = append(recent, format(to))
	if len(recent) > state.Keep {
		recent = recent[len(recent)-state.Keep:]
	}
	st.BindInt64(1, split.Epoch)
	st.BindInt64(2, to.Offset)
	st.BindInt64(3, int64(to.Index))
	st.BindText(4, strings.Join(recent, " "))
	st.BindText(5, t.d.env.Pipeline)
	st.BindText(6, t.d.env.Name)
	st.BindText(7, split.ID)
	st.BindInt64(8, old.Epoch)
	st.BindInt64(9, old.Offset)
	st.BindInt64(10, int64(old.Index))
	if err := st.Exec(); err != nil {
		return t.d.wrap(err)
	}
	if t.d.c.Changes() != 1 {
		return fmt.Errorf("split %s (%s): %w", split.ID, split.Path, sql.ErrFenced)
	}
	return nil
}

func format(p record.Position) string {
	return strconv.FormatInt(p.Offset, 10) + "/" + strconv.FormatInt(int64(p.Index), 10)
}

// maxName bounds a column's name that comes with the data.
const maxName = 255

func (t *tx) Insert(r *sql.Row) error {
	d := t.d
	n := len(d.t.Columns)
	for _, name := range r.Names {
		if _, ok := d.index[strings.ToLower(string(name))]; ok {
			continue
		}
		switch {
		case !d.t.Options.CreateTable:
			return &sql.RowError{Reason: fmt.Sprintf("table %s has no column %q", d.t.Options.Table, name)}
		case len(name) == 0 || len(name) > maxName || strings.ContainsRune(string(name), 0):
			return &sql.RowError{Reason: fmt.Sprintf("a field's name of %d bytes can't be a column: %.40q", len(name), name)}
		}
		if err := d.addColumn(string(name), ""); err != nil {
			if code := errCode(err); code == sqlite3.ERROR {
				return &sql.RowError{Reason: fmt.Sprintf("add column %.40q: %v", name, err)}
			}
			return err
		}
	}
	if len(d.cols) == 0 {
		return &sql.RowError{Reason: "the record has no field"}
	}
	seen := map[string]int(nil)
	if len(r.Names) > 0 {
		seen = map[string]int{}
		for i, name := range r.Names {
			low := strings.ToLower(string(name))
			if _, dup := seen[low]; dup {
				return &sql.RowError{Reason: fmt.Sprintf("two fields differ in case only: %q", name)}
			}
			seen[low] = n + i
		}
	}
	mode := d.t.Options.Mode
	if mode != "insert" && t.nullKey(r, seen) {
		return t.insertNullKey(r, seen)
	}
	st, err := t.statement(r)
	if err != nil {
		return err
	}
	if err := bind(st, 1, r.Cells); err != nil {
		st.Reset()
		return t.rowError(err)
	}
	return t.rowError(st.Exec())
}

// rowError tells what is wrong with the row from what is wrong with the database.
func (t *tx) rowError(err error) error {
	switch errCode(err) {
	case sqlite3.CONSTRAINT, sqlite3.MISMATCH, sqlite3.TOOBIG, sqlite3.RANGE:
		return &sql.RowError{Reason: err.Error()}
	}
	return t.d.wrap(err)
}

func errCode(err error) sqlite3.ErrorCode {
	var e *sqlite3.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	var c sqlite3.ErrorCode
	if errors.As(err, &c) {
		return c
	}
	return 0
}

// statement gives the prepared INSERT for the plan's columns and the row's own fields.
func (t *tx) statement(r *sql.Row) (*sqlite3.Stmt, error) {
	d := t.d
	t.key.Reset()
	for _, name := range r.Names {
		t.key.Write(name)
		t.key.WriteByte(0)
	}
	key := t.key.String()
	if st, ok := d.stmts[key]; ok {
		return st, nil
	}
	if len(d.stmts) >= maxStmts {
		for k, st := range d.stmts {
			st.Close()
			delete(d.stmts, k)
		}
	}
	var cols, marks []string
	for _, c := range d.t.Columns {
		cols = append(cols, quote(c.Name))
	}
	for _, name := range r.Names {
		cols = append(cols, quote(string(name)))
	}
	for range cols {
		marks = append(marks, "?")
	}
	o := d.t.Options
	verb := map[string]string{"insert": "INSERT", "upsert": "INSERT", "replace": "REPLACE", "ignore": "INSERT"}[o.Mode]
	text := verb + " INTO " + quote(o.Table) + " (" + strings.Join(cols, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	if o.Mode == "upsert" || o.Mode == "ignore" {
		var keys, sets []string
		isKey := map[string]bool{}
		for _, k := range o.Key {
			keys = append(keys, quote(k))
			isKey[strings.ToLower(k)] = true
		}
		for _, c := range cols {
			if name := strings.ReplaceAll(c[1:len(c)-1], `""`, `"`); !isKey[strings.ToLower(name)] {
				sets = append(sets, c+" = excluded."+c)
			}
		}
		text += " ON CONFLICT (" + strings.Join(keys, ", ") + ") DO "
		if o.Mode == "ignore" || len(sets) == 0 {
			text += "NOTHING"
		} else {
			text += "UPDATE SET " + strings.Join(sets, ", ")
		}
	}
	st, _, err := d.c.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		if strings.Contains(err.Error(), "ON CONFLICT clause does not match") {
			return nil, fmt.Errorf("%s: mode %s needs a unique index of table %s on (%s): %w", d.path, o.Mode, o.Table, strings.Join(o.Key, ", "), err)
		}
		return nil, d.wrap(err)
	}
	d.stmts[key] = st
	return st, nil
}

func bind(st *sqlite3.Stmt, from int, cells []sql.Cell) (err error) {
	for i := range cells {
		c := &cells[i]
		switch c.Kind {
		case record.Missing, record.Null:
			err = st.BindNull(from + i)
		case record.Bool, record.Int:
			err = st.BindInt64(from+i, c.Int)
		case record.Float:
			err = st.BindFloat(from+i, c.F)
		case record.Bytes:
			err = st.BindBlob(from+i, c.Text)
		default:
			err = st.BindRawText(from+i, c.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cell finds a column's cell in the row; nil where the row has none.
func (t *tx) cell(r *sql.Row, seen map[string]int, column string) *sql.Cell {
	for i, c := range t.d.t.Columns {
		if strings.EqualFold(c.Name, column) {
			return &r.Cells[i]
		}
	}
	if i, ok := seen[strings.ToLower(column)]; ok {
		return &r.Cells[i]
	}
	return nil
}

func (t *tx) nullKey(r *sql.Row, seen map[string]int) bool {
	for _, k := range t.d.t.Options.Key {
		if c := t.cell(r, seen, k); c == nil || c.IsNull() {
			return true
		}
	}
	return false
}

// insertNullKey does what the mode says for a key with NULL in it: unique indexes hold such rows apart, people
// mean the same row. It looks for the row by `IS`.
func (t *tx) insertNullKey(r *sql.Row, seen map[string]int) error {
	d, o := t.d, t.d.t.Options
	var where []string
	var keys []sql.Cell
	for _, k := range o.Key {
		where = append(where, quote(k)+" IS ?")
		c := sql.Cell{}
		if p := t.cell(r, seen, k); p != nil {
			c = *p
		}
		keys = append(keys, c)
	}
	run := func(text string, cells []sql.Cell) (found bool, err error) {
		st, _, err := d.c.Prepare(text)
		if err != nil {
			return false, d.wrap(err)
		}
		defer st.Close()
		if err := bind(st, 1, cells); err != nil {
			return false, t.rowError(err)
		}
		found = st.Step()
		for st.Step() {
		}
		return found, t.rowError(st.Err())
	}
	cond := " WHERE " + strings.Join(where, " AND ")
	found, err := run("SELECT 1 FROM "+quote(o.Table)+cond+" LIMIT 1", keys)
	if err != nil {
		return err
	}
	var cols, sets, marks []string
	for i := range r.Cells {
		name := ""
		if i < len(d.t.Columns) {
			name = d.t.Columns[i].Name
		} else {
			name = string(r.Names[i-len(d.t.Columns)])
		}
		cols = append(cols, quote(name))
		sets = append(sets, quote(name)+" = ?")
		marks = append(marks, "?")
	}
	switch {
	case found && o.Mode == "ignore":
		return nil
	case found && o.Mode == "upsert":
		_, err = run("UPDATE "+quote(o.Table)+" SET "+strings.Join(sets, ", ")+cond, append(append([]sql.Cell(nil), r.Cells...), keys...))
		return err
	case found: // replace
		if _, err := run("DELETE FROM "+quote(o.Table)+cond, keys); err != nil {
			return err
		}
	}
	_, err = run("INSERT INTO "+quote(o.Table)+" ("+strings.Join(cols, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", r.Cells)
	return err
}
