package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state/pebble"
)

// The input's size: enough that one run takes a second or so less than it takes to look away. RSETL_BENCH_SIZE=1GB
// sets another.
const defaultSize = 64 << 20

var inputs struct {
	sync.Mutex
	dir   string
	lines map[Kind]int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	if inputs.dir != "" {
		os.RemoveAll(inputs.dir)
	}
	os.Exit(code)
}

// input gives the file of that kind, made at the first call, its size and its lines.
func input(tb testing.TB, kind Kind) (path string, size, lines int64) {
	tb.Helper()
	inputs.Lock()
	defer inputs.Unlock()
	if inputs.dir == "" {
		var err error
		if inputs.dir, err = os.MkdirTemp("", "rsetl-bench-"); err != nil {
			tb.Fatal(err)
		}
		inputs.lines = map[Kind]int64{}
	}
	path = filepath.Join(inputs.dir, string(kind)+".log")
	if _, ok := inputs.lines[kind]; !ok {
		size = defaultSize
		if s := os.Getenv("RSETL_BENCH_SIZE"); s != "" {
			var err error
			if size, err = ParseSize(s); err != nil {
				tb.Fatalf("RSETL_BENCH_SIZE: %v", err)
			}
		}
		n, err := WriteFile(path, kind, size)
		if err != nil {
			tb.Fatal(err)
		}
		inputs.lines[kind] = n
	}
	st, err := os.Stat(path)
	if err != nil {
		tb.Fatal(err)
	}
	return path, st.Size(), inputs.lines[kind]
}

// measure runs f b.N times over a file and reports CPU and allocations by record.
func measure(b *testing.B, size, records int64, f func() error) {
	b.Helper()
	b.SetBytes(size)
	b.ReportAllocs()
	if err := f(); err != nil { // warm: the file is in the page cache
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := CPU()
	b.ResetTimer()
	for range b.N {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	cpu = CPU() - cpu
	runtime.ReadMemStats(&after)
	n := float64(records) * float64(b.N)
	b.ReportMetric(float64(cpu.Nanoseconds())/n, "cpu-ns/record")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/record")
}

// pipelineRun gives a function that runs the job once, on a new state.
func pipelineRun(b *testing.B, j *Job, in string, records int64, workers int) func() error {
	dir := b.TempDir()
	n := 0
	return func() error {
		n++
		d := filepath.Join(dir, fmt.Sprint(n))
		store, err := pebble.Open(filepath.Join(d, "state"), pebble.Options{})
		if err != nil {
			return err
		}
		rep, err := Run(store, d, j.Name, j.Pipeline(in, filepath.Join(d, "out"), workers))
		if e := store.Close(); err == nil {
			err = e
		}
		if err == nil {
			err = check(rep, records)
		}
		if e := os.RemoveAll(d); err == nil {
			err = e
		}
		return err
	}
}

func check(rep pipeline.Report, records int64) error {
	if rep.In != records {
		return fmt.Errorf("%d records were read, the file has %d", rep.In, records)
	}
	return nil
}

// BenchmarkJob has each job by rsetl and by its loops over the same file. Run it with GOMAXPROCS=1: then the CPU by
// record is that of one core, and ns/op is CPU too. For benchstat: -bench Job -count 6, then benchstat -col /by.
func BenchmarkJob(b *testing.B) {
	for i := range Jobs {
		j := &Jobs[i]
		b.Run("job="+j.Name, func(b *testing.B) {
			in, size, lines := input(b, j.Input)
			b.Run("by=loop", func(b *testing.B) {
				out := filepath.Join(b.TempDir(), "out")
				measure(b, size, lines, func() error {
					_, err := RunLoop([]string{j.Loop, in, out})
					return err
				})
			})
			b.Run("by=rsetl", func(b *testing.B) { measure(b, size, lines, pipelineRun(b, j, in, lines, 1)) })
		})
	}
}

// BenchmarkWorkers shows how a stateless pipeline scales: run it with GOMAXPROCS of 2 or more.
func BenchmarkWorkers(b *testing.B) {
	j := FindJob("json")
	in, size, lines := input(b, j.Input)
	for _, n := range []int{1, 2} {
		b.Run(fmt.Sprintf("job=json/workers=%d", n), func(b *testing.B) { measure(b, size, lines, pipelineRun(b, j, in, lines, n)) })
	}
}

// TestNoAllocs is the target of no allocation by record: what a run allocates doesn't grow with the file.
func TestNoAllocs(t *testing.T) {
	allocs := func(j *Job, size int64) (uint64, int64) {
		dir := t.TempDir()
		in := filepath.Join(dir, "in.log")
		n, err := WriteFile(in, j.Input, size)
		if err != nil {
			t.Fatal(err)
		}
		store, err := pebble.Open(filepath.Join(dir, "state"), pebble.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		rep, err := Run(store, dir, j.Name, j.Pipeline(in, filepath.Join(dir, "out"), 1))
		runtime.ReadMemStats(&after)
		if err == nil {
			err = check(rep, n)
		}
		if err != nil {
			t.Fatal(err)
		}
		return after.Mallocs - before.Mallocs, n
	}
	for i := range Jobs {
		j := &Jobs[i]
		a, m := allocs(j, 1<<20)
		b, n := allocs(j, 24<<20)
		per := (float64(b) - float64(a)) / float64(n-m)
		t.Logf("%s: %.4f allocations by record (%d for %d records, %d for %d)", j.Name, per, a, m, b, n)
		if per > 0.1 { // some by batch of hundreds
			t.Errorf("%s: %.3f allocations by record", j.Name, per)
		}
	}
}
