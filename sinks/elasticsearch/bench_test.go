package elasticsearch

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/olivere/elastic/v7"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/services"
)

const benchKeys = "index: 'web-%{+yyyy.MM.dd}'"

func benchBatch(t testing.TB, s *sinktest.Built, n int) *record.Batch {
	b := record.NewBatch(s.Table)
	b.Split = split
	for i := range n {
		sinktest.AccessRow(b, int64(i))
	}
	return b
}

// BenchmarkBody makes a bulk body of 15-field records. The client's own path starts at a Go value that is there already.
func BenchmarkBody(b *testing.B) {
	const n = 500
	b.Run("rsetl", func(b *testing.B) {
		s := sinktest.Build(b, &Config{}, "{hosts: ['http://h'], "+benchKeys+"}", sinktest.Plan{Fields: sinktest.AccessFields})
		batch := benchBatch(b, s, n)
		var body []byte
		b.ReportAllocs()
		for b.Loop() {
			body = body[:0]
			for i := range n {
				body, _ = s.Encode(body, batch, i)
			}
		}
		b.SetBytes(int64(len(body)))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
	})
	type doc struct {
		Client    string    `json:"client"`
		Ident     string    `json:"ident"`
		Method    string    `json:"method"`
		URL       string    `json:"url"`
		Version   string    `json:"version"`
		Status    int64     `json:"status"`
		Bytes     int64     `json:"bytes"`
		Took      float64   `json:"took"`
		Referrer  string    `json:"referrer"`
		Agent     string    `json:"agent"`
		Host      string    `json:"host"`
		OK        bool      `json:"ok"`
		Zone      string    `json:"zone"`
		ID        int64     `json:"id"`
		Timestamp time.Time `json:"@timestamp"`
	}
	olivere := func(b *testing.B, value func(i int64) any) {
		values := make([]any, n)
		for i := range values {
			values[i] = value(int64(i))
		}
		b.ReportAllocs()
		size := 0
		for b.Loop() {
			size = 0
			body := []byte(nil)
			for i, v := range values {
				lines, err := elastic.NewBulkCreateRequest().Index("web-" + time.Unix(1772000000+int64(i)%3600, 0).UTC().Format("2006.01.02")).Id(fmt.Sprintf("bROtIslBLSPAi-mVsk_D9A-%d", i)).Doc(v).Source()
				if err != nil {
					b.Fatal(err)
				}
				for _, l := range lines {
					body = append(append(body, l...), '\n')
				}
			}
			size = len(body)
		}
		b.SetBytes(int64(size))
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
	}
	one := func(n int64) doc {
		return doc{"203.0.113.9", "-", "GET", "/static/img/logo-large.png?v=17&lang=en", "1.1", 200 + n%300, n * 31 % 100_000, float64(n%1000) / 8, "https://shop.example.com/cart",
			"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0 Safari/537.36", "web-07.example.com", n%2 == 0, "eu-central-1b", n, time.Unix(1772000000+n%3600, n%1000*1_000_000).UTC()}
	}
	b.Run("olivere_struct", func(b *testing.B) { olivere(b, func(i int64) any { return one(i) }) })
	b.Run("olivere_map", func(b *testing.B) {
		olivere(b, func(i int64) any {
			d := one(i)
			return map[string]any{"client": d.Client, "ident": d.Ident, "method": d.Method, "url": d.URL, "version": d.Version, "status": d.Status, "bytes": d.Bytes, "took": d.Took,
				"referrer": d.Referrer, "agent": d.Agent, "host": d.Host, "ok": d.OK, "zone": d.Zone, "id": d.ID, "@timestamp": d.Timestamp}
		})
	})
}

func BenchmarkAnswer(b *testing.B) {
	body := []byte(`{"errors":true,"items":[`)
	const n = 5000
	for i := range n {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"create":{"status":201}}`...)
	}
	body = append(body, `]}`...)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if k, err := items(body, func(int, int, []byte) {}); k != n || err != nil {
			b.Fatal(k, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/item")
}

// BenchmarkReal sends 15-field records to a real node. cpu-ns/record is this process' time: making the record, encoding,
// sending, and reading the answer; user-ns/record that outside of the kernel.
func BenchmarkReal(b *testing.B) {
	host := services.Elasticsearch(b)
	name := index(b, host)
	call(b, "PUT", host+"/"+name, `{"settings": {"number_of_replicas": 0, "refresh_interval": "30s"}, "mappings": {"dynamic": false}}`)
	s := started(b, host, "index: "+name, sinktest.Plan{Fields: sinktest.AccessFields})
	const n = 5000
	batch := record.NewBatch(s.Table)
	batch.Split = split
	p := sinks.Part{Split: split}
	at := int64(0)
	cpu, user := sinktest.CPU(b)
	for b.Loop() {
		batch.Reset()
		batch.Split = split
		p.Data, p.Ends, p.Pos = p.Data[:0], p.Ends[:0], p.Pos[:0]
		for range n {
			at++
			i := sinktest.AccessRow(batch, at)
			p.Data, _ = s.Encode(p.Data, batch, i)
			p.Ends = append(p.Ends, len(p.Data))
			p.Pos = append(p.Pos, batch.Pos(i))
		}
		if rs, err := s.Deliver(ctx, &sinks.Chunk{Parts: []sinks.Part{p}}); err != nil || len(rs) > 0 {
			b.Fatal(rs, err)
		}
	}
	records := float64(b.N) * n
	c, u := sinktest.CPU(b)
	b.ReportMetric(float64(c-cpu)/records, "cpu-ns/record")
	b.ReportMetric(float64(u-user)/records, "user-ns/record")
	b.ReportMetric(records/b.Elapsed().Seconds(), "records/s")
}

// swallow is a node that takes everything at once, without a network.
type swallow struct{ answer []byte }

func (t *swallow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(t.answer)), Request: r}, nil
}

// BenchmarkSink is all that the sink does for a 15-field record: encoding it, sending, and reading the answer; there is no network and no server.
func BenchmarkSink(b *testing.B) {
	s := sinktest.Build(b, &Config{}, "{hosts: ['http://h'], "+benchKeys+"}", sinktest.Plan{Fields: sinktest.AccessFields})
	const n = 5000
	es := s.Sink.(*Sink)
	if err := es.connect(); err != nil {
		b.Fatal(err)
	}
	es.do.client.Transport = &swallow{[]byte(`{"errors":false,"items":[` + strings.TrimSuffix(strings.Repeat(`{"create":{"status":201}},`, n), ",") + `]}`)}
	batch := benchBatch(b, s, n)
	p := sinks.Part{Split: split}
	b.ReportAllocs()
	for b.Loop() {
		p.Data, p.Ends, p.Pos = p.Data[:0], p.Ends[:0], p.Pos[:0]
		for i := range n {
			p.Data, _ = s.Encode(p.Data, batch, i)
			p.Ends = append(p.Ends, len(p.Data))
			p.Pos = append(p.Pos, batch.Pos(i))
		}
		if rs, err := s.Deliver(ctx, &sinks.Chunk{Parts: []sinks.Part{p}}); err != nil || len(rs) > 0 {
			b.Fatal(rs, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
}
