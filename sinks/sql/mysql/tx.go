package mysql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
	"github.com/rsetl/rsetl/state"
)

// tx is the dialect's one transaction. Rows are collected as statements and written by Flush, so that
// columns can be added before the transaction has a lock on the table.
type tx struct {
	d    *dialect
	ctx  context.Context
	open bool
	key  []byte // scratch

	buf      []byte // the statements
	ends     []int  // of the rows in buf
	ops      []op
	rows     int // inserted so far
	ddls     int // as they were at Begin
	advances []advance
	refused  []sql.Refused
	careful  bool // each statement has a savepoint
	scratch  []byte
}

// op is one statement of rows, or one row whose key holds NULL.
type op struct {
	stmt       *stmt
	start      int // in buf: the prefix, the rows with commas, the suffix
	first, end int // its rows in ends
	row        int // the number of its first row
	null       *nullKey
}

type advance struct {
	split *record.Split
	old   sql.Stored
	ok    bool
	to    record.Position
}

func (d *dialect) Begin(ctx context.Context) (sql.Tx, error) {
	t := &d.tx
	for again := false; ; again = true {
		if d.conn == nil {
			if err := d.Open(ctx, d.t, d.env); err != nil {
				return nil, err
			}
		}
		_, err := d.conn.ExecContext(ctx, `START TRANSACTION`)
		if err == nil {
			break
		}
		d.Close()
		if again || !lost(err) || ctx.Err() != nil { // one that was idle for long may be gone without a word
			return nil, d.wrap("begin", err)
		}
	}
	t.d, t.ctx, t.open, t.careful, t.rows = d, ctx, true, false, 0
	t.buf, t.ends, t.ops, t.advances, t.refused = t.buf[:0], t.ends[:0], t.ops[:0], t.advances[:0], t.refused[:0]
	d.stale, t.ddls = true, d.ddls
	return t, nil
}

// fail gives the error; a connection that it leaves in doubt is closed.
func (t *tx) fail(what string, err error) error {
	if err == nil {
		return nil
	}
	if n := mysqlconn.Number(err); n != erLockDeadlock && n != erLockWait {
		t.open = false
		t.d.Close()
	}
	return t.d.wrap(what, err)
}

func (t *tx) Commit() error {
	_, err := t.d.conn.ExecContext(t.ctx, `COMMIT`)
	if err != nil {
		return t.fail("commit", err)
	}
	t.open = false
	return nil
}

const rollbackTimeout = 5 * time.Second

func (t *tx) Rollback() {
	if !t.open {
		return
	}
	t.open = false
	if t.d.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), rollbackTimeout)
	defer cancel()
	if _, err := t.d.conn.ExecContext(ctx, `ROLLBACK`); err != nil {
		t.d.Close() // Begin opens it again
	}
}

func (t *tx) Position(split string) (p sql.Stored, ok bool, err error) {
	rows, err := t.d.conn.QueryContext(t.ctx, `SELECT epoch, pos, idx, recent FROM rsetl_positions WHERE pipeline = ? AND sink = ? AND split = ?`,
		t.d.env.Pipeline, t.d.env.Name, split)
	if err != nil {
		return p, false, t.fail("read the position", err)
	}
	defer rows.Close()
	if rows.Next() {
		ok = true
		err = rows.Scan(&p.Epoch, &p.Offset, &p.Index, &p.Recent)
	}
	return p, ok, t.fail("read the position", errors.Join(err, rows.Err()))
}

func (t *tx) Advance(split *record.Split, old sql.Stored, ok bool, to record.Position) error {
	t.advances = append(t.advances, advance{split, old, ok, to})
	return nil
}

func (t *tx) advance(a *advance) error {
	d, split := t.d, a.split
	if !a.ok {
		_, err := d.conn.ExecContext(t.ctx, `INSERT INTO rsetl_positions (pipeline, sink, split, epoch, pos, idx, recent, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			d.env.Pipeline, d.env.Name, split.ID, split.Epoch, a.to.Offset, a.to.Index, format(a.to), strings.ToValidUTF8(split.Path, "\uFFFD"))
		if mysqlconn.Number(err) == erDupEntry {
			return fmt.Errorf("split %s (%s): %w", split.ID, split.Path, sql.ErrFenced)
		}
		return t.fail("store the position", err)
	}
	recent := strings.Fields(a.old.Recent)
	epoch := max(a.old.Epoch, split.Epoch)
	if a.old.Epoch != epoch {
		recent = nil
	}
	recent = append(recent, format(a.to))
	if len(recent) > state.Keep {
		recent = recent[len(recent)-state.Keep:]
	}
	res, err := d.conn.ExecContext(t.ctx, `UPDATE rsetl_positions SET epoch = ?, pos = ?, idx = ?, recent = ? WHERE pipeline = ? AND sink = ? AND split = ? AND epoch = ? AND pos = ? AND idx = ?`,
		epoch, a.to.Offset, a.to.Index, strings.Join(recent, " "), d.env.Pipeline, d.env.Name, split.ID, a.old.Epoch, a.old.Offset, a.old.Index)
	if err != nil {
		return t.fail("store the position", err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("split %s (%s): %w", split.ID, split.Path, sql.ErrFenced)
	}
	return nil
}

func format(p record.Position) string {
	return strconv.FormatInt(p.Offset, 10) + "/" + strconv.FormatInt(int64(p.Index), 10)
}

func (t *tx) Insert(r *sql.Row) error {
	s := t.d.plain
	asIs := r.Plain != nil && s.takes(r.Plain)
	if !asIs {
		if r.Plain != nil {
			r.Expand()
		}
		var err error
		if s, err = t.shape(r); err != nil {
			return err
		}
		if s.err != nil {
			return s.err
		}
		if t.d.t.Options.Mode != "insert" && s.nullKey(r) {
			null, err := t.d.newNullKey(s, r)
			if err != nil {
				return err
			}
			t.ops = append(t.ops, op{null: null, row: t.rows})
			t.rows++
			return nil
		}
	}
	var o *op
	if n := len(t.ops); n > 0 && t.ops[n-1].stmt == s.stmt {
		o = &t.ops[n-1]
	}
	begun := len(t.buf)
	for {
		if o == nil {
			t.buf = append(t.buf, s.stmt.prefix...)
		} else {
			t.buf = append(t.buf, ',')
		}
		if asIs {
			t.buf = append(append(append(t.buf, '('), r.Plain.Text...), ')')
		} else {
			var err error
			if t.buf, err = appendRow(t.buf, s, r, t.d); err != nil {
				t.buf = t.buf[:begun]
				return err
			}
		}
		if o == nil || len(t.buf)-o.start+len(s.stmt.suffix) <= t.d.maxStmt {
			break
		}
		o, t.buf = nil, t.buf[:begun] // the statement is full
	}
	if most := t.d.maxPacket - 4096; o == nil && len(t.buf)-begun+len(s.stmt.suffix) > most {
		n := len(t.buf) - begun
		t.buf = t.buf[:begun]
		return &sql.RowError{Reason: fmt.Sprintf("the row has %d bytes as SQL, more than the server's max_allowed_packet of %d takes", n, t.d.maxPacket)}
	}
	if o == nil {
		t.ops = append(t.ops, op{stmt: s.stmt, start: begun, first: len(t.ends), row: t.rows})
		o = &t.ops[len(t.ops)-1]
	}
	t.ends = append(t.ends, len(t.buf))
	o.end = len(t.ends)
	t.rows++
	return nil
}

// appendRow appends the row in parentheses.
func appendRow(dst []byte, s *shape, r *sql.Row, d *dialect) ([]byte, error) {
	var err error
	for i, cell := range s.cells {
		if i == 0 {
			dst = append(dst, '(')
		} else {
			dst = append(dst, ',')
		}
		if cell < 0 {
			dst = append(dst, "DEFAULT"...)
			continue
		}
		if dst, err = appendCell(dst, &r.Cells[cell], s.as[i]); err != nil {
			return dst, &sql.RowError{Reason: fmt.Sprintf("column %s: %v", d.table[s.stmt.cols[i]].name, err)}
		}
	}
	return append(dst, ')'), nil
}

// errCareful: a statement went through with a warning that means a change of values.
var errCareful = errors.New("a value was changed")

// Flush writes the statements and the positions. What a warning tells is known when its rows are in, so all is
// rolled back then and written again with savepoints.
func (t *tx) Flush() ([]sql.Refused, error) {
	if t.d.ddls != t.ddls { // the snapshot of before doesn't know the table as it is now
		if err := t.restart(); err != nil {
			return nil, err
		}
	}
	err := t.flush()
	if errors.Is(err, errCareful) {
		if err := t.restart(); err != nil {
			return nil, err
		}
		t.careful, t.refused = true, t.refused[:0]
		err = t.flush()
	}
	return t.refused, err
}

// restart begins the transaction anew. The positions that were read are compared when they are moved.
func (t *tx) restart() error {
	if _, err := t.d.conn.ExecContext(t.ctx, `ROLLBACK`); err != nil {
		return t.fail("roll back", err)
	}
	_, err := t.d.conn.ExecContext(t.ctx, `START TRANSACTION`)
	return t.fail("begin", err)
}

func (t *tx) flush() error {
	for i := range t.ops {
		o := &t.ops[i]
		var err error
		if o.null != nil {
			err = t.writeNullKey(o)
		} else {
			err = t.write(o, o.first, o.end)
		}
		if err != nil {
			return err
		}
	}
	for i := range t.advances {
		if err := t.advance(&t.advances[i]); err != nil {
			return err
		}
	}
	return nil
}

// write writes rows [from, to) of a statement; where it is refused, its halves.
func (t *tx) write(o *op, from, to int) error {
	text := t.buf[o.start:t.ends[to-1]]
	if from > o.first || o.stmt.suffix != "" {
		t.scratch = append(t.scratch[:0], o.stmt.prefix...)
		begin := o.start + len(o.stmt.prefix)
		if from > o.first {
			begin = t.ends[from-1] + 1 // behind the comma
		}
		t.scratch = append(append(t.scratch, t.buf[begin:t.ends[to-1]]...), o.stmt.suffix...)
		text = t.scratch
	}
	reason, err := t.try(text)
	if err != nil || reason == "" {
		return err
	}
	if to-from == 1 {
		t.refused = append(t.refused, sql.Refused{Row: o.row + from - o.first, Reason: reason})
		return nil
	}
	mid := (from + to) / 2
	if err := t.write(o, from, mid); err != nil {
		return err
	}
	return t.write(o, mid, to)
}

// try runs a statement. reason is why its content is refused; nothing of it is written then.
func (t *tx) try(text []byte) (reason string, err error) {
	if t.careful {
		if err := t.exec(`SAVEPOINT rsetl`); err != nil {
			return "", err
		}
	}
	// The driver copies the text and keeps nothing of it.
	_, err = t.d.conn.ExecContext(t.ctx, unsafe.String(unsafe.SliceData(text), len(text)))
	if err != nil {
		if reason, ok := refusal(err); ok {
			return reason, nil // InnoDB has undone the statement alone
		}
		return "", t.fail("write to "+t.d.t.Options.Table, err)
	}
	reason, err = t.warnings()
	if err != nil || reason == "" {
		return "", err
	}
	if !t.careful {
		return "", errCareful
	}
	return reason, t.exec(`ROLLBACK TO rsetl`)
}

func (t *tx) exec(text string) error {
	_, err := t.d.conn.ExecContext(t.ctx, text)
	return t.fail("write to "+t.d.t.Options.Table, err)
}

// warnings gives the first warning of the last statement that means a change of values.
func (t *tx) warnings() (string, error) {
	rows, err := t.d.conn.QueryContext(t.ctx, `SHOW WARNINGS`)
	if err != nil {
		return "", t.fail("read warnings", err)
	}
	defer rows.Close()
	text := ""
	for rows.Next() {
		var level, message string
		var code uint16
		if err := rows.Scan(&level, &code, &message); err != nil {
			return "", t.fail("read warnings", err)
		}
		if text == "" && !harmless[code] {
			text = fmt.Sprintf("%s (warning %d)", message, code)
		}
	}
	return text, t.fail("read warnings", rows.Err())
}

// reason is what the server says.
func reason(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

var (
	_ sql.Tx      = (*tx)(nil)
	_ sql.Flusher = (*tx)(nil)
)
