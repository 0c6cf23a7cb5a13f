package windows

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/pebble"
)

// pebbled reads a stage's state in a real store.
type pebbled struct{ state.Store }

func (p pebbled) Range(prefix, after []byte, f func(key, value []byte) error) error {
	return p.Store.Range(context.Background(), "p", "window", prefix, after, f)
}

func (p pebbled) Get(keys [][]byte, f func(i int, value []byte) error) error {
	return p.Store.Get(context.Background(), "p", "window", keys, f)
}

func (p pebbled) Rows() bool { return false }

func (p pebbled) commit(t testing.TB, list []state.KV) {
	if err := p.Commit(context.Background(), "p", &state.Commit{State: list}); err != nil {
		t.Fatal(err)
	}
}

func openPebble(t testing.TB, dir string) pebbled {
	s, err := pebble.Open(dir, pebble.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return pebbled{s}
}

// stored makes a store of n groups.
func stored(t testing.TB, w *world, p pebbled, n int) {
	if err := w.st.Restore(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	out := record.NewBatch(w.s.Table)
	for from := 0; from < n; from += 1000 {
		w.st.Apply(filled(w, min(1000, n-from), func(i int) string { return fmt.Sprintf("key-%08d", from+i) }, func(int) int64 { return at("10:00:00") }))
		if w.st.Due() {
			p.commit(t, w.st.Checkpoint(out))
		}
	}
	p.commit(t, w.st.Checkpoint(out))
}

// BenchmarkRestart is from a start with 1,000,000 groups in the state directory to the first results: of a window that is over, and the
// whole of it.
func BenchmarkRestart(b *testing.B) {
	for _, kind := range []string{"tumble: 1h, emit: final", "tumble: 1h, emit: update", "hop: {size: 2h, every: 1h}, emit: final"} {
		b.Run(kind[:3]+kind[len(kind)-5:], func(b *testing.B) {
			dir := b.TempDir()
			w := newWorld(b, "window: {"+kind+countAndSum)
			p := openPebble(b, dir)
			stored(b, w, p, 1_000_000)
			var restore, first, all, most time.Duration
			for b.Loop() {
				p.Close()
				p = openPebble(b, dir)
				w.st = w.s.Maker().(stager)
				begin := time.Now()
				if err := w.st.Restore(context.Background(), p); err != nil {
					b.Fatal(err)
				}
				restore += time.Since(begin)
				w.st.End()
				out := record.NewBatch(w.s.Table)
				results := 0
				// What is fired isn't committed: the next round begins from the same.
				for w.st.Due() && results < 1_000_000 {
					out.Reset()
					one := time.Now()
					w.st.Checkpoint(out)
					most = max(most, time.Since(one))
					if results += len(out.Sel); results > 0 && results == len(out.Sel) {
						first += time.Since(begin)
					}
				}
				all += time.Since(begin)
				if results < 1_000_000 {
					b.Fatalf("%d results", results)
				}
			}
			p.Close()
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(b.N) }
			b.ReportMetric(ms(restore), "restore-ms")
			b.ReportMetric(ms(first), "first-ms")
			b.ReportMetric(ms(all), "all-ms")
			b.ReportMetric(float64(most.Microseconds())/1000, "stall-ms")
		})
	}
}

// BenchmarkSpill is what a record costs where only a part of 1,000,000 groups, which come in random order, has room in memory.
func BenchmarkSpill(b *testing.B) {
	for _, memory := range []string{"8MiB", "1GiB"} {
		b.Run(memory, func(b *testing.B) {
			w := newWorld(b, "window: {tumble: 1h, memory: "+memory+countAndSum)
			p := openPebble(b, b.TempDir())
			defer p.Close()
			const keys, size = 1_000_000, 500
			stored(b, w, p, keys)
			out := record.NewBatch(w.s.Table)
			var batches []*record.Batch
			for from := 0; from < keys; from += size {
				batches = append(batches, filled(w, size, func(i int) string { return fmt.Sprintf("key-%08d", (from+i)*7919%keys) }, func(int) int64 { return at("10:00:00") }))
			}
			n := 0
			most := time.Duration(0)
			for b.Loop() {
				again(w, batches[n%len(batches)])
				if n++; w.st.Due() || n%100 == 0 {
					one := time.Now()
					list := w.st.Checkpoint(out)
					most = max(most, time.Since(one))
					p.commit(b, list)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/record")
			b.ReportMetric(float64(most.Microseconds())/1000, "stall-ms")
		})
	}
}
