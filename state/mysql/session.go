package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	mysql "github.com/go-sql-driver/mysql"

	"github.com/rsetl/rsetl/internal/mysqlconn"
)

// sqlMode refuses what doesn't fit, and takes backslashes for themselves, so that only quotes need two bytes in a statement.
const sqlMode = "'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES'"

const (
	readTimeout = time.Minute // above any wait for a lock
	lockWait    = 5           // seconds
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
	c, err := mysqlconn.Session(from, sqlMode, readTimeout)
	if err != nil {
		return nil, errors.New("state store: the DSN's charset can't be set")
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
