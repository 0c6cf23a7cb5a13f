package logfmt

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestLogfmt(t *testing.T) {
	s := steptest.New(t, "logfmt: {field: m, target: f}", steptest.Options{})
	f := func(in, want string) {
		t.Helper()
		q, _ := json.Marshal(in)
		s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"f":`+want+`}`)
	}
	f(`level=info msg="it works" debug`, `{"level":"info","msg":"it works","debug":true}`)
	f(`  a=1   b=  c="" `, `{"a":"1","b":"","c":""}`)
	f(`a=1 a=2`, `{"a":"2"}`)
	f(`msg="say \"hi\"\n\u00e9\ud83d\ude00 \x" at=2024-01-01T00:00:00Z`, `{"msg":"say \"hi\"\né😀 \\x","at":"2024-01-01T00:00:00Z"}`)
	f(`url=http://x/?a=b&c=d http.status=200`, `{"url":"http://x/?a=b&c=d","http":{"status":"200"}}`)
	f(`q=a"b`, `{"q":"a\"b"}`)
	for in, why := range map[string]string{"plain text": "no key=value", `a="open`: "the quote at byte 3 is not closed", `a="x"y`: "something follows", `=b`: "a key is expected at byte 1", `a"b=c`: "a quote within the key", "": "no key=value"} {
		q, _ := json.Marshal(in)
		s.WantFail(t, `{"m":`+string(q)+`}`, why)
	}
	s.WantFail(t, `{}`, "the field is missing")
	s = steptest.New(t, "logfmt: {field: m, max_fields: 2}", steptest.Options{})
	s.WantFail(t, `{"m":"a=1 b=2 c=3"}`, "more than max_fields")
	if _, err := steptest.Try("logfmt: {source: m}", steptest.Options{}); err == nil || !strings.Contains(err.Error(), "here it is `field`") {
		t.Error(err)
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "logfmt: m", steptest.Options{})
	slot := s.Table.Slot("m")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 20 {
			v := b.PutString(`ts=2024-01-01T00:00:00Z level=info msg="it \"works\"" status=200 dur=12ms`)
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

// A megabyte of anything takes time in line with its length.
func TestHostile(t *testing.T) {
	s := steptest.New(t, "logfmt: {field: m, target: f, max_fields: 1000000}", steptest.Options{})
	for _, unit := range []string{"a=b ", "=", "a", "\"", "a=\"", `a="\`, "a ", "a=\"b\" "} {
		start := time.Now()
		q, _ := json.Marshal("" + strings.Repeat(unit, 1_000_000/len(unit)))
		s.One(t, `{"m":`+string(q)+`}`)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: %s", unit, d)
		}
	}
}

func FuzzLogfmt(f *testing.F) {
	for _, s := range []string{`a=1 b="x\"" c`, `="`, `a="\u12`, "a=\xff", `a="\ud83d\u`} {
		f.Add(s)
	}
	s := steptest.New(f, "logfmt: {field: m, target: f, max_fields: 100}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}
