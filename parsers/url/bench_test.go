package url

import (
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func BenchmarkURL(b *testing.B) {
	const line = `https://user@www.example.com:8443/api/v2/orders/list.html?page=2&size=50&q=a%20b#top`
	s := steptest.New(b, "url: {field: m, params: true}", steptest.Options{})
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
