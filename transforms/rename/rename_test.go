package rename

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestRename(t *testing.T) {
	for _, c := range []struct{ step, in, want string }{
		{`rename: {source.address: client.ip, code: status}`, `{"source":{"address":"a","port":1},"code":2,"status":3}`, `{"client":{"ip":"a"},"source":{"port":1},"status":2}`},
		{`rename: {a: b}`, `{"b":1}`, `{"b":1}`},                                                       // missing: the new name keeps what it had
		{`rename: {a: b}`, `{"a":null,"b":1}`, `{"b":null}`},                                           // NULL is a value
		{`rename: {a: b, b: a}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`},                                     // swap
		{`rename: {a: b, b: a}`, `{"a":{"x":1},"b":{"x":2,"y":3}}`, `{"b":{"x":1},"a":{"x":2,"y":3}}`}, // of subtrees
		{`rename: {a: b, b: a}`, `{"a":1}`, `{"b":1}`},
		{`rename: {a: b, b: c, c: a}`, `{"a":1,"b":2,"c":3}`, `{"b":1,"c":2,"a":3}`},
		{`rename: {a: x.y}`, `{"a":{"b":{"c":1},"d":2},"ab":3}`, `{"x":{"y":{"b":{"c":1},"d":2}},"ab":3}`},
		{`rename: {a: a.b}`, `{"a":1}`, `{"a":{"b":1}}`}, {`rename: {a: a.b}`, `{"a":{"b":1,"c":2}}`, `{"a":{"b":{"b":1,"c":2}}}`}, {`rename: {a.b: a}`, `{"a":{"b":1}}`, `{"a":1}`},
		{`rename: {a: b}`, `{"a":1,"b":{"x":2,"y":{"z":3}}}`, `{"b":1}`}, {`rename: {a: b}`, `{"a":{"q":1},"b":{"x":2}}`, `{"b":{"q":1}}`}, {`rename: {a: b}`, `{"b":{"x":2}}`, `{"b":{"x":2}}`}, {`rename: {a: c, b: d}`, `{"b":1,"c":{"b":2}}`, `{"d":1,"c":{"b":2}}`},
		{`rename: {a: a}`, `{"a":1}`, `{"a":1}`}, {`rename: {a: b}`, `{"a":[1,2],"z":1}`, `{"b":[1,2],"z":1}`}, {`rename: {t: '@timestamp'}`, `{"t":1}`, `{"@timestamp":1}`},
	} {
		for _, slots := range [][]string{nil, {"a", "b", "c", "a.x", "b.x", "b.y", "a.b", "source.address", "source.port", "x.y.b.c"}, {"a.x", "code"}, {"x.y", "b", "a.b.b"}} {
			s := steptest.New(t, c.step, steptest.Options{Slots: slots})
			s.Want(t, c.in, c.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`rename: {a: c, b: c}`: `two fields are renamed to "c"`, `rename: {a: '@path'}`: `@path: names with @ are metadata`, `rename: {a: x, a.b: y}`: `"a.b" lies below "a"`, `rename: [a]`: `want a mapping`, `rename: {a: [b]}`: `want a field`, `rename: {'@path': a}`: `metadata`,
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}
