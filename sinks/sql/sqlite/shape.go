package sqlite

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
)

// shape is what rows with the same fields share: the plan's columns and, in this order, fields of
// their own. It is good until the table's columns change.
type shape struct {
	names string        // the fields of their own, each with a zero byte behind
	err   *sql.RowError // no such row can go
	ins   *sqlite3.Stmt
	cols  []string // quoted, one for each cell
	keys  []int    // for each column of the key: its cell, -1 where the rows have none

	// For keys with NULL in them, made when the first comes.
	find, update, remove, add *sqlite3.Stmt
}

func (s *shape) close() {
	if s == nil {
		return
	}
	for _, st := range []*sqlite3.Stmt{s.ins, s.find, s.update, s.remove, s.add} {
		st.Close() // nil is fine
	}
}

// maxShapes bounds the prepared statements; rows of more kinds than that cost a preparation each.
const maxShapes = 64

// maxName bounds a column's name that comes with the data.
const maxName = 255

// shape gives the row's shape, and adds the columns that it needs.
func (t *tx) shape(r *sql.Row) (*shape, error) {
	d := t.d
	if len(r.Names) == 0 {
		if d.plain == nil {
			s, err := d.newShape(nil)
			if err != nil {
				return nil, err
			}
			d.plain = s
		}
		return d.plain, nil
	}
	t.key = t.key[:0]
	for _, n := range r.Names {
		t.key = append(append(t.key, n...), 0)
	}
	if s := d.last; s != nil && s.names == string(t.key) {
		return s, nil
	}
	s, ok := d.shapes[string(t.key)]
	if !ok {
		var err error
		if s, err = d.newShape(r.Names); err != nil {
			return nil, err
		}
		if len(d.shapes) >= maxShapes {
			for k, old := range d.shapes {
				old.close()
				delete(d.shapes, k)
			}
		}
		if d.shapes == nil {
			d.shapes = map[string]*shape{}
		}
		s.names = string(t.key)
		d.shapes[s.names] = s
	}
	d.last = s
	return s, nil
}

func (d *dialect) newShape(names [][]byte) (*shape, error) {
	s := &shape{}
	if s.err = d.checkNames(names); s.err != nil {
		return s, nil
	}
	if err := d.addColumns(names); err != nil {
		if !errors.As(err, &s.err) {
			return nil, err
		}
		return s, nil
	}
	if len(d.cols) == 0 {
		s.err = &sql.RowError{Reason: "the record has no field"}
		return s, nil
	}
	cell := map[string]int{}
	for _, c := range d.t.Columns {
		cell[fold(c.Name)] = len(s.cols)
		s.cols = append(s.cols, quote(c.Name))
	}
	for _, n := range names {
		cell[fold(string(n))] = len(s.cols)
		s.cols = append(s.cols, quote(string(n)))
	}
	for _, k := range d.t.Options.Key {
		if i, ok := cell[fold(k)]; ok {
			s.keys = append(s.keys, i)
		} else {
			s.keys = append(s.keys, -1)
		}
	}
	var err error
	s.ins, err = d.prepare(d.insertText(s))
	if err != nil {
		if strings.Contains(err.Error(), "ON CONFLICT clause does not match") {
			return nil, fmt.Errorf("mode %s needs a unique index of table %s on (%s): %w", d.t.Options.Mode, d.t.Options.Table, strings.Join(d.t.Options.Key, ", "), err)
		}
		return nil, err
	}
	return s, nil
}

// addColumns adds those that the table doesn't have, all or none. A *sql.RowError means that it can't have them.
func (d *dialect) addColumns(names [][]byte) error {
	missing := 0
	for _, n := range names {
		if _, ok := d.index[fold(string(n))]; !ok {
			missing++
		}
	}
	// To find that out column by column takes seconds.
	if most := d.c.Limit(sqlite3.LIMIT_COLUMN, -1); len(d.cols)+missing > most {
		return &sql.RowError{Reason: fmt.Sprintf("too many columns: table %s has %d, the row brings %d more, and SQLite takes %d", d.t.Options.Table, len(d.cols), missing, most)}
	}
	saved := false
	for _, n := range names {
		if _, ok := d.index[fold(string(n))]; ok {
			continue
		}
		if !saved {
			if err := d.exec(`SAVEPOINT columns`); err != nil {
				return err
			}
			saved = true
		}
		err := d.addColumn(string(n), "")
		if err == nil {
			continue
		}
		if errCode(err) != sqlite3.ERROR { // that is too many columns, a name that SQLite keeps for itself
			return err
		}
		if e := d.exec(`ROLLBACK TO columns; RELEASE columns`); e != nil {
			return e
		}
		if e := d.columns(); e != nil {
			return e
		}
		return &sql.RowError{Reason: fmt.Sprintf("add column %.40q: %s", n, reason(err))}
	}
	if saved {
		return d.exec(`RELEASE columns`)
	}
	return nil
}

func (d *dialect) prepare(text string) (*sqlite3.Stmt, error) {
	st, _, err := d.c.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT)
	return st, d.wrap(err)
}

func (d *dialect) checkNames(names [][]byte) *sql.RowError {
	if len(names) == 0 {
		return nil
	}
	seen := map[string]string{}
	for _, c := range d.t.Columns {
		seen[fold(c.Name)] = c.Name
	}
	for _, n := range names {
		switch other, dup := seen[fold(string(n))]; {
		case len(n) == 0 || len(n) > maxName || strings.IndexByte(string(n), 0) >= 0 || !utf8.Valid(n):
			return &sql.RowError{Reason: fmt.Sprintf("a field's name can't be a column: %.80q (%d bytes)", n, len(n))}
		case dup:
			return &sql.RowError{Reason: fmt.Sprintf("fields %q and %q are one column to SQLite", other, n)}
		}
		seen[fold(string(n))] = string(n)
		if _, ok := d.index[fold(string(n))]; !ok && !d.t.Options.CreateTable {
			return &sql.RowError{Reason: fmt.Sprintf("table %s has no column %q", d.t.Options.Table, n)}
		}
	}
	return nil
}

func (d *dialect) insertText(s *shape) string {
	o := d.t.Options
	verb := "INSERT"
	if o.Mode == "replace" {
		verb = "REPLACE"
	}
	text := verb + " INTO " + quote(o.Table)
	if len(s.cols) == 0 {
		text += " DEFAULT VALUES"
	} else {
		text += " (" + strings.Join(s.cols, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(s.cols)-1) + ")"
	}
	if len(s.cols) == 0 || o.Mode != "upsert" && o.Mode != "ignore" {
		return text
	}
	var sets []string
	for i, c := range s.cols {
		if !s.isKey(i) {
			sets = append(sets, c+" = excluded."+c)
		}
	}
	text += " ON CONFLICT (" + d.keyList() + ") DO "
	if o.Mode == "ignore" || len(sets) == 0 {
		return text + "NOTHING"
	}
	return text + "UPDATE SET " + strings.Join(sets, ", ")
}

func (s *shape) isKey(cell int) bool {
	for _, k := range s.keys {
		if k == cell {
			return true
		}
	}
	return false
}

// nullKey tells whether a column of the key is NULL in the row.
func (s *shape) nullKey(r *sql.Row) bool {
	for _, k := range s.keys {
		if k < 0 || r.Cells[k].IsNull() {
			return true
		}
	}
	return false
}

// insertNullKey does what the mode says for a key with NULL in it: unique indexes hold such rows apart, people
// mean the same row. It looks for the row by `IS`.
func (t *tx) insertNullKey(s *shape, r *sql.Row) error {
	d, o := t.d, t.d.t.Options
	t.keys = t.keys[:0]
	for _, k := range s.keys {
		c := sql.Cell{}
		if k >= 0 {
			c = r.Cells[k]
		}
		t.keys = append(t.keys, c)
	}
	if s.find == nil {
		if err := d.nullKeyStatements(s); err != nil {
			return err
		}
	}
	found, err := t.run(s.find, t.keys, nil)
	if err != nil {
		return err
	}
	switch {
	case found && o.Mode == "ignore":
		return nil
	case found && o.Mode == "upsert":
		if s.update == nil {
			return nil // the key is all there is
		}
		_, err = t.run(s.update, r.Cells, t.keys)
		return err
	case found: // replace
		if err := d.exec(`SAVEPOINT one`); err != nil {
			return err
		}
		_, err := t.run(s.remove, t.keys, nil)
		if err == nil {
			_, err = t.run(s.add, r.Cells, nil)
		}
		var re *sql.RowError
		if errors.As(err, &re) { // the old row comes back
			if e := d.exec(`ROLLBACK TO one`); e != nil {
				return e
			}
		} else if err != nil {
			return err
		}
		if e := d.exec(`RELEASE one`); e != nil {
			return e
		}
		return err
	}
	_, err = t.run(s.add, r.Cells, nil)
	return err
}

func (d *dialect) nullKeyStatements(s *shape) (err error) {
	o := d.t.Options
	var where, sets []string
	for i, k := range o.Key {
		where = append(where, fmt.Sprintf("%s IS ?%d", quote(k), i+1))
	}
	cond := " WHERE " + strings.Join(where, " AND ")
	table := quote(o.Table)
	if s.add, err = d.prepare(`INSERT INTO ` + table + ` (` + strings.Join(s.cols, ", ") + `) VALUES (?` + strings.Repeat(", ?", len(s.cols)-1) + `)`); err != nil {
		return err
	}
	if s.remove, err = d.prepare(`DELETE FROM ` + table + cond); err != nil {
		return err
	}
	for i, c := range s.cols {
		if !s.isKey(i) {
			sets = append(sets, fmt.Sprintf("%s = ?%d", c, i+1))
		}
	}
	if len(sets) > 0 {
		where = where[:0]
		for i, k := range o.Key {
			where = append(where, fmt.Sprintf("%s IS ?%d", quote(k), len(s.cols)+i+1))
		}
		if s.update, err = d.prepare(`UPDATE ` + table + ` SET ` + strings.Join(sets, ", ") + ` WHERE ` + strings.Join(where, " AND ")); err != nil {
			return err
		}
	}
	s.find, err = d.prepare(`SELECT 1 FROM ` + table + cond + ` LIMIT 1`)
	return err
}

// run binds a, then b, and runs the statement to its end; found tells whether it gave a row.
func (t *tx) run(st *sqlite3.Stmt, a, b []sql.Cell) (found bool, err error) {
	defer st.Reset()
	if err := bind(st, 1, a); err != nil {
		return false, t.rowError(err)
	}
	if err := bind(st, 1+len(a), b); err != nil {
		return false, t.rowError(err)
	}
	found = st.Step()
	for more := found; more; more = st.Step() {
	}
	return found, t.rowError(st.Err())
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
			// BindText copies; BindRawText would make a string of it first.
			err = st.BindText(from+i, unsafe.String(unsafe.SliceData(c.Text), len(c.Text)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
