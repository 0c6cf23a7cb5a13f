package mysql

import (
	"bytes"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/statetest"
	"github.com/rsetl/rsetl/test/proxy"
)

// through gives a DSN that leads through a proxy.
func through(t testing.TB, dsn string) (string, *proxy.Proxy) {
	t.Helper()
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy.New(t, cfg.Addr)
	cfg.Addr = p.Addr
	return cfg.FormatDSN(), p
}

// barrier holds what passes a proxy to the server, from the first piece with a text on.
type barrier struct {
	what    string
	only    bool          // hold no piece but that
	reached chan struct{} // the piece with the text is held
	open    chan struct{} // closed: everything passes

	mu  sync.Mutex
	hit bool
}

func hold(t testing.TB, p *proxy.Proxy, what string, only bool) *barrier {
	b := &barrier{what: what, only: only, reached: make(chan struct{}), open: make(chan struct{})}
	p.Set(b.hook)
	t.Cleanup(b.release)
	return b
}

func (b *barrier) hook(up bool, piece []byte) (f proxy.Fault) {
	if !up {
		return f
	}
	b.mu.Lock()
	if !b.hit && bytes.Contains(piece, []byte(b.what)) {
		b.hit = true
		close(b.reached)
	}
	held := b.hit && (!b.only || bytes.Contains(piece, []byte(b.what)))
	b.mu.Unlock()
	if held {
		<-b.open
	}
	return f
}

func (b *barrier) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.open:
	default:
		close(b.open)
	}
}

const patience = 20 * time.Second

func wait[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal(what, "doesn't come")
	}
	return v
}

// eventually polls until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never:", what)
		}
	}
}

func acquire(t testing.TB, s *Store, name string) <-chan error {
	t.Helper()
	lost := make(chan error, 10)
	if err := s.Acquire(ctx, name, func(err error) { lost <- err }); err != nil {
		t.Fatal("acquire:", err)
	}
	return lost
}

// wantHeld wants an error that names the owner.
func wantHeld(t testing.TB, err error, pipeline, owner string) *state.HeldError {
	t.Helper()
	var h *state.HeldError
	if !errors.As(err, &h) || h.Owner != owner || h.Pipeline != pipeline {
		t.Fatalf("%v doesn't say that %s has %s", err, owner, pipeline)
	}
	return h
}

func database(t testing.TB, dsn string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func execute(t testing.TB, dsn string, texts ...string) {
	t.Helper()
	db := database(t, dsn)
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(text, err)
		}
	}
}

// query gives what another session reads: rows by lines, values with | between.
func query(t testing.TB, dsn, text string) string {
	t.Helper()
	rows, err := database(t, dsn).Query(text)
	if err != nil {
		t.Fatal(text, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var out []string
	for rows.Next() {
		cells, ptrs := make([]stdsql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			ptrs[i] = &cells[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(cells))
		for i, c := range cells {
			if row[i] = c.String; !c.Valid {
				row[i] = "NULL"
			}
		}
		out = append(out, strings.Join(row, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(text, err)
	}
	return strings.Join(out, "\n")
}

func want(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func dump(t testing.TB, s *Store, pipeline string) string {
	t.Helper()
	d, err := statetest.Dump(s, pipeline, []string{"t"}, []string{"w"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func counted(n int64) *state.Commit { return &state.Commit{Counters: map[string]int64{"in": n}} }
