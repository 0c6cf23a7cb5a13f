package mysql

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// stmtBytes is where a statement ends: some hundred rows.
const stmtBytes = 128_000

// largeRow is from where on a row goes as a prepared statement's parameters, which the server takes piece by piece and as they are.
const largeRow = 1 << 20

// packetRest is what a packet needs beside a large value.
const packetRest = 4096

// tx is one transaction on one connection.
type tx struct {
	s    *Store
	ctx  context.Context
	conn *stdsql.Conn

	stale bool // the session's limits are to be read anew: it keeps those that it began with
}

// begin opens a transaction; end must be called.
func (s *Store) begin(ctx context.Context) (*tx, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &tx{s: s, ctx: ctx, conn: conn}
	if err := t.exec("START TRANSACTION"); err != nil {
		t.drop()
		return nil, err
	}
	return t, nil
}

func (t *tx) exec(text string) error {
	_, err := t.conn.ExecContext(t.ctx, text)
	return err
}

// count executes a statement and gives how many rows it found.
func (t *tx) count(text string, args ...any) (int64, error) {
	res, err := t.conn.ExecContext(t.ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

const rollbackTimeout = 5 * time.Second

// end rolls back where commit was not called, and gives the connection back.
func (t *tx) end() {
	if t.conn == nil {
		return
	}
	if t.stale || t.ctx.Err() != nil {
		t.drop()
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, rollbackTimeout)
	defer cancel()
	if _, err := t.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		t.drop()
		return
	}
	t.conn.Close()
	t.conn = nil
}

// drop closes the connection.
func (t *tx) drop() {
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	t.conn.Close()
	t.conn = nil
}

// commit makes the transaction durable. An error doesn't tell whether it is.
func (t *tx) commit() error {
	if err := t.exec("COMMIT"); err != nil {
		t.drop()
		return err
	}
	t.conn.Close()
	t.conn = nil
	return nil
}

// finish commits, where the leases are still ours.
func (t *tx) finish(leases ...*lease) error {
	for _, l := range leases {
		if err := l.alive(); err != nil {
			return err
		}
	}
	err := t.commit()
	if err != nil {
		for _, l := range leases {
			l.doubtful()
		}
	}
	return err
}

// cell is a value of a row: NULL, a number, a text or any bytes.
type cell struct {
	kind byte // 0, 'i', 't', 'b'
	n    int64
	b    []byte
}

func intCell(n int64) cell   { return cell{kind: 'i', n: n} }
func textCell(b []byte) cell { return cell{kind: 't', b: b} }
func blobCell(b []byte) cell { return cell{kind: 'b', b: b} }

func (c *cell) appendTo(dst []byte) []byte {
	switch c.kind {
	case 'i':
		return strconv.AppendInt(dst, c.n, 10)
	case 't':
		return appendQuoted(dst, c.b)
	case 'b':
		return appendBlob(dst, c.b)
	}
	return append(dst, "NULL"...)
}

func (c *cell) arg() any {
	switch c.kind {
	case 'i':
		return c.n
	case 't':
		return string(c.b) // MySQL takes no binary string as JSON
	case 'b':
		if c.b == nil {
			return []byte{}
		}
		return c.b
	}
	return nil
}

func appendBlob(dst, b []byte) []byte { return appendQuoted(append(dst, "_binary"...), b) }

// appendQuoted is right in the session's sql_mode: backslashes are none.
func appendQuoted(dst, b []byte) []byte {
	dst = append(dst, '\'')
	for {
		i := bytes.IndexByte(b, '\'')
		if i < 0 {
			return append(append(dst, b...), '\'')
		}
		dst = append(append(dst, b[:i+1]...), '\'')
		b = b[i+1:]
	}
}

// list is a statement with a list that may be long, executed in pieces: head, elements with commas, tail.
type list struct {
	t          *tx
	head, tail string
	buf        []byte
	n          int
	max        int // elements of a piece; 0: as many as fit
}

// next begins an element.
func (l *list) next() {
	if l.n++; l.n == 1 {
		l.buf = append(l.buf[:0], l.head...)
	} else {
		l.buf = append(l.buf, ',')
	}
}

// full executes what there is where no more should go in.
func (l *list) full() error {
	if len(l.buf) < l.t.s.o.stmtBytes && (l.max == 0 || l.n < l.max) {
		return nil
	}
	return l.flush()
}

func (l *list) flush() error {
	if l.n == 0 {
		return nil
	}
	l.n = 0
	l.buf = append(l.buf, l.tail...)
	return l.t.exec(unsafe.String(unsafe.SliceData(l.buf), len(l.buf))) // the driver keeps nothing of it
}

// blob adds an element.
func (l *list) blob(b []byte) error {
	l.next()
	l.buf = appendBlob(l.buf, b)
	return l.full()
}

// row adds a row.
func (l *list) row(cells []cell) error {
	size := 0
	for i := range cells {
		size += len(cells[i].b)
	}
	if size >= largeRow {
		if err := l.flush(); err != nil {
			return err
		}
		return l.large(cells)
	}
	l.next()
	for i := range cells {
		if i == 0 {
			l.buf = append(l.buf, '(')
		} else {
			l.buf = append(l.buf, ',')
		}
		l.buf = cells[i].appendTo(l.buf)
	}
	l.buf = append(l.buf, ')')
	return l.full()
}

// large writes one row as parameters.
func (l *list) large(cells []cell) error {
	t := l.t
	var packet int
	if err := t.conn.QueryRowContext(t.ctx, "SELECT @@max_allowed_packet").Scan(&packet); err != nil {
		return err
	}
	args := make([]any, len(cells))
	for i := range cells {
		if n := len(cells[i].b); n > packet-packetRest {
			t.stale = true
			t.s.db.SetMaxIdleConns(0)
			t.s.db.SetMaxIdleConns(maxIdle)
			return fmt.Errorf("an entry has a value of %d bytes, and the server's max_allowed_packet is %d: raise it to %d or more, it goes on by itself", n, packet, n+packetRest)
		}
		args[i] = cells[i].arg()
	}
	stmt, err := t.conn.PrepareContext(t.ctx, l.head+"("+strings.TrimSuffix(strings.Repeat("?,", len(cells)), ",")+")"+l.tail)
	if err != nil {
		return err
	}
	defer stmt.Close()
	_, err = stmt.ExecContext(t.ctx, args...)
	return err
}
