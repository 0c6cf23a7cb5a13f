package pipeline

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// JSONSchema is the schema of pipeline files, made from the structs that the loader fills.
func JSONSchema() ([]byte, error) {
	types := optionTypes()
	root := config.StructSchema(types["pipeline"])
	props := root["properties"].(map[string]any)
	src := map[string]any{}
	for _, n := range sources.Registry.Names() {
		s, _ := sources.Registry.Get(n)
		src[n] = described(config.Schema(s.New()), s.Doc)
	}
	step := map[string]any{}
	for _, n := range steps.Registry.Names() {
		s, _ := steps.Registry.Get(n)
		step[n] = described(config.Schema(s.New()), s.Doc)
	}
	sink := map[string]any{}
	for _, n := range sinks.Registry.Names() {
		s, _ := sinks.Registry.Get(n)
		sink[n] = described(config.Schema(s.New()), s.Doc)
	}
	props["source"] = componentSchema("The input.", src, types["source"])
	props["steps"] = map[string]any{"type": "array", "description": "What is done to each record, in order.", "items": componentSchema("", step, types["step"])}
	if r, ok := step["route"].(map[string]any); ok {
		props["route"] = r
	}
	props["sinks"] = map[string]any{"type": "array", "minItems": 1, "description": "Where records go.", "items": componentSchema("", sink, types["sink"])}
	props["tests"] = map[string]any{"type": "array", "description": "Inline tests, run by rsetl test.", "items": config.StructSchema(types["test"])}
	root["type"] = "object"
	root["required"] = []string{"source"}
	var one []any // sinks may be in a route's branches alone
	for _, k := range []string{"sinks", "route", "steps"} {
		one = append(one, map[string]any{"required": []string{k}})
	}
	root["anyOf"] = one
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rsetl pipeline"
	return json.MarshalIndent(root, "", "  ")
}

func described(s map[string]any, d config.Doc) map[string]any {
	s = maps.Clone(s)
	s["description"] = d.Summary
	return s
}

// componentSchema is a mapping with exactly one kind and the common keys; or a kind's name alone.
func componentSchema(doc string, kinds map[string]any, common reflect.Type) map[string]any {
	props := maps.Clone(kinds)
	var one []any
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		one = append(one, map[string]any{"required": []string{k}})
	}
	for k, v := range config.StructSchema(common)["properties"].(map[string]any) {
		props[k] = v
	}
	obj := map[string]any{"type": "object", "properties": props, "additionalProperties": false, "oneOf": one}
	s := map[string]any{"anyOf": []any{obj, map[string]any{"enum": slices.Sorted(maps.Keys(kinds))}}}
	if doc != "" {
		s["description"] = doc
	}
	return s
}

// References are the pages of docs/reference by file name.
func References() map[string]string {
	out := map[string]string{}
	types := optionTypes()
	var p strings.Builder
	p.WriteString("# Pipeline files\n\nOne file is one pipeline. Besides `source`, `steps`, `sinks` and `tests` it has these keys:\n\n")
	writeOptions(&p, config.Options(reflect.New(types["pipeline"]).Interface()))
	p.WriteString("\n`${NAME}`, `${NAME:default}` and `${file:PATH}` stand for a variable of the environment or the text of a file, in values only; `$${` is a literal `${`. " +
		"Durations are Go's (`500ms`, `1m30s`) plus days (`7d`), sizes are bytes (`65536`, `64KiB`, `10MB`).\n")
	for _, k := range []string{"source", "step", "sink", "test"} {
		fmt.Fprintf(&p, "\n## Keys beside every %s\n\n", k)
		if k == "test" {
			p.WriteString("(an item of `tests`)\n\n")
		}
		writeOptions(&p, config.Options(reflect.New(types[k]).Interface()))
	}
	out["pipeline.md"] = p.String()

	var s strings.Builder
	s.WriteString("# Sources\n")
	for _, n := range sources.Registry.Names() {
		spec, _ := sources.Registry.Get(n)
		writeComponent(&s, n, spec.Doc, spec.New())
	}
	out["sources.md"] = s.String()

	var t strings.Builder
	t.WriteString("# Steps\n")
	for _, n := range steps.Registry.Names() {
		spec, _ := steps.Registry.Get(n)
		writeComponent(&t, n, spec.Doc, spec.New())
		if spec.CanFail {
			t.WriteString("\nA record that it fails goes where `on_error` says.\n")
		}
	}
	out["steps.md"] = t.String()

	var k strings.Builder
	k.WriteString("# Sinks\n")
	for _, n := range sinks.Registry.Names() {
		spec, _ := sinks.Registry.Get(n)
		c := spec.New()
		config.Defaults(c)
		writeComponent(&k, n, spec.Doc, c)
		if spec.Guarantee != nil {
			fmt.Fprintf(&k, "\nGuarantee: %s\n", spec.Guarantee(c))
		}
	}
	out["sinks.md"] = k.String()

	var f strings.Builder
	f.WriteString("# Functions\n\nIn expressions; names in any case. `rsetl functions NAME` shows one.\n")
	WriteFunctions(&f, expr.Default())
	out["functions.md"] = f.String()
	return out
}

func writeComponent(w io.Writer, name string, d config.Doc, c any) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n", name, d.Summary)
	if d.Details != "" {
		fmt.Fprintf(w, "\n%s\n", d.Details)
	}
	if d.Example != "" {
		fmt.Fprintf(w, "\n```yaml\n%s\n```\n", strings.TrimRight(d.Example, "\n"))
	}
	if opts := config.Options(c); len(opts) > 0 {
		fmt.Fprintln(w)
		writeOptions(w, opts)
	}
}

func writeOptions(w io.Writer, opts []config.Option) {
	fmt.Fprintln(w, "| option | type | default | what |\n| --- | --- | --- | --- |")
	writeRows(w, "", opts)
}

func writeRows(w io.Writer, prefix string, opts []config.Option) {
	for _, o := range opts {
		def := o.Default
		if def != "" {
			def = "`" + def + "`"
		}
		if o.Required {
			def = "required"
		}
		fmt.Fprintf(w, "| `%s%s` | %s | %s | %s |\n", prefix, o.Name, o.Type, def, strings.ReplaceAll(o.Doc, "|", "\\|"))
		writeRows(w, prefix+o.Name+".", o.Sub)
	}
}

// WriteFunctions writes the function reference, by category.
func WriteFunctions(w io.Writer, reg *expr.Registry) {
	by := map[string][]expr.Function{}
	for _, n := range reg.Names() {
		f := reg.Lookup(n)
		if f.Name == n {
			by[f.Category] = append(by[f.Category], *f)
		}
	}
	for _, cat := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(w, "\n## %s\n\n| function | what | NULL | example |\n| --- | --- | --- | --- |\n", cat)
		for _, f := range by[cat] {
			name := "`" + f.Signature + "`"
			if len(f.Aliases) > 0 {
				name += " (also " + strings.Join(f.Aliases, ", ") + ")"
			}
			ex := ""
			if f.Example != "" {
				ex = "`" + f.Example + "` = `" + f.ExampleResult + "`"
			}
			esc := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", esc(name), esc(f.Summary), esc(f.Nulls), esc(ex))
		}
	}
}
