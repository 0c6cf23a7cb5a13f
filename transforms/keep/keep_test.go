package keep

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestKeep(t *testing.T) {
	for _, slots := range [][]string{nil, {"@timestamp", "source.address", "source.port", "message", "http.response"}} {
		s := steptest.New(t, `keep: ['@timestamp', source.address, http.response]`, steptest.Options{Slots: slots})
		s.Want(t, `{"@timestamp":1,"message":"m","source":{"address":"a","port":2},"http":{"response":{"code":3},"request":4},"http.responses":5,"@type":6}`, `{"@timestamp":1,"source":{"address":"a"},"http":{"response":{"code":3}}}`)
		s.Want(t, `{"x":1}`, `{}`)
		s.Want(t, `{"http":{"response":null}}`, `{"http":{"response":null}}`)
	}
	// Metadata stays for expressions and templates after it.
	s := steptest.New(t, `keep: a`, steptest.Options{Slots: []string{"@path", "b"}})
	b := s.Batch(t, `{"a":1,"b":2}`)
	b.Set(0, s.Table.Find("@path"), b.PutString("/p"))
	s.Apply(b)
	if string(b.Bytes(b.Lookup(0, "@path"))) != "/p" || b.Lookup(0, "b").Kind() != 0 || b.Lookup(0, "a").Int() != 1 {
		t.Error(s.JSON(b, 0))
	}
	for step, want := range map[string]string{`keep: []`: `want at least one field`, `keep: {a: b}`: `want a list`} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}
