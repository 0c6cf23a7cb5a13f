package find

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func same(t *testing.T, lit, s []byte) {
	t.Helper()
	if got, want := New(lit).Index(s), bytes.Index(s, lit); got != want {
		t.Fatalf("%q in %q: %d, bytes.Index: %d", lit, s, got, want)
	}
}

func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300_000 {
		lit, s := make([]byte, r.IntN(9)), make([]byte, r.IntN(150))
		letters := 1 + r.IntN(4)
		for i := range lit {
			lit[i] = byte('a' + r.IntN(letters))
		}
		for i := range s {
			s[i] = byte('a' + r.IntN(letters))
		}
		if r.IntN(3) == 0 && len(s) >= len(lit) {
			copy(s[r.IntN(len(s)-len(lit)+1):], lit)
		}
		// Not at an even address, and with other bytes behind.
		room := append(make([]byte, r.IntN(40)), append(bytes.Clone(s), lit...)...)
		at := len(room) - len(lit) - len(s)
		same(t, lit, room[at:at+len(s):at+len(s)])
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`" 503 `), bytes.Repeat([]byte(`"GET / HTTP/1.1" 200 12 "-" "-" `), 4))
	f.Add([]byte("aa"), bytes.Repeat([]byte("a"), 33))
	f.Fuzz(func(t *testing.T, lit, s []byte) { same(t, lit, s) })
}

func BenchmarkIndex(b *testing.B) {
	line := []byte(`10.0.0.1 - - [24/Feb/2026:23:13:42 +0000] "GET /products/list/38993.css?page=30&ref=3a9f0c24 HTTP/1.1" 200 37309 "https://www.example.com/" "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"`)
	for _, lit := range []string{`" 503 `, "sqlmap", "ERROR", "/health"} {
		f := New([]byte(lit))
		b.Run("text="+lit+"/by=bytes", func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				bytes.Index(line, []byte(lit))
			}
		})
		b.Run("text="+lit+"/by=find", func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				f.Index(line)
			}
		})
	}
}
