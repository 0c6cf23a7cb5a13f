package mysql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rsetl/rsetl/internal/mysqlconn"
)

// format is the version of the tables. 0 stands while they are made.
const format = 1

type tables struct {
	format, pipelines, splits, parts, outbox, targets, keyed, windows string // quoted
}

func tablesOf(prefix string) tables {
	q := func(name string) string { return "`" + prefix + name + "`" }
	return tables{q("format"), q("pipelines"), q("splits"), q("parts"), q("outbox"), q("targets"), q("keyed"), q("windows")}
}

// stateTables are those with rows by pipeline.
func (t *tables) state() []string {
	return []string{t.keyed, t.outbox, t.targets, t.parts, t.splits}
}

// Lengths of names. A key of keyed state longer than maxKey stands there as its beginning and a hash, see stored.
const (
	maxName  = 255
	maxSplit = 2048
	maxKey   = 1900
)

func (t *tables) definitions() []string {
	table := func(name, columns string) string {
		return "CREATE TABLE IF NOT EXISTS " + name + " (" + columns + ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4"
	}
	return []string{
		table(t.pipelines, "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARBINARY(255) NOT NULL UNIQUE, owner VARCHAR(255) NOT NULL DEFAULT '', "+
			"epoch BIGINT NOT NULL DEFAULT 0, lease_until DATETIME(6), token VARBINARY(32) NOT NULL DEFAULT '', "+
			"version BIGINT NOT NULL DEFAULT 0, committed DATETIME(6), counters JSON, raw LONGBLOB"),
		table(t.splits, "pipeline BIGINT NOT NULL, split VARBINARY(2048) NOT NULL, path LONGTEXT NOT NULL, epoch BIGINT NOT NULL, `position` BIGINT, position_index INT, "+
			"done BOOLEAN NOT NULL, meta JSON, recent JSON NOT NULL, raw LONGBLOB, PRIMARY KEY (pipeline, split)"),
		table(t.parts, "pipeline BIGINT NOT NULL, name VARBINARY(255) NOT NULL, value LONGBLOB NOT NULL, PRIMARY KEY (pipeline, name)"),
		table(t.outbox, "pipeline BIGINT NOT NULL, target VARBINARY(255) NOT NULL, seq BIGINT NOT NULL, data LONGBLOB NOT NULL, PRIMARY KEY (pipeline, target, seq)"),
		table(t.targets, "pipeline BIGINT NOT NULL, target VARBINARY(255) NOT NULL, next_seq BIGINT NOT NULL, PRIMARY KEY (pipeline, target)"),
		table(t.keyed, "pipeline BIGINT NOT NULL, stage VARBINARY(255) NOT NULL, k VARBINARY(2048) NOT NULL, long_key LONGBLOB, value LONGBLOB NOT NULL, "+
			"window_start DATETIME(3), window_end DATETIME(3), firing BIGINT UNSIGNED, version BIGINT NOT NULL, group_key LONGTEXT, aggregates LONGTEXT, "+
			"PRIMARY KEY (pipeline, stage, k)"),
	}
}

func (t *tables) view() string {
	return "CREATE SQL SECURITY INVOKER VIEW " + t.windows + " AS SELECT CONVERT(p.name USING utf8mb4) AS pipeline, CONVERT(k.stage USING utf8mb4) AS `window`, " +
		"k.group_key, k.window_start, k.window_end, k.firing, k.version, k.aggregates, s.positions " +
		"FROM " + t.keyed + " k JOIN " + t.pipelines + " p ON p.id = k.pipeline LEFT JOIN (" +
		"SELECT pipeline, JSON_OBJECTAGG(CONVERT(split USING utf8mb4), JSON_OBJECT('offset', `position`, 'index', position_index)) AS positions " +
		"FROM " + t.splits + " WHERE `position` IS NOT NULL GROUP BY pipeline) s ON s.pipeline = k.pipeline " +
		"WHERE p.version > 0 AND k.group_key IS NOT NULL"
}

// prepare looks at the tables and makes them where they are missing. Several processes may do that at once.
func (s *Store) prepare(ctx context.Context) error {
	version, err := s.version(ctx)
	if err != nil {
		return err
	}
	if version < format {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return s.wrap("connect", err)
		}
		defer conn.Close()
		exec := func(text string) error {
			_, err := conn.ExecContext(ctx, text)
			return s.wrap("make the tables", err)
		}
		if err := exec("CREATE TABLE IF NOT EXISTS " + s.name.format + " (id INT PRIMARY KEY, version INT NOT NULL) ENGINE=InnoDB"); err != nil {
			return err
		}
		for _, text := range s.name.definitions() {
			if err := exec(text); err != nil {
				return err
			}
		}
		if err := exec(fmt.Sprintf("INSERT INTO %s (id, version) VALUES (1, %d) ON DUPLICATE KEY UPDATE version = GREATEST(version, VALUES(version))", s.name.format, format)); err != nil {
			return err
		}
	}
	there, err := s.found(ctx)
	if err != nil {
		return err
	}
	for _, name := range append(s.name.state(), s.name.pipelines) {
		if there[name] != "BASE TABLE" {
			return &foreign{fmt.Sprintf("state store mysql %s: the table %s is missing: restore it from a backup, or remove the tables %s* to begin anew", s.addr, name, s.o.Prefix)}
		}
	}
	if there[s.name.windows] == "" {
		if _, err := s.db.ExecContext(ctx, s.name.view()); err != nil && mysqlconn.Number(err) != erTableExists { // it is for people only
			s.o.Log.Warn("the view of windows can't be made; the state store does without it", "view", s.name.windows, "err", s.wrap("make the view", err))
		}
	}
	return nil
}

// version reads the tables' version, 0 where they have to be made.
func (s *Store) version(ctx context.Context) (version int, err error) {
	for {
		err = s.db.QueryRowContext(ctx, "SELECT version FROM "+s.name.format+" WHERE id = 1").Scan(&version)
		switch {
		case err == nil && version > format:
			return 0, &foreign{fmt.Sprintf("state store mysql %s: the tables %s* are of the format %d, this rsetl knows up to %d: install a newer one", s.addr, s.o.Prefix, version, format)}
		case err == nil, errors.Is(err, stdsql.ErrNoRows):
			return version, nil
		case mysqlconn.Number(err) == erBadField:
			return 0, s.notOurs(s.name.format)
		case mysqlconn.Number(err) != erNoSuchTable:
			return 0, s.wrap("read the tables' format", err)
		}
		there, err := s.found(ctx)
		if err != nil {
			return 0, err
		}
		if there[s.name.format] != "" {
			continue // another process has just made it
		}
		for name := range there {
			return 0, s.notOurs(name)
		}
		return 0, nil
	}
}

func (s *Store) notOurs(name string) error {
	return &foreign{fmt.Sprintf("state store mysql %s: the table %s is there and isn't rsetl's: give another prefix or database", s.addr, name)}
}

// found gives the kinds of those of our tables that are there, by quoted name.
func (s *Store) found(ctx context.Context) (map[string]string, error) {
	ours := append(s.name.state(), s.name.pipelines, s.name.format, s.name.windows)
	rows, err := s.db.QueryContext(ctx, `SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name IN ('`+
		strings.ReplaceAll(strings.Join(ours, "','"), "`", "")+`')`)
	if err != nil {
		return nil, s.wrap("look for the tables", err)
	}
	defer rows.Close()
	there := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return nil, s.wrap("look for the tables", err)
		}
		for _, n := range ours {
			if strings.EqualFold(n, "`"+name+"`") {
				there[n] = kind
			}
		}
	}
	return there, s.wrap("look for the tables", rows.Err())
}
