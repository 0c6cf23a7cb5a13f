package stdout

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// Table prints aligned columns. Fields that the plan doesn't know are shown as JSON in a last column.
type Table struct {
	out    io.Writer
	names  []string
	slots  []int
	open   bool
	widths []int
	more   bool // the first chunk had unknown fields
	buf    []byte
	ready  bool // buf holds the chunk at hand, printed up to done
	done   int
}

// maxWidth is the widest a column is made; longer values stick out.
const maxWidth = 60

// Encode appends the cells, each with its length before it.
func (t *Table) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	var text []byte
	for _, s := range t.slots {
		v := b.Get(i, s)
		text = text[:0]
		switch v.Kind() {
		case record.Missing:
		case record.Null:
			text = append(text, "NULL"...)
		default:
			text = b.AppendPlain(text, v)
		}
		dst = appendCell(dst, text)
	}
	if t.open {
		text = text[:0]
		for name, v := range b.Overflow(i) {
			if record.IsMeta(string(b.Bytes(name))) {
				continue
			}
			if len(text) > 0 {
				text = append(text, ' ')
			}
			text = append(text, b.Bytes(name)...)
			text = append(text, '=')
			text = b.AppendJSON(text, v)
		}
		dst = appendCell(dst, text)
	}
	return dst, nil
}

func appendCell(dst, text []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// cells yields a row's cells.
func cells(row []byte, f func(i int, text []byte)) {
	for i := 0; len(row) > 0; i++ {
		n, w := binary.Uvarint(row)
		f(i, row[w:w+int(n)])
		row = row[w+int(n):]
	}
}

// Describe shows a row for a dead letter.
func (t *Table) Describe(dst, row []byte) []byte {
	dst = append(dst, '{')
	cells(row, func(i int, text []byte) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = record.AppendJSONString(dst, []byte(t.head(i)))
		dst = append(dst, ':')
		dst = record.AppendJSONString(dst, text)
	})
	return append(dst, '}')
}

func (t *Table) head(i int) string {
	if i < len(t.names) {
		return t.names[i]
	}
	return "..."
}

// Deliver prints the chunk, the first one below a header. After a failure it goes on where it ended.
func (t *Table) Deliver(_ context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	if !t.ready {
		t.buf = t.render(t.buf[:0], c)
		t.ready, t.done = true, 0
	}
	n, err := t.out.Write(t.buf[t.done:])
	t.done += n
	if err != nil {
		return nil, failure(err)
	}
	t.ready = false
	if cap(t.buf) > 1<<20 {
		t.buf = nil
	}
	return nil, nil
}

func (t *Table) render(dst []byte, c *sinks.Chunk) []byte {
	if t.widths == nil {
		n := len(t.names)
		t.widths = make([]int, n+1)
		for i := range n {
			t.widths[i] = columns(appendVisible(nil, []byte(t.names[i])))
		}
		each(c, func(row []byte) {
			cells(row, func(i int, text []byte) {
				if i == n {
					t.more = t.more || len(text) > 0
				}
				t.widths[i] = max(t.widths[i], min(columns(appendVisible(nil, text)), maxWidth))
			})
		})
		for i, name := range t.names {
			dst = t.cell(dst, i, []byte(name))
		}
		if t.more {
			dst = t.cell(dst, n, []byte("..."))
		}
		dst = endLine(dst)
	}
	each(c, func(row []byte) {
		cells(row, func(i int, text []byte) { dst = t.cell(dst, i, text) })
		dst = endLine(dst)
	})
	return dst
}

func each(c *sinks.Chunk, f func(row []byte)) {
	for i := range c.Parts {
		for k := range c.Parts[i].Ends {
			f(c.Parts[i].Row(k))
		}
	}
}

func (t *Table) cell(dst []byte, i int, text []byte) []byte {
	from := len(dst)
	dst = appendVisible(dst, text)
	for n := columns(dst[from:]); n < t.widths[i]; n++ {
		dst = append(dst, ' ')
	}
	return append(dst, ' ', ' ')
}

func endLine(dst []byte) []byte { return append(bytes.TrimRight(dst, " "), '\n') }

// appendVisible writes text so that it can't steer a terminal: controls, invalid bytes and
// characters that change the direction of writing are shown as escapes.
func appendVisible(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, '\\', 'x', hex[text[0]>>4], hex[text[0]&15])
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < 0x20 || r == 0x7f:
			dst = append(dst, '\\', 'x', hex[r>>4], hex[r&15])
		case r == ' ' || unicode.IsPrint(r):
			dst = append(dst, text[:n]...)
		case r > 0xffff:
			dst = append(dst, '\\', 'U', '0', '0', hex[r>>20&15], hex[r>>16&15], hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = append(dst, '\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		text = text[n:]
	}
	return dst
}

// columns is how many columns of a terminal text takes.
func columns(text []byte) int {
	n := 0
	for len(text) > 0 {
		r, w := utf8.DecodeRune(text)
		text = text[w:]
		switch {
		case r < utf8.RuneSelf:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me):
		default:
			n++
			if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
				n++
			}
		}
	}
	return n
}
