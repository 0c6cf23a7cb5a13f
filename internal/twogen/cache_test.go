package twogen

import (
	"strconv"
	"testing"
)

func TestCache(t *testing.T) {
	c := New[int](100)
	for i := range 10_000 {
		c.Put([]byte(strconv.Itoa(i)), i)
		if v := c.Get([]byte("0")); v == nil || *v != 0 { // what is asked for stays
			t.Fatalf("0 is gone after %d", i)
		}
		if c.Len() > 100 {
			t.Fatalf("%d entries", c.Len())
		}
	}
	if c.Get([]byte("9999")) == nil || c.Get([]byte("1")) != nil {
		t.Error("the last is gone, or the second there")
	}
	key := []byte("0")
	if n := testing.AllocsPerRun(100, func() { c.Get(key) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	c.Clear()
	if c.Len() != 0 {
		t.Error("not cleared")
	}
}
