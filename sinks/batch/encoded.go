package batch

import (
	"github.com/rsetl/rsetl/record"
)

// Encoded is a lane's scratch: the encoded rows of one batch. It belongs to the lane
// and is used again after Reset; Add copies from it.
type Encoded struct {
	Data    []byte // the rows, one after another
	Ends    []int  // Ends[i] is the end of row i in Data
	Pos     []record.Position
	Rejects []Rejected // records that the sink could not encode

	text []byte // what Rejects refer to
}

// Rejected is a record that the sink's Encode refused.
type Rejected struct {
	Pos    record.Position
	Reason string

	record, raw int // ends in text: the record's JSON from the last one's end, then its raw form
	hasRaw      bool
}

// Reset empties e and keeps its memory.
func (e *Encoded) Reset() {
	clear(e.Rejects)
	e.Data, e.Ends, e.Pos, e.Rejects, e.text = e.Data[:0], e.Ends[:0], e.Pos[:0], e.Rejects[:0], e.text[:0]
}

// describing is the encoder that shows rejected records.
type describing struct {
	table *record.Table
	enc   *record.Encoder
}

// Encode appends those records of b that sel lists to e. Any number of lanes may call it
// at once, each with an Encoded of its own.
func (c *Cache) Encode(e *Encoded, b *record.Batch, sel []int32) {
	for _, i := range sel {
		n := len(e.Data)
		data, err := c.sink.Encode(e.Data, b, int(i))
		if err != nil {
			e.Data = e.Data[:n]
			c.refuse(e, b, int(i), err)
			continue
		}
		e.Data = data
		e.Ends = append(e.Ends, len(data))
		e.Pos = append(e.Pos, b.Pos(int(i)))
	}
}

func (c *Cache) refuse(e *Encoded, b *record.Batch, i int, err error) {
	d := c.enc.Load()
	if d == nil || d.table != b.Table {
		d = &describing{b.Table, record.NewEncoder(b.Table, nil, true)}
		c.enc.Store(d)
	}
	r := Rejected{Pos: b.Pos(i), Reason: err.Error()}
	e.text = d.enc.Append(e.text, b, i)
	r.record = len(e.text)
	if raw := b.Raw(i); raw.Kind() == record.String || raw.Kind() == record.Bytes {
		e.text = append(e.text, b.Bytes(raw)...)
		r.hasRaw = true
	}
	r.raw = len(e.text)
	e.Rejects = append(e.Rejects, r)
}
