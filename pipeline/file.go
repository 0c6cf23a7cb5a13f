// Package pipeline turns a YAML file into a plan and runs it: loading, field
// analysis, lanes, checkpoints, the outbox, dead letters and the ledger.
package pipeline

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// File is one pipeline file, decoded. Build it into a Plan with Compile.
type File struct {
	Path string
	Name string // namespace/name

	Options Options
	Source  Source
	Steps   []Step
	Sinks   []Sink
	Tests   []Test

	Errs   *config.Errors
	root   *yaml.Node
	shared *Shared
	uses   map[string]*yaml.Node // what of the shared files it uses
	branch *branch               // that is being decoded
}

// Options are the keys of a pipeline file that are not components.
type Options struct {
	Name       string            `yaml:"name" doc:"The pipeline's name; its file's without .yaml by default."`
	Zone       string            `yaml:"zone" doc:"The time zone of date templates and functions, an IANA name." default:"UTC"`
	Workers    int               `yaml:"workers" doc:"Lanes that parse and filter at the same time; order within a split is kept." default:"1" min:"1"`
	Memory     config.Size       `yaml:"memory" doc:"Bytes that may be read and not yet in the sinks' caches; over it the source waits." default:"16MiB"`
	Drain      config.Duration   `yaml:"drain" doc:"How long a stop may take to flush and commit what was read." default:"15s"`
	Checkpoint CheckpointOptions `yaml:"checkpoint" doc:"When positions are committed."`
	DeadLetter DeadLetterOptions `yaml:"dead_letter" doc:"Where records go that could not be processed. To send them on, to a topic or a table, give their files a pipeline of their own: examples/dead-letters.yaml."`
	State      Kept              `yaml:"state" doc:"Where positions, counts and windows are kept: local (default), in the state directory; or {remote: {dsn, prefix: rsetl_, lease: 5s}}, in a MySQL or MariaDB database, which survives the machine: of several instances one runs the pipeline, the others stand by."`
}

// CheckpointOptions are `checkpoint:`.
type CheckpointOptions struct {
	Interval config.Duration `yaml:"interval" doc:"The time between checkpoints: flush every sink, then commit positions." default:"10s" min:"1"`
}

// DeadLetterOptions are `dead_letter:`.
type DeadLetterOptions struct {
	File *DeadLetterFile `yaml:"file" doc:"A file of JSON objects, one a line."`
}

// DeadLetterFile is `dead_letter: {file: …}`.
type DeadLetterFile struct {
	Path    string          `yaml:"path" doc:"The file; ${STATE_DIR} is the state directory. By default dead/NAMESPACE/NAME.ndjson there."`
	MaxSize config.Size     `yaml:"max_size" doc:"Letters over this size are let go, the oldest first, with a count; 0: none." default:"1GiB"`
	MaxAge  config.Duration `yaml:"max_age" doc:"Letters older than this are let go, with a count; 0: none." default:"90d"`
}

// Bounds are those of what is kept, in bytes and time; 0: none.
func (o *DeadLetterOptions) Bounds() (size int64, age time.Duration) {
	f := o.File
	if f == nil {
		f = &DeadLetterFile{}
		config.Defaults(f)
	}
	return int64(f.MaxSize), f.MaxAge.D()
}

// Path is where letters go; "" for the default place.
func (o *DeadLetterOptions) Path() string {
	if o.File == nil {
		return ""
	}
	return o.File.Path
}

// Source is the input with the keys that all sources share.
type Source struct {
	Kind   string
	Node   *yaml.Node // of the kind's key
	Spec   sources.Spec
	Config sources.Config
	Common sources.Common
	broken bool // it has mistakes: what it does is not known
}

// Step is one step with the keys that all steps share.
type Step struct {
	Kind   string
	Node   *yaml.Node
	Spec   steps.Spec
	Config steps.Config
	Common StepCommon
	path   string
	branch *branch // of a route, nil: none
	broken bool    // it has mistakes: what it does is not known
}

// StepCommon are the keys that stand beside a step's own.
type StepCommon struct {
	Name    string      `yaml:"name" doc:"A name for dead letters, metrics and a sink's from; the kind by default."`
	When    *steps.Expr `yaml:"when" doc:"The step is applied only to records for which this is TRUE; others pass unchanged."`
	OnError string      `yaml:"on_error" doc:"What happens to a record that the step fails: dead_letter, drop (counts as filtered) or keep (adds error.message and error.step)." enum:"dead_letter,drop,keep" default:"dead_letter"`
}

// Sink is one sink with the keys that all sinks share.
type Sink struct {
	Kind   string
	Node   *yaml.Node
	Spec   sinks.Spec
	Config sinks.Config
	Common SinkCommon
	path   string
	branch *branch // of a route, nil: none
	broken bool    // it has mistakes: what it does is not known
}

// SinkCommon are the keys that stand beside a sink's own.
type SinkCommon struct {
	Name      string            `yaml:"name" doc:"A name for metrics, the report and the store; the kind by default."`
	From      string            `yaml:"from" doc:"The name of the step after which records go to this sink; the last one by default. source: as they were read."`
	When      *steps.Expr       `yaml:"when" doc:"Only records for which this is TRUE."`
	OnFailure sinks.OnFailure   `yaml:"on_failure" doc:"block (default): what can't be delivered is tried for ever and in time stops the source. {dead_letter: 10m}: what the sink holds goes to the dead letters once it has failed for so long, until it works again; dead_letter alone: 5m."`
	Batch     sinks.BatchConfig `yaml:"batch" doc:"How rows are cached and sent."`
}

// Test is one inline test.
type Test struct {
	Name       string      `yaml:"name,required" doc:"What the test shows."`
	Lines      []string    `yaml:"lines" doc:"Input as lines, through the source's codec."`
	Records    []yaml.Node `yaml:"records" doc:"Input as records: mappings of fields."`
	At         string      `yaml:"at" doc:"The clock's time, RFC 3339." default:"2024-01-01T00:00:00Z"`
	Expect     []yaml.Node `yaml:"expect" doc:"All output in order; of each record the named fields."`
	ExpectDead []yaml.Node `yaml:"expect_dead" doc:"The dead letters in order: a text that the reason contains, or {step, reason, raw}."`

	node *yaml.Node
}
