package json

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// quote makes the input record whose message is text.
func quote(text string) string {
	q, _ := stdjson.Marshal(text)
	return `{"message":` + string(q) + `}`
}

// RFC 8259: what must be read, as a value below a target, and what it becomes.
var good = []struct{ text, want string }{
	{`{}`, `{}`}, {`[]`, `[]`}, {`""`, `""`}, {`0`, `0`}, {`null`, `null`}, {`true`, `true`}, {`false`, `false`},
	{" \t\n\r[ \t\n\r1 \t\n\r, \t\n\r2 \t\n\r] \t\n\r", `[1,2]`}, {" { \"a\" : \n1 , \"b\"\t:2 } ", `{"a":1,"b":2}`},
	{`{"a":{"b":{"c":{}}}}`, `{"a":{"b":{"c":{}}}}`}, {`[[[]],[{}]]`, `[[[]],[{}]]`}, {`[{"a":[{"b":null}]}]`, `[{"a":[{"b":null}]}]`},
	// numbers
	{`-0`, `0`}, {`-1`, `-1`}, {`9223372036854775807`, `9223372036854775807`}, {`-9223372036854775808`, `-9223372036854775808`}, {`1234567890123456789`, `1234567890123456789`},
	{`9223372036854775808`, `9223372036854775808`}, {`-9223372036854775809`, `-9223372036854775809`}, {`123456789012345678901234567890123456789012345`, `123456789012345678901234567890123456789012345`},
	{`0.1`, `0.1`}, {`-1.5`, `-1.5`}, {`1.50`, `1.5`}, {`1.0`, `1`}, {`0.0`, `0`}, {`3.141592653589793`, `3.141592653589793`}, {`0.30000000000000004`, `0.30000000000000004`},
	{`0.000012345678901234567`, `0.000012345678901234567`}, {`1.000000000000000000000`, `1`}, {`3.14159265358979323846`, `3.14159265358979323846`}, {`9007199254740993.5`, `9007199254740993.5`},
	{`100000000000000000000.25`, `100000000000000000000.25`}, {`1e3`, `1000`}, {`1E+2`, `100`}, {`25e-1`, `2.5`}, {`1e21`, `1e+21`}, {`1.5e300`, `1.5e+300`}, {`0e0`, `0`}, {`0e999999999999`, `0`},
	{`12345678901234567891e2`, `1234567890123456789100`}, {`-12345678901234567891e-2`, `-123456789012345678.91`},
	{`1e400`, `1` + strings.Repeat("0", 400)}, {`1e-400`, `0.` + strings.Repeat("0", 399) + `1`},
	// texts
	{`"\"\\\/\b\f\n\r\t"`, `"\"\\/\b\f\n\r\t"`}, {`"\u0041\u00e9\u20AC"`, `"Aé€"`}, {`"\ud83d\ude00"`, `"😀"`}, {`"\u0000"`, `"\u0000"`}, {`"a\u001fb"`, `"a\u001fb"`},
	{`"\ud83d"`, `"�"`}, {`"\ude00"`, `"�"`}, {`"\ude00\ud83d"`, `"��"`}, {`"\ud83dx"`, `"�x"`}, {`"\ud83d\n"`, `"�\n"`}, {`"\ud83d\u0041"`, `"�A"`}, {`"\ud83d\ud83d\ude00"`, `"�😀"`},
	{"\"\x7f\u2028\u2029é€😀\"", "\"\x7f\u2028\u2029é€😀\""}, {`"12345678"`, `"12345678"`}, {`"1234567\"89"`, `"1234567\"89"`}, {`"` + strings.Repeat("é", 1000) + `\\"`, `"` + strings.Repeat("é", 1000) + `\\"`},
	{"\"\xff\xfe\"", `"��"`},
	// keys
	{`{"":1}`, `{"":1}`}, {`{"\u0061":1}`, `{"a":1}`}, {`{"a\"b":1}`, `{"a\"b":1}`}, {`{"a":1,"a":2}`, `{"a":2}`}, {`{"a":{"b":1,"c":2},"a":{"b":3}}`, `{"a":{"b":3}}`}, {`{"a":{"b":1},"a":2}`, `{"a":2}`},
	{`{"a":2,"a":{"b":1}}`, `{"a":{"b":1}}`}, {`{"a":{"b":1},"a":{}}`, `{"a":{}}`}, {`{"a":{},"a":{"b":1}}`, `{"a":{"b":1}}`}, {`{"a":{"b":1},"a":2,"a":{"c":3}}`, `{"a":{"c":3}}`}, {`{"a":1,"\u0061":2}`, `{"a":2}`},
	{`[{"a":1,"b":2,"a":3}]`, `[{"a":3,"b":2}]`}, {`{"a.b":1,"a":{"b":2,"c":3}}`, `{"a":{"b":2,"c":3}}`}, {`{"a.b":1}`, `{"a":{"b":1}}`},
}

// What RFC 8259 forbids.
var bad = []string{
	``, ` `, `{`, `}`, `[`, `]`, `{]`, `[}`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `[1,,2]`, `{"a"}`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,"a":1}`, `{a:1}`, `{'a':1}`, `{"a" 1}`, `{"a":1 "b":2}`,
	`{1:2}`, `{null:1}`, `{"a":1,,}`, `{"a"::1}`, `{"a`, `{"a":"`, `{"a":"b`, `{} {}`, `{}x`, `[]]`, `1 2`, `nul`, `nulll`, `True`, `TRUE`, `tru`, `fals`, `NaN`, `Infinity`, `-Infinity`, `undefined`, `x`,
	`-`, `+1`, `.5`, `1.`, `-.5`, `01`, `-01`, `00`, `1e`, `1e+`, `1E-`, `1.e1`, `0x1`, `1_000`, `1,5`, `--1`, `1.2.3`, `1e1.5`, `- 1`, `012.5`,
	`"`, `"a`, `'a'`, `"\"`, `"\x41"`, `"\a"`, `"\u"`, `"\u12"`, `"\u123"`, `"\u12G4"`, `"\U00e9"`, "\"a\nb\"", "\"a\tb\"", "\"\x00\"", "\"12345678\x1f\"", `"\u00"`, `"a\`, `"\ud83d\u12"`,
	"\u00a0{}", "\ufeff{}", "{}\u0000", "[1]\v", "/**/{}", `{"a":1}//x`, `[1/**/]`, "\f[]",
}

func TestGood(t *testing.T) {
	s := steptest.New(t, "json: {target: v}", steptest.Options{})
	for _, c := range good {
		out, fail := s.One(t, quote(c.text))
		if fail != "" {
			t.Errorf("%s: %s", c.text, fail)
			continue
		}
		var m map[string]stdjson.RawMessage
		if err := stdjson.Unmarshal([]byte(out), &m); err != nil {
			t.Fatalf("%s: %v in %s", c.text, err, out)
		}
		if !steptest.SameJSON(string(m["v"]), c.want) {
			t.Errorf("%s\n got  %s\n want %s", c.text, m["v"], c.want)
		}
	}
}

func TestBad(t *testing.T) {
	// What is not wanted is checked all the same; and so is a text seen before, whose keys are known by then.
	for _, o := range []steptest.Options{{}, {Live: func(string) bool { return false }}} {
		s := steptest.New(t, "json: {target: v}", o)
		for _, c := range append(bad, bad...) {
			s.WantFail(t, quote(c), "json: ")
			s.WantFail(t, quote(`{"a":[`+c+`]}x`), "json: ") // more of the same around it
		}
		for _, c := range good {
			s.WantFail(t, quote(c.text+"x"), "json: ")
		}
	}
}

func TestFields(t *testing.T) {
	s := steptest.New(t, "json: message", steptest.Options{Slots: []string{"a.b", "host"}})
	s.Want(t, `{"message":"{\"a\":{\"b\":1,\"c\":2},\"host\":\"x\"}","host":"old","keep":true}`,
		`{"message":"{\"a\":{\"b\":1,\"c\":2},\"host\":\"x\"}","a":{"b":1,"c":2},"host":"x","keep":true}`)
	s.Want(t, `{"message":"{\"message\":\"new\"}"}`, `{"message":"new"}`)
	s.Want(t, `{"message":"{\"keep\":null}","keep":7}`, `{"message":"{\"keep\":null}","keep":null}`)
	s.Want(t, `{"message":{"$bytes":"{\"x\":1}"},"x":0}`, `{"message":"eyJ4IjoxfQ==","x":1}`)
	s.WantFail(t, `{"message":null,"k":1}`, "missing")
	s.WantFail(t, `{"k":1}`, "missing")
	s.WantFail(t, `{"message":5}`, "no text but bigint")
	s.WantFail(t, `{"message":"[1]"}`, "no object")
	s.WantFail(t, `{"message":"{\"host\":1,\"z\":2,\"a\":{\"b\":3","host":"old","z":"old"}`, "at byte 26, there is the end of the text")

	r := steptest.New(t, "json: {field: message, replace: true}", steptest.Options{})
	r.Want(t, `{"message":"{\"a\":1}"}`, `{"a":1}`)
	r.Want(t, `{"message":"{\"message\":1}"}`, `{"message":1}`)
	r.WantFail(t, `{"message":"{"}`, "key")

	d := steptest.New(t, "json: {field: raw, target: doc}", steptest.Options{Slots: []string{"doc.a"}})
	d.Want(t, `{"raw":"{\"a\":1,\"b\":{\"c\":2}}"}`, `{"raw":"{\"a\":1,\"b\":{\"c\":2}}","doc":{"a":1,"b":{"c":2}}}`)
	d.Want(t, `{"raw":"[1,{\"a\":2}]"}`, `{"raw":"[1,{\"a\":2}]","doc":[1,{"a":2}]}`)
	d.Want(t, `{"raw":"{}","doc":{"a":1,"z":2}}`, `{"raw":"{}","doc":{}}`)
	d.Want(t, `{"raw":"{\"n\":1}","doc":{"a":1,"z":2}}`, `{"raw":"{\"n\":1}","doc":{"n":1}}`)
	d.Want(t, `{"raw":"7","doc":{"a":1,"z":2},"document":1}`, `{"raw":"7","doc":7,"document":1}`)
	d.WantFail(t, `{"raw":"{\"a\":1","doc":{"a":5,"z":6}}`, "expected a comma")
	same := steptest.New(t, "json: {field: message, target: message}", steptest.Options{})
	same.Want(t, `{"message":"{\"a\":1}"}`, `{"message":{"a":1}}`)
	// A target of which something else is read is not the empty object.
	few := steptest.New(t, "json: {field: raw, target: doc}", steptest.Options{Slots: []string{"doc.a"}, Live: func(f string) bool { return f == "doc" || f == "doc.a" }})
	few.Want(t, `{"raw":"{\"b\":1}"}`, `{"raw":"{\"b\":1}"}`)
}

// Of a key that comes twice the last counts, in objects within arrays too, few keys or many.
func TestDistinct(t *testing.T) {
	s := steptest.New(t, "json: {target: v}", steptest.Options{})
	for _, n := range []int{1, fewPairs, 10 * fewPairs} {
		text := "[{"
		for round := range 2 {
			for k := range n {
				text += fmt.Sprintf(`"k%d":%d,`, k, round)
			}
		}
		b := s.Batch(t, quote(text+`"end":1}]`))
		s.Apply(b)
		m := b.Items(b.Lookup(0, "v"))[0]
		if m.Len() != n+1 {
			t.Errorf("%d keys, want %d", m.Len(), n+1)
		}
		for i := 1; i < 2*m.Len(); i += 2 {
			if b.Items(m)[i].Int() != 1 {
				t.Error("the first counts")
			}
		}
	}
}

func TestMetadataNames(t *testing.T) {
	s := steptest.New(t, "json: {field: m, replace: true}", steptest.Options{Slots: []string{"@path", "@timestamp"}})
	s.Want(t, `{"m":"{\"@path\":\"x\",\"@timestamp\":\"y\",\"@type\":1,\"a\":{\"@path\":2}}"}`, `{"at_path":"x","@timestamp":"y","@type":1,"a":{"@path":2}}`)
	s.Want(t, `{"m":"{\"@path\":{\"x\":1},\"@topic.y\":2}"}`, `{"at_path":{"x":1},"at_topic":{"y":2}}`)
	b := s.Batch(t, `{"m":"{\"@path\":\"x\"}"}`)
	b.Set(0, s.Table.Find("@path"), b.PutString("/var/log/x"))
	s.Apply(b)
	if got := string(b.Bytes(b.Lookup(0, "@path"))); got != "/var/log/x" {
		t.Errorf("the source's @path has become %q", got)
	}
	if _, err := steptest.Try("json: {target: '@path'}", steptest.Options{}); err == nil {
		t.Error("metadata as target")
	}
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"json: {max_depth: 0}":       "max_depth: must be at least 1",
		"json: {max_depth: 100000}":  "max_depth is at most 512",
		"json: {fild: x}":            `unknown key "fild"; did you mean "field"?`,
		"json: {field: x, target: }": "target",
		"json: ':'":                  "",
	} {
		if _, err := steptest.Try(text, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{"json:", "json: {}", "json: message", "json: {max_depth: 512}"} {
		if s, err := steptest.Try(text, steptest.Options{}); err != nil || s.Decl.ReadFields[0] != "message" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDepth(t *testing.T) {
	s := steptest.New(t, "json: {target: v, max_depth: 5}", steptest.Options{})
	for _, open := range []string{`[`, `{"a":`} {
		end := map[string]string{`[`: `]`, `{"a":`: `}`}[open]
		nest := func(n int) string { return strings.Repeat(open, n) + "1" + strings.Repeat(end, n) }
		if _, fail := s.One(t, quote(nest(5))); fail != "" {
			t.Errorf("5 of 5 levels: %s", fail)
		}
		s.WantFail(t, quote(nest(6)), "too deeply")
		s.WantFail(t, quote(strings.Repeat(open, 1_000_000)), "too deeply")
		dead := steptest.New(t, "json: {target: v, max_depth: 5}", steptest.Options{Live: func(f string) bool { return f == "other" }})
		dead.WantFail(t, quote(nest(6)), "too deeply")
		if _, fail := dead.One(t, quote(nest(5))); fail != "" {
			t.Errorf("5 of 5 levels, none read: %s", fail)
		}
	}
	s.WantFail(t, quote(`[[{"a":[[[1]]]}]]`), "too deeply")
}

// What nothing reads is not extracted.
func TestLive(t *testing.T) {
	s := steptest.New(t, "json: {field: m, replace: true}", steptest.Options{Slots: []string{"a.b"}, Live: func(f string) bool { return record.Under("a.b", f) || record.Under(f, "a.b") }})
	s.Want(t, `{"m":"{\"x\":[1,{\"y\":2}],\"a\":{\"b\":{\"c\":1},\"z\":{}},\"q\":\"\\u0041\"}"}`, `{"a":{"b":{"c":1}}}`)
	b := s.Batch(t, `{"m":"{\"x\":\"\\u0041\",\"y\":[\"\\n\",123456789012345678901234567890],\"a\":{\"b\":1}}"}`)
	before := len(b.Buf)
	s.Apply(b)
	if len(b.Buf) != before || len(b.Elems) != 0 {
		t.Error("values that nothing reads have been made")
	}
}

// A million keys that never come again leave nothing behind.
func TestKeysAreForgotten(t *testing.T) {
	s := steptest.New(t, "json: {field: m, target: t, max_fields: 100000}", steptest.Options{})
	inner := s.Maker().(*step)
	b := record.NewBatch(s.Table)
	slot := s.Table.Find("m")
	for i := 0; i < 1_000_000; i += 20 {
		var line []byte
		line = append(line, `{"same":1`...)
		for k := range 10 {
			line = fmt.Appendf(line, `,"k%d":{"v%d":1}`, i+k, i+k)
		}
		line = append(line, '}')
		b.Reset()
		v := b.PutBytes(line)
		b.Set(b.Add(record.Position{}, v), slot, v)
		inner.Apply(b)
		if inner.learnt > maxLearnt+30 || len(inner.paths) > maxLearnt+60 {
			t.Fatalf("%d keys and %d paths are known", inner.learnt, len(inner.paths))
		}
		if len(b.Sel) != 1 || b.Lookup(0, fmt.Sprintf("t.k%d.v%d", i, i)).Int() != 1 || b.Lookup(0, "t.same").Int() != 1 {
			t.Fatal("a field is lost")
		}
	}
	// One record with more keys than are kept, twice each.
	var line []byte
	line = append(line, '{')
	for round := range 2 {
		for k := range 3 * maxLearnt {
			line = fmt.Appendf(line, `"z%d":%d,`, k, round)
		}
	}
	line = append(line, `"end":1}`...)
	b.Reset()
	v := b.PutBytes(line)
	b.Set(b.Add(record.Position{}, v), slot, v)
	inner.Apply(b)
	n := 0
	for name, v := range b.Overflow(0) {
		if v.Int() != 1 {
			t.Fatalf("%s is %d", b.Bytes(name), v.Int())
		}
		n++
	}
	if n != 3*maxLearnt+1 {
		t.Errorf("%d fields, want %d", n, 3*maxLearnt+1)
	}
}

// Records of several shapes and with other orders of keys.
func TestShapes(t *testing.T) {
	s := steptest.New(t, "json: {field: m, replace: true}", steptest.Options{Slots: []string{"b"}})
	for _, c := range []string{`{"a":1,"b":2,"c":3}`, `{"c":1,"b":2,"a":3}`, `{"b":1}`, `{"a":1,"d":{"a":1,"b":2}}`, `{"d":{"b":2,"a":1},"a":1}`, `{"d":5}`, `{"a":1,"b":2,"c":3}`, `{ "a" : 1 , "b": 2,"c" :3}`,
		`{"k0":0,"k1":1,"k2":2,"k3":3,"k4":4,"k5":5,"k6":6,"k7":7,"k8":8,"k9":9,"l0":0,"l1":1,"l2":2,"l3":3,"l4":4,"l5":5,"l6":6,"l7":7,"l8":8,"l9":9}`,
		`{"l9":1,"k0":2,"l5":3,"a":4}`, `{"a\nb":1,"a\u000ab":2}`, `{"a\nb":3}`} {
		want := c
		if strings.Contains(c, "u000ab") {
			want = `{"a\nb":2}`
		}
		for range 2 {
			s.Want(t, quoteAs("m", c), want)
		}
	}
}

func quoteAs(field, text string) string {
	q, _ := stdjson.Marshal(text)
	return `{"` + field + `":` + string(q) + `}`
}

func TestNoAllocs(t *testing.T) {
	for _, live := range []func(string) bool{nil, func(f string) bool { return record.Under("http.response.status_code", f) }} {
		s := steptest.New(t, "json: {field: message, replace: true}", steptest.Options{Slots: []string{"http.response.status_code"}, Live: live})
		slot := s.Table.Slot("message")
		s.NoAllocs(t, func(b *record.Batch) {
			for range 100 {
				v := b.PutString(line)
				b.Set(b.Add(record.Position{}, v), slot, v)
			}
		})
	}
}

// oracle is what encoding/json makes of a text, numbers as they are written; ok is false where it refuses it.
func oracle(text []byte) (v any, ok bool) {
	d := stdjson.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	return v, !d.More() && len(bytes.TrimSpace(text[d.InputOffset():])) == 0
}

// sameValue compares a value with the oracle's; in keys and texts U+FFFD stands for what is no UTF-8.
func sameValue(b *record.Batch, v record.Value, want any) bool {
	switch want := want.(type) {
	case nil:
		return v.Kind() == record.Null
	case bool:
		return v.Kind() == record.Bool && v.Bool() == want
	case string:
		return v.Kind() == record.String && clean(b.Bytes(v)) == want
	case stdjson.Number:
		return sameNumber(b, v, want.String())
	case []any:
		if v.Kind() != record.Array || v.Len() != len(want) {
			return false
		}
		for i, e := range b.Items(v) {
			if !sameValue(b, e, want[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		got := map[string]record.Value{}
		kv := b.Items(v)
		for i := 0; i+1 < len(kv); i += 2 {
			got[clean(b.Bytes(kv[i]))] = kv[i+1]
		}
		if v.Kind() != record.Map || len(got) != len(want) {
			return false
		}
		for k, e := range want {
			if !sameValue(b, got[k], e) {
				return false
			}
		}
		return true
	}
	return false
}

func clean(p []byte) string {
	var s strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		s.WriteRune(r)
		p = p[n:]
	}
	return s.String()
}

func sameNumber(b *record.Batch, v record.Value, text string) bool {
	mant, exp, _ := strings.Cut(strings.ToLower(text), "e")
	if len(exp) > 5 || len(mant) > 1000 {
		return v.Kind() == record.Float || v.Kind() == record.Decimal || v.Kind() == record.Int
	}
	want, ok := new(big.Rat).SetString(text)
	if !ok {
		return false
	}
	var got *big.Rat
	switch v.Kind() {
	case record.Int, record.Decimal:
		got, _ = new(big.Rat).SetString(string(b.AppendPlain(nil, v)))
		return got.Cmp(want) == 0
	case record.Float:
		f, err := stdjson.Number(text).Float64()
		return err == nil && v.Float() == f
	}
	return false
}

func FuzzJSON(f *testing.F) {
	for _, c := range good {
		f.Add([]byte(c.text))
	}
	for _, c := range bad {
		f.Add([]byte(c))
	}
	f.Add([]byte(line))
	s, err := steptest.Try("json: {field: m, target: v, max_depth: 512}", steptest.Options{})
	dead, err2 := steptest.Try("json: {field: m, target: v, max_depth: 512}", steptest.Options{Live: func(f string) bool { return f == "w" }})
	if err != nil || err2 != nil {
		f.Fatal(err, err2)
	}
	run := func(s *steptest.S, text []byte) (*record.Batch, bool) {
		b := record.NewBatch(s.Table)
		v := b.PutBytes(text)
		b.Set(b.Add(record.Position{}, v), s.Table.Find("m"), v)
		s.Apply(b)
		return b, len(b.Sel) == 1
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")) > 500 {
			return
		}
		want, ok := oracle(text)
		b, got := run(s, text)
		if !got && strings.Contains(b.Fails[0].Reason, "out of range") {
			return
		}
		if got != ok {
			t.Fatalf("%q: accepted %v, encoding/json %v", text, got, ok)
		}
		if _, skipped := run(dead, text); skipped != got {
			t.Fatalf("%q: read %v, skipped %v", text, got, skipped)
		}
		if !got {
			return
		}
		// As an array's element an object is a value, otherwise it becomes fields.
		inner, _ := run(s, append(append([]byte("["), text...), ']'))
		if v := inner.Lookup(0, "v"); !sameValue(inner, v, []any{want}) {
			t.Fatalf("%q became %s", text, inner.AppendJSON(nil, v))
		}
		out := s.JSON(b, 0)
		if !stdjson.Valid([]byte(out)) {
			t.Fatalf("%q became %s", text, out)
		}
		if obj, is := want.(map[string]any); is && plain(obj) && !hasNumber(obj) {
			if m := `{"m":` + string(b.AppendJSON(nil, b.Lookup(0, "m"))) + `,"v":` + marshal(obj) + `}`; !steptest.SameJSON(out, m) {
				t.Fatalf("%q became %s", text, out)
			}
		}
	})
}

func marshal(v any) string {
	p, _ := stdjson.Marshal(v)
	return string(p)
}

// plain tells whether no key has a dot, which makes it another spelling of a path.
func plain(m map[string]any) bool {
	for k, v := range m {
		if strings.Contains(k, ".") {
			return false
		}
		if o, ok := v.(map[string]any); ok && !plain(o) {
			return false
		}
	}
	return true
}

func hasNumber(v any) bool {
	switch v := v.(type) {
	case stdjson.Number:
		return true
	case []any:
		for _, e := range v {
			if hasNumber(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if hasNumber(e) {
				return true
			}
		}
	}
	return false
}

// corpusFloor is the number of cases that agree with Logstash; it only ever rises.
const corpusFloor = 30

func TestCorpus(t *testing.T) {
	name := filepath.Join("../../../shared/corpus", "logstash-json.jsonl")
	file, err := os.Open(name)
	if err != nil {
		t.Skipf("%s is not there: shared/corpus is no part of the repository", name)
	}
	defer file.Close()
	agreed, total := 0, 0
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var c struct {
			Options map[string]any     `json:"options"`
			Input   stdjson.RawMessage `json:"input_event"`
			Output  map[string]any     `json:"output_event"`
			NewTags []string           `json:"new_tags"`
		}
		if err := stdjson.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		field, _ := c.Options["source"].(string)
		target, _ := c.Options["target"].(string)
		if strings.ContainsAny(field+target, "[]") || field == "" || c.Options["remove_field"] != nil || c.Options["add_field"] != nil {
			continue
		}
		total++
		text := "json: {field: " + field
		if target != "" {
			text += ", target: " + target
		}
		s, err := steptest.Try(text+"}", steptest.Options{})
		if err != nil {
			t.Logf("%v", err)
			continue
		}
		if strings.Contains(string(c.Input), `[{`) {
			continue
		}
		out, fail := s.One(t, string(c.Input))
		switch failed := len(c.NewTags) > 0; {
		case failed != (fail != ""):
			t.Logf("%s\n %s %q, Logstash %v", c.Input, out, fail, c.NewTags)
		case failed || steptest.SameJSON(out, marshal(c.Output)):
			agreed++
		default:
			t.Logf("%s\n got  %s\n want %s", c.Input, out, marshal(c.Output))
		}
	}
	t.Logf("json: %d of %d agree with Logstash", agreed, total)
	if agreed < corpusFloor {
		t.Errorf("%d cases agree, %d did before", agreed, corpusFloor)
	}
}

func TestMaxFields(t *testing.T) {
	s := steptest.New(t, "json: {field: message, max_fields: 3}", steptest.Options{})
	s.Want(t, `{"message":"{\"a\":1,\"b\":{\"c\":2,\"d\":3}}"}`, `{"message":"{\"a\":1,\"b\":{\"c\":2,\"d\":3}}","a":1,"b":{"c":2,"d":3}}`)
	s.WantFail(t, `{"message":"{\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}"}`, "more than max_fields members")
}
