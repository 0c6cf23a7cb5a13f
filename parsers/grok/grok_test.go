package grok

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// msg makes a record of a message and checks what else it gets.
func check(t *testing.T, step, text, rest, want string) {
	t.Helper()
	q := string(record.AppendJSONString(nil, []byte(text)))
	s := steptest.New(t, step, steptest.Options{})
	if rest != "" {
		rest = "," + rest
	}
	if want != "" && want[0] != '!' {
		s.Want(t, `{"message":`+q+rest+`}`, `{"message":`+q+`,`+want+`}`)
	} else {
		s.WantFail(t, `{"message":`+q+rest+`}`, strings.TrimPrefix(want, "!"))
	}
}

func TestSemantics(t *testing.T) {
	for _, c := range []struct{ step, text, rest, want string }{
		// names and casts
		{`grok: '%{WORD:a} %{INT:b.c:int} %{NUMBER:[d][e]:float} %{WORD:f:boolean}'`, "x 12 1.5 true", "", `"a":"x","b":{"c":12},"d":{"e":1.5},"f":true`},
		{`grok: '%{NUMBER:a:int} %{NUMBER:b:int} %{NUMBER:c:long} %{NUMBER:d:double} %{WORD:e:string}'`, "1.9 -7 9223372036854775807 -0.25 s", "", `"a":1,"b":-7,"c":9223372036854775807,"d":-0.25,"e":"s"`},
		{`grok: '%{NOTSPACE:a:int} %{NOTSPACE:b:float} %{NOTSPACE:c:boolean}'`, "x y no", "", `"a":0,"b":0,"c":false`},
		{`grok: '%{NOTSPACE:a:int} %{NOTSPACE:b:int}'`, "99999999999999999999 -99999999999999999999", "", `"a":9223372036854775807,"b":-9223372036854775807`},
		{`grok: '(?<a>\w+) (?<b.c:int>\d+) (plain) (?<[d][e]>x)'`, "q 5 plain x", "", `"a":"q","b":{"c":5},"d":{"e":"x"}`},
		// twice, empty, absent
		{`grok: '%{INT:n} %{INT:n} %{INT:n}'`, "1 2 3", "", `"n":["1","2","3"]`},
		{`grok: '%{INT:n:int},%{INT:n:int}'`, "1,2", "", `"n":[1,2]`},
		{`grok: '(?:%{INT:n}|%{WORD:n})'`, "w", "", `"n":"w"`},
		{`grok: 'a=%{DATA:a};b=%{DATA:b};'`, "a=;b=x;", "", `"b":"x"`},
		{`grok: 'a=%{DATA:a};(?:b=%{DATA:b};)?'`, "a=1;", "", `"a":"1"`},
		// what is there already
		{`grok: '%{INT:n}'`, "5", `"n":"4"`, `"n":["4","5"]`},
		{`grok: '%{INT:n} %{INT:n}'`, "5 6", `"n":["3","4"]`, `"n":["3","4","5","6"]`},
		{`grok: '%{INT:n}'`, "5", `"n":null`, `"n":"5"`},
		{`grok: 'x%{DATA:n}$'`, "x", `"n":"4"`, `"n":"4"`},
		{`grok: {patterns: '%{INT:n}', overwrite: [n]}`, "5", `"n":"4"`, `"n":"5"`},
		{`grok: {patterns: '%{INT:a.b}', overwrite: [a]}`, "5", `"a":{"b":"4"}`, `"a":{"b":"5"}`},
		{`grok: {patterns: 'x%{DATA:n}$', overwrite: [n]}`, "x", `"n":"4"`, `"n":"4"`},
		// several patterns, in order
		{`grok: ['^%{INT:n}$', '^%{WORD:w}$', '%{GREEDYDATA:rest}']`, "abc", "", `"w":"abc"`},
		{`grok: {patterns: ['a%{INT:n}', '%{INT:m}']}`, "7", "", `"m":"7"`},
		// definitions
		{`grok: '%{CODE=[A-Z]{2}\d+:x} %{INT:n}'`, "AB12 7", "", `!no pattern matches`},
		{`grok: '%{CODE:c=[A-Z]{2}\d+} %{INT:n}'`, "AB12 7", "", `"c":"AB12","n":"7"`},
		{`grok: '%{Q=a\}b} %{INT:n}'`, "a}b 7", "", `"n":"7"`},
		{`grok: {patterns: '%{REQ:id} %{PAIR}', definitions: {REQ: '[0-9a-f]{4}', PAIR: '%{WORD:k}=%{REQ:v}'}}`, "00ff x=abcd", "", `"id":"00ff","k":"x","v":"abcd"`},
		{`grok: {patterns: '%{INT:n}', definitions: {INT: '[a-z]+'}}`, "12ab", "", `"n":"ab"`},
		// text around it
		{`grok: '\[%{WORD:w}\] [\[] %{INT:n} %% }'`, "[x] [ 5 %% }", "", `"w":"x","n":"5"`},
		{`grok: '%{WORD:a}.%{WORD:b}'`, "x\ny", "", `"a":"x","b":"y"`},
		{`grok: '^%{INT:n}$'`, "x\n12\ny", "", `"n":"12"`},
		{`grok: '(?i)ERROR: %{GREEDYDATA:m}'`, "Error: é€\xff", "", "\"m\":\"é€\ufffd\""},
		{`grok: {field: line, patterns: '%{INT:n}'}`, "5", `"line":"7"`, `"line":"7","n":"7"`},
	} {
		check(t, c.step, c.text, c.rest, c.want)
	}
}

func TestFailures(t *testing.T) {
	s := steptest.New(t, `grok: ['%{INT:n}x', '%{IP:ip}']`, steptest.Options{})
	s.WantFail(t, `{"message":"abc","n":"1","k":2}`, "grok: no pattern matches: %{INT:n}x | %{IP:ip}")
	s.WantFail(t, `{"n":"1"}`, "grok: the field is missing")
	s.WantFail(t, `{"message":null}`, "grok: the field is missing")
	s.WantFail(t, `{"message":12}`, "grok: the field is no text but bigint")
	s.WantFail(t, `{"message":["a"]}`, "no text but array")
	s.Want(t, `{"message":{"$bytes":"1.2.3.4"}}`, `{"message":"MS4yLjMuNA==","ip":"1.2.3.4"}`)
	slow := steptest.New(t, `grok: '(?=aa)(a+)+(?<x>[bc])'`, steptest.Options{})
	start := time.Now()
	slow.WantFail(t, `{"message":"`+strings.Repeat("a", 5000)+`"}`, "grok: timeout: the expression took longer than 50ms: (?=aa)(a+)+(?<x>[bc])")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("a time-out after %s", took)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{`grok: '%{INT:n} %{NUMBR:x}'`, `test:1:17: grok: unknown pattern NUMBR; did you mean NUMBER?`},
		{`grok: 'é%{Zqxw9}'`, `test:1:9: grok: unknown pattern Zqxw9`},
		{`grok: {patterns: ['%{INT:n}', '%{COMBINDAPACHELOG}']}`, `test:1:32: grok.patterns[1]: unknown pattern COMBINDAPACHELOG; did you mean COMBINEDAPACHELOG?`},
		{`grok: '%{INT'`, `test:1:8: grok: a %{ has no end`},
		{`grok: '%{INT:a b}'`, ``},
		{`grok: '%{INT:}'`, `is no pattern reference`},
		{`grok: '%{IN T}'`, `unknown pattern IN`},
		{`grok: '%{INT:n:number}'`, `unknown type "number"; there are int, long`},
		{`grok: '%{INT:a..b}'`, `"a..b" is no field`},
		{`grok: '%{INT:@path}'`, `@path is metadata and can't be set`},
		{`grok: 'ab(c'`, `test:1:10: grok: the group's ) is missing`},
		{`grok: '%{INT:n} [z-a]'`, `test:1:19: grok: the range z-a is empty`},
		{`grok: {patterns: '%{A}', definitions: {A: '%{B}', B: '%{A}'}}`, `refers to itself: A > B > A`},
		{`grok: {patterns: '%{INT:n}', definitions: {A: 'x%{NOSUCH9}'}}`, `grok.definitions.A: unknown pattern NOSUCH9`},
		{`grok: {patterns: '%{INT:n}', definitions: {A: '(x'}}`, `the group's ) is missing`},
		{`grok: {patterns: '%{INT:n}', definitions: {'A B': 'x'}}`, `is no pattern's name`},
		{`grok: {patterns: '%{INT:n}', set: esc}`, `did you mean "ecs"`},
		{`grok: {patterns: []}`, `want at least one pattern`},
		{`grok: {field: x}`, `key "patterns" is missing`},
	} {
		s, err := steptest.Try(c.step, steptest.Options{})
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.step, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %v, want %q", c.step, s, err, c.want)
		}
	}
}

func TestDeclare(t *testing.T) {
	s := steptest.New(t, `grok: ['%{INT:n:int} %{WORD:w} %{NUMBER:f:float}', '%{INT:m} %{INT:m}']`, steptest.Options{})
	want := map[string]expr.TypeKind{"n": expr.TBigInt, "w": expr.TVarchar, "f": expr.TDouble, "m": expr.Type{}.Kind}
	for _, f := range s.Decl.WriteFields {
		if f.Type.Kind != want[f.Name] {
			t.Errorf("%s is %v", f.Name, f.Type)
		}
	}
}

// What nothing reads is not captured.
func TestLive(t *testing.T) {
	s := steptest.New(t, `grok: '%{COMBINEDAPACHELOG}'`, steptest.Options{Live: func(f string) bool { return f == "http.response.status_code" }})
	c := s.Config.(*Config)
	if n := len(c.compiled[0].Captures); n != 1 || c.compiled[0].Regex.Groups != 1 {
		t.Errorf("%d captures, %d groups", n, c.compiled[0].Regex.Groups)
	}
	s.Want(t, `{"message":"1.2.3.4 - - [24/Feb/2026:23:13:42 +0000] \"GET / HTTP/1.1\" 503 12 \"-\" \"x\""}`,
		`{"message":"1.2.3.4 - - [24/Feb/2026:23:13:42 +0000] \"GET / HTTP/1.1\" 503 12 \"-\" \"x\"","http":{"response":{"status_code":503}}}`)
}

// What people ran into with other tools; the values are those that are right.
func TestCases(t *testing.T) {
	start := time.Now()
	check(t, `grok: '%{PATH:path}'`, `Invalid argument supplied for foreach() in /home/u/public_html/advanced-cache.php(261) : runtime-created function on line 648 [a b c d e f g h i j k l m n o p]`, "", `"path":"/home/u/public_html/advanced-cache.php"`)
	check(t, `grok: '%{GREEDYDATA:a} - %{GREEDYDATA:b} - %{GREEDYDATA:c} - %{GREEDYDATA:d}'`, strings.Repeat("no dash here ", 100), "", `!grok: no pattern matches: %{GREEDYDATA:a} - %{GREEDYDATA:b}`)
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	check(t, `grok: '(?=%{GREEDYDATA:message2})%{WORD:pam_module}\(%{DATA:pam_caller}\): session %{WORD:pam_session_state} for user %{USERNAME:username}(?:\(uid=%{INT:uid:int}\))? by %{GREEDYDATA:pam_by}'`,
		`pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)`, "",
		`"message2":"pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)","pam_module":"pam_unix","pam_caller":"cron:session","pam_session_state":"opened","username":"root","uid":0,"pam_by":"(uid=0)"`)
	check(t, `grok: '%{COMBINEDAPACHELOG}'`, `63.140.98.80 - - [20/May/2015:21:05:50 +0000])"`, "", `!no pattern matches: %{COMBINEDAPACHELOG}`)

	haproxy := func(step, line string) string {
		t.Helper()
		out, fail := steptest.New(t, step, steptest.Options{}).One(t, `{"message":`+string(record.AppendJSONString(nil, []byte(line)))+`}`)
		if fail != "" {
			t.Errorf("%s: %s", line, fail)
		}
		return out
	}
	tail := `[14/Feb/2017:15:40:22.123] frt bck/srv 0/0/0/1/1 200 350 - - ---- 1/1/0/0/0 0/0 "GET /`
	for _, set := range []string{"ecs", "legacy"} {
		// From a unix socket there is no IP address.
		out := haproxy(`grok: {set: `+set+`, patterns: '%{HAPROXYHTTPBASE}'}`, `unix:1 `+tail+`x HTTP/1.1"`)
		if !strings.Contains(out, `:"frt"`) || !strings.Contains(out, `:"srv"`) {
			t.Errorf("%s: %s", set, out)
		}
		// Cut off by UDP: no closing quote.
		out = haproxy(`grok: {set: `+set+`, patterns: '%{HAPROXYHTTPBASE}'}`, `1.2.3.4:5678 `+tail+strings.Repeat("a", 900))
		if !strings.Contains(out, `"1.2.3.4"`) || !strings.Contains(out, `:"srv"`) {
			t.Errorf("%s: %s", set, out)
		}
	}
	check(t, `grok: '%{HAPROXYERROR}'`, `127.0.0.1:56059 [03/Dec/2012:17:35:10.380] frt/f1:  Connection error during SSL handshake`, "",
		`"source":{"address":"127.0.0.1","port":56059},"haproxy":{"request_date":"03/Dec/2012:17:35:10.380","frontend_name":"frt","bind_name":"f1"},"error":{"message":"Connection error during SSL handshake"}`)
}

func TestSyslogAndApache(t *testing.T) {
	check(t, `grok: '%{SYSLOGBASE} %{GREEDYDATA:text}'`, `Feb  4 12:01:02 web-1 sshd[123]: Accepted`, "",
		`"timestamp":"Feb  4 12:01:02","host":{"hostname":"web-1"},"process":{"name":"sshd","pid":123},"text":"Accepted"`)
	check(t, `grok: {set: legacy, patterns: '%{SYSLOGBASE} %{GREEDYDATA:text}'}`, `Feb  4 12:01:02 web-1 sshd[123]: Accepted`, "",
		`"timestamp":"Feb  4 12:01:02","logsource":"web-1","program":"sshd","pid":"123","text":"Accepted"`)
	check(t, `grok: '%{COMBINEDAPACHELOG}'`, `::1 - bob [24/Feb/2026:23:13:42 +0000] "POST /a?b=c HTTP/2.0" 204 - "http://x/" "curl/8 (x)"`, "",
		`"source":{"address":"::1"},"user":{"name":"bob"},"timestamp":"24/Feb/2026:23:13:42 +0000","http":{"request":{"method":"POST","referrer":"http://x/"},"version":"2.0","response":{"status_code":204}},"url":{"original":"/a?b=c"},"user_agent":{"original":"curl/8 (x)"}`)
}

func TestCompileMatcher(t *testing.T) {
	m, err := CompileMatcher(`^%{TIMESTAMP_ISO8601} |^(?!\s)`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if !m.Match([]byte("2026-02-24T23:13:42Z x")) || !m.Match([]byte("at")) || m.Match([]byte("  at x")) || m.Match([]byte("\tat x")) {
					t.Error("wrong")
				}
			}
		})
	}
	wg.Wait()
	if _, err := CompileMatcher(`%{NOSUCH}`, nil); err == nil {
		t.Error("an unknown pattern is no mistake")
	}
	if m, err := CompileMatcher(`^\s`, nil); err != nil || !m.Match([]byte(" x")) || m.Match([]byte("x")) {
		t.Error(err)
	}
}

// The engine's captures are the expansion's, whatever is dropped.
func TestTake(t *testing.T) {
	d, _ := Set("ecs")
	p, err := Compile(`%{INT:n:int} %{INT:n:int} (x)?%{WORD:w}%{DATA:e}$`, d, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := record.NewTable()
	for _, c := range p.Captures {
		table.Slot(c.Field)
	}
	b := record.NewBatch(table)
	src := b.PutString("1 2 abc")
	i := b.Add(record.Position{}, src)
	caps := make([]int, 2*(p.Regex.Groups+1))
	if ok, err := p.Regex.Matcher().Match(b.Bytes(src), caps); !ok || err != nil {
		t.Fatal(ok, err)
	}
	p.Take(b, i, src, caps)
	if got := string(record.NewEncoder(table, nil, true).Append(nil, b, i)); !steptest.SameJSON(got, `{"n":[1,2],"w":"abc"}`) {
		t.Error(got)
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{`%{INT:a}`, `%{`, `%{INT:[a][b]:int}`, `%{A=[^}]}`, `(?<a`, `[[:alpha:]%{INT}]`, `\%{INT}`, `%{QS}(?<a.b:int>x)`, `[^]%{INT}]`, `(?P<x___y>z)`, `%{INT:@path}`} {
		f.Add(s, "text 12")
	}
	d, _ := Set("ecs")
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 300 || len(text) > 300 {
			return
		}
		p, err := Compile(src, d, nil)
		if err != nil {
			return
		}
		if p.Regex.Groups < len(p.Captures) {
			t.Fatalf("%q: %d captures, %d groups", src, len(p.Captures), p.Regex.Groups)
		}
		caps := make([]int, 2*(p.Regex.Groups+1))
		ok, err := p.Regex.Matcher().Match([]byte(text), caps)
		if err == nil && !ok {
			if s := NewDebugger(src, d).Explain([]byte(text)); s.MatchedTo < 0 || s.MatchedTo > len(text) || s.At == "" {
				t.Fatalf("%q on %q: %+v", src, text, s)
			}
		}
	})
}

func benchmarkApache(b *testing.B, live func(string) bool) {
	const line = `203.0.113.57 - frank [24/Feb/2026:23:13:42 +0000] "GET /api/v2/orders/1827364?page=2 HTTP/1.1" 503 18231 "https://shop.example.com/cart" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"`
	s := steptest.New(b, `grok: '%{COMBINEDAPACHELOG}'`, steptest.Options{Live: live})
	slot := s.Table.Slot("message")
	batch := record.NewBatch(s.Table)
	b.SetBytes(int64(100 * len(line)))
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for range 100 {
			v := batch.PutString(line)
			batch.Set(batch.Add(record.Position{}, v), slot, v)
		}
		s.Apply(batch)
		if len(batch.Sel) != 100 {
			b.Fatal(batch.Fails)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/line")
}

func BenchmarkApache(b *testing.B) { benchmarkApache(b, nil) }
func BenchmarkApacheStatus(b *testing.B) {
	benchmarkApache(b, func(f string) bool { return f == "http.response.status_code" })
}
