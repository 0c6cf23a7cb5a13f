// Package sinks defines what a sink is. A sink's author writes Encode, Deliver
// and a Spec; caching, batching, flushing, retries, partial failures, dead
// letters and accounting are shared code in sinks/batch.
package sinks

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// Sink is a running sink.
type Sink interface {
	// Encode appends record i of b in the form that Deliver sends. It is called
	// by any number of lanes at once, must keep nothing of b and must not change it.
	// An error rejects this record with that reason (a dead letter), never the batch.
	Encode(dst []byte, b *record.Batch, i int) ([]byte, error)
	// Deliver sends the chunk and returns when all of it is durable, except for
	// the rows it reports as rejected. An error means that nothing may be assumed
	// delivered: the same chunk is tried again after a backoff, for ever; wrap it
	// with RetryAfter to say when. The retry gets the same *Chunk, so a sink may remember what of it is settled. Chunks that share no split may be delivered
	// concurrently, up to in_flight; a split has one chunk in flight at a time.
	Deliver(ctx context.Context, c *Chunk) ([]Reject, error)
}

// Starter is a sink that opens something. Start may be retried after an error
// and is followed by Stop even where it failed half-way. Neither runs concurrently
// with Deliver.
type Starter interface {
	Start(ctx context.Context, env *Env) error
	Stop(ctx context.Context) error
}

// Prober is a sink that can tell whether it would be able to connect, without writing anything: for `check --connect`.
// It is called instead of Start.
type Prober interface {
	Probe(ctx context.Context) error
}

// Identified is a sink whose encoded rows depend on the pipeline's name. Identify is called before anything is encoded, with
// the name that Env.Pipeline will have.
type Identified interface {
	Identify(pipeline string)
}

// Marked is a sink whose durability is tied to the pipeline's commit, such as a
// file that is truncated to its committed length at start.
type Marked interface {
	// Mark is called when everything before a checkpoint's marker has been
	// delivered. It makes that durable and returns the state to commit (nil: no
	// change). Until Committed, nothing is delivered; a delivery or Mark that comes all the
	// same tells that the commit was never tried.
	Mark(ctx context.Context) (state []byte, err error)
	// Committed is called once the state that Mark returned has been committed.
	Committed(ctx context.Context) error
}

// Preparer is a sink that must have something committed before it may deliver
// rows, such as a file's inode before the first byte. When Ready is false before a
// delivery, and after a Deliver that returned ErrUnprepared, the core calls Prepare, commits
// what it returns and calls Prepared, all between deliveries. That commit holds no
// positions, so the state must count nothing that was delivered since the last Committed.
// A Preparer gets one chunk at a time, whatever in_flight says.
type Preparer interface {
	Ready() bool
	// Prepare returns the last committed state plus what is to come.
	Prepare(ctx context.Context) (state []byte, err error)
	Prepared(ctx context.Context) error
}

// ErrUnprepared is returned by Deliver of a Preparer when this chunk needs a commit first
// (Ready then says false). Nothing of the chunk was delivered.
var ErrUnprepared = errors.New("sink needs a commit before it can deliver")

// Describer turns an encoded row into the JSON object that a dead letter shows.
type Describer interface {
	Describe(dst, row []byte) []byte
}

// Mapper is a sink whose rows, as Describe shows them, have other names than the record's fields: columns. FieldOf gives
// the field that a name is filled from, ok false where that is an expression. A replayed dead letter needs it.
type Mapper interface {
	FieldOf(name string) (field string, ok bool)
}

// Abandoner is a sink that knows which rows of a chunk are delivered when its Deliver fails.
type Abandoner interface {
	// Abandon is called when a chunk is given up (on_failure: dead_letter), after its last Deliver. It returns the rows
	// that are not delivered, with why where that is known, and forgets the chunk.
	Abandon(c *Chunk) []Reject
}

// Positioned is a transactional sink: it stores the position with the rows and
// skips what it has already, so that delivery is exactly once in effect. It
// reports in Chunk.Skipped how many rows it skipped.
type Positioned interface {
	Positioned()
}

// Chunk is what one Deliver gets: rows of one or several splits, each split's in order.
type Chunk struct {
	Parts   []Part
	Skipped int // set by Deliver: rows that were known to be there already
	// Letters writes the dead letters of rejected rows and syncs them. A
	// transactional sink calls it before it commits and returns no rejects; for
	// others the core does it.
	Letters func(rejects []Reject) error
}

// Rows is the number of rows in all parts.
func (c *Chunk) Rows() int {
	n := 0
	for i := range c.Parts {
		n += len(c.Parts[i].Ends)
	}
	return n
}

// Part is the rows of one split. All of it is valid during Deliver only.
type Part struct {
	Split *record.Split
	Data  []byte            // the encoded rows, one after another
	Ends  []int             // Ends[i] is the end of row i in Data
	Pos   []record.Position // Pos[i] is the position of row i's record
}

// Row is the encoded row i.
func (p *Part) Row(i int) []byte {
	from := 0
	if i > 0 {
		from = p.Ends[i-1]
	}
	return p.Data[from:p.Ends[i]:p.Ends[i]]
}

// Reject is one row that can't be delivered, ever.
type Reject struct {
	Part, Row int
	Reason    string
}

// Env is what a sink gets at Start.
type Env struct {
	Pipeline string // namespace/name; a renamed pipeline keeps its first, so that positions at the sink stay known
	Name     string // the sink's name within the pipeline
	Log      *slog.Logger
	Fresh    bool   // no position of this pipeline is committed yet: overwrite and replace may act
	State    []byte // what Mark last returned and was committed; nil at first
	StateDir string // where the pipeline may keep files; "" where there is none
}

// retryAfter is an error with the server's wish when to try again.
type retryAfter struct {
	error
	after time.Duration
}

func (e retryAfter) Unwrap() error { return e.error }

// RetryAfter wraps a Deliver error with the time after which to try again.
func RetryAfter(err error, d time.Duration) error { return retryAfter{err, d} }

// After gives the time that RetryAfter set.
func After(err error) (time.Duration, bool) {
	var r retryAfter
	ok := errors.As(err, &r)
	return r.after, ok
}

// Config is a sink's configuration: a struct that the loader fills, see package config.
type Config interface {
	// Declare tells which fields the sink reads.
	Declare(d *steps.Decl)
	// Build makes the sink; it opens and connects to nothing.
	Build(b *steps.Build) (Sink, error)
}

// Spec is a kind of sink.
type Spec struct {
	config.Doc
	New func() Config
	// Guarantee says what is promised and what voids it, for `rsetl explain`.
	Guarantee func(Config) string
	// Batch gives defaults that differ from the general ones.
	Batch *BatchConfig
}

// BatchConfig is a sink's `batch:`.
type BatchConfig struct {
	Size     int             `yaml:"size" doc:"Rows: reaching it flushes; a larger flush is cut into chunks of this size." default:"1000"`
	Bytes    config.Size     `yaml:"bytes" doc:"Encoded bytes: reaching it flushes." default:"1MiB"`
	Interval config.Duration `yaml:"interval" doc:"Longest time a row waits, per split." default:"1s"`
	Memory   config.Size     `yaml:"memory" doc:"Over it the adding lane waits for a flush." default:"8MiB"`
	InFlight int             `yaml:"in_flight" doc:"Chunks delivered at the same time; a split has one at a time." default:"1"`
}

// OnFailure is a sink's `on_failure:`.
type OnFailure struct {
	After config.Duration // give up what can't be delivered for so long; 0: never
}

// giveUpAfter is how long `on_failure: dead_letter` waits.
const giveUpAfter = 5 * time.Minute

// UnmarshalConfig reads `block`, `dead_letter` or `{dead_letter: 10m}`.
func (o *OnFailure) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	if n.Kind == yaml.MappingNode {
		var long struct {
			DeadLetter config.Duration `yaml:"dead_letter,required" doc:"After so long."`
		}
		c.DecodeStruct(n, &long)
		if o.After = long.DeadLetter; o.After <= 0 && len(n.Content) > 0 {
			c.Errorf(n, "dead_letter: want a time above 0, as in {dead_letter: 10m}")
		}
		return
	}
	switch s, ok := c.Scalar(n, "block, dead_letter, or {dead_letter: 10m}"); {
	case !ok, s == "block":
	case s == "dead_letter":
		o.After = config.Duration(giveUpAfter)
	default:
		c.Errorf(n, "unknown value %q; write block, dead_letter, or {dead_letter: 10m}", s)
	}
}

// JSONSchema is how it appears in the schema.
func (OnFailure) JSONSchema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": []string{"block", "dead_letter"}},
		map[string]any{"type": "object", "properties": map[string]any{"dead_letter": map[string]any{"type": "string"}}, "required": []string{"dead_letter"}, "additionalProperties": false},
	}}
}

// Registry holds the kinds of sinks by name. Filled by init functions, read-only afterwards.
var Registry = config.NewRegistry[Spec]("sink")

// MustRegister adds a kind of sink; a name that is taken panics.
func MustRegister(name string, s Spec) { Registry.MustRegister(name, s) }

// permanent is an error that trying again can't mend.
type permanent struct{ error }

func (e permanent) Unwrap() error { return e.error }

// Permanent wraps a Start error that trying again can't mend, such as `if_exists: fail`: the pipeline fails with it.
func Permanent(err error) error { return permanent{err} }

// IsPermanent tells whether Permanent made the error.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}
