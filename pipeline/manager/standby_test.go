package manager

import (
	"strings"
	"testing"

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

	a.stop()
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
}
