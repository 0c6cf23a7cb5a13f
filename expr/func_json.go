package expr

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"github.com/rsetl/rsetl/record"
)

// jsonOutcome is what a path found.
type jsonOutcome uint8

const (
	jsonFound jsonOutcome = iota
	jsonEmpty             // nothing there, in lax mode
	jsonError             // no JSON, a wrong path, or nothing there in strict mode, which is the default as in Flink
)

// jsonLookup evaluates text and path.
type jsonLookup func(env *Env, i int) (n *jnode, out jsonOutcome, isNull bool)

func lookup(c *Call, accept func(n *jnode) bool) jsonLookup {
	f, g := c.Arg(0), c.Arg(1)
	var konst *jsonPath
	isConst := false
	if s, ok := c.ConstText(1); ok {
		isConst = true
		konst, _ = parseJSONPath(s) // a wrong path is an error at run time, which ON ERROR answers
	}
	return func(env *Env, i int) (*jnode, jsonOutcome, bool) {
		v := f(env, i)
		if v.IsNull() {
			return nil, jsonError, true
		}
		p := konst
		if !isConst {
			w := g(env, i)
			if w.IsNull() {
				return nil, jsonError, true
			}
			p = env.jsonPath(env.bytes(w))
		}
		if p == nil {
			return nil, jsonError, false
		}
		n, root := p.lookup(env, env.bytes(v))
		if root == 0 && p.lax {
			return nil, jsonEmpty, false
		}
		if root == 0 || root == 'n' {
			return nil, jsonError, false
		}
		if n == nil || !accept(n) {
			if p.lax {
				return nil, jsonEmpty, false
			}
			return nil, jsonError, false
		}
		return n, jsonFound, false
	}
}

// onClause gives what to answer on EMPTY or ERROR.
func onClause(c *Call, which string, t Type) (EvalFunc, error) {
	o := c.Node.Opts["ON "+which]
	if o == nil {
		return nil, nil
	}
	text := ""
	switch o.Name {
	case "NULL", "ERROR":
		return nil, nil // a failing job becomes NULL
	case "EMPTY ARRAY":
		text = "[]"
	case "EMPTY OBJECT":
		text = "{}"
	case "DEFAULT":
		d, err := c.k.node(c.Node.Opts["DEFAULT "+which])
		if err != nil {
			return nil, err
		}
		if !castable(d.t, t) {
			return nil, errAt(d.n.Off, "the DEFAULT is %s, not %s", d.t.nullable(), t)
		}
		c.k.ready(d)
		if d.konst {
			// The default may be folded or run: as a Go value it is right in both.
			return c.k.portable(d, t), nil
		}
		return c.k.conv(d, t), nil
	}
	return func(env *Env, _ int) record.Value { return env.B.PutString(text) }, nil
}

// portable evaluates a constant so that it is right in any batch.
func (k *compilation) portable(d *code, t Type) EvalFunc {
	ca := &caster{d.t, t, k.c.Zone}
	v := ca.cast(&k.env, d.v)
	switch v.Kind() {
	case record.String, record.Bytes:
		s, kind := string(k.env.bytes(v)), v.Kind()
		return func(env *Env, _ int) record.Value { return env.B.PutString(s).As(kind) }
	}
	return func(*Env, int) record.Value { return v }
}

func answer(env *Env, i int, f EvalFunc) record.Value {
	if f == nil {
		return null
	}
	return f(env, i)
}

func putJSON(env *Env, f func(dst []byte) []byte) record.Value {
	off := len(env.B.Buf)
	env.B.Buf = f(env.B.Buf)
	return env.B.Since(off)
}

func jsonFuncs() []Function {
	const cat = "json"
	returning := func(c *Call) Type {
		if r := c.Node.Opts["RETURNING"]; r != nil {
			return r.Type.nullable()
		}
		return stringType()
	}
	fs := []Function{
		{Name: "JSON_VALUE", Signature: "JSON_VALUE(text, path [RETURNING type] [NULL | ERROR | DEFAULT x ON EMPTY] [... ON ERROR])", Summary: "the scalar at a JSON path ('lax $.a.b[0]' or strict, the default)", Nulls: "NULL where an argument is, or by ON EMPTY and ON ERROR", Example: "JSON_VALUE('{\"a\":{\"b\":[7]}}', '$.a.b[0]')", ExampleResult: "7", Args: "ss",
			Type: func(c *Call) (Type, error) { return returning(c), nil },
			Build: func(c *Call) (EvalFunc, error) {
				t := returning(c)
				onEmpty, err := onClause(c, "EMPTY", t)
				if err != nil {
					return nil, err
				}
				onError, err := onClause(c, "ERROR", t)
				if err != nil {
					return nil, err
				}
				look := lookup(c, func(n *jnode) bool { return n.kind != '[' && n.kind != '{' && n.kind != 'n' })
				str := stringType()
				zone := c.Zone()
				return func(env *Env, i int) record.Value {
					n, out, isNull := look(env, i)
					switch {
					case isNull:
						return null
					case out == jsonEmpty:
						return answer(env, i, onEmpty)
					case out == jsonError:
						return answer(env, i, onError)
					}
					var v record.Value
					if n.kind == '0' {
						v = putJSON(env, func(dst []byte) []byte { return appendBigDecimal(dst, n.text) })
					} else {
						v = env.B.PutBytes(n.text)
					}
					if t.isText() {
						return v
					}
					ok := false // of another kind than asked for: NULL, not a conversion
					switch {
					case t.Kind == TBoolean:
						ok = n.kind == 'b'
					case t.isNumeric():
						ok = n.kind == '0' && !(t.isInt() && bytes.ContainsAny(n.text, ".eE"))
					}
					if !ok {
						return null
					}
					return castValue(env, v, &str, &t, zone)
				}, nil
			}},
		{Name: "JSON_QUERY", Signature: "JSON_QUERY(text, path [WITH | WITHOUT [CONDITIONAL] WRAPPER] [NULL | EMPTY ARRAY | EMPTY OBJECT ON EMPTY] [... ON ERROR])", Summary: "the array or object at a JSON path, as JSON with sorted keys", Nulls: "NULL where an argument is, or by ON EMPTY and ON ERROR", Example: "JSON_QUERY('{\"a\":[1, 2]}', '$.a')", ExampleResult: "[1,2]", Args: "ss",
			Type: func(c *Call) (Type, error) { return returning(c), nil },
			Build: func(c *Call) (EvalFunc, error) {
				t := returning(c)
				array := t.Kind == TArray && t.Elem.isText()
				if !t.isText() && !array {
					return nil, c.Errorf(-1, "JSON_QUERY returns STRING or ARRAY<STRING>, not %s", t)
				}
				onEmpty, err := onClause(c, "EMPTY", stringType())
				if err != nil {
					return nil, err
				}
				onError, err := onClause(c, "ERROR", stringType())
				if err != nil {
					return nil, err
				}
				mode := "WITHOUT"
				if w := c.Node.Opts["WRAPPER"]; w != nil {
					mode = w.Name
				}
				look := lookup(c, func(n *jnode) bool { return n.kind != 'n' && (mode != "WITHOUT" || n.kind == '[' || n.kind == '{') })
				return func(env *Env, i int) record.Value {
					n, out, isNull := look(env, i)
					if isNull {
						return null
					}
					if out != jsonFound {
						f := onEmpty
						if out == jsonError {
							f = onError
						}
						v := answer(env, i, f)
						if array && !v.IsNull() {
							if string(env.bytes(v)) != "[]" {
								return null
							}
							return env.B.PutItems(record.Array, nil)
						}
						return v
					}
					if mode == "WITH" || mode == "CONDITIONAL" && n.kind != '[' {
						n = &jnode{kind: '[', kids: []*jnode{n}}
					}
					if array {
						if n.kind != '[' {
							return null
						}
						base := len(env.items)
						for _, k := range n.kids {
							v := null
							switch k.kind {
							case 'n':
							case '"', 'b', '0':
								v = env.B.PutString(string(k.text))
							default:
								v = putJSON(env, k.append)
							}
							env.items = append(env.items, v)
						}
						v := env.B.PutItems(record.Array, env.items[base:])
						env.items = env.items[:base]
						return v
					}
					return putJSON(env, n.append)
				}, nil
			}},
		{Name: "JSON_EXISTS", Signature: "JSON_EXISTS(text, path [TRUE | FALSE | UNKNOWN ON ERROR])", Summary: "whether there is a value, not null, at a JSON path", Example: "JSON_EXISTS('{\"a\":1}', '$.a')", ExampleResult: "TRUE", Args: "ss", Result: simple(TBoolean),
			Build: func(c *Call) (EvalFunc, error) {
				onError := record.MakeBool(false)
				if o := c.Node.Opts["ON ERROR"]; o != nil {
					switch o.Name {
					case "TRUE":
						onError = record.MakeBool(true)
					case "UNKNOWN", "ERROR":
						onError = null
					}
				}
				look := lookup(c, func(n *jnode) bool { return n.kind != 'n' })
				return func(env *Env, i int) record.Value {
					_, out, isNull := look(env, i)
					switch {
					case isNull:
						return null
					case out == jsonError:
						return onError
					}
					return record.MakeBool(out == jsonFound)
				}, nil
			}},
		{Name: "JSON_STRING", Signature: "JSON_STRING(value)", Summary: "the value as JSON", Example: "JSON_STRING(ARRAY[1, 2])", ExampleResult: "[1,2]", Args: "x",
			Type: func(c *Call) (Type, error) {
				if t := c.ArgType(0); t.Kind == TDate || t.Kind == TTime || t.isInterval() {
					return Any, c.Errorf(0, "JSON_STRING takes no %s; CAST it AS STRING", t.nullable())
				}
				return stringType().null(c.NotNull()), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				f, t := c.Arg(0), c.ArgType(0)
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					if v.IsNull() {
						return null
					}
					return putJSON(env, func(dst []byte) []byte { return appendJSONValue(dst, env.B, v, &t) })
				}, nil
			}},
		{Name: "JSON", Signature: "JSON(text)", Summary: "text that is JSON already, for JSON_OBJECT and JSON_ARRAY", Example: "JSON_ARRAY(JSON('{\"a\":1}'))", ExampleResult: "[{\"a\":1}]", Args: "s", Type: func(c *Call) (Type, error) { return stringType().null(c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				n := parseJSON(env.bytes(a[0]))
				if n == nil {
					return null
				}
				return putJSON(env, n.append)
			}},
		{Name: "JSON_OBJECT", Signature: "JSON_OBJECT([KEY] key VALUE value, ... [NULL | ABSENT ON NULL])", Summary: "a JSON object, its keys in the order given", Nulls: "a value that is NULL is null, or left out", Example: "JSON_OBJECT('b' VALUE 1, 'a' VALUE 'x')", ExampleResult: "{\"b\":1,\"a\":\"x\"}", Args: "?x*",
			Type: func(c *Call) (Type, error) {
				for i := 0; i < c.Len(); i += 2 {
					if t := c.ArgType(i); !t.isText() && !t.isDynamic() || t.Kind == TNull {
						return Any, c.Errorf(i, "a key is text, not %s", t.nullable())
					}
				}
				return stringNN, nil
			},
			Build: func(c *Call) (EvalFunc, error) { return jsonBuild(c, true) }},
		{Name: "JSON_ARRAY", Signature: "JSON_ARRAY(value, ... [NULL | ABSENT ON NULL])", Summary: "a JSON array", Nulls: "a value that is NULL is left out, or null", Example: "JSON_ARRAY(1, 'x')", ExampleResult: "[1,\"x\"]", Args: "?x*", Type: func(*Call) (Type, error) { return stringNN, nil },
			Build: func(c *Call) (EvalFunc, error) { return jsonBuild(c, false) }},
		{Name: "JSON_QUOTE", Signature: "JSON_QUOTE(text)", Summary: "text as a JSON string", Example: "JSON_QUOTE('a\"b')", ExampleResult: "\"a\\\"b\"", Args: "s",
			Type: func(c *Call) (Type, error) { return stringType().null(c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				return putJSON(env, func(dst []byte) []byte { return appendJSONQuote(dst, env.bytes(a[0])) })
			}},
		{Name: "JSON_UNQUOTE", Signature: "JSON_UNQUOTE(text)", Summary: "the text of a JSON string; what is none stays as it is", Example: "JSON_UNQUOTE('\"abc\"')", ExampleResult: "abc", Args: "s",
			Type: func(c *Call) (Type, error) { return stringType().null(c.NotNull()), nil },
			Fn: func(env *Env, a []record.Value) record.Value {
				p := env.bytes(a[0])
				j := &jparser{p: p}
				if s, ok := j.str(); ok && j.i == len(p) {
					return env.B.PutString(string(s))
				}
				return a[0]
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// appendJSONQuote is appendJSONString with what Flink's JSON_QUOTE escapes besides: / and what is not ASCII.
func appendJSONQuote(dst, p []byte) []byte {
	const hexDigits = "0123456789abcdef"
	u16 := func(dst []byte, r rune) []byte {
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
	dst = append(dst, '"')
	for _, r := range string(p) {
		switch {
		case r == '/':
			dst = append(dst, '\\', '/')
		case r >= 0x10000:
			r -= 0x10000
			dst = u16(u16(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
		case r >= 0x7f:
			dst = u16(dst, r)
		default:
			q := appendJSONString(nil, []byte{byte(r)})
			dst = append(dst, q[1:len(q)-1]...)
		}
	}
	return append(dst, '"')
}

// rawJSON tells that a call's result is JSON, to be put in as it is.
func rawJSON(n *Node) bool {
	if n.Op != OpCall {
		return false
	}
	switch n.Name {
	case "JSON_OBJECT", "JSON_ARRAY", "JSON", "JSON_QUERY":
		return n.Name != "JSON_QUERY"
	}
	return false
}

func jsonBuild(c *Call, object bool) (EvalFunc, error) {
	absent := !object
	if o := c.Node.Opts["ON NULL"]; o != nil {
		absent = o.Name == "ABSENT"
	}
	n := c.Len()
	raw := make([]bool, n)
	types := make([]Type, n)
	for i := range n {
		raw[i] = rawJSON(c.Node.Args[i])
		types[i] = c.ArgType(i)
		if t := types[i]; (t.Kind == TDate || t.Kind == TTime || t.isInterval()) && !(object && i%2 == 0) {
			return nil, c.Errorf(i, "%s takes no %s; CAST it AS STRING", c.fn.Name, t.nullable())
		}
	}
	args := c.conv
	return func(env *Env, i int) record.Value {
		base := len(env.stack)
		for _, f := range args {
			v := f(env, i)
			env.stack = append(env.stack, v)
		}
		vs := env.stack[base:]
		env.stack = env.stack[:base]
		bad := false
		out := putJSON(env, func(dst []byte) []byte {
			open, end := byte('['), byte(']')
			if object {
				open, end = '{', '}'
			}
			dst = append(dst, open)
			first := true
			for j := 0; j < n; j++ {
				key := null
				if object {
					key = vs[j]
					j++
				}
				v := vs[j]
				if v.IsNull() && (absent || raw[j] && c.Node.Args[j].Name == "JSON") {
					bad = bad || raw[j]
					continue
				}
				if !first {
					dst = append(dst, ',')
				}
				first = false
				if object {
					if key.IsNull() {
						bad = true
					}
					dst = appendJSONString(dst, AppendText(nil, env.B, key))
					dst = append(dst, ':')
				}
				if raw[j] && v.Kind() == record.String {
					dst = append(dst, env.bytes(v)...)
				} else {
					dst = appendJSONValue(dst, env.B, v, &types[j])
				}
			}
			return append(dst, end)
		})
		if bad {
			return null
		}
		return out
	}, nil
}

// appendJSONValue writes a value as Flink's JSON_STRING does.
func appendJSONValue(dst []byte, b *record.Batch, v record.Value, t *Type) []byte {
	switch v.Kind() {
	case record.Missing, record.Null:
		return append(dst, "null"...)
	case record.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case record.Int, record.Decimal:
		return AppendText(dst, b, v)
	case record.Float:
		f := v.Float()
		if f != f || f-f != 0 {
			dst = append(dst, '"')
			dst = appendFloat(dst, f, 64)
			return append(dst, '"')
		}
		if f == 0 {
			return append(dst, "0.0"...)
		}
		return appendBigDecimal(dst, appendText(nil, b, v, t))
	case record.Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, b.Bytes(v))
		return append(dst, '"')
	case record.Time:
		dst = append(dst, '"')
		n := len(dst)
		dst = appendTimestamp(dst, record.MakeTime(v.Sec(), v.Nsec(), 9))
		for k := n; k < len(dst); k++ {
			if dst[k] == ' ' {
				dst[k] = 'T'
			}
		}
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
		if dst[len(dst)-1] == '.' {
			dst = dst[:len(dst)-1]
		}
		if t != nil && t.Kind == TTimestampLTZ {
			dst = append(dst, 'Z')
		}
		return append(dst, '"')
	case record.Array:
		row := t != nil && t.Kind == TRow
		open, end := byte('['), byte(']')
		if row {
			open, end = '{', '}'
		}
		dst = append(dst, open)
		for i, e := range b.Items(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if row && i < len(t.Cols) {
				dst = appendJSONString(dst, []byte(t.Cols[i].Name))
				dst = append(dst, ':')
			}
			dst = appendJSONValue(dst, b, e, elemType(t, i))
		}
		return append(dst, end)
	case record.Map:
		dst = append(dst, '{')
		it := b.Items(v)
		for i := 0; i+1 < len(it); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONString(dst, appendElem(nil, b, it[i], keyType(t)))
			dst = append(dst, ':')
			dst = appendJSONValue(dst, b, it[i+1], elemType(t, 0))
		}
		return append(dst, '}')
	}
	return appendJSONString(dst, AppendText(nil, b, v))
}
