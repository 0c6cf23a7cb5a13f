package expr

import (
	"testing"

	"github.com/rsetl/rsetl/record"
)

// Values that are equal have the same key, those that differ another: numbers of either kind, both zeros, times of any
// number of digits, and objects, which are fields below.
func TestKey(t *testing.T) {
	table := record.NewTable()
	k := table.Slot("k")
	a, deep := table.Slot("k.a"), table.Slot("k.b.c")
	key := NewKey(&Compiler{Table: table}, []string{"k"})
	if key.Len() != 1 {
		t.Fatal(key.Len())
	}
	b := record.NewBatch(table)
	of := func(set func(i int)) string {
		i := b.Add(record.Position{}, record.Value{})
		set(i)
		return string(key.Append(nil, b, i))
	}
	one := func(v record.Value) string { return of(func(i int) { b.Set(i, k, v) }) }
	for _, same := range [][2]record.Value{
		{record.MakeInt(1), record.MakeFloat(1)},
		{record.MakeFloat(0), record.MakeFloat(negZero())},
		{record.MakeInt(0), record.MakeFloat(negZero())},
		{record.MakeTime(5, 0, 0), record.MakeTime(5, 0, 3)},
		{record.MakeTime(5, 120_000_000, 2), record.MakeTime(5, 120_000_000, 9)},
		{record.MakeNull(), {}},
	} {
		if one(same[0]) != one(same[1]) {
			t.Errorf("%v and %v have different keys", same[0], same[1])
		}
	}
	object := func(x, y int64) string {
		return of(func(i int) { b.Set(i, a, record.MakeInt(x)); b.Set(i, deep, record.MakeInt(y)) })
	}
	seen := map[string]string{}
	for name, got := range map[string]string{"null": one(record.MakeNull()), "1": one(record.MakeInt(1)), "1.5": one(record.MakeFloat(1.5)), "text 1": one(b.PutString("1")),
		"5s": one(record.MakeTime(5, 0, 0)), "5.1s": one(record.MakeTime(5, 100_000_000, 1)), "a1c2": object(1, 2), "a1c3": object(1, 3), "a2c2": object(2, 2)} {
		if other, ok := seen[got]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[got] = name
	}
	if first, again := object(1, 2), object(1, 2); first != again {
		t.Error("an object's key differs from its own")
	}
	// A field of a known type keeps it.
	typed := NewKey(&Compiler{Table: table, TypeOf: func(string) Type { return Type{Kind: TDouble} }}, []string{"k"})
	i := b.Add(record.Position{}, record.Value{})
	b.Set(i, k, record.MakeFloat(2))
	if v := typed.Value(b, i, 0); v.Kind() != record.Float {
		t.Errorf("a DOUBLE became %s", v.Kind())
	}
}

func negZero() float64 { z := 0.0; return -z }
