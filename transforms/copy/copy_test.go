package copy

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestCopy(t *testing.T) {
	for _, slots := range [][]string{nil, {"s", "h.k", "t", "g.k", "g.old"}} {
		s := steptest.New(t, "copy: {s: t, h: g, nope: q, t: s}", steptest.Options{Slots: slots})
		s.Want(t, `{"s":1,"t":2,"h":{"k":3,"l":{"m":4}},"g":{"old":5},"q":6}`, `{"s":2,"t":1,"h":{"k":3,"l":{"m":4}},"g":{"k":3,"l":{"m":4}},"q":6}`)
		s.Want(t, `{"s":1}`, `{"s":1,"t":1}`)
	}
	for _, step := range []string{"copy: {a: '@path'}", "copy: {a: a.b}", "copy: {a: c, b: c}"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil {
			t.Errorf("%s is taken", step)
		}
	}
}
