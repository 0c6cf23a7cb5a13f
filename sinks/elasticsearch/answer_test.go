package elasticsearch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/sinktest"
)

func TestItems(t *testing.T) {
	for text, want := range map[string]string{
		`{"errors":false,"items":[{"create":{"status":201}},{"index":{"status":200}}]}`:                                          "201 200",
		` { "took" : 1.5e3 , "items" : [ { "create" : { "_id":"a\"}]" , "status" : 409 , "error" : { "a" : [ 1, {} ] } } } ] } `: `409{ "a" : [ 1, {} ] }`,
		`{"items":[]}`: "",
		`{"errors":true,"items":[{"create":{"error":{"reason":"x\\"},"status":400}}],"x":[[],null,true,-1.0E+5]}`: `400{"reason":"x\\"}`,
	} {
		var got []string
		n, err := items([]byte(text), func(i, status int, e []byte) { got = append(got, fmt.Sprintf("%d%s", status, e)) })
		if err != nil || strings.Join(got, " ") != want || n != len(got) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `{`, `[]`, `{"items":[{"create":{"status":201}}]`, `{"items":[{"create":{"status":201}},{"cre`, `{"items":[{"create":{}}]}`, `{"items":{}}`, `{"items":[{"create":{"status":"x"}}]}`, `{} x`, `{"a"}`, `{"a":}`, strings.Repeat("[", 5000), `{"a":` + strings.Repeat(`[`, 100_000)} {
		if _, err := items([]byte(text), func(int, int, []byte) {}); err == nil {
			t.Errorf("%.40s is taken", text)
		}
	}
}

// FuzzItems compares with encoding/json on what both take.
func FuzzItems(f *testing.F) {
	f.Add([]byte(`{"errors":true,"items":[{"create":{"status":201}},{"index":{"status":400,"error":{"type":"a","reason":"b\"","caused_by":{}}}}]}`))
	f.Add([]byte(`{"items":[{"create":{"status":409}}],"took":3}`))
	f.Add([]byte(`{"items":[{"create":{"status":9}},`))
	f.Fuzz(func(t *testing.T, p []byte) {
		var got []int
		_, err := items(p, func(_, status int, e []byte) {
			got = append(got, status)
			_ = parseFailure(e).String()
		})
		if !json.Valid(p) {
			return
		}
		var want struct {
			Items []map[string]struct{ Status *int }
		}
		if json.Unmarshal(p, &want) != nil || err != nil || strings.Count(string(p), `"items"`) != 1 {
			return
		}
		for i, m := range want.Items {
			for _, v := range m {
				if len(m) == 1 && strings.Count(string(p), `"status"`) == len(want.Items) && v.Status != nil && *v.Status != got[i] {
					t.Errorf("%s: %v", p, got)
				}
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for h, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-1": 0, "x": 0, "99999999": maxRetryAfter, "Mon, 02 Jan 2006 15:04:05 GMT": 0} {
		if got := retryAfter(h); got != want {
			t.Errorf("%q: %v", h, got)
		}
	}
}

func TestDescribe(t *testing.T) {
	for _, op := range []string{"create", "update", "index"} {
		s := sinktest.Build(t, &Config{}, "{hosts: ['http://h'], id: '%{n}', index: i, op: "+op+"}", sinktest.Plan{Fields: "n BIGINT, a.b STRING"})
		p := s.Part(t, split, 1, `{"n": 1, "a.b": "x\ny"}`)
		if got := string(s.Sink.(*Sink).Describe(nil, p.Row(0))); got != `{"n":1,"a":{"b":"x\ny"}}` {
			t.Errorf("%s: %s", op, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for text, want := range map[string]string{
		"hosts: [], index: i":                                                      "at least one URL",
		"hosts: ['localhost:9200'], index: i":                                      "write http://host:9200",
		"hosts: ['http://h'], index: i, op: update":                                "update needs `id`",
		"hosts: ['http://h'], index: i, version: n":                                "version needs `id`",
		"hosts: ['http://h'], index: i, id: '%{s}', version: s":                    "a version is an integer",
		"hosts: ['http://h'], index: i, user: u, api_key: hush":                    "not both",
		"hosts: ['http://h'], index: i, tls: {cert: x}":                            "go together",
		"hosts: ['http://h'], index: i, compatible_with: 9":                        "want 7 or 8",
		"hosts: ['http://h'], index: ''":                                           "index is empty",
		"hosts: ['http://u:hush@h', 'ftp://x'], index: i":                          "is no URL of a node",
		"hosts: ['http://h'], index: i, op: delete":                                "create, index, update",
		"hosts: ['http://h'], index: i, document_id: x, max_in_flight: 3":          "\"document_id\" is Logstash's name; here it is `id`",
		"hosts: ['http://h'], index: i, headers: {Authorization: hush}, api: hush": "",
	} {
		_, err := sinktest.Try(&Config{}, "{"+text+"}", sinktest.Plan{Fields: "n BIGINT, s STRING"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") && strings.Contains(text, "u:hush") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestByDay(t *testing.T) {
	for src, want := range map[string]bool{"web-%{+yyyy.MM.dd}": true, "%{+yyyy}-%{+MM}": true, "web": true, "%{+yyyy.MM.dd.HH}": false, "%{app}-%{+yyyy}": false, "%{+mm}": false, "%{+": false} {
		if byDay(src) != want {
			t.Errorf("%q: %v", src, !want)
		}
	}
	s := sinktest.Build(t, &Config{}, "{hosts: ['http://h'], index: 'w-%{+yyyy.MM.dd}'}", sinktest.Plan{Fields: "@timestamp TIMESTAMP"})
	b := record.NewBatch(s.Table)
	b.Split = split
	for _, c := range []struct {
		sec  int64
		want string
	}{{86400*3 - 1, "1970.01.03"}, {86400 * 3, "1970.01.04"}, {86400*3 + 1, "1970.01.04"}, {0, "1970.01.01"}, {-1, "1969.12.31"}, {-86400, "1969.12.31"}, {0, "1970.01.01"}} {
		i := b.Add(record.Position{}, record.Value{})
		b.Set(i, 0, record.MakeTime(c.sec, 0, 0))
		row, err := s.Encode(nil, b, i)
		if err != nil || !strings.HasPrefix(string(row), `{"create":{"_index":"w-`+c.want+`"`) {
			t.Errorf("%d: %s, %v, want %s", c.sec, row, err, c.want)
		}
	}
	i := b.Add(record.Position{}, record.Value{})
	if _, err := s.Encode(nil, b, i); err == nil {
		t.Error("an index without a day")
	}
}
