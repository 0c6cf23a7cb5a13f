package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"time"

	mysql "github.com/go-sql-driver/mysql"
)

// sqlMode refuses what doesn't fit, and takes backslashes for themselves, so that only quotes need two bytes in a statement.
const sqlMode = "'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES'"

const (
	dialTimeout  = 10 * time.Second
	readTimeout  = time.Minute // above any wait for a lock
	writeTimeout = time.Minute
	lockWait     = 5 // seconds
)

// idle is how long the server waits for a client with an open transaction before it ends it: one that is gone without a word, or
// asleep, must not keep rows locked that the pipeline's next owner writes. MySQL knows no such limit for transactions alone, so that
// it is one for any session there.
const idle = 10 * time.Second

// connector makes sessions whose settings no DSN changes.
type connector struct {
	driver.Connector
	setup []string
}

func connect(from *mysql.Config, idle time.Duration) (driver.Connector, error) {
	c := from.Clone()
	if err := c.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, errors.New("state store: the DSN's charset can't be set")
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
		c.ReadTimeout = readTimeout
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = writeTimeout
	}
	inner, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New("state store: the DSN can't be used; write user:password@tcp(host:3306)/database")
	}
	n := max(int(idle.Seconds()), 1)
	return &connector{inner, []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", // its variable has two names
		fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d, lock_wait_timeout = %d, net_read_timeout = %d /*!80000 , wait_timeout = %[3]d */ /*M!100300 , wait_timeout = 120, idle_transaction_timeout = %[3]d */",
			lockWait, 2*lockWait, n),
	}}, nil
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range c.setup {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, text, nil); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}
