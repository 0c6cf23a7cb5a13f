package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/pipeline/manager"
	"github.com/rsetl/rsetl/server"
	"github.com/rsetl/rsetl/steps"
)

// target is the daemon that a command asks.
type target struct{ server.Target }

func (t *target) flags(c *cobra.Command) {
	c.Flags().StringVar(&t.StateDir, "state-dir", defaultStateDir(), "the daemon's state directory, where its address is")
	c.Flags().StringVar(&t.Addr, "addr", "", "the daemon's address, instead of --state-dir; https://HOST:PORT for TLS")
	c.Flags().StringVar(&t.TokenFile, "token-file", os.Getenv("RSETL_TOKEN_FILE"), "the file with the daemon's token, where it has one")
	c.Flags().StringVar(&t.CAFile, "tls-ca", os.Getenv("RSETL_TLS_CA"), "authorities in a PEM file that are trusted beside the system's")
}

func (t *target) client() (*server.Client, error) {
	c, err := server.NewClient(t.Target)
	return c, failed(err)
}

func (a *app) cmdStatus() *cobra.Command {
	var t target
	asJSON := false
	c := &cobra.Command{
		Use:   "status [PIPELINE...]",
		Short: "Show what the running daemon's pipelines do",
		Long: `Shows the pipelines of a running daemon: state (running, blocked: a sink or source is down and tried again,
paused, draining, failed, finished, standby: another instance runs it), version, counts, last checkpoint, and what is wrong.
With --json it prints an array with, per pipeline, pipeline, state, version, started_at, error, last_checkpoint and
the ledgers under the names of run --report. LAG is what is there to read and not committed: bytes of files, messages of brokers.`,
		Example: "  rsetl status\n  rsetl status --json --state-dir ./state",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			all, problems, err := cl.Status(cmd.Context())
			if err != nil {
				return failed(err)
			}
			if all, err = choose(all, args); err != nil {
				return err
			}
			if asJSON {
				b, err := json.MarshalIndent(all, "", "  ")
				if err != nil {
					return failed(err)
				}
				fmt.Fprintln(a.out, string(b))
			} else {
				a.statusTable(all)
			}
			if len(args) == 0 {
				for _, p := range problems {
					fmt.Fprintln(a.err, p.Error)
				}
			}
			return nil
		},
	}
	t.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// choose picks pipelines by name; `default/` may be left out.
func choose(all []manager.Status, names []string) ([]manager.Status, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []manager.Status
	for _, n := range names {
		if !strings.Contains(n, "/") {
			n = "default/" + n
		}
		found := false
		for _, s := range all {
			if s.Pipeline == n {
				out, found = append(out, s), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no such pipeline: %s", n)
		}
	}
	return out, nil
}

func (a *app) statusTable(all []manager.Status) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	// in + made = out + filtered + absorbed + dead + in flight
	made, absorbed := false, false
	for _, s := range all {
		made, absorbed = made || s.Made > 0, absorbed || s.Absorbed > 0
	}
	some := func(wanted bool, text any) string {
		if !wanted {
			return ""
		}
		return fmt.Sprintf("\t%v", text)
	}
	fmt.Fprintf(w, "PIPELINE\tSTATE\tVERSION\tIN%s\tOUT\tFILTERED%s\tDEAD\tLAG\tCHECKPOINT\n", some(made, "MADE"), some(absorbed, "ABSORBED"))
	for _, s := range all {
		at := "-"
		if s.LastCheckpoint != nil {
			at = time.Since(*s.LastCheckpoint).Round(time.Second).String() + " ago"
		}
		v := s.Version
		if v == "" {
			v = "-"
		}
		lag := "-"
		if s.Lag != nil {
			lag = strconv.FormatInt(*s.Lag, 10) + lagTime(s.LagMillis)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d%s\t%d\t%d%s\t%d\t%s\t%s\n", s.Pipeline, s.State, v, s.In, some(made, s.Made), s.Out, s.Filtered,
			some(absorbed, s.Absorbed), s.Dead, lag, at)
	}
	w.Flush()
	for _, s := range all {
		for _, line := range holdings(s.Stages) {
			fmt.Fprintf(a.out, "%s: %s\n", s.Pipeline, line)
		}
		for _, line := range []string{s.Error, s.Note} {
			if line != "" {
				fmt.Fprintf(a.out, "%s: %s\n", s.Pipeline, strings.ReplaceAll(line, "\n", "\n    "))
			}
		}
	}
}

// lagTime is how long records wait, behind their number.
func lagTime(ms *int64) string {
	if ms == nil || *ms == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", (time.Duration(*ms) * time.Millisecond).Round(100*time.Millisecond))
}

// holdings says what each stateful step holds.
func holdings(stages map[string]steps.Holding) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(stages)) {
		h := stages[name]
		line := fmt.Sprintf("%s holds %d keys", name, h.Keys)
		if h.Watermark != "" || h.Windows > 0 {
			line += fmt.Sprintf(" in %d windows, %d KiB of them in memory", h.Windows, (h.Bytes+1023)/1024)
		}
		if h.Watermark != "" {
			line += "; watermark " + h.Watermark
			if h.LagMillis != 0 {
				line += fmt.Sprintf(", %s behind the clock", (time.Duration(h.LagMillis) * time.Millisecond).Round(time.Second))
			}
		}
		if h.Late > 0 {
			line += fmt.Sprintf("; %d late", h.Late)
		}
		lines = append(lines, line)
	}
	return lines
}

func (a *app) cmdList() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the running daemon's pipelines and their files",
		Long:    "Lists the pipelines of a running daemon: name, state and file, a line each.",
		Example: "  rsetl list --state-dir ./state",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			all, _, err := cl.Status(cmd.Context())
			if err != nil {
				return failed(err)
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, s := range all {
				state := s.State
				if s.Rejected != nil && s.State != manager.Failed {
					state += " (not as its file says)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Pipeline, state, s.File)
			}
			return w.Flush()
		},
	}
	t.flags(c)
	return c
}

// cmdAct makes a command that does one thing with each pipeline named.
func (a *app) cmdAct(what, short, long, done string) *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:     what + " PIPELINE...",
		Short:   short,
		Long:    long,
		Example: "  rsetl " + what + " web-errors\n  rsetl " + what + " --state-dir ./state prod/web-errors",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			return a.act(cmd.Context(), cl, args, what, done)
		},
	}
	t.flags(c)
	return c
}

func (a *app) act(ctx context.Context, cl *server.Client, names []string, what, done string) error {
	var errs []error
	for _, name := range names {
		s, err := cl.Act(ctx, name, what)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		case what == "reload" && s != nil && (s.Rejected != nil || s.State == manager.Failed):
			errs = append(errs, fmt.Errorf("%s: %s", s.Pipeline, s.Error))
		case s != nil:
			fmt.Fprintf(a.out, "%s: %s\n", s.Pipeline, done)
		default:
			fmt.Fprintf(a.out, "%s: %s\n", name, done)
		}
	}
	return failed(errors.Join(errs...))
}

func (a *app) cmdFlush() *cobra.Command {
	return a.cmdAct("flush", "Make a checkpoint now and wait for it",
		"Makes a checkpoint of each pipeline and waits for it: what was read is then durable in every sink and\ncommitted. Exit code 2 where that is not done within a minute.", "flushed")
}

func (a *app) cmdPause() *cobra.Command {
	return a.cmdAct("pause", "Hold pipelines' sources back",
		"Lets each pipeline read nothing more, also after reloads and restarts of the daemon. What was read goes its\nway. `rsetl resume` ends it.", "paused")
}

func (a *app) cmdResume() *cobra.Command {
	return a.cmdAct("resume", "Let paused pipelines go on", "Ends a pause.", "goes on")
}

func (a *app) cmdReload() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:   "reload [PIPELINE...]",
		Short: "Read the folder now, or start pipelines anew",
		Long: `Without arguments the daemon reads its folder now and starts what has changed; that happens by itself a moment
after a change. With names, each pipeline is started anew though its file may not have changed: a secret did.
It waits for the result: exit code 2 where a pipeline failed or a file's newest version does not run.`,
		Example: "  rsetl reload\n  rsetl reload --state-dir ./state web-errors",
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return a.act(cmd.Context(), cl, args, "reload", "started anew")
			}
			all, err := cl.Rescan(cmd.Context())
			if err != nil {
				return failed(err)
			}
			var errs []error
			for _, s := range all {
				if s.Rejected != nil || s.State == manager.Failed {
					errs = append(errs, fmt.Errorf("%s: %s", s.Pipeline, s.Error))
					continue
				}
				fmt.Fprintf(a.out, "%s: %s, version %s\n", s.Pipeline, s.State, s.Version)
			}
			return failed(errors.Join(errs...))
		},
	}
	t.flags(c)
	return c
}
