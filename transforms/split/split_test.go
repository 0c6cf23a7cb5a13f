package split

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct{ sep, in, want string }{
		{",", `"a,b,,c,,"`, `["a","b","","c"]`}, {",", `"foo"`, `["foo"]`}, {",", `""`, `[]`}, {",", `5`, `5`}, {",", `["a,b"]`, `["a,b"]`}, {"", `"aéc"`, `["a","é","c"]`}, {" ", `"  a  b "`, `["a","b"]`}, {"||", `"a||b|c"`, `["a","b|c"]`},
	} {
		steptest.New(t, "split: {s: '"+c.sep+"'}", steptest.Options{}).Want(t, `{"s":`+c.in+`}`, `{"s":`+c.want+`}`)
	}
	for step, want := range map[string]string{"split: s": "`unnest: s`", "split: {field: s, terminator: ','}": "unnest: {field"} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}
