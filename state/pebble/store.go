package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/rsetl/rsetl/state"
)

// each calls f with every entry below prefix, without the prefix.
func (s *Store) each(prefix []byte, from []byte, f func(rest, value []byte) error) error {
	lower := prefix
	if from != nil {
		lower = from
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key()[len(prefix):], v)
		}
		if err != nil {
			it.Close()
			return err
		}
	}
	return errors.Join(it.Error(), it.Close())
}

func corrupt(what string, err error) error {
	return fmt.Errorf("%w: %s: %v", state.ErrCorrupt, what, err)
}

func (s *Store) Load(ctx context.Context, p string) (snap *state.Snapshot, err error) {
	err = s.guard(ctx, func() error { snap, err = s.load(p); return err })
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func (s *Store) load(p string) (*state.Snapshot, error) {
	snap := &state.Snapshot{Fresh: true, Counters: map[string]int64{}, Parts: map[string][]byte{}, NextSeq: map[string]int64{}}
	err := s.each(key(p, 's'), nil, func(id, v []byte) error {
		var sp state.Split
		if err := json.Unmarshal(v, &sp); err != nil {
			return corrupt("split "+string(id), err)
		}
		snap.Splits = append(snap.Splits, sp)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.each(key(p, 'a'), nil, func(name, v []byte) error {
		snap.Parts[string(name)] = bytes.Clone(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = s.each(key(p, 'q'), nil, func(target, v []byte) error {
		if len(v) != 8 {
			return corrupt("sequence of "+string(target), errors.New("not 8 bytes"))
		}
		snap.NextSeq[string(target)] = int64(binary.BigEndian.Uint64(v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	v, closer, err := s.db.Get(key(p, 'c'))
	if err == nil {
		err = json.Unmarshal(v, &snap.Counters)
		closer.Close()
		if err != nil {
			return nil, corrupt("counters", err)
		}
	} else if !errors.Is(err, pebble.ErrNotFound) {
		return nil, err
	}
	_, closer, err = s.db.Get(key(p, 'm'))
	if err == nil {
		closer.Close()
		snap.Fresh = false
	} else if !errors.Is(err, pebble.ErrNotFound) {
		return nil, err
	}
	return snap, nil
}

func (s *Store) Commit(ctx context.Context, p string, c *state.Commit) error {
	if err := s.room(c); err != nil {
		return err
	}
	return s.guard(ctx, func() error {
		b := s.db.NewBatch()
		defer b.Close()
		if err := s.fill(b, p, c); err != nil {
			return err
		}
		return b.Commit(pebble.Sync)
	})
}

// room refuses a commit that the disk has no room for, before the database meets a full disk.
func (s *Store) room(c *state.Commit) error {
	u, err := s.o.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil // a file system that can't say; the database will
	}
	need := s.o.Reserve
	for _, f := range c.Firings {
		need += uint64(2 * len(f.Data))
	}
	for _, kv := range c.State {
		need += uint64(2 * (len(kv.Key) + len(kv.Value)))
	}
	if u.AvailBytes < need {
		return fmt.Errorf("commit to %s: %w: %d MiB are free, rsetl keeps %d MiB for itself; make room, it goes on by itself", s.dir, syscall.ENOSPC, u.AvailBytes>>20, need>>20)
	}
	return nil
}

func (s *Store) fill(b *pebble.Batch, p string, c *state.Commit) error {
	set := func(k, v []byte) { _ = b.Set(k, v, nil) } // a batch's own writes fail only when it is closed
	set(key(p, 'm'), []byte{1})

	changed := map[string]state.Split{}
	get := func(id string) (sp state.Split, ok bool, err error) {
		if sp, ok = changed[id]; ok {
			return sp, true, nil
		}
		v, closer, err := s.db.Get(key(p, 's', id))
		if errors.Is(err, pebble.ErrNotFound) {
			return sp, false, nil
		} else if err != nil {
			return sp, false, err
		}
		defer closer.Close()
		if err := json.Unmarshal(v, &sp); err != nil {
			return sp, false, corrupt("split "+id, err)
		}
		return sp, true, nil
	}
	for _, n := range c.Splits {
		old, ok, err := get(n.ID)
		if err != nil {
			return err
		}
		if ok && old.Epoch == n.Epoch {
			n.Recent = old.Recent
		}
		if ok && old.Epoch > n.Epoch {
			return fmt.Errorf("split %s: %w: epoch %d, the store has %d", n.ID, state.ErrConflict, n.Epoch, old.Epoch)
		}
		changed[n.ID] = n
	}
	for id, a := range c.Positions {
		sp, ok, err := get(id)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("split %s: %w: its position is committed before it was added", id, state.ErrConflict)
		}
		if sp.Epoch != a.Epoch {
			return fmt.Errorf("split %s: %w: epoch %d, the store has %d", id, state.ErrConflict, a.Epoch, sp.Epoch)
		}
		if n := len(sp.Recent); n == 0 || sp.Recent[n-1] != a.To {
			sp.Recent = append(sp.Recent, a.To)
		}
		if n := len(sp.Recent); n > state.Keep {
			sp.Recent = sp.Recent[n-state.Keep:]
		}
		changed[id] = sp
	}
	for id, sp := range changed {
		v, err := json.Marshal(sp)
		if err != nil {
			return err
		}
		set(key(p, 's', id), v)
	}
	for _, id := range c.Forget {
		_ = b.Delete(key(p, 's', id), nil)
	}
	if c.Counters != nil {
		v, err := json.Marshal(c.Counters)
		if err != nil {
			return err
		}
		set(key(p, 'c'), v)
	}
	for name, v := range c.Parts {
		if v == nil {
			_ = b.Delete(key(p, 'a', name), nil)
		} else {
			set(key(p, 'a', name), v)
		}
	}
	for _, kv := range c.State {
		if kv.Value == nil {
			_ = b.Delete(stateKey(p, kv.Stage, kv.Key), nil)
		} else {
			set(stateKey(p, kv.Stage, kv.Key), kv.Value)
		}
	}
	next := map[string]int64{}
	for _, f := range c.Firings {
		set(outboxKey(p, f.Target, f.Seq), f.Data)
		next[f.Target] = max(next[f.Target], f.Seq+1)
	}
	for t, n := range next {
		set(key(p, 'q', t), binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	for t, n := range c.Acked {
		_ = b.DeleteRange(outboxKey(p, t, 0), outboxKey(p, t, n+1), nil)
	}
	return nil
}

func (s *Store) Outbox(ctx context.Context, p, target string, after int64, limit int) (out []state.Firing, err error) {
	stop := errors.New("enough")
	err = s.guard(ctx, func() error {
		err := s.each(key(p, 'o', target, ""), outboxKey(p, target, after+1), func(rest, v []byte) error {
			if len(out) == limit {
				return stop
			}
			if len(rest) != 8 {
				return corrupt("outbox of "+target, errors.New("a key is not 8 bytes"))
			}
			out = append(out, state.Firing{Target: target, Seq: int64(binary.BigEndian.Uint64(rest)), Data: bytes.Clone(v)})
			return nil
		})
		if errors.Is(err, stop) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) Range(ctx context.Context, p, stage string, prefix []byte, f func(key, value []byte) error) error {
	return s.guard(ctx, func() error {
		head := len(key(p, 'k', stage, ""))
		full := stateKey(p, stage, prefix)
		return s.each(full, nil, func(rest, v []byte) error {
			k := append(bytes.Clone(full[head:]), rest...)
			return f(k, v)
		})
	})
}

func (s *Store) Pipelines(ctx context.Context) (out []string, err error) {
	err = s.guard(ctx, func() error {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: []byte{'q'}})
		if err != nil {
			return err
		}
		for ok := it.First(); ok; {
			name, _, _ := bytes.Cut(it.Key()[1:], []byte{0})
			out = append(out, string(name))
			ok = it.SeekGE(prefixEnd(append(append([]byte{'p'}, name...), 0)))
		}
		return errors.Join(it.Error(), it.Close())
	})
	return out, err
}

func pipelineRange(p string) (from, to []byte) {
	from = append(append([]byte{'p'}, p...), 0)
	return from, prefixEnd(from)
}

func (s *Store) Remove(ctx context.Context, p string) error {
	return s.guard(ctx, func() error {
		from, to := pipelineRange(p)
		return s.db.DeleteRange(from, to, pebble.Sync)
	})
}

// renameChunk is how many bytes of a pipeline's state one batch of Rename copies.
const renameChunk = 32 << 20

func (s *Store) Rename(ctx context.Context, from, to string) error {
	return s.guard(ctx, func() error {
		if _, closer, err := s.db.Get(key(to, 'm')); err == nil {
			closer.Close()
			return fmt.Errorf("rename the state of %s to %s: %w: the new name has state already", from, to, state.ErrConflict)
		} else if !errors.Is(err, pebble.ErrNotFound) {
			return err
		}
		lo, hi := pipelineRange(from)
		dest, destEnd := pipelineRange(to)
		// Copies without the entry that says the pipeline exists are no state; a crash leaves at most such ones.
		b := s.db.NewBatch()
		defer func() { b.Close() }()
		_ = b.DeleteRange(dest, destEnd, nil)
		err := s.each(lo, nil, func(rest, v []byte) error {
			if len(rest) > 0 && rest[0] == 'm' {
				return nil
			}
			_ = b.Set(append(bytes.Clone(dest), rest...), v, nil)
			if b.Len() < renameChunk {
				return nil
			}
			err := b.Commit(pebble.Sync)
			b.Close()
			b = s.db.NewBatch()
			return err
		})
		if err != nil {
			return err
		}
		_ = b.Set(key(to, 'm'), []byte{1}, nil)
		_ = b.DeleteRange(lo, hi, nil)
		return b.Commit(pebble.Sync)
	})
}
