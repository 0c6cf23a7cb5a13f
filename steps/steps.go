// Package steps defines what a step is: parsers (folder parsers) and transforms
// (folder transforms) implement it. It also holds what all components get when a
// plan is built: Decl to say which fields they read and write, Build to get slots
// and compiled expressions.
package steps

import (
	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
)

// Step is one worker's instance of a step; a worker calls it from one goroutine at a time.
type Step interface {
	// Apply works on the records in b.Sel. It takes out those that it drops
	// (counted in b.Filtered) or fails (b.Fail); b.Each does both. A record that
	// fails must be left as it was. Nothing of b may be kept.
	Apply(b *record.Batch)
}

// Maker makes a worker's instance. Steps without scratch memory return the same each time.
type Maker func() Step

// Config is a step's configuration: a struct that the loader fills, see package config.
type Config interface {
	// Declare tells which fields the step reads, writes and removes, once, in plan
	// order. Errors are reported with d.Errorf.
	Declare(d *Decl)
	// Build compiles the step. Fields that nothing later reads (b.Live) need not be written.
	Build(b *Build) (Maker, error)
}

// Explainer adds lines to `rsetl explain`: engines and why, and the like.
type Explainer interface {
	Explain() []string
}

// Spec is a kind of step.
type Spec struct {
	config.Doc
	New func() Config
	// CanFail: the step may fail a record, so on_error applies.
	CanFail bool
	// Expands: its steps may make several records of one, with b.Clone, which they count in b.Made and b.Absorbed. They leave
	// Sel in the records' order; the pipeline gives the records positions and numbers in that order.
	Expands bool
	// Stateful: its steps implement pipeline.Stage and run at the lane's ordered end.
	Stateful bool
}

// Holding is what a stateful step holds, for status and metrics.
type Holding struct {
	Windows   int    `json:"windows,omitempty"`   // open ones; of windows that overlap, their slices
	Keys      int    `json:"keys"`                // groups, counted in each window or slice
	Bytes     int    `json:"bytes,omitempty"`     // of memory, about
	Late      int64  `json:"late,omitempty"`      // records that came too late, ever
	Watermark string `json:"watermark,omitempty"` // RFC 3339
	LagMillis int64  `json:"lag_ms,omitempty"`    // how far the watermark is behind the clock
}

// Registry holds the kinds of steps by name. Filled by init functions, read-only afterwards.
var Registry = config.NewRegistry[Spec]("step")

// MustRegister adds a kind of step; a name that is taken panics.
func MustRegister(name string, s Spec) { Registry.MustRegister(name, s) }
