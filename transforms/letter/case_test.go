package letter

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestCase(t *testing.T) {
	s := steptest.New(t, "case: {upper: [u, a], lower: l, capitalize: c}", steptest.Options{})
	s.Want(t, `{"u":"aБß","a":["x",2,null],"l":"ÀÉ İ","c":"nÎcË gÛŸ"}`, `{"u":"AБSS","a":["X",2,null],"l":"àé i̇","c":"Nîcë gûÿ"}`)
	s.Want(t, `{"u":5}`, `{"u":5}`)
	if _, err := steptest.Try("case: {uppercase: x}", steptest.Options{}); err == nil || !strings.Contains(err.Error(), "`upper`") {
		t.Error(err)
	}
}
