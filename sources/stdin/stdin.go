// Package stdin reads lines from standard input.
package stdin

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/text"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

const blockSize = 128 << 10

func init() {
	sources.MustRegister("stdin", sources.Spec{
		Doc: config.Doc{
			Summary: "Reads lines from standard input until it ends.",
			Details: "What came through a pipe can't be read a second time: after a crash, what had been read but not delivered is lost, and each start is a split of its own whose offsets begin at 0. " +
				"Where that matters, write to a file and read it with the source `file`.\n\nLines, `max_line` and the metadata fields are as in the source `file`; `@path` is `stdin`.",
			Example: "stdin: {}\n",
		},
		New:   func() sources.Config { return &Config{} },
		Lines: true,
	})
}

// Config is the options of the source.
type Config struct {
	MaxLine config.Size `yaml:"max_line" doc:"The longest line." default:"1MiB" min:"1"`

	in io.Reader // nil: os.Stdin
}

// Declare tells what the source writes.
func (c *Config) Declare(d *steps.Decl) { text.Declare(d) }

// Build makes the source.
func (c *Config) Build(b *sources.Build) (sources.Source, error) {
	f, err := text.FromBuild(b, int(c.MaxLine))
	if err != nil {
		return nil, err
	}
	s := &Source{format: f, table: b.Table, in: c.in, now: b.Clock}
	if s.in == nil {
		s.in = os.Stdin
	}
	if s.now == nil {
		s.now = time.Now
	}
	return s, nil
}

// Source reads standard input.
type Source struct {
	format *text.Format
	table  *record.Table
	in     io.Reader
	now    func() time.Time
}

var _ sources.Source = (*Source)(nil)

// chunk is one read. The reader goroutine fills buf and hands it over; it gets it back when it was used.
type chunk struct {
	buf []byte
	n   int
	err error
}

// Run reads to the end. A read of a terminal or pipe can't be interrupted, so where ctx ends first, the
// goroutine that reads stays until the read returns; it does nothing then.
func (s *Source) Run(ctx context.Context, out sources.Output) error {
	var id [16]byte
	rand.Read(id[:])
	sp, err := out.Open(ctx, state.Split{ID: hex.EncodeToString(id[:]), Path: "stdin"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chunks, free := make(chan chunk), make(chan []byte, 2)
	free <- make([]byte, blockSize)
	free <- make([]byte, blockSize)
	go read(ctx, s.in, chunks, free)

	c := s.format.NewCutter(s.table, sp[0].ID, "stdin", 0, nil)
	idle := false
	for {
		var ch chunk
		got := false
		select {
		case ch = <-chunks:
			got = true
		default:
		}
		mode := text.More
		if !got {
			if !idle {
				idle = true
				out.Idle(sp[0], true)
			}
			var due <-chan time.Time
			if t := c.Deadline(); !t.IsZero() {
				due = time.After(max(t.Sub(s.now()), time.Millisecond))
			}
			select {
			case ch = <-chunks:
			case <-due:
				if s.now().Before(c.Deadline()) {
					continue
				}
				mode = text.Flush
			case <-ctx.Done():
				return nil
			}
		}
		if idle {
			idle = false
			out.Idle(sp[0], false)
		}
		if ch.err != nil {
			mode = text.Final
		}
		b, err := out.Batch(ctx, sp[0], c.Room(ch.n))
		if err != nil {
			return ended(ctx, err)
		}
		copy(c.Begin(b, ch.n), ch.buf[:ch.n])
		c.Cut(b, ch.n, mode)
		if ch.buf != nil {
			free <- ch.buf
		}
		if b.Start == b.End && b.Len() == 0 {
			out.Return(b)
		} else if err := out.Send(ctx, b); err != nil {
			return ended(ctx, err)
		}
		if ch.err != nil {
			if ch.err != io.EOF {
				return fmt.Errorf("cannot read standard input: %w", ch.err)
			}
			out.Finish(sp[0], true)
			return nil
		}
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func read(ctx context.Context, in io.Reader, chunks chan<- chunk, free <-chan []byte) {
	for {
		var buf []byte
		select {
		case buf = <-free:
		case <-ctx.Done():
			return
		}
		n, err := in.Read(buf)
		select {
		case chunks <- chunk{buf, n, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}
