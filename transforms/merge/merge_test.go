package merge

import (
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestMerge(t *testing.T) {
	s := steptest.New(t, "merge: {list: [foo, bar]}", steptest.Options{})
	s.Want(t, `{"foo":"x"}`, `{"foo":"x","list":["x"]}`)
	s.Want(t, `{"foo":"x","bar":[1,2],"list":"y"}`, `{"foo":"x","bar":[1,2],"list":["y","x",1,2]}`)
	s.Want(t, `{"foo":null,"list":"y"}`, `{"foo":null,"list":"y"}`)
	s.Want(t, `{"foo":1,"list":[]}`, `{"foo":1,"list":[1]}`)
	for _, slots := range [][]string{nil, {"foo.k", "list.k", "list.old"}} {
		o := steptest.New(t, "merge: {list: foo}", steptest.Options{Slots: slots})
		o.Want(t, `{"foo":{"k":1,"l":{"m":2}},"list":{"k":0,"old":3}}`, `{"foo":{"k":1,"l":{"m":2}},"list":{"k":1,"old":3,"l":{"m":2}}}`)
		o.Want(t, `{"foo":{"k":1},"list":"text"}`, `{"foo":{"k":1},"list":"text"}`)
	}
	steptest.New(t, "merge: {a: a}", steptest.Options{}).Want(t, `{"a":[1,2]}`, `{"a":[1,2,1,2]}`)
}
