package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/pebble"
	"github.com/rsetl/rsetl/state/stores"
)

type runFlags struct {
	stateDir, report string
	once, failOnDead bool
}

func (a *app) cmdRun() *cobra.Command {
	var o runFlags
	c := &cobra.Command{
		Use:   "run FILE...",
		Short: "Run pipelines in the foreground",
		Long: `Runs pipelines until all their sources end or a signal comes; then everything that was read is
flushed and committed, for at most the pipeline's drain time. A second signal ends at once.

Without --state-dir the state is temporary: each run begins anew and gives the same result. Dead letters
go to PIPELINE.dead.ndjson in the working directory, unless dead_letter is set; the file is made only when
there are any, and a run with temporary state replaces it.

Exit codes: 0 done, 1 the pipeline files are wrong, 2 the run failed.`,
		Example: "  rsetl run --once examples/web-errors.yaml\n  rsetl run --state-dir ./state --report report.json web.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runPipelines(cmd.Context(), &o, args) },
	}
	f := c.Flags()
	f.StringVar(&o.stateDir, "state-dir", "", "keep positions and counts here, and go on from them at the next run")
	f.BoolVar(&o.once, "once", false, "read what is there, flush, and end")
	f.BoolVar(&o.failOnDead, "fail-on-dead", false, "exit 2 where this run made dead letters")
	f.StringVar(&o.report, "report", "", "write the ledgers to this file as a JSON array, one object a pipeline")
	return c
}

func (a *app) runPipelines(ctx context.Context, o *runFlags, args []string) error {
	files, err := pipelineFiles(args)
	if err != nil {
		return err
	}
	stateDir := o.stateDir
	if stateDir == "" {
		if stateDir, err = os.MkdirTemp("", "rsetl-"); err != nil {
			return failed(fmt.Errorf("make a temporary state directory: %w; give one with --state-dir", err))
		}
		defer os.RemoveAll(stateDir)
	} else if stateDir, err = filepath.Abs(stateDir); err != nil {
		return failed(err)
	}
	log := a.logger()
	plans, err := a.load(files, true, pipeline.LoadOptions{StateDir: stateDir}, pipeline.CompileOptions{Once: o.once, StateDir: stateDir, Log: log})
	if err != nil {
		return err
	}
	dir := stateDir
	if o.stateDir == "" {
		dir = filepath.Join(stateDir, "state")
	}
	store, err := pebble.Open(dir, pebble.Options{Log: log})
	if err != nil {
		return failed(err)
	}
	defer store.Close()
	all := stores.New(store, log)
	defer all.Close()

	var runners []*pipeline.Runner
	for _, p := range plans {
		letters := letterFile(p)
		if o.stateDir == "" && p.Options.State.Remote == nil && p.Options.DeadLetter.Path() == "" {
			if err := os.Remove(letters); err != nil && !errors.Is(err, os.ErrNotExist) {
				return failed(fmt.Errorf("replace the dead letters of an earlier run: %w", err))
			}
		}
		r, err := a.runner(ctx, p, all, pipeline.RunOptions{StateDir: dir, Letters: letters, Log: log})
		if err != nil {
			return failed(err)
		}
		if r == nil { // stopped while it stood by
			continue
		}
		runners = append(runners, r)
	}
	a.notes(plans, o)
	errs := a.runAll(ctx, runners, log)

	var reports []pipeline.Report
	dead := int64(0)
	for _, r := range runners {
		reports = append(reports, r.Report())
		dead += r.NewLetters()
	}
	a.summary(reports)
	if o.report != "" {
		if err := writeReport(o.report, reports); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return failed(err)
	}
	if o.failOnDead && dead > 0 {
		a.code = exitFailed
		fmt.Fprintf(a.err, "%d dead letters (--fail-on-dead)\n", dead)
	}
	return nil
}

// runner makes the plan's run. Where another instance has the pipeline it stands by; nil where ctx ends first.
func (a *app) runner(ctx context.Context, p *pipeline.Plan, all *stores.Stores, o pipeline.RunOptions) (*pipeline.Runner, error) {
	told := false
	for {
		var err error
		if o.Store, err = pipeline.StoreOf(ctx, p, all); err != nil {
			return nil, err
		}
		r, err := pipeline.NewRunner(ctx, p, o)
		var held *state.HeldError
		if !errors.As(err, &held) {
			return r, err
		}
		if !told {
			told = true
			fmt.Fprintf(a.err, "%s: %v; this one stands by\n", p.Name, held)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(held.Again()):
		}
	}
}

// notes tells, before a run, what a newcomer would wonder about.
func (a *app) notes(plans []*pipeline.Plan, o *runFlags) {
	for _, p := range plans {
		if o.stateDir == "" && p.Options.State.Remote == nil {
			for _, path := range p.Appends() {
				if st, err := os.Stat(path); err == nil && st.Size() > 0 {
					fmt.Fprintf(a.err, "%s: %s is there already, and without --state-dir each run begins anew: its rows are added again (sinks have mode: overwrite or if_exists: replace for that)\n", p.Name, path)
				}
			}
		}
		if s := p.Follows(); s != "" && !o.once {
			fmt.Fprintf(a.err, "%s: %s; Ctrl-C flushes, commits and ends\n", p.Name, s)
		}
	}
}

// letterFile is where a pipeline's dead letters go under `rsetl run`.
func letterFile(p *pipeline.Plan) string {
	if path := p.Options.DeadLetter.Path(); path != "" {
		return path
	}
	return p.Name[strings.LastIndexByte(p.Name, '/')+1:] + ".dead.ndjson"
}

// runAll runs the pipelines side by side. One that fails doesn't end the others.
func (a *app) runAll(ctx context.Context, runners []*pipeline.Runner, log *slog.Logger) []error {
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	done := make(chan struct{})
	for _, r := range runners {
		wg.Go(func() {
			if err := r.Run(ctx); err != nil {
				mu.Lock()
				errs = append(errs, fmt.Errorf("pipeline %s: %w", r.Name(), r.Mask(err)))
				mu.Unlock()
			}
		})
	}
	if a.tty() {
		go a.progress(done, runners)
	}
	wg.Wait()
	close(done)
	return errs
}

// progress shows what has been done so far, on a terminal, from the second second on.
func (a *app) progress(done <-chan struct{}, runners []*pipeline.Runner) {
	t := time.NewTicker(500 * time.Millisecond)
	defer t.Stop()
	start := time.Now()
	shown := false
	for {
		select {
		case <-done:
			if shown {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
			return
		case <-t.C:
		}
		if time.Since(start) < 2*time.Second {
			continue
		}
		var sum pipeline.Report
		trouble := ""
		for _, r := range runners {
			p := r.Report()
			sum.In += p.In
			sum.Out += p.Out
			sum.Filtered += p.Filtered
			sum.Dead += p.Dead
			sum.RecordsPerSecond += p.RecordsPerSecond
			for part, err := range r.Troubles() {
				trouble = " | " + part + ": " + err
			}
		}
		line := fmt.Sprintf("%s | in %d, out %d, filtered %d, dead %d | %.0f records/s%s", time.Since(start).Round(time.Second),
			sum.In, sum.Out, sum.Filtered, sum.Dead, sum.RecordsPerSecond, trouble)
		if len(line) > 150 {
			line = line[:150]
		}
		fmt.Fprintf(a.err, "\r\x1b[K%s", line)
		shown = true
	}
}

// summary says what became of the records, on stderr.
func (a *app) summary(reports []pipeline.Report) {
	for _, r := range reports {
		fmt.Fprintf(a.err, "%s: ", r.Pipeline)
		if n := r.ThisRun; n != r.In {
			fmt.Fprintf(a.err, "this run read %d; in all: ", n)
		}
		fmt.Fprintf(a.err, "in %d", r.In)
		if r.Made > 0 {
			fmt.Fprintf(a.err, " + made %d", r.Made)
		}
		fmt.Fprintf(a.err, " = out %d + filtered %d + dead %d", r.Out, r.Filtered, r.Dead)
		if r.Absorbed > 0 {
			fmt.Fprintf(a.err, " + absorbed %d", r.Absorbed)
		}
		if r.InFlight > 0 {
			fmt.Fprintf(a.err, " + in flight %d", r.InFlight)
		}
		fmt.Fprintf(a.err, "; %.2f s, %.0f records/s\n", r.Seconds, r.RecordsPerSecond)
		for _, s := range r.Sinks {
			fmt.Fprintf(a.err, "  %s: received %d = delivered %d", s.Name, s.Received, s.Delivered)
			for _, x := range []struct {
				name string
				n    int64
			}{{"rejected", s.Rejected}, {"skipped", s.Skipped}, {"held", s.Held}} {
				if x.n > 0 {
					fmt.Fprintf(a.err, " + %s %d", x.name, x.n)
				}
			}
			fmt.Fprintln(a.err)
		}
		if r.LostBytes > 0 {
			fmt.Fprintf(a.err, "  lost before it could be read: %d bytes (see the log)\n", r.LostBytes)
		}
		if r.DeadLetters != "" {
			fmt.Fprintf(a.err, "  dead letters: %s\n", r.DeadLetters)
		}
	}
}

func writeReport(path string, reports []pipeline.Report) error {
	b, err := json.MarshalIndent(reports, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o640)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
