// Package bench measures rsetl against hand-written loops and against peers, on the same files.
//
// The benchmarks run a pipeline in-process, as `rsetl run --once` does; cmd/ratios runs whole programs. The data
// comes from a generator of a fixed seed: the same lines on every machine.
package bench

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"
)

// Kind is a kind of input.
type Kind string

const (
	Apache Kind = "apache" // combined log lines, 228 bytes on average
	JSON   Kind = "json"   // log objects, 600 bytes on average
)

// Lines makes log lines, the same ones each time.
type Lines struct {
	kind Kind
	r    *rand.Rand
	n    int64
}

// NewLines starts at the first line of that kind.
func NewLines(kind Kind) *Lines { return &Lines{kind: kind, r: rand.New(rand.NewPCG(20261201, 7))} }

var (
	begin  = time.Date(2026, 2, 24, 0, 0, 0, 0, time.UTC)
	words  = []string{"products", "cart", "search", "static", "img", "api", "v2", "orders", "users", "login", "blog", "assets", "items", "reviews", "checkout"}
	exts   = []string{"", "", ".html", ".css", ".js", ".png", ".json"}
	hosts  = []string{"https://www.example.com/", "https://shop.example.com/products/list?category=garden&sort=price", "https://www.google.com/search?q=garden+chairs", "-", "https://blog.example.org/2026/02/spring-catalogue"}
	agents = []string{
		"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/148.0",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/144.0 Safari/537.36",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 26_2 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1",
		"Mozilla/5.0 (Macintosh; Intel Mac OS X 15_3) AppleWebKit/605.1.15 Version/26.2 Safari/605.1.15",
		"curl/8.14.1",
		"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
	}
	cities   = []string{"Berlin", "Köln", "São Paulo", "Lyon", "Hangzhou", "Boston"}
	lands    = []string{"DE", "BR", "FR", "CN", "US"}
	services = []string{"gateway", "checkout", "catalogue", "identity"}
)

// status is 85/10/4/1 % of 2xx/3xx/4xx/5xx; 5xx is always 503.
func (l *Lines) status() int {
	switch k := l.r.IntN(100); {
	case k < 80:
		return 200
	case k < 85:
		return 206
	case k < 90:
		return 301
	case k < 95:
		return 304
	case k < 98:
		return 404
	case k < 99:
		return 403
	}
	return 503
}

func pick(r *rand.Rand, of []string) string { return of[r.IntN(len(of))] }

func (l *Lines) path(dst []byte) []byte {
	for range 3 + l.r.IntN(3) {
		dst = append(append(dst, '/'), pick(l.r, words)...)
	}
	dst = strconv.AppendInt(append(dst, '/'), int64(l.r.IntN(100_000)), 10)
	return append(dst, pick(l.r, exts)...)
}

func (l *Lines) ip(dst []byte) []byte {
	return fmt.Appendf(dst, "%d.%d.%d.%d", 1+l.r.IntN(223), l.r.IntN(256), l.r.IntN(256), 1+l.r.IntN(254))
}

// Append appends the next line with its newline.
func (l *Lines) Append(dst []byte) []byte {
	at := begin.Add(time.Duration(l.n) * 7 * time.Millisecond)
	l.n++
	if l.kind == JSON {
		return l.object(dst, at)
	}
	dst = append(l.ip(dst), " - "...)
	if l.r.IntN(10) == 0 {
		dst = append(append(dst, "user"...), strconv.Itoa(l.r.IntN(1000))...)
	} else {
		dst = append(dst, '-')
	}
	dst = at.AppendFormat(dst, " [02/Jan/2006:15:04:05 -0700] \"")
	if l.r.IntN(8) == 0 {
		dst = append(dst, "POST "...)
	} else {
		dst = append(dst, "GET "...)
	}
	dst = l.path(dst)
	if l.r.IntN(4) == 0 {
		dst = fmt.Appendf(dst, "?page=%d&ref=%08x", l.r.IntN(100), l.r.Uint32())
	}
	dst = fmt.Appendf(dst, " HTTP/1.1\" %d %d \"%s\" \"%s\"\n", l.status(), l.r.IntN(60_000), pick(l.r, hosts), pick(l.r, agents))
	return dst
}

// object is a log object. Keys are sorted, so that a program that encodes it anew from a map gives the same bytes.
func (l *Lines) object(dst []byte, at time.Time) []byte {
	r := l.r
	status := l.status()
	level := "info"
	switch {
	case status >= 500:
		level = "error"
	case r.IntN(100) < 9:
		level = "warn"
	}
	dst = fmt.Appendf(dst, `{"bytes":%d,"client":{"geo":{"city":"%s","country":"%s"},"ip":"`, r.IntN(60_000), pick(r, cities), pick(r, lands))
	dst = l.ip(dst)
	dst = fmt.Appendf(dst, `","port":%d},"duration":%d.%03d,"host":"web-%02d.example.net","level":"%s","message":"request `,
		1024+r.IntN(60_000), r.IntN(3), 1+r.IntN(998), r.IntN(40), level)
	path := l.path(nil)
	dst = append(append(dst, `\"`...), path...)
	dst = fmt.Appendf(dst, `\" took %d ms","method":"GET","path":"%s","request_id":"%016x%016x","service":{"name":"%s","version":"4.%d.%d"},"status":%d,"tags":["prod","edge","%s"],"time":"`,
		r.IntN(3000), path, r.Uint64(), r.Uint64(), pick(r, services), r.IntN(30), r.IntN(10), status, pick(r, words))
	dst = at.AppendFormat(dst, "2006-01-02T15:04:05.000Z")
	dst = fmt.Appendf(dst, `","trace":{"sampled":%t,"span_id":"%016x"},"user_agent":"%s"}`, r.IntN(2) == 0, r.Uint64(), pick(r, agents))
	return append(dst, '\n')
}

// WriteFile makes a file of at least size bytes and gives the number of its lines.
func WriteFile(path string, kind Kind, size int64) (lines int64, err error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	lines, err = Write(w, kind, size)
	if e := w.Flush(); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return lines, err
}

// Write writes lines of at least size bytes in all.
func Write(w io.Writer, kind Kind, size int64) (lines int64, err error) {
	l := NewLines(kind)
	var buf []byte
	for size > 0 {
		buf = l.Append(buf[:0])
		if _, err := w.Write(buf); err != nil {
			return lines, err
		}
		size -= int64(len(buf))
		lines++
	}
	return lines, nil
}
