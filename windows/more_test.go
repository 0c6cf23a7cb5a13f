package windows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

// TestDelta: parts add up, over crashes, and are numbered.
func TestDelta(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := newWorld(t, "window: {hop: {size: 6s, every: 3s}, time: ts, delay: 8s, by: [k], emit: delta, select: {n: COUNT(*), s: SUM(v)}}")
		n := &naive{kind: "hop", size: 6000, every: 3000, delay: 8000, max: map[string]int64{}, water: never, windows: map[string][]rec{}}
		for _, sp := range []string{"A", "B", "C"} {
			w.split(sp)
		}
		recs := sample(r, 500)
		for _, x := range recs {
			n.add(x)
		}
		committed := 0
		for i := 0; i < len(recs); i++ {
			w.apply(recs[i : i+1])
			switch r.IntN(20) {
			case 0, 1:
				w.checkpoint()
				committed = i + 1
			case 2:
				w.start()
				i = committed - 1
			}
		}
		w.finish()
		got := map[string][3]int64{}
		for _, row := range w.out {
			id, _, _ := strings.Cut(row, `,"window_firing":`)
			var x struct {
				Firing int64 `json:"window_firing"`
				N, S   int64
			}
			if err := json.Unmarshal([]byte(row), &x); err != nil {
				t.Fatal(err)
			}
			g := got[id]
			if x.Firing != g[2]+1 {
				t.Errorf("seed %d: %s comes after firing %d", seed, row, g[2])
			}
			got[id] = [3]int64{g[0] + x.N, g[1] + x.S, x.Firing}
		}
		want := n.results()
		for id, x := range want {
			if have := fmt.Sprintf(`"n":%d,"s":%d,`, got[id][0], got[id][1]); !strings.HasPrefix(x, have) {
				t.Errorf("seed %d: %s: parts make %s, want %s", seed, id, have, x)
			}
		}
		if len(got) != len(want) {
			t.Errorf("seed %d: %d windows, want %d", seed, len(got), len(want))
		}
	}
}

// TestIdle: a split that is idle for long enough doesn't hold the others back; where all are, time goes on by the clock.
func TestIdle(t *testing.T) {
	w := newWorld(t, "window: {tumble: 10s, time: ts, idle: 30s, select: {n: COUNT(*)}}")
	a, b := w.split("A"), w.split("B")
	now := w.now
	tick := func(d time.Duration) {
		now = now.Add(d)
		w.s.Clock = now
		w.st.Tick(now)
	}
	w.apply([]rec{{"A", at("10:00:05"), "", 1}, {"A", at("10:00:25"), "", 1}})
	w.checkpoint()
	w.want() // B is unread
	w.st.SplitIdle(b, true)
	tick(29 * time.Second)
	w.checkpoint()
	w.want() // not for long enough
	tick(2 * time.Second)
	if !w.st.Due() {
		t.Error("nothing is due though B is idle")
	}
	w.checkpoint()
	w.want(`{"window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:00:10Z","n":1}`)
	w.apply([]rec{{"B", at("10:00:26"), "", 1}}) // it is back, and not late
	w.st.SplitIdle(a, true)
	w.st.SplitIdle(b, true)
	tick(30 * time.Second) // both are idle from now on; the clock counts from the last record
	w.checkpoint()
	w.want()
	tick(5 * time.Second)
	w.checkpoint()
	w.want(`{"window_start":"2024-01-01T10:00:20Z","window_end":"2024-01-01T10:00:30Z","n":2}`)
}

// TestIdleAfterStart: windows that were open when the pipeline stopped fire after a start, though nothing comes any more.
func TestIdleAfterStart(t *testing.T) {
	w := newWorld(t, "window: {tumble: 10s, time: ts, idle: 30s, select: {n: COUNT(*)}}")
	w.apply([]rec{{"A", at("10:00:05"), "", 1}})
	w.checkpoint()
	w.s.Clock = w.s.Clock.Add(time.Hour)
	w.start()
	w.st.SplitIdle(w.split("A"), true)
	for _, step := range []struct {
		after time.Duration
		due   bool
	}{{0, false}, {30 * time.Second, false}, {35 * time.Second, true}} {
		if w.st.Tick(w.s.Clock.Add(step.after)); w.st.Due() != step.due {
			t.Errorf("%s after the start: due is %v", step.after, !step.due)
		}
	}
	w.checkpoint()
	w.want(`{"window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:00:10Z","n":1}`)
}

// TestProcessing: windows of the clock fire though nothing arrives.
func TestProcessing(t *testing.T) {
	for kind, want := range map[string]string{
		"tumble: 10s": `{"window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:00:10Z","n":2}`,
		"session: 4s": `{"window_start":"2026-03-01T12:00:00Z","window_end":"2026-03-01T12:00:04Z","n":2}`,
	} {
		w := newWorld(t, "window: {"+kind+", time: processing, select: {n: COUNT(*)}}")
		w.apply([]rec{{"A", 0, "", 1}, {"A", 99, "", 1}})
		w.st.Tick(w.now.Add(3 * time.Second))
		w.checkpoint()
		w.want()
		w.st.Tick(w.now.Add(10 * time.Second))
		if !w.st.Due() {
			t.Error("nothing is due")
		}
		w.checkpoint()
		w.want(want)
	}
}

// TestZone: local days have 23, 24 and 25 hours.
func TestZone(t *testing.T) {
	w := newWorld(t, "window: {tumble: 1d, zone: Europe/Berlin, time: ts, delay: 400d, select: {n: COUNT(*)}}")
	day := func(month, day, hour int) int64 {
		return time.Date(2024, time.Month(month), day, hour, 30, 0, 0, time.UTC).UnixMilli()
	}
	w.apply([]rec{{"A", day(3, 30, 22), "", 1}, {"A", day(3, 30, 23), "", 1}, {"A", day(3, 31, 21), "", 1}, {"A", day(3, 31, 22), "", 1}, // the clocks go forward on 31 March
		{"A", day(10, 26, 22), "", 1}, {"A", day(10, 27, 22), "", 1}, {"A", day(10, 27, 23), "", 1}}) // and back on 27 October
	w.finish()
	w.want(`{"window_start":"2024-03-29T23:00:00Z","window_end":"2024-03-30T23:00:00Z","n":1}`,
		`{"window_start":"2024-03-30T23:00:00Z","window_end":"2024-03-31T22:00:00Z","n":2}`,
		`{"window_start":"2024-03-31T22:00:00Z","window_end":"2024-04-01T22:00:00Z","n":1}`,
		`{"window_start":"2024-10-26T22:00:00Z","window_end":"2024-10-27T23:00:00Z","n":2}`,
		`{"window_start":"2024-10-27T23:00:00Z","window_end":"2024-10-28T23:00:00Z","n":1}`)
}

// TestMaxKeys: records for groups that are too many fail, those of groups that are there count on.
func TestMaxKeys(t *testing.T) {
	for _, kind := range []string{"tumble: 10s", "session: 4s"} {
		w := newWorld(t, "window: {"+kind+", time: ts, by: [k], max_keys: 2, select: {n: COUNT(*)}}")
		b := at("10:00:00")
		if late := w.apply([]rec{{"A", b, "a", 1}, {"A", b, "b", 1}, {"A", b, "c", 1}, {"A", b, "a", 1}}); late != 1 {
			t.Errorf("%s: %d failed", kind, late)
		}
		w.finish()
		if len(w.out) != 2 || !strings.Contains(w.out[0], `"n":2`) {
			t.Errorf("%s: %v", kind, w.out)
		}
		if late := w.apply([]rec{{"A", b + 60_000, "c", 1}}); late != 0 {
			t.Errorf("%s: no room after the windows are gone", kind)
		}
	}
}

// TestLargeFiring: a window with more groups than one checkpoint fires comes out once, over crashes in between.
func TestLargeFiring(t *testing.T) {
	const keys = 3*fireAtOnce + 17
	for _, kind := range []string{"tumble: 10s", "hop: {size: 20s, every: 10s}", "cumulate: {size: 20s, every: 10s}", "session: 4s"} {
		w := newWorld(t, "window: {"+kind+", time: ts, by: [k], select: {n: COUNT(*)}}")
		var recs []rec
		for i := range keys {
			recs = append(recs, rec{"A", at("10:00:00"), fmt.Sprint("key", i), 1}, rec{"A", at("10:00:01"), fmt.Sprint("key", i), 1})
		}
		w.apply(recs)
		w.checkpoint()
		w.apply([]rec{{"A", at("10:01:00"), "later", 1}})
		w.checkpoint()
		for n := 0; w.st.Due(); n++ {
			if n > 100 {
				t.Fatalf("%s: it never ends", kind)
			}
			w.start()
			for range 8 { // a window that is put together reads its slices first, and again after a crash
				w.checkpoint()
			}
		}
		w.start()
		w.finish()
		seen := map[string]int{}
		for _, row := range w.out {
			seen[row]++
		}
		windows := 1
		if strings.HasPrefix(kind, "hop") || strings.HasPrefix(kind, "cumulate") {
			windows = 2
		}
		later := windows
		if strings.HasPrefix(kind, "cumulate") {
			later = 2
		}
		if len(seen) != windows*keys+later || len(w.out) != len(seen) {
			t.Errorf("%s: %d results, %d different, want %d", kind, len(w.out), len(seen), windows*keys+later)
		}
		for range 20 {
			w.checkpoint()
		}
		for k := range w.store {
			if k[0] == 'w' || k[0] == 's' {
				t.Errorf("%s: %q is left in the store", kind, k)
				break
			}
		}
	}
}

// TestHaving and select over keys, bounds and aggregates.
func TestHaving(t *testing.T) {
	w := newWorld(t, "window: {tumble: 10s, time: ts, by: [k], having: COUNT(*) > 1 AND k <> 'c', select: {rate: 'CAST(COUNT(*) AS DOUBLE) / 10', up: UPPER(k) || '!', half: 'SUM(v) / COUNT(*)', from: window_start, big: COUNT(*) FILTER (WHERE v > 1)}}")
	b := at("10:00:00")
	w.apply([]rec{{"A", b, "a", 1}, {"A", b, "a", 4}, {"A", b, "b", 1}, {"A", b, "c", 1}, {"A", b, "c", 1}})
	w.finish()
	w.want(`{"k":"a","window_start":"2024-01-01T10:00:00Z","window_end":"2024-01-01T10:00:10Z","rate":0.2,"up":"A!","half":2,"from":"2024-01-01T10:00:00Z","big":1}`)
}

// TestMistakes are errors at load.
func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		"window: {time: ts}":                                                     "want one of `tumble",
		"window: {tumble: 1m, session: 1m, time: ts}":                            "want one of `tumble",
		"window: {tumble: 1m}":                                                   `key "time" is missing`,
		"window: {tumble: 1m, time: ts, select: {a: v}}":                         "v is neither a key nor inside of an aggregate",
		"window: {tumble: 1m, time: ts, select: {a: SUM(SUM(v))}}":               "aggregate",
		"window: {tumble: 1m, time: ts, by: [k], select: {k: COUNT(*)}}":         "k is a key",
		"window: {tumble: 1m, time: ts, select: {a: MEDIAN(v)}}":                 "there is no function MEDIAN",
		"window: {hop: {size: 5m, every: 2m}, time: ts}":                         "is no multiple of every",
		"window: {hop: {size: 1d, every: 1ms}, time: ts, select: {n: COUNT(*)}}": "would be in 86400000 windows",
		"window: {session: 1m, time: ts, emit: update}":                          "a session's start and end",
		"window: {tumble: 1h, zone: Europe/Berlin, time: ts}":                    "whole days",
		"window: {tumble: 1d, zone: Mars, time: ts}":                             "no time zone",
		"window: {tumble: 1m, time: ts, early: 10s}":                             "only `emit: update`",
		"window: {tumble: 1m, time: ts, emit: delta, having: COUNT(*) > 1}":      "partial results",
		"window: {tumble: 1m, time: processing, delay: 1s}":                      "nothing is late",
		"window: {tumble: 1m, time: ts, group_by: [k]}":                          "`by`",
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

// TestAhead: a record far ahead of the clock fails and closes nothing.
func TestAhead(t *testing.T) {
	for _, kind := range []string{"tumble: 10s", "session: 4s"} {
		w := newWorld(t, "window: {"+kind+", time: ts, ahead: 1h, select: {n: COUNT(*)}}")
		now := w.now.UnixMilli()
		if failed := w.apply([]rec{{"A", now, "", 1}, {"A", now + 7_200_000, "", 1}, {"A", now + 1000, "", 1}}); failed != 1 {
			t.Errorf("%s: %d failed", kind, failed)
		}
		w.finish()
		if len(w.out) != 1 || !strings.Contains(w.out[0], `"n":2`) {
			t.Errorf("%s: %q", kind, w.out)
		}
	}
}
