package mysql

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sinks/sinktest"
	"github.com/rsetl/rsetl/test/proxy"
	"github.com/rsetl/rsetl/test/services"
)

// TestFaults has each failure of the network alone, and the delivery after it: every row is there once.
func TestFaults(t *testing.T) {
	hit := func(what string, f proxy.Fault) func() proxy.Hook {
		return func() proxy.Hook {
			var done atomic.Bool
			return func(up bool, piece []byte) proxy.Fault {
				if up && bytes.Contains(piece, []byte(what)) && done.CompareAndSwap(false, true) {
					return f
				}
				return proxy.Fault{}
			}
		}
	}
	for _, c := range []struct {
		name string
		hook func() proxy.Hook
		fine bool // the delivery goes through all the same
		skip int  // rows that were in already, at the delivery after it
	}{
		{"reset before the transaction", hit("START TRANSACTION", proxy.Fault{Cut: true}), true, 0},
		{"reset in a statement", hit("INSERT INTO `t`", proxy.Fault{Cut: true, Keep: 100}), false, 0},
		{"reset at the position", hit("INSERT INTO rsetl_positions", proxy.Fault{Last: true}), false, 0},
		{"reset before the commit", hit("COMMIT", proxy.Fault{Cut: true}), false, 0},
		{"the commit's answer is lost", hit("COMMIT", proxy.Fault{Last: true}), false, 50},
		{"slow drip", hit("INSERT INTO `t`", proxy.Fault{Drip: 20 * time.Microsecond}), true, 0},
		{"no answer", hit("INSERT INTO `t`", proxy.Fault{Delay: 900 * time.Millisecond}), false, 0},
		{"an answer is cut", func() proxy.Hook {
			var in, done atomic.Bool
			return func(up bool, piece []byte) proxy.Fault {
				if up && bytes.Contains(piece, []byte("INSERT INTO `t`")) {
					in.Store(true)
				} else if !up && in.Load() && done.CompareAndSwap(false, true) {
					return proxy.Fault{Cut: true, Keep: 3}
				}
				return proxy.Fault{}
			}
		}, false, 0},
	} {
		for _, known := range []bool{false, true} { // the split has a position row
			t.Run(fmt.Sprintf("%s/%v", c.name, known), func(t *testing.T) {
				dsn := services.MySQL(t)
				cfg, _ := driver.ParseDSN(dsn)
				p := proxy.New(t, cfg.Addr)
				cfg.Addr = p.Addr
				cfg.ReadTimeout = 600 * time.Millisecond
				s := startedOn(t, cfg.FormatDSN(), create, plan{Fields: "a BIGINT, x STRING"}, true)
				if known {
					s.put(t, 1, `{"a": 0}`)
				}
				var recs []string
				for i := range 50 {
					recs = append(recs, fmt.Sprintf(`{"a": %d, "x": "a text of some length"}`, i+1))
				}
				chunk := s.Part(t, split, 10, recs...)
				hook := c.hook()
				if known && strings.Contains(c.name, "position") {
					hook = hit("UPDATE rsetl_positions", proxy.Fault{Last: true})()
				}
				p.Set(hook)
				r := s.send(ctx, chunk)
				if c.fine != (r.Err == nil) || sinks.IsPermanent(r.Err) {
					t.Fatalf("%v", r.Err)
				}
				p.Set(nil)
				skip := c.skip
				if c.fine {
					skip = 50
				}
				for range 20 { // a lock of the lost session may still be there
					if r = s.send(ctx, chunk); r.Err == nil {
						break
					}
				}
				if r.Err != nil || r.Skipped != skip {
					t.Errorf("after it: %+v, %v", r, r.Err)
				}
				more := s.Part(t, split, 100, `{"a": 51}`)
				if r := s.send(ctx, more); r.Err != nil || r.Skipped != 0 {
					t.Errorf("the next: %+v, %v", r, r.Err)
				}
				want(t, dsn, `SELECT COUNT(*), COUNT(DISTINCT a), SUM(a > 0) FROM t WHERE a > 0`, "51|51|51")
			})
		}
	}
}

// TestLateCommit: the answer to a commit is lost, and the commit itself is late: the next delivery must not write the rows again.
func TestLateCommit(t *testing.T) {
	dsn := services.MySQL(t)
	cfg, _ := driver.ParseDSN(dsn)
	p := proxy.New(t, cfg.Addr)
	cfg.Addr, cfg.ReadTimeout = p.Addr, 100*time.Millisecond
	s := startedOn(t, cfg.FormatDSN(), create, plan{Fields: "a BIGINT"}, true)
	s.put(t, 1, `{"a": 1}`)
	p.Set(func(up bool, piece []byte) proxy.Fault {
		if up && bytes.Contains(piece, []byte("COMMIT")) {
			return proxy.Fault{Delay: 400 * time.Millisecond, Last: true}
		}
		return proxy.Fault{}
	})
	chunk := s.Part(t, split, 2, `{"a": 2}`, `{"a": 3}`)
	if r := s.send(ctx, chunk); r.Err == nil {
		t.Fatal("no error")
	}
	p.Set(nil)
	var r sinktest.Result
	for range 50 {
		if r = s.send(ctx, chunk); r.Err == nil {
			break
		}
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want(t, dsn, `SELECT a FROM t ORDER BY a`, "1\n2\n3")
	if r := s.send(ctx, s.Part(t, &record.Split{ID: "x"}, 2, `{"a": 4}`)); r.Err != nil {
		t.Error(r.Err)
	}
}
