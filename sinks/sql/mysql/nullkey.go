package mysql

import (
	"fmt"
	"strings"

	"github.com/rsetl/rsetl/sinks/sql"
)

// nullKey is a row whose key holds NULL: unique indexes hold such rows apart, people mean the same row. It
// is looked for by `<=>`.
type nullKey struct {
	change string // UPDATE or DELETE; "" where a row that is there stays as it is
	insert string
	always bool // insert in any case, not only where change found nothing
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

func (d *dialect) newNullKey(s *shape, r *sql.Row) (*nullKey, error) {
	o := d.t.Options
	table := quote(o.Table)
	literal := func(cell int, as class) (string, error) {
		if cell < 0 {
			return "NULL", nil
		}
		text, err := appendCell(nil, &r.Cells[cell], as)
		if err != nil {
			return "", &sql.RowError{Reason: err.Error()}
		}
		return string(text), nil
	}
	var names, values, sets, where []string
	for i, at := range s.stmt.cols {
		if s.cells[i] < 0 {
			continue
		}
		v, err := literal(s.cells[i], s.as[i])
		if err != nil {
			return nil, err
		}
		n := quote(d.table[at].name)
		names, values = append(names, n), append(values, v)
		isKey := false
		for _, k := range s.keys {
			isKey = isKey || k == s.cells[i]
		}
		if !isKey {
			sets = append(sets, n+" = "+v)
		}
	}
	for i, k := range o.Key {
		at, ok := d.index[strings.ToLower(k)]
		if !ok {
			return nil, &sql.RowError{Reason: fmt.Sprintf("table %s has no column %s, of the key", o.Table, k)}
		}
		v, err := literal(s.keys[i], d.table[at].as)
		if err != nil {
			return nil, err
		}
		where = append(where, quote(k)+" <=> "+v)
	}
	cond := " WHERE " + strings.Join(where, " AND ")
	cols := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") "
	row := strings.Join(values, ", ")
	out := &nullKey{insert: cols + "VALUES (" + row + ")"}
	switch {
	case o.Mode == "replace":
		out.change, out.always = "DELETE FROM "+table+cond, true
	case o.Mode == "upsert" && len(sets) > 0:
		out.change = "UPDATE " + table + " SET " + strings.Join(sets, ", ") + cond
	default:
		out.insert = cols + "SELECT " + row + " FROM DUAL WHERE NOT EXISTS (SELECT * FROM " + table + cond + ")"
	}
	if n := max(len(out.insert), len(out.change)); n > d.maxPacket-4096 {
		return nil, &sql.RowError{Reason: fmt.Sprintf("the row has %d bytes as SQL, more than the server's max_allowed_packet of %d takes", n, d.maxPacket)}
	}
	return out, nil
}

func (t *tx) writeNullKey(o *op) error {
	if err := t.exec(`SAVEPOINT rsetl_null`); err != nil {
		return err
	}
	run := func(text string) (n int64, reason string, err error) {
		res, err := t.d.conn.ExecContext(t.ctx, text)
		if err != nil {
			if reason, ok := refusal(err); ok {
				return 0, reason, nil
			}
			return 0, "", t.fail("write to "+t.d.t.Options.Table, err)
		}
		n, _ = res.RowsAffected()
		reason, err = t.warnings()
		return n, reason, err
	}
	found, reason, err := int64(0), "", error(nil)
	if o.null.change != "" {
		if found, reason, err = run(o.null.change); err != nil {
			return err
		}
	}
	if reason == "" && (found == 0 || o.null.always) {
		if _, reason, err = run(o.null.insert); err != nil {
			return err
		}
	}
	if reason == "" {
		return nil
	}
	t.refused = append(t.refused, sql.Refused{Row: o.row, Reason: reason})
	return t.exec(`ROLLBACK TO rsetl_null`)
}
