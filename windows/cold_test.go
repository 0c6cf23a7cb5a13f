package windows

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// coldRun drives one world through records and checkpoints that are the same for a seed, whatever happens to the world in between.
func coldRun(w *world, seed uint64, recs []rec, crash func(r *rand.Rand) bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	mine := rand.New(rand.NewPCG(seed, 2))
	for _, sp := range []string{"A", "B", "C"} {
		w.split(sp)
	}
	type batch struct{ from, to int }
	var since []batch // since the last checkpoint
	for i := 0; i < len(recs); {
		j := i + 1
		for j < len(recs) && recs[j].split == recs[i].split && j-i < 5 {
			j++
		}
		w.apply(recs[i:j])
		since = append(since, batch{i, j})
		i = j
		if crash(mine) {
			w.start()
			for _, b := range since {
				w.apply(recs[b.from:b.to])
			}
		}
		if r.IntN(6) == 0 {
			w.checkpoint()
			since = since[:0]
			if crash(mine) {
				w.start()
			}
		}
	}
	w.finish()
}

// latest takes results of one window and key together: the last one stands for all, or, of parts, they add up.
func latest(t *testing.T, emit string, rows []string) map[string]string {
	type result struct {
		Firing int64 `json:"window_firing"`
		N      int64
		L      string
	}
	out, sums := map[string]string{}, map[string]result{}
	for _, row := range rows {
		id, rest, _ := strings.Cut(row, `,"window_firing":`)
		_, rest, _ = strings.Cut(rest, ",")
		var x result
		if err := json.Unmarshal([]byte(row), &x); err != nil {
			t.Fatal(err)
		}
		if before := sums[id]; x.Firing != before.Firing+1 {
			t.Errorf("%s comes after firing %d", row, before.Firing)
		} else if before.Firing > 0 && emit == "delta" {
			x.N, x.L = x.N+before.N, before.L+","+x.L
		}
		sums[id] = x
		out[id] = rest
	}
	if emit == "delta" {
		for id, x := range sums {
			out[id] = fmt.Sprint(x.N, x.L)
		}
	}
	return out
}

// TestCold: what comes out is the same whether groups are in memory or were read again, at starts and because of the bound, in
// whatever parts, and in which order their records came shows it.
func TestCold(t *testing.T) {
	kinds := []string{"tumble: 7s", "hop: {size: 9s, every: 3s}", "hop: {size: 51s, every: 3s}", "hop: {size: 4s, every: 4s}", "cumulate: {size: 20s, every: 5s}", "tumble: 40s"}
	for seed := range uint64(108) {
		kind := kinds[seed%6]
		emit := []string{"final", "update", "delta"}[seed/6%3]
		memory := []string{"1", "12KiB", "1GiB"}[seed/18%3]
		atOnce := []int{0, 3}[seed/54%2]
		r := rand.New(rand.NewPCG(seed, 3))
		delay := r.IntN(3) * r.IntN(9000)
		step := func(memory string) string {
			return fmt.Sprintf("window: {%s, time: ts, delay: %dms, by: [k], emit: %s, memory: %s, select: {n: COUNT(*), l: 'LISTAGG(CAST(v AS STRING))', f: FIRST_VALUE(v), z: LAST_VALUE(v), d: COUNT(DISTINCT v), a: ARRAY_AGG(v)}}", kind, delay, emit, memory)
		}
		recs := sample(r, 500)
		for i := range recs {
			recs[i].key = fmt.Sprint("key", r.IntN(30))
			recs[i].v = int64(i)
		}
		plain := newWorld(t, step("1GiB"))
		coldRun(plain, seed, recs, func(*rand.Rand) bool { return false })
		w := newWorld(t, step(memory))
		w.atOnce = atOnce
		w.start()
		coldRun(w, seed, recs, func(r *rand.Rand) bool { return r.IntN(12) == 0 })
		if emit == "final" || atOnce == 0 {
			slices.Sort(plain.out)
			slices.Sort(w.out)
			if !slices.Equal(plain.out, w.out) {
				for i := range min(len(w.out), len(plain.out)) {
					if w.out[i] != plain.out[i] {
						t.Fatalf("seed %d: %s, at once %d: got\n%s\nwant\n%s", seed, step(memory), atOnce, w.out[i], plain.out[i])
					}
				}
				t.Fatalf("seed %d: %s, at once %d: %d results, want %d", seed, step(memory), atOnce, len(w.out), len(plain.out))
			}
		} else {
			got, want := latest(t, emit, w.out), latest(t, emit, plain.out)
			for id, x := range want {
				if got[id] != x {
					t.Fatalf("seed %d: %s, at once %d: %s: got\n%s\nwant\n%s", seed, step(memory), atOnce, id, got[id], x)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d results, want %d", seed, len(got), len(want))
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s, at once %d", seed, step(memory), atOnce)
		}
		for k := range w.store {
			if k[0] != 'm' && k[0] != 'p' {
				t.Fatalf("seed %d: %s: %q is left in the store", seed, step(memory), k)
			}
		}
		if a := w.st.(*aligned); a.open != 0 || a.closed != 0 {
			t.Fatalf("seed %d: %s: %d groups are open and %d closed though none is left", seed, step(memory), a.open, a.closed)
		}
	}
}

// manyGroups makes a world whose store has n groups of one window.
func manyGroups(t testing.TB, step string, n int) *world {
	w := newWorld(t, step)
	for from := 0; from < n; from += 1000 {
		w.st.Apply(filled(w, min(1000, n-from), func(i int) string { return fmt.Sprintf("key-%08d", from+i) }, func(int) int64 { return at("10:00:00") }))
		if from%200_000 == 199_000 {
			w.checkpoint()
		}
	}
	w.checkpoint()
	return w
}

// TestColdStart: a start reads a few entries, however many groups there are, and a checkpoint a bounded number.
func TestColdStart(t *testing.T) {
	const keys = 100_000
	for _, kind := range []string{"tumble: 1h, emit: final", "hop: {size: 3h, every: 1h}, emit: final", "cumulate: {size: 3h, every: 1h}, emit: final", "tumble: 1h, emit: update"} {
		w := manyGroups(t, "window: {"+kind+countAndSum, keys)
		w.start()
		if w.reader.rows > 10 {
			t.Errorf("%s: a start reads %d entries", kind, w.reader.rows)
		}
		w.st.Tick(w.now)
		windows := 1
		if strings.HasPrefix(kind, "hop") {
			windows = 3
		}
		if h := w.st.Status(); h.Keys != keys && windows == 1 || h.Bytes > 1<<20 {
			t.Errorf("%s: %+v", kind, h)
		}
		w.reader.rows = 0
		w.st.Apply(filled(w, 100, func(i int) string { return fmt.Sprintf("key-%08d", i*900) }, func(int) int64 { return at("10:00:00") }))
		w.checkpoint()
		if w.reader.rows != 100 {
			t.Errorf("%s: %d entries are read for 100 groups", kind, w.reader.rows)
		}
		if a := w.st.(*aligned); a.open%keys != 0 {
			t.Errorf("%s: %d groups", kind, a.open)
		}
		w.st.End()
		results, rows := 0, 0
		for w.st.Due() {
			w.reader.rows, w.out = 0, nil
			w.checkpoint()
			results += len(w.out)
			if rows++; w.reader.rows > 3*fireAtOnce+3 {
				t.Fatalf("%s: a checkpoint reads %d entries", kind, w.reader.rows)
			}
		}
		if strings.HasPrefix(kind, "cumulate") { // 10:00 lies in the second hour of three
			windows = 2
		}
		if results != windows*keys {
			t.Errorf("%s: %d results, want %d", kind, results, windows*keys)
		}
	}
}

// TestMemory: groups take no more memory than they may but for those of the last checkpoints.
func TestMemory(t *testing.T) {
	const keys, bound = 200_000, 2 << 20
	for _, kind := range []string{"tumble: 1h, emit: final", "hop: {size: 2h, every: 1h}, emit: final", "tumble: 1h, emit: delta"} {
		w := newWorld(t, "window: {"+kind+", memory: 2MiB"+countAndSum)
		most := 0
		for round := range 2 {
			for from := 0; from < keys; from += 5000 {
				w.st.Apply(filled(w, 5000, func(i int) string { return fmt.Sprintf("key-%08d", (from+i)*7919%keys) }, func(int) int64 { return at("10:00:00") }))
				if round == 0 && from%20_000 > 0 {
					continue
				}
				w.checkpoint()
				most = max(most, w.st.(*aligned).bytes())
			}
		}
		if most > bound {
			t.Errorf("%s: %d bytes", kind, most)
		}
		if got := w.st.(*aligned).open; got != keys {
			t.Errorf("%s: %d groups are open, want %d", kind, got, keys)
		}
		w.out = nil
		w.finish()
		windows := 1
		if strings.HasPrefix(kind, "hop") {
			windows = 2
		}
		if len(w.out) != windows*keys {
			t.Errorf("%s: %d results, want %d", kind, len(w.out), windows*keys)
		}
		for _, row := range w.out {
			if !strings.Contains(row, `"n":2,`) {
				t.Fatalf("%s: %s", kind, row)
			}
		}
	}
}

// TestColdMaxKeys: groups that are in the store only count, and are no new ones.
func TestColdMaxKeys(t *testing.T) {
	w := newWorld(t, "window: {tumble: 10s, time: ts, by: [k], max_keys: 16, memory: 1, select: {n: COUNT(*)}}")
	b := at("10:00:00")
	var all []rec
	for i := range 16 {
		all = append(all, rec{"A", b, fmt.Sprint("k", i), 1})
	}
	w.apply(all)
	w.checkpoint()
	w.start()
	if failed := w.apply(all); failed != 0 {
		t.Errorf("%d records for groups that are there failed", failed)
	}
	w.checkpoint()
	failed := 0
	for i := range 40 {
		failed += w.apply([]rec{{"A", b, fmt.Sprint("new", i), 1}})
		w.checkpoint()
	}
	if failed != 38 { // an eighth more is let in
		t.Errorf("%d of 40 new groups failed", failed)
	}
	w.finish()
	if len(w.out) != 18 {
		t.Errorf("%d groups", len(w.out))
	}
}

// TestRows: a store that can be queried gets what groups hold, as people read it.
func TestRows(t *testing.T) {
	for step, want := range map[string]string{
		"window: {tumble: 10s, time: ts, by: [k, v], select: {half: 'SUM(v) / 2', n: 'count( * ) FILTER (WHERE k <> '')'')', last: LAST_VALUE(k)}}": `36000000 36010000 0 {"k":"a\"b","v":7} {"SUM(v)":14,"count( * ) FILTER (WHERE k <> ')')":2,"LAST_VALUE(k)":"a\"b"}`,
		"window: {hop: {size: 20s, every: 10s}, time: ts, select: {n: COUNT(*)}}":                                                                   `36000000 36010000 0 {} {"COUNT(*)":2}`,
		"window: {session: 5s, time: ts, by: [k], select: {n: COUNT(*)}}":                                                                           `36000000 36006000 0 {"k":"a\"b"} {"COUNT(*)":2}`,
		"window: {tumble: 10s, time: ts, emit: update, select: {n: MAX(v)}}":                                                                        `36000000 36010000 0 {} {"MAX(v)":7}`,
	} {
		w := newWorld(t, step)
		st := w.s.Maker().(stager)
		if err := st.Restore(context.Background(), &storeReader{asRows: true}); err != nil {
			t.Fatal(err)
		}
		w.st = st
		w.apply([]rec{{"A", at("10:00:00"), `a"b`, 7}, {"A", at("10:00:01"), `a"b`, 7}})
		var rows []*state.Row
		for _, e := range st.Checkpoint(record.NewBatch(w.s.Table)) {
			if e.Row != nil {
				rows = append(rows, e.Row)
			} else if e.Key[0] == 'w' || e.Key[0] == 's' {
				t.Errorf("%s: %q has no row", step, e.Key)
			}
		}
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows", step, len(rows))
		}
		day := at("00:00:00")
		if got := fmt.Sprintf("%d %d %d %s %s", rows[0].Start-day, rows[0].End-day, rows[0].Firing, rows[0].Key, rows[0].Aggregates); got != want {
			t.Errorf("%s:\n%s, want\n%s", step, got, want)
		}
	}
}

// TestColdEarly: early results are those of all groups that have changed, in memory or not.
func TestColdEarly(t *testing.T) {
	w := newWorld(t, "window: {tumble: 1h, time: ts, by: [k], emit: update, early: 1s, memory: 1, select: {n: COUNT(*), l: 'LISTAGG(CAST(v AS STRING))'}}")
	w.atOnce = 3
	w.start()
	r := rand.New(rand.NewPCG(1, 1))
	w.s.Clock = w.now
	w.st.Tick(w.now)
	lists := map[string][]string{}
	for i := range 300 {
		key := fmt.Sprint("k", r.IntN(40))
		lists[key] = append(lists[key], fmt.Sprint(i))
		w.apply([]rec{{"A", at("10:00:00") + int64(r.IntN(2))*3_600_000/2, key, int64(i)}})
		if r.IntN(3) == 0 {
			w.checkpoint()
		}
		if i%10 < 9 {
			continue
		}
		w.now = w.now.Add(time.Second)
		w.st.Tick(w.now)
		if i%50 < 49 { // more comes while it fires
			continue
		}
		for n := 0; w.st.Due(); n++ {
			if n > 100 {
				t.Fatal("it never ends")
			}
			w.checkpoint()
		}
		got := latest(t, "update", w.out)
		for key, l := range lists {
			id := fmt.Sprintf(`{"k":"%s","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T11:00:00Z"`, key)
			if want := fmt.Sprintf(`"n":%d,"l":"%s"}`, len(l), strings.Join(l, ",")); got[id] != want {
				t.Fatalf("after %d: %s: got %s, want %s", i, key, got[id], want)
			}
		}
	}
}

// TestColdLate: what comes late for a cumulating window keeps its place after a start, though windows without groups were closed before it.
func TestColdLate(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, "window: {cumulate: {size: 20s, every: 5s}, time: ts, delay: 10s, select: {l: 'LISTAGG(CAST(v AS STRING))'}}")
		w.split("A")
		w.split("B")
		w.apply([]rec{{"A", at("10:01:01"), "", 0}})
		w.apply([]rec{{"B", at("10:01:02"), "", 0}})
		w.checkpoint()
		if restart {
			w.start()
		}
		w.apply([]rec{{"A", at("10:00:41"), "", 1}, {"A", at("10:00:46"), "", 2}})
		w.finish()
		w.out = w.out[:2]
		w.want(`{"window_start":"2024-01-01T10:00:40Z","window_end":"2024-01-01T10:00:55Z","l":"1,2"}`, `{"window_start":"2024-01-01T10:00:40Z","window_end":"2024-01-01T10:01:00Z","l":"1,2"}`)
	}
}
