package sql

import (
	"encoding/binary"

	"github.com/rsetl/rsetl/record"
)

// The row of a dialect with Literals: a byte that tells whether it is plain; for each column of the plan its kind and
// its literal's length in two bytes; the literals with commas between them, one of maxShort bytes or more with its length in
// four bytes before it; then the fields with names of their own.
const (
	plainRow = 1 // all literals are short and good for any column, and there is nothing behind them
	maxShort = 1<<12 - 1
)

// Plain is a row whose literals can go into a statement as they are, but for what a column's type says of a kind.
type Plain struct {
	Text []byte // the literals of the plan's columns, with commas between them
	head []byte
}

// Kind is the kind of the value in column i.
func (p *Plain) Kind(i int) record.Kind { return record.Kind(p.head[2*i+1] >> 4) }

// beginLiterals begins a row, and gives where it begins.
func beginLiterals(dst []byte, columns int) ([]byte, int) {
	at := len(dst)
	dst = append(dst, plainRow)
	for range columns {
		dst = append(dst, 0, 0)
	}
	return dst, at
}

// appendColumn appends the literal of column i of the row that begins at row.
func appendColumn(dst []byte, row, i int, l Literals, b *record.Batch, v record.Value) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	at := len(dst)
	plain := true
	if v.IsNull() {
		dst = append(dst, "NULL"...)
	} else {
		dst, plain = l.AppendLiteral(dst, b, v)
	}
	n := len(dst) - at
	if n >= maxShort {
		plain = false
		dst = append(dst, 0, 0, 0, 0)
		copy(dst[at+4:], dst[at:at+n])
		binary.LittleEndian.PutUint32(dst[at:], uint32(n))
		n = maxShort
	}
	if !plain {
		dst[row] = 0
	}
	binary.LittleEndian.PutUint16(dst[row+1+2*i:], uint16(v.Kind())<<12|uint16(n))
	return dst
}

// expandLiterals makes the cells of the plan's columns, and gives what follows them.
func (r *Row) expandLiterals() (rest []byte) {
	if len(r.data) == 0 {
		return nil
	}
	head, rest := r.data[1:1+2*r.columns], r.data[1+2*r.columns:]
	for i := range r.columns {
		if i > 0 {
			rest = rest[1:]
		}
		h := binary.LittleEndian.Uint16(head[2*i:])
		n := int(h & maxShort)
		if n == maxShort {
			n = int(binary.LittleEndian.Uint32(rest))
			rest = rest[4:]
		}
		c := r.cell()
		c.Kind, c.Text = record.Kind(h>>12), rest[:n]
		if c.IsNull() {
			c.Text = nil
		}
		rest = rest[n:]
	}
	return rest
}

// appendLiteral appends the value of a field with a name of its own: its kind, the literal's length and the literal.
func appendLiteral(dst []byte, l Literals, b *record.Batch, v record.Value) []byte {
	dst = append(dst, byte(v.Kind()))
	if v.IsNull() {
		return dst
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst, _ = l.AppendLiteral(dst, b, v)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// nextLiteral is next for what appendLiteral has encoded.
func nextLiteral(row []byte, c *Cell) []byte {
	c.Kind, c.Text = record.Kind(row[0]), nil
	row = row[1:]
	if c.IsNull() {
		return row
	}
	n := binary.LittleEndian.Uint32(row)
	c.Text = row[4 : 4+n]
	return row[4+n:]
}
