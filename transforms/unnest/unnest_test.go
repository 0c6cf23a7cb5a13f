package unnest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestUnnest(t *testing.T) {
	for _, c := range []struct {
		step, in string
		want     []string
	}{
		{"unnest: a", `{"a":[1,null,"x"],"b":2}`, []string{`{"a":1,"b":2}`, `{"a":"x","b":2}`}}, {"unnest: {field: a, target: e}", `{"a":[1,2]}`, []string{`{"a":[1,2],"e":1}`, `{"a":[1,2],"e":2}`}},
		{"unnest: {}", `{"message":"a\n\nb\n","x.y":1}`, []string{`{"message":"a","x":{"y":1}}`, `{"message":"b","x":{"y":1}}`}}, {"unnest: {terminator: ab}", `{"message":"1ab2"}`, []string{`{"message":"1"}`, `{"message":"2"}`}},
		{"unnest: a", `{"a":[{"$map":{"k":1,"n":{"$map":{"m":2}}}},{"$map":{}}]}`, []string{`{"a":{"k":1,"n":{"m":2}}}`, `{"a":{}}`}}, {"unnest: a", `{"a":["one"]}`, []string{`{"a":"one"}`}},
		{"unnest: a", `{"a":[]}`, []string{`{"a":[]}`}}, {"unnest: a", `{"a":""}`, []string{`{"a":""}`}}, {"unnest: a", `{"a":"\n"}`, []string{`{"a":"\n"}`}}, {"unnest: a", `{"a":"plain"}`, []string{`{"a":"plain"}`}},
	} {
		s := steptest.New(t, c.step, steptest.Options{})
		b := s.Batch(t, `{"first":1}`, c.in, `{"last":1}`)
		b.Sel = b.Sel[1:2]
		s.Apply(b)
		var got []string
		for _, i := range b.Sel {
			got = append(got, s.JSON(b, int(i)))
		}
		if len(got) != len(c.want) {
			t.Errorf("%s %s: %s", c.step, c.in, got)
			continue
		}
		for i := range got {
			if !steptest.SameJSON(got[i], c.want[i]) {
				t.Errorf("%s %s\n got  %s\n want %s", c.step, c.in, got[i], c.want[i])
			}
		}
		if n := len(got); n > 1 && (b.Made != n || b.Absorbed != 1) || n == 1 && b.Made != 0 {
			t.Errorf("%s: made %d, absorbed %d", c.in, b.Made, b.Absorbed)
		}
	}
	s := steptest.New(t, "unnest: {field: a, max_records: 2}", steptest.Options{})
	s.WantFail(t, `{"a":[1,2,3]}`, "more than max_records")
	s.WantFail(t, `{"a":5}`, "is no text and no array")
	s.WantFail(t, `{"a":null}`, "is missing")
	for _, name := range []string{"target: '@path'", "terminater: x"} {
		if _, err := steptest.Try("unnest: {"+name+"}", steptest.Options{}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzUnnest(f *testing.F) {
	f.Add("a,b,,c", ",")
	f.Fuzz(func(t *testing.T, text, term string) {
		if term == "" || strings.ContainsRune(term, 0) {
			return
		}
		k := &Config{Terminator: term, MaxRecords: 1 << 20}
		table := record.NewTable()
		st := &step{Config: k, field: table.Slot("m"), target: table.Slot("m")}
		b := record.NewBatch(table)
		v := b.PutString(text)
		st.pieces(b.Bytes(v), v)
		var parts []string
		for _, p := range strings.Split(text, term) {
			if p != "" {
				parts = append(parts, p)
			}
		}
		var got []string
		for _, e := range st.items {
			got = append(got, string(b.Bytes(e)))
		}
		if fmt.Sprint(got) != fmt.Sprint(parts) {
			t.Fatalf("%q by %q: %q, want %q", text, term, got, parts)
		}
	})
}
