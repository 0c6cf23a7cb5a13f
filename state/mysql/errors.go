package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/state"
)

// Server error numbers that decide something. The names are MySQL's.
const (
	erDBAccess       = 1044
	erAccessDenied   = 1045
	erBadDB          = 1049
	erShutdown       = 1053
	erBadField       = 1054
	erDupEntry       = 1062
	erTableAccess    = 1142
	erColumnAccess   = 1143
	erNoSuchTable    = 1146
	erTableExists    = 1050
	erPacketTooLarge = 1153
	erNetRead        = 1158 // to 1161: the server's view of a broken connection
	erNetWrite       = 1161
	erLockWait       = 1205
	erLockDeadlock   = 1213
	erSpecialAccess  = 1227
	erReadOnly       = 1290
	erBinlog         = 1665 // binlog_format=STATEMENT
	erKilled         = 1927
	erIdle           = 4031
)

// transient tells of failures that the same work, done again at once, may not meet: it was a deadlock's or a long lock's victim, or its
// connection was lost.
func transient(err error) bool {
	switch n := mysqlconn.Number(err); {
	case n == erLockDeadlock, n == erLockWait, n == erShutdown, n >= erNetRead && n <= erNetWrite, n == erKilled, n == erIdle:
		return true
	case n != 0, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return mysqlconn.Broken(err)
}

// wrap adds where it was and what to do.
func (s *Store) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	var n *net.OpError
	switch mysqlconn.Number(err) {
	case erAccessDenied:
		hint = "; check user and password in the DSN"
	case erDBAccess, erTableAccess, erColumnAccess, erSpecialAccess:
		hint = fmt.Sprintf("; grant the user %q on %s*: SELECT, INSERT, UPDATE, DELETE, and for the first start CREATE and CREATE VIEW", s.user, s.o.Prefix)
	case erBadDB:
		hint = "; make the database, or correct the DSN"
	case erReadOnly:
		hint = "; the server takes no writes: give the DSN of the one that does"
	case erBinlog:
		hint = "; set the server's binlog_format to ROW or MIXED"
	case 0:
		if errors.As(err, &n) && n.Op == "dial" {
			hint = "; start the server, or correct the address in the DSN"
		}
	}
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		err = errLostConn
	}
	return fmt.Errorf("state store mysql %s: %s: %w%s", s.addr, what, err, hint)
}

var errLostConn = errors.New("the connection was lost")

// foreign is an error of tables that are not ours.
type foreign struct{ text string }

func (e *foreign) Error() string        { return e.text }
func (e *foreign) Is(target error) bool { return target == state.ErrForeign }

const (
	retryMin = 10 * time.Millisecond
	retryMax = time.Second
)

// again does work until it succeeds, fails for good or ctx ends. Then the error is the context's cause, with the work's last one in its text.
func again(ctx context.Context, work func() error) error {
	wait := retryMin
	for {
		err := work()
		if err == nil {
			return nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return ended(cause, err)
		}
		if !transient(err) {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ended(context.Cause(ctx), err)
		}
		wait = min(2*wait, retryMax)
	}
}

func ended(cause, last error) error {
	if errors.Is(last, cause) || errors.Is(last, context.Canceled) || errors.Is(last, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w (before: %v)", cause, last)
}
