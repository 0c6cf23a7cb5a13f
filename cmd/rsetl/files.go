package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/rsetl/rsetl/internal/repeats"
	"github.com/rsetl/rsetl/pipeline"
)

// logger writes to stderr: text on a terminal, else JSON.
func (a *app) logger() *slog.Logger {
	if a.tty() {
		return slog.New(repeats.New(slog.NewTextHandler(a.err, nil)))
	}
	return slog.New(repeats.New(slog.NewJSONHandler(a.err, nil)))
}

// tty tells whether stderr is a terminal.
func (a *app) tty() bool {
	f, ok := a.err.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// pipelineFiles lists the files that arguments name: folders are searched for *.yaml and *.yml.
func pipelineFiles(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		st, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			out = append(out, arg)
			continue
		}
		n := len(out)
		root := arg + string(filepath.Separator) // a folder that is a symbolic link is followed
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if strings.HasPrefix(name, ".") && path != root {
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			if ext := filepath.Ext(name); !d.IsDir() && (ext == ".yaml" || ext == ".yml") && !pipeline.IsShared(path) {
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(out) == n {
			return nil, fmt.Errorf("%s: the folder holds no .yaml file", arg)
		}
	}
	return out, nil
}

// maxShown is how many mistakes of a file are printed.
const maxShown = 200

// load reads and compiles files and prints every mistake of each. The error then says how many.
// together: the pipelines run side by side, so names and files of sinks must differ.
func (a *app) load(files []string, together bool, lo pipeline.LoadOptions, co pipeline.CompileOptions) ([]*pipeline.Plan, error) {
	var plans []*pipeline.Plan
	mistakes := 0
	names := map[string]string{}
	paths := map[string]string{}
	shared := map[string]bool{} // folders
	for _, path := range files {
		if pipeline.IsShared(path) {
			fmt.Fprintf(a.err, "%s: a file whose name begins with _ holds what pipelines share; it is read with each pipeline of its folder\n", path)
			mistakes++
			continue
		}
		if dir := filepath.Dir(path); !shared[dir] {
			shared[dir] = true
			s, err := pipeline.SharedBeside(path)
			if err == nil {
				for _, errs := range s.Errs {
					for _, e := range errs.List() {
						fmt.Fprintln(a.err, e)
					}
					mistakes += errs.Mistakes()
				}
			}
		}
		f, err := pipeline.LoadFile(path, lo)
		if f == nil {
			fmt.Fprintln(a.err, err)
			mistakes++
			continue
		}
		p, _ := pipeline.Compile(f, co)
		for i, e := range f.Errs.List() {
			if i < maxShown {
				fmt.Fprintln(a.err, e)
			} else if i == maxShown {
				fmt.Fprintf(a.err, "%s: and %d more\n", path, len(f.Errs.List())-maxShown)
			}
			if !e.Warning {
				mistakes++
			}
		}
		if p == nil {
			continue
		}
		plans = append(plans, p)
		if !together {
			continue
		}
		if other, ok := names[p.Name]; ok {
			fmt.Fprintf(a.err, "%s: name: the pipeline %s is also in %s; give one of them another `name:`\n", path, p.Name, other)
			mistakes++
		}
		names[p.Name] = path
		for _, out := range p.OutputPaths() {
			if other, ok := paths[out]; ok {
				fmt.Fprintf(a.err, "%s: sinks: %s writes %s too; two sinks on one file would mix their rows\n", path, other, out)
				mistakes++
			}
			paths[out] = path
		}
	}
	switch {
	case mistakes == 1:
		return nil, errors.New("1 mistake")
	case mistakes > 1:
		return nil, fmt.Errorf("%d mistakes", mistakes)
	}
	return plans, nil
}
