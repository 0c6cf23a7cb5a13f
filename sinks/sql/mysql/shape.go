package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
)

// stmt is the text around the rows of a multi-row statement.
type stmt struct {
	prefix, suffix string
	cols           []int // the table's columns that it names
}

// shape is what rows with the same fields share. It is good until the table's columns change.
type shape struct {
	names string        // the fields of their own, each with a zero byte behind
	err   *sql.RowError // no such row can go
	stmt  *stmt
	cells []int // for each column of stmt: the row's cell, -1 where it has none
	as    []class
	// unlike are, for each column of the plan, the kinds that keep a plain row from going as it is; nil: all do.
	unlike []uint32
	keys   []int // for each column of the key: its cell, -1 where the rows have none
}

// maxShapes bounds what is remembered of kinds of rows.
const maxShapes = 1024

func (d *dialect) forget() {
	clear(d.shapes)
	clear(d.stmts)
	d.plain, d.last = nil, nil
}

// shape gives the row's shape, and adds the columns that it needs.
func (t *tx) shape(r *sql.Row) (*shape, error) {
	d := t.d
	for i, at := range d.in {
		if at < 0 && !r.Cells[i].IsNull() { // a column of the plan that comes with its first value
			if err := d.grow(t.ctx, r); err != nil {
				return nil, err
			}
			break
		}
	}
	if len(r.Names) == 0 {
		if d.plain == nil {
			s, err := d.newShape(t.ctx, r)
			if err != nil {
				return nil, err
			}
			d.plain = s
		}
		return d.plain, nil
	}
	t.key = t.key[:0]
	for i, n := range r.Names {
		if r.Cells[len(d.in)+i].IsNull() {
			t.key = append(t.key, 1) // NULL makes no column
		}
		t.key = append(append(t.key, n...), 0)
	}
	if s := d.last; s != nil && s.names == string(t.key) && s.err == nil {
		return s, nil
	}
	s, ok := d.shapes[string(t.key)]
	if !ok || s.err != nil && d.stale && !d.t.Options.CreateTable { // someone may have added the column since

		var err error
		if s, err = d.newShape(t.ctx, r); err != nil {
			return nil, err
		}
		if len(d.shapes) >= maxShapes {
			clear(d.shapes)
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

// grow makes the columns that the row needs and the table doesn't have. A *sql.RowError means that it can't have them.
func (d *dialect) grow(ctx context.Context, r *sql.Row) error {
	o := d.t.Options
	missing := func(i int) (name string, yes bool) {
		if i < len(d.in) {
			name = d.t.Columns[i].Name
		} else {
			name = string(r.Names[i-len(d.in)])
		}
		_, there := d.index[strings.ToLower(name)]
		return name, !there && !r.Cells[i].IsNull()
	}
	if len(d.table) == 0 {
		if err := d.create(ctx, r); err != nil {
			return err
		}
		if len(d.table) == 0 {
			return nil
		}
		if err := d.checkKey(ctx); err != nil {
			return err
		}
	}
	added := 0
	for i := 0; i < len(r.Cells); i++ {
		name, yes := missing(i)
		if !yes {
			continue
		}
		if !o.CreateTable {
			if d.stale {
				if err := d.readTable(ctx); err != nil {
					return err
				}
				if _, yes = missing(i); !yes {
					continue
				}
			}
			return &sql.RowError{Reason: fmt.Sprintf("table %s has no column %q", o.Table, name)}
		}
		isKey := slices.ContainsFunc(o.Key, func(k string) bool { return strings.EqualFold(k, name) })
		if err := d.addColumn(ctx, name, d.valueType(&r.Cells[i], isKey)); err != nil {
			switch mysqlconn.Number(err) {
			case 1059, 1166, 1117, 1118, 1300, 1103, 1064, 1110: // a name or a number of columns that can't be
				return &sql.RowError{Reason: fmt.Sprintf("add column %.64q: %v", name, reason(err))}
			}
			return err
		}
		// The table was read anew: what was there before may be gone.
		if added++; added > 2*len(r.Cells)+10 {
			return fmt.Errorf("the columns of table %s change all the time; does another program drop them?", o.Table)
		}
		i = -1
	}
	return nil
}

func (d *dialect) newShape(ctx context.Context, r *sql.Row) (*shape, error) {
	s := &shape{}
	seen := map[string]string{}
	for _, c := range d.t.Columns {
		seen[strings.ToLower(c.Name)] = c.Name
	}
	for _, n := range r.Names {
		name := string(n)
		if why := columnName(name); why != "" {
			s.err = &sql.RowError{Reason: why}
			return s, nil
		}
		if other, dup := seen[strings.ToLower(name)]; dup {
			s.err = &sql.RowError{Reason: fmt.Sprintf("fields %q and %q are one column to MySQL", other, name)}
			return s, nil
		}
		seen[strings.ToLower(name)] = name
	}
	if err := d.grow(ctx, r); err != nil {
		if !errors.As(err, &s.err) {
			return nil, err
		}
		return s, nil
	}
	cell := map[int]int{} // by column of the table
	var cols []int
	for i, at := range d.in {
		if at >= 0 {
			cell[at] = i
			cols = append(cols, at)
		}
	}
	for i, n := range r.Names {
		low := strings.ToLower(string(n))
		at, ok := d.index[low]
		if !ok {
			continue // NULL
		}
		cell[at] = len(d.in) + i
		if !slices.Contains(d.dyn, low) {
			d.dyn = append(d.dyn, low)
			d.forget() // rows of all shapes go on with a statement that has this column
		}
		if d.t.Options.Mode == "upsert" {
			cols = append(cols, at) // a field that a row doesn't have is left as it is
		}
	}
	if d.t.Options.Mode != "upsert" {
		// Rows with different fields share a statement.
		for _, low := range d.dyn {
			if at, ok := d.index[low]; ok && !slices.Contains(cols, at) {
				cols = append(cols, at)
			}
		}
	}
	if len(cell) == 0 {
		s.err = &sql.RowError{Reason: "the record has no field with a value"}
		return s, nil
	}
	slices.Sort(cols[d.planned():])
	for _, at := range cols {
		i, ok := cell[at]
		if !ok {
			i = -1
		}
		s.cells = append(s.cells, i)
		s.as = append(s.as, d.table[at].as)
	}
	for _, k := range d.t.Options.Key {
		i := -1
		if at, ok := d.index[strings.ToLower(k)]; ok {
			if c, ok := cell[at]; ok {
				i = c
			}
		}
		s.keys = append(s.keys, i)
	}
	s.stmt = d.statement(cols)
	s.plainRows(d)
	return s, nil
}

// plainRows makes unlike, where the statement has just the plan's columns.
func (s *shape) plainRows(d *dialect) {
	if len(s.cells) != len(d.in) {
		return
	}
	for i, cell := range s.cells {
		if cell != i {
			return
		}
		s.unlike = append(s.unlike, unlike(s.as[i]))
	}
	if d.t.Options.Mode == "insert" {
		return
	}
	for _, k := range s.keys {
		if k < 0 {
			s.unlike = nil
			return
		}
		s.unlike[k] |= 1<<record.Missing | 1<<record.Null
	}
}

// takes tells whether a plain row can go as it is.
func (s *shape) takes(p *sql.Plain) bool {
	if s == nil || s.unlike == nil || s.err != nil {
		return false
	}
	for i, no := range s.unlike {
		if no>>p.Kind(i)&1 != 0 {
			return false
		}
	}
	return true
}

// planned is how many of the plan's columns are in the table.
func (d *dialect) planned() int {
	n := 0
	for _, at := range d.in {
		if at >= 0 {
			n++
		}
	}
	return n
}

// statement gives the statement for those columns.
func (d *dialect) statement(cols []int) *stmt {
	o := d.t.Options
	var names, sets []string
	for _, at := range cols {
		n := quote(d.table[at].name)
		names = append(names, n)
		if !slices.ContainsFunc(o.Key, func(k string) bool { return strings.EqualFold(k, d.table[at].name) }) {
			sets = append(sets, n+" = VALUES("+n+")")
		}
	}
	verb := "INSERT INTO "
	if o.Mode == "replace" {
		verb = "REPLACE INTO "
	}
	s := &stmt{prefix: verb + quote(o.Table) + " (" + strings.Join(names, ", ") + ") VALUES ", cols: cols}
	switch {
	case o.Mode == "upsert" && len(sets) > 0:
		s.suffix = " ON DUPLICATE KEY UPDATE " + strings.Join(sets, ", ")
	case o.Mode == "upsert" || o.Mode == "ignore":
		// INSERT IGNORE would also ignore what doesn't fit.
		s.suffix = " ON DUPLICATE KEY UPDATE " + quote(o.Key[0]) + " = " + quote(o.Table) + "." + quote(o.Key[0])
	}
	key := s.prefix + s.suffix
	if old, ok := d.stmts[key]; ok {
		return old
	}
	if d.stmts == nil {
		d.stmts = map[string]*stmt{}
	}
	if len(d.stmts) >= maxShapes {
		clear(d.stmts)
	}
	d.stmts[key] = s
	return s
}
