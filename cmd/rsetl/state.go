package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/server"
	"github.com/rsetl/rsetl/state/pebble"
)

func (a *app) cmdState() *cobra.Command {
	c := &cobra.Command{
		Use:     "state",
		Short:   "Show or reset a pipeline's committed state",
		Long:    "Shows or resets positions and counts: through the running daemon, or in the state directory where none runs.",
		Example: "  rsetl state show web-errors\n  rsetl state reset web-errors --split /var/log/nginx/access.log",
	}
	c.AddCommand(a.cmdStateShow(), a.cmdStateReset(), a.cmdRemove())
	return c
}

// noDaemon tells whether no daemon is meant that has said where it listens.
func (t *target) noDaemon() bool {
	if t.Addr != "" {
		return false
	}
	_, err := os.Stat(filepath.Join(t.StateDir, "listen"))
	return err != nil
}

// offline opens the state directory where no daemon runs on it; nil where one does.
func (t *target) offline() (*pebble.Store, error) {
	if !t.noDaemon() {
		return nil, nil
	}
	if _, err := os.Stat(t.StateDir); err != nil {
		return nil, fmt.Errorf("--state-dir: %w", err)
	}
	s, err := pebble.Open(t.StateDir, pebble.Options{})
	return s, failed(err)
}

func fullName(name string) string {
	if !strings.Contains(name, "/") {
		return "default/" + name
	}
	return name
}

// shownState is what `state show` prints.
type shownState struct {
	Pipeline string                 `json:"pipeline"`
	Splits   []pipeline.SplitStatus `json:"splits"`
	pipeline.Report
}

func (a *app) cmdStateShow() *cobra.Command {
	var t target
	asJSON := false
	c := &cobra.Command{
		Use:     "show PIPELINE",
		Short:   "Show the committed positions of a pipeline's splits",
		Long:    "Shows each split's path, committed position, epoch and lag, and what windows and other stateful steps hold.",
		Example: "  rsetl state show web-errors\n  rsetl state show --json --state-dir ./state web-errors",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := t.state(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				b, err := json.MarshalIndent(s, "", "  ")
				if err != nil {
					return failed(err)
				}
				fmt.Fprintln(a.out, string(b))
				return nil
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SPLIT\tPATH\tEPOCH\tOFFSET\tLAG")
			for _, sp := range s.Splits {
				lag := "-"
				switch {
				case sp.Done:
					lag = "done"
				case sp.Lag != nil:
					lag = fmt.Sprint(*sp.Lag) + lagTime(sp.LagMillis)
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", sp.Split, sp.Path, sp.Epoch, sp.Offset, lag)
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, line := range holdings(s.Stages) {
				fmt.Fprintln(a.out, line)
			}
			return nil
		},
	}
	t.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// state reads a pipeline's state, from the daemon or the directory.
func (t *target) state(ctx context.Context, name string) (*shownState, error) {
	name = fullName(name)
	store, err := t.offline()
	if err != nil {
		return nil, err
	}
	if store != nil {
		defer store.Close()
		snap, err := store.Load(ctx, name)
		if err != nil {
			return nil, failed(err)
		}
		if where := pipeline.Elsewhere(snap); where != "" {
			return nil, fmt.Errorf("%s has its state in the database %s (`state: {remote: …}` in its file): a daemon that has the pipeline shows it", name, where)
		}
		if snap.Fresh {
			return nil, fmt.Errorf("%s has no state in %s", name, t.StateDir)
		}
		return &shownState{name, pipeline.CommittedPositions(snap), pipeline.CommittedReport(name, snap)}, nil
	}
	cl, err := t.client()
	if err != nil {
		return nil, err
	}
	st, err := cl.Get(ctx, name)
	if err != nil {
		return nil, failed(err)
	}
	return &shownState{name, st.Splits, st.Report}, nil
}

func (a *app) cmdStateReset() *cobra.Command {
	var t target
	var r pipeline.Reset
	c := &cobra.Command{
		Use:   "reset PIPELINE",
		Short: "Let a pipeline read again from the beginning",
		Long: `Sets the positions of a pipeline's splits back to their beginnings, so that everything is read again, and sinks that
skip what they have take it again. With --split only that one, by its id or path. With --all everything is forgotten:
positions, windows and counts; the next start is a first start. A running pipeline is drained and started for it.`,
		Example: "  rsetl state reset web-errors --split /var/log/nginx/access.log\n  rsetl state reset web-errors --all",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.All && r.Split != "" {
				return fmt.Errorf("--all and --split: give one of them")
			}
			n, err := t.reset(cmd.Context(), fullName(args[0]), r)
			if err != nil {
				return failed(err)
			}
			fmt.Fprintf(a.out, "%s: %d splits begin anew\n", fullName(args[0]), n)
			return nil
		},
	}
	t.flags(c)
	c.Flags().StringVar(&r.Split, "split", "", "only this split: its id or path")
	c.Flags().BoolVar(&r.All, "all", false, "forget everything")
	return c
}

func (t *target) reset(ctx context.Context, name string, r pipeline.Reset) (int, error) {
	store, err := t.offline()
	if err != nil {
		return 0, err
	}
	if store != nil {
		defer store.Close()
		snap, err := store.Load(ctx, name)
		if err != nil {
			return 0, err
		}
		if where := pipeline.Elsewhere(snap); where != "" && !r.All {
			return 0, fmt.Errorf("%s has its state in the database %s (`state: {remote: …}` in its file): reset it through a daemon that has the pipeline", name, where)
		}
		return pipeline.ResetState(ctx, store, name, r)
	}
	cl, err := server.NewClient(t.Target)
	if err != nil {
		return 0, err
	}
	return cl.Reset(ctx, name, r)
}

func (a *app) cmdRemove() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:     "remove PIPELINE",
		Short:   "Forget the state of a pipeline whose file is gone",
		Long:    "Forgets positions, windows and counts of a pipeline whose file was deleted. Its dead letters stay.",
		Example: "  rsetl state remove old-pipeline",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			if err := cl.Remove(cmd.Context(), args[0]); err != nil {
				return failed(err)
			}
			fmt.Fprintf(a.out, "%s: forgotten\n", fullName(args[0]))
			return nil
		},
	}
	t.flags(c)
	return c
}
