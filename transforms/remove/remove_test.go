package remove

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestRemove(t *testing.T) {
	// With and without slots for what is removed.
	for _, slots := range [][]string{nil, {"message", "http.request.id", "http.request", "httpd"}} {
		s := steptest.New(t, `remove: [message, http.request]`, steptest.Options{Slots: slots})
		s.Want(t, `{"message":"m","a":1}`, `{"a":1}`)
		s.Want(t, `{"a":1}`, `{"a":1}`)
		s.Want(t, `{"http":{"request":{"id":1,"body":{"bytes":2}},"response":3},"httpd":4,"http.requests":5,"messages":6}`, `{"http":{"response":3,"requests":5},"httpd":4,"messages":6}`)
		s.Want(t, `{"http":{"request":null},"message":null,"z":null}`, `{"z":null}`)
		s.Want(t, `{"http":{"request":{}}}`, `{}`)
		b := s.Batch(t, `{"message":"a","x":1}`, `{"message":"b","x":2}`)
		b.Sel = b.Sel[1:]
		s.Apply(b)
		if s.JSON(b, 0) != `{"message":"a","x":1}` && !steptest.SameJSON(s.JSON(b, 0), `{"message":"a","x":1}`) || !steptest.SameJSON(s.JSON(b, 1), `{"x":2}`) {
			t.Error(s.JSON(b, 0), s.JSON(b, 1))
		}
	}
	one := steptest.New(t, `remove: a`, steptest.Options{})
	one.Want(t, `{"a":1,"b":2}`, `{"b":2}`)
	if len(one.Decl.Removes) != 1 || one.Decl.Removes[0] != "a" {
		t.Error(one.Decl.Removes)
	}
	for step, want := range map[string]string{`remove: []`: `want at least one field`, `remove: {a: b}`: `want a list`, `remove: [a..b]`: `remove[0]`} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}
