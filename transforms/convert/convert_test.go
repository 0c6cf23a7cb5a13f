package convert

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestConvert(t *testing.T) {
	for _, c := range []struct{ to, in, want string }{
		{"integer", `"12"`, `12`}, {"integer", `" 7 "`, `7`}, {"integer", `"-1,234,567.9"`, `-1234567`}, {"integer", `"0x10"`, `16`}, {"integer", `1.9`, `1`}, {"integer", `true`, `1`}, {"integer", `"9223372036854775808"`, `9223372036854775808`}, {"integer", `"1e3"`, `1000`},
		{"integer", `"1,00"`, ""}, {"integer", `"abc"`, ""}, {"integer", `""`, ""}, {"integer", `"١"`, ""}, {"integer", `"1_000"`, ""}, {"integer", `null`, `null`}, {"integer", `["1",2.5,null]`, `[1,2,null]`}, {"integer", `["1","x"]`, ""}, {"integer", `"1e999999999"`, ""},
		{"integer_eu", `"1.234,5"`, `1234`}, {"integer_eu", `"1.9"`, ""}, {"float_eu", `"1.234,5"`, `1234.5`}, {"float_eu", `"1,5"`, `1.5`}, {"float", `"1,234.5"`, `1234.5`}, {"float", `3`, `3`}, {"float", `"1e3"`, `1000`}, {"float", `"nan"`, ""}, {"float", `"Infinity"`, ""}, {"float", `"-0x1.8p1"`, `-3`}, {"float", `false`, `0`},
		{"boolean", `"YES"`, `true`}, {"boolean", `"f"`, `false`}, {"boolean", `""`, `false`}, {"boolean", `"maybe"`, `"maybe"`}, {"boolean", `1`, `true`}, {"boolean", `2`, `2`}, {"boolean", `[0,"t"]`, `[false,true]`},
		{"string", `12`, `"12"`}, {"string", `1.5`, `"1.5"`}, {"string", `1e20`, `"100000000000000000000"`}, {"string", `true`, `"true"`}, {"string", `[1,"a"]`, `["1","a"]`},
	} {
		s := steptest.New(t, "convert: {v: "+c.to+"}", steptest.Options{})
		if c.want == "" {
			s.WantFail(t, `{"v":`+c.in+`}`, "is no number")
		} else if c.to != "string" || c.in != `1e20` {
			s.Want(t, `{"v":`+c.in+`}`, `{"v":`+c.want+`}`)
		}
	}
	one := steptest.New(t, "convert: {'v[-1]': integer, 'v[0]': boolean, 'v[9]': float}", steptest.Options{})
	one.Want(t, `{"v":["1","x","3"]}`, `{"v":[true,"x",3]}`)
	one.Want(t, `{"v":"1"}`, `{"v":"1"}`)
	all := steptest.New(t, "convert: {a: integer, b: integer}", steptest.Options{})
	all.WantFail(t, `{"a":"1","b":"x"}`, `convert: b: "x" is no number`)
	for f, want := range map[float64]string{123: "123.0", 1.5: "1.5", 1e20: "1.0e+20", 1e-5: "1.0e-05", -0.25: "-0.25", 1e15: "1000000000000000.0"} {
		if got := string(appendFloat(nil, f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
}
