package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"slices"
	"sort"
	"sync"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/state"
)

// gate holds the source back while the run is paused. The zero gate is open.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when the gate opens; nil: it is open
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case shut && g.shut == nil:
		g.shut = make(chan struct{})
	case !shut && g.shut != nil:
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if shut == nil {
			return nil
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Pause holds the source back: it keeps its files and connections and reads nothing more. What was read
// goes its way; checkpoints go on. It may be called before Run.
func (r *Runner) Pause() { r.gate.set(true) }

// Resume ends a Pause.
func (r *Runner) Resume() { r.gate.set(false) }

// Flush makes a checkpoint now and waits for it: what was read before the call is then durable in every sink
// and committed. While a sink is down it waits until ctx ends. In a run that is ending it waits for the end.
func (r *Runner) Flush(ctx context.Context) error {
	done := make(chan struct{})
	select {
	case r.flushes <- done:
	case <-r.abort.Done():
		return r.flushEnded()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the checkpoint before: %w", ctx.Err())
	}
	select {
	case <-done:
		return nil
	case <-r.abort.Done():
		return r.flushEnded()
	case <-ctx.Done():
		return fmt.Errorf("waiting for the checkpoint: %w", ctx.Err())
	}
}

func (r *Runner) flushEnded() error {
	if cause := context.Cause(r.abort); cause != errEnded {
		return cause
	}
	return nil // the drain has committed everything
}

// Started tells whether every sink has started, or has said why it can't yet.
func (r *Runner) Started() bool {
	for _, c := range r.caches {
		if st := c.Status(); !st.Started && !st.Blocked {
			return false
		}
	}
	return true
}

// LastCheckpoint is when this run last committed one; zero before the first.
func (r *Runner) LastCheckpoint() time.Time {
	r.ledger.mu.Lock()
	defer r.ledger.mu.Unlock()
	return r.ledger.last
}

// Lagger is a source that knows how much of a split is still to be read.
type Lagger interface {
	// Lag gives the bytes (a broker's source: messages) behind the split's committed position.
	Lag(s *state.Split) (n int64, ok bool)
}

// TimeLagger is a source that knows how long a split's records have been waiting for it.
type TimeLagger interface {
	// LagTime is how long ago the first record behind the split's committed position got there, 0 where there is none.
	LagTime(s *state.Split) (d time.Duration, ok bool)
}

// ErrorCounter is a source that counts what failed between it and its servers since the run began, by kind: a few kinds, always the same.
type ErrorCounter interface {
	Errors() map[string]int64
}

// SplitStatus is one split's committed position.
type SplitStatus struct {
	Split  string `json:"split"`
	Path   string `json:"path,omitempty"`
	Epoch  int64  `json:"epoch,omitempty"`
	Offset int64  `json:"offset"`
	Index  int32  `json:"index,omitempty"`
	Done   bool   `json:"done,omitempty"`
	Lag    *int64 `json:"lag,omitempty"` // absent where the source can't tell
	// LagMillis is how long ago the first record that isn't committed got there; absent where the source can't tell.
	LagMillis *int64 `json:"lag_ms,omitempty"`
}

// Positions lists the splits that the store has, by path.
func (r *Runner) Positions() []SplitStatus {
	lag, _ := r.plan.Source.(Lagger)
	late, _ := r.plan.Source.(TimeLagger)
	known := r.splits.list()
	out := make([]SplitStatus, 0, len(known))
	for i := range known {
		s := &known[i]
		at := s.Position()
		p := SplitStatus{Split: s.ID, Path: s.Path, Epoch: s.Epoch, Offset: at.Offset, Index: at.Index, Done: s.Done}
		if lag != nil && !s.Done {
			if n, ok := lag.Lag(s); ok {
				p.Lag = &n
			}
		}
		if late != nil && !s.Done {
			if d, ok := late.LagTime(s); ok {
				p.LagMillis = new(d.Milliseconds())
			}
		}
		out = append(out, p)
	}
	sortSplits(out)
	return out
}

// CommittedPositions lists the splits of a pipeline that doesn't run, by path.
func CommittedPositions(snap *state.Snapshot) []SplitStatus {
	out := []SplitStatus{}
	for i := range snap.Splits {
		s := &snap.Splits[i]
		at := s.Position()
		out = append(out, SplitStatus{Split: s.ID, Path: s.Path, Epoch: s.Epoch, Offset: at.Offset, Index: at.Index, Done: s.Done})
	}
	sortSplits(out)
	return out
}

func sortSplits(out []SplitStatus) {
	sort.Slice(out, func(i, j int) bool {
		if out[i].Path != out[j].Path {
			return out[i].Path < out[j].Path
		}
		return out[i].Split < out[j].Split
	})
}

// Lag sums up what the splits' sources know of it; ok is false where none does.
func (r *Runner) Lag() (sum int64, ok bool) {
	lag, is := r.plan.Source.(Lagger)
	if !is {
		return 0, false
	}
	known := r.splits.list()
	for i := range known {
		if s := &known[i]; !s.Done {
			if n, has := lag.Lag(s); has {
				sum, ok = sum+n, true
			}
		}
	}
	return sum, ok
}

// LagTime is the longest of the splits' own; ok is false where none is known.
func (r *Runner) LagTime() (longest time.Duration, ok bool) {
	late, is := r.plan.Source.(TimeLagger)
	if !is {
		return 0, false
	}
	known := r.splits.list()
	for i := range known {
		if s := &known[i]; !s.Done {
			if d, has := late.LagTime(s); has {
				longest, ok = max(longest, d), true
			}
		}
	}
	return longest, ok
}

// SourceErrors counts what failed between the source and its servers, by kind; nil where it doesn't count.
func (r *Runner) SourceErrors() map[string]int64 {
	if c, is := r.plan.Source.(ErrorCounter); is {
		return c.Errors()
	}
	return nil
}

// CommittedReport is the ledger of a pipeline that doesn't run, as the store has it.
func CommittedReport(name string, s *state.Snapshot) Report {
	c := s.Counters
	rep := Report{Pipeline: name, In: c["in"], Made: c["made"], Out: c["out"], Filtered: c["filtered"], Absorbed: c["absorbed"],
		Dead: c["dead"], LostBytes: c["lost_bytes"], DeadLetGo: c["dead_let_go"]}
	rep.InFlight = rep.In + rep.Made - rep.Out - rep.Filtered - rep.Absorbed - rep.Dead
	const head, tail = "sink.", ".received"
	for key := range c {
		if len(key) <= len(head)+len(tail) || key[:len(head)] != head || key[len(key)-len(tail):] != tail {
			continue
		}
		n := key[len(head) : len(key)-len(tail)]
		k := loadCounts(c, n)
		rep.Sinks = append(rep.Sinks, SinkReport{Name: n, Received: k.Received, Delivered: k.Delivered, Rejected: k.Rejected, Skipped: k.Skipped,
			Held: k.Received - k.Delivered - k.Rejected - k.Skipped})
	}
	sort.Slice(rep.Sinks, func(i, j int) bool { return rep.Sinks[i].Name < rep.Sinks[j].Name })
	if text := s.Parts[holdingPart]; text != nil && json.Unmarshal(text, &rep.Stages) == nil {
		for name, h := range rep.Stages {
			h.LagMillis = 0 // it was then
			rep.Stages[name] = h
		}
	}
	return rep
}

// Version is a hash of the file's parsed content: comments, blanks and styles of quoting don't count. It is ""
// where the file is no YAML. What it uses of shared files counts. Variables count by their names, so that nothing of a secret is in it.
func (f *File) Version() string {
	if f.root == nil {
		return ""
	}
	h := sha256.New()
	hashNode(h, f.root)
	for _, use := range slices.Sorted(maps.Keys(f.uses)) {
		fmt.Fprintf(h, "%q", use)
		hashNode(h, f.uses[use])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashNode(h hash.Hash, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		fmt.Fprintf(h, "*%q", n.Value)
		return
	}
	fmt.Fprintf(h, "&%q %s %q %d(", n.Anchor, n.ShortTag(), n.Value, len(n.Content))
	for _, c := range n.Content {
		hashNode(h, c)
	}
	h.Write([]byte{')'})
}
