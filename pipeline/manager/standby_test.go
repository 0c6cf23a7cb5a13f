package manager

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/test/services"
)

// TestStandby: two instances with one pipeline and a shared state. One runs it; it goes over at a stop, not at a reload, and comes
// back; each line is there once.
func TestStandby(t *testing.T) {
	dsn := services.MySQL(t)
	a, out := newPlace(t), outName(t)
	b := newPlace(t)
	file := func(more string) string {
		return a.pipe("a", out, "state: {remote: {dsn: '"+dsn+"', lease: 1s}}\n"+more)
	}
	a.write("in/a.log", "one\n")
	a.write("conf.d/a.yaml", file(""))
	b.write("conf.d/a.yaml", file(""))
	a.start()
	a.is("default/a", Running)
	a.rows(out, "one")
	b.start()
	b.is("default/a", Standby)
	if s := b.status("default/a"); s.Error != "" || s.Note == "" || s.Restarts != 0 || len(b.m.Ready()) != 0 {
		t.Errorf("%+v, %v", s, b.m.Ready())
	}
	first := a.status("default/a").Version
	a.write("conf.d/a.yaml", file("memory: 1MiB\n"))
	a.until("new version", func() bool { return a.status("default/a").Version != first })
	a.is("default/a", Running)
	a.add("in/a.log", "two\n")
	a.rows(out, "one", "two")
	b.is("default/a", Standby)

	if err := b.m.Pause("default/a"); err != nil {
		t.Fatal(err)
	}
	b.is("default/a", Paused)
	a.stop()
	dsns, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer dsns.Close()
	for end := time.Now().Add(2 * pausedTry); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var n int
		if err := dsns.QueryRow("SELECT COUNT(*) FROM rsetl_pipelines WHERE lease_until > UTC_TIMESTAMP(6)").Scan(&n); err != nil || n > 0 {
			t.Fatalf("one that is paused has taken the pipeline: %d %v", n, err)
		}
	}
	if err := b.m.Resume("default/a"); err != nil {
		t.Fatal(err)
	}
	b.is("default/a", Running)
	a.add("in/a.log", "three\n")
	b.rows(out, "one", "two", "three")
	a.start()
	a.is("default/a", Standby)
	if _, err := a.m.Reset(t.Context(), "default/a", pipeline.Reset{}); !held(err) {
		t.Errorf("a reset of what another instance runs: %v", err)
	}
	a.is("default/a", Standby)
	b.remove("conf.d/a.yaml") // its owner gives it up
	a.is("default/a", Running)
	a.add("in/a.log", "four\n")
	a.rows(out, "one", "two", "three", "four")
	b.stop()
	a.stop()
}

// TestRemoteIsEmpty: a pipeline that has state here doesn't begin anew in an empty database.
func TestRemoteIsEmpty(t *testing.T) {
	dsn := services.MySQL(t)
	p, out := newPlace(t), outName(t)
	p.write("in/a.log", "one\n")
	p.write("conf.d/a.yaml", p.pipe("a", out, ""))
	p.start()
	p.rows(out, "one")
	if err := p.m.Flush(t.Context(), "default/a"); err != nil {
		t.Fatal(err)
	}
	p.write("conf.d/a.yaml", p.pipe("a", out, "state: {remote: {dsn: '"+dsn+"'}}\n"))
	p.until("a refusal", func() bool {
		r := p.status("default/a").Rejected
		return r != nil && strings.Contains(r.Error, "positions are not moved")
	})
	p.add("in/a.log", "two\n")
	p.rows(out, "one", "two") // the old version runs
	p.stop()

	// The other way round.
	q, out := newPlace(t), outName(t)
	q.write("in/a.log", "one\n")
	q.write("conf.d/a.yaml", q.pipe("a", out, "state: {remote: {dsn: '"+dsn+"'}}\n"))
	q.start()
	q.rows(out, "one")
	if err := q.m.Flush(t.Context(), "default/a"); err != nil {
		t.Fatal(err)
	}
	q.write("conf.d/a.yaml", q.pipe("a", out, ""))
	q.until("a refusal", func() bool {
		r := q.status("default/a").Rejected
		return r != nil && strings.Contains(r.Error, "its state is in the database")
	})
	q.stop()
	q.start()
	q.until("a refusal", func() bool { return strings.Contains(q.status("default/a").Error, "its state is in the database") })
	q.add("in/a.log", "two\n")
	q.write("conf.d/a.yaml", q.pipe("a", out, "state: {remote: {dsn: '"+dsn+"'}}\n"))
	q.rows(out, "one", "two")
	q.write("conf.d/a.yaml", q.pipe("a", out, "state: {remote: {dsn: '"+dsn+"', prefix: other_}}\n"))
	q.until("a refusal", func() bool {
		r := q.status("default/a").Rejected
		return r != nil && strings.Contains(r.Error, "its state is in the database")
	})
	q.write("conf.d/a.yaml", q.pipe("a", out, "state: {remote: {dsn: '"+dsn+"'}}\n"))
	q.until("the former version", func() bool { s := q.status("default/a"); return s.Rejected == nil && s.State == Running })
	q.stop()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DROP VIEW rsetl_windows"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"splits", "parts", "outbox", "targets", "keyed", "pipelines", "format"} {
		if _, err := db.Exec("DROP TABLE rsetl_" + name); err != nil {
			t.Fatal(err)
		}
	}
	q.start()
	q.until("a refusal", func() bool { return strings.Contains(q.status("default/a").Error, "has none of it any more") })
	if _, err := q.m.Reset(t.Context(), "default/a", pipeline.Reset{All: true}); err != nil {
		t.Fatal(err)
	}
	q.rows(out, "one", "two", "one", "two")
	q.remove("conf.d/a.yaml")
	q.until("gone", func() bool { _, err := q.m.Get("default/a"); return err != nil })
	if err := q.m.Remove(t.Context(), "default/a"); err != nil {
		t.Fatal(err)
	}
	q.write("conf.d/a.yaml", q.pipe("a", out, ""))
	q.rows(out, "one", "two", "one", "two", "one", "two")
	q.stop()
}
