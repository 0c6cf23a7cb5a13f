package mysql

import (
	"context"
	stdsql "database/sql"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/services"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var ctx = context.Background()

type plan = sinktest.Plan

// built is a sink with the table of its records.
type built struct {
	*sinktest.Built
	dsn string
}

// try builds a sink from the keys beside dsn.
func try(dsn, keys string, p plan) (*built, error) {
	s, err := sinktest.Try(&Config{}, fmt.Sprintf("{dsn: %q, %s}", dsn, keys), p)
	return &built{s, dsn}, err
}

func build(t testing.TB, dsn, keys string, p plan) *built {
	t.Helper()
	s, err := try(dsn, keys, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *built) start(fresh bool) error {
	return s.Sink.(sinks.Starter).Start(ctx, &sinks.Env{Pipeline: "ns/p", Name: "s", Fresh: fresh})
}

func (s *built) stop() { s.Sink.(sinks.Starter).Stop(ctx) }

// started builds and starts a sink on a new database.
func started(t testing.TB, keys string, p plan) *built {
	t.Helper()
	return startedOn(t, services.MySQL(t), keys, p, true)
}

func startedOn(t testing.TB, dsn, keys string, p plan, fresh bool) *built {
	t.Helper()
	s := build(t, dsn, keys, p)
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
		t.Fatalf("%+v (%v)", r, r.Err)
	}
}

// open is another connection to the database.
func open(t testing.TB, dsn string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// query gives the rows that another connection sees, values joined by |.
func query(t testing.TB, dsn, text string) string {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	rows, err := db.Query(text)
	if err != nil {
		t.Fatal(text, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var out []string
	for rows.Next() {
		cells, ptrs := make([]stdsql.RawBytes, len(names)), make([]any, len(names))
		for i := range cells {
			ptrs[i] = &cells[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, c := range cells {
			if c == nil {
				row = append(row, "NULL")
			} else {
				row = append(row, string(c))
			}
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(text, err)
	}
	return strings.Join(out, "\n")
}

func execute(t testing.TB, dsn string, texts ...string) {
	t.Helper()
	db := open(t, dsn)
	defer db.Close()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(text, err)
		}
	}
}

func want(t testing.TB, dsn, text, rows string) {
	t.Helper()
	if got := query(t, dsn, text); got != rows {
		t.Errorf("%s\n got %s\nwant %s", text, got, rows)
	}
}
