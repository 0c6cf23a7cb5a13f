package rocketmq

import (
	"fmt"
	"testing"
)

// Per split of the sender: what isn't behind the last one is a repeat; another epoch, split, sink or queue is another matter.
func TestRepeated(t *testing.T) {
	var o origins
	for _, c := range []struct {
		origin string
		want   bool
	}{
		{"", false}, {"nonsense", false}, {"a|b|1|x|0", false},
		{"p|s|x|0|5|0", false}, {"p|s|x|0|5|0", true}, {"p|s|x|0|4|9", true}, {"p|s|x|0|5|1", false}, {"p|s|x|0|5|1", true}, {"p|s|x|0|7|0", false}, {"p|s|x|0|6|0", true},
		{"p|s|y|0|1|0", false}, {"p|t|x|0|1|0", false},
		{"p|s|x|1|1|0", false}, {"p|s|x|1|1|0", true}, {"p|s|x|0|3|0", false}, {"p|s|x|1|2|0", false},
	} {
		if got := o.repeated([]byte(c.origin)); got != c.want {
			t.Errorf("%s: %v", c.origin, got)
		}
	}
}

// Any number of splits takes bounded memory, and the last ones are known.
func TestOriginsAreBounded(t *testing.T) {
	var o origins
	const n = 10 * originsKept
	for i := range n {
		o.repeated(fmt.Appendf(nil, "p|s|%d|0|1|0", i))
	}
	if len(o.young)+len(o.old) > 2*originsKept {
		t.Errorf("%d kept", len(o.young)+len(o.old))
	}
	for i := n - originsKept; i < n; i++ {
		if !o.repeated(fmt.Appendf(nil, "p|s|%d|0|1|0", i)) {
			t.Fatalf("%d is forgotten", i)
		}
	}
}

func FuzzOrigin(f *testing.F) {
	f.Add([]byte("p|s|x|0|5|0"))
	f.Add([]byte("|||"))
	f.Fuzz(func(t *testing.T, p []byte) {
		var o origins
		if o.repeated(p) {
			t.Error("the first is a repeat")
		}
		_, _, ok := parseOrigin(p)
		if o.repeated(p) != ok {
			t.Error("the second isn't")
		}
	})
}
