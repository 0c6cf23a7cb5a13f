package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state"

	// What the jobs are made of.
	_ "github.com/rsetl/rsetl/parsers/json"
	_ "github.com/rsetl/rsetl/sinks/file"
	_ "github.com/rsetl/rsetl/sinks/null"
	_ "github.com/rsetl/rsetl/sources/file"
	_ "github.com/rsetl/rsetl/transforms/filter"
	_ "github.com/rsetl/rsetl/transforms/remove"
)

// Run runs a pipeline over what is there, with its state in store, and gives its ledger.
func Run(store state.Store, dir, name, yaml string) (pipeline.Report, error) {
	conf := filepath.Join(dir, name+".yaml")
	if err := os.WriteFile(conf, []byte(yaml), 0o644); err != nil {
		return pipeline.Report{}, err
	}
	f, err := pipeline.LoadFile(conf, pipeline.LoadOptions{StateDir: dir})
	if err != nil {
		return pipeline.Report{}, err
	}
	p, err := pipeline.Compile(f, pipeline.CompileOptions{Once: true, StateDir: dir})
	if err != nil {
		return pipeline.Report{}, err
	}
	r, err := pipeline.NewRunner(context.Background(), p, pipeline.RunOptions{Store: store, StateDir: dir, Letters: filepath.Join(dir, name+".dead")})
	if err != nil {
		return pipeline.Report{}, err
	}
	if err := r.Run(context.Background()); err != nil {
		return pipeline.Report{}, err
	}
	rep := r.Report()
	if rep.InFlight != 0 || rep.Dead != 0 {
		return rep, fmt.Errorf("%s: %d records in flight and %d dead at the end", name, rep.InFlight, rep.Dead)
	}
	return rep, nil
}

// CPU is the processor time, user and system, that this process has used.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
