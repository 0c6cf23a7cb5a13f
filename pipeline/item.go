package pipeline

import (
	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks/batch"
)

// item is what travels through the lanes: a batch with what the worker made of
// it, or a function to run at the ordered end. The runner's pool owns items.
type item struct {
	seq uint64
	b   *record.Batch
	// do runs at the ordered end instead of a batch: a marker, a split's change.
	do func()
	// fired is the target of firings that came out of the outbox, nil for what the source read.
	fired   *string
	after   func()          // runs when the batch has passed
	enc     []batch.Encoded // per sink, what the worker encoded
	letters []deadletter.Letter
	count   counts
	taken   []bool // per record: a sink's `when` took it
}

// counts are one batch's part of the ledger.
type counts struct {
	in, made, out, filtered, absorbed, dead int64
}

func (c *counts) add(o counts) {
	c.in += o.in
	c.made += o.made
	c.out += o.out
	c.filtered += o.filtered
	c.absorbed += o.absorbed
	c.dead += o.dead
}

func (it *item) reset() {
	it.b.Reset()
	it.do, it.fired, it.after, it.count = nil, nil, nil, counts{}
	for i := range it.enc {
		it.enc[i].Reset()
	}
	clear(it.letters)
	it.letters = it.letters[:0]
}
