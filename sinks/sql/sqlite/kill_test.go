package sqlite

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// child is the process that TestKill kills: it delivers records 1, 2, 3 ... of two splits, from where it
// is told to on, each with a field that the table may not have yet.
func child() bool {
	path := os.Getenv("RSETL_TEST_KILL")
	if path == "" {
		return false
	}
	from, _ := strconv.ParseInt(os.Getenv("RSETL_TEST_FROM"), 10, 64)
	s, err := try(path, create, plan{Fields: "n BIGINT, split STRING", Open: true})
	if err == nil {
		err = s.start(from == 0)
	}
	splits := []*record.Split{{ID: "a"}, {ID: "b"}}
	for at := from; err == nil; at += 40 {
		c := &sinks.Chunk{Letters: func([]sinks.Reject) error { return nil }}
		for _, sp := range splits {
			p := sinks.Part{Split: sp}
			for n := at + 1; n <= at+50; n++ { // 10 of them come again
				b := record.NewBatch(s.Table)
				i := b.Add(record.Position{Offset: n}, record.Value{})
				b.SetNamed(i, b.PutString("n"), record.MakeInt(n))
				b.SetNamed(i, b.PutString("split"), b.PutString(sp.ID))
				b.SetNamed(i, b.PutString(fmt.Sprint("c", n/500)), record.MakeInt(n))
				p.Data, _ = s.Encode(p.Data, b, i)
				p.Ends = append(p.Ends, len(p.Data))
				p.Pos = append(p.Pos, b.Pos(i))
			}
			c.Parts = append(c.Parts, p)
		}
		if _, err = s.Deliver(ctx, c); err == nil {
			fmt.Println(at + 50)
		}
	}
	fmt.Println("error:", err)
	return true
}

// TestKill kills a process in the midst of its deliveries, again and again: rows and positions must agree, and
// what the process was told to be durable must be there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	done := int64(0)
	for round := range rounds {
		c := exec.Command(os.Args[0])
		// Sometimes all of it is delivered again, as after a lost state directory.
		from := max(0, done-int64(rand.IntN(200)))
		if round%7 == 6 {
			from = 0
		}
		c.Env = append(os.Environ(), "RSETL_TEST_KILL="+path, fmt.Sprint("RSETL_TEST_FROM=", from))
		var out strings.Builder
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(60*time.Millisecond + time.Duration(rand.IntN(80_000))*time.Microsecond)
		c.Process.Kill()
		c.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if strings.Contains(out.String(), "error") {
			t.Fatal(out.String())
		}
		for _, l := range lines { // the last may be cut
			if n, err := strconv.ParseInt(l, 10, 64); err == nil {
				done = max(done, n)
			}
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		if query(t, path, `SELECT count(*) FROM sqlite_schema WHERE name IN ('t', 'rsetl_positions')`) != "2" {
			continue
		}
		got := query(t, path, `SELECT split, count(*), count(DISTINCT n), min(n), max(n), (SELECT "offset" FROM rsetl_positions WHERE split = t.split) FROM t GROUP BY split ORDER BY split`)
		if got == "" && done == 0 {
			continue
		}
		var split string
		var n [5]int64
		for _, l := range strings.Split(got, "\n") {
			if _, err := fmt.Sscanf(strings.ReplaceAll(l, "|", " "), "%q %d %d %d %d %d", &split, &n[0], &n[1], &n[2], &n[3], &n[4]); err != nil {
				t.Fatal(err, got)
			}
			if n[0] != n[1] || n[2] != 1 || n[3] != n[0] || n[4] != n[0] || n[0] < done {
				t.Fatalf("round %d, %d told to be durable: rows, distinct, min, max, position\n%s", round, done, got)
			}
		}
		if strings.Count(got, "\n") != 1 {
			t.Fatalf("splits are apart: %s", got)
		}
	}
	if check := query(t, path, `PRAGMA integrity_check`); check != `"ok"` {
		t.Error(check)
	}
	t.Logf("%d rows", done)
	if done < 1000 {
		t.Errorf("only %d rows: the kills came too early", done)
	}
}
