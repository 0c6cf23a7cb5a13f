package mysql

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/services"
)

// wantOpenError wants an error of that kind (nil: any) with the text, and without the word secret.
func wantOpenError(t *testing.T, o Options, kind error, text string) {
	t.Helper()
	s, err := Open(ctx, o)
	if err == nil {
		s.Close()
		t.Fatal("it opens")
	}
	if kind != nil && !errors.Is(err, kind) {
		t.Errorf("%v is no %v", err, kind)
	}
	if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v doesn't say %q", err, text)
	}
}

func TestOpenErrors(t *testing.T) {
	dsn := services.MySQL(t)
	cfg, _ := driver.ParseDSN(dsn)
	with := func(f func(c *driver.Config)) Options {
		c := cfg.Clone()
		f(c)
		return Options{DSN: c.FormatDSN()}
	}
	for _, bad := range []string{"rsetl:s3cret", "rsetl:s3cret/db", "rsetl:s3cret@tcp(h:1", "rsetl:x@s3cret(h:1)/db", "rsetl:s3cret@tcp(h:1)/db?parseTime=s3cret", "rsetl:s3cret@tcp(h:1)/db?tls=s3cret"} {
		wantOpenError(t, Options{DSN: bad}, nil, "write user:password@tcp(host:3306)/database")
	}
	wantOpenError(t, Options{DSN: "rsetl:s3cret@tcp(h:1)/"}, nil, "names no database")
	wantOpenError(t, with(func(c *driver.Config) { c.User, c.Passwd = "nobody", "s3cret" }), nil, "check user and password")
	wantOpenError(t, with(func(c *driver.Config) { c.DBName = "rsetl_no_such" }), nil, "make the database")
	wantOpenError(t, with(func(c *driver.Config) { c.Addr, c.Passwd = "127.0.0.1:1", "s3cret" }), nil, "127.0.0.1:1")
	wantOpenError(t, with(func(c *driver.Config) { c.Addr = "127.0.0.1:1" }), nil, "start the server")
	wantOpenError(t, Options{DSN: dsn, Prefix: "a`b"}, nil, "letters, digits and _")
	wantOpenError(t, Options{DSN: dsn, Lease: time.Millisecond}, nil, "too short")
	want(t, "tables", query(t, dsn, "SHOW TABLES"), "")
}

// TestForeign: tables that are someone else's, or of a newer rsetl, are left as they are.
func TestForeign(t *testing.T) {
	for _, c := range []struct{ make, text string }{
		{"CREATE TABLE rsetl_pipelines (a INT)", "rsetl_pipelines` is there and isn't rsetl's"},
		{"CREATE TABLE rsetl_format (a INT)", "rsetl_format` is there and isn't rsetl's"},
		{"CREATE VIEW rsetl_keyed AS SELECT 1", "rsetl_keyed` is there and isn't rsetl's"},
	} {
		dsn := services.MySQL(t)
		execute(t, dsn, c.make)
		before := query(t, dsn, "SHOW TABLES")
		wantOpenError(t, Options{DSN: dsn}, state.ErrForeign, c.text)
		want(t, "tables", query(t, dsn, "SHOW TABLES"), before)
		open(t, Options{DSN: dsn, Prefix: "other_"})
	}
	dsn := services.MySQL(t)
	s := open(t, Options{DSN: dsn, Lease: time.Minute})
	acquire(t, s, "p")
	statetest.Commit(t, s, "p", counted(1))
	execute(t, dsn, "UPDATE rsetl_format SET version = 2")
	wantOpenError(t, Options{DSN: dsn}, state.ErrForeign, "install a newer one")
	execute(t, dsn, "UPDATE rsetl_format SET version = 1")
	want(t, "counters", statetest.Load(t, open(t, Options{DSN: dsn}), "p").Counters, map[string]int64{"in": 1})
	execute(t, dsn, "DROP TABLE rsetl_parts")
	wantOpenError(t, Options{DSN: dsn}, state.ErrForeign, "rsetl_parts` is missing")
}

// TestMade: many processes make the tables at once; what one left half-made is completed.
func TestMade(t *testing.T) {
	ours := tablesOf("rsetl_")
	dsn := services.MySQL(t)
	execute(t, dsn, "CREATE TABLE rsetl_format (id INT PRIMARY KEY, version INT NOT NULL)", ours.definitions()[0], "CREATE TABLE rsetl_positions (a INT)")
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(ctx, Options{DSN: dsn})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	wg.Wait()
	want(t, "tables", strings.ReplaceAll(query(t, dsn, "SHOW TABLES"), "\n", " "),
		"rsetl_format rsetl_keyed rsetl_outbox rsetl_parts rsetl_pipelines rsetl_positions rsetl_splits rsetl_targets rsetl_windows")
	want(t, "format", query(t, dsn, "SELECT * FROM rsetl_format"), "1|1")
}

// TestPrefixes: two stores in one database know nothing of each other.
func TestPrefixes(t *testing.T) {
	dsn := services.MySQL(t)
	a, b := open(t, Options{DSN: dsn, Lease: time.Minute}), open(t, Options{DSN: dsn, Prefix: "Other_", Lease: time.Minute})
	acquire(t, a, "p")
	acquire(t, b, "p")
	statetest.Commit(t, a, "p", counted(1))
	if !statetest.Load(t, b, "p").Fresh {
		t.Error("it is in both")
	}
	statetest.Commit(t, b, "p", counted(2))
	open(t, Options{DSN: dsn, Prefix: "Other_"})
	want(t, "counters", statetest.Load(t, a, "p").Counters, map[string]int64{"in": 1})
}

// TestRights: a user without the right to make views can do all that the store needs, one without writing is told what is missing.
func TestRights(t *testing.T) {
	dsn := services.MySQL(t)
	cfg, _ := driver.ParseDSN(dsn)
	user := services.Unique("u")
	user = user[max(0, len(user)-16):]
	both := fmt.Sprintf("'%s'@'%%', '%[1]s'@'localhost'", user)
	execute(t, dsn, "CREATE USER "+strings.ReplaceAll(both, ",", " IDENTIFIED BY 's3cret',")+" IDENTIFIED BY 's3cret'")
	t.Cleanup(func() { execute(t, dsn, "DROP USER "+both) })
	c := cfg.Clone()
	c.User, c.Passwd = user, "s3cret"
	grant := func(rights string) {
		execute(t, dsn, "REVOKE ALL, GRANT OPTION FROM "+both, fmt.Sprintf("GRANT %s ON %s.* TO %s", rights, cfg.DBName, both))
	}
	grant("SELECT")
	wantOpenError(t, Options{DSN: c.FormatDSN()}, nil, "SELECT, INSERT, UPDATE, DELETE, and for the first start CREATE and CREATE VIEW")
	grant("SELECT, INSERT, UPDATE, DELETE, CREATE")
	var log bytes.Buffer
	s := open(t, Options{DSN: c.FormatDSN(), Lease: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
	acquire(t, s, "p")
	statetest.Commit(t, s, "p", full())
	if err := s.Rename(ctx, "p", "q"); err != nil {
		t.Error(err)
	}
	if err := s.Remove(ctx, "q"); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "rsetl_windows") || strings.Contains(log.String(), "s3cret") {
		t.Errorf("log: %s", log.String())
	}
	open(t, Options{DSN: dsn}) // the next one who may makes it
	want(t, "rows", query(t, dsn, "SELECT COUNT(*) FROM rsetl_windows"), 0)
	grant("SELECT, INSERT, UPDATE, DELETE")
	open(t, Options{DSN: c.FormatDSN()})
}
