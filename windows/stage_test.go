package windows

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/steps/steptest"
)

// stager is what the pipeline sees of a window.
type stager interface {
	Apply(b *record.Batch)
	Restore(ctx context.Context, load state.Keyed) error
	Checkpoint(out *record.Batch) []state.KV
	Due() bool
	SplitOpened(s *record.Split)
	SplitIdle(s *record.Split, idle bool)
	SplitEnded(s *record.Split)
	Tick(now time.Time)
	End()
	Status() steps.Holding
}

// world is a store, committed results and a stage over them.
type world struct {
	t      testing.TB
	s      *steptest.S
	st     stager
	store  map[string][]byte
	out    []string // committed results as JSON
	splits map[string]*record.Split
	now    time.Time
	reader *storeReader
	atOnce int // bounds what a checkpoint fires and reads; 0: as it is
}

func newWorld(t testing.TB, step string) *world {
	w := &world{t: t, store: map[string][]byte{}, splits: map[string]*record.Split{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	w.s = steptest.New(t, step, steptest.Options{Slots: []string{"ts", "k", "v"}})
	w.start()
	return w
}

// start makes a stage of the committed state, as after a crash.
func (w *world) start() {
	w.t.Helper()
	w.st = w.s.Maker().(stager)
	if a, ok := w.st.(*aligned); ok && w.atOnce > 0 {
		a.fireAtOnce, a.loadAtOnce = w.atOnce, w.atOnce
	}
	w.reader = &storeReader{m: w.store, added: []string{""}}
	err := w.st.Restore(context.Background(), w.reader)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, sp := range w.splits {
		w.st.SplitOpened(sp)
	}
}

// storeReader reads a world's store in the order of its keys, and counts.
type storeReader struct {
	m           map[string][]byte
	keys        []string // sorted; some may be gone
	added       []string
	calls, rows int
	asRows      bool
}

func (r *storeReader) Range(prefix, after []byte, f func(key, value []byte) error) error {
	r.calls++
	if len(r.added) > 0 || len(r.keys) > 2*len(r.m)+1000 {
		r.keys, r.added = slices.Sorted(maps.Keys(r.m)), nil
	}
	from := string(prefix)
	if after != nil && string(after) >= from {
		from = string(after) + "\x00"
	}
	i, _ := slices.BinarySearch(r.keys, from)
	for ; i < len(r.keys) && strings.HasPrefix(r.keys[i], string(prefix)); i++ {
		v, there := r.m[r.keys[i]]
		if !there {
			continue
		}
		r.rows++
		if err := f([]byte(r.keys[i]), bytes.Clone(v)); err != nil {
			return err
		}
	}
	return nil
}

func (r *storeReader) Get(keys [][]byte, f func(i int, value []byte) error) error {
	r.calls++
	for i, key := range keys {
		r.rows++
		if v, ok := r.m[string(key)]; ok {
			if err := f(i, bytes.Clone(v)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *storeReader) Rows() bool { return r.asRows }

func (w *world) split(name string) *record.Split {
	sp := w.splits[name]
	if sp == nil {
		sp = &record.Split{ID: name, Index: len(w.splits)}
		w.splits[name] = sp
		w.st.SplitOpened(sp)
	}
	return sp
}

type rec struct {
	split string
	ms    int64
	key   string // "" is NULL
	v     int64
}

// apply gives the stage records of one split.
func (w *world) apply(recs []rec) (late int) {
	b := record.NewBatch(w.s.Table)
	b.Split = w.split(recs[0].split)
	ts, k, v := w.s.Table.Slot("ts"), w.s.Table.Slot("k"), w.s.Table.Slot("v")
	for _, r := range recs {
		i := b.Add(record.Position{}, record.Value{})
		b.Set(i, ts, makeTime(r.ms))
		if r.key != "" {
			b.Set(i, k, b.PutString(r.key))
		}
		b.Set(i, v, record.MakeInt(r.v))
	}
	w.st.Apply(b)
	if len(b.Sel) != 0 || b.Absorbed+len(b.Fails)+b.Filtered != len(recs) {
		w.t.Fatalf("%d records: %d pass, %d absorbed, %d failed, %d filtered", len(recs), len(b.Sel), b.Absorbed, len(b.Fails), b.Filtered)
	}
	return len(b.Fails)
}

func (w *world) checkpoint() {
	out := record.NewBatch(w.s.Table)
	for _, e := range w.st.Checkpoint(out) {
		if e.Value == nil {
			delete(w.store, string(e.Key))
		} else {
			if _, there := w.store[string(e.Key)]; !there {
				w.reader.added = append(w.reader.added, string(e.Key))
			}
			w.store[string(e.Key)] = bytes.Clone(e.Value)
		}
	}
	for _, i := range out.Sel {
		w.out = append(w.out, w.s.JSON(out, int(i)))
	}
}

func (w *world) finish() {
	w.st.End()
	w.checkpoint()
	for range 100_000 {
		if !w.st.Due() {
			return
		}
		w.checkpoint()
	}
	w.t.Fatal("it never ends")
}

func (w *world) want(rows ...string) {
	w.t.Helper()
	if !slices.Equal(w.out, rows) {
		w.t.Errorf("got\n%s\nwant\n%s", strings.Join(w.out, "\n"), strings.Join(rows, "\n"))
	}
	w.out = nil
}

func at(s string) int64 {
	t, err := time.Parse("15:04:05.999", s)
	if err != nil {
		panic(err)
	}
	return time.Date(2024, 1, 1, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC).UnixMilli()
}

// sample makes records of some splits whose times ascend with disorder.
func sample(r *rand.Rand, n int) (recs []rec) {
	base := map[string]int64{}
	for len(recs) < n {
		sp := string(rune('A' + r.IntN(3)))
		base[sp] += int64(r.IntN(3000))
		if r.IntN(40) == 0 {
			base[sp] += 30_000
		}
		ms := base[sp] - int64(r.IntN(4))*int64(r.IntN(5000)) - 20_000
		key := []string{"a", "b", "c", "d", ""}[r.IntN(5)]
		recs = append(recs, rec{sp, ms, key, int64(r.IntN(100) - 20)})
	}
	return recs
}

// naive is the reference: all records are kept, windows are found by looking at all of them.
type naive struct {
	kind             string
	size, every, gap int64
	offset, delay    int64
	max              map[string]int64
	water            int64
	windows          map[string][]rec // by start|end|key
	late             int
	sessions         map[string][]*span
}

type span struct {
	key        string
	start, end int64
	recs       []rec
}

func (n *naive) add(r rec) {
	switch n.kind {
	case "session":
		var keep []*span
		x := &span{key: r.key, start: r.ms, end: r.ms + n.gap, recs: nil}
		for _, s := range n.sessions[r.key] {
			if s.end-1 > n.water && s.start <= x.end && r.ms <= s.end && r.ms+n.gap >= s.start {
				x.start, x.end, x.recs = min(x.start, s.start), max(x.end, s.end), append(x.recs, s.recs...)
				continue
			}
			keep = append(keep, s)
		}
		if x.end-1 <= n.water {
			n.late++
			return
		}
		x.recs = append(x.recs, r)
		n.sessions[r.key] = append(keep, x)
	default:
		taken := false
		first := r.ms - n.size - n.every
		for start := floorTo(first, n.every, n.offset); start <= r.ms; start += n.every {
			from, to := start, start+n.size
			if n.kind == "cumulate" {
				to = start + n.every
				for ; to <= floorTo(r.ms, n.size, n.offset)+n.size; to += n.every {
					if floorTo(to-1, n.size, n.offset) == floorTo(r.ms, n.size, n.offset) && to > r.ms && to-1 > n.water {
						taken = true
						id := fmt.Sprint(floorTo(r.ms, n.size, n.offset), "|", to, "|", r.key)
						n.windows[id] = append(n.windows[id], r)
					}
				}
				break
			}
			if from <= r.ms && r.ms < to && to-1 > n.water {
				taken = true
				id := fmt.Sprint(from, "|", to, "|", r.key)
				n.windows[id] = append(n.windows[id], r)
			}
		}
		if !taken {
			n.late++
		}
	}
	if old, ok := n.max[r.split]; !ok || r.ms > old {
		n.max[r.split] = r.ms
	}
	if len(n.max) == 3 { // all splits have been read
		least := int64(1 << 62)
		for _, m := range n.max {
			least = min(least, m)
		}
		n.water = max(n.water, least-n.delay)
	}
}

func (n *naive) results() map[string]string {
	out := map[string]string{}
	put := func(from, to int64, key string, recs []rec) {
		sum := int64(0)
		low := recs[0].v
		seen := map[int64]bool{}
		for _, r := range recs {
			sum += r.v
			low = min(low, r.v)
			seen[r.v] = true
		}
		k := "null"
		if key != "" {
			k = `"` + key + `"`
		}
		id := fmt.Sprintf(`{"k":%s,"window_start":"%s","window_end":"%s"`, k, text(from), text(to))
		out[id] = fmt.Sprintf(`"n":%d,"s":%d,"low":%d,"d":%d`, len(recs), sum, low, len(seen))
	}
	for id, recs := range n.windows {
		var from, to int64
		p := strings.SplitN(id, "|", 3)
		fmt.Sscan(p[0], &from)
		fmt.Sscan(p[1], &to)
		put(from, to, p[2], recs)
	}
	for key, l := range n.sessions {
		for _, s := range l {
			put(s.start, s.end, key, s.recs)
		}
	}
	return out
}

func text(ms int64) string { return string(record.AppendTime(nil, makeTime(ms))) }

// TestReference compares with the naive one: random data of three splits, disorder, delays, batches, checkpoints, and
// crashes after which what was not committed comes again.
func TestReference(t *testing.T) {
	for seed := range uint64(180) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := &naive{max: map[string]int64{}, water: never, windows: map[string][]rec{}, sessions: map[string][]*span{}}
		n.kind = []string{"tumble", "hop", "cumulate", "session"}[seed%4]
		emit := "final"
		if n.kind != "session" {
			emit = []string{"final", "update", "final"}[seed/4%3]
		}
		n.every = int64(1+r.IntN(10)) * 1000
		n.size = n.every
		how := fmt.Sprintf("tumble: %dms", n.size)
		switch n.kind {
		case "hop", "cumulate":
			n.size = n.every * int64([]int{1, 2, 3, 5, 17, 33}[r.IntN(6)])
			how = fmt.Sprintf("%s: {size: %dms, every: %dms}", n.kind, n.size, n.every)
		case "session":
			n.gap = int64(1+r.IntN(8)) * 1000
			how = fmt.Sprintf("session: %dms", n.gap)
		}
		if n.kind != "session" {
			n.offset = int64(r.IntN(5000) - 2500)
			how += fmt.Sprintf(", offset: %dms", n.offset)
		}
		n.delay = int64(r.IntN(3)) * int64(r.IntN(8000))
		step := fmt.Sprintf("window: {%s, time: ts, delay: %dms, by: [k], emit: %s, memory: %d, select: {n: COUNT(*), s: SUM(v), low: MIN(v), d: COUNT(DISTINCT v)}}", how, n.delay, emit, []int{1, 3000, 1 << 30}[seed/12%3])
		recs := sample(r, 600)
		for _, x := range recs {
			n.add(x)
		}
		w := newWorld(t, step)
		for _, sp := range []string{"A", "B", "C"} {
			w.split(sp)
		}
		late, committedLate, committed := 0, 0, 0
		for i := 0; i < len(recs); {
			j := i + 1
			for j < len(recs) && recs[j].split == recs[i].split && j-i < 5 {
				j++
			}
			late += w.apply(recs[i:j])
			i = j
			switch r.IntN(12) {
			case 0, 1:
				w.checkpoint()
				committed, committedLate = i, late
			case 2:
				w.start()
				i, late = committed, committedLate
			}
		}
		w.finish()
		if late != n.late {
			t.Errorf("seed %d: %s: %d late, want %d", seed, step, late, n.late)
		}
		want := n.results()
		got := map[string]string{}
		for _, row := range w.out {
			id, rest, _ := strings.Cut(row, `,"n":`)
			rest = `"n":` + strings.TrimSuffix(rest, "}")
			if emit == "update" {
				head, firing, _ := strings.Cut(id, `,"window_firing":`)
				_ = firing
				id = head
			} else if _, twice := got[id]; twice {
				t.Errorf("seed %d: %s: %s came twice", seed, step, id)
			}
			got[id] = rest
		}
		for id, x := range want {
			if got[id] != x {
				t.Errorf("seed %d: %s\n%s: got %q, want %q", seed, step, id, got[id], x)
			}
		}
		if len(got) != len(want) {
			t.Errorf("seed %d: %s: %d results, want %d", seed, step, len(got), len(want))
		}
		if t.Failed() {
			return
		}
		for k := range w.store {
			if k[0] != 'm' && k[0] != 'p' {
				t.Errorf("seed %d: %s: %q is left in the store", seed, step, k)
			}
		}
	}
}
