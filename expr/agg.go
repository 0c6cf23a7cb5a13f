package expr

import (
	"fmt"
	"reflect"

	"github.com/rsetl/rsetl/record"
)

// Accumulator is an aggregate's state over one group of records. One goroutine uses it.
type Accumulator interface {
	// Add takes one record's arguments in; they are env.B's and must not be kept.
	Add(env *Env, args []record.Value)
	// Merge takes in what another of the same call has seen; it must not keep or change it.
	Merge(env *Env, other Accumulator)
	// Result gives the value of what was seen so far, in env.B. It may be called again after more was added.
	Result(env *Env) record.Value
	// AppendBinary appends the state, which begins with a version of its own; Restore reads all of data.
	AppendBinary(dst []byte) []byte
	Restore(data []byte) error
	// Size is about the bytes of memory it takes.
	Size() int
}

// aggregate keeps a group's state in some words of a row of a table, and in the table's Mem. Its methods may be
// used for any number of tables, by one goroutine a table.
type aggregate interface {
	words() int
	add(env *Env, m *Mem, w []uint64, v record.Value)
	merge(env *Env, m *Mem, w []uint64, om *Mem, o []uint64)
	result(env *Env, m *Mem, w []uint64) record.Value
	append(dst []byte, m *Mem, w []uint64) []byte
	read(m *Mem, w []uint64, p []byte) (rest []byte, ok bool)
	drop(m *Mem, w []uint64)
}

// Mem is what the groups of one table keep beside their words: texts and objects. One goroutine uses it.
type Mem struct {
	blobs     [][]byte // index 0 is no blob
	objs      []Accumulator
	freeBlobs []uint64
	freeObjs  []uint64
	bytes     int
}

// Bytes is about the memory of the texts; objects' own is in it as far as it was when they were made.
func (m *Mem) Bytes() int { return m.bytes + 24*cap(m.blobs) + 16*cap(m.objs) }

// put stores p in the blob i, a new one where i is 0, and gives its number.
func (m *Mem) put(i uint64, p []byte) uint64 {
	if i == 0 {
		switch n := len(m.freeBlobs); {
		case n > 0:
			i = m.freeBlobs[n-1]
			m.freeBlobs = m.freeBlobs[:n-1]
		default:
			if len(m.blobs) == 0 {
				m.blobs = append(m.blobs, nil)
			}
			i = uint64(len(m.blobs))
			m.blobs = append(m.blobs, nil)
		}
	}
	before := cap(m.blobs[i])
	m.blobs[i] = append(m.blobs[i][:0], p...)
	m.bytes += cap(m.blobs[i]) - before
	return i
}

func (m *Mem) dropBlob(i uint64) {
	if i != 0 {
		m.bytes -= cap(m.blobs[i])
		m.blobs[i] = nil
		m.freeBlobs = append(m.freeBlobs, i)
	}
}

func (m *Mem) putObj(a Accumulator) uint64 {
	m.bytes += a.Size()
	if n := len(m.freeObjs); n > 0 {
		i := m.freeObjs[n-1]
		m.freeObjs = m.freeObjs[:n-1]
		m.objs[i] = a
		return i
	}
	if len(m.objs) == 0 {
		m.objs = append(m.objs, nil)
	}
	m.objs = append(m.objs, a)
	return uint64(len(m.objs) - 1)
}

func (m *Mem) dropObj(i uint64) {
	if i != 0 {
		m.objs[i] = nil
		m.freeObjs = append(m.freeObjs, i)
	}
}

// AggCall is one compiled call of an aggregate. It is immutable; the memory is the caller's: Words words for each group,
// zero at first, and one Mem for all groups that are dropped together.
type AggCall struct {
	Field  string // the field that stands for the result in what Aggregates.Take gives
	Source string // the function's name, for explanations
	t      Type
	impl   aggregate
	obj    *objAgg // impl, where it is one
	args   []EvalFunc
	filter boolFunc
	rows   bool // COUNT(*)
	nulls  bool // NULL arguments count too
}

// Type is the result's static type.
func (a *AggCall) Type() Type { return a.t }

// Words is how many words a group takes.
func (a *AggCall) Words() int { return a.impl.words() }

// Add takes record i of env.B in.
func (a *AggCall) Add(env *Env, i int, m *Mem, w []uint64) {
	if a.filter != nil && a.filter(env, i) != yes {
		return
	}
	if a.rows {
		w[0]++
		return
	}
	if a.obj == nil {
		v := a.args[0](env, i)
		if !v.IsNull() {
			a.impl.add(env, m, w, v)
		}
		return
	}
	base := len(env.stack)
	for _, f := range a.args {
		v := f(env, i)
		if v.IsNull() && !a.nulls {
			env.stack = env.stack[:base]
			return
		}
		env.stack = append(env.stack, v)
	}
	a.obj.get(m, w).Add(env, env.stack[base:])
	env.stack = env.stack[:base]
}

// Merge takes another group's state in. Each may be in a Mem of its own.
func (a *AggCall) Merge(env *Env, m *Mem, w []uint64, om *Mem, o []uint64) {
	a.impl.merge(env, m, w, om, o)
}

// Result gives the group's value; what it refers to is put into env.B.
func (a *AggCall) Result(env *Env, m *Mem, w []uint64) record.Value { return a.impl.result(env, m, w) }

// AppendState appends the group's state; ReadState reads it into zero words and gives what is behind it.
func (a *AggCall) AppendState(dst []byte, m *Mem, w []uint64) []byte { return a.impl.append(dst, m, w) }

// ReadState is false where p is no state of this aggregate.
func (a *AggCall) ReadState(m *Mem, w []uint64, p []byte) ([]byte, bool) { return a.impl.read(m, w, p) }

// Drop gives back what the group keeps in m and clears its words.
func (a *AggCall) Drop(m *Mem, w []uint64) {
	a.impl.drop(m, w)
	clear(w)
}

// Aggregates takes the aggregate calls of several expressions apart, for a step that groups records.
type Aggregates struct {
	c     *Compiler
	calls []*AggCall
	nodes []*Node
	index map[string]*AggCall
}

// NewAggregates begins for the expressions of one step; c is the compiler for the records that go in.
func NewAggregates(c *Compiler) *Aggregates {
	return &Aggregates{c: c, index: map[string]*AggCall{}}
}

// Calls are the calls so far, equal ones once.
func (s *Aggregates) Calls() []*AggCall { return s.calls }

// Type is the type of the field that stands for a call; ok is false for other fields.
func (s *Aggregates) Type(field string) (t Type, ok bool) {
	if c := s.index[field]; c != nil {
		return c.t, true
	}
	return Any, false
}

// Take compiles the aggregate calls in e and gives e with a field in place of each. The error is an *Error.
func (s *Aggregates) Take(e *Expr) (*Expr, error) {
	root, err := s.take(e.root)
	if err != nil {
		return nil, err
	}
	return &Expr{src: e.src, root: root}, nil
}

func (s *Aggregates) take(n *Node) (*Node, error) {
	if n == nil {
		return nil, nil
	}
	k := s.c.start()
	if n.Op == OpCall {
		if fn := k.fns.Lookup(n.Name); fn != nil && fn.Kind == Aggregate {
			for i, old := range s.nodes {
				if sameNode(old, n) {
					return &Node{Op: OpField, Off: n.Off, Name: s.calls[i].Field}, nil
				}
			}
			c, err := k.aggregate(n, fn)
			if err != nil {
				return nil, err
			}
			c.Field = fmt.Sprintf("@aggregate%d", len(s.calls))
			s.calls, s.nodes = append(s.calls, c), append(s.nodes, n)
			s.index[c.Field] = c
			return &Node{Op: OpField, Off: n.Off, Name: c.Field}, nil
		}
	}
	m := *n
	m.Args = make([]*Node, len(n.Args))
	for i, a := range n.Args {
		x, err := s.take(a)
		if err != nil {
			return nil, err
		}
		m.Args[i] = x
	}
	return &m, nil
}

// FieldsOutside are the fields that are read outside of aggregate calls, with their places.
func (e *Expr) FieldsOutside() (out []*Node) {
	fns := Default()
	var walk func(n *Node)
	walk = func(n *Node) {
		if n == nil {
			return
		}
		if n.Op == OpCall {
			if fn := fns.Lookup(n.Name); fn != nil && fn.Kind == Aggregate {
				return
			}
		}
		if n.Op == OpField {
			out = append(out, n)
		}
		for _, a := range n.Args {
			walk(a)
		}
	}
	walk(e.root)
	return out
}

// IsCount tells whether e is nothing but a COUNT, whose type is known without its argument's.
func (e *Expr) IsCount() bool {
	return e.root.Op == OpCall && (e.root.Name == "COUNT" || e.root.Name == "APPROX_COUNT_DISTINCT")
}

// sameNode compares two trees but for their places.
func sameNode(a, b *Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Op != b.Op || a.Name != b.Name || a.Text != b.Text || a.Unit != b.Unit || a.UnitTo != b.UnitTo || a.Prec != b.Prec || a.Not != b.Not ||
		a.Distinct != b.Distinct || a.Star != b.Star || len(a.Args) != len(b.Args) || len(a.Opts) > 0 || len(b.Opts) > 0 || !reflect.DeepEqual(a.Type, b.Type) {
		return false
	}
	for i := range a.Args {
		if !sameNode(a.Args[i], b.Args[i]) {
			return false
		}
	}
	return sameNode(a.Filter, b.Filter)
}

// aggregate compiles a call of an aggregate.
func (k *compilation) aggregate(n *Node, fn *Function) (*AggCall, error) {
	a := &AggCall{Source: fn.Name}
	args := n.Args
	if n.Star {
		if fn.Name != "COUNT" {
			return nil, &Error{Off: n.Off, Msg: fn.Name + " takes no *", Hint: fn.Signature}
		}
		args = nil
	}
	least, most := arity(fn.Args)
	if len(args) < least || len(args) > most {
		return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("%s takes %s, not %d", fn.Name, plural(least, most), len(args)), Hint: fn.Signature}
	}
	if len(args) == 0 && !n.Star {
		return nil, &Error{Off: n.Off, Msg: fn.Name + " takes an argument or *", Hint: fn.Signature}
	}
	if n.Distinct && n.Star {
		return nil, &Error{Off: n.Off, Msg: fn.Name + "(DISTINCT *) is not possible", Hint: "name the value: " + fn.Name + "(DISTINCT x)"}
	}
	c := &Call{Node: n, k: k, fn: fn}
	for i, arg := range args {
		x, bad := k.node(arg)
		if bad != nil {
			return nil, bad
		}
		if x.konst { // the call looks at it; the evaluation finds it in the table
			k.materialise(x)
		}
		f, bad := c.convert(x, argLetter(fn.Args, i))
		if bad != nil {
			return nil, bad
		}
		c.args, c.conv = append(c.args, x), append(c.conv, f)
	}
	if n.Filter != nil {
		x, err := k.node(n.Filter)
		if err != nil {
			return nil, err
		}
		if err := k.wantBool(x, "FILTER (WHERE …)"); err != nil {
			return nil, err
		}
		k.materialise(x)
		a.filter = k.asBool(x)
	}
	a.args, a.rows, a.nulls = c.conv, n.Star, fn.TakesNull
	a.t = fn.Result
	if fn.Type != nil {
		t, err := fn.Type(c)
		if err != nil {
			return nil, asError(err, n.Off)
		}
		a.t = t
	}
	switch {
	case fn.aggregate != nil:
		impl, err := fn.aggregate(c, a.t)
		if err != nil {
			return nil, asError(err, n.Off)
		}
		a.impl = impl
	case fn.NewAggregate != nil:
		make, err := fn.NewAggregate(c)
		if err != nil {
			return nil, asError(err, n.Off)
		}
		a.impl = &objAgg{make: make}
	default:
		return nil, errAt(n.Off, "%s can't be computed by this rsetl", fn.Name)
	}
	if n.Distinct && fn.Name != "MIN" && fn.Name != "MAX" {
		if len(args) != 1 && fn.Name != "LISTAGG" {
			return nil, errAt(n.Off, "DISTINCT takes one argument")
		}
		a.impl = &objAgg{make: newDistinct(a.impl, fn.Name == "COUNT")}
		a.args = a.args[:1]
	}
	a.obj, _ = a.impl.(*objAgg)
	return a, nil
}

// objAgg keeps an Accumulator for each group.
type objAgg struct {
	make func() Accumulator
}

func (o *objAgg) words() int { return 1 }

func (o *objAgg) get(m *Mem, w []uint64) Accumulator {
	if w[0] == 0 {
		w[0] = m.putObj(o.make())
	}
	return m.objs[w[0]]
}

func (o *objAgg) add(env *Env, m *Mem, w []uint64, v record.Value) {
	env.stack = append(env.stack, v)
	o.get(m, w).Add(env, env.stack[len(env.stack)-1:])
	env.stack = env.stack[:len(env.stack)-1]
}

func (o *objAgg) merge(env *Env, m *Mem, w []uint64, om *Mem, p []uint64) {
	if p[0] != 0 {
		o.get(m, w).Merge(env, om.objs[p[0]])
	}
}

func (o *objAgg) result(env *Env, m *Mem, w []uint64) record.Value {
	if w[0] == 0 {
		return o.make().Result(env)
	}
	return m.objs[w[0]].Result(env)
}

func (o *objAgg) append(dst []byte, m *Mem, w []uint64) []byte {
	if w[0] == 0 {
		return append(dst, 0)
	}
	return appendBlock(dst, m.objs[w[0]].AppendBinary)
}

func (o *objAgg) read(m *Mem, w []uint64, p []byte) ([]byte, bool) {
	block, rest, ok := readBlock(p)
	if !ok || len(block) == 0 {
		return rest, ok
	}
	a := o.make()
	if a.Restore(block) != nil {
		return rest, false
	}
	w[0] = m.putObj(a)
	return rest, true
}

func (o *objAgg) drop(m *Mem, w []uint64) { m.dropObj(w[0]) }
