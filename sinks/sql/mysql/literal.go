package mysql

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
)

// class is what a column's type means for the form of a value.
type class uint8

const (
	other class = iota
	integer
	temporal // DATE, TIME, DATETIME, TIMESTAMP
	textual
)

func classOf(dataType string) class {
	switch dataType {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit":
		return integer
	case "date", "datetime", "timestamp", "time":
		return temporal
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json", "uuid", "inet6", "inet4":
		return textual
	}
	return other
}

// AppendLiteral appends the value as it stands in a statement. What is not plain: times finer than microseconds, which
// are RFC 3339 without quotes, and numbers that are not finite, which are words. See appendCell.
func (d *dialect) AppendLiteral(dst []byte, b *record.Batch, v record.Value) (out []byte, plain bool) {
	n := len(dst)
	switch v.Kind() {
	case record.String:
		return appendQuoted(dst, b.Bytes(v)), true
	case record.Bool, record.Int:
		return strconv.AppendInt(dst, v.Int(), 10), true
	case record.Float:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return strconv.AppendFloat(dst, f, 'g', -1, 64), false
		}
		dst = record.AppendFloat(dst, f)
		if bytes.IndexByte(dst[n:], 'e') < 0 {
			dst = append(dst, 'e', '0') // a DOUBLE literal, not a DECIMAL one
		}
		return dst, true
	case record.Decimal:
		return b.AppendPlain(dst, v), true
	case record.Time:
		if v.Digits() > 6 {
			return b.AppendPlain(dst, v), false
		}
		dst = b.AppendPlain(append(dst, '\''), v) // it ends with Z
		dst[len(dst)-1] = '\''
		if t := n + 1 + len("2006-01-02"); t < len(dst) && dst[t] == 'T' {
			dst[t] = ' '
		}
		return dst, true
	case record.Clock:
		if v.Digits() > 6 {
			return b.AppendPlain(dst, v), false
		}
		return append(b.AppendPlain(append(dst, '\''), v), '\''), true
	case record.Date:
		return append(b.AppendPlain(append(dst, '\''), v), '\''), true
	case record.Bytes:
		return appendQuoted(append(dst, binaryPrefix...), b.Bytes(v)), true
	}
	// The text is made behind the others, quoted behind that, and moved to its place.
	dst = b.AppendPlain(dst, v)
	m := len(dst)
	dst = appendQuoted(dst, dst[n:m])
	return dst[:n+copy(dst[n:], dst[m:])], true
}

const binaryPrefix = "_binary"

// rfc undoes what AppendLiteral makes of a Time or Clock.
func rfc(c *sql.Cell) []byte {
	t := c.Text
	if t[0] != '\'' {
		return t
	}
	t = append([]byte(nil), t[1:len(t)-1]...)
	if c.Kind == record.Time {
		if i := bytes.IndexByte(t, ' '); i >= 0 {
			t[i] = 'T'
		}
		t = append(t, 'Z')
	}
	return t
}

// unlike are the kinds, as bits, that a plain row can't have in a column of that class as they are.
func unlike(as class) uint32 {
	switch as {
	case integer:
		return 1<<record.Float | 1<<record.Decimal | 1<<record.String
	case textual:
		return 1<<record.Time | 1<<record.Clock
	}
	return 0
}

// appendCell appends a cell for a column of that class. The error is the row's.
func appendCell(dst []byte, c *sql.Cell, as class) ([]byte, error) {
	switch c.Kind {
	case record.Missing, record.Null:
		return append(dst, "NULL"...), nil
	case record.Float:
		if last := c.Text[len(c.Text)-1]; last == 'N' || last == 'f' {
			return dst, fmt.Errorf("%s is no number to MySQL", c.Text)
		}
		if as == integer {
			f, err := strconv.ParseFloat(string(c.Text), 64)
			if err != nil || f != math.Trunc(f) {
				return dst, fmt.Errorf("%v would be rounded", f)
			}
			return strconv.AppendFloat(dst, f, 'f', -1, 64), nil
		}
	case record.Decimal:
		if as == integer && fraction(c.Text) {
			return dst, fmt.Errorf("%s would be rounded", c.Text)
		}
	case record.Time, record.Clock:
		switch {
		case as == textual:
			return appendQuoted(dst, rfc(c)), nil
		case c.Text[0] != '\'':
			return appendTime(dst, c.Text), nil
		}
	case record.String:
		if as == integer && bytes.ContainsAny(c.Text, ".eE") {
			text := string(bytes.TrimSpace(c.Text[1 : len(c.Text)-1]))
			if f, err := strconv.ParseFloat(text, 64); err == nil && f != math.Trunc(f) {
				return dst, fmt.Errorf("%q would be rounded", text)
			}
		}
	}
	return append(dst, c.Text...), nil
}

// Plain undoes AppendLiteral.
func (d *dialect) Plain(c *sql.Cell) {
	switch c.Kind {
	case record.Bool, record.Int:
		c.Int, _ = strconv.ParseInt(string(c.Text), 10, 64)
	case record.Float:
		c.F, _ = strconv.ParseFloat(string(c.Text), 64)
	case record.Decimal:
	case record.Time, record.Clock:
		c.Text = rfc(c)
	default:
		c.Text = unquote(bytes.TrimPrefix(c.Text, []byte(binaryPrefix)))
	}
}

// unquote undoes appendQuoted.
func unquote(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' {
			i++
		}
		out = append(out, s[i])
	}
	return out
}

// fraction tells whether a decimal has digits other than 0 after the point.
func fraction(t []byte) bool {
	i := bytes.IndexByte(t, '.')
	return i >= 0 && len(bytes.TrimRight(t[i+1:], "0")) > 0
}

// appendTime makes `2026-02-25T06:13:20.123456789Z` a DATETIME literal, and a time of day one. Finer digits than microseconds are
// cut: the server would round them, MariaDB with a warning.
func appendTime(dst, t []byte) []byte {
	dst = append(dst, '\'')
	n := len(dst)
	dst = append(dst, micros(bytes.TrimSuffix(t, []byte("Z")))...)
	if i := bytes.IndexByte(dst[n:], 'T'); i >= 0 {
		dst[n+i] = ' '
	}
	return append(dst, '\'')
}

func micros(t []byte) []byte {
	if i := bytes.LastIndexByte(t, '.'); i >= 0 && len(t) > i+7 {
		return t[:i+7]
	}
	return t
}

// appendQuoted appends a text as a string literal. The session has neither NO_BACKSLASH_ESCAPES nor a
// character set in which a quote may be part of a character, and the server takes all other bytes as they are.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '\'')
	for {
		n := special(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '\'')
		}
		dst = append(dst, '\\', s[n])
		s = s[n+1:]
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special is where the first quote or backslash is, len(s) where there is none; eight bytes at a time.
func special(s []byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := binary.LittleEndian.Uint64(s[i:])
		q, b := w^(ones*'\''), w^(ones*'\\')
		if ((q-ones)&^q|(b-ones)&^b)&highs != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if s[i] == '\'' || s[i] == '\\' {
			return i
		}
	}
	return i
}

// appendName appends an identifier.
func appendName(dst []byte, name string) []byte {
	dst = append(dst, '`')
	for i := range len(name) {
		if name[i] == '`' {
			dst = append(dst, '`')
		}
		dst = append(dst, name[i])
	}
	return append(dst, '`')
}

func quote(name string) string { return string(appendName(nil, name)) }

// maxName is the length in characters of a column's name.
const maxName = 64

// columnName tells why a field can't be a column, "" where it can.
func columnName(n string) string {
	switch {
	case n == "":
		return "a field's name is empty"
	case !utf8.ValidString(n):
		return fmt.Sprintf("the field's name %.40q is not UTF-8", n)
	case utf8.RuneCountInString(n) > maxName:
		return fmt.Sprintf("the field's name %.40q… has %d characters, a column's at most %d; map it with `columns`", n, utf8.RuneCountInString(n), maxName)
	case n[len(n)-1] == ' ':
		return fmt.Sprintf("the field's name %q ends with a space, a column's can't", n)
	}
	for _, r := range n {
		if r == 0 || r > 0xFFFF {
			return fmt.Sprintf("the field's name %.40q holds a character that a column's can't", n)
		}
	}
	return ""
}
