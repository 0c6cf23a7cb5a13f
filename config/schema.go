package config

import (
	"reflect"
	"strings"
)

// Schemer is a type that says itself how it appears in the JSON Schema.
type Schemer interface {
	JSONSchema() map[string]any
}

// Schema is the JSON Schema of a struct that Decode fills.
func Schema(v any) map[string]any { return typeSchema(reflect.TypeOf(v)) }

func typeSchema(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.New(t).Interface().(Schemer); ok {
		return s.JSONSchema()
	}
	switch {
	case t == typeDuration:
		return map[string]any{"type": "string", "description": "duration: 500ms, 10s, 1m, 7d"}
	case t == typeSize:
		return map[string]any{"type": []string{"string", "integer"}, "description": "size: 65536, 64KiB, 10MB"}
	case t == typeNode:
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Struct:
		return StructSchema(t)
	case reflect.Slice:
		item := typeSchema(t.Elem())
		return map[string]any{"anyOf": []any{map[string]any{"type": "array", "items": item}, item}}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": typeSchema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": []string{"boolean", "string"}}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": []string{"integer", "string"}}
	case reflect.Float64:
		return map[string]any{"type": []string{"number", "string"}}
	}
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

// StructSchema is the schema of a struct's options, whatever the type says of itself.
func StructSchema(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	props := map[string]any{}
	var required []string
	for _, o := range options(t) {
		s := typeSchema(o.typ)
		if o.enum != "" {
			s = map[string]any{"enum": strings.Split(o.enum, ",")}
		}
		if o.doc != "" {
			s["description"] = o.doc
		}
		if o.def != "" {
			s["default"] = o.def
		}
		props[o.name] = s
		if o.required {
			required = append(required, o.name)
		}
	}
	s := map[string]any{"type": []string{"object", "null"}, "properties": props, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// Option is one row of a component's reference.
type Option struct {
	Name, Type, Default, Doc string
	Required                 bool
	Sub                      []Option // a nested struct's
}

// Options are a config struct's options in order, for the reference.
func Options(v any) []Option {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return listOptions(t, 0)
}

func listOptions(t reflect.Type, depth int) []Option {
	var out []Option
	for _, o := range options(t) {
		x := Option{Name: o.name, Type: typeName(o), Default: o.def, Doc: o.doc, Required: o.required}
		e := o.typ
		for e.Kind() == reflect.Pointer || e.Kind() == reflect.Slice {
			e = e.Elem()
		}
		if _, custom := reflect.New(e).Interface().(Schemer); !custom && e.Kind() == reflect.Struct && e != typeNode && depth < 4 {
			x.Sub = listOptions(e, depth+1)
		}
		out = append(out, x)
	}
	return out
}

func typeName(o option) string {
	t, list := o.typ, ""
	if s, ok := reflect.New(t).Interface().(Schemer); ok && o.enum == "" {
		m := s.JSONSchema()
		if d, ok := m["description"].(string); ok {
			return d
		}
		return "mapping"
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice {
			list = "list of "
		}
		t = t.Elem()
	}
	switch {
	case o.enum != "":
		return list + strings.ReplaceAll(o.enum, ",", " \\| ")
	case t == typeDuration:
		return list + "duration"
	case t == typeSize:
		return list + "size"
	}
	if s, ok := reflect.New(t).Interface().(Schemer); ok {
		m := s.JSONSchema()
		if d, ok := m["description"].(string); ok {
			return list + d
		}
		return list + "mapping"
	}
	switch t.Kind() {
	case reflect.String:
		return list + "text"
	case reflect.Bool:
		return list + "boolean"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return list + "integer"
	case reflect.Float64:
		return list + "number"
	case reflect.Map, reflect.Struct:
		return list + "mapping"
	}
	return list + t.Kind().String()
}
