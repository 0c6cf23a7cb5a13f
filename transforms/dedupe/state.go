package dedupe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// The entries in the store: `h` has version(1) and the definition, `e` and a
// number of 8 bytes, big-endian, have version(1) at offset index split key data: numbers are varints (zigzag), split and key have
// their lengths before them, key is the values of `by` as record.AppendValue writes them, times are milliseconds.
const codecVersion = 1

// fireAtOnce bounds the records that one checkpoint takes.
const fireAtOnce = 10_000

// Checkpoint lets held records go and gives what has changed.
func (s *stage) Checkpoint(out *record.Batch) []state.KV {
	var list []state.KV
	put := func(key, value []byte) { list = append(list, state.KV{Stage: s.name, Key: key, Value: value}) }
	n := min(len(s.ready), fireAtOnce)
	for _, e := range s.ready[:n] {
		if _, err := record.DecodeRecord(out, e.data, record.Position{Offset: int64(e.id)}); err != nil {
			panic(fmt.Sprintf("dedupe: a record of its own can't be read: %v", err))
		}
		if e.stored {
			s.gone = append(s.gone, e.id)
		}
		e.fired = true
	}
	clear(s.ready[:n])
	if s.ready = s.ready[n:]; len(s.ready) == 0 {
		s.ready = nil
	}
	for _, id := range s.gone {
		put(entryKey(id), nil)
	}
	s.gone = s.gone[:0]
	for _, e := range s.dirty {
		e.dirty = false
		if e.fired || e.over && s.Keep == "first" {
			continue
		}
		e.stored = true
		v := binary.AppendVarint([]byte{codecVersion}, e.at)
		v = binary.AppendVarint(binary.AppendVarint(v, e.pos.Offset), int64(e.pos.Index))
		v = append(binary.AppendUvarint(v, uint64(len(e.split))), e.split...)
		v = append(binary.AppendUvarint(v, uint64(len(e.key))), e.key...)
		put(entryKey(e.id), append(v, e.data...))
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	if len(list) > 0 {
		put([]byte{'h'}, append([]byte{codecVersion}, s.Definition()...))
	}
	return list
}

func entryKey(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{'e'}, id) }

// Restore reads the state; that of another definition is left out, so that keys begin anew.
func (s *stage) Restore(_ context.Context, load state.Keyed) error {
	same := true
	err := load.Range([]byte{'h'}, nil, func(_, v []byte) error {
		if len(v) == 0 || v[0] != codecVersion {
			return errors.New("its state is of another version: a newer rsetl has written it")
		}
		same = string(v[1:]) == s.Definition()
		return nil
	})
	if err != nil {
		return err
	}
	held := 0
	err = load.Range([]byte{'e'}, nil, func(k, v []byte) error {
		e := &entry{stored: true}
		bad := fmt.Errorf("a key's entry is damaged")
		if len(k) != 9 || len(v) == 0 || v[0] != codecVersion {
			return bad
		}
		v = v[1:]
		var nums [3]int64
		for i := range nums {
			x, n := binary.Varint(v)
			if n <= 0 {
				return bad
			}
			nums[i], v = x, v[n:]
		}
		for _, text := range []*string{&e.split, &e.key} {
			l, n := binary.Uvarint(v)
			if n <= 0 || l > uint64(len(v)-n) {
				return bad
			}
			*text, v = string(v[n:n+int(l)]), v[n+int(l):]
		}
		e.id = binary.BigEndian.Uint64(k[1:])
		s.id = max(s.id, e.id)
		e.at, e.pos = nums[0], record.Position{Offset: nums[1], Index: int32(nums[2])}
		if len(v) > 0 {
			e.data = slices.Clone(v)
			held++
		}
		if !same {
			s.gone = append(s.gone, e.id)
			return nil
		}
		if s.byKey[e.key] != nil { // it was to fire, and its key has come again
			s.ready = append(s.ready, s.byKey[e.key])
			s.queue = slices.DeleteFunc(s.queue, func(x *entry) bool { return x == s.byKey[e.key] })
		}
		s.byKey[e.key] = e
		s.queue = append(s.queue, e)
		s.time = max(s.time, e.at)
		return nil
	})
	if !same && held > 0 && err == nil {
		return fmt.Errorf("the definition of dedupe %s was changed while the pipeline wasn't running, and it holds %d records: run it once more with the old definition, give the step another name, or drop the state with `rsetl state reset`, after which everything is read and delivered again", s.name, held)
	}
	slices.SortStableFunc(s.queue, func(a, b *entry) int { return int(max(min(a.at-b.at, 1), -1)) })
	return err
}
