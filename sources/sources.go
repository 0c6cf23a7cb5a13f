// Package sources defines what a source is. Sources cut their input into batches
// of one split each; positions, budget, checkpoints and lanes are the runner's.
package sources

import (
	"context"
	"log/slog"
	"time"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/steps"
)

// Source is a running source. It is built for one run of a pipeline.
type Source interface {
	// Run reads until the source is finished (nil), ctx ends (nil) or it can't go on (an error;
	// the pipeline fails with it). What it has sent by then counts, nothing else.
	// It retries what may mend by itself, reporting it with Output.Trouble.
	Run(ctx context.Context, out Output) error
}

// Output is what the runner offers a running source. Its methods may be called
// from several goroutines of the source; batches of one split from one at a time.
type Output interface {
	// Known are the splits that the store has for this pipeline at start.
	Known() []state.Split
	// Fresh: no commit was made for this pipeline yet, so that `start:` applies.
	Fresh() bool
	// Open makes splits usable, in one commit: new ones and changed Meta, Path or Epoch of known
	// ones are durable when it returns, before their first record. Reading goes on at each
	// state's Position(); for a new one the source may set one Recent entry to start elsewhere
	// than at 0. The same split is opened once.
	Open(ctx context.Context, s ...state.Split) ([]*record.Split, error)
	// Update changes a known split's Path, Meta or Done with the next checkpoint.
	Update(s state.Split)
	// Finish tells that no batch of the split will come any more. With done, that is committed as
	// Done with the position that covers its last batch. Without, the split is only released.
	Finish(split *record.Split, done bool)
	// Forget removes a split from the store with the next checkpoint: its data is gone for good.
	Forget(id string)
	// Batch waits for size bytes of the pipeline's budget and gives an empty batch of that split
	// (size: the block to be read and as much for what is made of it).
	Batch(ctx context.Context, split *record.Split, size int) (*record.Batch, error)
	// Send hands the batch over; Start, End, records and slots are set. An empty batch with
	// End past Start is fine: it moves the position. After an error the batch is the runner's too.
	Send(ctx context.Context, b *record.Batch) error
	// Return gives back a batch that isn't sent.
	Return(b *record.Batch)
	// Idle tells that the source has nothing to read from the split now (true) or again has (false).
	Idle(split *record.Split, idle bool)
	// Committed is the split's last committed position.
	Committed(split *record.Split) record.Position
	// Checkpoint asks for an early checkpoint. It doesn't wait; a Committer hears of it.
	Checkpoint()
	// Abort takes the pipeline back to its last commit: nothing that is not committed will be, by this run. The run
	// ends with err, and Run is to return. For a split that another instance has taken over.
	Abort(err error)
	// Trouble reports what the source retries (nil: it is over); status shows it.
	Trouble(err error)
	// Lost counts bytes that can't be read any more, with a reason for log and status.
	Lost(split *record.Split, bytes int64, reason string)
}

// Aligner is an Output that knows how far event time has come in each split, so that a finite source can read its splits side by side:
// windows are then open for as short a time as can be.
type Aligner interface {
	// EventTime is in milliseconds since 1970, math.MinInt64 before the first record. ok is false where no window needs it.
	EventTime(s *record.Split) (ms int64, ok bool)
}

// Committer is a source that wants to hear of commits (brokers' offsets).
type Committer interface {
	Committed(ctx context.Context, positions map[*record.Split]record.Position) error
}

// Prober is a source that can tell whether it would be able to connect, without reading or changing anything: for
// `check --connect`. It is called instead of Run.
type Prober interface {
	Probe(ctx context.Context) error
}

// Config is a source's configuration: a struct that the loader fills.
type Config interface {
	// Declare tells which fields the source writes (`message` and metadata).
	Declare(d *steps.Decl)
	Build(b *Build) (Source, error)
}

// Build is what a source gets to build itself.
type Build struct {
	steps.Build
	Common Common
	Once   bool // read what is there, then end
	// Alone: steps keep state by keys across splits, on this host. Splits that a source would share with other instances
	// must all be here; where others have some of them the source refuses to run.
	Alone bool
	Clock func() time.Time
	Log   *slog.Logger
	// CompilePattern compiles multiline's pattern, %{NAME} of grok included; nil: Go's regexp.
	CompilePattern func(pattern string) (Matcher, error)
}

// Matcher is a compiled pattern; *regexp.Regexp is one. A source may call it from several goroutines.
type Matcher interface {
	Match(p []byte) bool
}

// Spec is a kind of source.
type Spec struct {
	config.Doc
	New func() Config
	// Lines: cuts a stream of bytes into lines, so that multiline and encoding apply to it as
	// text; else one message is one record.
	Lines bool
}

// Common are the keys that stand beside a source's own.
type Common struct {
	Codec     string     `yaml:"codec" doc:"How a record is made of a line or message: its text as the field message, or a JSON object's fields." enum:"line,json" default:"line"`
	Multiline *Multiline `yaml:"multiline" doc:"Join lines to one record."`
	Encoding  string     `yaml:"encoding" doc:"The input's character set, an IANA name such as iso-8859-1 or utf-16le; it is converted to UTF-8. utf-8-escaped is UTF-8 whose other bytes become \\xC3 and the like, so that a text comes out and nothing is lost." default:"utf-8"`
	ID        string     `yaml:"id" doc:"A name for the source in split names and metrics."`
}

// Multiline joins lines to one record, with the options that Logstash's users know.
type Multiline struct {
	Pattern  string          `yaml:"pattern,required" doc:"A regular expression, %{NAME} of grok allowed."`
	Negate   bool            `yaml:"negate" doc:"Lines that do not match are meant."`
	What     string          `yaml:"what,required" doc:"previous: such a line belongs to the record before it; next: to the one after." enum:"previous,next"`
	Timeout  config.Duration `yaml:"timeout" doc:"A record that is still open ends when no line has come for so long." default:"5s"`
	MaxLines int             `yaml:"max_lines" doc:"A record with more lines than this ends." default:"500"`
	MaxBytes config.Size     `yaml:"max_bytes" doc:"A record that has so many bytes (newlines not counted) ends." default:"1MiB"`
}

// Registry holds the kinds of sources by name. Filled by init functions, read-only afterwards.
var Registry = config.NewRegistry[Spec]("source")

// MustRegister adds a kind of source; a name that is taken panics.
func MustRegister(name string, s Spec) { Registry.MustRegister(name, s) }
