package expr

import (
	"fmt"
	"time"

	"github.com/rsetl/rsetl/record"
)

// maxText bounds what one function makes: more is NULL.
const maxText = 16 << 20

// maxFill bounds what REPEAT and padding make, which short arguments can ask
// any length of.
const maxFill = 1 << 20

// Call is one call of a function while it is compiled.
type Call struct {
	Node *Node
	args []*code
	k    *compilation
	fn   *Function
	conv []EvalFunc
}

// Len is the number of arguments.
func (c *Call) Len() int { return len(c.args) }

// ArgType is the static type of argument i.
func (c *Call) ArgType(i int) Type { return c.args[i].t }

// NotNull tells whether no argument can be NULL.
func (c *Call) NotNull() bool {
	for _, a := range c.args {
		if !a.t.NotNull {
			return false
		}
	}
	return true
}

// Const gives argument i where it is constant. What it refers to is in Batch.
func (c *Call) Const(i int) (record.Value, bool) {
	if i < len(c.args) && c.args[i].konst {
		return c.args[i].v, true
	}
	return record.Value{}, false
}

// ConstText gives argument i where it is a constant text.
func (c *Call) ConstText(i int) (string, bool) {
	v, ok := c.Const(i)
	if !ok || v.Kind() != record.String {
		return "", false
	}
	return string(c.k.env.bytes(v)), true
}

// Batch holds what constants refer to.
func (c *Call) Batch() *record.Batch { return c.k.env.B }

// Arg evaluates argument i, converted as the function's Args say.
func (c *Call) Arg(i int) EvalFunc { return c.conv[i] }

// Zone is the compiler's time zone; nil is UTC.
func (c *Call) Zone() *time.Location { return c.k.c.Zone }

// Now is the clock.
func (c *Call) Now() func() time.Time {
	if c.k.c.Now != nil {
		return c.k.c.Now
	}
	return time.Now
}

// Errorf makes an error at argument i, or at the call where i is negative.
func (c *Call) Errorf(i int, format string, args ...any) error {
	off := c.Node.Off
	if i >= 0 && i < len(c.args) {
		off = c.args[i].n.Off
	}
	return errAt(off, format, args...)
}

// arity reads an Args string.
func arity(args string) (least, most int) {
	optional := false
	for _, c := range args {
		switch c {
		case '?':
			optional = true
		case '*':
			most = 1 << 30
		default:
			if !optional {
				least++
			}
			if most < 1<<30 {
				most++
			}
		}
	}
	return
}

// argLetter is the conversion of argument i.
func argLetter(args string, i int) byte {
	last := byte('x')
	for j := range len(args) {
		if args[j] == '?' || args[j] == '*' {
			continue
		}
		last = args[j]
		if i == 0 {
			return last
		}
		i--
	}
	return last
}

func (k *compilation) call(n *Node) (*code, *Error) {
	fn := k.fns.Lookup(n.Name)
	if fn == nil {
		e := errAt(n.Off, "there is no function %s", n.Name)
		if near := k.fns.Nearest(n.Name); near != "" {
			e.Hint = "did you mean " + near + "?"
		} else {
			e.Hint = "rsetl functions lists them"
		}
		return nil, e
	}
	if fn.Kind == Aggregate || n.Star || n.Distinct || n.Filter != nil {
		what := fn.Name
		if fn.Kind != Aggregate {
			return nil, errAt(n.Off, "%s is no aggregate: it takes neither *, DISTINCT nor FILTER", what)
		}
		return nil, &Error{Off: n.Off, Msg: what + " is an aggregate: it needs the records of a window", Hint: "use it in the select of a window step"}
	}
	if fn.Kind == Table {
		return nil, &Error{Off: n.Off, Msg: fn.Name + " makes rows, not a value", Hint: "use it in an unnest step"}
	}
	least, most := arity(fn.Args)
	if len(n.Args) < least || len(n.Args) > most {
		return nil, &Error{Off: n.Off, Msg: fmt.Sprintf("%s takes %s, not %d", fn.Name, plural(least, most), len(n.Args)), Hint: fn.Signature}
	}
	c := &Call{Node: n, k: k, fn: fn}
	for i, a := range n.Args {
		if a.Op == OpUnit {
			if argLetter(fn.Args, i) != 'u' {
				return nil, errAt(a.Off, "%s is not allowed here", a.Name)
			}
			c.args = append(c.args, k.constant(a, null, Any))
			continue
		}
		if argLetter(fn.Args, i) == 'u' {
			return nil, &Error{Off: a.Off, Msg: "a unit of time is expected", Hint: fn.Signature}
		}
		x, err := k.node(a)
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, x)
	}
	fold := k.ready(c.args...) && !fn.Volatile
	if fn.Volatile {
		for _, a := range c.args {
			k.materialise(a)
		}
	}
	for i, a := range c.args {
		f, err := c.convert(a, argLetter(fn.Args, i))
		if err != nil {
			return nil, err
		}
		c.conv = append(c.conv, f)
	}
	t := fn.Result
	if fn.Type != nil {
		var err error
		if t, err = fn.Type(c); err != nil {
			return nil, asError(err, n.Off)
		}
	} else if !t.IsAny() {
		// Result says NOT NULL where the function itself makes no NULL.
		t.NotNull = t.NotNull && c.NotNull()
	}
	f := callFunc(fn, c.conv)
	if fn.Build != nil {
		var err error
		if f, err = fn.Build(c); err != nil {
			return nil, asError(err, n.Off)
		}
	}
	return k.value(n, t, f, fold)
}

func asError(err error, off int) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	return &Error{Off: off, Msg: err.Error()}
}

func plural(least, most int) string {
	s := func(n int) string {
		switch n {
		case 0:
			return "no argument"
		case 1:
			return "one argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case most >= 1<<30:
		return "at least " + s(least)
	case least == most:
		return s(least)
	}
	return fmt.Sprintf("%d to %d arguments", least, most)
}

// callFunc evaluates the arguments onto the environment's stack and calls Fn.
func callFunc(fn *Function, args []EvalFunc) EvalFunc {
	call, takesNull := fn.Fn, fn.TakesNull
	return func(env *Env, i int) record.Value {
		base := len(env.stack)
		for _, a := range args {
			v := a(env, i)
			if v.IsNull() && !takesNull {
				env.stack = env.stack[:base]
				return null
			}
			env.stack = append(env.stack, v)
		}
		v := call(env, env.stack[base:])
		env.stack = env.stack[:base]
		return v
	}
}

var letterNames = map[byte]string{'s': "text", 'i': "a whole number", 'n': "a number", 'f': "a number", 't': "a timestamp", 'b': "a condition", 'y': "bytes", 'a': "an array", 'm': "a map"}

// convert gives an argument as the letter says; an error where its type can never be that.
func (c *Call) convert(a *code, letter byte) (EvalFunc, *Error) {
	t := a.t
	f := a.f
	ok, as := true, false
	switch letter {
	case 'x', 'u':
		return f, nil
	case 's':
		ok, as = t.Kind < TArray || t.Kind == TAny, t.isText()
	case 'i':
		ok, as = t.isNumeric() || t.isText() || t.isDynamic(), t.isInt()
	case 'n':
		ok, as = t.isNumeric() || t.isText() || t.isDynamic(), t.isNumeric()
	case 'f':
		ok, as = t.isNumeric() || t.isText() || t.isDynamic(), t.isFloat()
	case 't':
		ok, as = t.isTimestamp() || t.Kind == TDate || t.isText() || t.isDynamic(), t.isTimestamp()
	case 'b':
		ok, as = t.Kind == TBoolean || t.isDynamic(), t.Kind == TBoolean
	case 'y':
		ok, as = t.isBytes() || t.isText() || t.isDynamic(), t.isBytes()
	case 'a':
		ok, as = t.Kind == TArray || t.isDynamic(), t.Kind == TArray
	case 'm':
		ok, as = t.Kind == TMap || t.isDynamic(), t.Kind == TMap
	}
	if !ok {
		return nil, &Error{Off: a.n.Off, Msg: fmt.Sprintf("%s takes %s here, not %s", c.fn.Name, letterNames[letter], t.nullable()), Hint: c.fn.Signature}
	}
	if as {
		return f, nil
	}
	tp := &t
	switch letter {
	case 's':
		return func(env *Env, i int) record.Value {
			v := f(env, i)
			switch v.Kind() {
			case record.String, record.Missing, record.Null:
				return v
			}
			off := len(env.B.Buf)
			env.B.Buf = appendText(env.B.Buf, env.B, v, tp)
			return env.B.Since(off)
		}, nil
	case 'i':
		return func(env *Env, i int) record.Value {
			v := f(env, i)
			if v.Kind() == record.Int {
				return v
			}
			return castInt(env, v, TBigInt)
		}, nil
	case 'n':
		return func(env *Env, i int) record.Value {
			v, ok := env.number(f(env, i))
			if !ok {
				return null
			}
			return v
		}, nil
	case 'f':
		return func(env *Env, i int) record.Value {
			v := f(env, i)
			if v.Kind() == record.Float {
				return v
			}
			n, ok := env.number(v)
			if !ok {
				return null
			}
			return record.MakeFloat(env.float(n))
		}, nil
	case 't':
		return func(env *Env, i int) record.Value {
			v := f(env, i)
			switch v.Kind() {
			case record.Time:
				return v
			case record.Date:
				return asTime(v)
			case record.String:
				if s, ok := parseStamp(env.bytes(v)); ok {
					return s.value(s.digits)
				}
			}
			return null
		}, nil
	case 'y':
		return func(env *Env, i int) record.Value {
			v := f(env, i)
			if v.Kind() == record.Bytes || v.Kind() == record.String {
				return v.As(record.Bytes)
			}
			return null
		}, nil
	}
	want := map[byte]record.Kind{'b': record.Bool, 'a': record.Array, 'm': record.Map}[letter]
	return func(env *Env, i int) record.Value {
		v := f(env, i)
		if v.Kind() != want {
			return null
		}
		return v
	}, nil
}
