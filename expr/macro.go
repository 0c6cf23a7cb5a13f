package expr

import (
	"fmt"
	"regexp"
	"strings"
)

// Macro is a named expression with parameters. A call of it is replaced by its body, the parameters by the call's
// arguments, before anything is compiled.
type Macro struct {
	Name   string // as it was written
	Params []string
	Body   *Expr
}

// Macros are named expressions by their upper-case names.
type Macros map[string]*Macro

// maxExpanded bounds how many nodes an expression has once its named expressions stand in it.
const maxExpanded = 10_000

var macroHead = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*\(([^()]*)\)\s*$`)

// ParseMacro makes a named expression of `name(a, b)` and its body. An *Error is about the body.
func ParseMacro(head, body string) (*Macro, error) {
	h := macroHead.FindStringSubmatch(head)
	if h == nil {
		return nil, fmt.Errorf("%q is no function's head; write name(a, b): EXPRESSION", head)
	}
	m := &Macro{Name: h[1]}
	if f := Default().Lookup(m.Name); f != nil {
		return nil, fmt.Errorf("%s is a built-in function; give yours another name", f.Name)
	}
	seen := map[string]bool{}
	for p := range strings.SplitSeq(h[2], ",") {
		if p = strings.TrimSpace(p); p == "" && strings.TrimSpace(h[2]) == "" {
			break
		}
		if !plainName(p, true) || reserved[strings.ToUpper(p)] {
			return nil, fmt.Errorf("%q is no parameter's name: a letter or _, then letters, digits and _", p)
		}
		if seen[p] {
			return nil, fmt.Errorf("the parameter %s is there twice", p)
		}
		seen[p] = true
		m.Params = append(m.Params, p)
	}
	var err error
	m.Body, err = Parse(body)
	return m, err
}

// Check expands and compiles a body whose parameters may be anything. The error is an *Error in the body's source.
func (ms Macros) Check(m *Macro) error {
	e, err := ms.Expand(m.Body)
	if err == nil {
		_, err = (&Compiler{}).Compile(e)
	}
	return err
}

// Expand gives e with the bodies of the named expressions that it calls. Places of errors in a body are those of the call.
func (ms Macros) Expand(e *Expr) (*Expr, error) {
	calls := false
	Walk(e.root, func(n *Node) { calls = calls || n.Op == OpCall && ms[n.Name] != nil })
	if !calls {
		return e, nil
	}
	x := &expander{ms: ms}
	root, err := x.node(e.root, nil, -1)
	if err != nil {
		return nil, err
	}
	return &Expr{src: e.src, root: root}, nil
}

type expander struct {
	ms    Macros
	open  []string // the calls that are being expanded
	nodes int
}

// node copies n. args are the values of parameters; off, where it isn't negative, is the place of the call.
func (x *expander) node(n *Node, args map[string]*Node, off int) (*Node, error) {
	if n == nil {
		return nil, nil
	}
	at := n.Off
	if off >= 0 {
		at = off
	}
	if x.nodes++; x.nodes > maxExpanded {
		return nil, &Error{Off: at, Msg: fmt.Sprintf("with its named expressions this has more than %d parts", maxExpanded)}
	}
	if n.Op == OpField {
		if a := args[n.Name]; a != nil {
			// An argument is copied as it is: its places are those of where it was written.
			return x.node(a, nil, -1)
		}
		// A path below a parameter is that of the argument's field.
		if head, rest, ok := strings.Cut(n.Name, "."); ok {
			if a := args[head]; a != nil {
				if a.Op != OpField {
					return nil, &Error{Off: at, Msg: fmt.Sprintf("%s needs a field for its parameter %s", n.Name, head)}
				}
				out := *a
				out.Name += "." + rest
				return &out, nil
			}
		}
	}
	out := *n
	out.Off = at
	out.Args = nil
	for _, a := range n.Args {
		c, err := x.node(a, args, off)
		if err != nil {
			return nil, err
		}
		out.Args = append(out.Args, c)
	}
	var err error
	if out.Filter, err = x.node(n.Filter, args, off); err != nil {
		return nil, err
	}
	if n.Opts != nil {
		out.Opts = map[string]*Node{}
		for k, o := range n.Opts {
			if out.Opts[k], err = x.node(o, args, off); err != nil {
				return nil, err
			}
		}
	}
	m := x.ms[n.Name]
	if n.Op != OpCall || m == nil {
		return &out, nil
	}
	return x.call(m, &out, at)
}

// call gives the body for a call whose arguments are expanded already.
func (x *expander) call(m *Macro, n *Node, at int) (*Node, error) {
	if len(n.Args) != len(m.Params) {
		return nil, &Error{Off: at, Msg: fmt.Sprintf("%s takes %s, not %d", m.Name, plural(len(m.Params), len(m.Params)), len(n.Args)),
			Hint: m.Name + "(" + strings.Join(m.Params, ", ") + ")"}
	}
	for _, name := range x.open {
		if name == m.Name {
			return nil, &Error{Off: at, Msg: fmt.Sprintf("%s calls itself: %s → %s", m.Name, strings.Join(x.open, " → "), m.Name)}
		}
	}
	args := map[string]*Node{}
	for i, p := range m.Params {
		args[p] = n.Args[i]
	}
	x.open = append(x.open, m.Name)
	body, err := x.node(m.Body.root, args, at)
	x.open = x.open[:len(x.open)-1]
	return body, err
}
