package trim

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestTrim(t *testing.T) {
	steptest.New(t, "trim: [a, b]", steptest.Options{}).Want(t, `{"a":" \tx y\n","b":["  z",5]}`, `{"a":"x y","b":["z",5]}`)
	steptest.New(t, "trim: {fields: a, chars: '\"<>'}", steptest.Options{}).Want(t, `{"a":"<\"x\">"}`, `{"a":"x"}`)
	steptest.New(t, "trim: a", steptest.Options{}).Want(t, `{"a":"   "}`, `{"a":""}`)
}
