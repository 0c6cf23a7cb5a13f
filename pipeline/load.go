package pipeline

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// maxFile bounds a pipeline file.
const maxFile = 4 << 20

// LoadOptions say how a file is read.
type LoadOptions struct {
	// Lenient: a variable that can't be resolved is a warning (rsetl check).
	Lenient bool
	// StateDir is what ${STATE_DIR} stands for.
	StateDir string
	// Lookup resolves other variables; nil: the environment.
	Lookup func(string) (string, bool)
	// Shared is what the file's folder shares; LoadFile reads it where it is nil.
	Shared *Shared
}

// LoadFile reads and decodes a pipeline file, with the shared files beside it. All its mistakes are in File.Errs; the
// error is theirs.
func LoadFile(path string, o LoadOptions) (*File, error) {
	// Before it is opened: opening a named pipe waits.
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	} else if st.Size() > maxFile {
		return nil, fmt.Errorf("%s: %d bytes; a pipeline file has at most 4MiB", path, st.Size())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if o.Shared == nil {
		if o.Shared, err = SharedBeside(path); err != nil {
			return nil, err
		}
	}
	return Load(path, data, o)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// Load decodes a pipeline file's text.
func Load(path string, data []byte, o LoadOptions) (file *File, err error) {
	file = &File{Path: path, Errs: &config.Errors{File: path, Lines: strings.Split(string(data), "\n")}}
	root, ok := parseYAML(file.Errs, data)
	if !ok {
		return file, file.Errs.Err()
	}
	file.root = root
	c := &config.Context{Errs: file.Errs, Lenient: o.Lenient}
	if file.shared = o.Shared; file.shared != nil {
		file.uses = map[string]*yaml.Node{}
		c.Patterns, c.Functions = file.shared.texts(), file.shared.macros
		file.Errs.Foreign(file.shared.nodes)
		file.usedBelow(root)
	}
	lookup := o.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	c.Lookup = func(name string) (string, bool) {
		if name == "STATE_DIR" && o.StateDir != "" {
			return o.StateDir, true
		}
		return lookup(name)
	}
	file.decode(c, root)
	return file, file.Errs.Err()
}

// parseYAML gives the document's mapping. The YAML library's own panics on broken input become errors.
func parseYAML(errs *config.Errors, data []byte) (root *yaml.Node, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			errs.Addf(&yaml.Node{Line: 1, Column: 1}, "", "not YAML: %v", r)
			root, ok = nil, false
		}
	}()
	var doc yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := dec.Decode(&doc); err != nil {
		line, msg := 1, err.Error()
		if msg == "EOF" {
			msg = "the file is empty; a pipeline has at least source and sinks"
		} else if m := yamlLine.FindStringSubmatch(msg); m != nil {
			if m[1] != "" {
				line, _ = strconv.Atoi(m[1])
			}
			msg = "not YAML: " + m[2]
		}
		at, hint := yamlHint(errs.Lines, line, msg)
		errs.Addf(&yaml.Node{Line: at, Column: 1}, "", "%s%s", msg, hint)
		return nil, false
	}
	var more yaml.Node
	if err := dec.Decode(&more); err == nil {
		errs.Addf(&more, "", "a second document; one file is one pipeline")
		return nil, false
	} else if err.Error() != "EOF" {
		m := yamlLine.FindStringSubmatch(err.Error())
		line, msg := 1, err.Error()
		if m != nil && m[1] != "" {
			line, _ = strconv.Atoi(m[1])
			msg = m[2]
		}
		errs.Addf(&yaml.Node{Line: line, Column: 1}, "", "not YAML: %s", msg)
		return nil, false
	}
	root = &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		root = doc.Content[0]
	}
	if root.Kind != yaml.MappingNode {
		errs.Addf(root, "", "a pipeline file is a mapping with source, steps and sinks")
		return nil, false
	}
	return root, true
}

var (
	atValue      = regexp.MustCompile("^[^#]*(?:[:,-] |[\\[{] *)[@`]")
	percentValue = regexp.MustCompile(`^[^#'"]*(?:: |- |\[)%`)
	colonValue   = regexp.MustCompile(`^\s*(?:- )*[\w-]+: [^'"{\[|>].*: `)
	quotedStart  = regexp.MustCompile(`(?:: |- )(?:'[^']*'|"[^"]*") *[^ ,#}\]]`)
	flowComma    = regexp.MustCompile(`\{[^{}]*\([^(){}]*,`)
)

// yamlHint says what in the file most likely made the YAML library say msg, and where: it names the line
// where it gave up, which is often the one before or after.
func yamlHint(lines []string, line int, msg string) (at int, hint string) {
	find := func(ok func(string) bool) int {
		for i := max(0, line-3); i < min(len(lines), line+2); i++ {
			if ok(lines[i]) {
				return i + 1
			}
		}
		for i, l := range lines {
			if ok(l) {
				return i + 1
			}
		}
		return 0
	}
	indent := func(l string) string { return l[:len(l)-len(strings.TrimLeft(l, " \t"))] }
	switch {
	case strings.Contains(msg, "cannot start any token"):
		if n := find(func(l string) bool { return strings.Contains(indent(l), "\t") }); n > 0 {
			return n, "; YAML takes no tabs at a line's beginning: use blanks"
		}
		if n := find(percentValue.MatchString); n > 0 {
			return n, "; a value that begins with % stands in quotes: '%{…}'"
		}
		if n := find(atValue.MatchString); n > 0 {
			return n, "; a value that begins with @ or ` stands in quotes"
		}
	case strings.Contains(msg, "mapping values are not allowed"):
		if n := find(colonValue.MatchString); n > 0 {
			return n, "; a value with `: ` in it stands in quotes"
		}
	case strings.Contains(msg, "did not find expected '-' indicator"):
		return line, "; all items of the list that begins here stand in one column, and only items"
	case strings.Contains(msg, "did not find expected"):
		if n := find(flowComma.MatchString); n > 0 {
			return n, "; a comma within {…} ends the value: put the expression in quotes, or each field on a line of its own"
		}
		if n := find(quotedStart.MatchString); n > 0 {
			return n, "; a value that begins with a quote ends at the next one: put the whole value in the other kind of quotes"
		}
	}
	return line, ""
}

// later are keys and kinds of the design that this version doesn't run yet.
var later = map[string]string{
	"sources":  "several sources in a pipeline",
	"postgres": "the sink postgres",
}

// called are names that users know from Logstash's filters, with the steps that do the same.
var called = map[string]string{
	"mutate": "a step of its own for each option: rename, add, set, convert, gsub, case, trim, split, join, merge, copy, remove", "replace": "`add: {FIELD: TEXT}`",
	"update": "`add: {FIELD: TEXT}` with `when: FIELD IS NOT NULL`", "coerce": "`set: {FIELD: \"COALESCE(FIELD, 'value')\"}`", "strip": "`trim: [FIELD, …]`",
	"uppercase": "`case: {upper: [FIELD, …]}`", "lowercase": "`case: {lower: [FIELD, …]}`", "capitalize": "`case: {capitalize: [FIELD, …]}`", "add_field": "`add: {FIELD: TEXT}`", "remove_field": "`remove: [FIELD, …]`",
	"if":      "`when: CONDITION` beside the step, or `route`",
	"add_tag": "`set: {tags: \"ARRAY_APPEND(COALESCE(tags, ARRAY[]), 'TAG')\"}`", "prune": "`keep: [FIELD, …]` or `remove`", "multiline": "`multiline:` beside the source", "syslog_pri": "`syslog: FIELD`", "json_encode": "`set` with an expression", "ruby": "`set` with an expression", "translate": "`lookup: {field, target, file or dictionary}`", "urldecode": "`url: {field: FIELD, params: true}`", "clone": "a second sink with `from: STEP`, or `route`", "fingerprint": "`set` with an expression such as SHA256(FIELD)", "uuid": "`set: {FIELD: UUID()}`", "truncate": "`set: {FIELD: \"LEFT(FIELD, 100)\"}`", "aggregate": "`window`", "elapsed": "`window`", "metrics": "`window`", "grep": "`filter:` or `drop:`",
}

func notYet(what string) string { return "not yet: this version of rsetl does not have " + what }

var pipelineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (f *File) decode(c *config.Context, root *yaml.Node) {
	components := append([]string{"source", "steps", "route", "sinks", "tests"}, sharedKeys...)
	c.DecodeStruct(without(root, later), &f.Options, components...)
	var source, stepsNode, routeNode, sinksNode, tests *yaml.Node
	probe := &config.Context{Errs: &config.Errors{}}
	for _, p := range probe.Pairs(root) {
		switch p.Key.Value {
		case "source":
			source = p.Value
		case "steps":
			stepsNode = p.Value
		case "route":
			routeNode = p.Value
		case "sinks":
			sinksNode = p.Value
		case "tests":
			tests = p.Value
		default:
			if slices.Contains(sharedKeys, p.Key.Value) {
				f.Errs.Addf(p.Key, p.Key.Value, "stands in a shared file: one of this folder whose name begins with _, as in _shared.yaml")
			}
			if what, ok := later[p.Key.Value]; ok {
				f.Errs.Addf(p.Key, p.Key.Value, "%s", notYet(what))
			}
		}
	}
	f.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f.Path), ".yml"), ".yaml")
	if f.Options.Name != "" {
		f.Name = f.Options.Name
	}
	if !pipelineName.MatchString(f.Name) {
		f.Errs.Addf(root, "name", "%q is not a pipeline's name: letters, digits, dot, dash and underscore, beginning with a letter or digit", f.Name)
	}
	f.Name = "default/" + f.Name
	if _, err := time.LoadLocation(f.Options.Zone); err != nil {
		f.Errs.Addf(valueOf(root, "zone"), "zone", "unknown time zone %q; write an IANA name like Europe/Berlin", f.Options.Zone)
	}
	if d := f.Options.DeadLetter.File; d != nil && d.Path != "" && (strings.HasSuffix(d.Path, "/") || filepath.Base(d.Path) == "." || filepath.Base(d.Path) == "..") {
		f.Errs.Addf(valueOf(valueOf(valueOf(root, "dead_letter"), "file"), "path"), "dead_letter.file.path", "want the path of a file")
	}
	if source == nil {
		if valueOf(root, "sources") == nil {
			f.Errs.Addf(root, "", "key \"source\" is missing; write for example `source: {file: {paths: [/var/log/app.log]}}`")
		}
	} else {
		c.In("source", func() { f.decodeSource(c, source) })
	}
	before := f.Errs.Mistakes()
	if stepsNode != nil {
		f.decodeSteps(c, stepsNode)
	}
	if routeNode != nil { // the same as the last step
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: "route", Line: routeNode.Line, Column: routeNode.Column}
		f.decodeStep(c, &yaml.Node{Kind: yaml.MappingNode, Line: routeNode.Line, Column: routeNode.Column, Content: []*yaml.Node{key, routeNode}})
	}
	f.checkRoute()
	if sinksNode == nil && (f.routed() || f.Errs.Mistakes() > before && (routeNode != nil || hasRoute(stepsNode))) { // a route with mistakes may have had sinks
	} else if sinksNode == nil {
		f.Errs.Addf(root, "", "key \"sinks\" is missing; write for example `sinks: [stdout: {}]`")
	} else {
		f.decodeSinks(c, sinksNode)
	}
	if tests != nil {
		f.decodeTests(c, tests)
	}
}

// without is a copy of the mapping that lacks these keys.
func without(n *yaml.Node, keys map[string]string) *yaml.Node {
	out := *n
	out.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if _, ok := keys[n.Content[i].Value]; !ok {
			out.Content = append(out.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &out
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n = config.Resolve(n); n == nil {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// component splits a mapping into the one key that names a kind and the keys common to all kinds,
// which it decodes into common. A plain scalar is a kind without options.
func component(c *config.Context, n *yaml.Node, what string, kinds []string, common any) (kind string, key, value *yaml.Node, ok bool) {
	n = config.Resolve(n)
	if n != nil && n.Kind == yaml.ScalarNode && (n.Tag != "!!null" || slices.Contains(kinds, n.Value)) {
		key = n
		kind = n.Value
		value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
		config.Defaults(common)
		return kind, key, value, known(c, key, what, kinds, nil)
	}
	if n == nil || n.Kind != yaml.MappingNode {
		c.Errorf(n, "want a %s: a mapping with one of %s", what, strings.Join(kinds, ", "))
		return
	}
	var names []string
	for _, o := range config.Options(common) {
		names = append(names, o.Name)
	}
	rest := *n
	rest.Content = nil
	for _, p := range c.Pairs(n) {
		k := p.Key.Value
		if slices.Contains(names, k) {
			rest.Content = append(rest.Content, p.Key, p.Value)
			continue
		}
		if key != nil && slices.Contains(kinds, k) && slices.Contains(kinds, kind) {
			c.Errorf(p.Key, "a %s has one kind; this one is %q already: begin a new list item with `- %s:`", what, kind, k)
			continue
		}
		if key == nil || slices.Contains(kinds, k) {
			if key != nil { // what came before was no kind: a misspelt common key
				c.Errorf(key, "unknown key %q%s", kind, config.Meant(kind, names))
			}
			kind, key, value = k, p.Key, p.Value
			continue
		}
		if slices.Contains(kinds, kind) {
			if w, ok := called[k]; ok && what == "step" {
				c.Errorf(p.Key, "%q is Logstash's name; here it is %s", k, w)
				continue
			}
			if v := config.Resolve(value); v == nil || v.Tag == "!!null" {
				c.Errorf(p.Key, "unknown key %q beside %q; what belongs to %q is indented further than it", k, kind, kind)
				continue
			}
			c.Errorf(p.Key, "unknown key %q beside %q%s", k, kind, config.Meant(k, names))
		} else {
			c.Errorf(p.Key, "unknown key %q%s", k, config.Meant(k, append(append([]string(nil), names...), kinds...)))
		}
	}
	c.DecodeStruct(&rest, common)
	if key == nil {
		c.Errorf(n, "no kind of %s is named; one of %s", what, strings.Join(kinds, ", "))
		return kind, key, value, false
	}
	return kind, key, value, known(c, key, what, kinds, names)
}

func known(c *config.Context, key *yaml.Node, what string, kinds, names []string) bool {
	if slices.Contains(kinds, key.Value) {
		return true
	}
	if w, ok := later[key.Value]; ok {
		c.Errorf(key, "%s", notYet(w))
		return false
	}
	if w, ok := called[key.Value]; ok && what == "step" {
		c.Errorf(key, "%q is Logstash's name; here it is %s", key.Value, w)
		return false
	}
	hint := config.Nearest(key.Value, append(append([]string(nil), kinds...), names...))
	if hint != "" {
		c.Errorf(key, "unknown %s %q; did you mean %q?", what, key.Value, hint)
	} else {
		c.Errorf(key, "unknown %s %q; there are: %s", what, key.Value, strings.Join(kinds, ", "))
	}
	return false
}

func (f *File) decodeSource(c *config.Context, n *yaml.Node) {
	s := &f.Source
	s.broken = true
	kind, key, value, ok := component(c, n, "source", sources.Registry.Names(), &s.Common)
	if !ok {
		return
	}
	spec, _ := sources.Registry.Get(kind)
	s.Kind, s.Node, s.Spec = kind, key, spec
	s.Config = spec.New()
	before := f.Errs.Mistakes()
	c.In(kind, func() {
		if v := f.connect(c, kind, value); v != nil {
			c.Decode(v, s.Config)
		}
	})
	s.broken = f.Errs.Mistakes() > before
	if !spec.Lines {
		if s.Common.Multiline != nil {
			f.Errs.Addf(key, "source.multiline", "source %s gives whole messages; multiline is for lines", kind)
		}
	}
}

// eachItem calls f with every item of the list below key, with its place in the path.
func eachItem(c *config.Context, key string, items []*yaml.Node, f func(i int, item *yaml.Node)) {
	c.In(key, func() {
		for i, item := range items {
			c.In(fmt.Sprintf("[%d]", i), func() { f(i, item) })
		}
	})
}

func (f *File) decodeSteps(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		f.Errs.Addf(n, "steps", "want a list of steps: `- grok: …`")
		return
	}
	eachItem(c, "steps", n.Content, func(_ int, item *yaml.Node) { f.decodeStep(c, item) })
}

func (f *File) decodeStep(c *config.Context, item *yaml.Node) {
	s := Step{broken: true, branch: f.branch}
	kind, key, value, ok := component(c, item, "step", steps.Registry.Names(), &s.Common)
	if !ok {
		f.Steps = append(f.Steps, s)
		return
	}
	s.Kind, s.Node = kind, key
	s.Spec, _ = steps.Registry.Get(kind)
	s.Config = s.Spec.New()
	before := f.Errs.Mistakes()
	c.In(kind, func() {
		s.path = c.Path()
		c.Decode(value, s.Config)
	})
	s.broken = f.Errs.Mistakes() > before
	f.Steps = append(f.Steps, s)
	if r, ok := s.Config.(*route); ok && f.branch == nil {
		if s.Common.When != nil {
			f.Errs.Addf(key, s.path, "when: a route takes every record; put the condition into its branches")
		}
		c.In(kind, func() { f.decodeRoute(c, r) })
	}
}

func (f *File) decodeSinks(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	items := n.Content
	if n.Kind == yaml.MappingNode || n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		items = []*yaml.Node{n}
	} else if n.Kind != yaml.SequenceNode || len(items) == 0 {
		f.Errs.Addf(n, "sinks", "want a list of sinks: `- stdout: {}`")
		return
	}
	eachItem(c, "sinks", items, func(_ int, item *yaml.Node) {
		var s Sink
		if spec, ok := sinks.Registry.Get(kindOf(item, sinks.Registry.Names())); ok && spec.Batch != nil {
			s.Common.Batch = *spec.Batch
		}
		s.broken, s.branch = true, f.branch
		defer func() { f.Sinks = append(f.Sinks, s) }()
		kind, key, value, ok := component(c, item, "sink", sinks.Registry.Names(), &s.Common)
		if !ok {
			return
		}
		s.Kind, s.Node = kind, key
		s.Spec, _ = sinks.Registry.Get(kind)
		s.Config = s.Spec.New()
		before := f.Errs.Mistakes()
		c.In(kind, func() {
			s.path = c.Path()
			if v := f.connect(c, kind, value); v != nil {
				c.Decode(v, s.Config)
			}
		})
		s.broken = f.Errs.Mistakes() > before
		if s.Common.Batch.Size < 1 || s.Common.Batch.InFlight < 1 {
			f.Errs.Addf(key, s.path, "batch: size and in_flight are at least 1")
		}
	})
}

// kindOf is the first key of a component's mapping that names a kind.
func kindOf(n *yaml.Node, kinds []string) string {
	if n = config.Resolve(n); n == nil {
		return ""
	}
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains(kinds, n.Content[i].Value) {
			return n.Content[i].Value
		}
	}
	return ""
}

func (f *File) decodeTests(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	if n.Kind != yaml.SequenceNode {
		f.Errs.Addf(n, "tests", "want a list of tests: `- name: …`")
		return
	}
	eachItem(c, "tests", n.Content, func(i int, item *yaml.Node) {
		var t Test
		c.Decode(item, &t)
		t.node = item
		if len(t.Lines) > 0 && len(t.Records) > 0 {
			c.Errorf(item, "a test has lines or records, not both")
		}
		if _, err := time.Parse(time.RFC3339Nano, t.At); err != nil {
			c.Errorf(valueOf(item, "at"), "at: %q is no time; write 2024-02-24T23:13:42Z", t.At)
		}
		for _, list := range []struct {
			name  string
			items []yaml.Node
		}{{"records", t.Records}, {"expect", t.Expect}, {"expect_dead", t.ExpectDead}} {
			for k := range list.items {
				n := &list.items[k]
				if n.Kind != yaml.MappingNode && !(list.name == "expect_dead" && n.Kind == yaml.ScalarNode && n.Tag == "!!str") {
					want := "a mapping of fields, as in {status: 503}"
					if list.name == "expect_dead" {
						want = "a text that the reason contains, or a mapping with step, reason, raw"
					}
					f.Errs.Addf(n, fmt.Sprintf("tests[%d].%s[%d]", i, list.name, k), "want %s", want)
				}
			}
		}
		f.Tests = append(f.Tests, t)
	})
}

// optionTypes are the structs that make up a file, for schema and reference.
func optionTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"pipeline": reflect.TypeFor[Options](), "source": reflect.TypeFor[sources.Common](),
		"step": reflect.TypeFor[StepCommon](), "sink": reflect.TypeFor[SinkCommon](), "test": reflect.TypeFor[Test](),
	}
}
