package expr

import (
	"strings"

	"github.com/rsetl/rsetl/record"
)

// maxJSONKeys bounds what JSON_MERGE and JSON_SET make.
const maxJSONKeys = 10_000

// drop removes a key.
func (n *jnode) drop(key string) {
	for i, k := range n.keys {
		if k == key {
			n.keys = append(n.keys[:i:i], n.keys[i+1:]...)
			n.kids = append(n.kids[:i:i], n.kids[i+1:]...)
			return
		}
	}
}

// keyPath is `$.a.b`, `a.b` or `a` as its keys.
func keyPath(p []byte) []string {
	s := strings.TrimPrefix(strings.TrimPrefix(string(p), "$"), ".")
	if s == "" {
		return nil
	}
	return strings.Split(s, ".")
}

// object reads a JSON object; nil for anything else.
func object(p []byte) *jnode {
	if n := parseJSON(p); n != nil && n.kind == '{' && len(n.keys) <= maxJSONKeys {
		return n
	}
	return nil
}

// merge puts the keys of o into n; objects are merged, all else is replaced.
func (n *jnode) merge(o *jnode, depth int) {
	if depth > maxJSONDepth {
		return
	}
	for i, key := range o.keys {
		if old := n.get(key); old != nil && old.kind == '{' && o.kids[i].kind == '{' {
			old.merge(o.kids[i], depth+1)
			continue
		}
		n.put(key, o.kids[i])
	}
}

// jsonOf is a value as JSON; a text is a string, whatever is in it.
func jsonOf(env *Env, v record.Value) *jnode {
	if v.Kind() == record.String {
		return &jnode{kind: '"', text: append([]byte(nil), env.bytes(v)...)}
	}
	return parseJSON(append([]byte(nil), env.B.AppendJSON(nil, v)...))
}

func jsonEditFuncs() []Function {
	const cat = "JSON"
	made := func(env *Env, n *jnode) record.Value {
		if n == nil {
			return null
		}
		return putText(env, n.keep)
	}
	fs := []Function{
		{Name: "JSON_SET", Aliases: []string{"JSON_ADD"}, Signature: "JSON_SET(json, path, value, ...)", Summary: "the JSON object with the value at the path ($.a.b), made where it is missing", Nulls: "NULL where the text is no JSON object",
			Example: `JSON_SET('{"a":1}', '$.b.c', 2)`, ExampleResult: `{"a":1,"b":{"c":2}}`, Args: "ssx*", Result: stringType(), TakesNull: true,
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Kind() != record.String {
					return null
				}
				root := object(env.bytes(a[0]))
				if root == nil {
					return null
				}
				for i := 1; i+1 < len(a); i += 2 {
					if a[i].Kind() != record.String {
						return null
					}
					keys := keyPath(env.bytes(a[i]))
					if len(keys) == 0 || len(keys) > maxJSONDepth {
						return null
					}
					n := root
					for _, k := range keys[:len(keys)-1] {
						next := n.get(k)
						if next == nil || next.kind != '{' {
							next = &jnode{kind: '{'}
							n.put(k, next)
						}
						n = next
					}
					v := jsonOf(env, a[i+1])
					if v == nil {
						v = &jnode{kind: 'n', text: []byte("null")}
					}
					n.put(keys[len(keys)-1], v)
				}
				return made(env, root)
			}},
		{Name: "JSON_REMOVE", Signature: "JSON_REMOVE(json, path, ...)", Summary: "the JSON object without what is at the paths ($.a.b)", Nulls: "NULL where the text is no JSON object",
			Example: `JSON_REMOVE('{"a":1,"b":2}', '$.a')`, ExampleResult: `{"b":2}`, Args: "ss*", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				root := object(env.bytes(a[0]))
				if root == nil {
					return null
				}
				for _, p := range a[1:] {
					keys := keyPath(env.bytes(p))
					n := root
					for i, k := range keys {
						if i == len(keys)-1 {
							n.drop(k)
						} else if n = n.get(k); n == nil || n.kind != '{' {
							break
						}
					}
				}
				return made(env, root)
			}},
		{Name: "JSON_MERGE", Signature: "JSON_MERGE(json, json, ...)", Summary: "one JSON object of several; where keys meet, the last counts, and objects are merged", Nulls: "NULL where one is no JSON object",
			Example: `JSON_MERGE('{"a":1,"b":{"x":1}}', '{"b":{"y":2}}')`, ExampleResult: `{"a":1,"b":{"x":1,"y":2}}`, Args: "ss*", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				root := object(env.bytes(a[0]))
				if root == nil {
					return null
				}
				for _, p := range a[1:] {
					o := object(env.bytes(p))
					if o == nil || len(root.keys)+len(o.keys) > maxJSONKeys {
						return null
					}
					root.merge(o, 0)
				}
				return made(env, root)
			}},
		{Name: "JSON_CREATE", Signature: "JSON_CREATE(key, value, ...)", Summary: "a JSON object of keys and values in turn, in that order; see JSON_OBJECT", Nulls: "a NULL value is null in it; a NULL key makes it NULL",
			Example: "JSON_CREATE('a', 1, 'b', 'x')", ExampleResult: `{"a":1,"b":"x"}`, Args: "?sx*", Result: stringType(), TakesNull: true,
			Fn: func(env *Env, a []record.Value) record.Value {
				if len(a)%2 != 0 {
					return null
				}
				root := &jnode{kind: '{'}
				for i := 0; i < len(a); i += 2 {
					key := env.text(a[i])
					if key.IsNull() {
						return null
					}
					v := jsonOf(env, a[i+1])
					if v == nil {
						v = &jnode{kind: 'n', text: []byte("null")}
					}
					root.put(string(env.bytes(key)), v)
				}
				return made(env, root)
			}},
		{Name: "JSON_KEYS", Signature: "JSON_KEYS(json)", Summary: "the keys of a JSON object, as an array", Nulls: "NULL where the text is no JSON object",
			Example: `JSON_KEYS('{"a":1,"b":2}')`, ExampleResult: "[a, b]", Args: "s", Result: arrayOf(stringType()),
			Fn: func(env *Env, a []record.Value) record.Value {
				root := object(env.bytes(a[0]))
				if root == nil {
					return null
				}
				items := make([]record.Value, 0, len(root.keys))
				for _, k := range root.keys {
					items = append(items, env.B.PutString(k))
				}
				return env.B.PutItems(record.Array, items)
			}},
		{Name: "JSON_LENGTH", Signature: "JSON_LENGTH(json)", Summary: "how many elements a JSON array or keys an object has; 1 for other values", Nulls: "NULL where the text is no JSON",
			Example: "JSON_LENGTH('[1, 2, 3]')", ExampleResult: "3", Args: "s", Result: simple(TBigInt),
			Fn: func(env *Env, a []record.Value) record.Value {
				n := parseJSON(env.bytes(a[0]))
				switch {
				case n == nil:
					return null
				case n.kind == '{' || n.kind == '[':
					return record.MakeInt(int64(len(n.kids)))
				}
				return record.MakeInt(1)
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
