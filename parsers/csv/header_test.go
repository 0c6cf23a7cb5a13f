package csv

import (
	"context"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/steps/steptest"
)

// The header of each split names the columns of its rows, also after a restart and in later batches.
func TestAutodetect(t *testing.T) {
	s := steptest.New(t, "csv: {autodetect_column_names: true, convert: {n: integer}}", steptest.Options{})
	var h *headed
	read := map[string]int64{} // the next row's place by split
	apply := func(split string, rows ...string) (out []string) {
		b := record.NewBatch(s.Table)
		b.Split = &record.Split{ID: split}
		for _, r := range rows {
			v := b.PutString(r)
			b.Set(b.Add(record.Position{Offset: read[split]}, v), s.Table.Slot("message"), v)
			read[split] += int64(len(r) + 1)
		}
		h.Apply(b)
		for _, i := range b.Sel {
			b.Set(int(i), s.Table.Slot("message"), record.Value{})
			out = append(out, s.JSON(b, int(i)))
		}
		return out
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i := range want {
			if !steptest.SameJSON(got[i], want[i]) {
				t.Errorf("got %s, want %s", got[i], want[i])
			}
		}
	}
	h = s.Maker().(*headed)
	want(apply("a", "n,host", "1,x"), `{"n":1,"host":"x"}`)
	want(apply("b", `k,"",v`, "1,2,3"), `{"k":"1","column2":"2","v":"3"}`)
	want(apply("a", "n,host", "3,y,z"), `{"n":"n","host":"host"}`, `{"n":3,"host":"y","column3":"z"}`)
	kept := map[string][]byte{}
	commit := func() {
		for _, kv := range h.Checkpoint(nil) {
			if kv.Value == nil {
				delete(kept, string(kv.Key))
				continue
			}
			kept[string(kv.Key)] = kv.Value
		}
	}
	commit()
	if len(kept) != 2 {
		t.Fatalf("kept %q", kept)
	}
	h.SplitEnded(&record.Split{ID: "b"})
	commit()
	h = s.Maker().(*headed)
	err := h.Restore(context.Background(), statetest.Keyed(kept))
	if err != nil {
		t.Fatal(err)
	}
	want(apply("a", "4,w"), `{"n":4,"host":"w"}`)
	want(apply("b", "p,q"))
	read["a"] = 0 // read again, from the start
	want(apply("a", "m,host", "5,v"), `{"m":"5","host":"v"}`)
}
