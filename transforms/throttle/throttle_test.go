package throttle

import (
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestThrottle(t *testing.T) {
	s := steptest.New(t, "throttle: {by: [k], max: 2, per: 1m, time: t}", steptest.Options{})
	st := s.Maker()
	apply := func(recs ...[2]any) (out string, failed int) {
		b := record.NewBatch(s.Table)
		for _, r := range recs {
			i := b.Add(record.Position{}, record.Value{})
			b.Set(i, s.Table.Slot("k"), b.PutString(r[0].(string)))
			if at, ok := r[1].(int); ok {
				b.Set(i, s.Table.Slot("t"), record.MakeTime(int64(at), 0, 0))
			}
		}
		st.Apply(b)
		got := make([]byte, len(recs))
		for i := range got {
			got[i] = '.'
		}
		for _, i := range b.Sel {
			got[i] = 'x'
		}
		return string(got), len(b.Fails)
	}
	want := func(want string, recs ...[2]any) {
		t.Helper()
		if got, _ := apply(recs...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want("xx.x", [2]any{"a", 0}, [2]any{"a", 1}, [2]any{"a", 59}, [2]any{"b", 59})
	want("xx.", [2]any{"a", 60}, [2]any{"a", 61}, [2]any{"a", 3}) // an old one counts in the newest period
	want("x", [2]any{"a", 120})
	want("xx.x", [2]any{"c", -1}, [2]any{"c", -60}, [2]any{"c", -59}, [2]any{"c", 0})
	if got, failed := apply([2]any{"a", nil}); got != "." || failed != 1 {
		t.Errorf("without a time: %s, %d failures", got, failed)
	}
	// By the clock, all records one key.
	now := time.Unix(1000, 0)
	s = steptest.New(t, "throttle: {max: 1, per: 10s}", steptest.Options{Now: now})
	all := s.Maker().(*step)
	all.now = func() time.Time { return now }
	for at, pass := range map[int]int{0: 1} {
		now = time.Unix(int64(1000+at), 0)
		b := s.Batch(t, `{}`, `{}`)
		if all.Apply(b); len(b.Sel) != pass || b.Filtered != 2-pass {
			t.Errorf("%d pass", len(b.Sel))
		}
	}
	now = now.Add(10 * time.Second)
	b := s.Batch(t, `{}`, `{}`)
	if all.Apply(b); len(b.Sel) != 1 {
		t.Errorf("%d pass in the next period", len(b.Sel))
	}
	for step, want := range map[string]string{"throttle: {max: 1}": `"per" is missing`, "throttle: {max: 1, per: 0s}": "at least 1ms", "throttle: {key: '%{a}', max: 1, per: 1s}": "here it is `by`"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// A million keys take bounded memory.
func TestKeys(t *testing.T) {
	s := steptest.New(t, "throttle: {by: [k], max: 1, per: 1h, max_keys: 1000}", steptest.Options{})
	st := s.Maker().(*step)
	for n := range 100 {
		b := record.NewBatch(s.Table)
		for i := range 10_000 {
			b.Set(b.Add(record.Position{}, record.Value{}), s.Table.Slot("k"), record.MakeInt(int64(n*10_000+i)))
		}
		st.Apply(b)
		if st.counts.Len() > 1000 {
			t.Fatalf("%d keys", st.counts.Len())
		}
	}
}
