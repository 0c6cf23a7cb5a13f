package kv

import (
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// ten is a line of ten pairs, as a service would write it.
const ten = `ts=2026-02-24T23:13:42.123Z level=info host=web-17 method=GET path=/api/v2/orders status=200 bytes=18231 duration=187.25 user="jane doe" msg="request done"`

// BenchmarkTen parses ten pairs of which all have slots; x-loop is the time against a loop that looks at each byte.
func BenchmarkTen(b *testing.B) {
	s := steptest.New(b, "kv: message", steptest.Options{Slots: []string{"ts", "level", "host", "method", "path", "status", "bytes", "duration", "user", "msg"}})
	bench(b, s, ten)
}

// BenchmarkOverflow is the same where the plan names no field.
func BenchmarkOverflow(b *testing.B) {
	bench(b, steptest.New(b, "kv: message", steptest.Options{}), ten)
}

func bench(b *testing.B, s *steptest.S, line string) {
	const n = 200
	batch := record.NewBatch(s.Table)
	slot := s.Table.Slot("message")
	b.SetBytes(n * int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for range n {
			v := batch.PutString(line)
			batch.Set(batch.Add(record.Position{}, v), slot, v)
		}
		s.Apply(batch)
		if len(batch.Sel) != n {
			b.Fatal(batch.Fails[0].Reason)
		}
	}
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / n
	b.ReportMetric(ns, "ns/line")
	b.ReportMetric(ns/loop(line), "x-loop")
}

// loop is the time in nanoseconds that a loop over the line's bytes takes.
func loop(line string) float64 {
	sum := 0
	const times = 20_000
	start := time.Now()
	for range times {
		for i := range len(line) {
			if line[i] == '=' || line[i] == ' ' {
				sum++
			}
		}
	}
	if sum == 0 {
		return 1
	}
	return float64(time.Since(start).Nanoseconds()) / times
}
