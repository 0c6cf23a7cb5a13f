package nest

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestNest(t *testing.T) {
	s := steptest.New(t, "nest: {client: [ip, a.port], x: ['`user-agent`', h]}", steptest.Options{Slots: []string{"client.ip"}})
	s.Want(t, `{"ip":"1","a":{"port":2,"z":3},"h":{"k":4},"user-agent":5}`, `{"client":{"ip":"1","port":2},"a":{"z":3},"x":{"user-agent":5,"h":{"k":4}}}`)
	s.Want(t, `{"z":1}`, `{"z":1}`)
	for _, step := range []string{"nest: {a: 1b}", "nest: [a]", "nest: {a: [x, b.x]}"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil {
			t.Errorf("%s is taken", step)
		}
	}
}
