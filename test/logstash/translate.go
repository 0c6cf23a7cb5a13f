package logstash

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"gopkg.in/yaml.v3"
)

// step is one step of the translation.
type step struct {
	kind string
	body *yaml.Node
	when string
	// passes: where it fails a record Logstash lets the record pass as it was.
	passes bool
}

// m is a YAML mapping in order: keys and values in turn. Values are *yaml.Node or Go values.
func m(kv ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for i := 0; i < len(kv); i += 2 {
		n.Content = append(n.Content, node(kv[i]), node(kv[i+1]))
	}
	return n
}

func node(v any) *yaml.Node {
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: v}
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, e := range v {
			n.Content = append(n.Content, node(e))
		}
		return n
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
	}
	return node(fmt.Sprint(v))
}

var plain = regexp.MustCompile(`^[\p{L}_@][\p{L}\p{N}_@$]*$`)
var index = regexp.MustCompile(`^-?\d+$`)

// parts are the names of a field reference: `[a][b]` or `a`.
func parts(ref string) []string {
	if strings.HasPrefix(ref, "[") && strings.HasSuffix(ref, "]") {
		return strings.Split(ref[1:len(ref)-1], "][")
	}
	return []string{ref}
}

// field is a reference as rsetl's path.
func field(ref string) string {
	ps := parts(ref)
	for i, p := range ps {
		if !plain.MatchString(p) {
			ps[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
		}
	}
	return strings.Join(ps, ".")
}

// name is a reference as remove, add and rename have it: a path, an array's element, or a template.
func name(ref string) string {
	if strings.Contains(ref, "%{") {
		return template(ref)
	}
	if a, at, ok := element(ref); ok {
		return fmt.Sprintf("%s[%d]", a, at)
	}
	return field(ref)
}

// element splits a reference to an array's element; ok is false where it is none.
func element(ref string) (array string, at int, ok bool) {
	ps := parts(ref)
	last := ps[len(ps)-1]
	if len(ps) < 2 || !index.MatchString(last) {
		return "", 0, false
	}
	fmt.Sscan(last, &at)
	return field("[" + strings.Join(ps[:len(ps)-1], "][") + "]"), at, true
}

var reference = regexp.MustCompile(`%\{(\[[^}]*\]|[^}+][^}]*)\}`)

// template is a text with %{…} as rsetl has it.
func template(s string) string {
	return reference.ReplaceAllStringFunc(s, func(r string) string { return "%{" + field(r[2:len(r)-1]) + "}" })
}

func fields(v any) []any {
	var out []any
	for _, f := range list(v) {
		out = append(out, field(textOf(f)))
	}
	return out
}

// truth is a boolean option, which may be a text.
func truth(v any) bool { return v == true || v == "true" }

// Translate gives the steps that do what a filter's options say.
func Translate(c *Case) []step {
	o := &c.Options
	var out []step
	switch c.Filter {
	case "kv":
		out = kv(o)
	case "csv":
		out = csv(o)
	case "json":
		out = one("json", m("field", source(o), "event_checks", true), o, "target", "target")
		out[0].passes = truth(o.Get("skip_on_invalid_json"))
	case "split":
		body := m()
		f := "message"
		if o.Has("field") {
			f = field(textOf(o.Get("field")))
		}
		put(body, "field", f)
		if o.Has("terminator") {
			put(body, "terminator", textOf(o.Get("terminator")))
		}
		if o.Has("target") {
			put(body, "target", field(textOf(o.Get("target"))))
		}
		out = []step{{kind: "unnest", body: body}}
	case "date":
		out = date(o)
	case "dissect":
		out = dissect(c)
	case "mutate":
		out = mutate(o)
	default:
		return nil
	}
	after := common(o)
	if len(after) == 0 || len(out) == 0 || out[0].when == "" {
		return append(out, after...)
	}
	// What the filter passes over gets nothing; whether it does is asked before.
	out = append([]step{{kind: "set", body: m("_taken", out[0].when)}}, out...)
	for i := range after {
		if w := after[i].when; w != "" {
			after[i].when = "_taken AND (" + w + ")"
		} else {
			after[i].when = "_taken"
		}
	}
	return append(append(out, after...), step{kind: "remove", body: node([]any{"_taken"})})
}

func put(n *yaml.Node, key string, v any) { n.Content = append(n.Content, node(key), node(v)) }

func source(o *Object) string {
	if o.Has("source") {
		return field(textOf(o.Get("source")))
	}
	return "message"
}

// one is a parser's step over its source. renamed are options' names in Logstash and rsetl that hold fields.
func one(kind string, body *yaml.Node, o *Object, renamed ...string) []step {
	for i := 0; i < len(renamed); i += 2 {
		if o.Has(renamed[i]) && textOf(o.Get(renamed[i])) != "" {
			put(body, renamed[i+1], field(textOf(o.Get(renamed[i]))))
		}
	}
	return []step{{kind: kind, body: body, when: source(o) + " IS NOT NULL"}}
}

func kv(o *Object) []step {
	out := one("kv", m("field", source(o)), o, "target", "target")
	body := out[0].body
	put(body, "event_checks", true)
	out[0].passes = true
	for _, k := range o.Keys {
		v := o.Vals[k]
		switch k {
		case "source", "target", "add_field", "remove_field", "add_tag", "remove_tag", "tag_on_failure", "tag_on_timeout", "timeout_millis", "id", "ecs_compatibility":
		case "include_keys", "exclude_keys":
			var keys []any
			for _, e := range list(v) {
				keys = append(keys, template(textOf(e)))
			}
			put(body, k, keys)
		case "default_keys":
			d := m()
			for _, p := range pairs(v) {
				put(d, textOf(p[0]), template(textOf(p[1])))
			}
			put(body, k, d)
		case "recursive", "include_brackets", "allow_duplicate_values", "allow_empty_values":
			put(body, k, truth(v))
		case "prefix":
			put(body, k, template(textOf(v)))
		default:
			put(body, k, v)
		}
	}
	return out
}

func csv(o *Object) []step {
	out := one("csv", m("field", source(o)), o, "target", "target")
	body := out[0].body
	for _, k := range o.Keys {
		v := o.Vals[k]
		switch k {
		case "source", "target", "add_field", "remove_field", "add_tag", "remove_tag", "tag_on_failure", "id", "ecs_compatibility":
		case "columns":
			put(body, k, fields(v))
		case "quote_char":
			if v == "\x00" {
				v = "none"
			}
			put(body, k, v)
		case "convert":
			d := m()
			for _, p := range pairs(v) {
				put(d, field(textOf(p[0])), textOf(p[1]))
			}
			put(body, k, d)
		case "separator":
			put(body, k, v)
		default:
			put(body, k, truth(v))
		}
	}
	if !o.Has("autogenerate_column_names") { // Logstash's default
		put(body, "autogenerate_column_names", true)
	}
	if truth(o.Get("autodetect_column_names")) { // it takes every record
		out[0].when = ""
	}
	return out
}

func date(o *Object) []step {
	match := list(o.Get("match"))
	if len(match) < 2 {
		return nil
	}
	f := field(textOf(match[0]))
	body := m("field", f, "formats", match[1:], "without_year", "calendar")
	if o.Has("timezone") {
		put(body, "zone", template(textOf(o.Get("timezone"))))
	}
	if o.Has("locale") {
		put(body, "locale", textOf(o.Get("locale")))
	}
	if o.Has("target") {
		put(body, "target", field(textOf(o.Get("target"))))
	}
	return []step{{kind: "date", body: body, when: f + " IS NOT NULL"}}
}

var starred = regexp.MustCompile(`%\{\*([^}]*?)(->)?\}`)
var referred = regexp.MustCompile(`%\{&([^}]*?)(->)?\}`)

// plainStars gives a pattern's fields that begin with *, which is no modifier to Logstash, another name, and the renames that
// give them theirs. A %{&name} to which there is no %{?name} gives nothing there.
func plainStars(pattern string) (string, *yaml.Node) {
	renames := m()
	if !starred.MatchString(pattern) {
		return pattern, renames
	}
	pattern = referred.ReplaceAllStringFunc(pattern, func(r string) string {
		p := referred.FindStringSubmatch(r)
		if strings.Contains(pattern, "%{?"+p[1]) {
			return r
		}
		return "%{?_none" + p[1] + p[2] + "}"
	})
	pattern = starred.ReplaceAllStringFunc(pattern, func(r string) string {
		p := starred.FindStringSubmatch(r)
		put(renames, "_star_"+p[1], field("*"+p[1]))
		return "%{_star_" + p[1] + p[2] + "}"
	})
	return pattern, renames
}

func dissect(c *Case) []step {
	o := &c.Options
	var out []step
	conv := m()
	for _, p := range pairs(o.Get("convert_datatype")) {
		put(conv, field(textOf(p[0])), textOf(p[1]))
	}
	for _, p := range pairs(o.Get("mapping")) {
		f := field(textOf(p[0]))
		// A field that is missing is passed over, one that is NULL fails; to rsetl's conditions both are NULL.
		when := f + " IS NOT NULL"
		if c.isNull(textOf(p[0])) {
			when = ""
		}
		pattern, stars := plainStars(textOf(p[1]))
		out = append(out, step{kind: "dissect", body: m("field", f, "pattern", pattern), when: when})
		if len(stars.Content) > 0 {
			out = append(out, step{kind: "rename", body: stars})
		}
	}
	if len(conv.Content) > 0 {
		out = append(out, step{kind: "dissect", body: m("convert_datatype", conv)})
	}
	return out
}

func mutate(o *Object) []step {
	var out []step
	add := func(kind string, body *yaml.Node, when string) {
		out = append(out, step{kind: kind, body: body, when: when})
	}
	for _, p := range pairs(o.Get("coerce")) {
		f := field(textOf(p[0]))
		add("add", m(f, template(textOf(p[1]))), f+" IS NULL")
	}
	if ps := pairs(o.Get("rename")); len(ps) > 0 {
		body := m()
		for _, p := range ps {
			put(body, name(textOf(p[0])), field(textOf(p[1])))
		}
		add("rename", body, "")
	}
	for _, p := range pairs(o.Get("update")) {
		f := field(textOf(p[0]))
		v, after := filled(p[1], add)
		add("add", m(f, v), f+" IS NOT NULL")
		after()
	}
	for _, p := range pairs(o.Get("replace")) {
		v, after := filled(p[1], add)
		add("add", m(name(textOf(p[0])), v), "")
		after()
	}
	if ps := pairs(o.Get("convert")); len(ps) > 0 {
		for _, p := range ps {
			name := field(textOf(p[0]))
			if a, at, ok := element(textOf(p[0])); ok {
				name = fmt.Sprintf("%s[%d]", a, at)
			}
			add("convert", m(name, textOf(p[1])), "")
		}
	}
	if l := list(o.Get("gsub")); len(l) > 0 {
		var body []any
		for i := 0; i+2 < len(l); i += 3 {
			body = append(body, field(textOf(l[i])), template(textOf(l[i+1])), template(textOf(l[i+2])))
		}
		add("gsub", node(body), "")
	}
	for _, k := range [][2]string{{"uppercase", "upper"}, {"capitalize", "capitalize"}, {"lowercase", "lower"}} {
		if fs := fields(o.Get(k[0])); len(fs) > 0 {
			add("case", m(k[1], fs), "")
		}
	}
	if fs := fields(o.Get("strip")); len(fs) > 0 {
		add("trim", node(fs), "")
	}
	for _, kind := range []string{"split", "join"} {
		for _, p := range pairs(o.Get(kind)) {
			add(kind, m(field(textOf(p[0])), textOf(p[1])), "")
		}
	}
	for _, p := range pairs(o.Get("merge")) {
		add("merge", m(field(textOf(p[0])), fields(p[1])), "")
	}
	if ps := pairs(o.Get("copy")); len(ps) > 0 {
		body := m()
		for _, p := range ps {
			if a, at, ok := element(textOf(p[0])); ok {
				e := fmt.Sprintf("%s[%d]", a, at+1)
				if at < 0 {
					e = fmt.Sprintf("%s[CARDINALITY(%s) + %d]", a, a, at+1)
				}
				add("set", m(field(textOf(p[1])), e), "")
				continue
			}
			put(body, field(textOf(p[0])), field(textOf(p[1])))
		}
		if len(body.Content) > 0 {
			add("copy", body, "")
		}
	}
	return out
}

// filled is literal, for a text whose references to fields that are missing stay as they are, which add's don't: each
// reference is taken into a field of its own before. after takes these away.
func filled(v any, add func(kind string, body *yaml.Node, when string)) (value any, after func()) {
	s, ok := v.(string)
	if !ok || !reference.MatchString(s) {
		return literal(v), func() {}
	}
	var used []any
	s = reference.ReplaceAllStringFunc(s, func(r string) string {
		f, n := field(r[2:len(r)-1]), fmt.Sprintf("_ref%d", len(used))
		add("add", m(n, "%{"+f+"}"), "")
		add("add", m(n, "%"+r), n+" IS NULL")
		used = append(used, n)
		return "%{" + n + "}"
	})
	return s, func() { add("remove", node(used), "") }
}

// literal is a value to set: texts are templates.
func literal(v any) any {
	if s, ok := v.(string); ok {
		return template(s)
	}
	return v
}

// common are the options that every filter has: what to do to an event that it has taken.
func common(o *Object) []step {
	var out []step
	add := func(kind string, body *yaml.Node, when string) {
		out = append(out, step{kind: kind, body: body, when: when})
	}
	join := func(f, value string, array bool) {
		v, after := filled(value, add)
		add("add", m("_value", v), "")
		after()
		if array {
			add("merge", m(f, node([]any{"_value"})), "")
			add("remove", node([]any{"_value"}), "")
			return
		}
		add("set", m("_had", f+" IS NOT NULL"), "")
		add("merge", m(f, node([]any{"_value"})), "_had")
		add("copy", m("_value", f), "NOT _had")
		add("remove", node([]any{"_value", "_had"}), "")
	}
	for _, p := range pairs(o.Get("add_field")) {
		if n := textOf(p[0]); strings.Contains(n, "%{") { // it is taken to be new
			add("add", m(name(n), literal(p[1])), "")
			continue
		}
		for _, v := range list(p[1]) {
			join(field(textOf(p[0])), textOf(v), false)
		}
	}
	for _, f := range list(o.Get("remove_field")) {
		add("remove", node([]any{name(textOf(f))}), "")
	}
	for _, v := range list(o.Get("add_tag")) {
		join("tags", textOf(v), true)
	}
	for _, v := range list(o.Get("remove_tag")) {
		add("set", m("tags", "ARRAY_REMOVE(tags, '"+strings.ReplaceAll(textOf(v), "'", "''")+"')"), "tags IS NOT NULL")
	}
	return out
}

// YAML is a pipeline file with the steps.
func YAML(steps []step) ([]byte, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, s := range steps {
		n := &yaml.Node{Kind: yaml.MappingNode}
		put(n, s.kind, s.body)
		put(n, "name", fmt.Sprintf("s%d", i))
		if s.when != "" {
			put(n, "when", s.when)
		}
		list.Content = append(list.Content, n)
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	put(root, "name", "case")
	put(root, "source", m("stdin", m(), "codec", "json"))
	if len(steps) > 0 {
		put(root, "steps", list)
	}
	put(root, "sinks", node([]any{m("stdout", m())}))
	return yaml.Marshal(root)
}
