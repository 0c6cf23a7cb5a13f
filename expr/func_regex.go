package expr

import "github.com/rsetl/rsetl/record"

// regexArg gives argument i as a compiled expression per record, nil where it
// is NULL or wrong. A wrong constant is a load error.
func regexArg(c *Call, i int) (func(env *Env, rec int) regex, error) {
	if s, ok := c.ConstText(i); ok {
		re, err := compileRegex(s, false, 0)
		if err != nil {
			return nil, c.Errorf(i, "%v", err)
		}
		return func(*Env, int) regex { return re }, nil
	}
	f := c.Arg(i)
	return func(env *Env, rec int) regex {
		v := f(env, rec)
		if v.Kind() != record.String {
			return nil
		}
		return env.regex(env.bytes(v), false, 0)
	}, nil
}

// over builds a function of a text (argument 0) and an expression (argument 1).
func over(f func(env *Env, i int, v record.Value, re regex) record.Value) func(c *Call) (EvalFunc, error) {
	return func(c *Call) (EvalFunc, error) {
		re, err := regexArg(c, 1)
		if err != nil {
			return nil, err
		}
		g := c.Arg(0)
		return func(env *Env, i int) record.Value {
			v := g(env, i)
			if v.IsNull() {
				return null
			}
			r := re(env, i)
			if r == nil {
				return null
			}
			return f(env, i, v, r)
		}, nil
	}
}

// group gives the optional argument 2, a group's number, def where it isn't there.
func group(c *Call, def int64) EvalFunc {
	if c.Len() > 2 {
		return c.Arg(2)
	}
	return func(*Env, int) record.Value { return record.MakeInt(def) }
}

func regexFuncs() []Function {
	const cat = "regex"
	fs := []Function{
		{Name: "REGEXP", Aliases: []string{"RLIKE", "REGEXP_LIKE"}, Signature: "REGEXP(text, regex) or text REGEXP regex", Summary: "whether the regular expression matches somewhere in text", Example: "REGEXP('curl/8', '^curl')", ExampleResult: "TRUE", Args: "ss", Result: booleanNN,
			Build: func(c *Call) (EvalFunc, error) {
				if s, ok := c.ConstText(1); ok && s == "" { // as Flink: an empty expression matches nothing
					f := c.Arg(0)
					return func(env *Env, i int) record.Value {
						if f(env, i).IsNull() {
							return null
						}
						return record.MakeBool(false)
					}, nil
				}
				return over(func(env *Env, _ int, v record.Value, re regex) record.Value {
					return record.MakeBool(re.match(env.bytes(v)))
				})(c)
			}},
		{Name: "REGEXP_EXTRACT", Signature: "REGEXP_EXTRACT(text, regex[, group])", Summary: "the first match, or the group of it", Nulls: "NULL where an argument is, or nothing matches", Example: "REGEXP_EXTRACT('a=1;b=2', 'b=(\\d+)', 1)", ExampleResult: "2", Args: "ss?i", Result: stringType(),
			Build: func(c *Call) (EvalFunc, error) {
				g := group(c, 0)
				return over(func(env *Env, i int, v record.Value, re regex) record.Value {
					n := g(env, i)
					if n.IsNull() || n.Int() < 0 || n.Int() > int64(re.groups()) {
						return null
					}
					m := re.find(env, env.bytes(v))
					if m == nil || m[2*n.Int()] < 0 {
						return null
					}
					return v.Sub(m[2*n.Int()], m[2*n.Int()+1])
				})(c)
			}},
		{Name: "REGEXP_REPLACE", Signature: "REGEXP_REPLACE(text, regex, new)", Summary: "text with every match replaced; new is taken as it is", Example: "REGEXP_REPLACE('10.1.2.3', '\\d+$', '0')", ExampleResult: "10.1.2.0", Args: "sss",
			Type: func(c *Call) (Type, error) { return stringType().null(c.NotNull()), nil },
			Build: func(c *Call) (EvalFunc, error) {
				g := c.Arg(2)
				return over(func(env *Env, i int, v record.Value, re regex) record.Value {
					w := g(env, i)
					if w.IsNull() {
						return null
					}
					p, repl := env.bytes(v), env.bytes(w)
					if !re.match(p) {
						return v
					}
					off, at, big := len(env.B.Buf), 0, false
					buf := env.B.Buf
					for m := range re.all(env, p) {
						buf = append(append(buf, p[at:m[0]]...), repl...)
						at = m[1]
						if big = len(buf)-off > maxText; big {
							break
						}
					}
					if big {
						return null
					}
					env.B.Buf = append(buf, p[at:]...)
					return env.B.Since(off)
				})(c)
			}},
		{Name: "REGEXP_COUNT", Signature: "REGEXP_COUNT(text, regex)", Summary: "the number of matches", Example: "REGEXP_COUNT('a1b22', '\\d+')", ExampleResult: "2", Args: "ss", Result: simple(TInt),
			Build: over(func(env *Env, _ int, v record.Value, re regex) record.Value {
				n := int64(0)
				for range re.all(env, env.bytes(v)) {
					n++
				}
				return record.MakeInt(n)
			})},
		{Name: "REGEXP_INSTR", Signature: "REGEXP_INSTR(text, regex)", Summary: "the number of the character where the first match begins, 0 where nothing matches", Example: "REGEXP_INSTR('abc', 'c')", ExampleResult: "3", Args: "ss", Result: simple(TInt),
			Build: over(func(env *Env, _ int, v record.Value, re regex) record.Value {
				p := env.bytes(v)
				m := re.find(env, p)
				if m == nil {
					return record.MakeInt(0)
				}
				return record.MakeInt(charLen(p[:m[0]]) + 1)
			})},
		{Name: "REGEXP_SUBSTR", Signature: "REGEXP_SUBSTR(text, regex)", Summary: "the first match", Nulls: "NULL where an argument is, or nothing matches", Example: "REGEXP_SUBSTR('abc123', '\\d+')", ExampleResult: "123", Args: "ss", Result: stringType(),
			Build: over(func(env *Env, _ int, v record.Value, re regex) record.Value {
				m := re.find(env, env.bytes(v))
				if m == nil {
					return null
				}
				return v.Sub(m[0], m[1])
			})},
		{Name: "REGEXP_EXTRACT_ALL", Signature: "REGEXP_EXTRACT_ALL(text, regex[, group])", Summary: "the group (1) of every match, as an array", Example: "REGEXP_EXTRACT_ALL('a1b22', '(\\d+)')", ExampleResult: "[1, 22]", Args: "ss?i", Result: arrayOf(stringType()),
			Build: func(c *Call) (EvalFunc, error) {
				g := group(c, 1)
				return over(func(env *Env, i int, v record.Value, re regex) record.Value {
					n := g(env, i)
					if n.IsNull() || n.Int() < 0 || n.Int() > int64(re.groups()) {
						return null
					}
					base := len(env.items)
					for m := range re.all(env, env.bytes(v)) {
						x := null
						if m[2*n.Int()] >= 0 {
							x = v.Sub(m[2*n.Int()], m[2*n.Int()+1])
						}
						env.items = append(env.items, x)
					}
					out := env.B.PutItems(record.Array, env.items[base:])
					env.items = env.items[:base]
					return out
				})(c)
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
