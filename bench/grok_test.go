package bench

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"

	"github.com/dlclark/regexp2"
	gogrok "github.com/elastic/go-grok"

	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/parsers/grok"
)

const nginx = `^%{IPORHOST:remote_addr} - %{DATA:remote_user} \[%{HTTPDATE:time_local}\] "%{WORD:method} %{URIPATHPARAM:path} HTTP/%{NUMBER:version}" %{INT:status} %{INT:body_bytes} "%{DATA:referer}" "%{DATA:agent}" rt=%{NUMBER:request_time} uct=%{NUMBER:connect_time}$`

// grokCases are patterns with lines that match; a miss is such a line with its last third gone, and early another program's.
var grokCases = []struct{ name, pattern, line string }{
	{"SYSLOGLINE", "%{SYSLOGLINE}", `Mar  7 04:02:15 gateway-3 sshd[24208]: Accepted publickey for deploy from 203.0.113.87 port 52144 ssh2: ED25519 SHA256:abcdef`},
	{"HAPROXYHTTP", "%{HAPROXYHTTP}", `Feb  6 12:14:14 lb1.example.net haproxy[14389]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {shop.example.com} {} "GET /index.html?x=1 HTTP/1.1"`},
	{"S3_ACCESS_LOG", "%{S3_ACCESS_LOG}", `79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be awsexamplebucket [06/Feb/2026:00:00:38 +0000] 192.0.2.3 79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /awsexamplebucket?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" -`},
	{"nginx", nginx, `198.51.100.23 - alice [07/Mar/2026:04:02:15 +0100] "GET /api/v2/items/4711?sort=price HTTP/2.0" 200 5316 "https://shop.example.com/" "curl/8.14.1" rt=0.012 uct=0.001`},
	{"CISCOFW106023", "%{CISCOFW106023}", `Deny tcp src outside:203.0.113.12/44312 dst inside:192.0.2.40/8443 by access-group "OUTSIDE-IN" [0x5063b82f, 0x0]`},
	{"JAVASTACKTRACEPART", "%{JAVASTACKTRACEPART}", "	at com.example.shop.checkout.PaymentService.charge(PaymentService.java:214)"},
}

// apacheLines are some lines of the generator, without their newlines.
func apacheLines() [][]byte {
	l := NewLines(Apache)
	lines := make([][]byte, 1000)
	for i := range lines {
		lines[i] = bytes.TrimSuffix(l.Append(nil), []byte("\n"))
	}
	return lines
}

func mustGrok(tb testing.TB, pattern string) *grok.Pattern {
	tb.Helper()
	dict, _ := grok.Set("ecs")
	p, err := grok.Compile(pattern, dict, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// The hand-written scanner and the engine find the same texts.
func TestScanApache(t *testing.T) {
	p := mustGrok(t, "%{COMBINEDAPACHELOG}")
	m := p.Regex.Matcher()
	caps := make([]int, 2*(p.Regex.Groups+1))
	var at [22]int
	for _, line := range apacheLines() {
		if ok, err := m.Match(line, caps); !ok || err != nil {
			t.Fatalf("%s: %v %v", line, ok, err)
		}
		if !scanApache(line, &at) {
			t.Fatalf("the scanner doesn't take %s", line)
		}
		byHand, byEngine := map[string]bool{}, map[string]bool{}
		for k := 0; k < len(at); k += 2 {
			byHand[string(line[at[k]:at[k+1]])] = true
		}
		for k := 2; k < len(caps); k += 2 {
			if caps[k] >= 0 {
				byEngine[string(bytes.Trim(line[caps[k]:caps[k+1]], `"`))] = true
			}
		}
		for s := range byEngine {
			if !byHand[s] {
				t.Fatalf("%s: only the engine has %q", line, s)
			}
		}
	}
}

func benchLines(b *testing.B, lines [][]byte, want bool, f func([]byte) bool) {
	b.Helper()
	for _, l := range lines {
		if f(l) != want {
			b.Fatalf("%s: want %v", l, want)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		f(lines[i%len(lines)])
	}
}

// BenchmarkGrok is one pattern on lines that match (hit), that a line of another kind is (early) and that are cut off (late): by
// rsetl, by hand, by go-grok (in whose names the captures come as a map) and by two engines for the same expression.
func BenchmarkGrok(b *testing.B) {
	type set struct {
		name  string
		lines [][]byte
		want  bool
	}
	run := func(name, pattern string, lines [][]byte, hand func([]byte) bool) {
		b.Run("pattern="+name, func(b *testing.B) {
			p := mustGrok(b, pattern)
			other := []byte(`{"level":"info","ts":"2026-03-07T04:02:15.123Z","caller":"server/http.go:117","msg":"request done","path":"/api/v2/items","took":0.0123,"trace":"5f2b9d0c77aa41d0"}`)
			var cut [][]byte
			for _, l := range lines {
				cut = append(cut, l[:len(l)*2/3])
			}
			for _, s := range []set{{"hit", lines, true}, {"early", [][]byte{other}, false}, {"late", cut, false}} {
				if s.name == "late" && (name == "SYSLOGLINE" || name == "JAVASTACKTRACEPART") {
					if ok, _ := p.Regex.Matcher().Match(cut[0], nil); ok {
						continue // the message's end is free
					}
				}
				b.Run("line="+s.name, func(b *testing.B) {
					if hand != nil {
						b.Run("by=hand", func(b *testing.B) { benchLines(b, s.lines, s.want, hand) })
					}
					b.Run("by=rsetl", func(b *testing.B) {
						m := p.Regex.Matcher()
						caps := make([]int, 2*(p.Regex.Groups+1))
						benchLines(b, s.lines, s.want, func(l []byte) bool { ok, _ := m.Match(l, caps); return ok })
					})
					text, err := engine.ForRegexp2(p.Regex.Source)
					if err != nil {
						b.Fatal(err)
					}
					b.Run("by=regexp2", func(b *testing.B) {
						re := regexp2.MustCompile(text, regexp2.None)
						var runes [][]rune
						for _, l := range s.lines {
							runes = append(runes, []rune(string(l)))
						}
						for i := range b.N {
							re.FindRunesMatch(runes[i%len(runes)])
						}
					})
					if text, ok := engine.ForRegexp(p.Regex.Source); ok {
						b.Run("by=regexp", func(b *testing.B) {
							re := regexp.MustCompile(text)
							benchLines(b, s.lines, s.want, func(l []byte) bool { return re.FindSubmatchIndex(l) != nil })
						})
					}
					b.Run("by=go-grok", func(b *testing.B) {
						g, err := gogrok.NewComplete()
						if err == nil {
							err = g.Compile(pattern, true)
						}
						if err != nil {
							b.Skip(err)
						}
						for i := range b.N {
							g.Parse(s.lines[i%len(s.lines)])
						}
					})
				})
			}
		})
	}
	run("COMBINEDAPACHELOG", "%{COMBINEDAPACHELOG}", apacheLines(), func(l []byte) bool { var at [22]int; return scanApache(l, &at) })
	for _, c := range grokCases {
		run(c.name, c.pattern, [][]byte{[]byte(c.line)}, nil)
	}
}

// BenchmarkGrokAdversarial has expressions and texts that take others for minutes: time by byte of the text stays bounded.
func BenchmarkGrokAdversarial(b *testing.B) {
	long := bytes.Repeat([]byte("a"), 38_000)
	words := bytes.Repeat([]byte("word "), 7_600)
	groups := ""
	for i := range 100 {
		groups += fmt.Sprintf("(a?%d?)", i%10)
	}
	for _, c := range []struct {
		name, src string
		text      []byte
		counted   bool // more than Go's parser takes: by regexp2, up to its time limit
	}{
		{"nested", `(?:a*)*[bc]`, long, false}, {"nested-captured", `((a*)*)*[bc]`, long, false}, {"alternatives", `(a|aa)+\z.`, long, false}, {"dots", `(.*)(.*)(.*)(.*)(.*)[xy]`, long, false}, {"delimiters", `(.*) - (.*) - (.*) - (.*)`, words, false},
		{"counted", `(?:a{0,30}){30}[bc]`, long, false}, {"window", `a.{12}b|(a.{900}c)`, long, false}, {"100 groups", groups + "[xy]", long, false}, {"lazy", `(.*?)(a*?)(.*?)[bc]`, long, false},
		{"counted-words", `(?:\w{1,40} ){500}[xy]`, words, false}, {"a-million", `(?:a{1000}){1000}[bc]`, long, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			r, err := engine.Compile(c.src)
			if err != nil {
				b.Fatal(err)
			}
			if r.Linear() == c.counted {
				b.Fatal(r.Why)
			}
			m := r.Matcher()
			caps := make([]int, 2*(r.Groups+1))
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for range b.N {
				m.Match(c.text, caps)
			}
		})
	}
}

// stock are patterns of the dictionary that say enough to be pinned to a line's beginning.
var stock = []string{
	"SYSLOG5424LINE", "HAPROXYTCP", "HAPROXYHTTP", "S3_ACCESS_LOG", "ELB_ACCESS_LOG", "CISCOFW106001", "CISCOFW106014", "CISCOFW106015", "CISCOFW106021", "CISCOFW106023",
	"CISCOFW106100", "CISCOFW110002", "CISCOFW302010", "CISCOFW302013_302014_302015_302016", "CISCOFW302020_302021", "CISCOFW304001", "CISCOFW305011", "CISCOFW313001_313004_313008", "CISCOFW402117", "CISCOFW419001",
	"CISCOFW500004", "CISCOFW733100", "JAVASTACKTRACEPART", "REDISLOG", "RUBY_LOGGER", "MONGO3_LOG", "POSTGRESQL", "EXIM_DATE", "SQUID3", "COMBINEDAPACHELOG",
}

// BenchmarkGrokList is a list of 30 patterns, each pinned to the beginning or each anywhere in the text, against the one of
// them that matches.
func BenchmarkGrokList(b *testing.B) {
	for _, at := range []string{"^", ""} {
		var list []*engine.Regex
		for _, name := range stock {
			list = append(list, mustGrok(b, at+"%{"+name+"}").Regex)
		}
		lines := map[string][][]byte{"COMBINEDAPACHELOG": apacheLines()}
		for _, c := range grokCases {
			lines[c.name] = [][]byte{[]byte(c.line)}
		}
		for k, name := range stock {
			if lines[name] != nil {
				b.Run("pinned="+fmt.Sprint(at != "")+"/winner="+name, func(b *testing.B) { benchList(b, list, k, lines[name]) })
			}
		}
	}
}

func benchList(b *testing.B, list []*engine.Regex, k int, lines [][]byte) {
	var ms []engine.Matcher
	var caps [][]int
	for _, r := range list {
		ms, caps = append(ms, r.Matcher()), append(caps, make([]int, 2*(r.Groups+1)))
	}
	b.Run("by=alone", func(b *testing.B) {
		benchLines(b, lines, true, func(l []byte) bool { ok, _ := ms[k].Match(l, caps[k]); return ok })
	})
	b.Run("by=list", func(b *testing.B) {
		m := engine.NewSet(list).Matcher()
		benchLines(b, lines, true, func(l []byte) bool { i, _ := m.Match(l, caps); return i == k })
	})
	b.Run("by=each in turn", func(b *testing.B) {
		benchLines(b, lines, true, func(l []byte) bool {
			for i, m := range ms {
				if ok, _ := m.Match(l, caps[i]); ok {
					return i == k
				}
			}
			return false
		})
	})
}
