package windows

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// The entries of a window step in the store, by the first byte of the key. Numbers are varints (signed ones zigzag),
// times milliseconds since 1970. What is written stays readable: a change needs another version.
//
//	m                      version(2) definition water event late arrival gen fired pending{count {end gen}} cursor
//	p split                largest event time
//	n start(8) gen(4)      version(1) flags rows fold             a note on the w entries of a slice or window
//	w start(8) gen(4) key  version(1) flags firing {aggregate}    of slices and windows; start big-endian, its sign bit turned
//	s id(8)                version(1) start end key {aggregate}   of sessions
//
// definition, cursor and key have their length before them; key is the values of `by` as record.AppendValue writes them.
// Behind a head of version 1 there are no notes, else there is one for each slice that has entries: rows is their number, flags are
// 4 where some have not fired and 1 where the slice takes no records any more.
const (
	codecVersion = 1
	headVersion  = 2
)

func appendText(dst, p []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(p))), p...)
}

func metaKey(dst []byte) []byte { return append(dst, 'm') }

func markKey(dst []byte, id string) []byte { return append(append(dst, 'p'), id...) }

func rowKey(dst []byte, start int64, gen uint32, key []byte) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, 'w'), uint64(start)^1<<63)
	return append(binary.BigEndian.AppendUint32(dst, gen), key...)
}

func noteKey(dst []byte, start int64, gen uint32) []byte {
	dst = binary.BigEndian.AppendUint64(append(dst, 'n'), uint64(start)^1<<63)
	return binary.BigEndian.AppendUint32(dst, gen)
}

func sessionKey(dst []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 's'), id)
}

// reader reads numbers and texts; bad is set where there are none.
type reader struct {
	p   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.p)
	if n <= 0 {
		r.bad, r.p = true, nil
		return 0
	}
	r.p = r.p[n:]
	return x
}

func (r *reader) varint() int64 {
	x := r.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

func (r *reader) text() []byte {
	n := r.uvarint()
	if n > uint64(len(r.p)) {
		r.bad, r.p = true, nil
		return nil
	}
	t := r.p[:n]
	r.p = r.p[n:]
	return t
}

func (r *reader) version() error {
	_, err := r.upTo(codecVersion)
	return err
}

// upTo reads a version.
func (r *reader) upTo(known byte) (byte, error) {
	if len(r.p) == 0 {
		return 0, fmt.Errorf("an entry of its state is empty")
	}
	v := r.p[0]
	if v == 0 || v > known {
		return 0, fmt.Errorf("its state is of version %d, this rsetl knows %d: a newer rsetl has written it", v, known)
	}
	r.p = r.p[1:]
	return v, nil
}

// rowHead reads what is before the aggregates in a group's entry.
func (r *reader) rowHead() (flags, firing uint64, err error) {
	if err := r.version(); err != nil {
		return 0, 0, err
	}
	if len(r.p) == 0 {
		return 0, 0, fmt.Errorf("a group is damaged")
	}
	flags = uint64(r.p[0])
	r.p = r.p[1:]
	firing = r.uvarint()
	if r.bad {
		err = fmt.Errorf("a group is damaged")
	}
	return flags, firing, err
}

// note is what the store says of a slice or window without its rows.
type note struct {
	rows   int
	fresh  bool  // some have not fired
	frozen bool  // see slice
	fold   int64 // see slice
}

func (n note) append(dst []byte) []byte {
	flags := byte(0)
	if n.fresh {
		flags |= noteFresh
	}
	if n.frozen {
		flags |= noteFrozen
	}
	dst = binary.AppendUvarint(append(dst, codecVersion, flags), uint64(n.rows))
	return binary.AppendVarint(dst, n.fold)
}

func (n *note) read(p []byte) error {
	r := reader{p: p}
	if err := r.version(); err != nil {
		return err
	}
	if len(r.p) > 0 {
		n.fresh, n.frozen = r.p[0]&noteFresh != 0, r.p[0]&noteFrozen != 0
		r.p = r.p[1:]
		n.rows, n.fold = int(r.uvarint()), r.varint()
	}
	if r.bad || len(r.p) != 0 || n.rows < 0 || n.rows > maxRows {
		return fmt.Errorf("what it says of a window's groups is damaged")
	}
	return nil
}

const (
	noteFrozen = 1
	noteFresh  = 4
)

// maxRows is more than a window can have.
const maxRows = 1 << 40

// appendRow appends the aggregates' state; readRow reads it into zero words.
func (c *core) appendRow(dst []byte, m *expr.Mem, w []uint64) []byte {
	for k, call := range c.calls {
		dst = call.AppendState(dst, m, w[c.offs[k]:])
	}
	return dst
}

func (c *core) readRow(p []byte, m *expr.Mem, w []uint64) bool {
	for k, call := range c.calls {
		var ok bool
		if p, ok = call.ReadState(m, w[c.offs[k]:], p); !ok {
			return false
		}
	}
	return len(p) == 0
}

// validKey tells whether a key can be read; b is scratch.
func (c *core) validKey(b *record.Batch, key []byte) bool {
	b.Reset()
	vs, err := record.DecodeValues(b, key, len(c.by), c.vals[:0])
	c.vals = vs[:0]
	return err == nil
}

// meta is what a step has beside its groups.
type meta struct {
	version    byte
	definition string
	water      int64
	event      int64
	late       int64
	arrival    uint64
	gen        uint32
	fired      int64
	pending    []pendingMark
	cursor     []byte
}

type pendingMark struct {
	end int64
	gen uint32
}

func (m *meta) append(dst []byte) []byte {
	dst = append(dst, headVersion)
	dst = appendText(dst, []byte(m.definition))
	for _, x := range []int64{m.water, m.event, m.late} {
		dst = binary.AppendVarint(dst, x)
	}
	dst = binary.AppendUvarint(dst, m.arrival)
	dst = binary.AppendUvarint(dst, uint64(m.gen))
	dst = binary.AppendVarint(dst, m.fired)
	dst = binary.AppendUvarint(dst, uint64(len(m.pending)))
	for _, p := range m.pending {
		dst = binary.AppendVarint(dst, p.end)
		dst = binary.AppendUvarint(dst, uint64(p.gen))
	}
	return appendText(dst, m.cursor)
}

func (m *meta) read(p []byte) (err error) {
	r := reader{p: p}
	if m.version, err = r.upTo(headVersion); err != nil {
		return err
	}
	m.definition = string(r.text())
	m.water, m.event, m.late = r.varint(), r.varint(), r.varint()
	m.arrival, m.gen, m.fired = r.uvarint(), uint32(r.uvarint()), r.varint()
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		m.pending = append(m.pending, pendingMark{r.varint(), uint32(r.uvarint())})
	}
	m.cursor = append([]byte(nil), r.text()...)
	if r.bad || len(r.p) != 0 {
		return fmt.Errorf("its state's head is damaged")
	}
	return nil
}

// restoreHead reads the head and the splits' marks, the same for all kinds. any tells whether there is state.
func (c *core) restoreHead(load state.Keyed) (m meta, any bool, err error) {
	err = load.Range([]byte{'m'}, nil, func(_, v []byte) error {
		any = true
		return m.read(v)
	})
	if err != nil || !any {
		return m, any, err
	}
	if m.definition != c.Definition() {
		return m, false, c.changedDefinition(load)
	}
	c.marks.water, c.marks.event = m.water, m.event
	c.late, c.arrival = m.late, m.arrival
	err = load.Range([]byte{'p'}, nil, func(k, v []byte) error {
		r := reader{p: v}
		mk := c.marks.get(string(k[1:]))
		mk.max = r.varint()
		mk.stored = mk.max
		if r.bad {
			return fmt.Errorf("a split's event time is damaged")
		}
		return nil
	})
	return m, true, err
}

// changedDefinition begins anew where nothing is left of what another definition held: it was fired by the run before.
func (c *core) changedDefinition(load state.Keyed) error {
	for _, prefix := range []string{"w", "s"} {
		err := load.Range([]byte(prefix), nil, func(_, _ []byte) error { return errEnough })
		if errors.Is(err, errEnough) {
			return &ChangedError{Step: c.name}
		}
		if err != nil {
			return err
		}
	}
	c.log.Warn("the window's definition has changed: its windows begin anew", "step", c.name)
	c.changed = true
	return load.Range([]byte{'p'}, nil, func(k, _ []byte) error {
		c.marks.gone = append(c.marks.gone, string(k[1:]))
		return nil
	})
}

// ChangedError: the state in the store was made by another definition of the window.
type ChangedError struct{ Step string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("the definition of window %s was changed while the pipeline wasn't running here, and what its open windows hold doesn't fit the new one: run it once more with the old definition (another instance does, where it still has that), which fires them at a reload, give the step another name, or drop the state with `rsetl state reset`, after which everything is read and delivered again", e.Step)
}

// storeHead puts the head and changed marks.
func (c *core) storeHead(k *kv, m meta) {
	m.definition, m.water, m.event, m.late, m.arrival = c.Definition(), c.marks.water, c.marks.event, c.late, c.arrival
	k.put(metaKey, m.append)
	for _, id := range c.marks.gone {
		k.put(func(d []byte) []byte { return markKey(d, id) }, nil)
	}
	c.marks.gone = c.marks.gone[:0]
	for _, mk := range c.marks.list {
		if mk.max != mk.stored {
			mk.stored = mk.max
			k.put(func(d []byte) []byte { return markKey(d, mk.id) }, func(d []byte) []byte { return binary.AppendVarint(d, mk.max) })
		}
	}
	c.changed = false
}
