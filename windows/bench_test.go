package windows

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

// filled makes a batch of n records; key and time of each are the caller's.
func filled(w *world, n int, key func(i int) string, ms func(i int) int64) *record.Batch {
	b := record.NewBatch(w.s.Table)
	b.Split = w.split("A")
	ts, k, v := w.s.Table.Slot("ts"), w.s.Table.Slot("k"), w.s.Table.Slot("v")
	for j := range n {
		i := b.Add(record.Position{}, record.Value{})
		b.Set(i, ts, makeTime(ms(j)))
		b.Set(i, k, b.PutString(key(j)))
		b.Set(i, v, record.MakeInt(int64(j)))
	}
	return b
}

const countAndSum = ", time: ts, delay: 1000h, by: [k], max_keys: 10000000, select: {n: COUNT(*), s: SUM(v)}}"

// BenchmarkApply is what a record costs in a window whose groups are there.
func BenchmarkApply(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		for _, kind := range []string{"tumble: 1h", "hop: {size: 1h, every: 1m}", "session: 1h"} {
			if keys > 1000 && kind != "tumble: 1h" {
				continue
			}
			b.Run(fmt.Sprintf("keys=%d/%s", keys, kind[:3]), func(b *testing.B) {
				var before, after runtime.MemStats
				w := newWorld(b, "window: {"+kind+countAndSum)
				var batches []*record.Batch
				const size = 500
				for from := 0; from < keys; from += size {
					// Multiplying by an odd number visits the keys in another order than they came in.
					batches = append(batches, filled(w, size, func(i int) string { return fmt.Sprintf("key-%08d", (from+i)*7919%keys) }, func(i int) int64 { return at("10:00:00") + int64(i) }))
				}
				runtime.GC()
				runtime.ReadMemStats(&before)
				for _, x := range batches {
					again(w, x)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ResetTimer()
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					again(w, batches[n%len(batches)])
					n++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/record")
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(keys), "B/key")
				runtime.KeepAlive(w)
			})
		}
	}
}

func again(w *world, x *record.Batch) {
	x.Sel = x.Sel[:0]
	for i := range x.Len() {
		x.Sel = append(x.Sel, int32(i))
	}
	x.Absorbed = 0
	w.st.Apply(x)
}

// BenchmarkStream is tumbling and hopping windows with all that belongs to it: 1,000 keys, event time moving on, firings,
// checkpoints that are thrown away.
func BenchmarkStream(b *testing.B) {
	for _, kind := range []string{"tumble: 1m", "hop: {size: 1h, every: 1m}"} {
		b.Run(kind[:3], func(b *testing.B) {
			w := newWorld(b, "window: {"+kind+", time: ts, by: [k], select: {n: COUNT(*), s: SUM(v)}}")
			const size = 500
			x := filled(w, size, func(i int) string { return fmt.Sprintf("key-%08d", i*2) }, func(i int) int64 { return 0 })
			ts, k := w.s.Table.Slot("ts"), w.s.Table.Slot("k")
			var keys []record.Value
			for i := range 1000 {
				keys = append(keys, x.PutString(fmt.Sprintf("key-%08d", i)))
			}
			out := record.NewBatch(w.s.Table)
			now := at("10:00:00")
			rows, n := 0, 0
			for b.Loop() {
				for i := range size {
					now += 2 // 30,000 records a minute
					n++
					x.Set(i, ts, makeTime(now))
					x.Set(i, k, keys[n*7919%1000])
				}
				again(w, x)
				for w.st.Due() {
					out.Reset()
					w.st.Checkpoint(out)
					rows += len(out.Sel)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/record")
			b.ReportMetric(float64(rows)/float64(b.N), "results/op")
		})
	}
}

// TestCheckpointStall measures how long a checkpoint holds the lane up where 1 % of 1,000,000 groups have changed, and what
// firing all of them takes.
func TestCheckpointStall(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const keys = 1_000_000
	w := newWorld(t, "window: {tumble: 1h"+countAndSum)
	key := func(i int) string { return fmt.Sprintf("key-%08d", i) }
	for from := 0; from < keys; from += 1000 {
		w.st.Apply(filled(w, 1000, func(i int) string { return key(from + i) }, func(int) int64 { return at("10:00:00") }))
	}
	out := record.NewBatch(w.s.Table)
	start := time.Now()
	all := len(w.st.Checkpoint(out))
	t.Logf("first checkpoint, %d entries: %s", all, time.Since(start))
	w.st.Apply(filled(w, keys/100, func(i int) string { return key(i * 100) }, func(int) int64 { return at("10:00:01") }))
	start = time.Now()
	n := len(w.st.Checkpoint(out))
	stall := time.Since(start)
	t.Logf("1 %% changed, %d entries: %s", n, stall)
	if n != keys/100+1+1 { // the head and the split's time
		t.Errorf("%d entries", n)
	}
	if stall > 250*time.Millisecond {
		t.Errorf("a checkpoint takes %s", stall)
	}
	w.st.End()
	start = time.Now()
	rows, most := 0, time.Duration(0)
	for w.st.Due() {
		out.Reset()
		one := time.Now()
		w.st.Checkpoint(out)
		most = max(most, time.Since(one))
		rows += len(out.Sel)
	}
	t.Logf("fired %d in %s, at most %s at once", rows, time.Since(start), most)
	if rows != keys {
		t.Errorf("%d results", rows)
	}
}

// TestNoAllocs: records of groups that are there take no memory.
func TestNoAllocs(t *testing.T) {
	for _, kind := range []string{"tumble: 1h", "hop: {size: 1h, every: 1m}", "session: 1h"} {
		w := newWorld(t, "window: {"+kind+countAndSum)
		x := filled(w, 500, func(i int) string { return fmt.Sprintf("key-%d", i%100) }, func(i int) int64 { return at("10:00:00") + int64(i) })
		again(w, x)
		if n := testing.AllocsPerRun(20, func() { again(w, x) }); n > 0 {
			t.Errorf("%s: %v allocations for a batch", kind, n)
		}
	}
}
