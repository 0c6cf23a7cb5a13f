package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/state/mysql"
)

// probeTimeout is how long `check --connect` waits for each connection.
const probeTimeout = 15 * time.Second

func (a *app) cmdCheck() *cobra.Command {
	connect := false
	c := &cobra.Command{
		Use:     "check FILE|DIR...",
		Short:   "Validate pipeline files; connects to nothing",
		Long:    "Validates pipeline files completely and prints every mistake, each with its place, what is wrong\nand what would be right. It opens and connects to nothing; with --connect it tries the connections of\nsource, sinks and remote state too, and writes nothing. Exit code 1 where there is a mistake.",
		Example: "  rsetl check conf.d\n  rsetl check examples/web-errors.yaml\n  rsetl check --connect conf.d",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := pipelineFiles(args)
			if err != nil {
				return err
			}
			plans, err := a.load(files, false, pipeline.LoadOptions{Lenient: !connect, StateDir: "/var/lib/rsetl"}, pipeline.CompileOptions{})
			if err != nil {
				return err
			}
			for _, p := range plans {
				if connect && !a.probe(cmd.Context(), p) {
					a.code = exitInput
					continue
				}
				fmt.Fprintf(a.out, "%s: ok\n", p.File.Path)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&connect, "connect", false, "try the connections of source, sinks and remote state too")
	return c
}

// probe tries the plan's connections and prints those that fail.
func (a *app) probe(ctx context.Context, p *pipeline.Plan) bool {
	ok := true
	if prober, can := p.Source.(sources.Prober); can {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		err := prober.Probe(probe)
		cancel()
		if err != nil {
			ok = false
			fmt.Fprintf(a.out, "%s: source %s: %s\n", p.File.Path, p.File.Source.Kind, p.File.Errs.Mask(err.Error()))
		}
	}
	if r := p.Options.State.Remote; r != nil {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		err := mysql.Probe(probe, mysql.Options{DSN: r.DSN.Value, Prefix: r.Prefix, Lease: r.Lease.D()})
		cancel()
		if err != nil {
			ok = false
			fmt.Fprintf(a.out, "%s: state: %s\n", p.File.Path, p.File.Errs.Mask(err.Error()))
		}
	}
	for _, s := range p.Sinks {
		prober, can := s.Sink.(sinks.Prober)
		if !can {
			continue
		}
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		err := prober.Probe(probe)
		cancel()
		if err != nil {
			ok = false
			fmt.Fprintf(a.out, "%s: sink %s: %s\n", p.File.Path, s.Name, p.File.Errs.Mask(err.Error()))
		}
	}
	return ok
}

func (a *app) cmdExplain() *cobra.Command {
	return &cobra.Command{
		Use:     "explain FILE",
		Short:   "Show the compiled plan: steps, fields, regex engines, guarantees",
		Long:    "Shows what a pipeline file compiles to: the steps in the order they run, the fields each reads and\nwrites, the engine of each regex and why, and what each sink guarantees.",
		Example: "  rsetl explain examples/web-errors.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plans, err := a.load(args, false, pipeline.LoadOptions{Lenient: true, StateDir: "/var/lib/rsetl"}, pipeline.CompileOptions{})
			if err != nil {
				return err
			}
			plans[0].Explain(a.out)
			return nil
		},
	}
}

func (a *app) cmdTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE|DIR...",
		Short: "Run the inline tests of pipeline files",
		Long: "Runs the tests that stand in pipeline files under `tests:`, with the clock that each sets. Nothing is\n" +
			"read from sources or written to sinks. Exit code 1 and the differences where a test fails.",
		Example: "  rsetl test examples\n  rsetl test conf.d/web-errors.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := pipelineFiles(args)
			if err != nil {
				return err
			}
			lo := pipeline.LoadOptions{Lenient: true, StateDir: "/var/lib/rsetl"}
			if _, err := a.load(files, false, lo, pipeline.CompileOptions{Once: true}); err != nil {
				return err
			}
			passed, failed := 0, 0
			for _, path := range files {
				results, err := pipeline.RunTests(func() (*pipeline.File, error) { return pipeline.LoadFile(path, lo) })
				if err != nil {
					return err
				}
				for i := range results {
					t := &results[i]
					if t.Passed() {
						passed++
						continue
					}
					failed++
					fmt.Fprintf(a.out, "%s:%d: FAIL %s\n", t.File, t.Line, t.Name)
					for _, d := range t.Diff {
						fmt.Fprintf(a.out, "    %s\n", d)
					}
				}
			}
			fmt.Fprintf(a.out, "%d passed, %d failed\n", passed, failed)
			if failed > 0 {
				a.code = exitInput
			}
			return nil
		},
	}
}
