package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/state"
)

// tx is the dialect's one transaction.
type tx struct {
	d    *dialect
	open bool
	key  []byte     // scratch
	keys []sql.Cell // scratch
}

func (d *dialect) Begin(ctx context.Context) (sql.Tx, error) {
	if d.c != nil {
		// SQLite would go on writing to a file that was removed or replaced.
		if now, err := os.Stat(d.path); err != nil || !os.SameFile(now, d.file) {
			d.env.Log.Warn("the database file was replaced or removed; it is opened anew", "path", d.path)
			d.Close()
		}
	}
	if d.c == nil {
		if err := d.Open(ctx, d.t, d.env); err != nil {
			return nil, err
		}
	}
	d.c.SetInterrupt(ctx)
	err := d.exec(`BEGIN IMMEDIATE`)
	if err == nil {
		d.tx.d, d.tx.open = d, true
		if err = d.readSchema(false); err == nil && len(d.cols) == 0 && !d.t.Options.CreateTable {
			err = fmt.Errorf("%s: the table %s is gone", d.path, d.t.Options.Table)
		}
		if err == nil {
			return &d.tx, nil
		}
		d.tx.Rollback()
		return nil, err
	}
	d.c.SetInterrupt(context.Background())
	return nil, err
}

func (t *tx) Commit() error {
	err := t.d.exec(`COMMIT`)
	if err == nil {
		t.open = false
		t.d.c.SetInterrupt(context.Background())
	}
	return err
}

// Rollback undoes what is not committed. Columns that were added in it are gone too.
func (t *tx) Rollback() {
	d := t.d
	if !t.open {
		return
	}
	t.open = false
	if d.c == nil {
		return
	}
	d.c.SetInterrupt(context.Background())
	d.forget()
	d.schema = -1
	if !d.c.GetAutocommit() && d.exec(`ROLLBACK`) != nil {
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
	epoch := max(old.Epoch, split.Epoch)
	if old.Epoch != epoch {
		recent = nil
	}
	recent = append(recent, format(to))
	if len(recent) > state.Keep {
		recent = recent[len(recent)-state.Keep:]
	}
	st.BindInt64(1, epoch)
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

func (t *tx) Insert(r *sql.Row) error {
	s, err := t.shape(r)
	if err != nil {
		return err
	}
	if s.err != nil {
		return s.err
	}
	if len(s.keys) > 0 && t.d.t.Options.Mode != "insert" && s.nullKey(r) {
		return t.insertNullKey(s, r)
	}
	if err := bind(s.ins, 1, r.Cells); err != nil {
		return t.rowError(err)
	}
	if err := s.ins.Exec(); err != nil {
		return t.rowError(err)
	}
	return nil
}

// rowError tells what is wrong with the row from what is wrong with the database.
func (t *tx) rowError(err error) error {
	if err == nil {
		return nil
	}
	switch errCode(err) {
	case sqlite3.CONSTRAINT, sqlite3.MISMATCH, sqlite3.TOOBIG, sqlite3.RANGE:
		if t.d.c.GetAutocommit() {
			return fmt.Errorf("%s: a trigger or ON CONFLICT ROLLBACK of table %s has rolled back the whole transaction; let it abort the statement only: %w", t.d.path, t.d.t.Options.Table, err)
		}
		return &sql.RowError{Reason: reason(err)}
	}
	return t.d.wrap(err)
}

// reason is what SQLite says.
func reason(err error) string {
	var e *sqlite3.Error
	if errors.As(err, &e) {
		err = e
	}
	return strings.TrimPrefix(err.Error(), "sqlite3: ")
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
