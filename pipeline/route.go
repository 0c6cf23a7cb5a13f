package pipeline

import (
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// branchField is the metadata that says which branch of a route a record has taken.
const branchField = "@branch"

func init() {
	steps.MustRegister("route", steps.Spec{
		Doc: config.Doc{
			Summary: "Splits the records into branches, each with steps and sinks of its own.",
			Details: "A record takes the first branch whose `when` is TRUE; a branch without `when`, which is the last, takes what no branch before took. Without such a branch the others count as filtered, unless the pipeline has `sinks` of its own: these get all records, as they are at the end of their branches. " +
				"`route` is the last of the steps; it may also stand beside `steps`. A route within a branch isn't possible. All branches share one checkpoint. `@branch` is the branch's name, for expressions and templates behind the route.",
			Example: "- route:\n    errors:\n      when: status >= 500\n      steps: [add: {kind: error}]\n      sinks: [stdout: {}]\n    rest:\n      sinks: ['null': {}]",
		},
		New: func() steps.Config { return &route{} },
	})
}

// route is the step that gives each record its branch. The branches' steps follow it in the plan, each applied to the records
// of its branch alone.
type route struct {
	branches []*branch
}

// branch is a branch of a route.
type branch struct {
	Name string
	When *steps.Expr `yaml:"when" doc:"The branch takes records for which this is TRUE; without it, what no branch before took."`

	node         *yaml.Node
	steps, sinks *yaml.Node
	slot         int
	val          record.Value // the name, a constant of the table
	after        *fieldSet    // what may exist at its end
	time         string       // the event time at its end
}

var branchName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (r *route) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	n = config.Resolve(n)
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		c.Errorf(n, "want branches: a mapping such as {errors: {when: status >= 500, sinks: [stdout: {}]}, rest: {sinks: [stdout: {}]}}")
		return
	}
	for _, p := range c.Pairs(n) {
		b := &branch{Name: p.Key.Value, node: p.Key}
		if !branchName.MatchString(b.Name) {
			c.Errorf(p.Key, "%q is not a branch's name: letters, digits, dash and underscore", b.Name)
		}
		if len(r.branches) > 0 && r.branches[len(r.branches)-1].When == nil {
			c.Errorf(p.Key, "the branch %q before has no when, so nothing comes here; put it last", r.branches[len(r.branches)-1].Name)
		}
		r.branches = append(r.branches, b)
		c.In(b.Name, func() {
			if config.Resolve(p.Value).Kind != yaml.MappingNode {
				c.Errorf(p.Value, "want a branch: a mapping with when, steps and sinks")
				return
			}
			c.DecodeStruct(p.Value, b, "steps", "sinks")
			b.steps, b.sinks = valueOf(p.Value, "steps"), valueOf(p.Value, "sinks")
		})
	}
}

// JSONSchema describes the branches.
func (*route) JSONSchema() map[string]any {
	ref := func(what string) map[string]any { return map[string]any{"$ref": "#/properties/" + what} }
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "object", "additionalProperties": false,
		"properties": map[string]any{"when": steps.Expr{}.JSONSchema(), "steps": ref("steps"), "sinks": ref("sinks")}}}
}

func (r *route) Declare(d *steps.Decl) {
	for _, b := range r.branches {
		d.ReadExpr(b.When)
	}
	d.Write(branchField, expr.Type{Kind: expr.TVarchar, Prec: 2147483647})
}

func (r *route) Build(b *steps.Build) (steps.Maker, error) {
	conds := make([]*expr.Program, len(r.branches))
	for i, br := range r.branches {
		br.slot, br.val = b.Slot(branchField), b.Table.Const(br.Name)
		if br.When != nil {
			conds[i] = b.Cond(br.When)
		}
	}
	return func() steps.Step { return &routeStep{branches: r.branches, conds: conds} }, nil
}

type routeStep struct {
	branches []*branch
	conds    []*expr.Program
	env      expr.Env
}

func (s *routeStep) Apply(b *record.Batch) {
	s.env.B = b
	for _, i := range b.Sel {
		for k, br := range s.branches {
			if s.conds[k] == nil || s.conds[k].True(&s.env, int(i)) {
				b.Set(int(i), br.slot, br.val)
				break
			}
		}
	}
}

// has tells whether record i has taken the branch.
func (br *branch) has(b *record.Batch, i int) bool { return b.Get(i, br.slot) == br.val }

// mark gives records the branch again, that have come out of a stage in it or out of the store.
func (br *branch) mark(b *record.Batch) {
	for _, i := range b.Sel {
		b.Set(int(i), br.slot, br.val)
	}
}

// decodeRoute takes the branches' steps and sinks into the file, behind the route itself.
func (f *File) decodeRoute(c *config.Context, r *route) {
	for _, b := range r.branches {
		f.branch = b
		c.In(b.Name, func() {
			if b.steps != nil {
				f.decodeSteps(c, b.steps)
			}
			if b.sinks != nil {
				f.decodeSinks(c, b.sinks)
			}
		})
	}
	f.branch = nil
}

// checkRoute reports steps that stand where no step may.
func (f *File) checkRoute() {
	at := -1
	for i := range f.Steps {
		s := &f.Steps[i]
		switch {
		case s.Kind == "route" && s.branch != nil:
			f.Errs.Addf(s.Node, s.path, "a route within a branch; write its branches beside this one, with both conditions")
		case s.Kind == "route":
			at = i
		case at >= 0 && s.branch == nil:
			f.Errs.Addf(s.Node, s.path, "a step behind route, which is the last one; put it before, or into the branches")
		}
	}
}

// routed tells whether a branch has sinks.
func (f *File) routed() bool {
	return slices.ContainsFunc(f.Sinks, func(s Sink) bool { return s.branch != nil })
}

// hasRoute says whether a list of steps has a route, right or wrong.
func hasRoute(steps *yaml.Node) bool {
	n := config.Resolve(steps)
	return n != nil && n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, func(s *yaml.Node) bool {
		return valueOf(config.Resolve(s), "route") != nil
	})
}

// union is what may exist where branches come together.
func union(sets []*fieldSet) *fieldSet {
	out := sets[0].clone()
	for _, s := range sets[1:] {
		for _, n := range s.order {
			out.add(n, s.names[n])
		}
		for _, u := range s.under {
			if !slices.Contains(out.under, u) {
				out.under = append(out.under, u)
			}
		}
		out.any = out.any || s.any
	}
	return out
}

// fieldsBefore is what may exist before a node, fieldsOf what may at a sink's place.
func (c *compiler) fieldsBefore(i int) *fieldSet {
	if n := c.p.Nodes[i]; n.before != nil {
		return n.before
	}
	return c.p.fields[i]
}

func (p *Plan) fieldsOf(s *SinkNode) *fieldSet {
	if b := s.conf.branch; b != nil && s.At == len(p.Nodes) && b.after != nil {
		return b.after
	}
	return p.fields[s.At]
}

// endBranches notes what may exist at the branches' ends, and where they come together. set is what the last node leaves,
// routed what is there behind the route, nil where no branch has steps.
func (c *compiler) endBranches(set, routed *fieldSet) {
	nodes := c.p.Nodes
	at := slices.IndexFunc(nodes, func(n *Node) bool { return n.Kind == "route" && n.branch == nil })
	if at < 0 || nodes[at].step.broken {
		return
	}
	r := nodes[at].step.Config.(*route)
	if last := nodes[len(nodes)-1].branch; last != nil {
		last.after = set
	}
	if routed == nil {
		routed = set
	}
	sets := []*fieldSet{routed}
	for _, b := range r.branches {
		if b.after == nil {
			b.after = routed
		}
		sets = append(sets, b.after)
	}
	c.p.fields[len(nodes)] = union(sets)
}

// placeBranch makes a sink that hangs behind a step of a branch one of the branch.
func (c *compiler) placeBranch(s *Sink, at int) {
	var of *branch
	if at > 0 {
		of = c.p.Nodes[at-1].branch
	}
	switch {
	case s.branch == nil:
		s.branch = of
	case s.branch != of:
		c.f.Errs.Addf(s.Node, s.path, "from: %q is no step of the branch %s", s.Common.From, s.branch.Name)
	}
}
