package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// each calls f with every entry below prefix from key from on (nil: all), without the prefix. What f
// gets is valid during the call.
func each(db pebble.Reader, prefix []byte, from []byte, f func(rest, value []byte) error) error {
	lower := prefix
	if from != nil {
		lower = from
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err == nil {
			err = f(it.Key()[len(prefix):], v)
		}
		if err != nil {
			return err
		}
	}
	return it.Error()
}

func corrupt(what string, err error) error {
	return fmt.Errorf("%w: %s: %v", state.ErrCorrupt, what, err)
}

// exists tells whether anything was committed for a pipeline.
func exists(db pebble.Reader, p string) (bool, error) {
	_, closer, err := db.Get(key(p, 'm'))
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, closer.Close()
}

func (s *Store) Load(ctx context.Context, p string) (snap *state.Snapshot, err error) {
	if err := state.CheckNames(p); err != nil {
		return nil, err
	}
	err = s.use(ctx, func(db *pebble.DB) error {
		at := db.NewSnapshot()
		defer at.Close()
		snap, err = load(at, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

func load(db pebble.Reader, p string) (*state.Snapshot, error) {
	snap := &state.Snapshot{Counters: map[string]int64{}, Parts: map[string][]byte{}, NextSeq: map[string]int64{}}
	if ok, err := exists(db, p); err != nil {
		return nil, err
	} else if !ok {
		snap.Fresh = true
		return snap, nil
	}
	err := each(db, key(p, 's'), nil, func(id, v []byte) error {
		sp, err := decodeSplit(string(id), v)
		if err != nil {
			return corrupt("split "+string(id), err)
		}
		snap.Splits = append(snap.Splits, sp)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each(db, key(p, 'a'), nil, func(name, v []byte) error {
		snap.Parts[string(name)] = append([]byte{}, v...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each(db, key(p, 'q'), nil, func(target, v []byte) error {
		if len(v) != 8 {
			return corrupt("sequence of "+string(target), errors.New("not 8 bytes"))
		}
		snap.NextSeq[string(target)] = int64(binary.BigEndian.Uint64(v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	v, closer, err := db.Get(key(p, 'c'))
	if err == nil {
		snap.Counters, err = decodeCounters(v)
		closer.Close()
		if err != nil {
			return nil, corrupt("counters", err)
		}
	} else if !errors.Is(err, pebble.ErrNotFound) {
		return nil, err
	}
	return snap, nil
}

// Commit costs one synced write to the log. Where the disk fails in the middle of it, it returns an error and the
// commit may be there as a whole after the store has been opened again; trying it again is harmless.
func (s *Store) Commit(ctx context.Context, p string, c *state.Commit) error {
	if err := c.Check(p, state.CheckNames); err != nil {
		return err
	}
	if err := s.room(c); err != nil {
		return err
	}
	if err := s.still(); err != nil {
		return err
	}
	err := s.use(ctx, func(db *pebble.DB) error {
		b := db.NewBatch()
		defer b.Close()
		if err := fill(db, b, p, c); err != nil {
			return err
		}
		if !s.used.Load() {
			_ = b.Set(usedKey, []byte{1}, nil)
		}
		return b.Commit(pebble.Sync)
	})
	if err != nil {
		return fmt.Errorf("commit %s: %w", p, err)
	}
	s.mu.Lock()
	s.pause = 0
	s.mu.Unlock()
	s.markUsed()
	return nil
}

// still makes sure that the directory is the one that was opened: a database goes on writing to files that were removed.
func (s *Store) still() error {
	if s.o.FS != vfs.Default {
		return nil
	}
	now, err := os.Stat(filepath.Join(s.dir, "store"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // the commit itself will tell
	}
	if err == nil && (s.found == nil || os.SameFile(now, s.found)) {
		return nil
	}
	return fmt.Errorf("%w: the state directory %s was removed or replaced while rsetl ran; what was delivered since its last commit will come again", state.ErrFailed, s.dir)
}

// room refuses a commit that the disk has no room for, before the database meets a full disk.
func (s *Store) room(c *state.Commit) error {
	u, err := s.o.FS.GetDiskUsage(s.dir)
	if err != nil {
		return nil // a file system that can't say; the database will
	}
	need := s.o.Reserve
	if c == nil {
		c = &state.Commit{}
	}
	for _, f := range c.Firings {
		need += uint64(2 * len(f.Data))
	}
	for _, kv := range c.State {
		need += uint64(2 * (len(kv.Key) + len(kv.Value)))
	}
	if u.AvailBytes < need {
		return fmt.Errorf("state directory %s: %w: %d MiB are free, rsetl keeps %d MiB for itself; make room, it goes on by itself", s.dir, syscall.ENOSPC, u.AvailBytes>>20, need>>20)
	}
	return nil
}

// fill puts a commit into a batch. All of it may be done again.
func fill(db *pebble.DB, b *pebble.Batch, p string, c *state.Commit) error {
	set := func(k, v []byte) { _ = b.Set(k, v, nil) } // a batch's own writes fail only when it is closed
	known, err := exists(db, p)
	if err != nil {
		return err
	}
	if !known {
		from, to := pipelineRange(p)
		_ = b.DeleteRange(from, to, nil) // what a rename left
		set(key(p, 'm'), []byte{1})
	}

	changed := map[string]state.Split{}
	get := func(id string) (sp state.Split, ok bool, err error) {
		if sp, ok = changed[id]; ok {
			return sp, true, nil
		}
		if !known {
			return sp, false, nil
		}
		v, closer, err := db.Get(key(p, 's', id))
		if errors.Is(err, pebble.ErrNotFound) {
			return sp, false, nil
		} else if err != nil {
			return sp, false, err
		}
		defer closer.Close()
		if sp, err = decodeSplit(id, v); err != nil {
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
		n.Recent = lastOf(n.Recent)
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
			sp.Recent = lastOf(append(sp.Recent[:n:n], a.To)) // n.Recent may be the caller's
		}
		changed[id] = sp
	}
	var scratch []byte
	for id, sp := range changed {
		scratch = appendSplit(scratch[:0], &sp)
		set(key(p, 's', id), scratch)
	}
	for _, id := range c.Forget {
		_ = b.Delete(key(p, 's', id), nil)
	}
	if c.Counters != nil {
		set(key(p, 'c'), appendCounters(nil, c.Counters))
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
		if known {
			v, closer, err := db.Get(key(p, 'q', t))
			if err == nil {
				if len(v) == 8 {
					n = max(n, int64(binary.BigEndian.Uint64(v)))
				}
				closer.Close()
			} else if !errors.Is(err, pebble.ErrNotFound) {
				return err
			}
		}
		set(key(p, 'q', t), binary.BigEndian.AppendUint64(nil, uint64(n)))
	}
	for t, n := range c.Acked {
		if n >= 0 {
			_ = b.DeleteRange(outboxKey(p, t, 0), outboxKey(p, t, n+1), nil)
		}
	}
	return nil
}

func lastOf(p []record.Position) []record.Position { return p[max(0, len(p)-state.Keep):] }

func (s *Store) Outbox(ctx context.Context, p, target string, after int64, limit int) (out []state.Firing, err error) {
	if err := state.CheckNames(p, target); err != nil {
		return nil, err
	}
	if after == math.MaxInt64 {
		return nil, nil
	}
	enough := errors.New("enough")
	err = s.use(ctx, func(db *pebble.DB) error {
		at := db.NewSnapshot()
		defer at.Close()
		if ok, err := exists(at, p); err != nil || !ok {
			return err
		}
		err := each(at, key(p, 'o', target, ""), outboxKey(p, target, max(after+1, 0)), func(rest, v []byte) error {
			if len(out) >= limit {
				return enough
			}
			if len(rest) != 8 {
				return corrupt("outbox of "+target, errors.New("a key is not 8 bytes"))
			}
			out = append(out, state.Firing{Target: target, Seq: int64(binary.BigEndian.Uint64(rest)), Data: bytes.Clone(v)})
			return nil
		})
		if errors.Is(err, enough) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Range gives f keys and values that are valid during the call. f must not call Close.
func (s *Store) Range(ctx context.Context, p, stage string, prefix, after []byte, f func(key, value []byte) error) error {
	if err := state.CheckNames(p, stage); err != nil {
		return err
	}
	callers := func(k, v []byte) error {
		defer func() {
			if r := recover(); r != nil {
				panic(callersPanic{r})
			}
		}()
		return f(k, v)
	}
	return s.use(ctx, func(db *pebble.DB) error {
		at := db.NewSnapshot()
		defer at.Close()
		if ok, err := exists(at, p); err != nil || !ok {
			return err
		}
		all := key(p, 'k', stage, "")
		from := stateKey(p, stage, prefix)
		end := prefixEnd(from)
		if after != nil && bytes.Compare(after, prefix) >= 0 {
			from = append(stateKey(p, stage, after), 0)
		}
		if end != nil && bytes.Compare(from, end) >= 0 {
			return nil
		}
		it, err := at.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: end})
		if err != nil {
			return err
		}
		defer it.Close()
		for ok := it.First(); ok; ok = it.Next() {
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := callers(it.Key()[len(all):], v); err != nil {
				return err
			}
		}
		return it.Error()
	})
}

// Get gives f values that are valid during the call. f must not call Close.
func (s *Store) Get(ctx context.Context, p, stage string, keys [][]byte, f func(i int, value []byte) error) error {
	if err := state.CheckNames(p, stage); err != nil {
		return err
	}
	return s.use(ctx, func(db *pebble.DB) error {
		at := db.NewSnapshot()
		defer at.Close()
		if ok, err := exists(at, p); err != nil || !ok {
			return err
		}
		// One iterator, not a Get a key: callers sort their keys, and the next one is mostly near.
		all := key(p, 'k', stage, "")
		it, err := at.NewIter(&pebble.IterOptions{LowerBound: all, UpperBound: prefixEnd(all)})
		if err != nil {
			return err
		}
		defer it.Close()
		one := func(i int) error {
			k := stateKey(p, stage, keys[i])
			if !it.SeekGE(k) {
				return it.Error()
			}
			if !bytes.Equal(it.Key(), k) {
				return nil
			}
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			defer func() {
				if r := recover(); r != nil {
					panic(callersPanic{r})
				}
			}()
			return f(i, v)
		}
		for i := range keys {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := one(i); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) Pipelines(ctx context.Context) (out []string, err error) {
	err = s.use(ctx, func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{'p'}, UpperBound: []byte{'q'}})
		if err != nil {
			return err
		}
		defer it.Close()
		for ok := it.First(); ok; {
			name, _, _ := bytes.Cut(it.Key()[1:], []byte{0})
			p := string(name)
			if known, err := exists(db, p); err != nil {
				return err
			} else if known {
				out = append(out, p)
			}
			_, end := pipelineRange(p)
			ok = it.SeekGE(end)
		}
		return it.Error()
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func pipelineRange(p string) (from, to []byte) {
	from = append(append([]byte{'p'}, p...), 0)
	return from, prefixEnd(from)
}

func (s *Store) Remove(ctx context.Context, p string) error {
	if err := state.CheckNames(p); err != nil {
		return err
	}
	return s.use(ctx, func(db *pebble.DB) error {
		from, to := pipelineRange(p)
		return db.DeleteRange(from, to, pebble.Sync)
	})
}

// Rename copies the state and then moves the name in one commit. A pipeline without state has nothing to
// move. After an error the move may have happened where the disk failed: then the old name has no state.
func (s *Store) Rename(ctx context.Context, from, to string) error {
	if err := state.CheckNames(from, to); err != nil {
		return err
	}
	if err := s.room(nil); err != nil {
		return err
	}
	return s.use(ctx, func(db *pebble.DB) error {
		if ok, err := exists(db, from); err != nil || !ok {
			return err
		}
		if taken, err := exists(db, to); err != nil {
			return err
		} else if taken {
			return fmt.Errorf("rename the state of %s to %s: %w: the new name has state already", from, to, state.ErrConflict)
		}
		lo, hi := pipelineRange(from)
		dest, destEnd := pipelineRange(to)
		b := db.NewBatch()
		defer func() { b.Close() }()
		_ = b.DeleteRange(dest, destEnd, nil)
		err := each(db, lo, nil, func(rest, v []byte) error {
			if rest[0] == 'm' {
				return nil
			}
			_ = b.Set(append(bytes.Clone(dest), rest...), v, nil)
			if b.Len() < s.o.renameChunk {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			err := b.Commit(pebble.Sync)
			b.Close()
			b = db.NewBatch()
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
