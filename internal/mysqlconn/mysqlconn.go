// Package mysqlconn is what all of rsetl's connections to MySQL have in common: how a DSN is checked, the session's settings, and
// what an error tells of the connection.
package mysqlconn

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	dialTimeout  = 10 * time.Second
	writeTimeout = time.Minute
)

// Check reads a DSN as a pipeline's file has it; why says what is wrong with it and what would be right, "" where nothing is. The
// driver's own words may be in it, and they may quote the DSN. cfg is nil where the DSN can't be read at all.
func Check(dsn string) (cfg *mysql.Config, why string) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Sprintf("not a DSN (%v); write user:password@tcp(host:3306)/database", err)
	}
	if cfg.DBName == "" {
		return cfg, "the DSN names no database: add it after the slash, as in user:password@tcp(host:3306)/database"
	}
	return cfg, ""
}

// Session gives the settings of from for a session of ours, which no DSN changes: times in UTC, texts in utf8mb4, the caller's SQL mode,
// statements with their values in them, packets as large as the server takes. Time-outs are the DSN's where it has them; read is the
// default for answers, above any wait for a lock.
func Session(from *mysql.Config, sqlMode string, read time.Duration) (*mysql.Config, error) {
	c := from.Clone()
	if err := c.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	c.Collation = ""
	c.Params = maps.Clone(c.Params)
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["sql_mode"], c.Params["time_zone"] = sqlMode, "'+00:00'"
	c.ClientFoundRows, c.InterpolateParams, c.MultiStatements, c.ParseTime = true, true, false, false
	c.MaxAllowedPacket = 0 // the server's
	c.Logger = &mysql.NopLogger{}
	if c.Timeout == 0 {
		c.Timeout = dialTimeout
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = read
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = writeTimeout
	}
	return c, nil
}

// Number is the server's error number, 0 where the error isn't the server's.
func Number(err error) uint16 {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// Broken tells of errors of the connection itself.
func Broken(err error) bool {
	var n net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &n)
}
