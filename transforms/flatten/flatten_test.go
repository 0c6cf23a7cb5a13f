package flatten

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestFlatten(t *testing.T) {
	for _, slots := range [][]string{nil, {"a.b", "a_c_d", "x.y"}} {
		steptest.New(t, "flatten: {}", steptest.Options{Slots: slots}).Want(t, `{"a":{"b":1,"c":{"d":2}},"x":{"y":[3]},"z":4,"a_b":5}`, `{"a_b":1,"a_c_d":2,"x_y":[3],"z":4}`)
		steptest.New(t, "flatten: [a.c, x]", steptest.Options{Slots: slots}).Want(t, `{"a":{"b":1,"c":{"d":2}},"x":{"y":3}}`, `{"a":{"b":1},"a_c_d":2,"x_y":3}`)
		steptest.New(t, "flatten: {fields: a, separator: '-'}", steptest.Options{Slots: slots}).Want(t, `{"a":{"b":1}}`, `{"a-b":1}`)
	}
	if _, err := steptest.Try("flatten: {separator: '.'}", steptest.Options{}); err == nil {
		t.Error("a dot is taken")
	}
}
