package pipeline

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/state"
)

// Replayed letters go through the outbox: a step's failure enters at the pipeline's start again, for the sinks behind that
// step, a sink's reject goes to that sink alone. That a letter was replayed is part of the same commit, so it is so once,
// whatever is killed when.

// replayTarget is the outbox's name for the failures of a step, apart from sinks' and stages'.
func replayTarget(step string) string { return replayPrefix + step }

const replayPrefix = "replay:"

// feedReplay takes letters through the pipeline, for the sinks behind the step that failed them; those before it
// have them.
func (r *Runner) feedReplay(it *item, step string) {
	w := r.end
	w.least = 1 // a step that is no more
	if step == "source" {
		w.least = 0
	}
	for k, n := range r.plan.Nodes {
		if n.Name == step {
			w.least = k + 1
		}
	}
	w.run(it, 0, len(r.plan.Nodes))
	w.least = 0
}

// replayedStage holds the ids of replayed letters in the store, under a name that no step can have.
const replayedStage = "dead letters"

// replayChunk bounds how many letters one commit takes, replayBytes their size.
const (
	replayChunk = 10_000
	replayBytes = 8 << 20
)

// Replay is what became of letters that were to be replayed.
type Replay struct {
	Replayed int64            `json:"replayed"`
	Before   int64            `json:"already_replayed"`
	Refused  map[string]int64 `json:"refused,omitempty"` // by reason
}

// Replayed gives the ids of letters that were replayed.
func Replayed(ctx context.Context, store state.Store, name string) (map[string]bool, error) {
	ids := map[string]bool{}
	err := store.Range(ctx, name, replayedStage, nil, nil, func(key, _ []byte) error {
		ids[hex.EncodeToString(key)] = true
		return nil
	})
	return ids, err
}

// ReplayLetters puts the selected letters of a pipeline that doesn't run into its outbox; its next run delivers them.
func ReplayLetters(ctx context.Context, store state.Store, p *Plan, letters string, f *deadletter.Filter) (*Replay, error) {
	if err := acquire(ctx, store, p.Name, func(error) {}); err != nil {
		return nil, err
	}
	s, err := store.Load(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	done, err := Replayed(ctx, store, p.Name)
	if err != nil {
		return nil, err
	}
	out := &Replay{Refused: map[string]int64{}}
	seq := maps.Clone(s.NextSeq)
	if seq == nil {
		seq = map[string]int64{}
	}
	counters := maps.Clone(s.Counters)
	b := record.NewBatch(record.NewTable())
	var c state.Commit
	size := 0
	commit := func() error {
		if len(c.Firings) == 0 {
			return nil
		}
		for _, f := range c.Firings {
			if strings.HasPrefix(f.Target, replayPrefix) { // a sink's reject counts as out already
				counters["made"]++
			}
		}
		c.Counters = counters
		err := store.Commit(ctx, p.Name, &c)
		c, size = state.Commit{}, 0
		return err
	}
	err = deadletter.Read(letters, func(e *deadletter.Entry) error {
		if !f.Match(e) {
			return nil
		}
		if done[e.ID] {
			out.Before++
			return nil
		}
		b.Reset()
		target, why := p.letterRecord(b, e)
		if why != "" {
			out.Refused[why]++
			return nil
		}
		if seq[target] == 0 {
			seq[target] = 1
		}
		id, err := hex.DecodeString(e.ID)
		if err != nil {
			return err
		}
		data := record.AppendRecord(nil, b, 0)
		c.Firings = append(c.Firings, state.Firing{Target: target, Seq: seq[target], Data: data})
		c.State = append(c.State, state.KV{Stage: replayedStage, Key: id, Value: []byte{1}})
		seq[target]++
		size += len(data)
		done[e.ID] = true
		out.Replayed++
		if len(c.Firings) >= replayChunk || size >= replayBytes {
			return commit()
		}
		return nil
	})
	if err == nil {
		err = commit()
	}
	return out, err
}

// letterRecord makes the record that a letter is about, and gives where it goes; why, where it can't.
func (p *Plan) letterRecord(b *record.Batch, e *deadletter.Entry) (target, why string) {
	if e.Sink != "" {
		return p.rejectRecord(b, e)
	}
	raw, ok := e.Text()
	if !ok {
		return "", fmt.Sprintf("step %s: its text as it was read is not known, as for what a window makes", e.Step)
	}
	i := b.Add(record.Position{}, record.Value{})
	b.SetNamed(i, b.PutString("message"), b.PutBytes(raw))
	for name, v := range map[string]record.Value{"@path": b.PutString(e.Path), "@split": b.PutString(e.Split), "@offset": record.MakeInt(e.Offset)} {
		b.SetNamed(i, b.PutString(name), v)
	}
	return replayTarget(e.Step), ""
}

func (p *Plan) rejectRecord(b *record.Batch, e *deadletter.Entry) (target, why string) {
	k := slices.IndexFunc(p.Sinks, func(s *SinkNode) bool { return s.Name == e.Sink })
	if k < 0 {
		return "", fmt.Sprintf("there is no sink %s any more", e.Sink)
	}
	if len(e.Record) == 0 {
		return "", fmt.Sprintf("sink %s: the letter holds no record", e.Sink)
	}
	d := json.NewDecoder(bytes.NewReader(e.Record))
	d.UseNumber()
	var fields map[string]any
	if d.Decode(&fields) != nil {
		return "", fmt.Sprintf("sink %s: the letter's record is no JSON object", e.Sink)
	}
	name := func(key string) (string, bool) { return key, true }
	if m, ok := p.Sinks[k].Sink.(sinks.Mapper); ok {
		name = m.FieldOf
	}
	i := b.Add(record.Position{}, record.Value{})
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		field, ok := name(key)
		if !ok {
			return "", fmt.Sprintf("sink %s: the column %s is made by an expression, which can't be undone", e.Sink, key)
		}
		putJSON(b, i, field, fields[key])
	}
	return e.Sink, ""
}

// putJSON sets a field from what encoding/json gives; objects are paths.
func putJSON(b *record.Batch, i int, field string, v any) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			putJSON(b, i, field+"."+key, m[key])
		}
		return
	}
	b.SetNamed(i, b.PutString(field), jsonValue(b, v))
}

func jsonValue(b *record.Batch, v any) record.Value {
	switch v := v.(type) {
	case bool:
		return record.MakeBool(v)
	case json.Number:
		return jsonNumber(b, v)
	case string:
		// A time as rsetl writes it is one again, so that SQL sinks get it as such.
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil && strings.HasSuffix(v, "Z") {
			digits := 0
			if dot := strings.IndexByte(v, '.'); dot >= 0 {
				digits = len(v) - dot - 2
			}
			return record.MakeTime(t.Unix(), uint32(t.Nanosecond()), digits)
		}
		return b.PutString(v)
	case []any:
		var items []record.Value
		for _, e := range v {
			items = append(items, jsonValue(b, e))
		}
		return b.PutItems(record.Array, items)
	case map[string]any:
		var items []record.Value
		for _, key := range slices.Sorted(maps.Keys(v)) {
			items = append(items, b.PutString(key), jsonValue(b, v[key]))
		}
		return b.PutItems(record.Map, items)
	}
	return record.MakeNull()
}

func jsonNumber(b *record.Batch, n json.Number) record.Value {
	if i, err := n.Int64(); err == nil {
		return record.MakeInt(i)
	}
	text := n.String()
	whole, frac, _ := strings.Cut(text, ".")
	if x, ok := new(big.Int).SetString(whole+frac, 10); ok {
		if x.IsInt64() {
			return record.MakeDecimal(x.Int64(), len(frac))
		}
		return b.BigDecimal(x, len(frac))
	}
	f, _ := n.Float64()
	return record.MakeFloat(f)
}
