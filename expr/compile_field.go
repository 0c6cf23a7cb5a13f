package expr

import (
	"sync"

	"github.com/rsetl/rsetl/record"
)

func (k *compilation) field(n *Node) (*code, *Error) {
	t := Any
	if k.c.TypeOf != nil {
		t = k.c.TypeOf(n.Name)
	}
	return &code{n: n, t: t, f: fieldFunc(k.c.Table, n.Name), slot: k.c.Table.Slot(n.Name)}, nil
}

// fieldFunc reads the field path. Where the record has no such leaf but fields
// below it, they are put together to a map.
func fieldFunc(table *record.Table, path string) EvalFunc {
	slot := table.Slot(path)
	// The table is filled after this program was compiled and frozen before it runs.
	below := sync.OnceValue(func() []int {
		var out []int
		for s := range table.Len() {
			if s != slot && record.Under(table.Name(s), path) {
				out = append(out, s)
			}
		}
		return out
	})
	return func(env *Env, i int) record.Value {
		v := env.B.Get(i, slot)
		if v.Kind() != record.Missing {
			return v
		}
		slots := below()
		if len(slots) == 0 && !env.B.HasOverflow(i) {
			return v
		}
		return assemble(env, i, path, slots)
	}
}

// assemble makes a map, nested, of the fields below path.
func assemble(env *Env, i int, path string, slots []int) record.Value {
	b := env.B
	type leaf struct {
		name string
		v    record.Value
	}
	var leaves []leaf
	for _, s := range slots {
		if v := b.Get(i, s); v.Kind() != record.Missing {
			leaves = append(leaves, leaf{b.Table.Name(s)[len(path)+1:], v})
		}
	}
	for name, v := range b.Overflow(i) {
		if p := b.Bytes(name); record.Under(p, path) && len(p) > len(path)+1 {
			leaves = append(leaves, leaf{string(p[len(path)+1:]), v})
		}
	}
	if len(leaves) == 0 {
		return record.Value{}
	}
	type tree struct {
		keys []string
		kids map[string]*tree
		v    record.Value
	}
	root := &tree{}
	for _, l := range leaves {
		t := root
		for rest := l.name; ; {
			key, more := rest, ""
			for j := range len(rest) {
				if rest[j] == '.' {
					key, more = rest[:j], rest[j+1:]
					break
				}
			}
			if t.kids == nil {
				t.kids = map[string]*tree{}
			}
			kid := t.kids[key]
			if kid == nil {
				kid = &tree{}
				t.kids[key] = kid
				t.keys = append(t.keys, key)
			}
			t = kid
			if more == "" {
				break
			}
			rest = more
		}
		t.v = l.v
	}
	var put func(t *tree) record.Value
	put = func(t *tree) record.Value {
		if t.v.Kind() != record.Missing || t.kids == nil {
			return t.v
		}
		var kv []record.Value
		for _, key := range t.keys {
			v := put(t.kids[key])
			kv = append(kv, b.PutString(key), v)
		}
		return b.PutItems(record.Map, kv)
	}
	return put(root)
}
