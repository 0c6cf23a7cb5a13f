package date

import (
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func benchmark(b *testing.B, step, text string) {
	s := steptest.New(b, step, steptest.Options{})
	slot := s.Table.Slot("t")
	batch := record.NewBatch(s.Table)
	for range 1000 {
		v := batch.PutString(text)
		batch.Set(batch.Add(record.Position{}, v), slot, v)
	}
	b.SetBytes(1000 * int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Apply(batch)
		if len(batch.Sel) != 1000 {
			b.Fatal(batch.Fails[0].Reason)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/time")
}

func BenchmarkApache(b *testing.B) {
	benchmark(b, `date: {field: t, formats: ['dd/MMM/yyyy:HH:mm:ss Z']}`, "24/Feb/2026:23:13:42 +0100")
}

func BenchmarkISO8601(b *testing.B) {
	benchmark(b, `date: {field: t, formats: [ISO8601]}`, "2026-02-24T23:13:42.123456Z")
}

func BenchmarkSyslog(b *testing.B) {
	benchmark(b, `date: {field: t, formats: ['MMM d HH:mm:ss']}`, "Feb 24 23:13:42")
}

func BenchmarkZone(b *testing.B) {
	benchmark(b, `date: {field: t, zone: Europe/Berlin, formats: ['yyyy-MM-dd HH:mm:ss,SSS']}`, "2026-02-24 23:13:42,123")
}

func BenchmarkUnix(b *testing.B) {
	benchmark(b, `date: {field: t, formats: [UNIX]}`, "1476680409.042")
}
