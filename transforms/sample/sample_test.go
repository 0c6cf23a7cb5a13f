package sample

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func kept(t *testing.T, step string, n int) map[string]int {
	t.Helper()
	s := steptest.New(t, step, steptest.Options{})
	b := record.NewBatch(s.Table)
	b.Split = &record.Split{ID: "split"}
	for i := range n {
		v := b.PutString(strconv.Itoa(i % 1000))
		r := b.Add(record.Position{Offset: int64(i) * 100}, v)
		b.SetNamed(r, b.PutString("trace"), v)
	}
	s.Apply(b)
	if b.Filtered != n-len(b.Sel) {
		t.Errorf("%d filtered of %d, %d kept", b.Filtered, n, len(b.Sel))
	}
	out := map[string]int{}
	for _, i := range b.Sel {
		out[string(b.Bytes(b.Raw(int(i))))]++
	}
	return out
}

func sum(m map[string]int) (n int) {
	for _, c := range m {
		n += c
	}
	return n
}

func TestSample(t *testing.T) {
	const n = 100_000
	for step, want := range map[string]int{"sample: 0": 0, "sample: 1": n, "sample: 100%": n, "sample: 0.5": n / 2, "sample: 10 %": n / 10, "sample: {rate: 1%}": n / 100} {
		got := sum(kept(t, step, n))
		if diff := got - want; diff > n/100 || -diff > n/100 || (want == 0 || want == n) && diff != 0 {
			t.Errorf("%s keeps %d, want %d", step, got, want)
		}
	}
	// The same again, and all records of a trace or none.
	a, b := kept(t, "sample: {rate: 0.3, by: trace}", n), kept(t, "sample: {rate: 0.3, by: [trace]}", n)
	if len(a) < 250 || len(a) > 350 || len(a) != len(b) {
		t.Errorf("%d and %d traces of 1000", len(a), len(b))
	}
	for trace, c := range a {
		if c != n/1000 || b[trace] != c {
			t.Fatalf("trace %s: %d and %d records of %d", trace, c, b[trace], n/1000)
		}
	}
	for step, want := range map[string]string{"sample: 2": "from 0 to 1", "sample: x": "from 0 to 1", "sample: {by: [a]}": `"rate" is missing`, "sample: {percentage: 5}": "here it is `rate`", "sample: -1%": "from 0 to 1", "sample: NaN": "from 0 to 1"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "sample: {rate: 0.5, by: [a]}", steptest.Options{})
	slot := s.Table.Slot("a")
	s.NoAllocs(t, func(b *record.Batch) {
		for i := range 50 {
			b.Set(b.Add(record.Position{}, record.Value{}), slot, record.MakeInt(int64(i)))
		}
	})
}
