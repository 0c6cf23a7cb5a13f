package useragent

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/ua-parser/uap-go/uaparser"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"

func TestUserAgent(t *testing.T) {
	s := steptest.New(t, "useragent: {field: m, target: u}", steptest.Options{})
	f := func(in, want string) {
		t.Helper()
		q, _ := json.Marshal(in)
		for range 2 { // the second comes from the cache
			s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"u":{`+want+`,"original":`+string(q)+`}}`)
		}
	}
	f(chrome, `"name":"Chrome","version":"120.0.0","os":{"name":"Windows","version":"10","full":"Windows 10"},"device":{"name":"Other"}`)
	f("Mozilla/5.0 (iPhone; CPU iPhone OS 17_1_2 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.1 Mobile/15E148 Safari/604.1", `"name":"Mobile Safari","version":"17.1","os":{"name":"iOS","version":"17.1.2","full":"iOS 17.1.2"},"device":{"name":"iPhone"}`)
	f("curl/8.4.0", `"name":"curl","version":"8.4.0","os":{"name":"Other","full":"Other"},"device":{"name":"Other"}`)
	f("Googlebot/2.1 (+http://www.google.com/bot.html)", `"name":"Googlebot","version":"2.1","os":{"name":"Other","full":"Other"},"device":{"name":"Spider"}`)
	s.WantFail(t, `{}`, "the field is missing")
	s.WantFail(t, `{"m":5}`, "no text")
	few := steptest.New(t, "useragent: {field: m, target: u}", steptest.Options{Live: func(f string) bool { return f == "u.name" || f == "m" }})
	few.Want(t, `{"m":"curl/8.4.0"}`, `{"m":"curl/8.4.0","u":{"name":"curl"}}`)
	long := steptest.New(t, "useragent: {field: m, target: u, max_length: 5, cache_size: 2}", steptest.Options{})
	if out, _ := long.One(t, `{"m":"curl/8.4.0`+strings.Repeat("x", 100000)+`"}`); !strings.Contains(out, `"name":"Other"`) {
		t.Error(out[:200])
	}
	if _, err := steptest.Try("useragent: {source: m}", steptest.Options{}); err == nil || !strings.Contains(err.Error(), "here it is `field`") {
		t.Error(err)
	}
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "useragent: m", steptest.Options{})
	slot := s.Table.Slot("m")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 20 {
			v := b.PutString(chrome)
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

// What a rule needs never hides a match: the same comes out as from the library.
func TestNeeds(t *testing.T) {
	r, err := rules()
	if err != nil {
		t.Fatal(err)
	}
	headers := []string{chrome, "", "x", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", "Opera/9.80 (Android; Opera Mini/36.2/119.132; U; id) Presto/2.12.423 Version/12.16", "SAMSUNG-GT-S8500/1.0 SHP/VPP/R5 Jasmine/0.8 Nextreaming SMM-MMS/1.2.0 profile/MIDP-2.1", "okhttp/4.12.0", "BlackBerry9700/5.0.0.862 Profile/MIDP-2.1",
		"Mozilla/5.0 (Linux; Android 13; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/116.0.0.0 Mobile Safari/537.36", "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", "kube-probe/1.29", "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ſafari/1.0", "python-requests/2.31.0", "PostmanRuntime/7.36.0"}
	for _, text := range headers {
		h := newHeader(text)
		ua, os, d := r.agentOf(h), r.osOf(h), r.deviceOf(h)
		if w := r.parser.ParseUserAgent(text); *w != ua {
			t.Errorf("%s: %+v, want %+v", text, ua, *w)
		}
		if w := r.parser.ParseOs(text); *w != os {
			t.Errorf("%s: %+v, want %+v", text, os, *w)
		}
		if w := r.parser.ParseDevice(text); *w != d {
			t.Errorf("%s: %+v, want %+v", text, d, *w)
		}
	}
}

func FuzzUserAgent(f *testing.F) {
	f.Add(chrome)
	f.Add("(;;)\xff")
	s := steptest.New(f, "useragent: {field: m, target: u, cache_size: 4, max_length: 200}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}

// A header that is not in the cache.
func BenchmarkNew(b *testing.B) {
	p, err := rules()
	if err != nil {
		b.Fatal(err)
	}
	s := &step{Config: &Config{}, mode: uaparser.EUserAgentLookUpMode | uaparser.EOsLookUpMode | uaparser.EDeviceLookUpMode}
	n := 0
	for b.Loop() {
		n++
		s.look(p, chrome+" x/"+strconv.Itoa(n))
	}
}
