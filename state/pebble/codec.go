package pebble

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// A split's value: version 1, epoch, done, path, the number of Meta's pairs and the pairs, the number of
// positions and these. Numbers are varints, signed ones zigzag; texts, which may be any bytes, have their
// length before them. The id is the key's.
const splitVersion = 1

func appendSplit(dst []byte, s *state.Split) []byte {
	dst = append(dst, splitVersion)
	dst = binary.AppendVarint(dst, s.Epoch)
	done := byte(0)
	if s.Done {
		done = 1
	}
	dst = appendText(append(dst, done), s.Path)
	dst = binary.AppendUvarint(dst, uint64(len(s.Meta)))
	for _, k := range slices.Sorted(maps.Keys(s.Meta)) {
		dst = appendText(appendText(dst, k), s.Meta[k])
	}
	dst = binary.AppendUvarint(dst, uint64(len(s.Recent)))
	for _, p := range s.Recent {
		dst = binary.AppendVarint(dst, p.Offset)
		dst = binary.AppendVarint(dst, int64(p.Index))
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

var errSplit = errors.New("its entry can't be read")

func decodeSplit(id string, p []byte) (s state.Split, err error) {
	d := decoder{p: p}
	if d.byte() != splitVersion {
		return s, errSplit
	}
	s.ID = id
	s.Epoch = d.varint()
	s.Done = d.byte() == 1
	s.Path = d.text()
	if n := d.count(2); n > 0 {
		s.Meta = make(map[string]string, n)
		for range n {
			k := d.text()
			s.Meta[k] = d.text()
		}
	}
	if n := d.count(2); n > 0 {
		s.Recent = make([]record.Position, n)
		for i := range s.Recent {
			s.Recent[i] = record.Position{Offset: d.varint(), Index: int32(d.varint())}
		}
	}
	if d.bad || len(d.p) > 0 {
		return s, errSplit
	}
	return s, nil
}

type decoder struct {
	p   []byte
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.p) == 0 {
		d.bad = true
		return 0
	}
	b := d.p[0]
	d.p = d.p[1:]
	return b
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.p)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.p = d.p[n:]
	return v
}

// count reads a number of things of which each takes at least size bytes.
func (d *decoder) count(size int) int {
	v, n := binary.Uvarint(d.p)
	if n <= 0 || v > uint64((len(d.p)-n)/size) {
		d.bad = true
		return 0
	}
	d.p = d.p[n:]
	return int(v)
}

func (d *decoder) text() string {
	n := d.count(1)
	s := string(d.p[:n])
	d.p = d.p[n:]
	return s
}

// The ledger's counters: their number, then name and value of each.
func appendCounters(dst []byte, c map[string]int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(c)))
	for _, k := range slices.Sorted(maps.Keys(c)) {
		dst = binary.AppendVarint(appendText(dst, k), c[k])
	}
	return dst
}

func decodeCounters(p []byte) (map[string]int64, error) {
	d := decoder{p: p}
	n := d.count(2)
	c := make(map[string]int64, n)
	for range n {
		k := d.text()
		c[k] = d.varint()
	}
	if d.bad || len(d.p) > 0 {
		return nil, errors.New("their entry can't be read")
	}
	return c, nil
}
