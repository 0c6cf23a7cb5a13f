package windows

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestDay is a day of records of three splits on a simulated clock, checkpoints every ten seconds of it, and some hundred crashes:
// what comes out is what the naive reference counts.
func TestDay(t *testing.T) {
	day := time.Date(2024, 3, 31, 0, 0, 0, 0, time.UTC)
	for step, n := range map[string]*naive{
		"tumble: 1m":                  {kind: "tumble", size: 60_000, every: 60_000},
		"hop: {size: 1h, every: 10m}": {kind: "hop", size: 3_600_000, every: 600_000},
		"session: 12s":                {kind: "session", gap: 12_000},
	} {
		t.Run(n.kind, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(day.Unix()), 3))
			n.delay, n.max, n.water, n.windows, n.sessions = 20_000, map[string]int64{}, never, map[string][]rec{}, map[string][]*span{}
			w := newWorld(t, "window: {"+step+", time: ts, delay: 20s, by: [k], memory: 20KiB, select: {n: COUNT(*), s: SUM(v), low: MIN(v), d: COUNT(DISTINCT v)}}")
			for _, sp := range []string{"A", "B", "C"} {
				w.split(sp)
			}
			type batch struct {
				now  time.Time
				recs []rec
			}
			var since []batch
			late, committedLate, crashes := 0, 0, 0
			give := func(b batch) {
				w.now = b.now
				late += w.apply(b.recs)
			}
			next := day.Add(10 * time.Second)
			for now := day; now.Before(day.Add(24 * time.Hour)); now = now.Add(time.Duration(r.IntN(4000)) * time.Millisecond) {
				b := batch{now: now}
				sp := string(rune('A' + r.IntN(3)))
				for range 1 + r.IntN(3) {
					x := rec{sp, now.UnixMilli() - int64(r.IntN(2)*r.IntN(30_000)), []string{"a", "b", "c", "d", ""}[r.IntN(5)], int64(r.IntN(100) - 20)}
					b.recs = append(b.recs, x)
					n.add(x)
				}
				give(b)
				since = append(since, b)
				if r.IntN(400) == 0 {
					crashes++
					late = committedLate
					w.start()
					for _, b := range since {
						give(b)
					}
				}
				w.st.Tick(now)
				if !now.Before(next) {
					next = now.Add(10 * time.Second)
					w.checkpoint()
					since, committedLate = since[:0], late
				}
			}
			w.finish()
			want := n.results()
			got := map[string]bool{}
			for _, row := range w.out {
				id, rest, _ := strings.Cut(row, `,"n":`)
				if got[id] {
					t.Errorf("%s comes twice", id)
				}
				got[id] = true
				if rest = `"n":` + strings.TrimSuffix(rest, "}"); want[id] != rest {
					t.Errorf("%s: got %q, want %q", id, rest, want[id])
				}
			}
			if len(got) != len(want) || late != n.late {
				t.Errorf("%d results, want %d; %d late, want %d", len(got), len(want), late, n.late)
			}
			t.Logf("%d results, %d late, %d crashes", len(got), late, crashes)
		})
	}
}
