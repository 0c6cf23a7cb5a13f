// Package jsonpeers measures the json step against libraries that decode into a map. None of them needs cgo; it is a module of
// its own so that they are no dependencies of rsetl.
package jsonpeers

import (
	stdjson "encoding/json"
	"testing"

	"github.com/bytedance/sonic"
	goccy "github.com/goccy/go-json"
	jsoniter "github.com/json-iterator/go"
	segmentio "github.com/segmentio/encoding/json"

	_ "github.com/rsetl/rsetl/parsers/json"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// line is a log object of 600 bytes, as a service would write it.
const line = `{"@timestamp":"2026-02-24T23:13:42.123456Z","level":"error","service":{"name":"checkout","version":"4.18.2"},"host":{"name":"web-17.eu-central-1.example.com","ip":"10.20.30.40"},` +
	`"http":{"request":{"method":"GET","id":"3f0c9a52e1b74d6f"},"response":{"status_code":503,"body":{"bytes":18231}}},"url":{"path":"/api/v2/orders/1827364/items","query":"page=2&size=50"},` +
	`"duration_ms":187.25,"user":{"id":982734,"agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"},"trace":{"id":"4bf92f3577b34da6a3ce929d0e0e4736","sampled":true},"tags":["api","eu","canary"],"msg":"upstream \"orders\" timed out, retry = 3"}`

func step(b *testing.B, slots []string, live func(string) bool) {
	s := steptest.New(b, "json: {field: message, replace: true}", steptest.Options{Slots: slots, Live: live})
	const n = 200
	batch := record.NewBatch(s.Table)
	slot := s.Table.Slot("message")
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%n == 0 { // one operation is one line; a batch has n
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
	}
}

// Two of the fields are read, the others are skipped.
func BenchmarkStepTwoFields(b *testing.B) {
	slots := []string{"http.response.status_code", "url.path"}
	step(b, slots, func(f string) bool {
		for _, s := range slots {
			if record.Under(s, f) {
				return true
			}
		}
		return false
	})
}

// All fields have slots.
func BenchmarkStepAllSlots(b *testing.B) {
	step(b, []string{"@timestamp", "level", "service.name", "service.version", "host.name", "host.ip", "http.request.method", "http.request.id", "http.response.status_code", "http.response.body.bytes", "url.path", "url.query",
		"duration_ms", "user.id", "user.agent", "trace.id", "trace.sampled", "tags", "msg"}, nil)
}

// No field is known to the plan.
func BenchmarkStepNoSlots(b *testing.B) { step(b, nil, nil) }

func library(b *testing.B, unmarshal func([]byte, any) error) {
	data := []byte(line)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var m map[string]any
		if err := unmarshal(data, &m); err != nil || len(m) != 11 {
			b.Fatal(err, len(m))
		}
	}
}

func BenchmarkStdlib(b *testing.B)    { library(b, stdjson.Unmarshal) }
func BenchmarkGoccy(b *testing.B)     { library(b, goccy.Unmarshal) }
func BenchmarkJsoniter(b *testing.B)  { library(b, jsoniter.ConfigFastest.Unmarshal) }
func BenchmarkSegmentio(b *testing.B) { library(b, segmentio.Unmarshal) }
func BenchmarkSonic(b *testing.B)     { library(b, sonic.ConfigFastest.Unmarshal) }
