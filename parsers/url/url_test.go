package url

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestURL(t *testing.T) {
	f := func(options, in, want string) {
		t.Helper()
		s := steptest.New(t, "url: {field: m, target: f"+options+"}", steptest.Options{})
		q, _ := json.Marshal(in)
		s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"f":{"original":`+string(q)+`,`+want[1:]+`}`)
	}
	f("", "https://user:pa:ss@www.example.co.uk:8443/a/b.tar.gz?x=1&y=%20#top", `{"scheme":"https","username":"user","password":"pa:ss","domain":"www.example.co.uk","port":8443,"path":"/a/b.tar.gz","extension":"gz","query":"x=1&y=%20","fragment":"top"}`)
	f(", params: true", "/search?q=a+b%2Bc&q=%C3%BC&empty=&flag&a%5Bb%5D=1&bad=%zz%", `{"path":"/search","query":"q=a+b%2Bc&q=%C3%BC&empty=&flag&a%5Bb%5D=1&bad=%zz%","params":{"q":["a b+c","ü"],"empty":"","flag":"","a[b]":"1","bad":"%zz%"}}`)
	f(", registered_domain: true", "http://a.b.example.co.uk/", `{"scheme":"http","domain":"a.b.example.co.uk","path":"/","top_level_domain":"co.uk","registered_domain":"example.co.uk","subdomain":"a.b"}`)
	f(", registered_domain: true", "http://10.0.0.1:80/", `{"scheme":"http","domain":"10.0.0.1","port":80,"path":"/"}`)
	f(", registered_domain: true", "http://com", `{"scheme":"http","domain":"com","top_level_domain":"com"}`)
	f("", "http://[2001:db8::1]:8080/x", `{"scheme":"http","domain":"2001:db8::1","port":8080,"path":"/x"}`)
	f("", "//cdn.example.com/.hidden", `{"domain":"cdn.example.com","path":"/.hidden"}`)
	f("", "mailto:joe@example.com", `{"scheme":"mailto","path":"joe@example.com"}`)
	f("", "http://h:99999/", `{"scheme":"http","domain":"h","path":"/"}`)
	f("", "?a=b", `{"query":"a=b"}`)
	s := steptest.New(t, "url: {field: m, params: true, max_fields: 4}", steptest.Options{})
	s.WantFail(t, `{"m":"-"}`, "is no URL")
	s.WantFail(t, `{"m":""}`, "is no URL")
	s.WantFail(t, `{"m":"host:80"}`, "is no URL")
	s.WantFail(t, `{"m":"/?a=1&b=2&c=3"}`, "more than max_fields")
	s.WantFail(t, `{"m":5}`, "no text but bigint")
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "url: {field: m, params: true}", steptest.Options{})
	slot := s.Table.Slot("m")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 20 {
			v := b.PutString("https://example.com:8443/a/b.html?x=1&y=%20")
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

// A megabyte of anything takes time in line with its length.
func TestHostile(t *testing.T) {
	s := steptest.New(t, "url: {field: m, params: true, registered_domain: true, max_fields: 1000000}", steptest.Options{})
	for _, unit := range []string{"a=b&", "%", "a.", "/", ":", "@", "?", "a&", "["} {
		start := time.Now()
		q, _ := json.Marshal("http://h/?" + strings.Repeat(unit, 1_000_000/len(unit)))
		s.One(t, `{"m":`+string(q)+`}`)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: %s", unit, d)
		}
	}
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a@b:1/c?d=e#f", "//[", "?%", "a:", "http://.com", "x://:@:"} {
		f.Add(s)
	}
	s := steptest.New(f, "url: {field: m, params: true, registered_domain: true, max_fields: 50}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}
