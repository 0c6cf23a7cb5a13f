package json

import (
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// line is a log object of 600 bytes, as a service would write it.
const line = `{"@timestamp":"2026-02-24T23:13:42.123456Z","level":"error","service":{"name":"checkout","version":"4.18.2"},"host":{"name":"web-17.eu-central-1.example.com","ip":"10.20.30.40"},` +
	`"http":{"request":{"method":"GET","id":"3f0c9a52e1b74d6f"},"response":{"status_code":503,"body":{"bytes":18231}}},"url":{"path":"/api/v2/orders/1827364/items","query":"page=2&size=50"},` +
	`"duration_ms":187.25,"user":{"id":982734,"agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"},"trace":{"id":"4bf92f3577b34da6a3ce929d0e0e4736","sampled":true},"tags":["api","eu","canary"],"msg":"upstream \"orders\" timed out, retry = 3"}`

func benchmark(b *testing.B, slots []string, live func(string) bool) {
	s := steptest.New(b, "json: {field: message, replace: true}", steptest.Options{Slots: slots, Live: live})
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/line")
}

// Nothing but two fields is read: the common filter.
func BenchmarkFewSlots(b *testing.B) {
	slots := []string{"http.response.status_code", "url.path"}
	benchmark(b, slots, func(f string) bool {
		for _, s := range slots {
			if record.Under(s, f) {
				return true
			}
		}
		return false
	})
}

// All is shipped, two fields have slots.
func BenchmarkOverflow(b *testing.B) {
	benchmark(b, []string{"http.response.status_code", "url.path"}, nil)
}

// All is shipped and the plan names nothing.
func BenchmarkAllOverflow(b *testing.B) { benchmark(b, nil, nil) }
