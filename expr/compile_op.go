package expr

import (
	"fmt"
	"math"

	"github.com/rsetl/rsetl/record"
)

func (k *compilation) unary(n *Node) (*code, *Error) {
	a, err := k.node(n.Args[0])
	if err != nil {
		return nil, err
	}
	fold := k.ready(a)
	if n.Name == "NOT" {
		if err := k.wantBool(a, "NOT"); err != nil {
			return nil, err
		}
		b := k.asBool(a)
		return k.cond(n, a.t.NotNull, func(env *Env, i int) tri {
			switch b(env, i) {
			case yes:
				return no
			case no:
				return yes
			}
			return unknown
		}, fold)
	}
	if !a.t.isNumeric() && !a.t.isInterval() && !a.t.isDynamic() && !a.t.isText() {
		return nil, errAt(n.Off, "'%s' takes a number, not %s", n.Name, a.t.nullable())
	}
	t := a.t
	if t.isText() {
		t = Any
	}
	f, neg, kind := a.f, n.Name == "-", a.t.Kind
	return k.value(n, t, func(env *Env, i int) record.Value {
		v := f(env, i)
		if v.Kind() == record.String {
			x, ok := env.number(v)
			if !ok {
				return null
			}
			v = x
		}
		if !neg {
			return v
		}
		switch v.Kind() {
		case record.Int:
			if v.Int() == math.MinInt64 {
				return env.overflow()
			}
			return fitInt(env, -v.Int(), kind)
		case record.Float:
			return record.MakeFloat(-v.Float())
		case record.Decimal:
			return decArith(env, '-', record.MakeDecimal(0, v.Scale()), v, 38, v.Scale())
		case record.Months:
			return record.MakeMonths(-v.Int())
		case record.Duration:
			return record.MakeDuration(-v.Int())
		}
		return null
	}, fold)
}

func (k *compilation) binary(n *Node) (*code, *Error) {
	a, err := k.node(n.Args[0])
	if err != nil {
		return nil, err
	}
	b, err := k.node(n.Args[1])
	if err != nil {
		return nil, err
	}
	switch n.Name {
	case "AND", "OR":
		return k.logic(n, a, b)
	case "=", "<>", "<", "<=", ">", ">=":
		return k.compare(n, n.Name, a, b)
	case "DISTINCT":
		if err := comparable(n, n.Off, a.t, b.t); err != nil {
			return nil, err
		}
		fold := k.ready(a, b)
		f, g, not := a.f, b.f, n.Not
		return k.cond(n, true, func(env *Env, i int) tri {
			return triOf(same(env, f(env, i), g(env, i)) == not)
		}, fold)
	case "||":
		return k.concat(n, a, b)
	}
	op := n.Name[0]
	t, ok := arithType(op, a.t, b.t)
	if !ok {
		return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("'%s' can't be applied to %s and %s", n.Name, a.t.nullable(), b.t.nullable()), Hint: "CAST one of them"}
	}
	fold := k.ready(a, b)
	f, g := a.f, b.f
	tt := &t
	kind := t.Kind
	if op == '+' && kind <= TBigInt {
		return k.value(n, t, func(env *Env, i int) record.Value {
			x, y := f(env, i), g(env, i)
			if x.Kind() == record.Int && y.Kind() == record.Int {
				r := x.Int() + y.Int()
				if (r > x.Int()) == (y.Int() > 0) {
					return fitInt(env, r, kind)
				}
				return env.overflow()
			}
			return arith(env, '+', x, y, tt)
		}, fold)
	}
	return k.value(n, t, func(env *Env, i int) record.Value {
		return arith(env, op, f(env, i), g(env, i), tt)
	}, fold)
}

func (k *compilation) logic(n *Node, a, b *code) (*code, *Error) {
	for _, c := range []*code{a, b} {
		if err := k.wantBool(c, n.Name); err != nil {
			return nil, err
		}
	}
	fold := k.ready(a, b)
	x, y := k.asBool(a), k.asBool(b)
	nn := a.t.NotNull && b.t.NotNull
	if n.Name == "AND" {
		return k.cond(n, nn, func(env *Env, i int) tri {
			p := x(env, i)
			if p == no {
				return no
			}
			q := y(env, i)
			if q == no {
				return no
			}
			return max(p, q) // both are yes or unknown
		}, fold)
	}
	return k.cond(n, nn, func(env *Env, i int) tri {
		p := x(env, i)
		if p == yes {
			return yes
		}
		q := y(env, i)
		if q == yes {
			return yes
		}
		return p | q // both are no or unknown
	}, fold)
}

// comparable tells whether values of two types can be compared at all.
func comparable(n *Node, off int, a, b Type) *Error {
	if a.isDynamic() || b.isDynamic() || a.isText() || b.isText() {
		return nil
	}
	ok := a.Kind == b.Kind || a.isNumeric() && b.isNumeric() || a.isBytes() && b.isBytes() ||
		(a.isTimestamp() || a.Kind == TDate) && (b.isTimestamp() || b.Kind == TDate)
	if !ok {
		return &Error{Off: off, Msg: fmt.Sprintf("%s and %s can't be compared", a.nullable(), b.nullable()), Hint: "CAST one of them"}
	}
	return nil
}

// orders says for which of less, equal, greater (bits 0, 1, 2) an operator is TRUE.
var orders = map[string]uint8{"<": 1, "=": 2, "<=": 3, ">": 4, "<>": 5, ">=": 6}
var mirrored = map[string]string{"<": ">", "=": "=", "<=": ">=", ">": "<", "<>": "<>", ">=": "<="}

func (k *compilation) compare(n *Node, op string, a, b *code) (*code, *Error) {
	if err := comparable(n, n.Off, a.t, b.t); err != nil {
		return nil, err
	}
	fold := k.ready(a, b)
	nn := a.t.NotNull && b.t.NotNull
	if a.konst && !b.konst {
		a, b, op = b, a, mirrored[op]
	}
	mask := orders[op]
	f, g := a.f, b.f
	slow := func(env *Env, x, y record.Value) tri {
		c, ok := compare(env, x, y)
		if !ok {
			return unknown
		}
		return tri(mask >> (c + 1) & 1)
	}
	if b.konst && !fold && b.v.Kind() == record.Int {
		y := g(nil, 0)
		lim := y.Int()
		lt, eq, gt := tri(mask&1), tri(mask>>1&1), tri(mask>>2&1)
		return k.cond(n, nn, func(env *Env, i int) tri {
			x := f(env, i)
			if x.Kind() != record.Int {
				return slow(env, x, y)
			}
			switch v := x.Int(); {
			case v < lim:
				return lt
			case v > lim:
				return gt
			}
			return eq
		}, fold)
	}
	if b.konst && !fold && b.v.Kind() == record.String && (op == "=" || op == "<>") {
		y := g(nil, 0)
		s := string(k.env.bytes(b.v))
		eq, ne := triOf(op == "="), triOf(op == "<>")
		return k.cond(n, nn, func(env *Env, i int) tri {
			x := f(env, i)
			if x.Kind() != record.String {
				return slow(env, x, y)
			}
			if string(env.B.Bytes(x)) == s {
				return eq
			}
			return ne
		}, fold)
	}
	return k.cond(n, nn, func(env *Env, i int) tri { return slow(env, f(env, i), g(env, i)) }, fold)
}

func (k *compilation) concat(n *Node, a, b *code) (*code, *Error) {
	if a.t.Kind == TArray && b.t.Kind == TArray {
		return nil, &Error{Off: n.Off, Msg: "'||' concatenates text", Hint: "ARRAY_CONCAT concatenates arrays"}
	}
	t := stringType()
	if a.t.isText() && b.t.isText() {
		t.Kind = TVarchar
		if a.t.Kind == TChar && b.t.Kind == TChar {
			t.Kind = TChar
		}
		if a.t.Prec < maxLen && b.t.Prec < maxLen {
			t.Prec = a.t.Prec + b.t.Prec
		}
	}
	if a.t.isBytes() && b.t.isBytes() {
		t = bytesType()
		if a.t.Kind == TBinary && b.t.Kind == TBinary {
			t = Type{Kind: TBinary, Prec: a.t.Prec + b.t.Prec}
		}
	}
	// A chain a || b || c appends to one text.
	fold := k.ready(a, b)
	return k.value(n, t.null(a.t.NotNull && b.t.NotNull), concat2(a, b), fold)
}

func concat2(a, b *code) EvalFunc {
	f, g, ta, tb, own := a.f, b.f, &a.t, &b.t, ownTail(a) && !a.konst
	return func(env *Env, i int) record.Value {
		x, y := f(env, i), g(env, i)
		if x.IsNull() || y.IsNull() {
			return null
		}
		if x.Kind() == record.String && x.Len() > maxText || y.Kind() == record.String && y.Len() > maxText {
			return null
		}
		buf := env.B.Buf
		kind := record.String
		if x.Kind() == record.Bytes && y.Kind() == record.Bytes {
			kind = record.Bytes
			buf = append(append(buf, env.bytes(x)...), env.bytes(y)...)
			v := record.MakeRef(kind, len(env.B.Buf), len(buf)-len(env.B.Buf))
			env.B.Buf = buf
			return v
		}
		if x.Kind() == record.String && x.Off()+x.Len() == len(buf) && x.Len() > 0 && own {
			// What was just made lies at the end: it only has to grow.
			env.B.Buf = appendText(buf, env.B, y, tb)
			return record.MakeRef(kind, x.Off(), len(env.B.Buf)-x.Off())
		}
		off := len(buf)
		buf = appendText(buf, env.B, x, ta)
		buf = appendText(buf, env.B, y, tb)
		env.B.Buf = buf
		return record.MakeRef(kind, off, len(buf)-off)
	}
}

// ownTail tells that a part's text was made by itself, not read from a field.
func ownTail(c *code) bool { return c.n != nil && c.n.Op == OpBinary && c.n.Name == "||" }

func (k *compilation) is(n *Node) (*code, *Error) {
	a, err := k.node(n.Args[0])
	if err != nil {
		return nil, err
	}
	fold := k.ready(a)
	f, not := a.f, n.Not
	switch n.Name {
	case "NULL":
		return k.cond(n, true, func(env *Env, i int) tri { return triOf(f(env, i).IsNull() != not) }, fold)
	case "TRUE", "FALSE", "UNKNOWN":
		if err := k.wantBool(a, "IS "+n.Name); err != nil {
			return nil, err
		}
		b := k.asBool(a)
		want := map[string]tri{"TRUE": yes, "FALSE": no, "UNKNOWN": unknown}[n.Name]
		return k.cond(n, true, func(env *Env, i int) tri { return triOf((b(env, i) == want) != not) }, fold)
	}
	kind := n.Name[len("JSON "):]
	if !a.t.isText() && !a.t.isDynamic() {
		return nil, errAt(n.Off, "IS JSON takes text, not %s", a.t.nullable())
	}
	return k.cond(n, true, func(env *Env, i int) tri {
		v := f(env, i)
		if v.Kind() != record.String {
			return triOf(not)
		}
		return triOf(isJSON(env.bytes(v), kind) != not)
	}, fold)
}

func (k *compilation) between(n *Node) (*code, *Error) {
	cs, err := k.nodes(n.Args)
	if err != nil {
		return nil, err
	}
	for _, c := range cs[1:] {
		if err := comparable(n, n.Off, cs[0].t, c.t); err != nil {
			return nil, err
		}
	}
	fold := k.ready(cs...)
	nn := cs[0].t.NotNull && cs[1].t.NotNull && cs[2].t.NotNull
	f, lo, hi, not, sym := cs[0].f, cs[1].f, cs[2].f, n.Not, n.Name == "SYMMETRIC"
	within := func(env *Env, v, a, b record.Value) tri {
		c, ok1 := compare(env, v, a)
		if ok1 && c < 0 {
			return no
		}
		d, ok2 := compare(env, v, b)
		if ok2 && d > 0 {
			return no
		}
		if !ok1 || !ok2 {
			return unknown
		}
		return yes
	}
	return k.cond(n, nn, func(env *Env, i int) tri {
		v, a, b := f(env, i), lo(env, i), hi(env, i)
		r := within(env, v, a, b)
		if sym && r != yes {
			if s := within(env, v, b, a); s == yes || r == no {
				r = s
			}
		}
		if not && r != unknown {
			r ^= 1
		}
		return r
	}, fold)
}

func (k *compilation) in(n *Node) (*code, *Error) {
	cs, err := k.nodes(n.Args)
	if err != nil {
		return nil, err
	}
	nn := true
	hasNull := false
	allInt, allText := true, true
	for j, c := range cs {
		nn = nn && c.t.NotNull
		if j == 0 {
			continue
		}
		if err := comparable(n, c.n.Off, cs[0].t, c.t); err != nil {
			return nil, err
		}
		if !c.konst {
			allInt, allText = false, false
			continue
		}
		switch c.v.Kind() {
		case record.Int:
			allText = false
		case record.String:
			allInt = false
		case record.Null:
			hasNull = true
		default:
			allInt, allText = false, false
		}
	}
	fold := k.ready(cs...)
	f := cs[0].f
	hit, miss := triOf(!n.Not), triOf(n.Not)
	if hasNull {
		miss = unknown
	}
	var list []EvalFunc
	for _, c := range cs[1:] {
		if !c.konst || !c.v.IsNull() {
			list = append(list, c.f)
		}
	}
	slow := func(env *Env, i int, v record.Value) tri {
		if v.IsNull() {
			return unknown
		}
		r := miss
		for _, g := range list {
			c, ok := compare(env, v, g(env, i))
			if ok && c == 0 {
				return hit
			}
			if !ok {
				r = unknown
			}
		}
		return r
	}
	switch {
	case allInt && !fold:
		set := map[int64]struct{}{}
		var few []int64
		for _, c := range cs[1:] {
			if c.v.Kind() == record.Int {
				set[c.v.Int()] = struct{}{}
				few = append(few, c.v.Int())
			}
		}
		return k.cond(n, nn, func(env *Env, i int) tri {
			v := f(env, i)
			if v.Kind() != record.Int {
				return slow(env, i, v)
			}
			x := v.Int()
			if len(few) <= 8 {
				for _, y := range few {
					if x == y {
						return hit
					}
				}
				return miss
			}
			if _, ok := set[x]; ok {
				return hit
			}
			return miss
		}, fold)
	case allText && !fold:
		set := map[string]struct{}{}
		for _, c := range cs[1:] {
			if c.v.Kind() == record.String {
				set[string(k.env.bytes(c.v))] = struct{}{}
			}
		}
		return k.cond(n, nn, func(env *Env, i int) tri {
			v := f(env, i)
			if v.Kind() != record.String {
				return slow(env, i, v)
			}
			if _, ok := set[string(env.B.Bytes(v))]; ok {
				return hit
			}
			return miss
		}, fold)
	}
	return k.cond(n, nn, func(env *Env, i int) tri { return slow(env, i, f(env, i)) }, fold)
}

// common finds the type that holds all parts and converts them to it.
func (k *compilation) common(n *Node, what string, cs []*code) (Type, []EvalFunc, *Error) {
	t := simple(TNull)
	for j, c := range cs {
		if j == 0 {
			t = c.t
			continue
		}
		u, ok := leastType(t, c.t)
		if !ok {
			return Any, nil, &Error{Off: c.n.Off, Msg: fmt.Sprintf("%s mixes %s and %s", what, t.nullable(), c.t.nullable()), Hint: "CAST one of them"}
		}
		t = u
	}
	fs := make([]EvalFunc, len(cs))
	for j, c := range cs {
		fs[j] = k.conv(c, t)
	}
	return t, fs, nil
}

// conv converts a part to type t where values of its own type look different.
func (k *compilation) conv(c *code, t Type) EvalFunc {
	if t.isDynamic() || c.t.isDynamic() || c.t.Kind == t.Kind && t.Kind != TDecimal && !t.isTimestamp() ||
		c.t.isInt() && t.isInt() || c.t.isText() && t.isText() || c.t.isBytes() && t.isBytes() ||
		c.t.Kind == TDecimal && t.Kind == TDecimal && c.t.Scale == t.Scale {
		return c.f
	}
	f, ca := c.f, &caster{c.t, t, k.c.Zone}
	return func(env *Env, i int) record.Value { return ca.cast(env, f(env, i)) }
}

func (k *compilation) caseWhen(n *Node) (*code, *Error) {
	// Of WHEN a, b THEN c the values after the first are kept apart by the number of their WHEN.
	args := append([]*Node(nil), n.Args...)
	more := map[int][]*code{}
	var rest []*code
	for j := 1; j+1 < len(args); j += 2 {
		if a := args[j]; a.Op == OpArray && a.Name == "WHEN" {
			args[j] = a.Args[0]
			xs, err := k.nodes(a.Args[1:])
			if err != nil {
				return nil, err
			}
			more[(j-1)/2] = xs
			rest = append(rest, xs...)
		}
	}
	cs, err := k.nodes(args)
	if err != nil {
		return nil, err
	}
	operand, els := cs[0], cs[len(cs)-1]
	for _, x := range rest {
		if err := comparable(n, x.n.Off, operand.t, x.t); err != nil {
			return nil, err
		}
	}
	var when, then []*code
	for j := 1; j+1 < len(cs); j += 2 {
		if operand == nil {
			if err := k.wantBool(cs[j], "WHEN"); err != nil {
				return nil, err
			}
		} else if err := comparable(n, cs[j].n.Off, operand.t, cs[j].t); err != nil {
			return nil, err
		}
		when, then = append(when, cs[j]), append(then, cs[j+1])
	}
	if els == nil {
		els = k.constant(n, null, simple(TNull))
		cs[len(cs)-1] = els
	}
	fold := k.ready(append(append([]*code(nil), cs...), rest...)...)
	t, results, err := k.common(n, "CASE", append(then, els))
	if err != nil {
		return nil, err
	}
	conds := make([]boolFunc, len(when))
	if operand == nil {
		for j, w := range when {
			conds[j] = k.asBool(w)
		}
		return k.value(n, t, func(env *Env, i int) record.Value {
			for j, c := range conds {
				if c(env, i) == yes {
					return results[j](env, i)
				}
			}
			return results[len(results)-1](env, i)
		}, fold)
	}
	op := operand.f
	vals := make([][]EvalFunc, len(when))
	for j, w := range when {
		vals[j] = append(vals[j], w.f)
		for _, x := range more[j] {
			vals[j] = append(vals[j], x.f)
		}
	}
	return k.value(n, t, func(env *Env, i int) record.Value {
		v := op(env, i)
		if !v.IsNull() {
			for j, gs := range vals {
				for _, g := range gs {
					if c, ok := compare(env, v, g(env, i)); ok && c == 0 {
						return results[j](env, i)
					}
				}
			}
		}
		return results[len(results)-1](env, i)
	}, fold)
}

func (k *compilation) cast(n *Node) (*code, *Error) {
	a, err := k.node(n.Args[0])
	if err != nil {
		return nil, err
	}
	if !castable(a.t, n.Type) {
		return nil, errAt(n.Off, "%s can't be cast to %s", a.t.nullable(), n.Type)
	}
	t := n.Type.null(a.t.NotNull && n.Name == "CAST")
	if t.Kind == TTime {
		t.Prec = 0 // as in Flink, whose TIME has no fraction
	}
	fold := k.ready(a)
	if c := fixedCast(a, t); c {
		return k.value(n, t, a.f, fold)
	}
	f, ca := a.f, &caster{a.t, t, k.c.Zone}
	return k.value(n, t, func(env *Env, i int) record.Value { return ca.cast(env, f(env, i)) }, fold)
}

// fixedCast tells that a cast changes nothing.
func fixedCast(a *code, t Type) bool {
	return a.t.isText() && t.isText() && t.Prec == maxLen
}

func (k *compilation) build(n *Node) (*code, *Error) {
	cs, err := k.nodes(n.Args)
	if err != nil {
		return nil, err
	}
	fold := k.ready(cs...)
	fs := make([]EvalFunc, len(cs))
	var t Type
	kind := record.Array
	switch n.Op {
	case OpRow:
		t = Type{Kind: TRow}
		for j, c := range cs {
			fs[j] = c.f
			t.Cols = append(t.Cols, Column{fmt.Sprintf("EXPR$%d", j), c.t})
		}
	case OpArray:
		var e Type
		if e, fs, err = k.common(n, "ARRAY", cs); err != nil {
			return nil, err
		}
		t = arrayOf(e)
	case OpMap:
		kind = record.Map
		var keys, vals []*code
		for j, c := range cs {
			if j%2 == 0 {
				keys = append(keys, c)
			} else {
				vals = append(vals, c)
			}
		}
		kt, kf, err := k.common(n, "MAP", keys)
		if err != nil {
			return nil, err
		}
		vt, vf, err := k.common(n, "MAP", vals)
		if err != nil {
			return nil, err
		}
		t = mapOf(kt, vt)
		for j := range kf {
			fs[2*j], fs[2*j+1] = kf[j], vf[j]
		}
	}
	return k.value(n, t.notNull(), func(env *Env, i int) record.Value {
		base := len(env.items)
		for j, f := range fs {
			v := f(env, i)
			if kind == record.Map && j%2 == 0 {
				// A repeated key replaces the earlier value.
				dup := false
				for at := base; at < len(env.items); at += 2 {
					if same(env, env.items[at], v) {
						w := fs[j+1](env, i)
						env.items[at+1] = w
						dup = true
						break
					}
				}
				if dup {
					continue
				}
				w := fs[j+1](env, i)
				env.items = append(env.items, v, w)
				continue
			}
			if kind == record.Map {
				continue
			}
			env.items = append(env.items, v)
		}
		out := env.B.PutItems(kind, env.items[base:])
		env.items = env.items[:base]
		return out
	}, fold)
}

func (k *compilation) index(n *Node) (*code, *Error) {
	cs, err := k.nodes(n.Args)
	if err != nil {
		return nil, err
	}
	a, ix := cs[0], cs[1]
	t := Any
	switch {
	case a.t.Kind == TArray:
		t = a.t.Elem.nullable()
		if !ix.t.isInt() && !ix.t.isDynamic() {
			return nil, errAt(ix.n.Off, "an array is indexed by a whole number, not %s", ix.t.nullable())
		}
	case a.t.Kind == TMap:
		t = a.t.Elem.nullable()
	case a.t.Kind == TRow:
		if !ix.konst || ix.v.Kind() != record.Int || ix.v.Int() < 1 || int(ix.v.Int()) > len(a.t.Cols) {
			return nil, errAt(ix.n.Off, "a row is indexed by a constant from 1 to %d", len(a.t.Cols))
		}
		t = a.t.Cols[ix.v.Int()-1].Type.nullable()
	case !a.t.isDynamic():
		return nil, errAt(n.Off, "%s can't be indexed: only arrays, maps and rows", a.t.nullable())
	}
	fold := k.ready(cs...)
	f, g := a.f, ix.f
	return k.value(n, t, func(env *Env, i int) record.Value {
		x, y := f(env, i), g(env, i)
		switch x.Kind() {
		case record.Array:
			if y.Kind() != record.Int || y.Int() < 1 || y.Int() > int64(x.Len()) {
				return null
			}
			return env.B.Items(x)[y.Int()-1]
		case record.Map:
			if y.IsNull() {
				return null
			}
			v, _ := mapGet(env, x, y)
			return v
		}
		return null
	}, fold)
}
