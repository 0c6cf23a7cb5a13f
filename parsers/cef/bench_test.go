package cef

import (
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func BenchmarkCEF(b *testing.B) {
	const line = `CEF:0|Acme|Firewall|1.0|100|blocked|5|src=10.0.0.1 dst=10.0.0.9 spt=1232 dpt=443 proto=TCP act=deny cs1Label=Rule cs1=deny all msg=three in a row`
	s := steptest.New(b, "cef: {field: m, target: cef}", steptest.Options{})
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
