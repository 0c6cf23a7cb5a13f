package sql

import (
	"encoding/base64"
	"encoding/binary"
	"math"

	"github.com/rsetl/rsetl/record"
)

// Cell is one column's value in an encoded row. Text, Bytes and JSON point into it.
type Cell struct {
	Kind record.Kind
	Int  int64   // Int, Bool (0 or 1)
	F    float64 // Float
	// Text is what String and Bytes hold; everything else as text: Decimal, times (RFC 3339 in UTC), arrays and maps
	// (JSON). Where the dialect has Literals, it is the literal of each value, and Int and F are not used.
	Text []byte
}

// IsNull tells whether the cell is NULL in SQL.
func (c *Cell) IsNull() bool { return c.Kind <= record.Null }

func appendText(dst, s []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// appendValue encodes a value: its kind, then a varint, eight bytes, or a text with its length before it.
func appendValue(dst []byte, b *record.Batch, v record.Value) []byte {
	dst = append(dst, byte(v.Kind()))
	switch v.Kind() {
	case record.Missing, record.Null:
		return dst
	case record.Bool, record.Int:
		return binary.AppendVarint(dst, v.Int())
	case record.Float:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Float()))
	case record.String, record.Bytes:
		return appendText(dst, b.Bytes(v))
	}
	// The length is written in front of a text that is made in place: four bytes hold it.
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = b.AppendPlain(dst, v)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// next decodes the cell at the start of row and gives what follows. Rows are our own: they are whole.
func next(row []byte, c *Cell) []byte {
	c.Kind = record.Kind(row[0])
	row = row[1:]
	c.Text = nil
	switch c.Kind {
	case record.Missing, record.Null:
	case record.Bool, record.Int:
		v, n := binary.Varint(row)
		c.Int, row = v, row[n:]
	case record.Float:
		c.F, row = math.Float64frombits(binary.LittleEndian.Uint64(row)), row[8:]
	case record.String, record.Bytes:
		c.Text, row = nextText(row)
	default:
		n := binary.LittleEndian.Uint32(row)
		c.Text, row = row[4:4+n], row[4+n:]
	}
	return row
}

func nextText(row []byte) (text, rest []byte) {
	l, n := binary.Uvarint(row)
	return row[n : n+int(l)], row[n+int(l):]
}

// Row is one decoded row: the cells of the plan's columns, then fields with names of their own.
type Row struct {
	Cells []Cell
	Names [][]byte // of Cells[len(columns):]
	Plain *Plain   // of a dialect with Literals: nil where the row must be looked at cell by cell

	literals bool
	columns  int
	data     []byte
	plain    Plain
}

// Decode takes an encoded row of so many columns of the plan apart. It reuses r's memory; the texts point into data.
// Where Plain is set there are no cells before Expand.
func (r *Row) Decode(data []byte, columns int) {
	r.Cells, r.Names, r.Plain = r.Cells[:0], r.Names[:0], nil
	r.data, r.columns = data, columns
	if r.literals && len(data) > 0 && data[0] == plainRow {
		r.plain = Plain{head: data[1 : 1+2*columns], Text: data[1+2*columns:]}
		r.Plain = &r.plain
		return
	}
	r.Expand()
}

// Expand makes the cells.
func (r *Row) Expand() {
	data := r.data
	if r.literals {
		data = r.expandLiterals()
	}
	for len(data) > 0 {
		if len(r.Cells) >= r.columns {
			var name []byte
			name, data = nextText(data)
			r.Names = append(r.Names, name)
		}
		if r.literals {
			data = nextLiteral(data, r.cell())
		} else {
			data = next(data, r.cell())
		}
	}
}

func (r *Row) cell() *Cell {
	n := len(r.Cells)
	if n == cap(r.Cells) {
		r.Cells = append(r.Cells, Cell{})
	} else {
		r.Cells = r.Cells[:n+1]
	}
	return &r.Cells[n]
}

// appendJSON writes a cell as JSON, for dead letters.
func (c *Cell) appendJSON(dst []byte) []byte {
	switch c.Kind {
	case record.Missing, record.Null:
		return append(dst, "null"...)
	case record.Bool:
		if c.Int != 0 {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case record.Int:
		return appendInt(dst, c.Int)
	case record.Float:
		return record.AppendFloat(dst, c.F)
	case record.Decimal, record.Array, record.Map:
		return append(dst, c.Text...)
	case record.Bytes:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), c.Text)
		return append(dst, '"')
	}
	return record.AppendJSONString(dst, c.Text)
}
