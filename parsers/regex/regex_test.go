package regex

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/steps/steptest"
)

func TestFields(t *testing.T) {
	for _, c := range []struct{ step, in, want string }{
		{`regex: '^(?<level>[A-Z]+) (?<http.status:int>\d+) (?<rest>.*)'`, `{"message":"ERROR 503 a b"}`, `{"message":"ERROR 503 a b","level":"ERROR","http":{"status":503},"rest":"a b"}`},
		{`regex: '(?<[a][b]>x)(?P<c>y)'`, `{"message":"xy"}`, `{"message":"xy","a":{"b":"x"},"c":"y"}`},
		{`regex: '(plain) (?<a>\w+)'`, `{"message":"plain x"}`, `{"message":"plain x","a":"x"}`},
		{`regex: ['a=(?<a>\d)', 'b=(?<b>\d)']`, `{"message":"b=1 a=2"}`, `{"message":"b=1 a=2","a":"2"}`},
		{`regex: {field: line, pattern: 'id=(?<id:int>\d+)', target: user}`, `{"line":"id=7"}`, `{"line":"id=7","user":{"id":7}}`},
		{`regex: {patterns: ['x(?<a>\d)'], overwrite: [a]}`, `{"message":"x1","a":"old"}`, `{"message":"x1","a":"1"}`},
		{`regex: {pattern: 'x(?<a>\d)'}`, `{"message":"x1","a":"old"}`, `{"message":"x1","a":["old","1"]}`},
		{`regex: {pattern: 'x(?<a.b>\d)', target: t, overwrite: [t.a]}`, `{"message":"x1","t":{"a":{"b":"old"}}}`, `{"message":"x1","t":{"a":{"b":"1"}}}`},
		// There is no dictionary: %{ is itself.
		{`regex: '%{(?<n>\w+)}'`, `{"message":"a %{IP} b"}`, `{"message":"a %{IP} b","n":"IP"}`},
		{`regex: "(?<q>['\"])(?<text>.*?)\\k<q>"`, `{"message":"say \"it's\""}`, `{"message":"say \"it's\"","q":"\"","text":"it's"}`},
		{`regex: '^(?<w>\w+)$'`, `{"message":"a b\nlast\n"}`, `{"message":"a b\nlast\n","w":"last"}`},
	} {
		steptest.New(t, c.step, steptest.Options{}).Want(t, c.in, c.want)
	}
	s := steptest.New(t, `regex: 'x(?<a>\d)'`, steptest.Options{})
	s.WantFail(t, `{"message":"y","a":"old"}`, "regex: no pattern matches: x(?<a>")
	s.WantFail(t, `{"message":1}`, "regex: the field is no text but bigint")
	s.WantFail(t, `{}`, "regex: the field is missing")
	// A group that nothing reads but the expression itself.
	k := steptest.New(t, `regex: '(?<q>.)-(?<v>\w+)-\k<q>'`, steptest.Options{Slots: []string{"v"}, Live: func(f string) bool { return f == "v" }})
	k.Want(t, `{"message":"1-ab-2 x-cd-x"}`, `{"message":"1-ab-2 x-cd-x","q":"x","v":"cd"}`)
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`regex: 'a(b'`:                         `test:1:10: regex: the group's ) is missing`,
		`regex: '%{IP:ip} (?<a>[z-a])'`:        `the range z-a is empty`,
		`regex: {field: x}`:                    `want at least one pattern`,
		`regex: {pattern: a, patterns: b}`:     `pattern or patterns, not both`,
		`regex: {pattern: '(?<@path>a)'}`:      `@path is metadata`,
		`regex: {pattern: a, target: '@path'}`: `metadata`,
		`regex: '(?<a:number>x)'`:              `unknown type "number"`,
		`regex: '(?<>x)'`:                      `"" is no field`,
		`regex: {patern: a}`:                   `did you mean "pattern"`,
		`regex:`:                               `want at least one pattern`,
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

func TestSchema(t *testing.T) {
	if s := config.Schema(Config{}); len(s["anyOf"].([]any)) != 3 {
		t.Error(s)
	}
}
