package steps

import (
	"fmt"
	"testing"

	"github.com/rsetl/rsetl/record"
)

func TestNames(t *testing.T) {
	table := record.NewTable()
	table.Slot("a")
	n := NewNames(table, func(f string) bool { return f != "dead" }, FieldName)
	n.Limit = 4
	for range 2 {
		b := record.NewBatch(table)
		n.Batch(b)
		for i := range 3 {
			b.Add(record.Position{}, record.Value{})
			if i == 1 { // the record has a field, and one that was taken away
				b.SetNamed(i, b.PutString("b"), record.MakeInt(7))
				b.SetNamed(i, b.PutString("c"), record.MakeInt(8))
				b.UnsetOverflow(i, func(name []byte) bool { return string(name) == "c" })
			}
			n.Begin()
			n.Open(i)
			for k, key := range []string{"a", "b", "@path", "at_path", "dead", "c", "b", fmt.Sprint("new", i)} {
				n.Put(i, n.Find([]byte(key)), record.MakeInt(int64(10*i+k)))
			}
			for f, want := range map[string]int64{"a": int64(10 * i), "b": int64(10*i + 6), "at_path": int64(10*i + 3), "c": int64(10*i + 5)} {
				if v := b.Lookup(i, f); v.Kind() != record.Int || v.Int() != want {
					t.Errorf("%d: %s is %v %d, want %d", i, f, v.Kind(), v.Int(), want)
				}
			}
			count := 0
			for range b.Overflow(i) {
				count++
			}
			if count != 4 || b.Lookup(i, "dead").Kind() != record.Missing {
				t.Errorf("%d fields without a slot", count)
			}
		}
	}
}
