package pipeline

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/rsetl/rsetl/steps"
)

// Explain writes the compiled plan: steps in the order they run, their fields, the engine of each
// regex and why, and each sink's guarantee.
func (p *Plan) Explain(out io.Writer) {
	var w strings.Builder
	p.explain(&w)
	io.WriteString(out, p.File.Errs.Mask(w.String()))
}

func (p *Plan) explain(w io.Writer) {
	fmt.Fprintf(w, "pipeline %s (%s)\n", p.Name, p.File.Path)
	fmt.Fprintf(w, "workers %d, memory %s, checkpoint every %s, drain %s, zone %s\n", p.Options.Workers, p.Options.Memory,
		p.Options.Checkpoint.Interval, p.Options.Drain, p.Options.Zone)
	p.explainState(w)
	fmt.Fprintf(w, "\nsource %s\n", p.File.Source.Kind)
	explainMore(w, p.File.Source.Config)
	fmt.Fprintf(w, "  gives: %s\n", strings.Join(p.fields[0].order, ", "))
	p.explainSinks(w, 0)
	for i, n := range p.Nodes {
		fmt.Fprintf(w, "\nstep %d: %s%s\n", i+1, n.title(), n.moved())
		if n.branch != nil {
			fmt.Fprintf(w, "  branch: %s\n", n.branch.Name)
		}
		if c := n.step.Common.When; c != nil && c.Expr != nil {
			fmt.Fprintf(w, "  when: %s\n", c.Source())
		}
		d := n.decl
		if len(d.ReadFields) > 0 {
			fmt.Fprintf(w, "  reads: %s\n", strings.Join(unique(d.ReadFields), ", "))
		}
		p.explainWrites(w, d)
		if n.step.Spec.CanFail {
			fmt.Fprintf(w, "  on error: %s\n", n.OnError)
		}
		explainMore(w, n.step.Config)
		p.explainSinks(w, i+1)
	}
}

// moved says where the step stands in the file, if not here.
func (n *Node) moved() string {
	if n.early {
		return ", " + n.step.path + " in the file: it runs earlier, since the steps between can't fail and don't change what it reads"
	}
	return ""
}

func (n *Node) title() string {
	if n.Name == n.Kind {
		return n.Kind
	}
	return n.Kind + " (" + n.Name + ")"
}

func (p *Plan) explainWrites(w io.Writer, d *steps.Decl) {
	var live, dead []string
	for _, f := range d.WriteFields {
		if p.Table.Find(f.Name) >= 0 {
			name := f.Name
			if t := f.Type.String(); t != "" && t != "ANY" {
				name += " " + strings.TrimSuffix(t, " NOT NULL")
			}
			live = append(live, name)
		} else {
			dead = append(dead, f.Name)
		}
	}
	if len(live) > 0 {
		fmt.Fprintf(w, "  writes: %s\n", strings.Join(unique(live), ", "))
	}
	if d.WriteAny || len(d.WriteUnder) > 0 {
		fmt.Fprintf(w, "  writes: %s\n", strings.TrimSpace("fields known at run time only "+under(d.WriteUnder)))
	}
	if len(dead) > 0 {
		fmt.Fprintf(w, "  not extracted, since nothing reads them: %s\n", strings.Join(unique(dead), ", "))
	}
	var removes []string
	for _, r := range d.Removes {
		if !slices.ContainsFunc(d.WriteFields, func(f steps.Field) bool { return f.Name == r }) {
			removes = append(removes, r)
		}
	}
	if len(removes) > 0 {
		fmt.Fprintf(w, "  removes: %s\n", strings.Join(removes, ", "))
	}
	if d.KeepOnly != nil {
		fmt.Fprintf(w, "  keeps only: %s\n", strings.Join(d.KeepOnly, ", "))
	}
	for _, r := range d.Renames {
		fmt.Fprintf(w, "  renames: %s to %s\n", r[0], r[1])
	}
}

func under(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return "below " + strings.Join(paths, ", ")
}

func explainMore(w io.Writer, c any) {
	if e, ok := c.(steps.Explainer); ok {
		for _, line := range e.Explain() {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

func (p *Plan) explainSinks(w io.Writer, at int) {
	for _, s := range p.Sinks {
		if s.At != at {
			continue
		}
		title := s.Kind
		if s.Name != s.Kind {
			title += " (" + s.Name + ")"
		}
		fmt.Fprintf(w, "\nsink %s\n", title)
		if s.conf.branch != nil {
			fmt.Fprintf(w, "  branch: %s\n", s.conf.branch.Name)
		}
		if c := s.conf.Common.When; c != nil && c.Expr != nil {
			fmt.Fprintf(w, "  when: %s\n", c.Source())
		}
		if s.decl.ReadAll {
			set := p.fieldsOf(s)
			fields := set.shipped()
			sort.SliceStable(fields, func(i, j int) bool { return p.Table.Find(fields[i]) < p.Table.Find(fields[j]) })
			takes := strings.Join(fields, ", ")
			switch {
			case set.openEnded() && takes == "":
				takes = "the fields that turn up at run time"
			case set.openEnded():
				takes += " and those that turn up at run time"
			}
			fmt.Fprintf(w, "  takes: %s\n", takes)
		} else if len(s.decl.ReadFields) > 0 {
			fmt.Fprintf(w, "  takes: %s\n", strings.Join(unique(s.decl.ReadFields), ", "))
		}
		b := s.conf.Common.Batch
		fmt.Fprintf(w, "  batch: size %d, bytes %s, interval %s, memory %s, in_flight %d\n", b.Size, b.Bytes, b.Interval, b.Memory, b.InFlight)
		explainMore(w, s.conf.Config)
		if s.conf.Spec.Guarantee != nil {
			fmt.Fprintf(w, "  guarantee: %s\n", s.conf.Spec.Guarantee(s.conf.Config))
		}
	}
}

func unique(l []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, s := range l {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// OutputPaths are the files that sinks write whose paths are known at load.
func (p *Plan) OutputPaths() []string {
	var out []string
	for _, s := range p.Sinks {
		if cp, ok := s.conf.Config.(interface{ ConstPath() (string, bool) }); ok {
			if path, ok := cp.ConstPath(); ok {
				out = append(out, path)
			}
		}
	}
	return out
}

// Appends are the files, known at load, to which sinks add rows when they are there at the first start.
func (p *Plan) Appends() []string {
	var out []string
	for _, s := range p.Sinks {
		if c, ok := s.conf.Config.(interface{ AppendsTo() (string, bool) }); ok {
			if path, ok := c.AppendsTo(); ok {
				out = append(out, path)
			}
		}
	}
	return out
}

// Follows says what the source waits for, "" where it ends by itself.
func (p *Plan) Follows() string {
	if c, ok := p.File.Source.Config.(interface{ Follows() string }); ok {
		return c.Follows()
	}
	return ""
}
