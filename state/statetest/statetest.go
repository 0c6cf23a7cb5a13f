// Package statetest is what every state store must do, as tests.
package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// Run tests a kind of store. open makes an empty one; the test closes it.
func Run(t *testing.T, open func(t *testing.T) state.Store) {
	for _, c := range []struct {
		name string
		f    func(t *testing.T, s state.Store)
	}{
		{"fresh", fresh}, {"everything", everything}, {"positions", positions}, {"epochs", epochs}, {"splits", splits},
		{"parts and counters", parts}, {"outbox", outbox}, {"range", ranges}, {"pipelines", pipelines}, {"remove", remove},
		{"rename", rename}, {"refused commits change nothing", atomic}, {"names", names}, {"concurrent", concurrent},
		{"contexts", contexts}, {"nothing is shared", aliasing}, {"closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			defer func() {
				if err := s.Close(); err != nil {
					t.Error("close:", err)
				}
			}()
			c.f(t, s)
		})
	}
}

var ctx = context.Background()

// Commit is a commit that must succeed.
func Commit(t testing.TB, s state.Store, pipeline string, c *state.Commit) {
	t.Helper()
	if err := s.Commit(ctx, pipeline, c); err != nil {
		t.Fatal("commit:", err)
	}
}

// Load is a load that must succeed.
func Load(t testing.TB, s state.Store, pipeline string) *state.Snapshot {
	t.Helper()
	snap, err := s.Load(ctx, pipeline)
	if err != nil {
		t.Fatal("load:", err)
	}
	slices.SortFunc(snap.Splits, func(a, b state.Split) int { return strings.Compare(a.ID, b.ID) })
	return snap
}

// Dump is all state of a pipeline as text, for comparisons.
func Dump(s state.Store, pipeline string, targets, stages []string) (string, error) {
	snap, err := s.Load(ctx, pipeline)
	if err != nil {
		return "", err
	}
	slices.SortFunc(snap.Splits, func(a, b state.Split) int { return strings.Compare(a.ID, b.ID) })
	var w strings.Builder
	fmt.Fprintf(&w, "fresh %v\n", snap.Fresh)
	for _, sp := range snap.Splits {
		fmt.Fprintf(&w, "split %q epoch %d path %q meta %v done %v recent %v\n", sp.ID, sp.Epoch, sp.Path, sp.Meta, sp.Done, sp.Recent)
	}
	for _, k := range slices.Sorted(maps.Keys(snap.Counters)) {
		fmt.Fprintf(&w, "counter %q %d\n", k, snap.Counters[k])
	}
	for _, k := range slices.Sorted(maps.Keys(snap.Parts)) {
		fmt.Fprintf(&w, "part %q %q\n", k, snap.Parts[k])
	}
	for _, k := range slices.Sorted(maps.Keys(snap.NextSeq)) {
		fmt.Fprintf(&w, "next %q %d\n", k, snap.NextSeq[k])
	}
	for _, target := range targets {
		fs, err := s.Outbox(ctx, pipeline, target, 0, math.MaxInt)
		if err != nil {
			return "", err
		}
		for _, f := range fs {
			fmt.Fprintf(&w, "firing %q %d %q\n", f.Target, f.Seq, f.Data)
		}
	}
	for _, stage := range stages {
		err := s.Range(ctx, pipeline, stage, nil, nil, func(k, v []byte) error {
			fmt.Fprintf(&w, "state %q %q %d bytes %q\n", stage, k, len(v), v[:min(len(v), 20)])
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return w.String(), nil
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func fresh(t *testing.T, s state.Store) {
	snap := Load(t, s, "default/a")
	if !snap.Fresh || len(snap.Splits)+len(snap.Counters)+len(snap.Parts)+len(snap.NextSeq) != 0 {
		t.Errorf("a new pipeline has %+v", snap)
	}
	if snap.Counters == nil || snap.Parts == nil || snap.NextSeq == nil {
		t.Error("a map is nil")
	}
	Commit(t, s, "default/a", &state.Commit{})
	if Load(t, s, "default/a").Fresh {
		t.Error("fresh after a commit")
	}
	if !Load(t, s, "default/aa").Fresh || !Load(t, s, "default/").Fresh {
		t.Error("another pipeline isn't fresh")
	}
}

func everything(t *testing.T, s state.Store) {
	sp := state.Split{ID: "s1", Epoch: 3, Path: "/var/log/\xff\xfe odd", Meta: map[string]string{"dev": "1:2", "raw": "\x80\x00"}, Done: true}
	Commit(t, s, "p", &state.Commit{
		Splits:    []state.Split{sp},
		Positions: map[string]state.Advance{"s1": {Epoch: 3, To: record.Position{Offset: math.MaxInt64, Index: math.MaxInt32}}},
		Counters:  map[string]int64{"in": 5, "sink.\xffa": -1},
		Parts:     map[string][]byte{"dead": []byte("x\x00y"), "empty": {}},
		State:     []state.KV{{Stage: "w", Key: []byte("k\x00\xff"), Value: []byte{}}, {Stage: "w", Key: nil, Value: []byte("no key")}},
		Firings:   []state.Firing{{Target: "t", Seq: 1, Data: []byte("f\x001")}},
	})
	snap := Load(t, s, "p")
	sp.Recent = []record.Position{{Offset: math.MaxInt64, Index: math.MaxInt32}}
	equal(t, "splits", snap.Splits, []state.Split{sp})
	equal(t, "counters", snap.Counters, map[string]int64{"in": 5, "sink.\xffa": -1})
	equal(t, "parts", snap.Parts, map[string][]byte{"dead": []byte("x\x00y"), "empty": {}})
	equal(t, "next", snap.NextSeq, map[string]int64{"t": 2})
	equal(t, "position", snap.Splits[0].Position(), record.Position{Offset: math.MaxInt64, Index: math.MaxInt32})
	got := map[string]string{}
	if err := s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error { got[string(k)] = string(v); return nil }); err != nil {
		t.Fatal(err)
	}
	equal(t, "keyed state", got, map[string]string{"k\x00\xff": "", "": "no key"})
}

func positions(t *testing.T, s state.Store) {
	Commit(t, s, "p", &state.Commit{Splits: []state.Split{{ID: "a"}, {ID: "b"}}})
	if p := Load(t, s, "p").Splits[0]; len(p.Recent) != 0 || p.Position() != (record.Position{}) {
		t.Errorf("a split that was only added is at %v", p.Recent)
	}
	var want []record.Position
	for i := range int64(state.Keep + 5) {
		to := record.Position{Offset: 10 * i, Index: int32(i % 3)}
		want = append(want, to)
		c := &state.Commit{Positions: map[string]state.Advance{"a": {To: to}}}
		Commit(t, s, "p", c)
		Commit(t, s, "p", c) // tried again: no second entry
		snap := Load(t, s, "p")
		equal(t, "recent", snap.Splits[0].Recent, want[max(0, len(want)-state.Keep):])
		equal(t, "the other", len(snap.Splits[1].Recent), 0)
	}
	// A split and its first position come in one commit; what Recent says of a known one is ignored.
	Commit(t, s, "p", &state.Commit{
		Splits:    []state.Split{{ID: "a", Path: "moved", Recent: []record.Position{{Offset: 999}}}, {ID: "c", Recent: []record.Position{{Offset: 5}}}},
		Positions: map[string]state.Advance{"c": {To: record.Position{Offset: 7}}},
	})
	snap := Load(t, s, "p")
	equal(t, "recent of a known split", snap.Splits[0].Recent, want[len(want)-state.Keep:])
	equal(t, "path", snap.Splits[0].Path, "moved")
	equal(t, "recent of a new split", snap.Splits[2].Recent, []record.Position{{Offset: 5}, {Offset: 7}})
	err := s.Commit(ctx, "p", &state.Commit{Positions: map[string]state.Advance{"unknown": {}}})
	if !errors.Is(err, state.ErrConflict) {
		t.Errorf("a position of an unknown split: %v", err)
	}
}

func epochs(t *testing.T, s state.Store) {
	Commit(t, s, "p", &state.Commit{Splits: []state.Split{{ID: "a", Epoch: 2}}, Positions: map[string]state.Advance{"a": {Epoch: 2, To: record.Position{Offset: 50}}}})
	for _, e := range []int64{0, 1, 3} {
		err := s.Commit(ctx, "p", &state.Commit{Positions: map[string]state.Advance{"a": {Epoch: e, To: record.Position{Offset: 60}}}})
		if !errors.Is(err, state.ErrConflict) {
			t.Errorf("epoch %d against 2: %v", e, err)
		}
	}
	if err := s.Commit(ctx, "p", &state.Commit{Splits: []state.Split{{ID: "a", Epoch: 1}}}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("an epoch that goes back: %v", err)
	}
	equal(t, "position", Load(t, s, "p").Splits[0].Recent, []record.Position{{Offset: 50}})
	// A reset raises the epoch and may go back.
	Commit(t, s, "p", &state.Commit{Splits: []state.Split{{ID: "a", Epoch: 3, Recent: []record.Position{{Offset: 10}}}},
		Positions: map[string]state.Advance{"a": {Epoch: 3, To: record.Position{Offset: 20}}}})
	sp := Load(t, s, "p").Splits[0]
	equal(t, "after the reset", sp.Recent, []record.Position{{Offset: 10}, {Offset: 20}})
	equal(t, "epoch", sp.Epoch, int64(3))
	if err := s.Commit(ctx, "p", &state.Commit{Positions: map[string]state.Advance{"a": {Epoch: 2, To: record.Position{Offset: 70}}}}); !errors.Is(err, state.ErrConflict) {
		t.Errorf("the writer of before the reset: %v", err)
	}
}

func splits(t *testing.T, s state.Store) {
	var all []state.Split
	for i := range 300 {
		all = append(all, state.Split{ID: fmt.Sprintf("split-%03d", i), Meta: map[string]string{"i": fmt.Sprint(i)}})
	}
	Commit(t, s, "p", &state.Commit{Splits: all})
	equal(t, "splits", Load(t, s, "p").Splits, all)
	all[7].Done, all[7].Meta = true, nil
	Commit(t, s, "p", &state.Commit{Splits: all[7:8], Forget: []string{"split-000", "never was"}})
	equal(t, "splits", Load(t, s, "p").Splits, all[1:])
	if !Load(t, s, "q").Fresh {
		t.Error("another pipeline has them too")
	}
}

func parts(t *testing.T, s state.Store) {
	Commit(t, s, "p", &state.Commit{Counters: map[string]int64{"a": 1, "b": 2}, Parts: map[string][]byte{"x": []byte("1"), "y": []byte("2")}})
	Commit(t, s, "p", &state.Commit{Parts: map[string][]byte{"x": nil, "z": []byte("3"), "never": nil}})
	snap := Load(t, s, "p")
	equal(t, "parts", snap.Parts, map[string][]byte{"y": []byte("2"), "z": []byte("3")})
	equal(t, "counters that were not given stay", snap.Counters, map[string]int64{"a": 1, "b": 2})
	Commit(t, s, "p", &state.Commit{Counters: map[string]int64{"b": 3}})
	equal(t, "counters are set as a whole", Load(t, s, "p").Counters, map[string]int64{"b": 3})
}

func seqs(t *testing.T, s state.Store, target string, after int64, limit int) (out []int64) {
	t.Helper()
	fs, err := s.Outbox(ctx, "p", target, after, limit)
	if err != nil {
		t.Fatal("outbox:", err)
	}
	for _, f := range fs {
		if f.Target != target || string(f.Data) != fmt.Sprint(target, f.Seq) {
			t.Errorf("%+v from the outbox of %s", f, target)
		}
		out = append(out, f.Seq)
	}
	return out
}

func outbox(t *testing.T, s state.Store) {
	firing := func(target string, seqs ...int64) (out []state.Firing) {
		for _, n := range seqs {
			out = append(out, state.Firing{Target: target, Seq: n, Data: []byte(fmt.Sprint(target, n))})
		}
		return out
	}
	// Numbers whose text or bytes would sort otherwise, and a target whose name begins like another.
	Commit(t, s, "p", &state.Commit{Firings: append(firing("t", 300, 1, 2, 255, 256, 10), firing("t2", 1, 2)...)})
	equal(t, "in order", seqs(t, s, "t", 0, 100), []int64{1, 2, 10, 255, 256, 300})
	equal(t, "after", seqs(t, s, "t", 10, 100), []int64{255, 256, 300})
	equal(t, "limit", seqs(t, s, "t", 1, 2), []int64{2, 10})
	equal(t, "after the last", seqs(t, s, "t", 300, 2), []int64(nil))
	equal(t, "after the end", seqs(t, s, "t", math.MaxInt64, 2), []int64(nil))
	equal(t, "from the beginning", seqs(t, s, "t", -1, 1), []int64{1})
	equal(t, "unknown", seqs(t, s, "none", 0, 2), []int64(nil))
	equal(t, "next", Load(t, s, "p").NextSeq, map[string]int64{"t": 301, "t2": 3})
	Commit(t, s, "p", &state.Commit{Acked: map[string]int64{"t": 255, "none": 7}, Firings: firing("t2", 3)})
	equal(t, "acknowledged", seqs(t, s, "t", 0, 100), []int64{256, 300})
	equal(t, "the other target", seqs(t, s, "t2", 0, 100), []int64{1, 2, 3})
	Commit(t, s, "p", &state.Commit{Acked: map[string]int64{"t": math.MaxInt64, "t2": 0}})
	equal(t, "all acknowledged", seqs(t, s, "t", 0, 100), []int64(nil))
	equal(t, "none acknowledged", seqs(t, s, "t2", 0, 100), []int64{1, 2, 3})
	equal(t, "next outlives the entries", Load(t, s, "p").NextSeq, map[string]int64{"t": 301, "t2": 4})
	Commit(t, s, "p", &state.Commit{Firings: firing("t", 5)})
	equal(t, "next never goes back", Load(t, s, "p").NextSeq["t"], int64(301))
	for _, n := range []int64{-1, math.MaxInt64} {
		if s.Commit(ctx, "p", &state.Commit{Firings: firing("t", n)}) == nil {
			t.Errorf("number %d is taken", n)
		}
	}
}

func ranges(t *testing.T, s state.Store) {
	kv := func(stage, k string) state.KV { return state.KV{Stage: stage, Key: []byte(k), Value: []byte("v" + k)} }
	Commit(t, s, "p", &state.Commit{State: []state.KV{kv("w", "b"), kv("w", "a1"), kv("w", "a\xff"), kv("w", "a\xff\xff"), kv("w", "a"), kv("w", "\xff\xff"), kv("w2", "a0"), kv("w", "a0")}})
	get := func(stage, prefix string) (out []string) {
		err := s.Range(ctx, "p", stage, []byte(prefix), nil, func(k, v []byte) error {
			if string(v) != "v"+string(k) {
				t.Errorf("%q has %q", k, v)
			}
			out = append(out, string(k))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	equal(t, "all", get("w", ""), []string{"a", "a0", "a1", "a\xff", "a\xff\xff", "b", "\xff\xff"})
	equal(t, "prefix a", get("w", "a"), []string{"a", "a0", "a1", "a\xff", "a\xff\xff"})
	equal(t, "prefix a ff", get("w", "a\xff"), []string{"a\xff", "a\xff\xff"})
	equal(t, "prefix ff", get("w", "\xff"), []string{"\xff\xff"})
	behind := func(prefix, after string) (out []string) {
		err := s.Range(ctx, "p", "w", []byte(prefix), []byte(after), func(k, _ []byte) error { out = append(out, string(k)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	equal(t, "behind a1", behind("", "a1"), []string{"a\xff", "a\xff\xff", "b", "\xff\xff"})
	equal(t, "behind one that isn't there", behind("a", "a00"), []string{"a1", "a\xff", "a\xff\xff"})
	equal(t, "behind one before the prefix", behind("b", "a"), []string{"b"})
	equal(t, "behind the prefix", behind("a\xff", "a\xff"), []string{"a\xff\xff"})
	equal(t, "behind all of the prefix", behind("a", "b"), []string(nil))
	equal(t, "behind the last", behind("\xff", "\xff\xff"), []string(nil))
	found := func(keys ...string) (out []string) {
		list := make([][]byte, len(keys))
		for i, k := range keys {
			list[i] = []byte(k)
		}
		err := s.Get(ctx, "p", "w", list, func(i int, v []byte) error {
			if string(v) != "v"+keys[i] {
				t.Errorf("%q has %q", keys[i], v)
			}
			out = append(out, keys[i])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(out)
		return out
	}
	equal(t, "some keys", found("b", "a2", "a", "\xff\xff", ""), []string{"a", "b", "\xff\xff"})
	equal(t, "no keys", found(), []string(nil))
	if err := s.Get(ctx, "none", "w", [][]byte{[]byte("a")}, func(int, []byte) error { return errors.New("called") }); err != nil {
		t.Errorf("of no pipeline: %v", err)
	}
	equal(t, "another stage", get("w2", ""), []string{"a0"})
	equal(t, "none", get("none", ""), []string(nil))
	Commit(t, s, "p", &state.Commit{State: []state.KV{{Stage: "w", Key: []byte("a0")}, {Stage: "w", Key: []byte("new"), Value: []byte("vnew")}, {Stage: "w", Key: []byte("never")}}})
	equal(t, "changed", get("w", ""), []string{"a", "a1", "a\xff", "a\xff\xff", "b", "new", "\xff\xff"})
	stop := errors.New("stop")
	if err := s.Get(ctx, "p", "w", [][]byte{[]byte("a"), []byte("a1")}, func(int, []byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Get stopped: %v", err)
	}
	n := 0
	err := s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error {
		if n++; n == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 2 {
		t.Errorf("stopped after %d: %v", n, err)
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("the caller's panic became %v", r)
			}
		}()
		_ = s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error { panic("mine") })
	}()
	equal(t, "after a panic", len(get("w", "")), 7)
	// A callback may use the store, and sees nothing of what it commits: a store that reads in pages has these few in one.
	n = 0
	err = s.Range(ctx, "p", "w", nil, nil, func(k, v []byte) error {
		n++
		return s.Commit(ctx, "p", &state.Commit{State: []state.KV{kv("w", "zz"+string(k))}})
	})
	if err != nil || n != 7 {
		t.Errorf("%d entries: %v", n, err)
	}
}

func list(t *testing.T, s state.Store) []string {
	t.Helper()
	out, err := s.Pipelines(ctx)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func pipelines(t *testing.T, s state.Store) {
	equal(t, "none", list(t, s), []string(nil))
	var want []string
	for _, p := range []string{"default/a", "default/a-b", "default/ab", "default/a b", "ns/a", "p", "pp", "q", "\xffodd"} {
		Commit(t, s, p, &state.Commit{Splits: []state.Split{{ID: "x"}}, Counters: map[string]int64{"in": 1}})
		want = append(want, p)
	}
	slices.Sort(want)
	equal(t, "all", list(t, s), want)
}

func remove(t *testing.T, s state.Store) {
	for _, p := range []string{"p", "p2", "o"} {
		Commit(t, s, p, full(p))
	}
	if err := s.Remove(ctx, "p"); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, "never"); err != nil {
		t.Error("one that isn't there:", err)
	}
	got, _ := Dump(s, "p", []string{"t"}, []string{"w"})
	equal(t, "removed", got, "fresh true\n")
	equal(t, "the others", list(t, s), []string{"o", "p2"})
	for _, p := range []string{"p2", "o"} {
		if got, _ := Dump(s, p, []string{"t"}, []string{"w"}); strings.Count(got, "\n") != 8 {
			t.Errorf("%s lost something: %s", p, got)
		}
	}
	Commit(t, s, "p", &state.Commit{})
	got, _ = Dump(s, "p", []string{"t"}, []string{"w"})
	equal(t, "anew", got, "fresh false\n")
}

func full(p string) *state.Commit {
	return &state.Commit{
		Splits:   []state.Split{{ID: "s", Path: p}},
		Counters: map[string]int64{"in": 1},
		Parts:    map[string][]byte{"a": []byte(p)},
		State:    []state.KV{{Stage: "w", Key: []byte("k"), Value: []byte(p)}, {Stage: "w", Key: []byte("l"), Value: bytes.Repeat([]byte(p), 700<<10)}},
		Firings:  []state.Firing{{Target: "t", Seq: 4, Data: []byte(p)}},
	}
}

func rename(t *testing.T, s state.Store) {
	Commit(t, s, "p", full("p"))
	Commit(t, s, "taken", full("taken"))
	dump := func(p string) string {
		d, err := Dump(s, p, []string{"t"}, []string{"w"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	want, other := dump("p"), dump("taken")
	if err := s.Rename(ctx, "p", "taken"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("to a name that is taken: %v", err)
	}
	if err := s.Rename(ctx, "p", "p"); !errors.Is(err, state.ErrConflict) {
		t.Errorf("to itself: %v", err)
	}
	equal(t, "after refusals", dump("p"), want)
	if err := s.Rename(ctx, "never", "new"); err != nil {
		t.Errorf("one that isn't there: %v", err)
	}
	if !Load(t, s, "new").Fresh {
		t.Error("a rename of nothing made something")
	}
	if err := s.Rename(ctx, "p", "ns/new"); err != nil {
		t.Fatal(err)
	}
	equal(t, "moved", dump("ns/new"), want)
	equal(t, "the old name", dump("p"), "fresh true\n")
	equal(t, "names", list(t, s), []string{"ns/new", "taken"})
	if err := s.Rename(ctx, "p", "ns/new"); err != nil {
		t.Errorf("a rename done again: %v", err)
	}
	equal(t, "done again", dump("ns/new"), want)
	equal(t, "the other", dump("taken"), other)
	Commit(t, s, "p", &state.Commit{Counters: map[string]int64{"in": 9}})
	equal(t, "the old name anew", dump("p"), "fresh false\ncounter \"in\" 9\n")
	equal(t, "moved", dump("ns/new"), want)
}

func atomic(t *testing.T, s state.Store) {
	Commit(t, s, "p", full("p"))
	want, err := Dump(s, "p", []string{"t"}, []string{"w"})
	if err != nil {
		t.Fatal(err)
	}
	bad := &state.Commit{
		Splits:    []state.Split{{ID: "new"}, {ID: "s", Path: "changed"}},
		Positions: map[string]state.Advance{"new": {To: record.Position{Offset: 1}}, "s": {Epoch: 9, To: record.Position{Offset: 1}}},
		Forget:    []string{"s"}, Counters: map[string]int64{"in": 2}, Parts: map[string][]byte{"a": nil},
		State:   []state.KV{{Stage: "w", Key: []byte("k")}},
		Firings: []state.Firing{{Target: "t", Seq: 9}}, Acked: map[string]int64{"t": 9},
	}
	for range 2 {
		if err := s.Commit(ctx, "p", bad); !errors.Is(err, state.ErrConflict) {
			t.Fatal(err)
		}
		got, err := Dump(s, "p", []string{"t"}, []string{"w"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "after a refused commit", got, want)
	}
	if err := s.Commit(ctx, "fresh", &state.Commit{Positions: map[string]state.Advance{"x": {}}}); !errors.Is(err, state.ErrConflict) {
		t.Fatal(err)
	}
	if !Load(t, s, "fresh").Fresh {
		t.Error("a refused commit made a pipeline")
	}
}

func names(t *testing.T, s state.Store) {
	for _, c := range []*state.Commit{
		{State: []state.KV{{Stage: "a\x00b"}}}, {Firings: []state.Firing{{Target: "a\x00b"}}}, {Acked: map[string]int64{"a\x00": 1}}, {State: []state.KV{{Stage: ""}}},
	} {
		if s.Commit(ctx, "p", c) == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	for _, p := range []string{"", "a\x00b"} {
		if s.Commit(ctx, p, &state.Commit{}) == nil || s.Rename(ctx, "p", p) == nil || s.Remove(ctx, p) == nil {
			t.Errorf("pipeline %q is taken", p)
		}
	}
	if !Load(t, s, "p").Fresh || len(list(t, s)) != 0 {
		t.Error("something was made")
	}
}

func concurrent(t *testing.T, s state.Store) {
	var wg sync.WaitGroup
	for i := range 8 {
		p := fmt.Sprint("p", i)
		wg.Go(func() {
			for k := range int64(30) {
				c := &state.Commit{Counters: map[string]int64{"in": k}, Positions: map[string]state.Advance{"x": {To: record.Position{Offset: k}}}}
				if k == 0 {
					c.Splits = []state.Split{{ID: "x"}}
				}
				if err := s.Commit(ctx, p, c); err != nil {
					t.Error(err)
					return
				}
				snap, err := s.Load(ctx, p)
				if err != nil || snap.Counters["in"] != k || snap.Splits[0].Position().Offset != k {
					t.Errorf("after commit %d: %+v, %v", k, snap, err)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			if _, err := s.Pipelines(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	equal(t, "pipelines", len(list(t, s)), 8)
}

func contexts(t *testing.T, s state.Store) {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Commit(ended, "p", &state.Commit{}); !errors.Is(err, context.Canceled) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Load(ended, "p"); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
	if !Load(t, s, "p").Fresh {
		t.Error("a cancelled commit is there")
	}
}

// aliasing checks that neither side keeps the other's memory.
func aliasing(t *testing.T, s state.Store) {
	c := full("p")
	recent := make([]record.Position, 1, 40)
	c.Splits = append(c.Splits, state.Split{ID: "z", Recent: recent, Meta: map[string]string{"k": "v"}})
	c.Positions = map[string]state.Advance{"z": {To: record.Position{Offset: 1}}}
	Commit(t, s, "p", c)
	if extra := recent[:2]; extra[1] != (record.Position{}) {
		t.Error("the caller's array was written")
	}
	want, _ := Dump(s, "p", []string{"t"}, []string{"w"})
	c.Parts["a"][0], c.State[0].Value[0], c.Firings[0].Data[0], c.Splits[1].Meta["k"] = 'X', 'X', 'X', "X"
	snap := Load(t, s, "p")
	snap.Parts["a"][0] = 'Y'
	snap.Splits[1].Recent[0].Offset = 77
	fs, _ := s.Outbox(ctx, "p", "t", 0, 1)
	fs[0].Data[0] = 'Y'
	got, _ := Dump(s, "p", []string{"t"}, []string{"w"})
	equal(t, "state", got, want)
}

func closed(t *testing.T, s state.Store) {
	Commit(t, s, "p", &state.Commit{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Commit(ctx, "p", &state.Commit{}) == nil {
		t.Error("a commit after Close")
	}
	if _, err := s.Load(ctx, "p"); err == nil {
		t.Error("a load after Close")
	}
	if err := s.Close(); err != nil {
		t.Error("the second Close:", err)
	}
}
