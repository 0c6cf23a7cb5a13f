// Package stdout is the sink that prints rows, as JSON lines or as a table.
package stdout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("stdout", sinks.Spec{
		Doc: config.Doc{
			Summary: "Prints rows to the standard output.",
			Details: "`table` aligns columns to the first rows that come; later values that are wider shift what is right of them.",
			Example: "stdout: {format: table}",
		},
		New:       func() sinks.Config { return &Config{} },
		Guarantee: func(sinks.Config) string { return "at least once: what was printed can't be taken back" },
		// A person waits for it.
		Batch: &sinks.BatchConfig{Interval: config.Duration(50 * time.Millisecond)},
	})
}

// ErrClosed: the reader of the output has gone (a broken pipe); nothing more can be printed, ever.
var ErrClosed = errors.New("standard output is closed")

// Config is the sink's options.
type Config struct {
	Format string `yaml:"format" doc:"json: an object a line; table: aligned columns, for people." enum:"json,table" default:"json"`

	// Out is where to print; nil: os.Stdout at the time of Build.
	Out io.Writer `yaml:"-"`
}

// Declare reads all fields.
func (*Config) Declare(d *steps.Decl) { d.ReadAll = true }

// Build makes the sink.
func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	out := c.Out
	if out == nil {
		out = os.Stdout
	}
	names := append([]string{}, b.Ship...)
	if c.Format == "table" {
		t := &Table{out: out, open: b.OpenEnded, names: names}
		for _, n := range names {
			t.slots = append(t.slots, b.Slot(n))
		}
		return t, nil
	}
	return &Sink{out: out, enc: record.NewEncoder(b.Table, names, b.OpenEnded)}, nil
}

// Sink prints JSON lines.
type Sink struct {
	out  io.Writer
	enc  *record.Encoder
	done int // bytes of the chunk at hand that an attempt before has printed
}

var (
	_ sinks.Config    = (*Config)(nil)
	_ sinks.Sink      = (*Sink)(nil)
	_ sinks.Sink      = (*Table)(nil)
	_ sinks.Describer = (*Table)(nil)
)

// Encode appends a line.
func (s *Sink) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	return append(s.enc.Append(dst, b, i), '\n'), nil
}

// Deliver prints the chunk. After a failure the next attempt goes on where it ended, since
// it gets the same chunk.
func (s *Sink) Deliver(_ context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	skip := s.done
	for i := range c.Parts {
		p := c.Parts[i].Data
		if skip >= len(p) {
			skip -= len(p)
			continue
		}
		n, err := s.out.Write(p[skip:])
		s.done += n
		skip = 0
		if err != nil {
			return nil, failure(err)
		}
	}
	s.done = 0
	return nil, nil
}

func failure(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return sinks.Permanent(fmt.Errorf("print: %w (%w)", ErrClosed, err))
	}
	return fmt.Errorf("print: %w", err)
}
