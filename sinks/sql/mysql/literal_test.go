package mysql

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sql"
)

func TestLiteral(t *testing.T) {
	b := record.NewBatch(record.NewTable())
	text := func(k record.Kind, s string) record.Value { return b.PutString(s).As(k) }
	nano := record.MakeTime(1772000000, 123456789, 9)
	for _, c := range []struct {
		v    record.Value
		as   class
		want string
	}{
		{record.Value{}, other, "NULL"}, {record.MakeNull(), integer, "NULL"},
		{record.MakeBool(true), other, "1"}, {record.MakeInt(-9), textual, "-9"},
		{record.MakeFloat(1.5), other, "1.5e0"}, {record.MakeFloat(1e300), other, "1e+300"}, {record.MakeFloat(math.NaN()), other, "!NaN is no number to MySQL"}, {record.MakeFloat(math.Inf(-1)), other, "!-Inf is no number to MySQL"},
		{record.MakeFloat(200), integer, "200"}, {record.MakeFloat(1.5), integer, "!1.5 would be rounded"}, {record.MakeFloat(1e20), integer, "100000000000000000000"},
		{record.MakeDecimal(-150, 2), other, "-1.50"}, {record.MakeDecimal(100, 2), integer, "1.00"}, {record.MakeDecimal(101, 2), integer, "!1.01 would be rounded"},
		{b.PutString(`a'b\c"d`), other, `'a\'b\\c"d'`}, {b.PutString("1.5"), integer, `!"1.5" would be rounded`}, {b.PutString("1e2"), integer, `'1e2'`}, {b.PutString(""), other, "''"},
		{b.PutString(strings.Repeat("x", 300)), other, "'" + strings.Repeat("x", 300) + "'"},
		{text(record.Bytes, "\x00'"), other, "_binary'\x00\\''"},
		{nano, temporal, "'2026-02-25 06:13:20.123456'"}, {record.MakeTime(1772000000, 0, 0), other, "'2026-02-25 06:13:20'"}, {nano, textual, "'2026-02-25T06:13:20.123456789Z'"},
		{record.MakeClock(22400_123456700, 7), temporal, "'06:13:20.123456'"}, {record.MakeDate(20509), temporal, "'2026-02-25'"},
		{b.PutItems(record.Array, []record.Value{b.PutString("it's"), record.MakeInt(1)}), textual, `'["it\'s",1]'`},
	} {
		s := sql.New(&sql.Options{}, []sql.Column{}, true, &dialect{})
		i := b.Add(record.Position{}, record.Value{})
		b.AddOverflow(i, b.PutString("f"), c.v)
		row, err := s.Encode(nil, b, i)
		if err != nil {
			t.Fatal(err)
		}
		r := s.NewRow()
		r.Decode(row, 0)
		if r.Plain != nil {
			r.Expand()
		}
		cell := sql.Cell{}
		if len(r.Cells) > 0 {
			cell = r.Cells[0]
		}
		got, err := appendCell([]byte("before"), &cell, c.as)
		if got = bytes.TrimPrefix(got, []byte("before")); err != nil {
			got = []byte("!" + err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%v as %d: %s, want %s", c.v.Kind(), c.as, got, c.want)
		}
		want := "{}"
		if c.v.Kind() != record.Missing {
			want = `{"f":` + string(b.AppendJSON(nil, c.v)) + "}"
		}
		if got := string(s.Describe(nil, row)); got != want {
			t.Errorf("described as %s, want %s", got, want)
		}
	}
}

// FuzzQuoted reads the literal as the server's lexer does.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "'", `\`, "1234567'", "12345678'", strings.Repeat("x", 20) + `\'`, "\x00\n\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, s []byte) {
		q := appendQuoted(nil, s)
		var got []byte
		i := 1
		for ; q[i] != '\''; i++ {
			if q[i] == '\\' {
				i++
				if q[i] != '\'' && q[i] != '\\' {
					t.Fatalf("an escape that means something else: %q", q)
				}
			}
			got = append(got, q[i])
		}
		if q[0] != '\'' || i != len(q)-1 || !bytes.Equal(got, s) {
			t.Errorf("%q for %q", q, s)
		}
		if !bytes.Equal(unquote(q), s) {
			t.Errorf("%q is not undone", q)
		}
	})
}

func TestColumnName(t *testing.T) {
	for n, ok := range map[string]bool{"a": true, "a.b": true, "é": true, "": false, "a ": false, "\xff": false, "a\x00": false, "😀": false, strings.Repeat("é", 64): true, strings.Repeat("é", 65): false} {
		if (columnName(n) == "") != ok {
			t.Errorf("%q: %q", n, columnName(n))
		}
	}
	if got := quote("a`b"); got != "`a``b`" {
		t.Error(got)
	}
}
