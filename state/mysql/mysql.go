// Package mysql is the remote state store: the state of any number of pipelines in a database of MariaDB (10.6 on) or MySQL (8.0 on),
// for processes on several hosts, each pipeline one process's at a time (see state.Leased).
//
// Its tables and its view may be read by anyone; PREFIX is Options.Prefix. Nobody else may write to them.
//
//	PREFIXpipelines  a pipeline: name; owner, epoch and lease_until (UTC) of the lease, owner is empty where nobody has it; version, the
//	                 number of commits so far (0: there is no state), and when the last was made (UTC); counters, the ledger as JSON
//	PREFIXsplits     a split: path, epoch, the committed position and position_index, done, meta as JSON, recent: the last committed
//	                 positions, oldest first, as JSON [[position, index], …]
//	PREFIXparts      small state of sinks and others, by name
//	PREFIXoutbox     firings on their way, by target and seq; PREFIXtargets has the next seq of each
//	PREFIXkeyed      keyed state of stages. Of a window's group also what a person wants to know, see PREFIXwindows
//	PREFIXformat     the version of all this
//	PREFIXwindows    a view: the groups that windows hold: pipeline, window, group_key (JSON), window_start and window_end (UTC), firing,
//	                 aggregates (JSON), version: the commit that wrote them, and positions (JSON): what each of the pipeline's splits is
//	                 read up to. What one SELECT gives of it is of one commit: the aggregates are over exactly what is before the positions
//
// The column pipeline is PREFIXpipelines.id. Names, split ids and keys may be any bytes and are VARBINARY; the view has texts of them.
// `raw` holds what the columns for people can't: paths, pairs of meta and names of counters that are no UTF-8. A removed pipeline's rows
// are deleted piece by piece after its name is gone; until then the name in PREFIXpipelines begins with a zero byte.
package mysql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/state"
)

// Options say where the store is and who uses it.
type Options struct {
	DSN    string        // of go-sql-driver: user:password@tcp(host:3306)/database
	Prefix string        // of the tables' names: letters, digits and _; empty: rsetl_
	Owner  string        // what a person knows this process by; empty: host:pid
	Lease  time.Duration // how long a pipeline stays a process's that is not heard of; 0: 5 s
	Log    *slog.Logger

	stmtBytes int           // bytes of a statement; 0: stmtBytes
	pageBytes int           // bytes that a read holds in memory; 0: pageBytes
	idle      time.Duration // 0: idle
}

const (
	minLease  = 100 * time.Millisecond
	maxPrefix = 32
	maxIdle   = 4 // connections
)

var prefixes = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Store is a state.Store and state.Leased. Its methods may be called concurrently.
type Store struct {
	o    Options
	addr string // of the server, for messages
	user string
	name tables
	db   *stdsql.DB
	beat *stdsql.DB // for renewals, which wait for no other work
	done context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup // the renewals

	mu     sync.Mutex
	leases map[string]*entry
	closed bool
}

var (
	_ state.Store  = (*Store)(nil)
	_ state.Leased = (*Store)(nil)
)

// Open connects to the database and makes what is missing of the tables. The error wraps state.ErrForeign where tables of these
// names are not rsetl's or of a newer format.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = "rsetl_"
	}
	if !prefixes.MatchString(o.Prefix) || len(o.Prefix) > maxPrefix {
		return nil, fmt.Errorf("state store: %q can't begin the tables' names: take letters, digits and _, at most %d", o.Prefix, maxPrefix)
	}
	if o.Lease == 0 {
		o.Lease = 5 * time.Second
	}
	if o.Lease < minLease {
		return nil, fmt.Errorf("state store: a lease of %v is too short: take %v at least", o.Lease, minLease)
	}
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.stmtBytes == 0 {
		o.stmtBytes = stmtBytes
	}
	if o.pageBytes == 0 {
		o.pageBytes = pageBytes
	}
	if o.idle == 0 {
		o.idle = idle
	}
	cfg, err := parse(o.DSN)
	if err != nil {
		return nil, err
	}
	o.DSN = "" // it may hold a password
	connector, err := connect(cfg, o.idle)
	if err != nil {
		return nil, err
	}
	s := &Store{o: o, addr: cfg.Addr, user: cfg.User, name: tablesOf(o.Prefix), leases: map[string]*entry{}}
	s.done, s.end = context.WithCancel(context.Background())
	s.db = stdsql.OpenDB(connector)
	s.db.SetMaxOpenConns(16)
	s.db.SetMaxIdleConns(maxIdle)
	s.db.SetConnMaxIdleTime(o.idle / 2)
	s.beat = stdsql.OpenDB(connector)
	s.beat.SetMaxOpenConns(16)
	s.beat.SetMaxIdleConns(2)
	s.beat.SetConnMaxIdleTime(o.idle / 2)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parse reads a DSN. The driver's own errors may quote any part of it, passwords too.
func parse(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil || !slices.Contains([]string{"tcp", "tcp4", "tcp6", "unix"}, cfg.Net) {
		return nil, errors.New("state store: the DSN can't be read; write user:password@tcp(host:3306)/database")
	}
	if cfg.DBName == "" {
		return nil, errors.New("state store: the DSN names no database: add it after the slash, as in user:password@tcp(host:3306)/database")
	}
	return cfg, nil
}

// Queryable tells that state.KV.Row is of use here.
func (s *Store) Queryable() bool { return true }

// closeTimeout bounds giving the leases up at the end; they end by themselves otherwise.
const closeTimeout = 3 * time.Second

// Close gives all leases up. Don't call it from a lease's lost.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var held []*entry
	for _, e := range s.leases {
		held = append(held, e)
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, e := range held {
		if err := e.lock(ctx); err != nil {
			continue
		}
		if err := s.release(ctx, e); err != nil {
			s.o.Log.Warn("a pipeline could not be given up; other instances take it when the lease ends", "err", err)
		}
		e.unlock()
	}
	s.end()
	s.wg.Wait()
	return errors.Join(s.beat.Close(), s.db.Close())
}

var errClosed = fmt.Errorf("%w: it is closed", state.ErrFailed)

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
