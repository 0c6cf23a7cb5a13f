package mysql

import (
	"context"
	"errors"
	"fmt"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/internal/mysqlconn"
	"github.com/rsetl/rsetl/sinks"
)

// Server error numbers that decide something. The names are MySQL's.
const (
	erDupEntry         = 1062
	erNoSuchTable      = 1146
	erTableExists      = 1050
	erDupFieldname     = 1060
	erTableAccess      = 1142
	erColumnAccess     = 1143
	erDBAccess         = 1044
	erAccessDenied     = 1045
	erBadDB            = 1049
	erLockDeadlock     = 1213
	erLockWait         = 1205
	erSpecialAccess    = 1227
	erReadOnly         = 1290
	erPacketTooLarge   = 1153
	erSubqueryRows     = 1242
	erDeprecatedSyntax = 1287
)

// rowErrors are those that tell of a row's content, beyond the SQLSTATE classes 22 (data), 23
// (constraint) and 45 (raised by a trigger).
var rowErrors = map[uint16]bool{
	1048: true, // NULL in a NOT NULL column
	1118: true, // row too large
	1153: true, // larger than max_allowed_packet
	1265: true, // truncated
	1300: true, // invalid characters
	1364: true, // no default
	1366: true, // a wrong value for the column
	1411: true, // a wrong value for a function
	1526: true, // no partition for it
	1644: true, // SIGNAL
	1690: true, // out of range
	1748: true, // no partition for it
	1761: true, // a duplicate in a foreign key
	1762: true,
	3140: true, // invalid JSON
	3819: true, // CHECK, MySQL
	4025: true, // CHECK, MariaDB
}

// harmless are warnings that change no value: deprecated syntax and the like.
var harmless = map[uint16]bool{
	1003: true, // a note with a rewritten statement
	1105: true,
	1287: true, // VALUES() is deprecated in MySQL 8; MariaDB has nothing else
	1592: true, // unsafe for statement-based replication
	1681: true, 3719: true, 3778: true, 3808: true, 1235: true,
}

// refusal tells whether the server refuses a row for its content.
func refusal(err error) (reason string, ok bool) {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return "", false
	}
	class := string(e.SQLState[:2])
	if class == "22" || class == "23" || class == "45" || rowErrors[e.Number] {
		return fmt.Sprintf("%s (error %d)", e.Message, e.Number), true
	}
	return "", false
}

// lost tells whether the connection is of no use any more.
func lost(err error) bool {
	return mysqlconn.Broken(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// wrap adds where it was and what to do.
func (d *dialect) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	switch mysqlconn.Number(err) {
	case erAccessDenied:
		hint = "; check user and password in the DSN"
	case erDBAccess, erTableAccess, erColumnAccess, erSpecialAccess:
		hint = fmt.Sprintf("; grant the user %q what it needs on %s and rsetl_positions: SELECT, INSERT, UPDATE, DELETE, and CREATE, ALTER for create_table", d.cfg.User, d.t.Options.Table)
	case erBadDB:
		hint = "; make the database, or correct the DSN"
	case erReadOnly:
		hint = "; the server takes no writes"
	}
	if err == mysql.ErrInvalidConn {
		err = errors.New("the connection was lost")
	}
	return fmt.Errorf("mysql %s: %s: %w%s", d.cfg.Addr, what, err, hint)
}

func (d *dialect) permanent(format string, a ...any) error {
	return sinks.Permanent(fmt.Errorf("mysql %s: "+format, append([]any{d.cfg.Addr}, a...)...))
}
