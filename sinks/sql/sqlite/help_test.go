package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ncruces/go-sqlite3"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

type plan = sinktest.Plan

// built is a sink with the table of its records.
type built struct {
	*sinktest.Built
	path string
}

// try builds a sink from the keys beside path.
func try(path, keys string, p plan) (*built, error) {
	s, err := sinktest.Try(&Config{}, fmt.Sprintf("{path: %q, %s}", path, keys), p)
	return &built{s, path}, err
}

func build(t testing.TB, path, keys string, p plan) *built {
	t.Helper()
	s, err := try(path, keys, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *built) start(fresh bool) error {
	return s.Sink.(sinks.Starter).Start(ctx, &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: fresh})
}

func (s *built) stop() { s.Sink.(sinks.Starter).Stop(ctx) }

// started builds and starts a sink on a new file.
func started(t testing.TB, keys string, p plan) *built {
	t.Helper()
	return startedOn(t, filepath.Join(t.TempDir(), "dir", "x.db"), keys, p, true)
}

func startedOn(t testing.TB, path, keys string, p plan, fresh bool) *built {
	t.Helper()
	s := build(t, path, keys, p)
	t.Cleanup(s.stop)
	if err := s.start(fresh); err != nil {
		t.Fatal(err)
	}
	return s
}

var split = &record.Split{ID: "split-1", Path: "/a"}

// send delivers the parts once.
func (s *built) send(ctx context.Context, parts ...sinks.Part) (out sinktest.Result) {
	c := sinktest.Chunk(&out.Rejects, parts...)
	rejects, err := s.Deliver(ctx, c)
	if len(rejects) > 0 {
		err = fmt.Errorf("a transactional sink returned rejects: %v", rejects)
	}
	out.Skipped, out.Err = c.Skipped, err
	return out
}

// put delivers records that must go in, from an offset on.
func (s *built) put(t testing.TB, offset int64, recs ...string) {
	t.Helper()
	if r := s.send(ctx, s.Part(t, split, offset, recs...)); r.Err != nil || r.Rejects != nil || r.Skipped != 0 {
		t.Fatalf("%+v", r)
	}
}

// query gives the rows that another connection sees, values joined by |, in SQL literal form.
func query(t testing.TB, path, text string) string {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.BusyTimeout(5e9)
	st, _, err := c.Prepare(text)
	if err != nil {
		t.Fatal(text, err)
	}
	defer st.Close()
	var rows []string
	for st.Step() {
		var row []string
		for i := range st.ColumnCount() {
			switch st.ColumnType(i) {
			case sqlite3.NULL:
				row = append(row, "NULL")
			case sqlite3.TEXT:
				row = append(row, fmt.Sprintf("%q", st.ColumnText(i)))
			case sqlite3.BLOB:
				row = append(row, fmt.Sprintf("x%x", st.ColumnBlob(i, nil)))
			default:
				row = append(row, st.ColumnText(i))
			}
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	if err := st.Err(); err != nil {
		t.Fatal(text, err)
	}
	return strings.Join(rows, "\n")
}

func execute(t testing.TB, path, text string) {
	t.Helper()
	c, err := sqlite3.Open("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.BusyTimeout(5e9)
	if err := c.Exec(text); err != nil {
		t.Fatal(text, err)
	}
}

func want(t testing.TB, path, text, rows string) {
	t.Helper()
	if got := query(t, path, text); got != rows {
		t.Errorf("%s\n got %s\nwant %s", text, got, rows)
	}
}
