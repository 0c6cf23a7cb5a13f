package join

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestJoin(t *testing.T) {
	s := steptest.New(t, "join: {a: ', '}", steptest.Options{})
	s.Want(t, `{"a":["x",null,3,true,{"$map":{"k":1}}]}`, `{"a":"x, , 3, true, {\"k\":1}"}`)
	s.Want(t, `{"a":[]}`, `{"a":""}`)
	s.Want(t, `{"a":"x"}`, `{"a":"x"}`)
}
