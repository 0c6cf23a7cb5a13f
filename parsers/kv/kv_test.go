package kv

import (
	"encoding/json"
	"fmt"
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

func TestPairs(t *testing.T) {
	for _, c := range []struct{ options, text, want string }{
		{"", `a=1 b=2`, `{"a":"1","b":"2"}`}, {"", `a = 1  b= 2 c =3`, `{"a":"1","b":"2","c":"3"}`}, {"", `a=b=c`, `{"a":"b=c"}`}, {"", `a=1 a=2 a=1`, `{"a":["1","2","1"]}`},
		{"allow_duplicate_values: false", `a=1 a=2 a=1`, `{"a":["1","2"]}`}, {"", `word a=1 =x`, `{"a":"1"}`}, {"", `a= b=2`, `{"a":"b=2"}`}, {"whitespace: strict", `a= b = c d=2`, `{"d":"2"}`},
		{"", `a="x y" b='x "y"' c=(x y) d=[x] e=<x y>`, `{"a":"x y","b":"x \"y\"","c":"x y","d":"x","e":"x y"}`}, {"include_brackets: false", `c=(x y)`, `{"c":"(x"}`},
		{"", `a="x" y b=2`, `{"a":"x","b":"2"}`}, {"", `a="x"y b=2`, `{"a":"\"x\"y","b":"2"}`}, {"", `a="not closed b=2`, `{"a":"\"not","b":"2"}`},
		{"", `foo="bar \"baz\""`, `{"foo":"bar \"baz\""}`}, {"", `p="C:\dir\" q="x"`, `{"p":"C:\\dir\\","q":"x"}`}, {"", `k\ 1=v\ 1 b=2`, `{"k\\ 1":"v\\ 1","b":"2"}`},
		{"allow_empty_values: true, whitespace: strict", `a= b="" c=() d=`, `{"a":"","b":"","c":"","d":""}`}, {"", `a="" b=2`, `{"b":"2"}`},
		{"field_split: '|'", `biblUDK675s=(038)33=111=163.6`, `{"biblUDK675s":"(038)33=111=163.6"}`}, {"field_split: '|', allow_empty_values: true", `headerFrom=|Sender=johndoe|x=1`, `{"headerFrom":"","Sender":"johndoe","x":"1"}`},
		{"spaced_values: true", `rt=Mar 25 2016 15:15:46 GMT src=10.251.1.198 cs3Label=Virtual System`, `{"rt":"Mar 25 2016 15:15:46 GMT","src":"10.251.1.198","cs3Label":"Virtual System"}`},
		{"field_split: '&?', value_split: ':='", `?a:1&b=2&c`, `{"a":"1","b":"2"}`}, {"field_split: '\\t'", "a=1\tb=x y", `{"a":"1","b":"x y"}`}, {"field_split: '·'", "a=1·b=ä·c=3", `{"a":"1","b":"ä","c":"3"}`},
		{"field_split: ',', trim_key: ' ', trim_value: '<> '", ` a =<1>, b= 2 `, `{"a":"1","b":"2"}`}, {"remove_char_key: '-', remove_char_value: 'x'", `a-b=1x2`, `{"ab":"12"}`},
		{"transform_key: uppercase, transform_value: capitalize", `ab=cDE É=éÀ`, `{"AB":"Cde","É":"Éà"}`}, {"prefix: p_, include_keys: [a]", `a=1 b=2`, `{"p_a":"1"}`}, {"exclude_keys: [a]", `a=1 b=2`, `{"b":"2"}`},
		{"default_keys: {a: 9, z: '%{message}'}", `a=1`, `{"a":"1","z":"a=1"}`}, {"default_keys: {z: 1}", `none`, `{"z":"1"}`},
		{"recursive: true", `a="b=1 c=(d=2)"`, `{"a":{"b":"1","c":{"d":"2"}}}`}, {"target: x.y", `a=1 b.c=2`, `{"x":{"y":{"a":"1","b":{"c":"2"}}}}`}, {"", `@path=1 @x=2`, `{"at_path":"1","@x":"2"}`},
		{"field_split_pattern: '!!+', value_split_pattern: '->'", `a->1!!b -> x y!!!c->"p!!q"!!d`, `{"a":"1","b":"x y","c":"p!!q"}`}, {"value_split_pattern: '(?:=+=+)+:'", `a==:1 b======`, `{"a":"1"}`},
	} {
		options := c.options
		if options != "" {
			options = ", " + options
		}
		s := steptest.New(t, "kv: {field: message"+options+"}", steptest.Options{})
		want := `{"message":` + quote(c.text) + "," + c.want[1:]
		s.Want(t, `{"message":`+quote(c.text)+`}`, want)
		s.Want(t, `{"message":`+quote(c.text)+`,"zz":1}`, want[:len(want)-1]+`,"zz":1}`)
	}
}

func TestFields(t *testing.T) {
	s := steptest.New(t, "kv: message", steptest.Options{Slots: []string{"b"}, Live: func(f string) bool { return f != "dead" }})
	s.Want(t, `{"message":["a=1","b=2 dead=5","a=3"],"b":"old"}`, `{"message":["a=1","b=2 dead=5","a=3"],"a":["1","3"],"b":"2"}`)
	s.WantFail(t, `{"message":"nothing here"}`, `kv: no pair in "nothing here"`)
	s.WantFail(t, `{"message":null}`, "the field is missing")
	s.WantFail(t, `{"message":5}`, "the field is no text but bigint")
	few := steptest.New(t, "kv: {max_fields: 2}", steptest.Options{})
	few.Want(t, `{"message":"a=1 b=2"}`, `{"message":"a=1 b=2","a":"1","b":"2"}`)
	few.WantFail(t, `{"message":"a=1 b=2 c=3"}`, "more than max_fields")
	tgt := steptest.New(t, "kv: {target: t}", steptest.Options{Slots: []string{"t.a"}})
	tgt.Want(t, `{"message":"b=2","t":{"a":1,"z":2}}`, `{"message":"b=2","t":{"b":"2"}}`)
	dyn := steptest.New(t, "kv: {include_keys: ['%{k}'], prefix: '%{k}_'}", steptest.Options{})
	dyn.Want(t, `{"message":"a=1 b=2","k":"b"}`, `{"message":"a=1 b=2","k":"b","b_b":"2"}`)
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		"kv: {source: x}":                 `"source" is Logstash's name; here it is ` + "`field`",
		"kv: {tag_on_failure: [x]}":       "on_error: keep",
		"kv: {add_field: {a: b}}":         "a step `add:",
		"kv: {feld: x}":                   `did you mean "field"?`,
		"kv: {value_split_pattern: '('}":  "missing closing )",
		"kv: {field_split_pattern: 'x*'}": "matches the empty text",
		"kv: {transform_key: upper}":      "lowercase, uppercase, capitalize",
		"kv: {target: '@path'}":           "is metadata",
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

// What is written as pairs is read back.
func TestRoundTrip(t *testing.T) {
	s := steptest.New(t, "kv: {field: message, allow_empty_values: true, field_split: ' ', whitespace: strict}", steptest.Options{})
	for i := range 500 {
		want := map[string]any{}
		var text strings.Builder
		for k := range i%7 + 1 {
			key, val := fmt.Sprintf("k%d_%d", i, k), strings.Repeat(string(rune('a'+i%26)), i%5)+[]string{"", " x", "=", "é", "|", "'", "[", "\t"}[(i+k)%8]
			want[key] = val
			text.WriteString(" " + key + `="` + val + `"`)
		}
		want["message"] = text.String()
		w, _ := json.Marshal(want)
		s.Want(t, `{"message":`+quote(text.String())+`}`, string(w))
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "kv: message", steptest.Options{})
	slot := s.Table.Slot("message")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 50 {
			v := b.PutString(ten)
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

// What is meant to hurt ends in time.
func TestHostile(t *testing.T) {
	const n = 1 << 18
	million := strings.Builder{}
	for i := range 50_000 {
		fmt.Fprintf(&million, "k%d=1 ", i)
	}
	texts := map[string]string{"quotes": strings.Repeat(`a="`, n/3), "separators": strings.Repeat("=", n), "blanks": "a" + strings.Repeat(" ", n) + "b", "words": strings.Repeat("a ", n/2),
		"brackets": "a=" + strings.Repeat("(", n), "backslashes": `a="` + strings.Repeat(`\`, n), "escaped": strings.Repeat(`a="\"`, n/5), "keys": million.String(), "same": strings.Repeat("a=1 ", n/4), "nested": strings.Repeat("a=(b=", n/6), "open": strings.Repeat("a=( b=[ c=< ", n/12), "quoted": strings.Repeat(`a="x"y `, n/8), "one": `a="` + strings.Repeat(`b='c `, n/6)}
	for _, options := range []string{"", "recursive: true", "spaced_values: true", "field_split_pattern: ' +', value_split_pattern: '=+'", "allow_duplicate_values: false"} {
		s := steptest.New(t, "kv: {field: message, "+options+"}", steptest.Options{})
		for name, text := range texts {
			start := time.Now()
			s.One(t, `{"message":`+quote(text)+`}`)
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%s with %q took %s", name, options, d)
			}
		}
	}
}

func FuzzKV(f *testing.F) {
	for _, s := range []string{`a=1 b="x \" y" c=(d=1)`, `a = 'b`, "=", `a\ b=c\ d`, "a=<b>", "ä=ö·x=1"} {
		f.Add(s)
	}
	var ss []*steptest.S
	for _, o := range []string{"", "recursive: true, allow_empty_values: true", "spaced_values: true", "field_split_pattern: '[ ,]+', value_split_pattern: '=|:'", "field_split: '·', trim_key: ' ', remove_char_value: 'x', transform_key: capitalize"} {
		ss = append(ss, steptest.New(f, "kv: {field: message, "+o+"}", steptest.Options{}))
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
