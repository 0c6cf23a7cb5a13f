package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/pipeline/manager"
	"github.com/rsetl/rsetl/server"
	"github.com/rsetl/rsetl/state/pebble"
)

type daemonFlags struct {
	confDir, stateDir, listen string
	access                    server.Access
}

const defaultListen = "127.0.0.1:8686"

// defaultStateDir is systemd's StateDirectory= (its first, where there are several), or the usual place.
func defaultStateDir() string {
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir
	}
	return "/var/lib/rsetl"
}

func (a *app) cmdDaemon() *cobra.Command {
	var o daemonFlags
	c := &cobra.Command{
		Use:   "daemon",
		Short: "Run the pipelines of a folder, reload what changes, serve the API",
		Long: `Runs every *.yaml and *.yml file of the folder as a pipeline, and those of its subfolders, which are
namespaces. The folder is watched: a changed file is checked beside what runs, then the old version is drained and
the new one goes on from its committed state. A file with mistakes changes nothing; status shows them. A file that
is renamed keeps its state; one that is deleted stops, and its state is kept. SIGHUP reads the folder at once.

State, dead letters (dead/NAMESPACE/NAME.ndjson) and the API's address (listen) are in the state directory, by
default $STATE_DIRECTORY or /var/lib/rsetl. The API is served on a loopback address; another needs --token-file,
--tls-cert and --tls-key. /healthz asks for no token.

SIGTERM and Ctrl-C drain all pipelines and end; a second one ends at once. Exit codes: 0 done, 1 the flags are
wrong, 2 it could not run.`,
		Example: "  rsetl daemon --conf-dir ./conf.d --state-dir ./state --listen 127.0.0.1:0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.daemon(cmd.Context(), &o) },
	}
	f := c.Flags()
	f.StringVar(&o.confDir, "conf-dir", "/etc/rsetl/conf.d", "the folder of pipeline files")
	f.StringVar(&o.stateDir, "state-dir", defaultStateDir(), "positions, counts, dead letters")
	f.StringVar(&o.listen, "listen", defaultListen, "the API's address; port 0 takes a free one")
	f.StringVar(&o.access.TokenFile, "token-file", "", "a file with the token that requests must carry")
	f.StringVar(&o.access.Cert, "tls-cert", "", "the API's certificate, PEM; a changed file is read again")
	f.StringVar(&o.access.Key, "tls-key", "", "its private key, PEM")
	return c
}

func (a *app) daemon(ctx context.Context, o *daemonFlags) (err error) {
	confDir, err := filepath.Abs(o.confDir)
	if err != nil {
		return failed(err)
	}
	stateDir, err := filepath.Abs(o.stateDir)
	if err != nil {
		return failed(err)
	}
	if st, err := os.Stat(confDir); err != nil {
		return fmt.Errorf("--conf-dir: %w; make the folder, or name another", err)
	} else if !st.IsDir() {
		return fmt.Errorf("--conf-dir: %s is not a folder", confDir)
	}
	if err := o.access.Load(); err != nil {
		return err
	}
	l, err := server.Listen(o.listen, &o.access)
	if err != nil {
		return err
	}
	defer l.Close()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // before anything is announced: it would end the process
	defer signal.Stop(hup)
	log := a.logger()
	store, err := pebble.Open(stateDir, pebble.Options{Log: log})
	if err != nil {
		return failed(err)
	}
	defer func() {
		if e := store.Close(); e != nil {
			err = errors.Join(err, failed(e))
		}
	}()
	m := manager.New(manager.Options{ConfDir: confDir, StateDir: stateDir, Store: store, Log: log})
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s, err := server.New(l, server.Options{Pipelines: m, Registerer: metrics, Gatherer: metrics, Log: log, Version: version, Access: &o.access})
	if err != nil {
		return failed(err)
	}
	serving := make(chan error, 1)
	go func() { serving <- s.Serve() }()
	if err := server.WriteAddr(stateDir, s.Addr()); err != nil {
		return failed(errors.Join(err, s.Close(ctx)))
	}
	defer server.RemoveAddr(stateDir)
	log.Info("rsetl runs", "version", version, "conf_dir", confDir, "state_dir", stateDir, "listen", s.Addr())

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	helpers := make(chan struct{})
	go func() {
		defer close(helpers)
		a.helpDaemon(ctx, m, hup)
	}()
	context.AfterFunc(ctx, func() {
		log.Info("rsetl stops: pipelines are drained")
		notify(daemon.SdNotifyStopping)
	})
	select {
	case err = <-done:
	case err = <-serving:
		cancel()
		err = errors.Join(err, <-done)
	}
	cancel()
	<-helpers
	// The API answers until the pipelines are drained, so that one can see how far they are.
	end, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	err = errors.Join(err, s.Close(end))
	if err == nil {
		log.Info("rsetl has stopped; everything that was read is committed, where no pipeline above says otherwise")
	}
	return failed(err)
}

// helpDaemon tells systemd of the start, feeds its watchdog, and rescans at SIGHUP.
func (a *app) helpDaemon(ctx context.Context, m *manager.Manager, hup <-chan os.Signal) {
	rescan := func() error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return m.Rescan(ctx)
	}
	var beat <-chan time.Time
	if d, err := daemon.SdWatchdogEnabled(false); err == nil && d > 0 {
		t := time.NewTicker(d / 3)
		defer t.Stop()
		beat = t.C
	}
	scans := make(chan string, 1)
	begin := func() { go func() { scans <- fmt.Sprint(rescan()) }() }
	begin()
	busy, again, ready := true, false, false
	for {
		select {
		case <-ctx.Done():
			if busy {
				<-scans
			}
			return
		case <-hup:
			if again = busy; !busy {
				begin()
				busy = true
			}
		case <-scans:
			if !ready {
				ready = true
				notify(daemon.SdNotifyReady)
			}
			if busy = again; again {
				again = false
				begin()
			}
		case <-beat:
			alive, cancel := context.WithTimeout(ctx, 2*time.Second)
			if m.Alive(alive) == nil {
				notify(daemon.SdNotifyWatchdog)
			}
			cancel()
		}
	}
}

// notify tells systemd, where it started us.
func notify(state string) { _, _ = daemon.SdNotify(false, state) }
