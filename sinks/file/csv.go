package file

import (
	"bytes"

	"github.com/rsetl/rsetl/record"
)

// CSV as in RFC 4180, with a line feed alone at the end of a row, as tools on
// Unix write and expect it.

func appendHeader(dst []byte, names []string) []byte {
	for i, n := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, []byte(n))
	}
	return append(dst, '\n')
}

// appendRow appends the values as one row. cell is scratch memory and given back.
func appendRow(dst []byte, b *record.Batch, values []record.Value, cell []byte) (row, scratch []byte) {
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		switch v.Kind() {
		case record.Missing, record.Null:
			if len(values) == 1 {
				dst = append(dst, '"', '"') // an empty line would be no row
			}
		case record.String:
			dst = appendCell(dst, b.Bytes(v))
		case record.Array, record.Map:
			cell = b.AppendPlain(cell[:0], v)
			dst = appendCell(dst, cell)
		default:
			dst = b.AppendPlain(dst, v) // has none of the special characters
		}
	}
	return append(dst, '\n'), cell
}

func appendCell(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, ",\"\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for {
		q := bytes.IndexByte(text, '"')
		if q < 0 {
			break
		}
		dst = append(append(dst, text[:q+1]...), '"')
		text = text[q+1:]
	}
	dst = append(dst, text...)
	return append(dst, '"')
}
