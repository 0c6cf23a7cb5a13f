package mysql

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/test/services"
)

// groups are n changed groups of a window as the step gives them, of all: a key of some 50 bytes, a value of 100, and what people read.
func groups(n, all int, turn uint64) []state.KV {
	r := rand.New(rand.NewPCG(turn, 1))
	kvs := make([]state.KV, n)
	for i := range kvs {
		at := i
		if n < all {
			at = r.IntN(all)
		}
		value := make([]byte, 100)
		for k := 0; k < len(value); k += 3 { // a third of the bytes isn't zero
			value[k] = byte(r.Uint32())
		}
		kvs[i] = state.KV{Stage: "per_host", Key: groupKey(at), Value: value, Row: &state.Row{Start: 1760000000000, End: 1760000060000,
			Firing: 1, Key: fmt.Appendf(nil, `{"host": "web-%07d.example.com", "status": 200}`, at), Aggregates: fmt.Appendf(nil, `{"count(*)": %d, "avg(took)": 0.125}`, turn)}}
	}
	return kvs
}

func groupKey(at int) []byte {
	return fmt.Appendf(nil, "w\x00\x00\x01\x99\xc5web-%07d.example.com\x00200", at*7919%10_000_000)
}

// filled is a store with a pipeline of n groups.
func filled(b *testing.B, n int) *Store {
	b.Helper()
	s := open(b, Options{DSN: services.MySQL(b), Lease: time.Minute})
	if err := s.Acquire(ctx, "p", nil); err != nil {
		b.Fatal(err)
	}
	kvs := groups(n, n, 0)
	for at := 0; at < n; at += 100_000 {
		if err := s.Commit(ctx, "p", &state.Commit{State: kvs[at:min(at+100_000, n)]}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkCommit commits 100,000 groups: new ones, then the same again, then as many of a million, then 20,000 away and as many new.
func BenchmarkCommit(b *testing.B) {
	const n = 100_000
	run := func(name string, all int, next func(turn uint64) []state.KV) {
		b.Run(name, func(b *testing.B) {
			s := filled(b, all)
			turn, rows := uint64(0), 0
			b.ResetTimer()
			for b.Loop() {
				b.StopTimer()
				turn++
				kvs := next(turn)
				rows += len(kvs)
				b.StartTimer()
				if err := s.Commit(ctx, "p", &state.Commit{State: kvs}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	run("new", 0, func(turn uint64) []state.KV {
		kvs := groups(n, n, turn)
		for i := range kvs {
			kvs[i].Key = append([]byte{byte(turn)}, kvs[i].Key...)
		}
		return kvs
	})
	run("changed", n, func(turn uint64) []state.KV { return groups(n, n, turn) })
	run("changed_of_a_million", 1_000_000, func(turn uint64) []state.KV { return groups(n, 1_000_000, turn) })
	run("removed", n, func(turn uint64) []state.KV { // half of the rows come back each time
		kvs := groups(n, n, 0)[:20_000]
		if turn%2 == 1 {
			for i := range kvs {
				kvs[i].Value = nil
			}
		}
		return kvs
	})
}

// BenchmarkSmallCommit is a checkpoint without keyed state: ten splits and the counters.
func BenchmarkSmallCommit(b *testing.B) {
	s := filled(b, 0)
	c := &state.Commit{Counters: map[string]int64{"in": 1, "out": 2}, Positions: map[string]state.Advance{}}
	for i := range 10 {
		c.Splits = append(c.Splits, state.Split{ID: fmt.Sprint("split-", i), Path: "/var/log/app.log"})
	}
	if err := s.Commit(ctx, "p", c); err != nil {
		b.Fatal(err)
	}
	c.Splits = nil
	at := int64(0)
	for b.Loop() {
		at++
		for i := range 10 {
			a := c.Positions[fmt.Sprint("split-", i)]
			a.To.Offset = at
			c.Positions[fmt.Sprint("split-", i)] = a
		}
		if err := s.Commit(ctx, "p", c); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads of a million groups: all, the first, and 10,000 by their keys.
func BenchmarkRead(b *testing.B) {
	const n = 1_000_000
	s := filled(b, n)
	b.Run("range", func(b *testing.B) {
		for b.Loop() {
			got := 0
			if err := s.Range(ctx, "p", "per_host", []byte("w"), nil, func(_, _ []byte) error { got++; return nil }); err != nil || got != n {
				b.Fatal(got, err)
			}
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("first", func(b *testing.B) {
		stop := errors.New("stop")
		for b.Loop() {
			if err := s.Range(ctx, "p", "per_host", []byte("w"), nil, func(_, _ []byte) error { return stop }); !errors.Is(err, stop) {
				b.Fatal(err)
			}
		}
	})
	b.Run("get", func(b *testing.B) {
		r := rand.New(rand.NewPCG(1, 2))
		keys := make([][]byte, 10_000)
		for b.Loop() {
			for i := range keys {
				keys[i] = groupKey(r.IntN(n))
			}
			got := 0
			if err := s.Get(ctx, "p", "per_host", keys, func(int, []byte) error { got++; return nil }); err != nil || got != len(keys) {
				b.Fatal(got, err)
			}
		}
		b.ReportMetric(float64(len(keys))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
