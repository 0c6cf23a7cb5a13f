package grok

import (
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	d, _ := Set("ecs")
	apache := `1.2.3.4 - - [24/Feb/2026:23:13:42 +0000] "GET / HTTP/1.1" `
	for _, c := range []struct{ pattern, text, to, at string }{
		{`%{COMBINEDAPACHELOG}`, apache + `5x3 12 "-" "x"`, apache + `5`, `" " behind (?:-|%{INT:http.response.status_code:int})`},
		{`%{COMBINEDAPACHELOG}`, apache + `x 12 "-" "x"`, apache, `(?:-|%{INT:http.response.status_code:int})`},
		{`%{COMBINEDAPACHELOG}`, apache + `503 12`, apache + `503 12`, `" \"" behind %{HTTPD_COMMONLOG}`},
		{`%{COMBINEDAPACHELOG}`, `1.2.3.4 - - [24/Xeb/2026:23:13:42 +0000] "GET / HTTP/1.1" 503 12 "-" "x"`, `1.2.3.4 - - [24/`, `%{MONTH} in %{HTTPDATE:timestamp}`},
		{`%{COMBINEDAPACHELOG}`, `1.2.3.4 - - 24/Feb/2026:23:13:42 +0000] "GET / HTTP/1.1" 503 12 "-" "x"`, `1.2.3.4 - - `, `" [" behind (?:-|%{HTTPDUSER:user.name})`},
		{`%{COMBINEDAPACHELOG}`, `63.140.98.80 - - [20/May/2015:21:05:50 +0000])"`, `63.140.98.80 - - [20/May/2015:21:05:50 +0000]`, `"] \"" behind %{HTTPDATE:timestamp}`},
		{`%{COMBINEDAPACHELOG}`, `???`, ``, `%{IPORHOST:source.address}`},
		{`%{COMBINEDAPACHELOG}`, ``, ``, `%{IPORHOST:source.address}`},
		{`%{IP:client} %{WORD:method} %{URIPATH:path}`, `55.3.244.1 GET index`, `55.3.244.1 GET `, `%{URIPATH:path}`},
		{`^%{INT:a:int} GET /index %{INT:b}$`, `12 GET /inbox 3`, `12 GET /in`, `" GET /index " behind %{INT:a:int}`},
		{`^%{INT:a}$`, `12 x`, `12`, `$ (a line's end) behind %{INT:a}`},
		{`^%{INT:a}`, `x 12`, ``, `%{INT:a}`},
		{`^x|%{INT:a} b`, `12 c`, `12 `, `" b" behind %{INT:a}`},
		{`(?<id>[0-9]+-[a-f]{4})!`, `x 12-abcg!`, `x 12-`, `[a-f]{4} in (?<id>[0-9]+-[a-f]{4})`},
		{`\[%{LOGLEVEL:level}\] %{GREEDYDATA:msg}`, `[huh] x`, `[`, `%{LOGLEVEL:level}`},
		{`%{GREEDYDATA:a} - %{GREEDYDATA:b} - %{GREEDYDATA:c} - %{GREEDYDATA:d}`, `no dash here`, `no dash here`, `" - " behind %{GREEDYDATA:a}`},
		{`é%{INT:n}€`, `é5$`, `é5`, `"€" behind %{INT:n}`},
		{`(?:a|b%{INT:n}) x`, `b7 y`, `b7 `, `" x" behind (?:a|b%{INT:n})`},
		{`(?:a|b%{INT:n}c) x`, `b7 x`, `b7`, `"c" behind %{INT:n}`},
		{`a{2}b+\.c\p{L}\d`, `aabb.cé!`, `aabb.cé`, `\d`},
		{`[]a]+[^]b](?=c)%{INT:n}`, `]ax1`, `]ax`, `(?=c)`},
		{`(?>a+)ab`, `aab`, `aa`, `"ab"`},
	} {
		if _, err := Compile(c.pattern, d, nil); err != nil {
			t.Fatalf("%s: %v", c.pattern, err)
		}
		g := NewDebugger(c.pattern, d)
		for range 2 {
			if s := g.Explain([]byte(c.text)); s.MatchedTo != len(c.to) || s.At != c.at {
				t.Errorf("%s on %q\n got  %d %q, %s\n want %d %q, %s", c.pattern, c.text, s.MatchedTo, c.text[:s.MatchedTo], s.At, len(c.to), c.to, c.at)
			}
		}
	}
}

// Whatever is in a dictionary can be explained.
func TestExplainAll(t *testing.T) {
	d, _ := Set("ecs")
	for _, n := range d.Names() {
		p := "^%{" + n + "}\u0001$"
		if _, err := Compile(p, d, nil); err != nil {
			continue
		}
		g := NewDebugger(p, d)
		for _, text := range []string{"x 12 [a] 2026-01-01 \xff"} {
			if s := g.Explain([]byte(text)); s.At == "" || s.MatchedTo < 0 || s.MatchedTo > len(text) {
				t.Errorf("%s on %q: %+v", n, text, s)
			}
		}
	}
}

func TestExplainIsBounded(t *testing.T) {
	d, _ := Set("ecs")
	for _, c := range []struct{ pattern, text string }{
		{`%{COMBINEDAPACHELOG}`, strings.Repeat("word ", 20_000)},
		{strings.Repeat(`%{INT:a}?[,;]?x?`, 1500) + `!`, strings.Repeat("1,x", 1000)},
		{`(?=x)(x+x+)+y`, strings.Repeat("x", 5000)},
		{strings.Repeat(`(?:a|b)`, 300) + `c`, strings.Repeat("ab", 2000)},
	} {
		// The test's own time-out tells a hang; one match may be slow on a busy machine.
		if s := NewDebugger(c.pattern, d).Explain([]byte(c.text)); s.At == "" {
			t.Errorf("%.30s: %.50s", c.pattern, s.At)
		}
	}
}

func TestCaret(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int
		want string
	}{
		{"abc", 2, "abc\n  ^ matched to here; stopped at X"}, {"é€x", 5, "é€x\n  ^ matched to here; stopped at X"}, {"", 0, "\n^ matched to here; stopped at X"}, {"a\tb\nc", 4, "a b␊c\n    ^ matched to here; stopped at X"},
		{strings.Repeat("a", 1000) + strings.Repeat("b", 1000), 1000, "…" + strings.Repeat("a", 200) + strings.Repeat("b", 200) + "…\n" + strings.Repeat(" ", 201) + "^ matched to here; stopped at X"},
	} {
		if got := (Stop{MatchedTo: c.at, At: "X"}).Caret([]byte(c.text)); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}
