package dedupe

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/steps/steptest"
)

type world struct {
	t     testing.TB
	s     *steptest.S
	st    *stage
	store map[string][]byte
	out   []string // committed
	now   []string // passed or fired since
	dead  int
}

func newWorld(t testing.TB, step string) *world {
	w := &world{t: t, s: steptest.New(t, step, steptest.Options{Slots: []string{"k", "n", "ts"}}), store: map[string][]byte{}}
	w.start()
	return w
}

func (w *world) start() {
	w.st = w.s.Maker().(*stage)
	w.now = nil
	err := w.st.Restore(context.Background(), statetest.Keyed(w.store))
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) apply(recs ...string) {
	b := w.s.Batch(w.t, recs...)
	w.st.Apply(b)
	for _, i := range b.Sel {
		w.now = append(w.now, w.s.JSON(b, int(i)))
	}
	w.dead += len(b.Fails)
}

func (w *world) checkpoint() {
	out := record.NewBatch(w.s.Table)
	for _, e := range w.st.Checkpoint(out) {
		if e.Value == nil {
			delete(w.store, string(e.Key))
		} else {
			w.store[string(e.Key)] = bytes.Clone(e.Value)
		}
	}
	for _, i := range out.Sel {
		w.now = append(w.now, w.s.JSON(out, int(i)))
	}
	w.out, w.now = append(w.out, w.now...), nil
}

func (w *world) want(rows ...string) {
	w.t.Helper()
	if !slices.Equal(w.out, rows) {
		w.t.Errorf("got  %s\nwant %s", w.out, rows)
	}
	w.out = nil
}

func TestFirst(t *testing.T) {
	w := newWorld(t, "dedupe: {by: [k], within: 10s}")
	w.apply(`{"k":"a","n":1}`, `{"k":"b","n":2}`, `{"k":"a","n":3}`, `{"n":4}`, `{"k":null,"n":5}`)
	w.checkpoint()
	w.want(`{"k":"a","n":1}`, `{"k":"b","n":2}`, `{"n":4}`)
	w.start()
	w.s.Clock = w.s.Clock.Add(9 * time.Second)
	w.apply(`{"k":"a","n":6}`)
	w.s.Clock = w.s.Clock.Add(time.Second)
	w.apply(`{"k":"a","n":7}`, `{"k":"a","n":8}`)
	w.checkpoint()
	w.want(`{"k":"a","n":7}`)
}

func TestLast(t *testing.T) {
	w := newWorld(t, "dedupe: {by: [k], keep: last, within: 10s}")
	w.apply(`{"k":"a","n":1}`, `{"k":"b","n":2,"x":{"y":1}}`, `{"k":"a","n":3}`)
	w.checkpoint()
	w.want()
	w.start()
	w.apply(`{"k":"a","n":4}`)
	w.st.Tick(w.s.Clock.Add(10 * time.Second))
	if !w.st.Due() {
		t.Error("nothing is due")
	}
	w.checkpoint()
	w.want(`{"k":"a","n":4}`, `{"k":"b","n":2,"x":{"y":1}}`)
	w.apply(`{"k":"a","n":5}`)
	w.st.End()
	w.checkpoint()
	w.want(`{"k":"a","n":5}`)
	if delete(w.store, "h"); len(w.store) != 0 {
		t.Errorf("left %q", w.store)
	}
}

func TestEventTimeAndBounds(t *testing.T) {
	w := newWorld(t, "dedupe: {by: [k], within: 10s, time: ts, max_keys: 2}")
	w.apply(`{"k":"a","ts":"2024-01-01 10:00:00"}`, `{"k":"a","ts":"2024-01-01 10:00:09"}`, `{"k":"a","ts":"2024-01-01 10:00:10"}`, `{"k":"a","ts":"none"}`,
		`{"k":"b","ts":"2024-01-01 10:00:11"}`, `{"k":"c","ts":"2024-01-01 10:00:11"}`, `{"k":"a","ts":"2024-01-01 10:00:12"}`)
	w.checkpoint()
	if len(w.out) != 5 || w.dead != 1 { // a at 0 and 10, b, c, and a again, since it was the oldest of three
		t.Errorf("%d dead, %q", w.dead, w.out)
	}
}

// TestCrashes: with crashes at any moment and what wasn't committed read again, the records are the same.
func TestCrashes(t *testing.T) {
	for seed := range uint64(20) {
		for _, keep := range []string{"first", "last"} {
			r := rand.New(rand.NewPCG(seed, 3))
			step := "dedupe: {by: [k], within: 5s, time: ts, max_keys: 4, keep: " + keep + "}"
			var recs []string
			for i := range 300 {
				recs = append(recs, fmt.Sprintf(`{"k":%d,"n":%d,"ts":"2024-01-01 10:%02d:%02d"}`, r.IntN(7), i, i/60, i%60))
			}
			plain, w := newWorld(t, step), newWorld(t, step)
			for _, x := range recs {
				plain.apply(x)
				plain.checkpoint()
			}
			committed := 0
			for i := 0; i < len(recs); i++ {
				w.apply(recs[i])
				switch r.IntN(15) {
				case 0, 1:
					w.checkpoint()
					committed = i + 1
				case 2:
					w.start()
					i = committed - 1
				}
			}
			plain.st.End()
			plain.checkpoint()
			w.st.End()
			w.checkpoint()
			if !slices.Equal(plain.out, w.out) {
				t.Fatalf("seed %d %s:\ngot  %s\nwant %s", seed, keep, w.out, plain.out)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		"dedupe: {within: 1m}": "by", "dedupe: []": "at least one field", "dedupe: {by: [a], within: 0s}": "more than no time",
		"dedupe: {by: [a], ttl: 1m}": "within", "dedupe: {by: [a], keep: any}": "first",
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
	steptest.New(t, "dedupe: k", steptest.Options{})
	steptest.New(t, "dedupe: [k, n]", steptest.Options{})
}

func BenchmarkFirst(b *testing.B) {
	s := steptest.New(b, "dedupe: {by: [k]}", steptest.Options{Slots: []string{"k"}})
	st := s.Maker().(*stage)
	x := record.NewBatch(s.Table)
	for i := range 500 {
		x.Set(x.Add(record.Position{}, record.Value{}), s.Table.Slot("k"), x.PutString(fmt.Sprint("key", i)))
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Sel = x.Sel[:0]
		for i := range 500 {
			x.Sel = append(x.Sel, int32(i))
		}
		st.Apply(x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500, "ns/record")
}
