package elasticsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/services"
)

// between is a server before the real one. What it does to a bulk request is up to the test; all else passes.
type between struct {
	*httptest.Server
	real string

	mu   sync.Mutex
	n    int // bulk requests so far
	seen []string
	do   func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte)
}

func newBetween(t testing.TB, real string, do func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte)) *between {
	b := &between{real: real, do: do}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/_bulk" {
		b.pass(w, r, nil)
		return
	}
	b.mu.Lock()
	n := b.n
	b.n++
	b.mu.Unlock()
	if r.ContentLength > 1<<20 { // not read: see early answers
		b.do(b, n, w, r, nil)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.seen = append(b.seen, string(body))
	b.mu.Unlock()
	b.do(b, n, w, r, body)
}

// forward gives the real server's answer.
func (b *between) forward(r *http.Request, body []byte) (int, []byte) {
	req, _ := http.NewRequest(r.Method, b.real+r.URL.RequestURI(), bytes.NewReader(body))
	req.Header = r.Header.Clone()
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return 502, nil
	}
	defer res.Body.Close()
	p, _ := io.ReadAll(res.Body)
	return res.StatusCode, p
}

func (b *between) pass(w http.ResponseWriter, r *http.Request, body []byte) {
	status, p := b.forward(r, body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(p)
}

// items lets those items pass that fail gives 0 for, and answers for the others with that status.
func (b *between) items(w http.ResponseWriter, r *http.Request, body []byte, fail func(doc string) int) {
	lines := strings.SplitAfter(string(body), "\n")
	var through strings.Builder
	var statuses []int
	for i := 0; i+1 < len(lines); i += 2 {
		st := fail(lines[i+1])
		statuses = append(statuses, st)
		if st == 0 {
			through.WriteString(lines[i] + lines[i+1])
		}
	}
	var answer struct{ Items []json.RawMessage }
	if through.Len() > 0 {
		_, p := b.forward(r, []byte(through.String()))
		json.Unmarshal(p, &answer)
	}
	var out []json.RawMessage
	for _, st := range statuses {
		if st == 0 {
			out, answer.Items = append(out, answer.Items[0]), answer.Items[1:]
		} else {
			out = append(out, json.RawMessage(fmt.Sprintf(`{"create":{"status":%d,"error":{"type":"made_up","reason":"by the test"}}}`, st)))
		}
	}
	p, _ := json.Marshal(map[string]any{"items": out, "errors": true, "took": 1})
	w.Write(p)
}

// reset resets the connection.
func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	c.(*net.TCPConn).SetLinger(0)
	return c
}

const records = 40

// TestFaults has each failure alone, before a real node: every document is there once in the end, the poison in the
// dead letters, and nothing is tried for ever.
func TestFaults(t *testing.T) {
	real := services.Elasticsearch(t)
	type handler = func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte)
	// first does f to the first n requests; the others pass.
	first := func(times int, f handler) handler {
		return func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			if n < times {
				f(b, n, w, r, body)
			} else {
				b.pass(w, r, body)
			}
		}
	}
	status := func(code int, header ...string) handler {
		return func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error":{"type":"made_up","reason":"code %d"},"status":%d}`, code, code)
		}
	}
	each := func(code int, every int) handler {
		return func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			k := -1
			b.items(w, r, body, func(string) int {
				if k++; k%every == 0 {
					return code
				}
				return 0
			})
		}
	}
	large := 0
	for _, c := range []struct {
		name     string
		do       handler
		errs     int    // deliveries that fail
		text     string // in their error
		after    time.Duration
		rejects  int
		skipped  int
		requests int // 0: any number
	}{
		{name: "429 for all", do: first(2, status(429, "Retry-After", "7")), errs: 2, text: "429 made_up: code 429", after: 7 * time.Second, requests: 3},
		{name: "503 for all", do: first(1, status(503)), errs: 1, text: "503", requests: 2},
		{name: "502 with HTML", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			w.WriteHeader(502)
			io.WriteString(w, "<html>Bad Gateway</html>")
		}), errs: 1, text: "502 <html>", requests: 2},
		{name: "401", do: first(3, status(401)), errs: 3, text: "check user and password", requests: 4},
		{name: "403", do: first(1, status(403)), errs: 1, text: "privileges"},
		{name: "404", do: first(1, status(404)), errs: 1, text: "is this Elasticsearch"},
		{name: "a redirect", do: first(1, status(301, "Location", "http://elsewhere/")), errs: 1, text: "it sends elsewhere"},
		{name: "429 for some items", do: first(3, each(429, 3)), errs: 3, text: "of 40 items were not taken, the first with 429 made_up: by the test", requests: 4},
		{name: "503 for all items", do: first(1, each(503, 1)), errs: 1, text: "40 of 40", requests: 2},
		{name: "403 for some items", do: first(1, each(403, 7)), errs: 1, text: "403", requests: 2},
		{name: "400 for some items", do: first(1, each(400, 10)), rejects: 4, requests: 1},
		{name: "404 for some items", do: first(1, each(404, 20)), rejects: 2, requests: 1},
		{name: "500 for one item, always", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			b.items(w, r, body, func(doc string) int {
				if strings.Contains(doc, `"n":7}`) {
					return 500
				}
				return 0
			})
		}, errs: maxTries - 1, text: "1 of 40", rejects: 1, requests: maxTries},
		{name: "500 for one item, twice", do: first(2, each(500, 40)), errs: 2, text: "1 of 40", requests: 3},
		{name: "413 above a size", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			if len(body) > 1000 {
				status(413)(b, n, w, r, body)
			} else {
				b.pass(w, r, body)
			}
		}},
		{name: "413 for ever", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			status(413)(b, n, w, r, body)
		}, rejects: records},
		{name: "400 for ever", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			status(400)(b, n, w, r, body)
		}, rejects: records},
		{name: "400 for two culprits", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			if bytes.Contains(body, []byte(`"n":7}`)) || bytes.Contains(body, []byte(`"n":31}`)) {
				status(400)(b, n, w, r, body)
			} else {
				b.pass(w, r, body)
			}
		}, rejects: 2},
		{name: "reset in mid-body", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) { hijack(w).Close() }), errs: 1, requests: 2},
		{name: "the answer is lost", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			b.forward(r, body)
			hijack(w).Close()
		}), errs: 1, skipped: records, requests: 2},
		{name: "the answer is truncated", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			_, p := b.forward(r, body)
			conn := hijack(w)
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(p), p[:len(p)/2])
			conn.(*net.TCPConn).SetLinger(-1)
			conn.Close()
		}), errs: 1, skipped: records, requests: 2},
		{name: "the answer is cut but whole to HTTP", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			_, p := b.forward(r, body)
			w.Write(p[:len(p)/2])
		}), errs: 1, text: "can't be read", skipped: records, requests: 2},
		{name: "the answer lacks items", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			io.WriteString(w, `{"items":[{"create":{"status":201}}]}`)
		}), errs: 1, text: "1 items for 40", requests: 2},
		{name: "200 and HTML", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			io.WriteString(w, "<html>log in here</html>")
		}), errs: 1, text: "can't be read", requests: 2},
		{name: "the answer drips", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			b.forward(r, body)
			for range 1000 {
				if _, err := w.Write([]byte(" ")); err != nil || r.Context().Err() != nil {
					return
				}
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}), errs: 1, text: "no answer in time", skipped: records, requests: 2},
		{name: "no answer", do: first(1, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) { <-r.Context().Done() }), errs: 1, text: "no answer in time", requests: 2},
		{name: "413 before the body is read", do: func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			if body == nil {
				large++
				w.Header().Set("Connection", "close")
				status(413)(b, n, w, r, body)
				return
			}
			b.pass(w, r, body)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := index(t, real)
			b := newBetween(t, real, c.do)
			timeout := "20s"
			if c.text == "no answer in time" {
				timeout = "700ms"
			}
			s := started(t, b.URL, "timeout: "+timeout+", index: "+name, sinktest.Plan{Fields: "n BIGINT, pad STRING"})
			var recs []string
			for i := range records {
				pad := ""
				if strings.Contains(c.name, "before the body") {
					pad = fmt.Sprintf(`, "pad": %q`, strings.Repeat("x", 100_000))
				}
				recs = append(recs, fmt.Sprintf(`{"n": %d%s}`, i, pad))
			}
			var rejects []string
			chunk := sinktest.Chunk(&rejects, s.Part(t, split, 1, recs[:15]...), s.Part(t, split, 16, recs[15:]...))
			errs := 0
			for {
				chunk.Skipped = 0
				rs, err := s.Deliver(ctx, chunk)
				if err == nil {
					if err := chunk.Letters(rs); err != nil {
						t.Fatal(err)
					}
					break
				}
				if errs++; errs > c.errs || !strings.Contains(err.Error(), c.text) || sinks.IsPermanent(err) {
					t.Fatalf("failure %d: %v, want %q", errs, err, c.text)
				}
				if after, _ := sinks.After(err); after != c.after {
					t.Errorf("try again after %v, want %v", after, c.after)
				}
			}
			if errs != c.errs || len(rejects) != c.rejects || chunk.Skipped != c.skipped || c.requests != 0 && b.n != c.requests {
				t.Errorf("%d failures, %d rejects, %d skipped, %d requests; want %d, %d, %d, %d\n%v", errs, len(rejects), chunk.Skipped, b.n, c.errs, c.rejects, c.skipped, c.requests, rejects)
			}
			if b.n > 4*records {
				t.Errorf("%d requests", b.n)
			}
			if got := len(docs(t, real, name)); got != records-c.rejects {
				t.Errorf("%d documents, want %d", got, records-c.rejects)
			}
			if n := len(s.Sink.(*Sink).running); n != 0 {
				t.Errorf("%d chunks are remembered", n)
			}
		})
	}
	if large == 0 {
		t.Error("no large request came")
	}
}

// TestNewerStays: an older write of an id that is tried again never goes over a newer one.
func TestNewerStays(t *testing.T) {
	real := services.Elasticsearch(t)
	for _, keys := range []string{"id: '%{id}'", "id: '%{id}', op: update", "id: '%{id}', version: n"} {
		name := index(t, real)
		b := newBetween(t, real, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
			if n > 1 {
				b.pass(w, r, body)
				return
			}
			b.items(w, r, body, func(doc string) int {
				if strings.Contains(doc, `"n":1`) || strings.Contains(doc, `"n":9`) {
					return 429
				}
				return 0
			})
		})
		s := started(t, b.URL, keys+", index: "+name, sinktest.Plan{Fields: "id STRING, n BIGINT"})
		c := sinktest.Chunk(new([]string), s.Part(t, split, 1, `{"id": "a", "n": 1}`, `{"id": "b", "n": 5}`, `{"id": "a", "n": 2}`, `{"id": "c", "n": 9}`, `{"id": "a", "n": 3}`))
		tries := 0
		for ; tries < 5; tries++ {
			if _, err := s.Deliver(ctx, c); err == nil {
				break
			}
		}
		if tries != 2 {
			t.Errorf("%d tries", tries)
		}
		equal(t, docs(t, real, name), map[string]string{name + "/a": `{"id":"a","n":3}`, name + "/b": `{"id":"b","n":5}`, name + "/c": `{"id":"c","n":9}`})
	}
}

// TestFailover: of three nodes one is dead and one doesn't answer. All goes to the third.
func TestFailover(t *testing.T) {
	real := services.Elasticsearch(t)
	name := index(t, real)
	dead := httptest.NewServer(nil)
	dead.Close()
	b := newBetween(t, real, func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) { <-r.Context().Done() })
	s := sinktest.Build(t, &Config{}, fmt.Sprintf("{hosts: [%q, %q, %q], timeout: 1s, index: %s}", dead.URL, b.URL, real, name), sinktest.Plan{Fields: "n BIGINT"}).Start(t, true)
	errs := 0
	for i := range 20 {
		p := s.Part(t, split, int64(10+i), fmt.Sprintf(`{"n": %d}`, i))
		for {
			r := s.Send(ctx, p)
			if r.Err == nil {
				break
			}
			if errs++; errs > 10 {
				t.Fatal(r.Err)
			}
		}
	}
	if n := len(docs(t, real, name)); n != 20 || errs > 3 {
		t.Errorf("%d documents, %d failures", n, errs)
	}
	none := sinktest.Build(t, &Config{}, fmt.Sprintf("{hosts: [%q, 'http://user:hush@127.0.0.1:1'], index: %s}", dead.URL, name), sinktest.Plan{Fields: "n BIGINT"})
	err := none.Sink.(sinks.Starter).Start(ctx, &sinks.Env{})
	if err == nil || sinks.IsPermanent(err) || strings.Contains(err.Error(), "hush") || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

// TestHeaders: authentication, headers of one's own, compatibility, compression.
func TestHeaders(t *testing.T) {
	real := services.Elasticsearch(t)
	name := index(t, real)
	var got http.Header
	b := newBetween(t, real, nil)
	b.do = func(b *between, n int, w http.ResponseWriter, r *http.Request, body []byte) {
		got = r.Header.Clone()
		r.Header.Del("Authorization")
		b.pass(w, r, body)
	}
	for keys, want := range map[string]map[string]string{
		"user: u, password: p": {"Authorization": "Basic dTpw", "Content-Type": "application/x-ndjson", "Content-Encoding": ""},
		"api_key: 'id:key'":    {"Authorization": "ApiKey aWQ6a2V5"},
		"api_key: aWQ6a2V5, gzip: true, headers: {X-Opaque-Id: me}": {"Authorization": "ApiKey aWQ6a2V5", "X-Opaque-Id": "me", "Content-Encoding": "gzip"},
		"compatible_with: 7": {"Content-Type": "application/vnd.elasticsearch+x-ndjson;compatible-with=7", "Accept": "application/vnd.elasticsearch+json;compatible-with=7"},
	} {
		s := started(t, b.URL, keys+", index: "+name, sinktest.Plan{Fields: "n BIGINT"})
		if r := s.Send(ctx, s.Part(t, split, 1, `{"n": 1}`)); r.Err != nil || r.Rejects != nil {
			t.Errorf("%s: %+v", keys, r)
		}
		for h, v := range want {
			if got.Get(h) != v {
				t.Errorf("%s: %s is %q, want %q", keys, h, got.Get(h), v)
			}
		}
	}
}

// TestCancel: a delivery to a node that doesn't answer, or doesn't read, ends with its context.
func TestCancel(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // nobody accepts: the kernel takes what fits
	s := sinktest.Build(t, &Config{}, fmt.Sprintf("{hosts: ['http://%s'], index: i}", l.Addr()), sinktest.Plan{Fields: "n BIGINT, pad STRING"})
	es := s.Sink.(*Sink)
	if err := es.connect(); err != nil {
		t.Fatal(err)
	}
	defer es.Stop(ctx)
	var recs []string
	for i := range 300 {
		recs = append(recs, fmt.Sprintf(`{"n": %d, "pad": %q}`, i, strings.Repeat("x", 50_000)))
	}
	for _, part := range [][]string{recs[:1], recs} {
		p := s.Part(t, split, 1, part...)
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		begun := time.Now()
		r := s.Send(short, p)
		cancel()
		if !errors.Is(r.Err, context.DeadlineExceeded) || time.Since(begun) > 5*time.Second {
			t.Errorf("%v after %v", r.Err, time.Since(begun))
		}
	}
}
