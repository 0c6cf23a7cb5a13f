package expr

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"

	"github.com/rsetl/rsetl/record"
)

func float1(name, summary, example, result string, f func(float64) float64, aliases ...string) Function {
	return Function{Name: name, Aliases: aliases, Signature: name + "(number)", Summary: summary, Example: example, ExampleResult: result, Args: "f", Result: doubleNN,
		Build: func(c *Call) (EvalFunc, error) {
			g := c.Arg(0)
			return func(env *Env, i int) record.Value {
				v := g(env, i)
				if v.IsNull() {
					return null
				}
				return record.MakeFloat(f(v.Float()))
			}, nil
		}}
}

// roundType is the type of ROUND and TRUNCATE.
func roundType(c *Call) (Type, error) {
	t := c.ArgType(0)
	if !t.isNumeric() {
		return Any, nil
	}
	if t.Kind == TDecimal {
		n, ok := int64(0), true
		if c.Len() > 1 {
			v, k := c.Const(1)
			ok = k && v.Kind() == record.Int
			if ok {
				n = v.Int()
			}
		}
		if ok && n < int64(t.Scale) {
			s := max(int(max(n, -38)), 0)
			t = decimalType(min(t.Prec-t.Scale+s+1, 38), s)
		}
	}
	return t.null(c.NotNull()), nil
}

// roundTo rounds half up, or cuts, to n digits after the point.
func roundTo(env *Env, v record.Value, n int64, cut bool, size int) record.Value {
	n = min(max(n, -400), 400)
	switch v.Kind() {
	case record.Int:
		if n >= 0 {
			return v
		}
		if n < -18 {
			return record.MakeInt(0)
		}
		m := pow10[-n]
		q := v.Int() / m
		if !cut {
			q = divHalfUp(v.Int(), m)
		}
		r, ok := mul64(q, m)
		if !ok {
			return env.overflow()
		}
		return record.MakeInt(r)
	case record.Float:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return v
		}
		// On the decimal that the float is written as, as Java's BigDecimal.valueOf.
		var tmp [40]byte
		u, s, ok := parseDecimal(appendFloat(tmp[:0], f, size))
		if !ok {
			return null
		}
		if int64(s) <= n {
			if f == 0 {
				return record.MakeFloat(0)
			}
			return v
		}
		u, s = roundBig(u, s, int(n), cut)
		var out []byte
		out = u.Append(tmp[:0], 10)
		out = append(out, 'e')
		out = strconv.AppendInt(out, int64(-s), 10)
		g, _ := parseFloat(out)
		return record.MakeFloat(g)
	case record.Decimal:
		s := v.Scale()
		if int64(s) <= n {
			return v
		}
		if u, _, ok := asDec(v); ok && n >= 0 && s-int(n) < len(pow10) {
			m := pow10[s-int(n)]
			if cut {
				return record.MakeDecimal(u/m, int(n))
			}
			return record.MakeDecimal(divHalfUp(u, m), int(n))
		}
		u, s := roundBig(env.B.Unscaled(v), s, int(n), cut)
		if s < 0 {
			u, s = rescaleBig(u, s, 0), 0
		}
		return fitBig(env, u, 38, s)
	}
	return null
}

// roundBig rounds u/10^s to n digits; the scale that comes back is n.
func roundBig(u *big.Int, s, n int, cut bool) (*big.Int, int) {
	m := bigTen(s - n)
	if cut {
		return new(big.Int).Quo(u, m), n
	}
	return bigDivHalfUp(u, m), n
}

func rounding(name, summary, example, result string, cut bool) Function {
	return Function{Name: name, Signature: name + "(number[, digits])", Summary: summary, Example: example, ExampleResult: result, Args: "n?i", Type: roundType,
		Build: func(c *Call) (EvalFunc, error) {
			f := c.Arg(0)
			var g EvalFunc
			if c.Len() > 1 {
				g = c.Arg(1)
			}
			size := 64
			if c.ArgType(0).Kind == TFloat {
				size = 32
			}
			kind := c.ArgType(0).Kind
			return func(env *Env, i int) record.Value {
				v, n := f(env, i), int64(0)
				if g != nil {
					w := g(env, i)
					if w.IsNull() {
						return null
					}
					n = w.Int()
				}
				r := roundTo(env, v, n, cut, size)
				if r.Kind() == record.Int {
					return fitInt(env, r.Int(), kind)
				}
				return r
			}, nil
		}}
}

func ceilFloor(name string, aliases []string, up bool, summary, example, result string) Function {
	return Function{Name: name, Aliases: aliases, Signature: name + "(number) or " + name + "(time TO unit)", Summary: summary, Example: example, ExampleResult: result, Args: "x?u",
		Type: func(c *Call) (Type, error) {
			t := c.ArgType(0)
			if c.Len() > 1 {
				if !t.isTimestamp() && t.Kind != TDate && t.Kind != TTime && !t.isDynamic() && !t.isText() {
					return Any, c.Errorf(0, "%s .. TO takes a time, not %s", name, t.nullable())
				}
				if t.isText() {
					return timestampType(3), nil
				}
				return t.null(t.NotNull), nil
			}
			if !t.isNumeric() && !t.isDynamic() && !t.isText() {
				return Any, c.Errorf(0, "%s takes a number, not %s", name, t.nullable())
			}
			if t.Kind == TDecimal {
				t.Scale = 0
			}
			if t.isText() {
				return Any, nil
			}
			return t, nil
		},
		Build: func(c *Call) (EvalFunc, error) {
			f := c.Arg(0)
			if c.Len() > 1 {
				unit, zone, ltz := c.Node.Args[1].Name, c.Zone(), c.ArgType(0).Kind == TTimestampLTZ
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					if v.Kind() == record.String {
						s, ok := parseStamp(env.bytes(v))
						if !ok {
							return null
						}
						v = s.value(3)
					}
					off := int64(0)
					if ltz && v.Kind() == record.Time {
						off = offsetAt(zone, v.Sec())
					}
					return roundTime(v, unit, up, off)
				}, nil
			}
			return func(env *Env, i int) record.Value {
				v, ok := env.number(f(env, i))
				if !ok {
					return null
				}
				switch v.Kind() {
				case record.Int:
					return v
				case record.Float:
					if up {
						return record.MakeFloat(math.Ceil(v.Float()))
					}
					return record.MakeFloat(math.Floor(v.Float()))
				}
				r := roundTo(env, v, 0, true, 64)
				if c := decCompare(env.B, v, r); up && c > 0 {
					return decArith(env, '+', r, record.MakeInt(1), 38, 0)
				} else if !up && c < 0 {
					return decArith(env, '-', r, record.MakeInt(1), 38, 0)
				}
				return r
			}, nil
		}}
}

func mathFuncs() []Function {
	const cat = "math"
	numType := func(c *Call) (Type, error) {
		t := c.ArgType(0)
		if !t.isNumeric() {
			return Any, nil
		}
		return t.null(c.NotNull()), nil
	}
	rng := func(c *Call) (func() float64, error) {
		if v, ok := c.Const(0); ok && c.Len() > 0 && v.Kind() == record.Int {
			seed := uint64(v.Int())
			// One sequence per record would need state per worker; a seeded call gives one number.
			x := rand.New(rand.NewPCG(seed, seed)).Float64()
			return func() float64 { return x }, nil
		}
		return rand.Float64, nil
	}
	fs := []Function{
		{Name: "ABS", Signature: "ABS(number)", Summary: "the number without its sign", Example: "ABS(-2.5)", ExampleResult: "2.5", Args: "n", Type: numType,
			Build: func(c *Call) (EvalFunc, error) {
				f, kind := c.Arg(0), c.ArgType(0).Kind
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					switch v.Kind() {
					case record.Int:
						if v.Int() == math.MinInt64 {
							return env.overflow()
						}
						return fitInt(env, abs64(v.Int()), kind)
					case record.Float:
						return record.MakeFloat(math.Abs(v.Float()))
					case record.Decimal:
						if c := decCompare(env.B, v, record.MakeInt(0)); c >= 0 {
							return v
						}
						return decArith(env, '-', record.MakeDecimal(0, v.Scale()), v, 38, v.Scale())
					}
					return null
				}, nil
			}},
		{Name: "SIGN", Signature: "SIGN(number)", Summary: "-1, 0 or 1", Example: "SIGN(-7)", ExampleResult: "-1", Args: "n", Type: numType,
			Fn: func(env *Env, a []record.Value) record.Value {
				v := a[0]
				switch v.Kind() {
				case record.Int:
					return record.MakeInt(int64(cmpInt(v.Int(), 0)))
				case record.Float:
					f := v.Float()
					if f > 0 {
						f = 1
					} else if f < 0 {
						f = -1
					}
					return record.MakeFloat(f)
				}
				return fitDecimal(env, record.MakeInt(int64(decCompare(env.B, v, record.MakeInt(0)))), 38, v.Scale())
			}},
		{Name: "MOD", Signature: "MOD(a, b)", Summary: "the remainder of a / b, with the sign of a", Nulls: "NULL where an argument is, or b is 0", Example: "MOD(-7, 2)", ExampleResult: "-1", Args: "nn",
			Type: func(c *Call) (Type, error) {
				t, _ := arithType('%', c.ArgType(0), c.ArgType(1))
				return t, nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				t, _ := arithType('%', c.ArgType(0), c.ArgType(1))
				f, g := c.Arg(0), c.Arg(1)
				return func(env *Env, i int) record.Value { return arith(env, '%', f(env, i), g(env, i), &t) }, nil
			}},
		rounding("ROUND", "the number rounded, half away from zero, to digits after the point (0)", "ROUND(2.345, 2)", "2.35", false),
		rounding("TRUNCATE", "the number cut to digits after the point (0)", "TRUNCATE(42.345, 2)", "42.34", true),
		ceilFloor("CEIL", []string{"CEILING"}, true, "the next whole number up; a time rounded up to the unit", "CEIL(1.2)", "2"),
		ceilFloor("FLOOR", nil, false, "the next whole number down; a time cut to the unit", "FLOOR(-1.2)", "-2"),
		{Name: "POWER", Aliases: []string{"POW"}, Signature: "POWER(a, b)", Summary: "a to the power b", Example: "POWER(2, 10)", ExampleResult: "1024.0", Args: "ff", Result: doubleNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				return record.MakeFloat(math.Pow(a[0].Float(), a[1].Float()))
			}},
		{Name: "ATAN2", Signature: "ATAN2(y, x)", Summary: "the angle of the point (x, y)", Example: "ATAN2(0, 1)", ExampleResult: "0.0", Args: "ff", Result: doubleNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				return record.MakeFloat(math.Atan2(a[0].Float(), a[1].Float()))
			}},
		{Name: "LOG", Signature: "LOG([base,] number)", Summary: "the logarithm to the base, natural without one", Example: "LOG(2, 8)", ExampleResult: "3.0", Args: "f?f", Result: doubleNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				if len(a) == 1 {
					return record.MakeFloat(math.Log(a[0].Float()))
				}
				return record.MakeFloat(math.Log(a[1].Float()) / math.Log(a[0].Float()))
			}},
		float1("SQRT", "the square root", "SQRT(16)", "4.0", func(x float64) float64 { return math.Sqrt(x) + 0 }),
		float1("EXP", "e to the power", "EXP(0)", "1.0", math.Exp),
		float1("LN", "the natural logarithm", "LN(1)", "0.0", math.Log),
		float1("LOG10", "the logarithm to base 10", "LOG10(1000)", "3.0", log10),
		float1("LOG2", "the logarithm to base 2", "LOG2(8)", "3.0", func(x float64) float64 { return math.Log(x) / math.Log(2) }),
		float1("SIN", "the sine", "SIN(0)", "0.0", math.Sin),
		float1("COS", "the cosine", "COS(0)", "1.0", math.Cos),
		float1("TAN", "the tangent", "TAN(0)", "0.0", math.Tan),
		float1("COT", "the cotangent", "ROUND(COT(1), 3)", "0.642", func(x float64) float64 { return 1 / math.Tan(x) }),
		float1("ASIN", "the arc sine", "ASIN(0)", "0.0", math.Asin),
		float1("ACOS", "the arc cosine", "ACOS(1)", "0.0", math.Acos),
		float1("ATAN", "the arc tangent", "ATAN(0)", "0.0", math.Atan),
		float1("SINH", "the hyperbolic sine", "SINH(0)", "0.0", math.Sinh),
		float1("COSH", "the hyperbolic cosine", "COSH(0)", "1.0", math.Cosh),
		float1("TANH", "the hyperbolic tangent", "TANH(0)", "0.0", math.Tanh),
		float1("DEGREES", "an angle in degrees", "DEGREES(PI())", "180.0", func(x float64) float64 { return x * (180 / math.Pi) }),
		float1("RADIANS", "an angle in radians", "RADIANS(0)", "0.0", func(x float64) float64 { return x * (math.Pi / 180) }),
		{Name: "PI", Signature: "PI()", Summary: "the number pi", Example: "PI()", ExampleResult: "3.141592653589793", Result: doubleNN,
			Fn: func(*Env, []record.Value) record.Value { return record.MakeFloat(math.Pi) }},
		{Name: "E", Signature: "E()", Summary: "the number e", Example: "E()", ExampleResult: "2.718281828459045", Result: doubleNN,
			Fn: func(*Env, []record.Value) record.Value { return record.MakeFloat(math.E) }},
		{Name: "BIN", Signature: "BIN(n)", Summary: "a whole number's 64 bits in binary, without leading zeros", Example: "BIN(10)", ExampleResult: "1010", Args: "i", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				off := len(env.B.Buf)
				env.B.Buf = strconv.AppendUint(env.B.Buf, uint64(a[0].Int()), 2)
				return env.B.Since(off)
			}},
		{Name: "RAND", Signature: "RAND([seed])", Summary: "a random number from 0 to below 1", Example: "RAND() < 1", ExampleResult: "TRUE", Args: "?i", Result: doubleNN, Volatile: true,
			Build: func(c *Call) (EvalFunc, error) {
				r, err := rng(c)
				return func(*Env, int) record.Value { return record.MakeFloat(r()) }, err
			}},
		{Name: "RAND_INTEGER", Signature: "RAND_INTEGER([seed,] bound)", Summary: "a random whole number from 0 to below bound", Example: "RAND_INTEGER(1)", ExampleResult: "0", Args: "i?i", Result: intNN, Volatile: true,
			Build: func(c *Call) (EvalFunc, error) {
				r := rand.Float64
				if c.Len() > 1 {
					var err error
					if r, err = rng(c); err != nil {
						return nil, err
					}
				}
				f := c.Arg(c.Len() - 1)
				return func(env *Env, i int) record.Value {
					n := f(env, i)
					if n.IsNull() || n.Int() <= 0 {
						return null
					}
					return record.MakeInt(int64(r() * float64(n.Int())))
				}, nil
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// log10 is exact for powers of ten, which math.Log10 is not everywhere.
func log10(x float64) float64 {
	r := math.Log10(x)
	if n := math.Round(r); math.Abs(r-n) < 1e-9 && math.Pow(10, n) == x {
		return n
	}
	return r
}
