package dissect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{"%{a} %{b}", "x y z", `{"a":"x","b":"y z"}`}, {"%{a} %{b}", "x ", `{"a":"x","b":""}`}, {"%{a->} %{b}", "x   y", `{"a":"x","b":"y"}`}, {"%{date}|%{a}|%{b}|%{status_code}|", "2017-10-24|||500|", `{"date":"2017-10-24","a":"","b":"","status_code":"500"}`},
		{"%{a} %{b} %{c}", "one bád líne", `{"a":"one","b":"bád","c":"líne"}`}, {"[%{a}] %{b}: %{}", "[x] y: skipped", `{"a":"x","b":"y"}`}, {"%{ts} %{+ts} %{host}", "Mar 16 h", `{"ts":"Mar 16","host":"h"}`},
		{"%{+a/2} %{+a/1} %{b}", "x y z", `{"a":"y x","b":"z"}`}, {"%{k}-%{+k}/%{+k}", "1-2/3", `{"k":"1-2/3"}`}, {"%{?k}=%{&k} %{?j}=%{&j}", "a=1 b=2", `{"a":"1","b":"2"}`}, {"%{&k}=%{?k}", "key=val", `{"val":"key"}`}, {"%{*k}=%{&k}", "key=val", `{"key":"val"}`},
		{"%{[x][y]},%{z.w}", "1,2", `{"x":{"y":"1"},"z":{"w":"2"}}`}, {"%{a}é%{b}", "xéy", `{"a":"x","b":"y"}`}, {"%{a} %{a}", "x y", `{"a":"y"}`}, {"{%{a}}{%{b}}%{c}", "{x}{y}", `{"a":"x","b":"y","c":""}`}, {"%{?k}=%{&k}", "@path=1", `{"at_path":"1"}`},
	} {
		s := steptest.New(t, "dissect: "+quote(c.pattern), steptest.Options{})
		s.Want(t, `{"message":`+quote(c.text)+`}`, `{"message":`+quote(c.text)+`,`+c.want[1:])
	}
	s := steptest.New(t, "dissect: '%{message} %{rest}'", steptest.Options{Slots: []string{"rest.x"}})
	s.Want(t, `{"message":"a b","rest":{"x":1}}`, `{"message":"a","rest":"b"}`)
	conv := steptest.New(t, "dissect: {pattern: '%{i} %{f} %{s}', convert_datatype: {i: int, f: float, s: int}}", steptest.Options{})
	conv.Want(t, `{"message":"43947404257507186289 1.5 x"}`, `{"message":"43947404257507186289 1.5 x","i":43947404257507186289,"f":1.5,"s":"x"}`)
	many := steptest.New(t, "dissect: {mapping: {m: '%{a} %{b}', n: '%{c}-%{d}'}, target: t}", steptest.Options{})
	many.Want(t, `{"m":"1 2","n":"3-4"}`, `{"m":"1 2","n":"3-4","t":{"a":"1","b":"2","c":"3","d":"4"}}`)
	many.WantFail(t, `{"m":"1 2","n":"34"}`, `the delimiter "-" is missing`)
}

func TestFailures(t *testing.T) {
	s := steptest.New(t, "dissect: '%{program}[%{pid}]: %{msg}'", steptest.Options{})
	s.WantFail(t, `{"message":"dhcpd:"}`, `the delimiter "[" is missing in "dhcpd:"`)
	s.WantFail(t, `{"message":""}`, "is missing")
	s.WantFail(t, `{"message":null}`, "the field is missing")
	steptest.New(t, "dissect: '/var/%{a}'", steptest.Options{}).WantFail(t, `{"message":"x/var/y"}`, `the delimiter "/var/" is missing`)
	for step, want := range map[string]string{"dissect: plain": "has no %{field}", "dissect: '%{a}%{b}'": "nothing between", "dissect: '%{a'": "without its }", "dissect: '%{&a} %{b}'": "to take the name from", "dissect: '%{+a/x} %{b}'": "a number behind the /",
		"dissect: {field: x}": `key "pattern" is missing`, "dissect: {source: x}": "Logstash's name", "dissect: '%{@path} %{x}'": "are metadata", "dissect: {pattern: '%{a}', convert_datatype: {a: integer}}": "int"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "dissect: '%{ts} %{+ts} %{host} %{program}[%{pid}]: %{msg}'", steptest.Options{})
	slot := s.Table.Slot("message")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 50 {
			v := b.PutString("Mar 16 evita postfix[1713]: connect from x")
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

func TestHostile(t *testing.T) {
	s := steptest.New(t, "dissect: '%{a->} %{b}, %{?k}=%{&k}; %{c}'", steptest.Options{})
	for _, text := range []string{strings.Repeat(" ", 1<<20), strings.Repeat("a, ", 1<<18), "a b, " + strings.Repeat("=", 1<<20) + "; "} {
		start := time.Now()
		s.One(t, `{"message":`+quote(text)+`}`)
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%.20q took %s", text, d)
		}
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("%{a->} %{+a/1}[%{?k}=%{&k}] %{b}", "x  y[k=v] z")
	f.Add("%{}-%{[x][y]}", "a-b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		s, err := steptest.Try("dissect: "+quote(pattern), steptest.Options{})
		if err != nil {
			return
		}
		b := record.NewBatch(s.Table)
		v := b.PutString(text)
		b.Set(b.Add(record.Position{}, v), s.Table.Slot("message"), v)
		s.Apply(b)
		if len(b.Sel)+len(b.Fails) != 1 {
			t.Fatalf("%q is gone", text)
		}
		s.JSON(b, 0)
	})
}

func BenchmarkSyslog(b *testing.B) {
	s := steptest.New(b, "dissect: '%{ts} %{+ts} %{+ts} %{host} %{program}[%{pid}]: %{msg}'", steptest.Options{})
	const line = "Mar 16 00:01:25 evita postfix/smtpd[1713]: connect from camomile.cloud9.net[168.100.1.3]"
	batch := record.NewBatch(s.Table)
	slot := s.Table.Slot("message")
	b.SetBytes(200 * int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for range 200 {
			v := batch.PutString(line)
			batch.Set(batch.Add(record.Position{}, v), slot, v)
		}
		s.Apply(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/line")
}
