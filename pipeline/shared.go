package pipeline

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/parsers/grok"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// Shared is what the pipelines of one folder share: the content of its files whose names begin with _. It is
// immutable once loaded.
type Shared struct {
	Errs []*config.Errors // of each file
	Sum  [32]byte         // of the files' text

	connections map[string]connection
	patterns    map[string]*yaml.Node
	functions   map[string]*yaml.Node // by upper-case name
	macros      expr.Macros
	nodes       map[*yaml.Node]*config.Errors
}

// connection is one entry of `connections:`: a kind of source or sink and keys of it.
type connection struct {
	kind string
	node *yaml.Node // the mapping of the kind's keys
	name *yaml.Node
}

// SharedFile is one shared file's text.
type SharedFile struct {
	Path string
	Data []byte
}

// IsShared tells whether a file's name is that of a shared file.
func IsShared(path string) bool { return strings.HasPrefix(filepath.Base(path), "_") }

// SharedBeside reads the shared files of a pipeline file's folder.
func SharedBeside(path string) (*Shared, error) {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []SharedFile
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !IsShared(e.Name()) || ext != ".yaml" && ext != ".yml" {
			continue
		}
		p := filepath.Join(dir, e.Name())
		st, err := os.Stat(p)
		switch {
		case err != nil:
			return nil, err
		case !st.Mode().IsRegular():
			return nil, fmt.Errorf("%s: not a regular file", p)
		case st.Size() > maxFile:
			return nil, fmt.Errorf("%s: %d bytes; a shared file has at most 4MiB", p, st.Size())
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, SharedFile{p, data})
	}
	return LoadShared(files), nil
}

// LoadShared decodes shared files. A mistake is in Errs; what could be read is there all the same.
func LoadShared(files []SharedFile) *Shared {
	s := &Shared{connections: map[string]connection{}, patterns: map[string]*yaml.Node{}, functions: map[string]*yaml.Node{}, macros: expr.Macros{},
		nodes: map[*yaml.Node]*config.Errors{}}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%q %d\n", f.Path, len(f.Data))
		sum.Write(f.Data)
		errs := &config.Errors{File: f.Path, Lines: strings.Split(string(f.Data), "\n")}
		s.Errs = append(s.Errs, errs)
		if root, ok := parseYAML(errs, f.Data); ok {
			s.own(root, errs)
			s.decode(&config.Context{Errs: errs, Lenient: true}, root)
		}
	}
	s.Sum = [32]byte(sum.Sum(nil))
	s.checkPatterns()
	s.checkFunctions()
	return s
}

// own notes which file the nodes are of, for the places of mistakes.
func (s *Shared) own(n *yaml.Node, errs *config.Errors) {
	if s.nodes[n] != nil {
		return
	}
	s.nodes[n] = errs
	for _, c := range n.Content {
		s.own(c, errs)
	}
}

// Failed tells whether a file has a mistake.
func (s *Shared) Failed() bool {
	return s != nil && slices.ContainsFunc(s.Errs, (*config.Errors).Failed)
}

var sharedKeys = []string{"connections", "patterns", "functions"}

func (s *Shared) decode(c *config.Context, root *yaml.Node) {
	for _, p := range c.Pairs(root) {
		key := p.Key.Value
		if !slices.Contains(sharedKeys, key) {
			hint := "; a shared file has connections, patterns and functions. A pipeline's file has a name without _"
			if near := config.Nearest(key, sharedKeys); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			c.Errorf(p.Key, "unknown key %q%s", key, hint)
			continue
		}
		v := config.Resolve(p.Value)
		if v == nil || v.Kind != yaml.MappingNode {
			c.Errorf(p.Key, "%s: want a mapping of names", key)
			continue
		}
		c.In(key, func() {
			for _, e := range c.Pairs(v) {
				s.entry(c, key, e)
			}
		})
	}
}

func (s *Shared) entry(c *config.Context, key string, e config.Pair) {
	name := e.Key.Value
	taken := func(first *yaml.Node) {
		c.Errorf(e.Key, "%s is in %s:%d already", name, s.nodes[first].File, first.Line)
	}
	switch key {
	case "connections":
		if o, ok := s.connections[name]; ok {
			taken(o.name)
			return
		}
		v := config.Resolve(e.Value)
		kinds := append(sources.Registry.Names(), sinks.Registry.Names()...)
		if v == nil || v.Kind != yaml.MappingNode || len(v.Content) != 2 {
			c.Errorf(e.Key, "want one kind and its keys, as in %s: {mysql: {dsn: '${file:/run/secrets/dsn}'}}", name)
			return
		}
		kind, keys := v.Content[0], config.Resolve(v.Content[1])
		if !slices.Contains(kinds, kind.Value) {
			slices.Sort(kinds)
			c.Errorf(kind, "unknown kind %q%s", kind.Value, config.Meant(kind.Value, slices.Compact(kinds)))
			return
		}
		if keys.Kind != yaml.MappingNode {
			c.Errorf(kind, "%s: want a mapping of its keys", kind.Value)
			return
		}
		s.connections[name] = connection{kind.Value, keys, e.Key}
	case "patterns":
		if first, ok := s.patterns[name]; ok {
			taken(first)
			return
		}
		if !patternName.MatchString(name) {
			c.Errorf(e.Key, "%q is no pattern's name; use letters, digits and _", name)
			return
		}
		if _, ok := c.Scalar(e.Value, "a pattern"); ok {
			s.patterns[name] = config.Resolve(e.Value)
		}
	case "functions":
		body, ok := c.Scalar(e.Value, "an expression")
		if !ok {
			return
		}
		m, err := expr.ParseMacro(name, body)
		if m == nil {
			c.Errorf(e.Key, "%v", err)
			return
		}
		upper := strings.ToUpper(m.Name)
		if first, ok := s.functions[upper]; ok {
			taken(first)
			return
		}
		s.functions[upper], s.macros[upper] = config.Resolve(e.Value), m
		if err != nil {
			s.reportFunction(upper, err)
			delete(s.macros, upper)
		}
	}
}

var patternName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

func (s *Shared) reportFunction(name string, err error) {
	n := s.functions[name]
	steps.Report(s.nodes[n], n, "functions."+strings.ToLower(name), err)
}

// checkFunctions compiles each function with the others.
func (s *Shared) checkFunctions() {
	for _, name := range slices.Sorted(maps.Keys(s.macros)) {
		if err := s.macros.Check(s.macros[name]); err != nil {
			s.reportFunction(name, err)
		}
	}
}

// checkPatterns compiles each pattern with the others.
func (s *Shared) checkPatterns() {
	if len(s.patterns) == 0 {
		return
	}
	set, _ := grok.Set("ecs")
	dict := maps.Clone(set)
	for name, n := range s.patterns {
		dict[name] = n.Value
	}
	for _, name := range slices.Sorted(maps.Keys(s.patterns)) {
		n := s.patterns[name]
		if _, err := grok.Compile(n.Value, dict, nil); err != nil {
			s.nodes[n].Addf(n, "patterns."+name, "%v", err)
		}
	}
}

// texts are the patterns' definitions by name.
func (s *Shared) texts() map[string]string {
	if s == nil || len(s.patterns) == 0 {
		return nil
	}
	out := map[string]string{}
	for name, n := range s.patterns {
		out[name] = n.Value
	}
	return out
}

// connect puts the keys of `connection: NAME` into a component's mapping; its own keys count more. It gives nil where
// the connection can't be used, which has been reported.
func (f *File) connect(c *config.Context, kind string, value *yaml.Node) *yaml.Node {
	v := config.Resolve(value)
	if v == nil || v.Kind != yaml.MappingNode {
		return value
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		key, name := v.Content[i], config.Resolve(v.Content[i+1])
		if key.Value != "connection" {
			continue
		}
		out := *v
		out.Content = slices.Clone(v.Content)
		out.Content = slices.Delete(out.Content, i, i+2)
		con, ok := f.shared.connection(name.Value)
		switch {
		case !ok:
			hint := "; there is none: a file of this folder whose name begins with _ holds `connections:`"
			if names := f.shared.names(); len(names) > 0 {
				hint = "; there are: " + strings.Join(names, ", ")
				if near := config.Nearest(name.Value, names); near != "" {
					hint = fmt.Sprintf("; did you mean %q?", near)
				}
			}
			c.Errorf(name, "unknown connection %q%s%s", name.Value, hint, f.sharedFailed())
			return nil
		case con.kind != kind:
			c.Errorf(name, "the connection %s is of the kind %s, not %s", name.Value, con.kind, kind)
			return nil
		default:
			f.uses["connection "+name.Value] = con.node
			out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!merge", Value: "<<", Line: key.Line, Column: key.Column}, con.node)
		}
		return &out
	}
	return value
}

// sharedFailed says that names may be missing because a shared file has mistakes.
func (f *File) sharedFailed() string {
	if f.shared.Failed() {
		for _, e := range f.shared.Errs {
			if e.Failed() {
				return "; " + e.File + " has mistakes"
			}
		}
	}
	return ""
}

func (s *Shared) connection(name string) (connection, bool) {
	if s == nil {
		return connection{}, false
	}
	c, ok := s.connections[name]
	return c, ok
}

func (s *Shared) names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.connections))
}

var (
	patternUse = regexp.MustCompile(`%\{([A-Za-z0-9_]+)`)
	callUse    = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_]*)\s*\(`)
)

// used notes which shared patterns and functions a text names, and those which they name in turn.
func (f *File) used(text string) {
	s := f.shared
	for _, m := range patternUse.FindAllStringSubmatch(text, -1) {
		if n := s.patterns[m[1]]; n != nil && f.uses["pattern "+m[1]] == nil {
			f.uses["pattern "+m[1]] = n
			f.used(n.Value)
		}
	}
	for _, m := range callUse.FindAllStringSubmatch(text, -1) {
		name := strings.ToUpper(m[1])
		if n := s.functions[name]; n != nil && f.uses["function "+name] == nil {
			f.uses["function "+name] = n
			f.used(n.Value)
		}
	}
}

// usedBelow looks for shared names in all texts of a node.
func (f *File) usedBelow(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		f.used(n.Value)
	}
	for _, c := range n.Content {
		f.usedBelow(c)
	}
}
