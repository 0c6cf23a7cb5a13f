// Command rsetl reads streams of lines and messages, parses and filters them, and ships clean rows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/sinks/stdout"
)

func main() { os.Exit(run()) }

// run is main for tests: it uses the process' arguments and streams and gives the exit code.
func run() int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	return a.run(os.Args[1:])
}

// app is one invocation of the program.
type app struct {
	in       io.Reader
	out, err io.Writer
	code     int // what a command that did its work wants to exit with
}

// The exit codes.
const (
	exitDone   = 0
	exitInput  = 1 // the user's input is wrong
	exitFailed = 2 // the run failed
)

// failure is an error with its exit code.
type failure struct {
	code int
	err  error
}

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// failed marks an error as one of the run, not of the user's input.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{exitFailed, err}
}

func (a *app) run(args []string) int {
	// The first signal asks the command to end; a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	// A reader that goes away (`rsetl run … | head`) is an error to be reported, not a silent end.
	signal.Ignore(syscall.SIGPIPE)
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	if err := root.ExecuteContext(ctx); err != nil {
		if errors.Is(err, syscall.EPIPE) && !errors.Is(err, stdout.ErrClosed) {
			return exitDone // the reader has what it wanted
		}
		fmt.Fprintln(a.err, err)
		var f failure
		if errors.As(err, &f) {
			return f.code
		}
		return exitInput
	}
	return a.code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "rsetl",
		Short: "Log ETL: read, parse, filter, ship; described by one YAML file a pipeline",
		Long: `rsetl reads streams of lines and messages, parses them with grok and regexes, throws
most of it away cheaply and ships the rest. One YAML file is one pipeline.`,
		Example:           "  rsetl check examples/web-errors.yaml\n  rsetl run --once examples/web-errors.yaml",
		Version:           version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w\nsee: %s --help", err, c.CommandPath())
	})
	root.AddCommand(a.cmdRun(), a.cmdDaemon(), a.cmdStatus(), a.cmdList(), a.cmdFlush(), a.cmdPause(), a.cmdResume(), a.cmdReload(),
		a.cmdDead(), a.cmdState(),
		a.cmdCheck(), a.cmdTest(), a.cmdExplain(), a.cmdEval(), a.cmdGrok(), a.cmdFunctions(), a.cmdSchema(), a.cmdVersion())
	argHelp(root)
	return root
}

// argHelp lets errors about the number of arguments say what the arguments are.
func argHelp(c *cobra.Command) {
	for _, sub := range c.Commands() {
		argHelp(sub)
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w\nusage: %s\nsee: %s --help", err, c.UseLine(), c.CommandPath())
			}
			return nil
		}
	}
}
