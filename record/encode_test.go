package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// field is one field of a test's record; slot tells that the plan knows it.
type field struct {
	name string
	slot bool
	val  any
}

func makeRecord(fields []field) (*Batch, *Table, []string) {
	t := NewTable()
	var names []string
	for _, f := range fields {
		if f.slot {
			t.Slot(f.name)
			names = append(names, f.name)
		}
	}
	return nil, t, names
}

func putValue(b *Batch, v any) Value {
	switch v := v.(type) {
	case nil:
		return MakeNull()
	case string:
		return b.PutString(v)
	case int:
		return MakeInt(int64(v))
	case float64:
		return MakeFloat(v)
	case bool:
		return MakeBool(v)
	case []any:
		var vs []Value
		for _, x := range v {
			vs = append(vs, putValue(b, x))
		}
		return b.PutItems(Array, vs)
	case missing:
		return Value{}
	}
	panic(fmt.Sprintf("%T", v))
}

type missing struct{}

func encodeFields(t *testing.T, fields []field, only []string, open bool) string {
	t.Helper()
	_, table, _ := makeRecord(fields)
	e := NewEncoder(table, only, open)
	b := NewBatch(table)
	i := b.Add(Position{}, Value{})
	for _, f := range fields {
		b.SetNamed(i, b.PutString(f.name), putValue(b, f.val))
	}
	return string(e.Append([]byte("x"), b, i)[1:])
}

func TestEncoder(t *testing.T) {
	s := func(n string, v any) field { return field{n, true, v} }
	o := func(n string, v any) field { return field{n, false, v} }
	for _, c := range []struct {
		what   string
		fields []field
		only   []string
		closed bool
		want   string
	}{
		{"nothing", nil, nil, false, `{}`},
		{"flat", []field{s("b", 1), s("a", "x")}, nil, false, `{"b":1,"a":"x"}`},
		{"null stays, missing goes", []field{s("a", nil), s("b", missing{}), s("c", true)}, nil, false, `{"a":null,"c":true}`},
		{"all missing", []field{s("a.b", missing{})}, nil, false, `{}`},
		{"first missing", []field{s("a", missing{}), s("c", true)}, nil, false, `{"c":true}`},
		{"metadata", []field{s("@path", "p"), s("@timestamp", "t"), o("@offset", 1), o("@version", "1"), o("y", 1)}, nil, false, `{"@timestamp":"t","@version":"1","y":1}`},
		{"metadata though asked for", []field{s("@path", "p"), s("a", 1)}, []string{"@path", "a"}, false, `{"a":1}`},
		{"chosen", []field{s("a", 1), s("b", 2), o("c", 3)}, []string{"b"}, true, `{"b":2}`},
		{"chosen and open", []field{s("a", 1), s("b", 2), o("c", 3)}, []string{"b"}, false, `{"b":2,"c":3}`},
		{"nested once", []field{s("a.x", 1), s("b", 2), s("a.y.z", 3), s("a.w", 4)}, nil, false, `{"a":{"x":1,"y":{"z":3},"w":4},"b":2}`},
		{"only overflow", []field{o("a.x", 1), o("a.y.z", 2), o("b", 3), o("c.d.e", 4)}, nil, false, `{"a":{"x":1,"y":{"z":2}},"b":3,"c":{"d":{"e":4}}}`},
		{"overflow leaves two levels", []field{o("a.b.c", 1), o("a.d", 2), o("a.b2.c", 3), o("e.f", 4)}, nil, false, `{"a":{"b":{"c":1},"d":2,"b2":{"c":3}},"e":{"f":4}}`},
		{"overflow apart", []field{o("a.x", 1), o("b", 2), o("a.y", 3)}, nil, false, `{"a":{"x":1,"y":3},"b":2}`},
		{"overflow joins slots", []field{s("http.status", 500), s("m", "x"), o("u", 1), o("http.method", "GET")}, nil, false, `{"http":{"status":500,"method":"GET"},"m":"x","u":1}`},
		{"overflow flat, slots nested", []field{s("a.b", 1), o("c", 2)}, nil, false, `{"a":{"b":1},"c":2}`},
		{"overflow nested, slots flat", []field{s("a", 1), o("c.d", 2), o("c.e", 3)}, nil, false, `{"a":1,"c":{"d":2,"e":3}}`},
		{"leaf and subtree, slots", []field{s("a", 1), s("a.b", 2), s("a.c.d", 3)}, nil, false, `{"a":1,"a.b":2,"a.c.d":3}`},
		{"leaf missing", []field{s("a", missing{}), s("a.b", 2), s("a.c.d", 3)}, nil, false, `{"a":{"b":2,"c":{"d":3}}}`},
		{"subtree before leaf, overflow", []field{o("a.b", 1), o("a", 2)}, nil, false, `{"a":2,"a.b":1}`},
		{"leaf is a slot, subtree overflow", []field{s("a", 1), o("a.b", 2)}, nil, false, `{"a":1,"a.b":2}`},
		{"subtree is a slot, leaf overflow", []field{s("a.b", 1), o("a", 2)}, nil, false, `{"a":2,"a.b":1}`},
		{"collision below", []field{o("x.a", 1), o("x.a.b", 2), o("x.a.b.c", 3), o("y", 4)}, nil, false, `{"x":{"a":1,"a.b":2,"a.b.c":3},"y":4}`},
		{"empty parts", []field{o("", 1), o(".", 2), o("a.", 3), o("a..b", 4)}, nil, false, `{"":1,".":2,"a":{"":3,".b":4}}`},
		{"escaped keys", []field{s(`a"b.c`, 1), o("d\n.e", 2)}, nil, false, `{"a\"b":{"c":1},"d\n":{"e":2}}`},
		{"a value ending in a brace", []field{s("a", "{"), s("b.c", "{"), o("d.e", "{"), o("d.f", "{")}, nil, false, `{"a":"{","b":{"c":"{"},"d":{"e":"{","f":"{"}}`},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got := encodeFields(t, c.fields, c.only, !c.closed); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// nest builds what the encoder should write, from the definition: a path is nested up to
// its shortest proper prefix that is a field too, and dotted from there.
func nest(fields map[string]any) map[string]any {
	root := map[string]any{}
	for name, v := range fields {
		parts := strings.Split(name, ".")
		at, k := root, 0
		for ; k < len(parts)-1; k++ {
			if _, leaf := fields[strings.Join(parts[:k+1], ".")]; leaf {
				break
			}
			next, ok := at[parts[k]].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[parts[k]] = next
			}
			at = next
		}
		at[strings.Join(parts[k:], ".")] = v
	}
	return root
}

// checkKeys fails where an object has a key twice.
func checkKeys(t *testing.T, doc []byte) {
	d := json.NewDecoder(bytes.NewReader(doc))
	var walk func() error
	walk = func() error {
		tok, err := d.Token()
		if err != nil {
			return err
		}
		switch tok {
		case json.Delim('{'):
			seen := map[string]bool{}
			for d.More() {
				k, err := d.Token()
				if err != nil {
					return err
				}
				if seen[k.(string)] {
					return fmt.Errorf("key %q twice", k)
				}
				seen[k.(string)] = true
				if err := walk(); err != nil {
					return err
				}
			}
			_, err = d.Token()
		case json.Delim('['):
			for d.More() {
				if err := walk(); err != nil {
					return err
				}
			}
			_, err = d.Token()
		}
		return err
	}
	if err := walk(); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one value in %s", doc)
	}
}

func TestEncoderRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "c", "ab", ""}
	for n := range 20000 {
		given := map[string]any{}
		var fields []field
		for range r.IntN(9) {
			p := make([]string, 1+r.IntN(1+r.IntN(4)))
			for i := range p {
				p[i] = parts[r.IntN(min(len(parts), 2+n%4))]
			}
			name := strings.Join(p, ".")
			if _, ok := given[name]; ok {
				continue
			}
			var v any = float64(r.IntN(100))
			switch r.IntN(5) {
			case 0:
				v = "s"
			case 1:
				v = nil
			}
			given[name] = v
			fields = append(fields, field{name, r.IntN(3) == 0 && n%3 > 0, v})
		}
		got := encodeFields(t, fields, nil, true)
		checkKeys(t, []byte(got))
		var back map[string]any
		if err := json.Unmarshal([]byte(got), &back); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if want := nest(given); !reflect.DeepEqual(back, want) {
			t.Fatalf("fields %v\n got %s\nwant %v", fields, got, want)
		}
	}
}

// A hostile record must cost time in proportion to its size.
func TestEncoderBounded(t *testing.T) {
	const n = 100_000
	table := NewTable()
	table.Slot("k0.k1")
	e := NewEncoder(table, nil, true)
	b := NewBatch(table)
	flat := b.Add(Position{}, Value{})
	for i := range n {
		b.AddOverflow(flat, b.PutString(fmt.Sprintf("k%d", i)), MakeInt(1))
	}
	nested := b.Add(Position{}, Value{})
	for i := range n {
		b.AddOverflow(nested, b.PutString(fmt.Sprintf("k%d.x.y", i*7919%n)), MakeInt(1))
	}
	deep := b.Add(Position{}, Value{})
	b.AddOverflow(deep, b.PutString(strings.Repeat("a.", n)+"b"), MakeInt(1))
	colliding := b.Add(Position{}, Value{})
	for i := range 1000 {
		b.AddOverflow(colliding, b.PutString(strings.Repeat("a.", i)+"a"), MakeInt(1))
	}
	start := time.Now()
	for i := range b.Len() {
		if doc := e.Append(nil, b, i); !json.Valid(doc) && i != deep { // encoding/json refuses the depth
			t.Errorf("record %d: not JSON", i)
		}
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %s", d)
	}
}

func TestEncoderConcurrent(t *testing.T) {
	table := NewTable()
	table.Slot("a.b")
	table.Slot("a")
	e := NewEncoder(table, nil, true)
	for range 4 {
		b := NewBatch(table)
		t.Run("", func(t *testing.T) {
			t.Parallel()
			i := b.Add(Position{}, Value{})
			b.SetNamed(i, b.PutString("a.b"), MakeInt(1))
			b.SetNamed(i, b.PutString("a"), MakeInt(2))
			b.SetNamed(i, b.PutString("c.d"), MakeInt(3))
			for range 1000 {
				if got := string(e.Append(nil, b, i)); got != `{"a":2,"a.b":1,"c":{"d":3}}` {
					t.Fatal(got)
				}
			}
		})
	}
}

func TestAppendJSONString(t *testing.T) {
	check := func(s []byte) {
		t.Helper()
		got := AppendJSONString(nil, s)
		var back string
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%q: %v: %s", s, err, got)
		}
		// The standard: each byte that is not UTF-8 is one U+FFFD.
		want := strings.Map(func(r rune) rune { return r }, string(s))
		if back != want {
			t.Fatalf("%q: got %q, want %q", s, back, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("%q: %q is not UTF-8", s, got)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	pieces := []string{"a", "bcdefghi", "\"", "\\", "\n", "\x00", "\x1f", "\x7f", "é", "世", "😀", "\xff", "\xc3", "\xe4\xb8", "0123456789abcdef", "\u2028"}
	for range 50000 {
		var s []byte
		for range r.IntN(12) {
			s = append(s, pieces[r.IntN(len(pieces))]...)
		}
		check(s)
	}
	if got := string(AppendJSONString(nil, []byte("a\"\\\n\r\t\x01/<\u2028"))); got != "\"a\\\"\\\\\\n\\r\\t\\u0001/<\u2028\"" {
		t.Error(got)
	}
}

func benchEncoder(b *testing.B, fields []field) {
	_, table, _ := makeRecord(fields)
	e := NewEncoder(table, nil, true)
	x := NewBatch(table)
	for range 100 {
		i := x.Add(Position{}, Value{})
		for _, f := range fields {
			x.SetNamed(i, x.PutString(f.name), putValue(x, f.val))
		}
	}
	dst := e.Append(nil, x, 0)
	b.SetBytes(int64(len(dst)))
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		dst = e.Append(dst[:0], x, i%100)
	}
}

func BenchmarkEncoder(b *testing.B) {
	access := []field{{"host", true, "203.0.113.7"}, {"method", true, "GET"}, {"path", true, "/static/images/logo.png?x=12345"}, {"status", true, 200},
		{"bytes", true, 51234}, {"agent", true, "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36"}, {"t", true, 0.123}}
	as := func(slot bool, prefix ...string) []field {
		var out []field
		for i, f := range access {
			f.slot = slot
			if len(prefix) > 0 {
				f.name = prefix[i*len(prefix)/len(access)] + f.name
			}
			out = append(out, f)
		}
		return out
	}
	b.Run("flat", func(b *testing.B) { benchEncoder(b, as(true)) })
	b.Run("nested", func(b *testing.B) { benchEncoder(b, as(true, "source.", "http.request.", "http.")) })
	b.Run("overflow flat", func(b *testing.B) { benchEncoder(b, as(false)) })
	b.Run("overflow nested", func(b *testing.B) { benchEncoder(b, as(false, "source.", "http.request.", "http.")) })
	b.Run("overflow joined", func(b *testing.B) {
		f := as(false, "source.", "http.request.", "http.")
		f[4].slot = true
		benchEncoder(b, f)
	})
}

func BenchmarkAppendJSONString(b *testing.B) {
	for _, s := range []string{"200.1.2.3", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
		`{"a":"b","c":"d","e":"f\n"}`, "日志处理引擎 日志处理引擎 日志处理引擎", "na\xefve caf\xe9 latin one text"} {
		b.Run(fmt.Sprintf("%.12q", s), func(b *testing.B) {
			var dst []byte
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				dst = AppendJSONString(dst[:0], []byte(s))
			}
		})
	}
}
