package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/parsers/grok"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// Plan is a compiled pipeline: a graph of nodes over one field table. It is
// immutable; runs are made from it with NewRunner.
type Plan struct {
	Name    string
	File    *File
	Table   *record.Table
	Source  sources.Source
	Options Options
	Nodes   []*Node
	Sinks   []*SinkNode

	fields []*fieldSet // fields[k]: what may exist after node k-1; [0] as read
	now    func() time.Time
}

// Node is one step at its place in the graph. Records flow from node to node;
// sinks hang on the place behind a node.
type Node struct {
	Name    string
	Kind    string
	OnError string
	Make    steps.Maker
	When    *expr.Program
	Stage   bool // stateful: Make's steps are Stages, one is made per run
	step    *Step
	decl    *steps.Decl
	early   bool      // a filter that runs before steps that stand before it in the file
	slots   [2]int    // error.message, error.step for on_error: keep
	branch  *branch   // of a route: only its records are worked on
	before  *fieldSet // what may exist before a branch's first step; nil: what the plan says
}

// SinkNode is one sink at its place in the graph.
type SinkNode struct {
	Name string
	Kind string
	At   int // records after node At-1; 0: as read
	When *expr.Program
	Sink sinks.Sink
	conf *Sink
	decl *steps.Decl
}

// CompileOptions say what a plan is compiled for.
type CompileOptions struct {
	Once     bool             // read what is there, then end
	Now      func() time.Time // nil: time.Now
	StateDir string
	Log      *slog.Logger
}

// Compile turns a loaded file into a plan. All mistakes are added to File.Errs.
func Compile(f *File, o CompileOptions) (*Plan, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = slog.New(masked{o.Log.Handler(), f.Errs.Mask})
	p := &Plan{Name: f.Name, File: f, Table: record.NewTable(), Options: f.Options, now: o.Now}
	if f.root == nil {
		return nil, f.Errs.Err()
	}
	c := &compiler{p: p, f: f, o: o}
	c.zone, _ = time.LoadLocation(f.Options.Zone)
	if c.zone == nil {
		c.zone = time.UTC
	}
	// A component with mistakes doesn't stop the others from being checked: it may do anything to the fields.
	c.declare()
	if !f.Errs.Failed() {
		c.hoistFilters()
	}
	c.analyse()
	c.build()
	if err := f.Errs.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

type compiler struct {
	p    *Plan
	f    *File
	o    CompileOptions
	zone *time.Location
	src  *steps.Decl
	live []*liveSet // live[k]: what is read after node k-1
}

// declare asks every component what it reads and writes, and names everything.
func (c *compiler) declare() {
	errs := c.f.Errs
	c.src = &steps.Decl{Errs: errs, Node: c.f.Source.Node, Path: "source." + c.f.Source.Kind}
	if c.f.Source.broken || c.f.Source.Config == nil {
		c.src.WriteAny = true
	} else {
		c.f.Source.Config.Declare(c.src)
	}
	for _, m := range meta {
		c.src.Write(m, expr.Type{})
	}
	c.codec()

	names := map[string]int{"source": 1}
	eventTime := []string{""} // by place
	routeTime := ""
	for i := range c.f.Steps {
		s := &c.f.Steps[i]
		n := &Node{Kind: s.Kind, Name: s.Common.Name, OnError: s.Common.OnError, step: s, branch: s.branch, decl: &steps.Decl{Errs: errs, Node: s.Node, Path: s.path, EventTime: eventTime[i]}}
		eventTime = append(eventTime, eventTime[i])
		if br := s.branch; br != nil {
			if s.branch != c.f.Steps[i-1].branch { // as behind the route
				n.decl.EventTime = routeTime
			}
			eventTime[i+1] = n.decl.EventTime
		}
		if e, ok := s.Config.(interface{ EventTime() string }); ok {
			eventTime[i+1] = e.EventTime()
			if s.Common.OnError == "keep" {
				errs.Addf(s.Node, s.path, "on_error: records that a %s fails can't go on among its results; dead_letter or drop", s.Kind)
			}
		}
		if r, ok := s.Config.(*route); ok {
			routeTime = eventTime[i+1]
			for _, br := range r.branches {
				br.time = routeTime
			}
		}
		if s.branch != nil {
			s.branch.time = eventTime[i+1]
		}
		if n.Name == "" {
			n.Name = s.Kind
			if names[n.Name]++; names[n.Name] > 1 {
				n.Name = fmt.Sprintf("%s-%d", s.Kind, names[n.Name])
			}
		} else if names[n.Name]++; names[n.Name] > 1 {
			errs.Addf(s.Node, s.path, "the name %q is taken by a step before", n.Name)
		}
		n.decl.ReadExpr(s.Common.When)
		if before := errs.Mistakes(); !s.broken {
			s.Config.Declare(n.decl)
			s.broken = errs.Mistakes() > before
		}
		if s.broken {
			n.decl.WriteAny = true
			c.p.Nodes = append(c.p.Nodes, n)
			continue
		}
		if k, ok := s.Config.(interface{ KeptIn() string }); ok && k.KeptIn() != "" && k.KeptIn() != c.f.Options.State.Kind() {
			errs.Addf(s.Node, s.path, "state: %s: the pipeline's state is %s; where it is stands beside `source`: `state: {remote: {dsn: …}}`, or nothing for local", k.KeptIn(), c.f.Options.State.Kind())
		}
		if !s.Spec.CanFail && s.Common.OnError != "dead_letter" {
			errs.Addf(s.Node, s.path, "on_error: a %s never fails", s.Kind)
		}
		if s.Common.OnError == "keep" {
			n.decl.Write("error.message", expr.Type{})
			n.decl.Write("error.step", expr.Type{})
		}
		c.p.Nodes = append(c.p.Nodes, n)
	}

	sinkNames := map[string]int{}
	paths := map[string]string{}
	for i := range c.f.Sinks {
		s := &c.f.Sinks[i]
		n := &SinkNode{Kind: s.Kind, Name: s.Common.Name, At: len(c.p.Nodes), conf: s, decl: &steps.Decl{Errs: errs, Node: s.Node, Path: s.path}}
		if n.Name == "" {
			n.Name = s.Kind
			if sinkNames[n.Name]++; sinkNames[n.Name] > 1 {
				n.Name = fmt.Sprintf("%s-%d", s.Kind, sinkNames[n.Name])
			}
		} else if sinkNames[n.Name]++; sinkNames[n.Name] > 1 {
			errs.Addf(s.Node, s.path, "the name %q is taken by a sink before", n.Name)
		}
		if s.Common.From != "" {
			n.At = c.place(s)
			c.placeBranch(s, n.At)
		}
		if n.decl.EventTime = eventTime[n.At]; s.branch != nil && n.At == len(c.p.Nodes) {
			n.decl.EventTime = s.branch.time
		}
		n.decl.ReadExpr(s.Common.When)
		if !s.broken {
			s.Config.Declare(n.decl)
		}
		if cp, ok := s.Config.(interface{ ConstPath() (string, bool) }); ok {
			if path, ok := cp.ConstPath(); ok {
				if other, taken := paths[path]; taken {
					errs.Addf(s.Node, s.path, "sink %q writes %s too; two sinks on one file would mix their rows: give each its own path", other, path)
				}
				paths[path] = n.Name
			}
		}
		c.p.Sinks = append(c.p.Sinks, n)
	}
}

// codec puts what `codec: json` means before the first step: a json step on message.
func (c *compiler) codec() {
	if c.f.Source.Common.Codec != "json" || len(c.f.Steps) > 0 && c.f.Steps[0].Common.Name == codecStep {
		return
	}
	spec, ok := steps.Registry.Get("json")
	if !ok {
		c.f.Errs.Addf(c.f.Source.Node, "source.codec", "codec json is not built into this rsetl")
		return
	}
	s := Step{Kind: "json", Node: c.f.Source.Node, Spec: spec, Config: spec.New(), path: "source.codec"}
	config.Defaults(&s.Common)
	s.Common.Name = codecStep
	ctx := &config.Context{Errs: c.f.Errs}
	n := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
		{Kind: yaml.ScalarNode, Value: "field"}, {Kind: yaml.ScalarNode, Value: "message"},
		{Kind: yaml.ScalarNode, Value: "replace"}, {Kind: yaml.ScalarNode, Value: "true"}}}
	ctx.Decode(n, s.Config)
	c.f.Steps = append([]Step{s}, c.f.Steps...)
}

// codecStep is the step name under which failures of `codec: json` are reported.
const codecStep = "source.codec"

func (c *compiler) place(s *Sink) int {
	if s.Common.From == "source" {
		return 0
	}
	var names []string
	for i, n := range c.p.Nodes {
		if n.Name == s.Common.From {
			return i + 1
		}
		names = append(names, n.Name)
	}
	c.f.Errs.Addf(s.Node, s.path, "from: no step is named %q%s", s.Common.From, config.Meant(s.Common.From, append(names, "source")))
	return len(c.p.Nodes)
}

// hoistFilters moves a filter before steps that can't fail and don't write what it
// reads: the ledger stays the same and fewer records are worked on.
func (c *compiler) hoistFilters() {
	taps := map[int]bool{}
	for _, s := range c.p.Sinks {
		taps[s.At] = true
	}
	nodes := c.p.Nodes
	for i := range nodes {
		if k := nodes[i].Kind; k != "filter" && k != "drop" {
			continue
		}
		for j := i; j > 0 && !taps[j] && nodes[j-1].decl.Pure && nodes[j-1].branch == nodes[j].branch && !writesAny(nodes[j-1].decl, nodes[j].decl.ReadFields); j-- {
			nodes[j-1], nodes[j] = nodes[j], nodes[j-1]
			nodes[j-1].early = true
		}
	}
}

func writesAny(d *steps.Decl, fields []string) bool {
	if d.WriteAny || len(d.Renames) > 0 || d.KeepOnly != nil || len(d.WriteUnder) > 0 {
		return true
	}
	for _, r := range d.Removes {
		for _, f := range fields {
			if record.Under(f, r) || record.Under(r, f) {
				return true
			}
		}
	}
	for _, w := range d.WriteFields {
		for _, f := range fields {
			if record.Under(f, w.Name) || record.Under(w.Name, f) {
				return true
			}
		}
	}
	return false
}

// analyse finds what may exist and what is needed at each place.
func (c *compiler) analyse() {
	nodes := c.p.Nodes
	set := newFieldSet()
	set.apply(c.src, false)
	c.p.fields = []*fieldSet{set}
	var routed *fieldSet // behind the route
	for i, n := range nodes {
		if n.branch != nil && n.branch != nodes[i-1].branch {
			if b := nodes[i-1].branch; b != nil {
				b.after = set
			} else {
				routed = set
			}
			set, n.before = routed, routed
		}
		c.check(n.decl, set, n.step.path)
		for i, j := range n.decl.Joins {
			if _, there := set.names[j]; there && !slices.Contains(n.decl.Joins[:i], j) {
				c.f.Errs.Warnf(n.step.Node, n.step.path, "the pattern captures %s, which is there already: it becomes an array of the old and the new value; `overwrite: [%s]` replaces it", j, j)
			}
		}
		set = set.clone()
		set.apply(n.decl, n.step.Common.When != nil)
		c.p.fields = append(c.p.fields, set)
	}
	c.endBranches(set, routed)
	for _, s := range c.p.Sinks {
		c.check(s.decl, c.p.fieldsOf(s), s.conf.path)
	}

	c.live = make([]*liveSet, len(nodes)+1)
	after := newLiveSet()
	for k := len(nodes); k >= 0; k-- {
		if k < len(nodes) {
			after = after.before(nodes[k].decl, nodes[k].step.Common.When != nil || nodes[k].branch != nil)
		}
		for _, s := range c.p.Sinks {
			if s.At == k {
				need := newLiveSet()
				after.join(need.before(s.decl, false))
			}
		}
		c.live[k] = after.clone()
	}
}

// check reports fields that are read and can't exist.
func (c *compiler) check(d *steps.Decl, set *fieldSet, path string) {
	for i, name := range d.ReadFields {
		if set.possible(name) {
			continue
		}
		c.impossible(d.ReadNodes[i], path, name, d.ReadBare[i], set)
	}
	for _, m := range d.Mentions {
		if !set.possible(m.Name) && !record.IsMeta(m.Name) {
			c.impossible(m.Node, path, m.Name, false, set)
		}
	}
}

// impossible reports a field that nothing before can have made.
func (c *compiler) impossible(n *yaml.Node, path, name string, bare bool, set *fieldSet) {
	switch {
	case record.IsMeta(name):
		c.f.Errs.Addf(n, path, "this source has no metadata %s%s", name, set.hint(name))
	case name == "@timestamp":
		c.f.Errs.Addf(n, path, "no step before sets @timestamp, the event's time; add a date step: `- date: {field: …, formats: […]}`")
	case bare && !strings.ContainsAny(name, ".@"):
		c.f.Errs.Addf(n, path, "no step before makes a field %s%s (a text is written in quotes: '%s')", name, set.hint(name), name)
	default:
		c.f.Errs.Addf(n, path, "no step before makes a field %s%s", name, set.hint(name))
	}
}

func (c *compiler) buildFor(d *steps.Decl, name string, at int, types *fieldSet) steps.Build {
	live := c.live[at]
	return steps.Build{
		Decl: *d, Table: c.p.Table, Pipeline: c.p.Name, Name: name, Zone: c.zone, Now: c.o.Now,
		Log: c.o.Log.With("pipeline", c.p.Name, "component", name), StateDir: c.o.StateDir,
		LiveFn:   live.live,
		Compiler: &expr.Compiler{Table: c.p.Table, TypeOf: func(f string) expr.Type { return types.names[f] }, Zone: c.zone, Now: c.o.Now, EventTime: d.EventTime},
		TypeOf:   func(f string) expr.Type { return types.names[f] },
	}
}

func (c *compiler) build() {
	f := c.f
	b := c.buildFor(c.src, "source", 0, c.p.fields[0])
	for _, w := range c.src.WriteFields {
		if b.Live(w.Name) {
			c.p.Table.Slot(w.Name)
		}
	}
	if f.Source.Config == nil || f.Source.broken {
		c.buildRest()
		return
	}
	src, err := f.Source.Config.Build(&sources.Build{Build: b, Common: f.Source.Common, Once: c.o.Once, Alone: c.keepsState(), Clock: c.o.Now, Log: b.Log,
		CompilePattern: c.p.File.compilePattern})
	if err != nil {
		f.Errs.Addf(f.Source.Node, "source."+f.Source.Kind, "%v", err)
	}
	c.p.Source = src
	c.buildRest()
}

// keepsState tells whether a step keeps state by keys.
func (c *compiler) keepsState() bool {
	return slices.ContainsFunc(c.p.Nodes, func(n *Node) bool { return n.step.Spec.Stateful })
}

// buildRest builds steps and sinks.
func (c *compiler) buildRest() {
	f := c.f
	for i, n := range c.p.Nodes {
		b := c.buildFor(n.decl, n.Name, i+1, c.fieldsBefore(i))
		n.When = b.Cond(n.step.Common.When)
		if n.step.broken {
			continue
		}
		make, err := n.step.Config.Build(&b)
		if err != nil {
			f.Errs.Addf(n.step.Node, n.step.path, "%v", err)
		}
		n.Make = make
		n.Stage = n.step.Spec.Stateful
		if o, ok := n.step.Config.(interface{ Stateful() bool }); ok { // an option makes it one
			n.Stage = n.Stage || o.Stateful()
		}
		if n.Stage && n.When != nil {
			f.Errs.Addf(n.step.Node, n.step.path, "when: a %s takes every record; put the condition into a filter before it", n.Kind)
		}
		if n.OnError == "keep" {
			n.slots = [2]int{c.p.Table.Slot("error.message"), c.p.Table.Slot("error.step")}
		}
	}
	// Whatever a sink names has its slot before any sink is built: where fields are known at run time only, a slot
	// is one more field to ship.
	for _, s := range c.p.Sinks {
		for _, name := range s.decl.ReadFields {
			c.p.Table.Slot(name)
		}
		if s.decl.ReadAll {
			for _, name := range c.p.fieldsOf(s).shipped() {
				c.p.Table.Slot(name)
			}
		}
	}
	for _, s := range c.p.Sinks {
		set := c.p.fieldsOf(s)
		b := c.buildFor(s.decl, s.Name, s.At, set)
		b.Ship, b.OpenEnded = c.ship(set), set.openEnded()
		b.Unsure = func(name string) bool { _, known := set.names[name]; return !known }
		s.When = b.Cond(s.conf.Common.When)
		if s.conf.broken {
			continue
		}
		sink, err := s.conf.Config.Build(&b)
		if err != nil {
			f.Errs.Addf(s.conf.Node, s.conf.path, "%v", err)
		}
		s.Sink = sink
		if _, marked := sink.(sinks.Marked); marked && s.conf.Common.OnFailure.After > 0 {
			f.Errs.Addf(s.conf.Node, s.conf.path, "on_failure: a %s sink can only block: what it has written of a batch is known after its commit", s.conf.Kind)
		}
	}
}

// ship lists the fields with a slot that may exist where set says, in slot order.
func (c *compiler) ship(set *fieldSet) []string {
	var out []string
	for _, name := range c.p.Table.Names() {
		if _, known := set.names[name]; !record.IsMeta(name) && (known || set.any || coveredBy(name, set.under)) {
			out = append(out, name)
		}
	}
	return out
}

// compilePattern compiles multiline's pattern, with grok's names and the shared ones.
func (f *File) compilePattern(pattern string) (sources.Matcher, error) {
	return grok.CompileMatcher(pattern, f.shared.texts())
}
