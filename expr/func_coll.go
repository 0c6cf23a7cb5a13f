package expr

import (
	"slices"

	"github.com/rsetl/rsetl/record"
)

// putArray makes an array of what f appends.
func putArray(env *Env, k record.Kind, f func(out []record.Value) []record.Value) record.Value {
	base := len(env.items)
	env.items = f(env.items)
	v := env.B.PutItems(k, env.items[base:])
	env.items = env.items[:base]
	return v
}

func contains(env *Env, vs []record.Value, v record.Value) bool {
	for _, x := range vs {
		if same(env, x, v) {
			return true
		}
	}
	return false
}

// elemOf is the type of argument i's elements.
func elemOf(c *Call, i int) Type {
	if t := c.ArgType(i); t.Kind == TArray {
		return *t.Elem
	}
	return Any
}

// withElem is the type of an array that also takes the value of argument i.
func withElem(c *Call) (Type, error) {
	e, ok := leastType(elemOf(c, 0), c.ArgType(1))
	if !ok {
		return Any, c.Errorf(1, "%s doesn't fit in %s", c.ArgType(1).nullable(), c.ArgType(0).nullable())
	}
	return arrayOf(e).null(c.ArgType(0).NotNull), nil
}

func arraysType(c *Call) (Type, error) {
	t := c.ArgType(0)
	for i := 1; i < c.Len(); i++ {
		var ok bool
		if t, ok = leastType(t, c.ArgType(i)); !ok {
			return Any, c.Errorf(i, "%s and %s don't go together", c.ArgType(0).nullable(), c.ArgType(i).nullable())
		}
	}
	return t.null(c.NotNull()), nil
}

func fitsElem(c *Call) error {
	e := elemOf(c, 0)
	t := c.ArgType(1)
	if e.isDynamic() || t.isDynamic() {
		return nil
	}
	if _, ok := leastType(e, t); !ok {
		return c.Errorf(1, "an element of %s is never %s", c.ArgType(0).nullable(), t.nullable())
	}
	return nil
}

func collFuncs() []Function {
	const cat = "collection"
	// nullElem functions take a NULL element but no NULL array.
	needArray := func(f func(env *Env, a []record.Value) record.Value) func(env *Env, a []record.Value) record.Value {
		return func(env *Env, a []record.Value) record.Value {
			if a[0].Kind() != record.Array {
				return null
			}
			return f(env, a)
		}
	}
	firstNN := func(t Type) func(c *Call) (Type, error) {
		return func(c *Call) (Type, error) { return t.null(c.ArgType(0).NotNull), fitsElem(c) }
	}
	minMax := func(sign int) func(env *Env, a []record.Value) record.Value {
		return func(env *Env, a []record.Value) record.Value {
			best := null
			for _, v := range env.B.Items(a[0]) {
				if v.IsNull() {
					continue
				}
				if best.IsNull() {
					best = v
				} else if c, ok := compare(env, v, best); ok && c*sign > 0 {
					best = v
				}
			}
			return best
		}
	}
	elemNullable := func(c *Call) (Type, error) { return elemOf(c, 0).nullable(), nil }
	fs := []Function{
		{Name: "CARDINALITY", Aliases: []string{"ARRAY_SIZE"}, Signature: "CARDINALITY(collection)", Summary: "the number of elements of an array or pairs of a map", Example: "CARDINALITY(ARRAY[1, 2])", ExampleResult: "2", Args: "x",
			Type: func(c *Call) (Type, error) {
				if t := c.ArgType(0); t.Kind != TArray && t.Kind != TMap && !t.isDynamic() {
					return Any, c.Errorf(0, "CARDINALITY takes an array or a map, not %s", t.nullable())
				}
				return simple(TInt).null(c.NotNull()), nil
			},
			Fn: func(env *Env, a []record.Value) record.Value {
				if k := a[0].Kind(); k != record.Array && k != record.Map {
					return null
				}
				return record.MakeInt(int64(a[0].Len()))
			}},
		{Name: "ELEMENT", Signature: "ELEMENT(array)", Summary: "the only element of an array", Nulls: "NULL where the array is, or hasn't one element", Example: "ELEMENT(ARRAY[5])", ExampleResult: "5", Args: "a",
			Type: func(c *Call) (Type, error) { t := elemOf(c, 0); return t.null(t.NotNull && c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Len() != 1 {
					return null
				}
				return env.B.Items(a[0])[0]
			}},
		{Name: "ARRAY_CONTAINS", Signature: "ARRAY_CONTAINS(array, value)", Summary: "whether the array has the value; NULL is one", Nulls: "NULL where the array is", Example: "ARRAY_CONTAINS(ARRAY['a', 'b'], 'b')", ExampleResult: "TRUE", Args: "ax", TakesNull: true, Type: firstNN(simple(TBoolean)),
			Fn: needArray(func(env *Env, a []record.Value) record.Value {
				return record.MakeBool(contains(env, env.B.Items(a[0]), a[1]))
			})},
		{Name: "ARRAY_POSITION", Signature: "ARRAY_POSITION(array, value)", Summary: "the number of the first element (from 1) that equals the value, 0 where none does", Example: "ARRAY_POSITION(ARRAY['a', 'b'], 'b')", ExampleResult: "2", Args: "ax",
			Type: func(c *Call) (Type, error) { return simple(TInt).null(c.NotNull()), fitsElem(c) },
			Fn: func(env *Env, a []record.Value) record.Value {
				for i, x := range env.B.Items(a[0]) {
					if same(env, x, a[1]) {
						return record.MakeInt(int64(i + 1))
					}
				}
				return record.MakeInt(0)
			}},
		{Name: "ARRAY_APPEND", Signature: "ARRAY_APPEND(array, value)", Summary: "the array with the value at its end", Nulls: "NULL where the array is", Example: "ARRAY_APPEND(ARRAY[1], 2)", ExampleResult: "[1, 2]", Args: "ax", TakesNull: true, Type: withElem,
			Fn: needArray(func(env *Env, a []record.Value) record.Value {
				return putArray(env, record.Array, func(o []record.Value) []record.Value { return append(append(o, env.B.Items(a[0])...), a[1]) })
			})},
		{Name: "ARRAY_PREPEND", Signature: "ARRAY_PREPEND(array, value)", Summary: "the array with the value at its start", Nulls: "NULL where the array is", Example: "ARRAY_PREPEND(ARRAY[1], 2)", ExampleResult: "[2, 1]", Args: "ax", TakesNull: true, Type: withElem,
			Fn: needArray(func(env *Env, a []record.Value) record.Value {
				return putArray(env, record.Array, func(o []record.Value) []record.Value { return append(append(o, a[1]), env.B.Items(a[0])...) })
			})},
		{Name: "ARRAY_REMOVE", Signature: "ARRAY_REMOVE(array, value)", Summary: "the array without the elements that equal the value", Nulls: "NULL where the array is", Example: "ARRAY_REMOVE(ARRAY[1, 2, 1], 1)", ExampleResult: "[2]", Args: "ax", TakesNull: true, Type: func(c *Call) (Type, error) {
			t, err := withElem(c)
			return t, err
		},
			Fn: needArray(func(env *Env, a []record.Value) record.Value {
				return putArray(env, record.Array, func(o []record.Value) []record.Value {
					for _, x := range env.B.Items(a[0]) {
						if !same(env, x, a[1]) {
							o = append(o, x)
						}
					}
					return o
				})
			})},
		{Name: "ARRAY_DISTINCT", Signature: "ARRAY_DISTINCT(array)", Summary: "the array with each value once", Example: "ARRAY_DISTINCT(ARRAY[1, 2, 1])", ExampleResult: "[1, 2]", Args: "a", Type: typeOfFirst,
			Fn: func(env *Env, a []record.Value) record.Value {
				base := len(env.items)
				return putArray(env, record.Array, func(o []record.Value) []record.Value { return addDistinct(env, o, base, env.B.Items(a[0])) })
			}},
		{Name: "ARRAY_REVERSE", Signature: "ARRAY_REVERSE(array)", Summary: "the elements in reverse order", Example: "ARRAY_REVERSE(ARRAY[1, 2])", ExampleResult: "[2, 1]", Args: "a", Type: typeOfFirst,
			Fn: func(env *Env, a []record.Value) record.Value {
				v := env.B.PutItems(record.Array, env.B.Items(a[0]))
				slices.Reverse(env.B.Items(v))
				return v
			}},
		{Name: "ARRAY_SLICE", Signature: "ARRAY_SLICE(array, from[, to])", Summary: "the elements from one number to another (from 1; -1 is the last)", Example: "ARRAY_SLICE(ARRAY[1, 2, 3], 2)", ExampleResult: "[2, 3]", Args: "ai?i", Type: func(c *Call) (Type, error) { return c.ArgType(0).null(c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				n := int64(a[0].Len())
				from, to := a[1].Int(), n
				if len(a) > 2 {
					to = a[2].Int()
				}
				if from < 0 {
					from += n + 1
				}
				if to < 0 {
					to += n + 1
				}
				from, to = max(from, 1), min(to, n)
				if from > to {
					return env.B.PutItems(record.Array, nil)
				}
				return record.MakeRef(record.Array, a[0].Off()+int(from)-1, int(to-from+1))
			}},
		{Name: "ARRAY_CONCAT", Signature: "ARRAY_CONCAT(array, ...)", Summary: "the arrays one after the other", Example: "ARRAY_CONCAT(ARRAY[1], ARRAY[2])", ExampleResult: "[1, 2]", Args: "a*", Type: arraysType,
			Fn: func(env *Env, a []record.Value) record.Value {
				return putArray(env, record.Array, func(o []record.Value) []record.Value {
					for _, v := range a {
						o = append(o, env.B.Items(v)...)
					}
					return o
				})
			}},
		{Name: "ARRAY_UNION", Signature: "ARRAY_UNION(a, b)", Summary: "the values of both arrays, each once", Example: "ARRAY_UNION(ARRAY[1, 2], ARRAY[2, 3])", ExampleResult: "[1, 2, 3]", Args: "aa", Type: arraysType,
			Fn: func(env *Env, a []record.Value) record.Value {
				base := len(env.items)
				return putArray(env, record.Array, func(o []record.Value) []record.Value {
					return addDistinct(env, addDistinct(env, o, base, env.B.Items(a[0])), base, env.B.Items(a[1]))
				})
			}},
		{Name: "ARRAY_INTERSECT", Signature: "ARRAY_INTERSECT(a, b)", Summary: "the values that are in both arrays, each once", Example: "ARRAY_INTERSECT(ARRAY[1, 2], ARRAY[2, 3])", ExampleResult: "[2]", Args: "aa", Type: arraysType,
			Fn: func(env *Env, a []record.Value) record.Value { return arraySet(env, a, true) }},
		{Name: "ARRAY_EXCEPT", Signature: "ARRAY_EXCEPT(a, b)", Summary: "the values of a that aren't in b, each once", Example: "ARRAY_EXCEPT(ARRAY[1, 2], ARRAY[2])", ExampleResult: "[1]", Args: "aa", Type: arraysType,
			Fn: func(env *Env, a []record.Value) record.Value { return arraySet(env, a, false) }},
		{Name: "ARRAY_JOIN", Signature: "ARRAY_JOIN(array, separator[, null text])", Summary: "the texts with the separator between them", Nulls: "NULL elements are left out, or the null text", Example: "ARRAY_JOIN(ARRAY['a', 'b'], '-')", ExampleResult: "a-b", Args: "as?s",
			Type: func(c *Call) (Type, error) {
				if e := elemOf(c, 0); !e.isText() && !e.isDynamic() {
					return Any, c.Errorf(0, "ARRAY_JOIN takes an array of text, not %s", c.ArgType(0).nullable())
				}
				return stringType().null(c.NotNull()), nil
			},
			Fn: func(env *Env, a []record.Value) record.Value {
				off, first := len(env.B.Buf), true
				for _, v := range env.B.Items(a[0]) {
					if v.IsNull() {
						if len(a) < 3 {
							continue
						}
						v = a[2]
					}
					if !first {
						env.B.Buf = append(env.B.Buf, env.bytes(a[1])...)
					}
					first = false
					env.B.Buf = AppendText(env.B.Buf, env.B, v)
				}
				return env.B.Since(off)
			}},
		{Name: "ARRAY_MAX", Signature: "ARRAY_MAX(array)", Summary: "the largest element", Nulls: "NULL elements are left out", Example: "ARRAY_MAX(ARRAY[1, 3, 2])", ExampleResult: "3", Args: "a", Type: elemNullable, Fn: minMax(1)},
		{Name: "ARRAY_MIN", Signature: "ARRAY_MIN(array)", Summary: "the smallest element", Nulls: "NULL elements are left out", Example: "ARRAY_MIN(ARRAY[1, 3, 2])", ExampleResult: "1", Args: "a", Type: elemNullable, Fn: minMax(-1)},
		{Name: "ARRAY_SORT", Signature: "ARRAY_SORT(array[, ascending[, nulls first]])", Summary: "the elements in order", Nulls: "NULL elements come first, last where descending", Example: "ARRAY_SORT(ARRAY[3, 1, 2])", ExampleResult: "[1, 2, 3]", Args: "a?bb", Type: typeOfFirst,
			Fn: func(env *Env, a []record.Value) record.Value {
				asc := len(a) < 2 || a[1].Bool()
				nullsFirst := asc
				if len(a) > 2 {
					nullsFirst = a[2].Bool()
				}
				v := env.B.PutItems(record.Array, env.B.Items(a[0]))
				slices.SortStableFunc(env.B.Items(v), func(x, y record.Value) int {
					if x.IsNull() || y.IsNull() {
						c := 0
						if x.IsNull() && !y.IsNull() {
							c = -1
						} else if !x.IsNull() {
							c = 1
						}
						if !nullsFirst {
							c = -c
						}
						return c
					}
					c, _ := compare(env, x, y)
					if !asc {
						c = -c
					}
					return c
				})
				return v
			}},
		{Name: "MAP_KEYS", Signature: "MAP_KEYS(map)", Summary: "the keys, as an array", Example: "MAP_KEYS(MAP['a', 1])", ExampleResult: "[a]", Args: "m",
			Type: func(c *Call) (Type, error) { k, _ := mapTypes(c); return arrayOf(k).null(c.NotNull()), nil },
			Fn:   func(env *Env, a []record.Value) record.Value { return everySecond(env, a[0], 0) }},
		{Name: "MAP_VALUES", Signature: "MAP_VALUES(map)", Summary: "the values, as an array", Example: "MAP_VALUES(MAP['a', 1])", ExampleResult: "[1]", Args: "m",
			Type: func(c *Call) (Type, error) { _, v := mapTypes(c); return arrayOf(v).null(c.NotNull()), nil },
			Fn:   func(env *Env, a []record.Value) record.Value { return everySecond(env, a[0], 1) }},
		{Name: "MAP_ENTRIES", Signature: "MAP_ENTRIES(map)", Summary: "the pairs, as an array of rows", Example: "MAP_ENTRIES(MAP['a', 1])", ExampleResult: "[(a, 1)]", Args: "m",
			Type: func(c *Call) (Type, error) {
				k, v := mapTypes(c)
				return arrayOf(Type{Kind: TRow, Cols: []Column{{"key", k}, {"value", v}}}).null(c.NotNull()), nil
			},
			Fn: func(env *Env, a []record.Value) record.Value {
				n := a[0].Len()
				return putArray(env, record.Array, func(o []record.Value) []record.Value {
					for i := range n {
						o = append(o, env.B.PutItems(record.Array, env.B.Items(a[0])[2*i:2*i+2]))
					}
					return o
				})
			}},
		{Name: "MAP_FROM_ARRAYS", Signature: "MAP_FROM_ARRAYS(keys, values)", Summary: "a map of two arrays of one length", Nulls: "NULL where an argument is, or the lengths differ", Example: "MAP_FROM_ARRAYS(ARRAY['a'], ARRAY[1])", ExampleResult: "{a=1}", Args: "aa",
			Type: func(c *Call) (Type, error) { return mapOf(elemOf(c, 0), elemOf(c, 1)).null(c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Len() != a[1].Len() {
					return null
				}
				base := len(env.items)
				return putArray(env, record.Map, func(o []record.Value) []record.Value {
					for i, k := range env.B.Items(a[0]) {
						o = putPair(env, o, base, k, env.B.Items(a[1])[i])
					}
					return o
				})
			}},
		{Name: "MAP_UNION", Signature: "MAP_UNION(map, ...)", Summary: "the pairs of all maps; of one key the last", Example: "MAP_UNION(MAP['a', 1], MAP['b', 2])", ExampleResult: "{a=1, b=2}", Args: "m*", Type: arraysType,
			Fn: func(env *Env, a []record.Value) record.Value {
				base := len(env.items)
				return putArray(env, record.Map, func(o []record.Value) []record.Value {
					for _, m := range a {
						it := env.B.Items(m)
						for i := 0; i+1 < len(it); i += 2 {
							o = putPair(env, o, base, it[i], it[i+1])
						}
					}
					return o
				})
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

func mapTypes(c *Call) (k, v Type) {
	if t := c.ArgType(0); t.Kind == TMap {
		return *t.Key, *t.Elem
	}
	return Any, Any
}

func addDistinct(env *Env, o []record.Value, base int, vs []record.Value) []record.Value {
	for _, v := range vs {
		if !contains(env, o[base:], v) {
			o = append(o, v)
		}
	}
	return o
}

func arraySet(env *Env, a []record.Value, both bool) record.Value {
	base := len(env.items)
	return putArray(env, record.Array, func(o []record.Value) []record.Value {
		for _, v := range env.B.Items(a[0]) {
			if contains(env, env.B.Items(a[1]), v) == both && !contains(env, o[base:], v) {
				o = append(o, v)
			}
		}
		return o
	})
}

func putPair(env *Env, o []record.Value, base int, k, v record.Value) []record.Value {
	for at := base; at < len(o); at += 2 {
		if same(env, o[at], k) {
			o[at+1] = v
			return o
		}
	}
	return append(o, k, v)
}

func everySecond(env *Env, m record.Value, at int) record.Value {
	return putArray(env, record.Array, func(o []record.Value) []record.Value {
		it := env.B.Items(m)
		for i := at; i < len(it); i += 2 {
			o = append(o, it[i])
		}
		return o
	})
}
