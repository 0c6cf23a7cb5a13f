package csv

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// headed is the step of autodetect_column_names: a stage (see pipeline.Stage), since a split's first row, which may be in
// another batch or have been read before a restart, names the columns of the others.
type headed struct {
	*step
	name    string              // the step's, in the store
	heads   map[string][]string // columns by split
	changed map[string]bool     // since the last checkpoint
	split   string
}

// Apply takes a split's first row as its header and gives the others' columns its names.
func (h *headed) Apply(b *record.Batch) {
	h.split = ""
	if b.Split != nil {
		h.split = b.Split.ID
	}
	h.step.Apply(b)
}

// header takes the row in vals, record i, as the split's header where it has none yet, or where the row is at the very
// beginning: the split is read again.
func (h *headed) header(i int) (taken bool) {
	if _, ok := h.heads[h.split]; ok && h.b.Pos(i) != (record.Position{}) {
		return false
	}
	names := make([]string, len(h.vals))
	for k, v := range h.vals {
		if v.Kind() == record.String {
			names[k] = string(h.b.Bytes(v))
		}
		if names[k] == "" {
			names[k] = "column" + strconv.Itoa(k+1)
		}
	}
	h.heads[h.split] = names
	h.changed[h.split] = true
	return true
}

// named sets the fields that the header names.
func (h *headed) named(i int) {
	head := h.heads[h.split]
	h.names.Begin()
	h.names.Open(i)
	for k, v := range h.vals {
		if h.skipEmpty && empty(v) {
			continue
		}
		switch {
		case k < len(head):
			h.key = append(h.key[:0], head[k]...)
		case h.auto:
			h.key = strconv.AppendInt(append(h.key[:0], "column"...), int64(k+1), 10)
		default:
			return
		}
		f := h.names.Find(h.key)
		if to, ok := h.convert[f.Key]; ok {
			v = h.to(v, to)
		}
		h.names.Put(i, f, v)
	}
}

// Restore reads the headers of the splits.
func (h *headed) Restore(_ context.Context, load state.Keyed) error {
	return load.Range(nil, nil, func(key, value []byte) error {
		var names []string
		if err := json.Unmarshal(value, &names); err != nil {
			return fmt.Errorf("csv: the header of split %q in the state: %w", key, err)
		}
		h.heads[string(key)] = names
		return nil
	})
}

// Checkpoint gives the headers that are new, and those of splits that ended.
func (h *headed) Checkpoint(*record.Batch) []state.KV {
	var out []state.KV
	for split := range h.changed {
		kv := state.KV{Stage: h.name, Key: []byte(split)}
		if names, ok := h.heads[split]; ok {
			kv.Value, _ = json.Marshal(names)
		}
		out = append(out, kv)
	}
	clear(h.changed)
	return out
}

// Due tells that nothing fires.
func (h *headed) Due() bool { return false }

// SplitOpened does nothing.
func (h *headed) SplitOpened(*record.Split) {}

// SplitIdle does nothing.
func (h *headed) SplitIdle(*record.Split, bool) {}

// SplitEnded forgets the split's header.
func (h *headed) SplitEnded(s *record.Split) {
	if _, ok := h.heads[s.ID]; ok {
		delete(h.heads, s.ID)
		h.changed[s.ID] = true
	}
}
