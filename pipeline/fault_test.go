package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// fault is a stage whose Checkpoint panics.
type faultConfig struct{}

func (*faultConfig) UnmarshalConfig(*config.Context, *yamlNode) {}
func (*faultConfig) Declare(*steps.Decl)                        {}
func (*faultConfig) Build(*steps.Build) (steps.Maker, error) {
	return func() steps.Step { return fault{} }, nil
}

var faultWith any

type fault struct{}

func (fault) Apply(*record.Batch)                        {}
func (fault) Restore(context.Context, state.Keyed) error { return nil }
func (fault) Checkpoint(*record.Batch) []state.KV        { panic(faultWith) }
func (fault) Due() bool                                  { return false }

func init() {
	steps.MustRegister("fault", steps.Spec{New: func() steps.Config { return &faultConfig{} }, Stateful: true})
}

// TestFaultInCheckpoint: what one stage gave is not committed where another one failed, and the pipeline ends with the reason.
func TestFaultInCheckpoint(t *testing.T) {
	for want, with := range map[string]any{
		"internal error in a checkpoint: boom": "boom",
		"a row is damaged":                     fmt.Errorf("a row is damaged: %w", state.ErrCorrupt),
	} {
		for range 20 { // a commit would come at the same time
			faultWith = with
			e := newEnv(t)
			e.write("in", `{"k":"a","n":1}`+"\n")
			r := e.runner("source: {file: {paths: [DIR/in]}, codec: json}\nsteps: [sum: {}, fault: {}]\nsinks: [collect: {into: "+t.Name()+"}]\n", true)
			err := r.Run(context.Background())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v", err)
			}
			err = e.store.Range(context.Background(), "default/p", "sum", nil, nil, func(k, v []byte) error { return fmt.Errorf("%s is %s", k, v) })
			snap, err2 := e.store.Load(context.Background(), "default/p")
			if err := errors.Join(err, err2); err != nil || len(snap.Splits) != 1 || snap.Splits[0].Position().Offset != 0 {
				t.Fatalf("%+v %v", snap, err)
			}
		}
	}
}
