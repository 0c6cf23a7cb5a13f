package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/services"
)

// full is a commit with all kinds of things, some of which no text column takes.
func full() *state.Commit {
	return &state.Commit{
		Splits:    []state.Split{{ID: "s\xff'", Path: "/a\xfe'", Meta: map[string]string{"dev": `1:"2"`, "odd\x80": "x"}, Epoch: 2}, {ID: "empty", Path: "/b", Meta: map[string]string{"é": "<&>\n"}}},
		Positions: map[string]state.Advance{"s\xff'": {Epoch: 2, To: record.Position{Offset: 10, Index: 3}}},
		Counters:  map[string]int64{"in": 1<<63 - 1, "sink.\xff": -4, `q"'\`: 7},
		Parts:     map[string][]byte{"p": []byte("x")},
		Firings:   []state.Firing{{Target: "t", Seq: 1, Data: []byte("f")}},
		State: []state.KV{
			{Stage: "w", Key: []byte("g1"), Value: []byte("1"), Row: &state.Row{Start: 1760000000123, End: 1760000060123, Firing: 2, Key: []byte(`{"host":"é'\\n"}`), Aggregates: []byte(`{"count(*)": 5}`)}},
			{Stage: "w", Key: []byte("g2"), Value: []byte("2"), Row: &state.Row{Start: -1 << 60, End: 1 << 60, Firing: 1<<64 - 1, Key: []byte("{\"host\":\"\xff\"}"), Aggregates: []byte(`no JSON'`)}},
			{Stage: "w", Key: []byte("none"), Value: []byte("3")},
		},
	}
}

// TestPeople: what a person reads.
func TestPeople(t *testing.T) {
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Owner: "host-é:1", Lease: time.Minute})
	for _, p := range []string{"ns/p", "q"} {
		acquire(t, s, p)
		statetest.Commit(t, s, p, full())
	}
	statetest.Commit(t, s, "ns/p", &state.Commit{State: []state.KV{{Stage: "w", Key: []byte("g3"), Value: []byte("3"), Row: &state.Row{Key: []byte(`{}`), Aggregates: []byte(`{}`)}}},
		Positions: map[string]state.Advance{"s\xff'": {Epoch: 2, To: record.Position{Offset: 11}}}})
	want(t, "view", query(t, dsn, "SELECT pipeline, `window`, group_key, window_start, window_end, firing, version, aggregates FROM rsetl_windows WHERE pipeline = 'ns/p' ORDER BY version, firing"), strings.Join([]string{
		`ns/p|w|{"host":"é'\\n"}|2025-10-09 08:53:20.123|2025-10-09 08:54:20.123|2|1|{"count(*)": 5}`,
		"ns/p|w|{\"host\":\"\uFFFD\"}|NULL|NULL|9223372036854775807|1|\"no JSON'\"",
		`ns/p|w|{}|1970-01-01 00:00:00.000|1970-01-01 00:00:00.000|0|2|{}`}, "\n"))
	want(t, "positions", query(t, dsn, "SELECT DISTINCT JSON_EXTRACT(positions, '$.*.offset'), JSON_EXTRACT(positions, '$.*.index'), JSON_LENGTH(positions) FROM rsetl_windows ORDER BY pipeline DESC"), "[10]|[3]|1\n[11]|[0]|1")
	want(t, "pipelines", query(t, dsn, "SELECT name, owner, epoch, version, lease_until > UTC_TIMESTAMP(6) + INTERVAL 50 SECOND, lease_until <= UTC_TIMESTAMP(6) + INTERVAL 60 SECOND, "+
		"TIMESTAMPDIFF(SECOND, committed, UTC_TIMESTAMP(6)) < 20, JSON_EXTRACT(counters, '$.in') FROM rsetl_pipelines ORDER BY name"),
		"ns/p|host-é:1|1|2|1|1|1|9223372036854775807\nq|host-é:1|1|1|1|1|1|9223372036854775807")
	want(t, "splits", query(t, dsn, "SELECT path, s.epoch, `position`, position_index, done, JSON_VALUE(meta, '$.dev'), recent FROM rsetl_splits s JOIN rsetl_pipelines p ON p.id = s.pipeline WHERE name = 'ns/p' ORDER BY split"),
		"/b|0|NULL|NULL|0|NULL|[]\n/a\uFFFD'|2|11|0|0|1:\"2\"|[[10,3],[11,0]]")
	snap := statetest.Load(t, s, "q")
	c := full()
	c.Splits[0].Recent = []record.Position{{Offset: 10, Index: 3}}
	want(t, "splits", fmt.Sprintf("%#v", snap.Splits), fmt.Sprintf("%#v", []state.Split{c.Splits[1], c.Splits[0]}))
	want(t, "counters", snap.Counters, c.Counters)
}

// TestKeys compares random state with a map, over many commits, with small statements and pages.
func TestKeys(t *testing.T) {
	s := open(t, Options{DSN: services.MySQL(t), Lease: time.Minute, stmtBytes: 3000, pageBytes: 1000})
	acquire(t, s, "p")
	r := rand.New(rand.NewPCG(3, 4))
	key := func() string {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = "\x00\x01' \\a\xfe\xff"[r.IntN(8)]
		}
		switch r.IntN(12) {
		case 0:
			b = append(b, strings.Repeat("long", 475)...) // 1,900 and a few
		case 1:
			b = append(b, strings.Repeat("x", 1900-len(b))...)
		case 2: // the same 1,900 before
			b = append(bytes.Repeat([]byte("x"), 1900), b...)
		}
		return string(b)
	}
	model := map[string]string{}
	for turn := range 12 {
		var c state.Commit
		for range 300 {
			k := key()
			if r.IntN(4) == 0 {
				delete(model, k)
				c.State = append(c.State, state.KV{Stage: "w", Key: []byte(k)})
				continue
			}
			v := fmt.Sprint(turn, strings.Repeat("'\\\x00", r.IntN(50)))
			model[k] = v
			c.State = append(c.State, state.KV{Stage: "w", Key: []byte(k), Value: []byte(v)}, state.KV{Stage: "w2", Key: []byte(k), Value: []byte("other")})
		}
		statetest.Commit(t, s, "p", &c)
	}
	sorted := slices.SortedFunc(maps.Keys(model), func(a, b string) int { // long ones with the same beginning by their hash
		x, _ := stored([]byte(a))
		y, _ := stored([]byte(b))
		return bytes.Compare(x, y)
	})
	long := 0
	for i, k := range sorted {
		if len(k) > maxKey {
			long++
		}
		if i > 0 && k < sorted[i-1] && (len(k) <= maxKey || k[:maxKey] != sorted[i-1][:maxKey]) {
			t.Fatalf("%q comes behind %q", k, sorted[i-1])
		}
	}
	if long < 5 || len(sorted) < 300 {
		t.Fatal(long, "long of", len(sorted))
	}
	read := func(prefix, after string, nilAfter bool) (keys []string) {
		a := []byte(after)
		if nilAfter {
			a = nil
		}
		if err := s.Range(ctx, "p", "w", []byte(prefix), a, func(k, v []byte) error {
			if model[string(k)] != string(v) {
				t.Errorf("%q is %q", k, v)
			}
			keys = append(keys, string(k))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	want(t, "all", len(read("", "", true)), len(sorted))
	for range 60 {
		prefix := sorted[r.IntN(len(sorted))]
		if r.IntN(3) > 0 {
			prefix = prefix[:min(len(prefix), r.IntN(3))]
		}
		after := sorted[r.IntN(len(sorted))]
		all := r.IntN(2) == 0
		var expect []string
		passed := all
		for _, k := range sorted {
			if strings.HasPrefix(k, prefix) && passed {
				expect = append(expect, k)
			}
			passed = passed || k == after
		}
		if got := read(prefix, after, all); !slices.Equal(got, expect) {
			t.Fatalf("prefix of %d, after %d bytes (%v): %d keys, want %d", len(prefix), len(after), all, len(got), len(expect))
		}
	}
	var keys [][]byte
	for range 500 {
		keys = append(keys, []byte(key()))
	}
	got := make([]int, len(keys))
	if err := s.Get(ctx, "p", "w", keys, func(i int, v []byte) error {
		got[i]++
		if v2, ok := model[string(keys[i])]; !ok || v2 != string(v) {
			t.Errorf("%q is %q", keys[i], v)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		if _, ok := model[string(k)]; ok != (got[i] == 1) || got[i] > 1 {
			t.Errorf("%q came %d times", k, got[i])
		}
	}
}

// TestNoConnection: a callback may use the store, however few connections there are, and a read that stops early leaves none behind.
func TestNoConnection(t *testing.T) {
	s := open(t, Options{DSN: services.MySQL(t), Lease: time.Minute, pageBytes: 50})
	s.db.SetMaxOpenConns(1)
	acquire(t, s, "p")
	var c state.Commit
	for i := range 100 {
		c.State = append(c.State, state.KV{Stage: "w", Key: fmt.Appendf(nil, "%03d", i), Value: []byte("v")})
	}
	statetest.Commit(t, s, "p", &c)
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stop := errors.New("stop")
	n := 0
	err := s.Range(soon, "p", "w", nil, nil, func(k, _ []byte) error {
		if n++; n == 60 {
			return stop
		}
		return s.Get(soon, "p", "w", [][]byte{k}, func(int, []byte) error {
			_, err := s.Load(soon, "p")
			return err
		})
	})
	if !errors.Is(err, stop) || n != 60 {
		t.Error(n, err)
	}
	if in := s.db.Stats().InUse; in != 0 {
		t.Error(in, "connections are in use")
	}
}
