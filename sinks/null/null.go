// Package null is the sink that takes everything and keeps nothing: to measure a
// pipeline, or to run one for its dead letters.
package null

import (
	"context"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("null", sinks.Spec{
		Doc: config.Doc{
			Summary: "Takes everything and keeps nothing.",
			Example: "null: {}",
		},
		New:       func() sinks.Config { return &Config{} },
		Guarantee: func(sinks.Config) string { return "none: nothing is kept" },
	})
}

// Config has no options.
type Config struct{}

// Declare reads all fields: what is measured is the whole pipeline.
func (*Config) Declare(d *steps.Decl) { d.ReadAll = true }

func (*Config) Build(*steps.Build) (sinks.Sink, error) { return Sink{}, nil }

// Sink drops its rows.
type Sink struct{}

var (
	_ sinks.Config = (*Config)(nil)
	_ sinks.Sink   = Sink{}
)

func (Sink) Encode(dst []byte, _ *record.Batch, _ int) ([]byte, error) { return dst, nil }

func (Sink) Deliver(context.Context, *sinks.Chunk) ([]sinks.Reject, error) { return nil, nil }
