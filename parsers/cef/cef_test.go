package cef

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestCEF(t *testing.T) {
	f := func(options, in, want string) {
		t.Helper()
		s := steptest.New(t, "cef: {field: m, target: f"+options+"}", steptest.Options{})
		q, _ := json.Marshal(in)
		s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"f":`+want+`}`)
	}
	const head = `"cefVersion":"0","deviceVendor":"sec","deviceProduct":"tm","deviceVersion":"1.0","deviceEventClassId":"100","name":"worm stopped","severity":"10"`
	f("", `CEF:0|sec|tm|1.0|100|worm stopped|10|src=10.0.0.192 dst=12.121.122.82 spt=1232`, `{`+head+`,"sourceAddress":"10.0.0.192","destinationAddress":"12.121.122.82","sourcePort":"1232"}`)
	f("", `CEF:0|sec|tm|1.0|100|worm stopped|10|`, `{`+head+`}`)
	f("", `CEF:0|sec|tm|1.0|100|worm stopped|10`, `{`+head+`}`)
	f("", `<134>Feb 14 19:04:54 host CEF:0|sec|tm|1.0|100|worm stopped|10|x=1`, `{"syslog":"<134>Feb 14 19:04:54 host",`+head+`,"x":"1"}`)
	f(", full_names: false", `CEF:0|se\|c|t\\m|1.0|100|a=b|10|msg=one\=two three \n four  act=blocked a \| b`, `{"cefVersion":"0","deviceVendor":"se|c","deviceProduct":"t\\m","deviceVersion":"1.0","deviceEventClassId":"100","name":"a=b","severity":"10","msg":"one=two three \n four","act":"blocked a | b"}`)
	f(", full_names: false", `CEF:0|sec|tm|1.0|100|worm stopped|10|rt=Mar 25 2016 15:15:46 GMT src=10.251.1.198 cs3Label=Virtual System cs3= request=http://x/?a=b&c=d`, `{`+head+`,"rt":"Mar 25 2016 15:15:46 GMT","src":"10.251.1.198","cs3Label":"Virtual System","request":"http://x/?a=b&c=d"}`)
	f(", labels: true", `CEF:0|sec|tm|1.0|100|worm stopped|10|cs1=deny all cs1Label=Rule Name cn1=5 cn2Label=Free`, `{`+head+`,"Rule Name":"deny all","deviceCustomNumber1":"5"}`)
	s := steptest.New(t, "cef: {field: m, max_fields: 9}", steptest.Options{})
	s.WantFail(t, `{"m":"CEF:0|a|b|c|d|e|f|x=1 y=2 z=3"}`, "more than max_fields")
	s.WantFail(t, `{"m":"hello"}`, "no CEF:")
	s.WantFail(t, `{"m":"CEF:0|a|b"}`, "the header ends within deviceProduct")
	s.WantFail(t, `{}`, "the field is missing")
}

// A million keys, or equals signs without keys, take time in line with the text's length.
func TestHostile(t *testing.T) {
	s := steptest.New(t, "cef: {field: m, target: f}", steptest.Options{})
	for _, unit := range []string{"a=b ", "=", "aaaaaaaa", `\`, "a.a=", " = "} {
		start := time.Now()
		q, _ := json.Marshal("CEF:0|a|b|c|d|e|f|" + strings.Repeat(unit, 1_000_000/len(unit)))
		s.One(t, `{"m":`+string(q)+`}`)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: %s", unit, d)
		}
	}
}

func FuzzCEF(f *testing.F) {
	for _, s := range []string{`CEF:0|a|b|c|d|e|f|src=1 msg=a\=b cs1=x cs1Label=y`, `CEF:\`, `CEF:0|||||||=`, `x CEF:0|\||`} {
		f.Add(s)
	}
	s := steptest.New(f, "cef: {field: m, target: f, labels: true, max_fields: 50}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}
