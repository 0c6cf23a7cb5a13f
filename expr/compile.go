package expr

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

// Compiler turns expressions and templates into programs over one field table.
// It is used by one goroutine while the plan is built.
type Compiler struct {
	Table     *record.Table           // takes slots and constants; not frozen yet
	TypeOf    func(field string) Type // nil: every field is ANY
	Zone      *time.Location          // of dates in templates and functions; nil: UTC
	Now       func() time.Time        // nil: time.Now
	Functions *Registry               // nil: Default()
	EventTime string                  // the field of %{+...}; "": @timestamp
}

// Program is a compiled expression. It is immutable; any number of workers may
// run it at once, each with its own Env.
type Program struct {
	t Type
	f EvalFunc
	b boolFunc
}

// Type is the static type of the results.
func (p *Program) Type() Type { return p.t }

// Eval computes the value for record i of env.B. What it refers to is in that
// batch and valid until it is reset.
func (p *Program) Eval(env *Env, i int) record.Value { return p.f(env, i) }

// True tells whether the result is TRUE, for filters. It doesn't allocate but
// for what the expression's functions append to the batch.
func (p *Program) True(env *Env, i int) bool { return p.b(env, i) == yes }

// Compile makes a program of e. The error is an *Error with the place in e's source.
func (c *Compiler) Compile(e *Expr) (*Program, error) {
	k := c.start()
	n, err := k.node(e.root)
	if err != nil {
		return nil, err
	}
	k.materialise(n)
	return &Program{t: n.t, f: n.f, b: k.asBool(n)}, nil
}

func (c *Compiler) start() *compilation {
	if c.Table == nil {
		c.Table = record.NewTable()
	}
	k := &compilation{c: c, fns: c.Functions}
	if k.fns == nil {
		k.fns = Default()
	}
	// Constants are folded in a batch of their own, since one over c.Table
	// would freeze it; materialise copies what is left of them into the table.
	k.env.B = record.NewBatch(record.NewTable())
	return k
}

type compilation struct {
	c   *Compiler
	fns *Registry
	env Env
}

// tri is a truth value.
type tri uint8

const (
	no tri = iota
	yes
	unknown
)

type boolFunc = func(env *Env, i int) tri

// code is one compiled part.
type code struct {
	n     *Node
	t     Type
	f     EvalFunc
	b     boolFunc // set for conditions
	konst bool
	v     record.Value // konst: the value, in the compilation's batch
	slot  int          // of a plain field whose path has no parts below it; else -1
}

func triValue(t tri) record.Value {
	if t == unknown {
		return null
	}
	return record.MakeBool(t == yes)
}

func triOf(b bool) tri {
	if b {
		return yes
	}
	return no
}

// constant makes the code of a value in the compilation's batch.
func (k *compilation) constant(n *Node, v record.Value, t Type) *code {
	return &code{n: n, t: t, konst: true, v: v, slot: -1, f: func(*Env, int) record.Value { return v }}
}

// materialise moves a constant into the table, so that it is there at run time.
func (k *compilation) materialise(c *code) {
	if c == nil || !c.konst {
		return
	}
	v := k.toTable(c.v)
	c.f = func(*Env, int) record.Value { return v }
	c.b = nil
}

func (k *compilation) toTable(v record.Value) record.Value {
	switch v.Kind() {
	case record.String, record.Bytes:
		return k.c.Table.Const(string(k.env.bytes(v))).As(v.Kind())
	case record.Decimal:
		if v.IsBig() {
			// Sub moves the reference and keeps the scale.
			off := k.c.Table.Const(string(k.env.bytes(v))).Off() - v.Off()
			return v.Sub(off, off+v.Len())
		}
	case record.Array, record.Map:
		vs := append([]record.Value(nil), k.env.B.Items(v)...)
		for i := range vs {
			vs[i] = k.toTable(vs[i])
		}
		return record.MakeRef(v.Kind(), k.c.Table.ConstElems(vs), v.Len())
	}
	return v
}

// ready prepares parts for use in another: true where all are constant and the
// whole can be folded, else constants are moved into the table.
func (k *compilation) ready(parts ...*code) bool {
	fold := true
	for _, p := range parts {
		fold = fold && (p == nil || p.konst)
	}
	if !fold {
		for _, p := range parts {
			k.materialise(p)
		}
	}
	return fold
}

const maxConst = 64 << 20

// value finishes a part whose evaluation is f, folding it where fold is set.
func (k *compilation) value(n *Node, t Type, f EvalFunc, fold bool) (*code, *Error) {
	if fold {
		v := f(&k.env, 0)
		if len(k.env.B.Buf) > maxConst {
			return nil, errAt(n.Off, "constants of more than %d MiB", maxConst>>20)
		}
		return k.constant(n, v, t), nil
	}
	return &code{n: n, t: t, f: f, slot: -1}, nil
}

// cond is value for a condition.
func (k *compilation) cond(n *Node, notNull bool, b boolFunc, fold bool) (*code, *Error) {
	t := simple(TBoolean).null(notNull)
	if fold {
		return k.constant(n, triValue(b(&k.env, 0)), t), nil
	}
	return &code{n: n, t: t, b: b, slot: -1, f: func(env *Env, i int) record.Value { return triValue(b(env, i)) }}, nil
}

// asBool gives the condition's evaluation; call it after ready.
func (k *compilation) asBool(c *code) boolFunc {
	if c.b != nil {
		return c.b
	}
	f := c.f
	return func(env *Env, i int) tri {
		v := f(env, i)
		switch v.Kind() {
		case record.Bool:
			return triOf(v.Bool())
		case record.String:
			if b, ok := parseBool(env.bytes(v)); ok {
				return triOf(b)
			}
		}
		return unknown
	}
}

func (k *compilation) wantBool(c *code, what string) *Error {
	if c.t.Kind != TBoolean && !c.t.isDynamic() {
		return &Error{Off: c.n.Off, Msg: fmt.Sprintf("%s takes a condition, not %s", what, c.t.nullable()), Hint: "compare it with something, or CAST it AS BOOLEAN"}
	}
	return nil
}

func (k *compilation) nodes(ns []*Node) ([]*code, *Error) {
	out := make([]*code, len(ns))
	for i, n := range ns {
		if n == nil {
			continue
		}
		c, err := k.node(n)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

func (k *compilation) node(n *Node) (*code, *Error) {
	switch n.Op {
	case OpNull:
		return k.constant(n, null, simple(TNull)), nil
	case OpBool:
		if n.Text == "UNKNOWN" {
			return k.constant(n, null, simple(TBoolean)), nil
		}
		return k.constant(n, record.MakeBool(n.Text == "TRUE"), simple(TBoolean).notNull()), nil
	case OpNumber:
		return k.number(n)
	case OpString:
		return k.constant(n, k.env.B.PutString(n.Text), Type{Kind: TChar, Prec: utf16Len(n.Text), NotNull: true}), nil
	case OpBytes:
		return k.constant(n, k.env.B.PutString(n.Text).As(record.Bytes), Type{Kind: TBinary, Prec: len(n.Text), NotNull: true}), nil
	case OpDate:
		s, ok := parseStamp([]byte(n.Text))
		if !ok || s.hasTime {
			return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("DATE '%s' is no date", n.Text), Hint: "as in DATE '2024-02-29'"}
		}
		return k.constant(n, record.MakeDate(s.days), simple(TDate).notNull()), nil
	case OpTime:
		ns, ok := parseClockText([]byte(n.Text))
		if !ok {
			return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("TIME '%s' is no time of day", n.Text), Hint: "as in TIME '23:59:59'"}
		}
		return k.constant(n, record.MakeClock(ns, 0), simple(TTime).notNull()), nil
	case OpTimestamp:
		s, ok := parseStamp([]byte(n.Text))
		if !ok {
			return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("TIMESTAMP '%s' is no timestamp", n.Text), Hint: "as in TIMESTAMP '2024-02-29 23:59:59.123'"}
		}
		return k.constant(n, s.value(s.digits), timestampType(s.digits).notNull()), nil
	case OpInterval:
		v, err := intervalValue(n)
		if err != nil {
			return nil, err
		}
		return k.constant(n, v, intervalType(n.Unit, n.UnitTo, n.Prec).notNull()), nil
	case OpField:
		return k.field(n)
	case OpUnary:
		return k.unary(n)
	case OpBinary:
		return k.binary(n)
	case OpIs:
		return k.is(n)
	case OpLike:
		return k.like(n)
	case OpIn:
		return k.in(n)
	case OpBetween:
		return k.between(n)
	case OpCase:
		return k.caseWhen(n)
	case OpCast:
		return k.cast(n)
	case OpArray, OpMap, OpRow:
		return k.build(n)
	case OpIndex:
		return k.index(n)
	case OpCall:
		return k.call(n)
	}
	return nil, errAt(n.Off, "%s is not allowed here", n.Name)
}

// utf16Len is a text's length as Java counts it, for its type.
func utf16Len(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

func (k *compilation) number(n *Node) (*code, *Error) {
	t := n.Text
	if strings.ContainsAny(t, "eE") {
		f, err := strconv.ParseFloat(t, 64)
		if err != nil || math.IsInf(f, 0) {
			return nil, errAt(n.Off, "the number %s is too large", t)
		}
		return k.constant(n, record.MakeFloat(f), simple(TDouble).notNull()), nil
	}
	if !strings.Contains(t, ".") {
		if x, err := strconv.ParseInt(t, 10, 64); err == nil {
			if x >= math.MinInt32 && x <= math.MaxInt32 {
				return k.constant(n, record.MakeInt(x), simple(TInt).notNull()), nil
			}
			return k.constant(n, record.MakeInt(x), simple(TBigInt).notNull()), nil
		}
	}
	v, ty, ok := literalDecimal(k.env.B, t)
	if !ok {
		return nil, &Error{Off: n.Off, Msg: "the number " + t + " has more than 38 digits", Hint: "write it with an exponent"}
	}
	return k.constant(n, v, ty), nil
}

// intervalValue reads the text of INTERVAL '..' unit [TO unit].
func intervalValue(n *Node) (record.Value, *Error) {
	bad := func() (record.Value, *Error) {
		u := n.Unit
		if n.UnitTo != "" {
			u += " TO " + n.UnitTo
		}
		return null, &Error{Off: n.Off, Msg: fmt.Sprintf("'%s' is no interval in %s", n.Text, u), Hint: "as in INTERVAL '5' MINUTE, INTERVAL '1 10:00' DAY TO MINUTE, INTERVAL '1-2' YEAR TO MONTH"}
	}
	t := strings.TrimSpace(n.Text)
	sign := int64(1)
	for len(t) > 0 && (t[0] == '-' || t[0] == '+') {
		if t[0] == '-' {
			sign = -sign
		}
		t = t[1:]
	}
	units := []string{"DAY", "HOUR", "MINUTE", "SECOND"}
	size := map[string]int64{"WEEK": 7 * nsDay, "DAY": nsDay, "HOUR": 3600 * nsSecond, "MINUTE": 60 * nsSecond, "SECOND": nsSecond}
	if n.UnitTo == "" {
		whole, frac, hasFrac := strings.Cut(t, ".")
		x, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || x < 0 || hasFrac && n.Unit != "SECOND" {
			return bad()
		}
		x *= sign
		switch n.Unit {
		case "YEAR", "QUARTER", "MONTH":
			m := map[string]int64{"YEAR": 12, "QUARTER": 3, "MONTH": 1}[n.Unit]
			if r, ok := mul64(x, m); ok {
				return record.MakeMonths(r), nil
			}
			return bad()
		}
		r, ok := mul64(x, size[n.Unit])
		if !ok {
			return bad()
		}
		if hasFrac {
			f, ok := fraction(frac)
			if !ok {
				return bad()
			}
			r += sign * f
		}
		return record.MakeDuration(r), nil
	}
	if n.Unit == "YEAR" && n.UnitTo == "MONTH" {
		a, b, ok := strings.Cut(t, "-")
		y, err1 := strconv.ParseInt(a, 10, 32)
		m, err2 := strconv.ParseInt(b, 10, 32)
		if !ok || err1 != nil || err2 != nil || m > 11 || m < 0 || y < 0 {
			return bad()
		}
		return record.MakeMonths(sign * (y*12 + m)), nil
	}
	from, to := -1, -1
	for i, u := range units {
		if u == n.Unit {
			from = i
		}
		if u == n.UnitTo {
			to = i
		}
	}
	if from < 0 || to <= from {
		return bad()
	}
	parts := strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == ':' })
	if len(parts) != to-from+1 {
		return bad()
	}
	total := int64(0)
	for i, p := range parts {
		frac := ""
		if units[from+i] == "SECOND" {
			p, frac, _ = strings.Cut(p, ".")
		}
		x, err := strconv.ParseInt(p, 10, 32)
		if err != nil || x < 0 || i > 0 && (units[from+i] == "HOUR" && x > 23 || units[from+i] != "HOUR" && x > 59) {
			return bad()
		}
		r, ok := mul64(x, size[units[from+i]])
		if !ok {
			return bad()
		}
		if total, ok = add64(total, r); !ok {
			return bad()
		}
		if frac != "" {
			f, ok := fraction(frac)
			if !ok {
				return bad()
			}
			total += f
		}
	}
	return record.MakeDuration(sign * total), nil
}

// fraction reads the digits after a point as nanoseconds.
func fraction(s string) (int64, bool) {
	if s == "" || len(s) > 9 {
		return 0, s == ""
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, false
	}
	r := int64(n)
	for i := len(s); i < 9; i++ {
		r *= 10
	}
	return r, true
}
