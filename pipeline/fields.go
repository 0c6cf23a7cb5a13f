package pipeline

import (
	"sort"
	"strings"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

// meta is the metadata that every source gives.
var meta = []string{"@split", "@offset", "@received"}

// fieldSet is what may exist at one place of a plan.
type fieldSet struct {
	names map[string]expr.Type
	order []string
	under []string // anything below these paths
	any   bool     // anything at all
}

func newFieldSet() *fieldSet { return &fieldSet{names: map[string]expr.Type{}} }

func (s *fieldSet) clone() *fieldSet {
	c := newFieldSet()
	for k, v := range s.names {
		c.names[k] = v
	}
	c.order = append([]string(nil), s.order...)
	c.under = append([]string(nil), s.under...)
	c.any = s.any
	return c
}

func (s *fieldSet) add(name string, t expr.Type) {
	old, ok := s.names[name]
	switch {
	case !ok:
		s.order = append(s.order, name)
	case !sameType(old, t):
		t = expr.Type{}
	}
	s.names[name] = t
}

func (s *fieldSet) removeIf(gone func(string) bool) {
	keep := s.order[:0]
	for _, n := range s.order {
		if gone(n) {
			delete(s.names, n)
		} else {
			keep = append(keep, n)
		}
	}
	s.order = keep
}

// apply takes a component's effects on.
func (s *fieldSet) apply(d *steps.Decl, conditional bool) {
	if !conditional {
		if d.KeepOnly != nil {
			s.removeIf(func(n string) bool { return !record.IsMeta(n) && !coveredBy(n, d.KeepOnly) })
			// What may come at run time is cut down to the kept paths.
			wasAny := s.any
			s.any = false
			if wasAny {
				for _, k := range d.KeepOnly {
					s.add(k, expr.Type{})
					s.under = append(s.under, k)
				}
			} else {
				var under []string
				for _, u := range s.under {
					for _, k := range d.KeepOnly {
						if record.Under(u, k) {
							under = append(under, u)
						} else if record.Under(k, u) {
							s.add(k, expr.Type{})
							under = append(under, k)
						}
					}
				}
				s.under = under
			}
		}
		s.removeIf(func(n string) bool { return coveredBy(n, d.Removes) })
	}
	type field struct {
		name string
		typ  expr.Type
	}
	var moved []field
	for _, r := range d.Renames {
		for _, n := range s.order {
			if record.Under(n, r[0]) {
				moved = append(moved, field{r[1] + n[len(r[0]):], s.names[n]})
			}
		}
	}
	if !conditional {
		for _, r := range d.Renames {
			s.removeIf(func(n string) bool { return record.Under(n, r[0]) })
		}
	}
	for _, m := range moved {
		s.add(m.name, m.typ)
	}
	for _, r := range d.Renames {
		if s.any || coveredBy(r[0], s.under) {
			s.add(r[1], expr.Type{})
			s.under = append(s.under, r[1])
		}
	}
	if d.WriteAny {
		s.any = true
		for n := range s.names {
			s.names[n] = expr.Type{}
		}
	}
	s.under = append(s.under, d.WriteUnder...)
	for _, j := range d.Joins {
		if _, there := s.names[j]; there {
			s.names[j] = expr.Type{} // the array of both
		}
	}
	for _, w := range d.WriteFields {
		s.add(w.Name, w.Type)
	}
}

// possible tells whether a field, or something below it, may exist.
func (s *fieldSet) possible(name string) bool {
	if s.any && !record.IsMeta(name) || coveredBy(name, s.under) {
		return true
	}
	for n := range s.names {
		if record.Under(n, name) {
			return true
		}
		// an element of a field that holds a map or an object
		if s.names[n].Kind == expr.TAny && record.Under(name, n) && !record.IsMeta(name) && n != "message" {
			return true
		}
	}
	for _, u := range s.under {
		if record.Under(u, name) {
			return true
		}
	}
	return false
}

func (s *fieldSet) list() []string {
	l := append([]string(nil), s.order...)
	sort.Strings(l)
	return l
}

// hint is what to say of a field that can't exist.
func (s *fieldSet) hint(name string) string {
	if n := config.Nearest(name, s.list()); n != "" {
		return "; did you mean " + n + "?"
	}
	var l []string
	for _, n := range s.order {
		if !record.IsMeta(n) {
			l = append(l, n)
		}
	}
	if len(l) == 0 {
		return ""
	}
	more := ""
	if len(l) > 12 {
		l, more = l[:12], ", …"
	}
	return "; here there are: " + strings.Join(l, ", ") + more
}

// shipped are the fields known to the plan that a sink at this place ships without naming them.
func (s *fieldSet) shipped() []string {
	var l []string
	for _, n := range s.order {
		if !record.IsMeta(n) {
			l = append(l, n)
		}
	}
	return l
}

func (s *fieldSet) openEnded() bool { return s.any || len(s.under) > 0 }

func coveredBy(name string, paths []string) bool {
	for _, p := range paths {
		if record.Under(name, p) {
			return true
		}
	}
	return false
}

// liveSet is what is read or shipped after one place of a plan.
type liveSet struct {
	all    bool
	except []string // with all: what is removed before anything ships it
	names  map[string]bool
}

func newLiveSet() *liveSet { return &liveSet{names: map[string]bool{}} }

func (l *liveSet) clone() *liveSet {
	c := &liveSet{all: l.all, except: append([]string(nil), l.except...), names: map[string]bool{}}
	for n := range l.names {
		c.names[n] = true
	}
	return c
}

// join adds what another branch needs.
func (l *liveSet) join(o *liveSet) {
	switch {
	case l.all && o.all:
		var both []string
		for _, e := range l.except {
			if coveredBy(e, o.except) {
				both = append(both, e)
			}
		}
		for _, e := range o.except {
			if coveredBy(e, l.except) && !coveredBy(e, both) {
				both = append(both, e)
			}
		}
		l.except = both
	case o.all:
		l.all, l.except = true, append([]string(nil), o.except...)
	}
	for n := range o.names {
		l.names[n] = true
	}
}

func (l *liveSet) live(name string) bool {
	if l.all && !record.IsMeta(name) && !coveredBy(name, l.except) {
		return true
	}
	for n := range l.names {
		if record.Under(n, name) || record.Under(name, n) {
			return true
		}
	}
	return false
}

// before turns what is live after a component into what is live before it.
func (l *liveSet) before(d *steps.Decl, conditional bool) *liveSet {
	b := l.clone()
	if !conditional {
		if d.KeepOnly != nil {
			keep := newLiveSet()
			for _, k := range d.KeepOnly {
				if b.live(k) {
					keep.names[k] = true
				}
			}
			b = keep
		}
		for _, r := range d.Removes {
			if b.all {
				b.except = append(b.except, r)
			}
			for n := range b.names {
				if record.Under(n, r) {
					delete(b.names, n)
				}
			}
		}
	}
	for _, r := range d.Renames {
		if b.live(r[1]) {
			b.names[r[0]] = true
			if b.all {
				// the source path is shipped under its new name
				var except []string
				for _, e := range b.except {
					if !record.Under(e, r[0]) && !record.Under(r[0], e) {
						except = append(except, e)
					}
				}
				b.except = except
			}
		}
	}
	for _, n := range d.ReadFields {
		b.names[n] = true
	}
	if d.ReadAll {
		b.all, b.except = true, nil
	}
	return b
}

func sameType(a, b expr.Type) bool { return a.Kind == b.Kind && a.String() == b.String() }
