package set

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestSet(t *testing.T) {
	for _, c := range []struct{ step, in, want string }{
		{`set: {host: source.address, slow: ms > 1000}`, `{"source":{"address":"h"},"ms":1500}`, `{"source":{"address":"h"},"ms":1500,"host":"h","slow":true}`},
		{`set: {a: b, b: a}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`}, // the record as it was before
		{`set: {n: n + 1}`, `{"n":1}`, `{"n":2}`}, {`set: {n: n + 1}`, `{"n":null}`, `{"n":null}`}, {`set: {n: n + 1}`, `{}`, `{"n":null}`},
		{`set: {a: missing}`, `{"a":1}`, `{"a":null}`}, {`set: {a: null, b: 1, c: 1.5, d: true, e: "'text'"}`, `{"a":1}`, `{"a":null,"b":1,"c":1.5,"d":true,"e":"text"}`},
		{`set: {a.b: "UPPER(x)", a.c: "x || '!'"}`, `{"x":"q","a":{"b":0,"z":9}}`, `{"x":"q","a":{"b":"Q","c":"q!","z":9}}`}, {`set: {l: "ARRAY[x, 'y']"}`, `{"x":"q"}`, `{"x":"q","l":["q","y"]}`}, {`set: {m: l}`, `{"l":[1,{"$map":{"k":2}}]}`, `{"l":[1,{"k":2}],"m":[1,{"k":2}]}`},
		{`set: {a: 1}`, `{"a":{"b":2,"c":{"d":3}},"ab":4}`, `{"a":1,"ab":4}`}, {`set: {a: a.b}`, `{"a":{"b":2,"c":3}}`, `{"a":2}`},
		{"set: {`user-agent`: \"'x'\"}", `{}`, `{"user-agent":"x"}`}, {`set: {'@timestamp': t}`, `{"t":5}`, `{"t":5,"@timestamp":5}`},
	} {
		s := steptest.New(t, strings.ReplaceAll(c.step, "{`user-agent`", "{'`user-agent`'"), steptest.Options{})
		s.Want(t, c.in, c.want)
	}
}

// A field that came without a slot is there for the expression too.
func TestOverflow(t *testing.T) {
	s := steptest.New(t, `set: {a: b}`, steptest.Options{})
	b := s.Batch(t, `{"z":1,"b":2}`, `{"b":3}`)
	b.Sel = b.Sel[:1]
	s.Apply(b)
	if got := s.JSON(b, 0); !steptest.SameJSON(got, `{"z":1,"b":2,"a":2}`) {
		t.Error(got)
	}
	if got := s.JSON(b, 1); !steptest.SameJSON(got, `{"b":3}`) {
		t.Errorf("a dead record has become %s", got)
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`set: {a: "1 +"}`: `set.a: `, `set: {'@path': 1}`: `names with @ are metadata`, `set: [a]`: `want a mapping`, `set: {a: [1]}`: `want an expression`, `set: {a: LOWR(b)}`: `LOWER`, `set: {a: 1, a: 2}`: `given twice`,
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "already defined") {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

func TestLive(t *testing.T) {
	s := steptest.New(t, `set: {a: 1, b: x}`, steptest.Options{Live: func(f string) bool { return f == "a" }})
	s.Want(t, `{"x":1}`, `{"x":1,"a":1}`)
}

func fill(s *steptest.S, n int) func(*record.Batch) {
	host, ms := s.Table.Slot("source.address"), s.Table.Slot("ms")
	return func(b *record.Batch) {
		for i := range n {
			v := b.PutString("203.0.113.57")
			r := b.Add(record.Position{}, v)
			b.Set(r, host, v)
			b.Set(r, ms, record.MakeInt(int64(i)))
		}
	}
}

const step1 = `set: {host: source.address, slow: ms > 1000, twice: ms * 2}`

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, step1, steptest.Options{})
	s.NoAllocs(t, fill(s, 100))
}

func BenchmarkSet(b *testing.B) {
	s := steptest.New(b, step1, steptest.Options{})
	batch := record.NewBatch(s.Table)
	fill(s, 1000)(batch)
	b.ReportAllocs()
	for b.Loop() {
		s.Apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/record")
}
