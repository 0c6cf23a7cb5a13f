package config

import (
	"reflect"

	"gopkg.in/yaml.v3"
)

// Map is a mapping whose order counts: `set: {a: 1, b: a}`.
type Map[T any] []Entry[T]

// Entry is one key and its value.
type Entry[T any] struct {
	Key   string
	Node  *yaml.Node // the key's
	Value T
}

// UnmarshalConfig reads the mapping in order.
func (m *Map[T]) UnmarshalConfig(c *Context, n *yaml.Node) {
	if r := Resolve(n); r == nil || r.Kind != yaml.MappingNode {
		c.Errorf(n, "want a mapping, got %s", describe(Resolve(n)))
		return
	}
	*m = nil
	for _, p := range c.Pairs(n) {
		e := Entry[T]{Key: p.Key.Value, Node: p.Key}
		c.In(p.Key.Value, func() { c.value(p.Value, reflect.ValueOf(&e.Value).Elem(), "") })
		*m = append(*m, e)
	}
}

// JSONSchema describes the mapping.
func (m Map[T]) JSONSchema() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": typeSchema(reflect.TypeFor[T]())}
}
