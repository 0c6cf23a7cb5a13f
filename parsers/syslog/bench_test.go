package syslog

import (
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

const (
	new5424 = `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog 1234 ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] An application event log entry`
	old3164 = `<34>Oct 11 22:14:15 mymachine su[123]: 'su root' failed for lonvick on /dev/pts/8`
)

// Benchmark5424 parses a message with three parameters; x-loop is the time against a loop that looks at each byte.
func Benchmark5424(b *testing.B) {
	bench(b, steptest.New(b, "syslog: message", steptest.Options{}), new5424)
}

// Benchmark3164 parses one of the old form.
func Benchmark3164(b *testing.B) {
	bench(b, steptest.New(b, "syslog: message", steptest.Options{}), old3164)
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
			if line[i] == ' ' || line[i] == '"' {
				sum++
			}
		}
	}
	if sum == 0 {
		return 1
	}
	return float64(time.Since(start).Nanoseconds()) / times
}
