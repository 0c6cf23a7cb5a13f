package windows

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state/statetest"
	"maps"
)

var update = flag.Bool("update", false, "write testdata/state2.golden anew: only with a new version of the format")

const everyAggregate = ", time: ts, delay: 10s, by: [k, v], select: {n: COUNT(*), s: SUM(v), f: SUM(v * 1.5e0), a: AVG(v), lo: MIN(k), hi: MAX(v), first: FIRST_VALUE(k), last: LAST_VALUE(ts), dev: STDDEV_POP(v), " +
	"list: LISTAGG(k), d: COUNT(DISTINCT k), bag: COLLECT(v), p: 'PERCENTILE(v, 0.5)', about: APPROX_COUNT_DISTINCT(k), arr: ARRAY_AGG(v), big: SUM(v * 123456789012345678901.5)}}"

var goldenSteps = []string{
	"window: {tumble: 10s" + everyAggregate,
	"window: {hop: {size: 20s, every: 10s}" + everyAggregate,
	"window: {tumble: 10s, emit: update" + everyAggregate,
	"window: {session: 5s" + everyAggregate,
}

func goldenRecords(w *world) {
	w.apply([]rec{{"A", at("10:00:01"), "a", 1}, {"A", at("10:00:02.5"), "", -7}, {"A", at("10:00:03"), "a", 1}, {"A", at("10:00:19"), "long enough to be no small thing", 1 << 40}})
	w.checkpoint()
	w.apply([]rec{{"A", at("10:00:21"), "a", 2}})
	w.checkpoint()
	w.out = nil
}

// TestGolden pins the format of the state: an rsetl of today writes what is in the file, and reads it and what earlier versions wrote.
func TestGolden(t *testing.T) {
	const path = "testdata/state2.golden"
	var now bytes.Buffer
	for i, step := range goldenSteps {
		w := newWorld(t, step)
		goldenRecords(w)
		var keys []string
		for k := range w.store {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			fmt.Fprintf(&now, "%d %x %x\n", i, k, w.store[k])
		}
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, now.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, now.Bytes()) {
		t.Errorf("the state is written in another form than %s has; that takes a new version, and a reader of the old one", path)
	}
	first, err := os.ReadFile("testdata/state.golden") // of version 1, without notes
	if err != nil {
		t.Fatal(err)
	}
	for version, file := range [][]byte{1: first, 2: golden} {
		for i, step := range goldenSteps {
			if file != nil {
				readGolden(t, version, i, step, file)
			}
		}
	}
}

func readGolden(t *testing.T, version, i int, step string, golden []byte) {
	open := func(w *world) int {
		w.st.Tick(w.now)
		return w.st.Status().Keys
	}
	plain := newWorld(t, step)
	goldenRecords(plain)
	groups := open(plain)
	plain.finish()
	old := newWorld(t, step)
	sc := bufio.NewScanner(bytes.NewReader(golden))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var n int
		var k, v string
		if _, err := fmt.Sscanf(sc.Text(), "%d %s %s", &n, &k, &v); err != nil {
			t.Fatal(err)
		}
		key, _ := hex.DecodeString(k)
		value, _ := hex.DecodeString(v)
		if n == i {
			old.store[string(key)] = value
		}
	}
	old.start()
	if got := open(old); got != groups || got == 0 {
		t.Errorf("version %d: %s: %d groups, want %d", version, step, got, groups)
	}
	old.finish()
	for k := range old.store {
		if k[0] != 'm' && k[0] != 'p' {
			t.Errorf("version %d: %s: %q is left", version, step, k)
		}
	}
	sort.Strings(plain.out)
	sort.Strings(old.out)
	if got, want := strings.Join(old.out, "\n"), strings.Join(plain.out, "\n"); got != want || got == "" {
		t.Errorf("version %d: %s: from the state of then\n%s\nnow\n%s", version, step, got, want)
	}
}

// FuzzRestore: damaged state is an error, not a panic or a hang.
func FuzzRestore(f *testing.F) {
	worlds := make([]*world, len(goldenSteps))
	for i, step := range goldenSteps {
		w := newWorld(f, step)
		goldenRecords(w)
		worlds[i] = w
		for k, v := range w.store {
			f.Add(i, []byte(k), v)
		}
	}
	f.Fuzz(func(t *testing.T, i int, key, value []byte) {
		w := worlds[uint(i)%uint(len(worlds))]
		st := w.s.Maker().(stager)
		damaged := maps.Clone(w.store)
		damaged[string(key)] = value
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(*DamagedError); !ok {
					panic(p)
				}
			}
		}()
		err := st.Restore(context.Background(), statetest.Keyed(damaged))
		if err == nil {
			st.End()
			for range 50 {
				out := record.NewBatch(w.s.Table)
				st.Checkpoint(out)
				if !st.Due() {
					break
				}
			}
		}
	})
}
