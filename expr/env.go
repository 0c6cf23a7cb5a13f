package expr

import (
	"github.com/rsetl/rsetl/record"
)

// Env is what an evaluation needs besides the program: the batch, scratch
// memory and counters. One worker owns one and uses it for all its programs,
// setting B to the batch at hand. The zero Env is ready.
type Env struct {
	B *record.Batch

	// Overflows counts integer and decimal results that did not fit their type
	// and became NULL.
	Overflows int64
	// Arrival numbers the records that aggregates take in, ascending: FIRST_VALUE and LAST_VALUE go by it.
	Arrival uint64

	stack []record.Value // arguments of the calls under way
	items []record.Value // arrays and maps under construction
	tmp   []byte
	node  jnode // a JSON scalar

	offsets []int // of a regular expression's match

	patterns map[patternKey]any
}

func (env *Env) overflow() record.Value {
	env.Overflows++
	return record.MakeNull()
}

func (env *Env) bytes(v record.Value) []byte { return env.B.Bytes(v) }

// text gives v as text without copying where it is text already.
func (env *Env) text(v record.Value) record.Value {
	switch v.Kind() {
	case record.String, record.Missing, record.Null:
		return v
	}
	off := len(env.B.Buf)
	env.B.Buf = AppendText(env.B.Buf, env.B, v)
	return env.B.Since(off)
}

var null = record.MakeNull()
