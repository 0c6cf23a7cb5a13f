package pipeline

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// splitTable is what the run knows about its splits: committed, passed the ordered end, changed.
type splitTable struct {
	mu    sync.Mutex
	known map[string]state.Split // as the store has them
	open  []*splitState          // by Split.Index
	dirt  []*splitState          // passed since the last marker
	meta  map[string]state.Split // changed Path, Meta, Done
	gone  []string
}

type splitState struct {
	split     *record.Split
	passed    record.Position // after the last batch that passed the ordered end
	committed record.Position
	event     atomic.Int64 // event time, where a window tells
	dirty     bool
	idle      bool
	lost      int64
}

func (t *splitTable) load(known []state.Split) {
	t.known = map[string]state.Split{}
	t.meta = map[string]state.Split{}
	for _, s := range known {
		t.known[s.ID] = s
	}
}

func (t *splitTable) list() []state.Split {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]state.Split, 0, len(t.known))
	for _, s := range t.known {
		out = append(out, s)
	}
	return out
}

// add makes a split usable for this run.
func (t *splitTable) add(s state.Split) *record.Split {
	t.mu.Lock()
	defer t.mu.Unlock()
	sp := &record.Split{ID: s.ID, Epoch: s.Epoch, Path: s.Path, Index: len(t.open)}
	st := &splitState{split: sp, passed: s.Position(), committed: s.Position()}
	st.event.Store(math.MinInt64)
	t.open = append(t.open, st)
	t.known[s.ID] = s
	return sp
}

func (t *splitTable) at(s *record.Split) *splitState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[s.Index]
}

// pass notes that everything of the split before end has passed the ordered end.
func (t *splitTable) pass(s *record.Split, end record.Position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	st := t.open[s.Index]
	if end.Compare(st.passed) <= 0 {
		return
	}
	st.passed = end
	if !st.dirty {
		st.dirty = true
		t.dirt = append(t.dirt, st)
	}
}

func (t *splitTable) update(s state.Split) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.meta[s.ID]; ok && old.Done {
		s.Done = true
	}
	s.Recent = nil
	t.meta[s.ID] = s
}

func (t *splitTable) finish(s *record.Split) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok := t.meta[s.ID]
	if !ok {
		m = t.known[s.ID]
		m.Recent = nil
	}
	m.Done = true
	t.meta[s.ID] = m
}

func (t *splitTable) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = append(t.gone, id)
}

// dirty tells whether something is not committed.
func (t *splitTable) dirty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.dirt) > 0 || len(t.meta) > 0 || len(t.gone) > 0
}

// cut takes what has changed since the last cut, for a commit: called when a marker passes.
func (t *splitTable) cut(c *state.Commit) (advanced []*splitState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Positions = map[string]state.Advance{}
	for _, st := range t.dirt {
		st.dirty = false
		c.Positions[st.split.ID] = state.Advance{Epoch: st.split.Epoch, To: st.passed}
	}
	advanced, t.dirt = t.dirt, nil
	for _, s := range t.meta {
		c.Splits = append(c.Splits, s)
	}
	clear(t.meta)
	c.Forget, t.gone = t.gone, nil
	return advanced
}

// committed notes what a commit has made durable.
func (t *splitTable) committed(c *state.Commit, advanced []*splitState) map[*record.Split]record.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[*record.Split]record.Position{}
	for _, st := range advanced {
		st.committed = c.Positions[st.split.ID].To
		out[st.split] = st.committed
		k := t.known[st.split.ID]
		k.Recent = append(k.Recent[:len(k.Recent):len(k.Recent)], st.committed)
		if len(k.Recent) > state.Keep {
			k.Recent = k.Recent[1:]
		}
		t.known[st.split.ID] = k
	}
	for _, s := range c.Splits {
		s.Recent = t.known[s.ID].Recent
		t.known[s.ID] = s
	}
	for _, id := range c.Forget {
		delete(t.known, id)
	}
	return out
}

func (t *splitTable) position(s *record.Split) record.Position {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[s.Index].committed
}
