package each_test

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
	_ "github.com/rsetl/rsetl/transforms/add"
	_ "github.com/rsetl/rsetl/transforms/remove"
	_ "github.com/rsetl/rsetl/transforms/rename"
)

// Elements of arrays and names from the record, in the steps that take them.
func TestNames(t *testing.T) {
	f := func(step, in, want string) {
		t.Helper()
		steptest.New(t, step, steptest.Options{}).Want(t, in, want)
	}
	f(`remove: ['a[0]']`, `{"a":["x",2,3]}`, `{"a":[2,3]}`)
	f(`remove: ['a[-1]', 'b[5]', 'c[0]']`, `{"a":["x",2],"b":[1],"c":"t"}`, `{"a":["x"],"b":[1],"c":"t"}`)
	f(`remove: 'f_%{k}'`, `{"k":"one","f_one":1,"f_one.x":2,"f_two":3}`, `{"k":"one","f_two":3}`)
	f(`remove: 'f_%{k}'`, `{"f_one":1}`, `{"f_one":1}`)
	f(`add: {'a[1]': R}`, `{"a":["x","y",3]}`, `{"a":["x","R",3]}`)
	f(`add: {'a[3]': R}`, `{"a":["x","y",3]}`, `{"a":["x","y",3]}`)
	f(`add: {'%{n}f': '%{s}'}`, `{"n":5,"s":"t"}`, `{"n":5,"s":"t","5f":"t"}`)
	f(`add: {'x.%{n}': 1}`, `{"n":"s"}`, `{"n":"s","x":{"s":1}}`)
	f(`add: {x: '%{a}|%{m}'}`, `{"a":["x",["Y",null],3],"m":[{"$map":{"k":1}}]}`, `{"a":["x",["Y",null],3],"m":[{"k":1}],"x":"x,Y,,3|{\"k\":1}"}`)
	f(`add: {'%{nope}f': 1}`, `{"n":5}`, `{"n":5}`)
	f(`rename: {'a[0]': b}`, `{"a":["x",2],"b.c":1}`, `{"a":[2],"b":"x"}`)
	f(`rename: {'f_%{k}': to}`, `{"k":"one","f_one":"v"}`, `{"k":"one","to":"v"}`)
	f(`rename: {'f_%{k}': to, p: q}`, `{"k":"one","f_one.x":"v","p":1}`, `{"k":"one","to":{"x":"v"},"q":1}`)
	f(`rename: {'f_%{k}': to}`, `{"k":"two","f_one":"v","to":1}`, `{"k":"two","f_one":"v","to":1}`)
}
