package expr

import (
	"strconv"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

// AppendText appends v as CAST(v AS STRING) gives it; nothing for NULL. b is the
// batch that v belongs to; dst may be b.Buf.
func AppendText(dst []byte, b *record.Batch, v record.Value) []byte {
	return appendText(dst, b, v, nil)
}

// appendText is AppendText for a value of static type t (nil: unknown), which
// tells FLOAT from DOUBLE and rows from arrays.
func appendText(dst []byte, b *record.Batch, v record.Value, t *Type) []byte {
	switch v.Kind() {
	case record.Bool:
		if v.Bool() {
			return append(dst, "TRUE"...)
		}
		return append(dst, "FALSE"...)
	case record.Int:
		return strconv.AppendInt(dst, v.Int(), 10)
	case record.Float:
		if t != nil && t.Kind == TFloat {
			return appendFloat(dst, v.Float(), 32)
		}
		return appendFloat(dst, v.Float(), 64)
	case record.Decimal:
		return appendDecimal(dst, b, v)
	case record.String:
		return append(dst, b.Bytes(v)...)
	case record.Bytes:
		return appendValid(dst, b.Bytes(v))
	case record.Date:
		return appendDate(dst, v.Int())
	case record.Clock:
		return appendClock(dst, v.Int(), v.Digits())
	case record.Time:
		return appendTimestamp(dst, v)
	case record.Months:
		return appendMonths(dst, v.Int())
	case record.Duration:
		return appendDuration(dst, v.Int())
	case record.Array:
		row := t != nil && t.Kind == TRow
		open, end := byte('['), byte(']')
		if row {
			open, end = '(', ')'
		}
		dst = append(dst, open)
		for i, e := range b.Items(v) {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendElem(dst, b, e, elemType(t, i))
		}
		return append(dst, end)
	case record.Map:
		dst = append(dst, '{')
		it := b.Items(v)
		for i := 0; i+1 < len(it); i += 2 {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendElem(dst, b, it[i], keyType(t))
			dst = append(dst, '=')
			dst = appendElem(dst, b, it[i+1], elemType(t, 0))
		}
		return append(dst, '}')
	}
	return dst
}

func elemType(t *Type, i int) *Type {
	switch {
	case t == nil:
		return nil
	case t.Kind == TRow:
		if i < len(t.Cols) {
			return &t.Cols[i].Type
		}
		return nil
	}
	return t.Elem
}

func keyType(t *Type) *Type {
	if t == nil {
		return nil
	}
	return t.Key
}

func appendElem(dst []byte, b *record.Batch, v record.Value, t *Type) []byte {
	if v.IsNull() {
		return append(dst, "NULL"...)
	}
	return appendText(dst, b, v, t)
}

// appendValid appends bytes as text, each byte that is no UTF-8 as U+FFFD.
func appendValid(dst, p []byte) []byte {
	if utf8.Valid(p) {
		return append(dst, p...)
	}
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		dst = utf8.AppendRune(dst, r)
		p = p[n:]
	}
	return dst
}
