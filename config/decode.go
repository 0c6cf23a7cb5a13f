package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/expr"
)

// Context goes along while one file's nodes are decoded.
type Context struct {
	Errs *Errors
	// Lookup resolves `${NAME}`; nil: the environment.
	Lookup func(string) (string, bool)
	// Lenient: a variable that can't be resolved is a warning (rsetl check), the value counts as absent.
	Lenient bool
	// Patterns are the shared patterns, by name.
	Patterns map[string]string
	// Functions are the shared named expressions.
	Functions expr.Macros

	path    []string
	visited int
	standIn bool // the last Scalar holds a stand-in for a variable that can't be resolved
}

// maxNodes bounds what one file may expand to through aliases.
const maxNodes = 200_000

// Unmarshaler is a type that reads its node itself and reports its own mistakes.
type Unmarshaler interface {
	UnmarshalConfig(c *Context, n *yaml.Node)
}

// Path is the path of the key that is being decoded.
func (c *Context) Path() string { return strings.Join(c.path, "") }

// Errorf reports a mistake at n under the current path.
func (c *Context) Errorf(n *yaml.Node, format string, args ...any) {
	c.Errs.Addf(n, c.Path(), format, args...)
}

// In runs f with key added to the path; `[2]` for an index.
func (c *Context) In(key string, f func()) {
	if len(c.path) > 0 && !strings.HasPrefix(key, "[") {
		key = "." + key
	}
	c.path = append(c.path, key)
	f()
	c.path = c.path[:len(c.path)-1]
}

// Resolve follows an alias.
func Resolve(n *yaml.Node) *yaml.Node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode && i < 100; i++ {
		n = n.Alias
	}
	return n
}

// Scalar gives a scalar's text with variables resolved. ok is false where it is no scalar or a
// variable is missing; that has been reported.
func (c *Context) Scalar(n *yaml.Node, want string) (s string, ok bool) {
	n = Resolve(n)
	if n == nil || n.Kind != yaml.ScalarNode {
		c.Errorf(n, "want %s, got %s", want, describe(n))
		return "", false
	}
	if n.Tag == "!!null" && want != "an expression" && want != "a value" {
		c.Errorf(n, "want %s, got nothing", want)
		return "", false
	}
	if strings.ContainsRune(n.Value, 0) {
		c.Errorf(n, "a NUL character")
		return "", false
	}
	lookup := c.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	s, missing := expand(n.Value, lookup, c.Errs.Hide)
	ok = true
	for _, m := range missing {
		if c.Lenient && !strings.Contains(m, "not a variable's name") {
			c.Errs.Warnf(n, c.Path(), "%s", m)
		} else {
			c.Errorf(n, "%s", m)
			ok = false
		}
	}
	c.standIn = ok && len(missing) > 0
	return s, ok
}

// Known tells whether the last Scalar is the real value: where a variable is missing and Lenient is set, a text
// holds a stand-in for it, which only the form of a text may be checked of.
func (c *Context) Known() bool { return !c.standIn }

func describe(n *yaml.Node) string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "nothing"
		}
		return strconv.Quote(n.Value)
	}
	return "something else"
}

// Pair is one entry of a mapping.
type Pair struct{ Key, Value *yaml.Node }

// Pairs gives a mapping's entries in order, merge keys (`<<`) included; a key given twice is reported.
func (c *Context) Pairs(n *yaml.Node) []Pair {
	n = Resolve(n)
	var out []Pair
	seen := map[string]*yaml.Node{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if c.visited++; c.visited > maxNodes {
			if c.visited == maxNodes+1 {
				c.Errorf(k, "the file expands to more than %d keys", maxNodes)
			}
			return nil
		}
		if k.Tag == "!!merge" {
			if v = Resolve(v); v.Kind == yaml.SequenceNode {
				merged = append(merged, v.Content...)
			} else {
				merged = append(merged, v)
			}
			continue
		}
		if k.Kind != yaml.ScalarNode {
			c.Errorf(k, "a key must be a plain text, got %s", describe(k))
			continue
		}
		if first, ok := seen[k.Value]; ok {
			c.Errorf(k, "key %q is given twice, first at line %d", k.Value, first.Line)
			continue
		}
		seen[k.Value] = k
		out = append(out, Pair{k, v})
	}
	for _, m := range merged {
		if m = Resolve(m); m == nil || m.Kind != yaml.MappingNode || c.visited > maxNodes || m == n {
			continue
		}
		for _, p := range c.Pairs(m) {
			if _, ok := seen[p.Key.Value]; !ok {
				seen[p.Key.Value] = p.Key
				out = append(out, p)
			}
		}
	}
	return out
}

// Decode fills into, a pointer. A struct's fields are named by their yaml tag (`yaml:"name,required"`),
// documented by `doc`, preset by `default`, limited by `enum:"a,b"` and `min`.
func (c *Context) Decode(n *yaml.Node, into any) {
	v := reflect.ValueOf(into).Elem()
	Defaults(into)
	c.value(n, v, "")
}

// DecodeStruct fills a struct from a mapping even where its type is an Unmarshaler: for long
// forms. extra are keys that the caller handles.
func (c *Context) DecodeStruct(n *yaml.Node, into any, extra ...string) {
	Defaults(into)
	c.structure(n, reflect.ValueOf(into).Elem(), extra)
}

// Defaults sets a struct's fields to their `default` tags, recursively.
func Defaults(into any) { setDefaults(reflect.ValueOf(into).Elem()) }

func setDefaults(v reflect.Value) {
	if v.Kind() != reflect.Struct {
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if def, ok := f.Tag.Lookup("default"); ok && v.Field(i).IsZero() {
			var errs Errors
			c := &Context{Errs: &errs}
			n := &yaml.Node{Kind: yaml.ScalarNode, Value: def, Style: yaml.DoubleQuotedStyle, Tag: "!!str"}
			if fv := v.Field(i); fv.Kind() == reflect.Pointer {
				fv.Set(reflect.New(fv.Type().Elem()))
				c.value(n, fv.Elem(), "")
			} else {
				c.value(n, fv, "")
			}
			if errs.Failed() {
				panic(fmt.Sprintf("config: default of %s.%s: %v", v.Type(), f.Name, errs.Err()))
			}
		} else if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[yaml.Node]() {
			setDefaults(v.Field(i))
		}
	}
}

var (
	typeNode     = reflect.TypeFor[yaml.Node]()
	typeDuration = reflect.TypeFor[Duration]()
	typeSize     = reflect.TypeFor[Size]()
)

func (c *Context) value(n *yaml.Node, v reflect.Value, enum string) {
	if c.visited++; c.visited > maxNodes {
		return
	}
	if v.Type() == typeNode {
		v.Set(reflect.ValueOf(*Resolve(n)))
		return
	}
	if u, ok := v.Addr().Interface().(Unmarshaler); ok {
		u.UnmarshalConfig(c, n)
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			setDefaults(v.Elem())
		}
		c.value(n, v.Elem(), enum)
		return
	}
	n = Resolve(n)
	switch {
	case v.Type() == typeDuration:
		if s, ok := c.Scalar(n, "a duration like 10s"); ok && c.Known() {
			d, err := ParseDuration(s)
			if err != nil {
				c.Errorf(n, "%v", err)
			} else if d < 0 {
				c.Errorf(n, "a duration here can't be negative")
			}
			v.SetInt(int64(d))
		}
		return
	case v.Type() == typeSize:
		if s, ok := c.Scalar(n, "a size like 64KiB"); ok && c.Known() {
			d, err := ParseSize(s)
			if err != nil {
				c.Errorf(n, "%v", err)
			}
			v.SetInt(int64(d))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		c.structure(n, v, nil)
	case reflect.Slice:
		c.list(n, v, enum)
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			c.Errorf(n, "want a mapping, got %s", describe(n))
			return
		}
		m := reflect.MakeMap(v.Type())
		for _, p := range c.Pairs(n) {
			e := reflect.New(v.Type().Elem()).Elem()
			c.In(p.Key.Value, func() { c.value(p.Value, e, "") })
			m.SetMapIndex(reflect.ValueOf(p.Key.Value), e)
		}
		v.Set(m)
	case reflect.String:
		if s, ok := c.Scalar(n, "a text"); ok {
			if enum != "" && c.Known() && !slices.Contains(strings.Split(enum, ","), s) {
				c.Errorf(n, "%s is none of %s%s", describe(n), strings.ReplaceAll(enum, ",", ", "), near(s, strings.Split(enum, ",")))
			}
			v.SetString(s)
		}
	case reflect.Bool:
		if s, ok := c.Scalar(n, "true or false"); ok && c.Known() {
			switch strings.ToLower(s) {
			case "true", "yes", "on":
				v.SetBool(true)
			case "false", "no", "off":
				v.SetBool(false)
			default:
				c.Errorf(n, "want true or false, got %s", describe(n))
			}
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		if s, ok := c.Scalar(n, "a whole number"); ok && c.Known() {
			i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, v.Type().Bits())
			if err != nil {
				c.Errorf(n, "want a whole number, got %s", describe(n))
			}
			v.SetInt(i)
		}
	case reflect.Float64:
		if s, ok := c.Scalar(n, "a number"); ok && c.Known() {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				c.Errorf(n, "want a number, got %s", describe(n))
			}
			v.SetFloat(f)
		}
	default:
		panic("config: cannot decode into " + v.Type().String())
	}
}

// list takes a single scalar for a list of one, as people write it.
func (c *Context) list(n *yaml.Node, v reflect.Value, enum string) {
	items := n.Content
	if n.Kind != yaml.SequenceNode {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			c.Errorf(n, "want a list, got %s", describe(n))
			return
		}
		items = []*yaml.Node{n}
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		c.In(fmt.Sprintf("[%d]", i), func() {
			setDefaults(out.Index(i))
			c.value(item, out.Index(i), enum)
		})
	}
	v.Set(out)
}

func (c *Context) structure(n *yaml.Node, v reflect.Value, extra []string) {
	n = Resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		if n != nil && n.Kind == yaml.ScalarNode && n.Tag == "!!null" { // `stdout:` alone is the same as `stdout: {}`
			n = &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column}
		} else {
			c.Errorf(n, "want a mapping of options, got %s%s", describe(n), optionsHint(v.Type()))
			return
		}
	}
	opts := options(v.Type())
	byName := map[string]option{}
	names := append([]string(nil), extra...)
	for _, o := range opts {
		byName[o.name] = o
		names = append(names, o.name)
	}
	given := map[string]bool{}
	for _, p := range c.Pairs(n) {
		key := p.Key.Value
		given[key] = true
		if slices.Contains(extra, key) {
			continue
		}
		o, ok := byName[key]
		if !ok {
			given[Nearest(key, names)] = true // it is misspelt, not missing
			c.Errorf(p.Key, "unknown key %q%s", key, Meant(key, names))
			continue
		}
		c.In(key, func() {
			f := v.FieldByIndex(o.index)
			before := c.Errs.Count()
			if s := Resolve(p.Value); s.Kind == yaml.ScalarNode && s.Tag == "!!null" && f.Kind() != reflect.Struct && f.Kind() != reflect.Pointer {
				if _, ok := f.Addr().Interface().(Unmarshaler); !ok && f.Type() != typeNode {
					c.Errorf(p.Value, "a value is missing")
					return
				}
			}
			c.value(p.Value, f, o.enum)
			if o.min != "" && c.Errs.Count() == before && f.CanInt() && c.Known() {
				if m, _ := strconv.ParseInt(o.min, 10, 64); f.Int() < m {
					if o.typ == typeDuration {
						c.Errorf(p.Value, "must be longer than 0s, got %s", describe(Resolve(p.Value)))
					} else {
						c.Errorf(p.Value, "must be at least %d, got %s", m, describe(Resolve(p.Value)))
					}
				}
			}
		})
	}
	for _, o := range opts {
		if o.required && !given[o.name] {
			c.Errorf(n, "key %q is missing", o.name)
		}
	}
}

type option struct {
	name, doc, def, enum, min string
	required                  bool
	index                     []int
	typ                       reflect.Type
}

// options lists a struct's options in order, embedded structs' in place.
func options(t reflect.Type) []option {
	var out []option
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("yaml") == "" {
			for _, o := range options(f.Type) {
				o.index = append([]int{i}, o.index...)
				out = append(out, o)
			}
			continue
		}
		tag, ok := f.Tag.Lookup("yaml")
		if !ok || tag == "-" || !f.IsExported() {
			continue
		}
		name, rest, _ := strings.Cut(tag, ",")
		out = append(out, option{name: name, doc: f.Tag.Get("doc"), def: f.Tag.Get("default"), enum: f.Tag.Get("enum"),
			min: f.Tag.Get("min"), required: strings.Contains(rest, "required"), index: []int{i}, typ: f.Type})
	}
	return out
}

func optionsHint(t reflect.Type) string {
	var names []string
	for _, o := range options(t) {
		names = append(names, o.name)
	}
	if len(names) == 0 {
		return ""
	}
	return " (options: " + strings.Join(names, ", ") + ")"
}

func near(s string, from []string) string {
	if n := Nearest(s, from); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}
