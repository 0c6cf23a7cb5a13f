package logfmt

import (
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func BenchmarkLogfmt(b *testing.B) {
	const line = `ts=2024-01-01T00:00:00Z level=info caller=main.go:42 msg="request done" method=GET path=/api/v2/orders status=200 bytes=18231 dur=12ms trace=4bf92f35`
	s := steptest.New(b, "logfmt: m", steptest.Options{})
	const n = 200
	batch := record.NewBatch(s.Table)
	slot := s.Table.Slot("m")
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/line")
}
