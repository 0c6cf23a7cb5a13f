package expr

import (
	"strings"
	"unicode/utf8"
)

// Limits of one expression: they keep a hostile or generated source from
// exhausting stack or memory.
const (
	maxDepth  = 500
	maxSource = 1 << 20
	maxNodes  = 50000
)

// Binding powers as in Calcite, which is Flink's parser.
const (
	precOr      = 22
	precAnd     = 24
	precNot     = 26
	precIs      = 28
	precCompare = 30
	precIn      = 32
	precAdd     = 40
	precMul     = 60
	precUnary   = 80
)

// reserved words can't be a field's name without backticks.
var reserved = map[string]bool{}

func init() {
	for _, w := range strings.Fields("AND OR NOT IN IS LIKE RLIKE BETWEEN SIMILAR CASE WHEN THEN ELSE END NULL TRUE FALSE CAST AS FROM WHERE DISTINCT UNKNOWN SELECT ESCAPE") {
		reserved[w] = true
	}
}

// niladic functions are called without parentheses.
var niladic = map[string]bool{"CURRENT_TIMESTAMP": true, "CURRENT_DATE": true, "CURRENT_TIME": true, "LOCALTIME": true, "LOCALTIMESTAMP": true}

var intervalUnit = map[string]bool{"YEAR": true, "QUARTER": true, "MONTH": true, "WEEK": true, "DAY": true, "HOUR": true, "MINUTE": true, "SECOND": true,
	"YEARS": true, "QUARTERS": true, "MONTHS": true, "WEEKS": true, "DAYS": true, "HOURS": true, "MINUTES": true, "SECONDS": true}

type parser struct {
	src   string
	toks  []token
	i     int
	depth int
	nodes int
}

// Parse reads an expression. The error is an *Error.
func Parse(src string) (*Expr, error) {
	if len(src) > maxSource {
		return nil, errAt(maxSource, "the expression is longer than %d bytes", maxSource)
	}
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, toks: toks}
	if p.peek().kind == tEOF {
		return nil, errAt(0, "an expression is expected, but there is nothing")
	}
	n, err := p.parseExpr(0)
	if err == nil && p.peek().kind != tEOF {
		t := p.peek()
		err = errAt(t.off, "unexpected %s after the end of the expression", t.describe(src))
		if t.up == "AS" {
			err.Hint = "a name is given by the key, not by AS"
		}
	}
	if err != nil {
		return nil, err
	}
	return &Expr{src: src, root: n}, nil
}

func (t token) describe(src string) string {
	if t.kind == tEOF {
		return "the end"
	}
	s := src[t.off:t.end]
	if len(s) > 40 {
		n := 40
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "..."
	}
	if t.kind == tString {
		return s
	}
	return "'" + s + "'"
}

func (p *parser) peek() *token { return &p.toks[p.i] }
func (p *parser) peekAt(n int) *token {
	return &p.toks[min(p.i+n, len(p.toks)-1)]
}
func (p *parser) next() *token {
	t := &p.toks[p.i]
	if t.kind != tEOF {
		p.i++
	}
	return t
}
func (p *parser) isOp(op string) bool { t := p.peek(); return t.kind == tOp && t.text == op }
func (p *parser) takeOp(op string) bool {
	if p.isOp(op) {
		p.i++
		return true
	}
	return false
}
func (p *parser) isWord(w string) bool { t := p.peek(); return t.kind == tName && t.up == w }
func (p *parser) takeWord(w string) bool {
	if p.isWord(w) {
		p.i++
		return true
	}
	return false
}
func (p *parser) words(ws ...string) bool {
	for i, w := range ws {
		if t := p.peekAt(i); t.kind != tName || t.up != w {
			return false
		}
	}
	p.i += len(ws)
	return true
}
func (p *parser) expectOp(op string) *Error {
	if p.takeOp(op) {
		return nil
	}
	return errAt(p.peek().off, "'%s' is expected, not %s", op, p.peek().describe(p.src))
}
func (p *parser) expectWord(w string) *Error {
	if p.takeWord(w) {
		return nil
	}
	return errAt(p.peek().off, "%s is expected, not %s", w, p.peek().describe(p.src))
}
func (p *parser) enter() *Error {
	p.depth++
	if p.depth > maxDepth {
		return errAt(p.peek().off, "the expression is nested more than %d levels deep", maxDepth)
	}
	return nil
}
func (p *parser) leave() { p.depth-- }

func (p *parser) node(n Node) (*Node, *Error) {
	p.nodes++
	if p.nodes > maxNodes {
		return nil, errAt(n.Off, "the expression has more than %d parts", maxNodes)
	}
	return &n, nil
}

func (p *parser) parseExpr(minPrec int) (*Node, *Error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	left, err := p.parseUnary()
	if err != nil {
		return nil, err
	}
	for {
		t := p.peek()
		op, prec := "", 0
		if t.kind == tOp {
			switch t.text {
			case "=", "<>", "<", "<=", ">", ">=":
				op, prec = t.text, precCompare
			case "+", "-":
				op, prec = t.text, precAdd
			case "*", "/", "%", "||":
				op, prec = t.text, precMul
			case "[":
				if precUnary < minPrec {
					return left, nil
				}
				p.next()
				ix, err := p.parseExpr(0)
				if err != nil {
					return nil, err
				}
				if err := p.expectOp("]"); err != nil {
					return nil, err
				}
				if left, err = p.node(Node{Op: OpIndex, Off: t.off, Args: []*Node{left, ix}}); err != nil {
					return nil, err
				}
				continue
			}
		} else if t.kind == tName {
			switch t.up {
			case "OR":
				op, prec = "OR", precOr
			case "AND":
				op, prec = "AND", precAnd
			case "IS":
				if precIs < minPrec {
					return left, nil
				}
				if left, err = p.parseIs(left); err != nil {
					return nil, err
				}
				continue
			case "NOT", "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "SIMILAR":
				if precIn < minPrec {
					return left, nil
				}
				n, err := p.parseSpecial(left)
				if err != nil {
					return nil, err
				}
				if n == nil {
					return left, nil
				}
				left = n
				continue
			}
		}
		if op == "" || prec < minPrec {
			return left, nil
		}
		p.next()
		right, err := p.parseExpr(prec + 1)
		if err != nil {
			return nil, err
		}
		if left, err = p.node(Node{Op: OpBinary, Name: op, Off: t.off, Args: []*Node{left, right}}); err != nil {
			return nil, err
		}
	}
}

func (p *parser) parseIs(left *Node) (*Node, *Error) {
	t := p.next()
	n := Node{Op: OpIs, Off: t.off, Args: []*Node{left}}
	n.Not = p.takeWord("NOT")
	w := p.next()
	switch w.up {
	case "NULL", "TRUE", "FALSE", "UNKNOWN":
		n.Name = w.up
	case "JSON":
		n.Name = "JSON VALUE"
		switch k := p.peek().up; k {
		case "VALUE", "OBJECT", "ARRAY", "SCALAR":
			p.next()
			n.Name = "JSON " + k
		}
	case "DISTINCT":
		if err := p.expectWord("FROM"); err != nil {
			return nil, err
		}
		r, err := p.parseExpr(precCompare)
		if err != nil {
			return nil, err
		}
		return p.node(Node{Op: OpBinary, Name: "DISTINCT", Off: t.off, Not: n.Not, Args: []*Node{left, r}})
	default:
		return nil, &Error{Off: w.off, Msg: "unexpected " + w.describe(p.src) + " after IS", Hint: "IS [NOT] NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM"}
	}
	return p.node(n)
}

// parseSpecial reads [NOT] IN, LIKE, BETWEEN and the like; nil where NOT or REGEXP begins something else.
func (p *parser) parseSpecial(left *Node) (*Node, *Error) {
	t := p.peek()
	not := false
	if t.up == "NOT" {
		switch p.peekAt(1).up {
		case "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "SIMILAR":
		default:
			return nil, nil
		}
		p.next()
		not = true
	}
	w := p.next()
	n := Node{Off: t.off, Not: not, Args: []*Node{left}}
	sub := func() *Error {
		a, err := p.parseExpr(precIn + 1)
		n.Args = append(n.Args, a)
		return err
	}
	switch w.up {
	case "IN":
		n.Op = OpIn
		if err := p.expectOp("("); err != nil {
			return nil, err
		}
		for {
			a, err := p.parseExpr(0)
			if err != nil {
				return nil, err
			}
			n.Args = append(n.Args, a)
			if !p.takeOp(",") {
				break
			}
		}
		if err := p.expectOp(")"); err != nil {
			return nil, err
		}
	case "BETWEEN":
		n.Op = OpBetween
		if p.takeWord("SYMMETRIC") {
			n.Name = "SYMMETRIC"
		} else {
			p.takeWord("ASYMMETRIC")
		}
		if err := sub(); err != nil {
			return nil, err
		}
		if err := p.expectWord("AND"); err != nil {
			return nil, err
		}
		if err := sub(); err != nil {
			return nil, err
		}
	default:
		n.Op, n.Name = OpLike, w.up
		if w.up == "RLIKE" {
			n.Name = "REGEXP"
		}
		if w.up == "SIMILAR" {
			if err := p.expectWord("TO"); err != nil {
				return nil, err
			}
		}
		if err := sub(); err != nil {
			return nil, err
		}
		if n.Name != "REGEXP" && p.takeWord("ESCAPE") {
			if err := sub(); err != nil {
				return nil, err
			}
		}
	}
	return p.node(n)
}

func (p *parser) parseUnary() (*Node, *Error) {
	t := p.peek()
	if t.kind == tOp && (t.text == "-" || t.text == "+") {
		p.next()
		if v := p.peek(); v.kind == tNumber && t.text == "-" && !(p.peekAt(1).kind == tOp && p.peekAt(1).text == "[") {
			p.next()
			return p.node(Node{Op: OpNumber, Off: t.off, Text: "-" + v.text})
		}
		a, err := p.parseExpr(precUnary)
		if err != nil {
			return nil, err
		}
		return p.node(Node{Op: OpUnary, Name: t.text, Off: t.off, Args: []*Node{a}})
	}
	if t.kind == tName && t.up == "NOT" {
		p.next()
		a, err := p.parseExpr(precNot)
		if err != nil {
			return nil, err
		}
		return p.node(Node{Op: OpUnary, Name: "NOT", Off: t.off, Args: []*Node{a}})
	}
	return p.parsePrimary()
}

func (p *parser) parsePrimary() (*Node, *Error) {
	t := p.next()
	switch t.kind {
	case tNumber:
		return p.node(Node{Op: OpNumber, Off: t.off, Text: t.text})
	case tString:
		s := t.text
		// Texts on several lines are one, as in SQL.
		for p.peek().kind == tString && strings.Contains(p.src[p.toks[p.i-1].end:p.peek().off], "\n") {
			s += p.next().text
		}
		return p.node(Node{Op: OpString, Off: t.off, Text: s})
	case tBytes:
		return p.node(Node{Op: OpBytes, Off: t.off, Text: t.text})
	case tPath:
		return p.node(Node{Op: OpField, Off: t.off, Name: t.text})
	case tOp:
		if t.text == "(" {
			a, err := p.parseExpr(0)
			if err != nil {
				return nil, err
			}
			if p.isOp(",") {
				n := Node{Op: OpRow, Off: t.off, Args: []*Node{a}}
				for p.takeOp(",") {
					if a, err = p.parseExpr(0); err != nil {
						return nil, err
					}
					n.Args = append(n.Args, a)
				}
				if err := p.expectOp(")"); err != nil {
					return nil, err
				}
				return p.node(n)
			}
			if err := p.expectOp(")"); err != nil {
				return nil, err
			}
			// (a - b) DAY TO SECOND: the unit says nothing that the values don't.
			if u := p.peek(); a.Op == OpBinary && a.Name == "-" && u.kind == tName && (u.up == "DAY" || u.up == "HOUR" || u.up == "MINUTE" || u.up == "SECOND") {
				p.next()
				if p.takeWord("TO") {
					p.next()
				}
			}
			return a, nil
		}
	case tName:
		return p.parseName(t)
	}
	return nil, errAt(t.off, "an expression is expected, not %s", t.describe(p.src))
}

func (p *parser) parseName(t *token) (*Node, *Error) {
	str := p.peek().kind == tString
	switch t.up {
	case "NULL":
		return p.node(Node{Op: OpNull, Off: t.off})
	case "TRUE", "FALSE":
		return p.node(Node{Op: OpBool, Off: t.off, Text: t.up})
	case "UNKNOWN":
		return p.node(Node{Op: OpBool, Off: t.off, Text: "UNKNOWN"})
	case "CASE":
		return p.parseCase(t)
	case "CAST", "TRY_CAST":
		if p.isOp("(") {
			p.next()
			a, err := p.parseExpr(0)
			if err != nil {
				return nil, err
			}
			if err := p.expectWord("AS"); err != nil {
				return nil, err
			}
			ty, err := p.parseType()
			if err != nil {
				return nil, err
			}
			if err := p.expectOp(")"); err != nil {
				return nil, err
			}
			return p.node(Node{Op: OpCast, Name: t.up, Off: t.off, Args: []*Node{a}, Type: ty})
		}
	case "DATE", "TIME", "TIMESTAMP":
		if str {
			op := map[string]Op{"DATE": OpDate, "TIME": OpTime, "TIMESTAMP": OpTimestamp}[t.up]
			return p.node(Node{Op: op, Off: t.off, Text: p.next().text})
		}
	case "INTERVAL":
		neg := ""
		if p.isOp("-") && p.peekAt(1).kind == tString {
			p.next()
			neg, str = "-", true
		}
		if str {
			v := p.next()
			u := p.next()
			if !intervalUnit[u.up] {
				return nil, &Error{Off: u.off, Msg: "a unit of time is expected, not " + u.describe(p.src), Hint: "as in INTERVAL '5' MINUTE"}
			}
			n := Node{Op: OpInterval, Off: t.off, Text: neg + v.text, Unit: strings.TrimSuffix(u.up, "S"), Prec: -1}
			if p.isOp("(") {
				a, _, err := p.typeArgs(2, 0, 10)
				if err != nil {
					return nil, err
				}
				n.Prec = a
			}
			if p.takeWord("TO") {
				to := p.next()
				if !intervalUnit[to.up] {
					return nil, errAt(to.off, "a unit of time is expected, not %s", to.describe(p.src))
				}
				n.UnitTo = strings.TrimSuffix(to.up, "S")
				if p.isOp("(") {
					if _, _, err := p.typeArgs(6, 0, 9); err != nil {
						return nil, err
					}
				}
			}
			return p.node(n)
		}
	case "ARRAY", "MAP":
		if p.isOp("[") {
			p.next()
			n := Node{Op: OpArray, Off: t.off}
			if t.up == "MAP" {
				n.Op = OpMap
			}
			var err *Error
			if n.Args, err = p.parseList("]"); err != nil {
				return nil, err
			}
			if n.Op == OpMap && len(n.Args)%2 != 0 {
				return nil, &Error{Off: t.off, Msg: "MAP has a key without a value", Hint: "as in MAP['a', 1, 'b', 2]"}
			}
			return p.node(n)
		}
	case "ROW":
		if p.isOp("(") {
			p.next()
			args, err := p.parseList(")")
			if err != nil {
				return nil, err
			}
			return p.node(Node{Op: OpRow, Off: t.off, Args: args})
		}
	}
	if p.isOp("(") && (!reserved[t.up] || t.up == "RLIKE") {
		return p.parseCall(t)
	}
	if niladic[t.up] {
		return p.node(Node{Op: OpCall, Name: t.up, Off: t.off})
	}
	if reserved[t.up] {
		return nil, &Error{Off: t.off, Msg: "an expression is expected, not the keyword " + t.up, Hint: "a field of that name goes in backticks"}
	}
	return p.node(Node{Op: OpField, Off: t.off, Name: t.text})
}

func (p *parser) parseList(end string) ([]*Node, *Error) {
	var out []*Node
	if p.takeOp(end) {
		return nil, nil
	}
	for {
		a, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
		if p.takeOp(",") {
			continue
		}
		return out, p.expectOp(end)
	}
}

func (p *parser) parseCase(t *token) (*Node, *Error) {
	n := Node{Op: OpCase, Off: t.off, Args: []*Node{nil}}
	if !p.isWord("WHEN") {
		a, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		n.Args[0] = a
	}
	for p.takeWord("WHEN") {
		a, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		when := []*Node{a}
		for n.Args[0] != nil && p.takeOp(",") { // CASE x WHEN 1, 2 THEN
			if a, err = p.parseExpr(0); err != nil {
				return nil, err
			}
			when = append(when, a)
		}
		if err := p.expectWord("THEN"); err != nil {
			return nil, err
		}
		b, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		if len(when) > 1 {
			if a, err = p.node(Node{Op: OpArray, Name: "WHEN", Off: a.Off, Args: when}); err != nil {
				return nil, err
			}
		}
		n.Args = append(n.Args, a, b)
	}
	if len(n.Args) == 1 {
		return nil, errAt(p.peek().off, "WHEN is expected, not %s", p.peek().describe(p.src))
	}
	if p.takeWord("ELSE") {
		a, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		n.Args = append(n.Args, a)
	} else {
		n.Args = append(n.Args, nil)
	}
	if err := p.expectWord("END"); err != nil {
		return nil, err
	}
	return p.node(n)
}
