package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/pipeline/manager"
	"github.com/rsetl/rsetl/server"
)

func (a *app) cmdDead() *cobra.Command {
	c := &cobra.Command{
		Use:   "dead",
		Short: "List, show and replay a pipeline's dead letters",
		Long: `Dead letters are records that could not be processed or delivered. ` + "`list`" + ` gives the newest, ` + "`show`" + ` one as a whole,
` + "`replay`" + ` puts them through the pipeline again once the cause is mended.`,
		Example: "  rsetl dead list web-errors --step grok\n  rsetl dead replay web-errors --step grok",
	}
	c.AddCommand(a.cmdDeadList(), a.cmdDeadShow(), a.cmdDeadReplay())
	return c
}

// deadFlags select letters.
func deadFlags(c *cobra.Command, f *deadletter.Filter) {
	c.Flags().StringVar(&f.Step, "step", "", "only failures of this step; source for what could not be read")
	c.Flags().StringVar(&f.Sink, "sink", "", "only what this sink rejected")
	c.Flags().StringVar(&f.Reason, "reason", "", "only those whose reason contains this text")
}

func (a *app) cmdDeadList() *cobra.Command {
	var t target
	var f deadletter.Filter
	limit, asJSON := 20, false
	c := &cobra.Command{
		Use:     "list PIPELINE",
		Short:   "List the newest dead letters",
		Long:    "Lists the newest dead letters of a pipeline, a line each: id, time, step or sink, reason, text. Those that were\nreplayed have a mark. --json prints whole letters, one a line.",
		Example: "  rsetl dead list web-errors --limit 5\n  rsetl dead list web-errors --sink mysql --reason 'too long' --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.dead(cmd.Context(), &t, args[0], &f, limit)
			if err != nil {
				return failed(err)
			}
			if asJSON {
				return a.letters(d.Letters)
			}
			w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			for _, e := range d.Letters {
				what := "step " + e.Step
				if e.Sink != "" {
					what = "sink " + e.Sink
				}
				if e.Replayed {
					what += " (replayed)"
				}
				text := string(e.Record)
				if raw, ok := e.Text(); ok {
					text = string(raw)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.ID[:12], e.Time.Format("2006-01-02T15:04:05Z"), what, short(e.Reason, 80), short(text, 60))
			}
			if err := w.Flush(); err != nil {
				return failed(err)
			}
			if d.Total > int64(len(d.Letters)) {
				fmt.Fprintf(a.err, "%d of %d letters; --limit shows more\n", len(d.Letters), d.Total)
			}
			return nil
		},
	}
	t.flags(c)
	deadFlags(c, &f)
	c.Flags().IntVar(&limit, "limit", limit, "how many, at most 10000")
	c.Flags().BoolVar(&asJSON, "json", false, "print whole letters as JSON, one a line")
	return c
}

// dead reads a pipeline's letters, from the daemon, or from the state directory where none runs. The store stays closed then: a daemon
// may be starting on it.
func (a *app) dead(ctx context.Context, t *target, name string, f *deadletter.Filter, limit int) (d server.Dead, err error) {
	if !t.noDaemon() {
		cl, err := t.client()
		if err != nil {
			return d, err
		}
		return cl.Dead(ctx, name, f, limit)
	}
	name = fullName(name)
	path := manager.Letters(t.StateDir, name)
	if all, err := deadletter.Segments(path); err != nil || len(all) == 0 {
		return d, errors.Join(err, fmt.Errorf("no daemon runs on %s, and %s has no letters at %s; where its `dead_letter` names another path, they are there", t.StateDir, name, path))
	}
	fmt.Fprintf(a.err, "no daemon runs on %s: which letters were replayed is not shown\n", t.StateDir)
	d.Letters, d.Total, err = manager.ReadDead(path, nil, f, min(limit, 10_000))
	return d, err
}

// minID is how much of an id is given at least.
const minID = 4

func checkIDs(ids []string) error {
	for _, id := range ids {
		if len(id) < minID {
			return fmt.Errorf("%q: an id, or its first characters, at least %d of them", id, minID)
		}
	}
	return nil
}

// letters prints letters as JSON lines.
func (a *app) letters(all []*deadletter.Entry) error {
	for _, e := range all {
		b, err := json.Marshal(e)
		if err != nil {
			return failed(err)
		}
		fmt.Fprintln(a.out, string(b))
	}
	return nil
}

// short is a text on one line, cut where it is long.
func short(s string, n int) string {
	r := []rune(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(s))
	if len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return string(r)
}

func (a *app) cmdDeadShow() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:     "show PIPELINE ID...",
		Short:   "Show dead letters as a whole",
		Long:    "Shows the dead letters whose ids begin with these, as `rsetl dead list` gives them: reason, position, the text as\nit was read and the fields as they were.",
		Example: "  rsetl dead show web-errors 5d41402abc4b",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkIDs(args[1:]); err != nil {
				return err
			}
			d, err := a.dead(cmd.Context(), &t, args[0], &deadletter.Filter{IDs: args[1:]}, 1000)
			if err != nil {
				return failed(err)
			}
			if len(d.Letters) == 0 {
				return fmt.Errorf("%s has no dead letter %s; `rsetl dead list %s` gives their ids", args[0], strings.Join(args[1:], ", "), args[0])
			}
			for _, e := range d.Letters {
				b, err := json.MarshalIndent(e, "", "  ")
				if err != nil {
					return failed(err)
				}
				fmt.Fprintln(a.out, string(b))
			}
			return nil
		},
	}
	t.flags(c)
	return c
}

func (a *app) cmdDeadReplay() *cobra.Command {
	var t target
	var f deadletter.Filter
	c := &cobra.Command{
		Use:   "replay PIPELINE [ID...]",
		Short: "Put dead letters through the pipeline again",
		Long: `Puts dead letters through the running pipeline again: what a step failed enters at the pipeline's start and
goes to the sinks behind that step, what a sink rejected goes to that sink alone. Each letter is replayed once, also
where rsetl is killed meanwhile; one that fails again is a new letter. The pipeline is drained and started for it.`,
		Example: "  rsetl dead replay web-errors --step grok\n  rsetl dead replay web-errors 5d41402abc4b",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkIDs(args[1:]); err != nil {
				return err
			}
			cl, err := t.client()
			if err != nil {
				return err
			}
			f.IDs = args[1:]
			out, err := cl.Replay(cmd.Context(), args[0], &f)
			if err != nil {
				return failed(err)
			}
			fmt.Fprintf(a.out, "%d replayed", out.Replayed)
			if out.Before > 0 {
				fmt.Fprintf(a.out, ", %d were before", out.Before)
			}
			fmt.Fprintln(a.out)
			var why []string
			for reason, n := range out.Refused {
				why = append(why, fmt.Sprintf("%d can't be replayed: %s", n, reason))
			}
			slices.Sort(why)
			for _, line := range why {
				fmt.Fprintln(a.err, line)
				a.code = exitFailed
			}
			return nil
		},
	}
	t.flags(c)
	deadFlags(c, &f)
	return c
}
