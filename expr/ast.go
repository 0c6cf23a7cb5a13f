package expr

import (
	"fmt"
	"strings"
)

// Error is what is wrong with a piece of source, and where.
type Error struct {
	Off  int    // byte offset in the source
	Msg  string // what is wrong
	Hint string // what to do about it, may be empty
}

func (e *Error) Error() string {
	if e.Hint != "" {
		return fmt.Sprintf("at %d: %s (%s)", e.Off, e.Msg, e.Hint)
	}
	return fmt.Sprintf("at %d: %s", e.Off, e.Msg)
}

func errAt(off int, format string, args ...any) *Error {
	return &Error{Off: off, Msg: fmt.Sprintf(format, args...)}
}

// Op is the kind of a Node.
type Op uint8

const (
	OpNull      Op = iota
	OpBool         // Text TRUE or FALSE
	OpNumber       // Text
	OpString       // Text
	OpBytes        // Text: the bytes
	OpDate         // Text
	OpTime         // Text
	OpTimestamp    // Text
	OpInterval     // Text, Unit, UnitTo
	OpField        // Name: the path
	OpCall         // Name (upper case), Args; Distinct, Star, Filter for aggregates; Opts for JSON functions
	OpUnary        // Name: - + NOT
	OpBinary       // Name: OR AND = <> < <= > >= + - * / % || DISTINCT
	OpIs           // Name: NULL TRUE FALSE UNKNOWN JSON ...; Not
	OpLike         // Name: LIKE SIMILAR REGEXP; Not; Args: value, pattern[, escape]
	OpIn           // Args: value, list...; Not
	OpBetween      // Args: value, low, high; Not; Name SYMMETRIC or empty
	OpCase         // Args: [operand or nil], when, then, ..., else or nil
	OpCast         // Args: value; Type; Name: CAST or TRY_CAST
	OpArray        // Args; Name WHEN: the values of one WHEN a, b
	OpMap          // Args: keys and values in turn
	OpRow          // Args
	OpIndex        // Args: array, map or row; index
	OpUnit         // Name: a time unit or another keyword as an argument (TO DAY, BOTH)
)

// Node is one node of the syntax tree. It is read-only after Parse.
type Node struct {
	Op       Op
	Off      int
	Name     string
	Text     string
	Unit     string
	UnitTo   string
	Prec     int // OpInterval: precision of the leading field, -1 where none was given
	Args     []*Node
	Type     Type
	Opts     map[string]*Node // JSON clauses by keyword
	Filter   *Node
	Not      bool
	Distinct bool
	Star     bool
}

// Expr is a parsed expression. It is immutable and may be shared.
type Expr struct {
	src  string
	root *Node
}

// Source is the text that was parsed.
func (e *Expr) Source() string { return e.src }

// Root is the syntax tree; it must not be changed.
func (e *Expr) Root() *Node { return e.root }

// Sub makes an expression of a part of this one's tree, for steps that take it apart.
func (e *Expr) Sub(n *Node) *Expr { return &Expr{src: e.src, root: n} }

// Fields are the paths of the fields that are read, in order of first use.
func (e *Expr) Fields() []string {
	var out []string
	seen := map[string]bool{}
	Walk(e.root, func(n *Node) {
		if n.Op == OpField && !seen[n.Name] {
			seen[n.Name] = true
			out = append(out, n.Name)
		}
	})
	return out
}

// Walk calls f for n and all nodes below it, parents first.
func Walk(n *Node, f func(*Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, a := range n.Args {
		Walk(a, f)
	}
	Walk(n.Filter, f)
	for _, k := range []string{"DEFAULT EMPTY", "DEFAULT ERROR"} {
		if o := n.Opts[k]; o != nil {
			Walk(o, f)
		}
	}
}

// FieldName gives n's path where it is nothing but a field.
func (n *Node) FieldName() (string, bool) {
	if n != nil && n.Op == OpField {
		return n.Name, true
	}
	return "", false
}

// QuotePath writes a path so that ParsePath and Parse read it as this one field.
func QuotePath(path string) string {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if !plainName(p, i == 0) || i == 0 && len(parts) == 1 && reserved[strings.ToUpper(p)] {
			parts[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
		}
	}
	return strings.Join(parts, ".")
}
