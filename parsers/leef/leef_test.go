package leef

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestLEEF(t *testing.T) {
	s := steptest.New(t, "leef: {field: m, target: f}", steptest.Options{})
	f := func(in, want string) {
		t.Helper()
		q, _ := json.Marshal(in)
		s.Want(t, `{"m":`+string(q)+`}`, `{"m":`+string(q)+`,"f":`+want+`}`)
	}
	head := func(v string) string {
		return `"leefVersion":"` + v + `","deviceVendor":"Lancope","deviceProduct":"StealthWatch","deviceVersion":"1.0","deviceEventClassId":"41"`
	}
	f("LEEF:1.0|Lancope|StealthWatch|1.0|41|src=192.0.2.0\tdst=172.50.123.1\tmsg=a b=c\tempty=\n", `{`+head("1.0")+`,"src":"192.0.2.0","dst":"172.50.123.1","msg":"a b=c"}`)
	f("LEEF:2.0|Lancope|StealthWatch|1.0|41|^|src=192.0.2.0^dst=172.50.123.1", `{`+head("2.0")+`,"src":"192.0.2.0","dst":"172.50.123.1"}`)
	f("LEEF:2.0|Lancope|StealthWatch|1.0|41|x5E|src=1^dst=2", `{`+head("2.0")+`,"src":"1","dst":"2"}`)
	f("LEEF:2.0|Lancope|StealthWatch|1.0|41|0x7c|src=1|dst=2", `{`+head("2.0")+`,"src":"1","dst":"2"}`)
	f("LEEF:2.0|Lancope|StealthWatch|1.0|41||src=1\tdst=2", `{`+head("2.0")+`,"src":"1","dst":"2"}`)
	f("LEEF:2.0|Lancope|StealthWatch|1.0|41|src=1\tdst=2|3", `{`+head("2.0")+`,"src":"1","dst":"2|3"}`)
	f("<13>Jan 18 11:07:53 10.1.1.2 LEEF:1.0|Lancope|StealthWatch|1.0|41|", `{"syslog":"<13>Jan 18 11:07:53 10.1.1.2",`+head("1.0")+`}`)
	s.WantFail(t, `{"m":"x"}`, "no LEEF:")
	s.WantFail(t, `{"m":"LEEF:1.0|a|b"}`, "the header ends within deviceProduct")
	s = steptest.New(t, "leef: {field: m, max_fields: 6}", steptest.Options{})
	s.WantFail(t, `{"m":"LEEF:1.0|a|b|c|d|e=1\tf=2"}`, "more than max_fields")
}

// A megabyte of anything takes time in line with its length.
func TestHostile(t *testing.T) {
	s := steptest.New(t, "leef: {field: m, target: f, max_fields: 1000000}", steptest.Options{})
	for _, unit := range []string{"a=b\t", "=", "\t", "a", "|"} {
		start := time.Now()
		q, _ := json.Marshal("LEEF:1.0|a|b|c|d|" + strings.Repeat(unit, 1_000_000/len(unit)))
		s.One(t, `{"m":`+string(q)+`}`)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%q: %s", unit, d)
		}
	}
}

func FuzzLEEF(f *testing.F) {
	for _, s := range []string{"LEEF:1.0|a|b|c|d|x=1\ty=2", "LEEF:2.0|a|b|c|d|x5E|x=1^", "LEEF:|||||", "LEEF:2|||||0xFFFF|="} {
		f.Add(s)
	}
	s := steptest.New(f, "leef: {field: m, target: f, max_fields: 50}", steptest.Options{})
	f.Fuzz(func(t *testing.T, in string) {
		q, _ := json.Marshal(in)
		s.One(t, `{"m":`+string(q)+`}`)
	})
}
