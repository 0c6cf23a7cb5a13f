package csv

import (
	stdcsv "encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestRows(t *testing.T) {
	for _, c := range []struct{ options, text, want string }{
		{"", `a,b,c`, `{"column1":"a","column2":"b","column3":"c"}`}, {"columns: [x, y.z], autogenerate_column_names: true", `1,2,3`, `{"x":"1","y":{"z":"2"},"column3":"3"}`}, {"columns: [x, y]", `1`, `{"x":"1"}`},
		{"columns: [x, y], autogenerate_column_names: false", `1,2,3`, `{"x":"1","y":"2"}`}, {"columns: [x, y, z]", `,"",3`, `{"x":null,"y":"","z":"3"}`}, {"columns: [x, y, z], skip_empty_columns: true", `,"",3`, `{"z":"3"}`},
		{"columns: [x, y]", `"a ""b"" c","d, e"`, `{"x":"a \"b\" c","y":"d, e"}`}, {"columns: [x, y]", "\"two\r\nlines\",2\r\nnext,row", `{"x":"two\r\nlines","y":"2"}`}, {"columns: [x, y]", ` "a" ,	"b"`, `{"x":"a","y":"b"}`}, {"columns: [x, y]", ` a , b`, `{"x":" a ","y":" b"}`},
		{`columns: [x, y], escape_char: "\\"`, `"for \"random.guy@gmail.com\"",2`, `{"x":"for \"random.guy@gmail.com\"","y":"2"}`}, {`columns: [x, y], escape_char: "\\"`, `"a\\",2`, `{"x":"a\\","y":"2"}`},
		{"separator: '||', columns: [x, y]", `a|b||c`, `{"x":"a|b","y":"c"}`}, {"separator: \"\\t\", columns: [x, y]", "a b\tc", `{"x":"a b","y":"c"}`}, {"quote_char: none, columns: [x, y]", `"a,b"`, `{"x":"\"a","y":"b\""}`}, {`quote_char: "'", columns: [x, y]`, `'a,b',"c"`, `{"x":"a,b","y":"\"c\""}`},
		{"columns: [i, f, b, d, dt], convert: {i: integer, f: float, b: boolean, d: date, dt: date_time}", `12,1.5,TRUE,2024-01-02,2024-01-02 03:04:05.250`, `{"i":12,"f":1.5,"b":true,"d":"2024-01-02T00:00:00Z","dt":"2024-01-02T03:04:05.250Z"}`},
		{"columns: [i, f, b, d], convert: {i: integer, f: float, b: boolean, d: date}", `1.9,x,yes,02/01/2024`, `{"i":"1.9","f":"x","b":"yes","d":"02/01/2024"}`}, {"convert: {column2: integer}", `x,0x1F`, `{"column1":"x","column2":31}`},
		{"target: t, columns: [x], autogenerate_column_names: true", `1,2`, `{"t":{"x":"1","column2":"2"}}`}, {"skip_empty_rows: true", ``, `{}`}, {"columns: [x, y]", `a,`, `{"x":"a","y":null}`}, {"columns: [x, y]", `"a",`, `{"x":"a","y":null}`},
	} {
		s := steptest.New(t, "csv: {field: message, "+c.options+"}", steptest.Options{})
		want := `{"message":` + quote(c.text) + "}"
		if c.want != "{}" {
			want = `{"message":` + quote(c.text) + "," + c.want[1:]
		}
		s.Want(t, `{"message":`+quote(c.text)+`}`, want)
	}
}

func TestFailures(t *testing.T) {
	s := steptest.New(t, "csv: [x, y]", steptest.Options{Slots: []string{"x.below"}})
	s.Want(t, `{"message":"1,2","x":{"below":5}}`, `{"message":"1,2","x":"1","y":"2"}`)
	for text, want := range map[string]string{`a,b"c`: "a quote within an unquoted value, at byte 4", `"a,b`: "the quote at byte 1 is not closed", `"a"b,c`: "something follows the closing quote, at byte 4", ``: "the row is empty"} {
		s.WantFail(t, `{"message":`+quote(text)+`}`, want)
	}
	s.WantFail(t, `{"message":"1,2,3"}`, "the row has 3 columns, 2 are listed")
	s.WantFail(t, `{"message":null}`, "the field is missing")
	s.WantFail(t, `{"message":["a,b"]}`, "the field is no text but array")
	steptest.New(t, "csv: {max_columns: 2}", steptest.Options{}).WantFail(t, `{"message":"a,b,c"}`, "more than max_columns")
	head := steptest.New(t, "csv: {columns: [a, b], skip_header: true}", steptest.Options{})
	if _, fail := head.One(t, `{"message":"a,b"}`); fail != "filtered" {
		t.Errorf("the header: %q", fail)
	}
	head.Want(t, `{"message":"a,c"}`, `{"message":"a,c","a":"a","b":"c"}`)
	for step, want := range map[string]string{"csv: {columns: [a], autodetect_column_names: true}": "want one of them", "csv: {source: x}": "`field`", "csv: {quote_char: ab}": "want one ASCII character", "csv: {convert: {a: int}}": "known here: boolean, date", "csv: {separator: ''}": "at least one character"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

// What encoding/csv writes is read back.
func TestRoundTrip(t *testing.T) {
	s := steptest.New(t, "csv: {field: message}", steptest.Options{})
	pieces := []string{"a", "é", `"`, ",", "\n", " ", "x y", "'", "\t", `""`, "=", ";"}
	for i := range 2000 {
		row := []string{pieces[i%12] + pieces[i/12%12] + "x", pieces[i/5%12] + "y", "z" + pieces[i/7%12]}
		var text strings.Builder
		w := stdcsv.NewWriter(&text)
		w.Write(row)
		w.Flush()
		want, _ := json.Marshal(map[string]string{"message": text.String(), "column1": row[0], "column2": row[1], "column3": row[2]})
		s.Want(t, `{"message":`+quote(text.String())+`}`, string(want))
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "csv: {columns: [ts, level, host], autogenerate_column_names: false}", steptest.Options{})
	slot := s.Table.Slot("message")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 50 {
			v := b.PutString(ten)
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

func TestHostile(t *testing.T) {
	const n = 1 << 20
	s := steptest.New(t, `csv: {field: message, escape_char: "\\"}`, steptest.Options{})
	for name, text := range map[string]string{"quotes": strings.Repeat(`"`, n), "open": `"` + strings.Repeat("a", n), "backslashes": `"` + strings.Repeat(`\`, n) + `"`, "escaped": `"` + strings.Repeat(`\"`, n/2), "commas": strings.Repeat(",", n), "blanks": strings.Repeat(" ", n) + "x", "blank columns": strings.Repeat(" ,", 9000)} {
		start := time.Now()
		s.One(t, `{"message":`+quote(text)+`}`)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%s took %s", name, d)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{`a,"b ""c""",d`, "\"x\r\ny\",z\r\n", `'a;b';c`, ` "a" , b`, `"\"",`} {
		f.Add(s)
	}
	var ss []*steptest.S
	for _, o := range []string{"columns: [x, y]", `escape_char: "\\", separator: "||"`, `quote_char: "'", separator: ";", skip_empty_columns: true, convert: {column1: integer, column2: date_time}`, "quote_char: none"} {
		ss = append(ss, steptest.New(f, "csv: {field: message, "+o+"}", steptest.Options{}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range ss {
			b := record.NewBatch(s.Table)
			v := b.PutString(text)
			b.Set(b.Add(record.Position{}, v), s.Table.Slot("message"), v)
			s.Apply(b)
			if len(b.Sel)+len(b.Fails) != 1 {
				t.Fatalf("%q is gone", text)
			}
			s.JSON(b, 0)
		}
	})
}
