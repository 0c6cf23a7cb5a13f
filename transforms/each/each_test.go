package each

import "testing"

func TestElement(t *testing.T) {
	for name, want := range map[string]struct {
		field string
		at    int
	}{"a": {"a", Whole}, "a.b[2]": {"a.b", 2}, "a[-1]": {"a", -1}, "[0]": {"[0]", Whole}, "a[x]": {"a[x]", Whole}, "a[]": {"a[]", Whole}} {
		if f, at := Element(name); f != want.field || at != want.at {
			t.Errorf("%s: %s, %d", name, f, at)
		}
	}
}
