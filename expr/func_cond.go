package expr

import (
	"unicode"

	"github.com/rsetl/rsetl/record"
)

// sameTypes finds the common type of arguments from on and gives them converted.
func sameTypes(c *Call, from int) (Type, []EvalFunc, error) {
	t, fs, err := c.k.common(c.Node, c.fn.Name, c.args[from:])
	if err != nil {
		return Any, nil, err
	}
	return t, fs, nil
}

func commonType(c *Call) (Type, error) {
	t, _, err := sameTypes(c, 0)
	return t, err
}

func coalesceType(c *Call) (Type, error) {
	t, err := commonType(c)
	for _, a := range c.args {
		t.NotNull = t.NotNull || a.t.NotNull
	}
	if t.IsAny() {
		t.NotNull = false
	}
	return t, err
}

func coalesce(c *Call) (EvalFunc, error) {
	_, fs, err := sameTypes(c, 0)
	return func(env *Env, i int) record.Value {
		for _, f := range fs {
			if v := f(env, i); !v.IsNull() {
				return v
			}
		}
		return null
	}, err
}

// extreme is GREATEST (sign 1) and LEAST (-1).
func extreme(sign int) func(c *Call) (EvalFunc, error) {
	return func(c *Call) (EvalFunc, error) {
		_, fs, err := sameTypes(c, 0)
		return func(env *Env, i int) record.Value {
			best := null
			for j, f := range fs {
				v := f(env, i)
				if v.IsNull() {
					return null
				}
				if j == 0 {
					best = v
					continue
				}
				d, ok := compare(env, v, best)
				if !ok {
					return null
				}
				if d*sign > 0 {
					best = v
				}
			}
			return best
		}, err
	}
}

func isClass(name, summary, example, result string, is func(p []byte) bool) Function {
	return Function{Name: name, Signature: name + "(text)", Summary: summary, Nulls: "FALSE for NULL", Example: example, ExampleResult: result, Args: "x", Result: simple(TBoolean), TakesNull: true,
		Type: func(*Call) (Type, error) { return booleanNN, nil },
		Fn: func(env *Env, a []record.Value) record.Value {
			if a[0].IsNull() {
				return record.MakeBool(false)
			}
			if isNum(a[0].Kind()) && name != "IS_ALPHA" {
				v := env.text(a[0])
				return record.MakeBool(is(env.bytes(v)))
			}
			if a[0].Kind() != record.String {
				return record.MakeBool(false)
			}
			return record.MakeBool(is(env.bytes(a[0])))
		}}
}

func all(p []byte, f func(r rune) bool) bool {
	for _, r := range string(p) {
		if !f(r) {
			return false
		}
	}
	return len(p) > 0
}

func condFuncs() []Function {
	const cat = "conditional"
	fs := []Function{
		{Name: "COALESCE", Signature: "COALESCE(value, ...)", Summary: "the first value that isn't NULL", Nulls: "NULL where all are", Example: "COALESCE(NULL, 'x')", ExampleResult: "x", Args: "x*", Type: coalesceType, Build: coalesce},
		{Name: "IFNULL", Signature: "IFNULL(value, other)", Summary: "the value, or other where it is NULL", Nulls: "NULL where both are", Example: "IFNULL(NULL, 5)", ExampleResult: "5", Args: "xx", Type: coalesceType, Build: coalesce},
		{Name: "NULLIF", Signature: "NULLIF(value, other)", Summary: "the value, but NULL where it equals other", Example: "NULLIF('-', '-')", ExampleResult: "NULL", Args: "xx",
			Type: func(c *Call) (Type, error) {
				if err := comparable(c.Node, c.Node.Off, c.ArgType(0), c.ArgType(1)); err != nil {
					return Any, err
				}
				return c.ArgType(0).nullable(), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				f, g := c.Arg(0), c.Arg(1)
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					if d, ok := compare(env, v, g(env, i)); ok && d == 0 {
						return null
					}
					return v
				}, nil
			}},
		{Name: "IF", Signature: "IF(condition, then, else)", Summary: "then where the condition is TRUE, else where it is FALSE or NULL", Nulls: "NULL only where the chosen value is", Example: "IF(503 >= 500, 'bad', 'good')", ExampleResult: "bad", Args: "bxx",
			Type: func(c *Call) (Type, error) {
				t, _, err := sameTypes(c, 1)
				if !c.ArgType(0).NotNull {
					t.NotNull = false
				}
				return t, err
			},
			Build: func(c *Call) (EvalFunc, error) {
				_, fs, err := sameTypes(c, 1)
				if err != nil {
					return nil, err
				}
				cond := c.k.asBool(c.args[0])
				return func(env *Env, i int) record.Value {
					if cond(env, i) == yes {
						return fs[0](env, i)
					}
					return fs[1](env, i)
				}, nil
			}},
		{Name: "GREATEST", Signature: "GREATEST(value, ...)", Summary: "the largest value", Example: "GREATEST(1, 3, 2)", ExampleResult: "3", Args: "x*", Type: commonType, Build: extreme(1)},
		{Name: "LEAST", Signature: "LEAST(value, ...)", Summary: "the smallest value", Example: "LEAST(1, 3, 2)", ExampleResult: "1", Args: "x*", Type: commonType, Build: extreme(-1)},
		isClass("IS_ALPHA", "whether all characters are letters", "IS_ALPHA('abc')", "TRUE", func(p []byte) bool { return all(p, unicode.IsLetter) }),
		isClass("IS_DIGIT", "whether all characters are digits", "IS_DIGIT('123')", "TRUE", func(p []byte) bool { return all(p, unicode.IsDigit) }),
		isClass("IS_DECIMAL", "whether the text is a number", "IS_DECIMAL('-1.5')", "TRUE", func(p []byte) bool { _, ok := ParseNumber(p); return ok }),
		{Name: "TYPEOF", Signature: "TYPEOF(value)", Summary: "the value's type; of a field whose type is unknown, that of the record's value", Nulls: "the type where it is known", Example: "TYPEOF(1.5)", ExampleResult: "DECIMAL(2, 1) NOT NULL", Args: "x?x", Result: stringType(), Type: func(*Call) (Type, error) { return stringType(), nil },
			Build: func(c *Call) (EvalFunc, error) {
				t := c.ArgType(0)
				if !t.IsAny() {
					s := t.String()
					return func(env *Env, _ int) record.Value { return env.B.PutString(s) }, nil
				}
				f := c.Arg(0)
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					if v.IsNull() {
						return env.B.PutString("NULL")
					}
					return env.B.PutString(valueType(env.B, v).String())
				}, nil
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// valueType is the narrowest static type that a run-time value tells.
func valueType(b *record.Batch, v record.Value) Type {
	t := KindType(v.Kind())
	switch v.Kind() {
	case record.Time:
		t.Prec = v.Digits()
	case record.Decimal:
		p := digits64(v.Int())
		if v.IsBig() {
			p = digitsBig(b.Unscaled(v))
		}
		t = decimalType(max(p, v.Scale()), v.Scale())
	case record.Array:
		e := simple(TNull)
		for _, x := range b.Items(v) {
			if !x.IsNull() {
				e, _ = leastType(e, valueType(b, x))
			}
		}
		t = arrayOf(e)
	case record.Map:
		k, e := stringType(), simple(TNull)
		for i, x := range b.Items(v) {
			if i%2 == 1 && !x.IsNull() {
				e, _ = leastType(e, valueType(b, x))
			}
		}
		t = mapOf(k, e)
	}
	return t
}
