// Package services gives tests the real servers that test/services/services starts, from the environment
// that `services env` prints. A test skips where its server is not named.
package services

import (
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Names of the variables.
const (
	ElasticsearchEnv = "RSETL_TEST_ELASTICSEARCH"
	MySQLEnv         = "RSETL_TEST_MYSQL"
	RocketMQEnv      = "RSETL_TEST_ROCKETMQ"
	BrokersEnv       = "RSETL_TEST_ROCKETMQ_BROKERS"
)

func env(t testing.TB, name, service string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Skipf("%s is not set: start a server with `test/services/services up %s` and `eval \"$(test/services/services env)\"`, or run `make test`", name, service)
	}
	return v
}

// Elasticsearch is the URL of a node. Tests share it: each uses indexes of its own, see Unique.
func Elasticsearch(t testing.TB) string {
	t.Helper()
	return strings.TrimSuffix(env(t, ElasticsearchEnv, "elasticsearch"), "/")
}

// MySQL is the DSN of a database that is the test's own, empty, and dropped at its end.
func MySQL(t testing.TB) string {
	t.Helper()
	dsn := env(t, MySQLEnv, "mysql")
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("%s: %v", MySQLEnv, err)
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := Unique("t")
	if _, err := db.Exec("CREATE DATABASE " + name + " CHARACTER SET utf8mb4"); err != nil {
		t.Fatalf("%s: %v", MySQLEnv, err)
	}
	t.Cleanup(func() {
		defer db.Close()
		if _, err := db.Exec("DROP DATABASE IF EXISTS " + name); err != nil {
			t.Error(err)
		}
	})
	cfg.DBName = name
	return cfg.FormatDSN()
}

// Unique is a name that no other test has: lower case, letters, digits and _.
func Unique(prefix string) string {
	var b [6]byte
	rand.Read(b[:])
	return "rsetl_" + prefix + "_" + hex.EncodeToString(b[:])
}
