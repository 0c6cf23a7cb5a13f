// Package state is the store behind checkpoints: split positions, component and
// window state, the outbox and the ledger's counters of each pipeline.
//
// A checkpoint is one Commit: all of it is durable when Commit returns nil, none
// of it otherwise. Implementations live in folders below (pebble, mysql; stores has those of one process).
package state

import (
	"context"
	"errors"

	"github.com/rsetl/rsetl/record"
)

// Keep is how many committed positions of a split are remembered, the newest last.
const Keep = 16

// Split is what is known about one split of a pipeline.
type Split struct {
	ID     string
	Epoch  int64
	Path   string            // what a person knows it by
	Meta   map[string]string // the source's own: device, inode, fingerprint, ...
	Done   bool              // finished: nothing more will come
	Recent []record.Position // committed positions, at most Keep, oldest first; empty before the first commit
}

// Position is the last committed one; the split's start where there is none.
func (s *Split) Position() record.Position {
	if n := len(s.Recent); n > 0 {
		return s.Recent[n-1]
	}
	return record.Position{}
}

// Firing is one outbox entry: a record on its way to a sink or a later stage,
// under a sequence number that never repeats within the target.
type Firing struct {
	Target string // the sink's or stage's name
	Seq    int64
	Data   []byte // the encoded record, see record.AppendRecord
}

// Snapshot is a pipeline's committed state as a start finds it.
type Snapshot struct {
	Splits   []Split
	Counters map[string]int64  // the ledger, by name
	Parts    map[string][]byte // small state of sinks and others, by name
	NextSeq  map[string]int64  // per outbox target: the next sequence number
	Fresh    bool              // nothing was ever committed for this pipeline
}

// Commit is one checkpoint of a pipeline. Absent things stay as they were.
type Commit struct {
	Positions map[string]Advance // by split id
	Splits    []Split            // new splits, or changed Path, Meta, Epoch, Done; Recent counts for new ones and where Epoch is raised
	Forget    []string           // split ids to remove
	Counters  map[string]int64   // all of them, absolute values; nil: as they were
	Parts     map[string][]byte  // nil value: removed
	State     []KV               // keyed state of stages; nil Value: removed
	Firings   []Firing           // new outbox entries
	Acked     map[string]int64   // per target: entries with Seq <= this leave the outbox
}

// Advance is a split's new committed position. Epoch must be the stored one.
type Advance struct {
	Epoch int64
	To    record.Position
}

// KV is one entry of a stage's keyed state.
type KV struct {
	Stage      string
	Key, Value []byte
	Row        *Row // what Value holds, for people; nil where Keyed.Rows is false, and for other entries than groups
}

// Row is a window's group as a person reads it in a store that can be queried.
type Row struct {
	Start, End int64  // milliseconds since 1970
	Firing     uint64 // how often it has fired
	Key        []byte // a JSON object: the fields of `by`
	Aggregates []byte // a JSON object: the aggregates' results so far, by their text
}

// Keyed reads one stage's committed keyed state. It may be used as long as the run goes on, at the ordered end: what
// was given to a commit is there from the next marker on. A store that is down is waited for; an error means that the run is over.
type Keyed interface {
	Range(prefix, after []byte, f func(key, value []byte) error) error
	Get(keys [][]byte, f func(i int, value []byte) error) error
	Rows() bool // KV.Row is wanted
}

// Store holds the state of all pipelines of one state directory or database.
// All methods may be called concurrently; commits of one pipeline are not.
type Store interface {
	// Load reads a pipeline's state; a pipeline that is not there is Fresh.
	Load(ctx context.Context, pipeline string) (*Snapshot, error)
	// Commit makes c durable as a whole and keeps nothing of it. After an error nothing of it is visible,
	// and the same commit may be tried again. Where the store itself broke down in the middle, whether it is
	// there as a whole is known only after that try, or a Load.
	Commit(ctx context.Context, pipeline string, c *Commit) error
	// Outbox yields the target's entries after seq in order, at most limit of them.
	Outbox(ctx context.Context, pipeline, target string, after int64, limit int) ([]Firing, error)
	// Range calls f for the stage's keyed state with that key prefix and keys behind after (nil: all), in key order, until f
	// returns an error, which it returns.
	Range(ctx context.Context, pipeline, stage string, prefix, after []byte, f func(key, value []byte) error) error
	// Get calls f with the index and the value of those of the keys that are there, in any order, until f returns an error,
	// which it returns.
	Get(ctx context.Context, pipeline, stage string, keys [][]byte, f func(i int, value []byte) error) error
	// Pipelines names those that have state.
	Pipelines(ctx context.Context) ([]string, error)
	// Remove deletes all state of a pipeline; Rename moves it, as a whole, to another name that must be free.
	// Where there is none to remove or to move, that is no error, so that both can be done again.
	Remove(ctx context.Context, pipeline string) error
	Rename(ctx context.Context, from, to string) error
	Close() error
}

// Errors that callers decide on.
var (
	// ErrInUse: another process has the state directory open.
	ErrInUse = errors.New("state directory is in use by another process")
	// ErrForeign: the directory holds something that is not rsetl's, or of a newer format.
	ErrForeign = errors.New("not an rsetl state directory")
	// ErrCorrupt: the store's files are damaged.
	ErrCorrupt = errors.New("state is damaged")
	// ErrFailed: the store can't go on, and trying again doesn't help. A store that may recover by itself gives
	// other errors meanwhile.
	ErrFailed = errors.New("state store failed")
	// ErrConflict: an advance's epoch or a rename's target doesn't fit the store.
	ErrConflict = errors.New("state changed by someone else")
)
