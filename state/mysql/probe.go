package mysql

import (
	"context"
	stdsql "database/sql"
	"log/slog"
)

// Probe tries the connection and looks at tables that are there. It makes nothing.
func Probe(ctx context.Context, o Options) error {
	cfg, err := parse(o.DSN)
	if err != nil {
		return err
	}
	o.DSN, o.Log = "", slog.New(slog.DiscardHandler)
	connector, err := connect(cfg, idle)
	if err != nil {
		return err
	}
	s := &Store{o: o, addr: cfg.Addr, user: cfg.User, name: tablesOf(o.Prefix), db: stdsql.OpenDB(connector)}
	defer s.db.Close()
	if err := s.db.PingContext(ctx); err != nil {
		return s.wrap("connect", err)
	}
	_, err = s.version(ctx)
	return err
}
