// Package deadletter keeps the records that could not be processed, one JSON object a line.
//
// The file is never truncated but for an unterminated last line, and a letter is synced before
// anything that passes it commits. After a restart the letters behind the last checkpoint are read,
// so that a record that comes again is not written twice.
package deadletter

import (
	"time"

	"github.com/rsetl/rsetl/record"
)

// Letter is one record with the reason why it is here. Exactly one of Step and Sink is set.
type Letter struct {
	Time     time.Time
	Pipeline string
	Step     string // name of the step, or "source"
	Sink     string // name of the sink that rejected it
	Reason   string
	Split    *record.Split
	Pos      record.Position
	Record   []byte // a JSON object: the fields as they were; nil where none were made
	Raw      []byte // as the source read it; nil where unknown
}

// Sink is what components write letters to.
type Sink interface {
	// Append adds a letter to what the next Sync makes durable. Nothing of l is kept.
	Append(l *Letter) error
	// Sync makes all appended letters durable.
	Sync() error
}
