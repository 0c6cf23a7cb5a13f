package pipeline

import (
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
)

// Tried is what became of a record: as JSON where it is alive at the end.
type Tried struct {
	Out  [][]byte
	Dead []deadletter.Letter
}

// Try takes the records that put adds through the plan's steps, behind the source and its codec. No sink gets anything.
// Stages begin without state; what they would fire is not shown.
func (p *Plan) Try(put func(b *record.Batch)) Tried {
	bare := *p
	bare.Sinks = nil
	r := &Runner{plan: &bare, now: p.now, first: len(p.Nodes), stages: map[int]Stage{}}
	for i, n := range p.Nodes {
		if n.Stage {
			r.stages[i], _ = n.Make().(Stage)
		}
	}
	w := newWorker(r)
	it := &item{b: record.NewBatch(p.Table)}
	it.b.Owner = it
	it.b.Split = &record.Split{ID: "try", Path: "try"}
	put(it.b)
	w.run(it, afterCodec(p), len(p.Nodes))
	enc := record.NewEncoder(p.Table, nil, true)
	var t Tried
	for _, i := range it.b.Sel {
		t.Out = append(t.Out, enc.Append(nil, it.b, int(i)))
	}
	t.Dead = it.letters
	return t
}
