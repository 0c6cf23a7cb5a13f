package expr

import "strings"

// timeUnits are the units that EXTRACT, FLOOR .. TO, TIMESTAMPADD and TIMESTAMPDIFF know.
var timeUnits = map[string]bool{}

func init() {
	for _, u := range strings.Fields("NANOSECOND MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR DECADE CENTURY MILLENNIUM DOW ISODOW DOY ISOYEAR EPOCH") {
		timeUnits[u] = true
	}
}

// parseCall reads a function's arguments; t is its name and '(' is next.
func (p *parser) parseCall(t *token) (*Node, *Error) {
	p.next()
	n := Node{Op: OpCall, Name: t.up, Off: t.off}
	arg := func() *Error {
		a, err := p.parseExpr(0)
		if err == nil {
			n.Args = append(n.Args, a)
		}
		return err
	}
	unit := func() *Error {
		u := p.next()
		name := strings.TrimPrefix(u.up, "SQL_TSI_")
		if !timeUnits[name] {
			name = strings.TrimSuffix(name, "S")
		}
		if !timeUnits[name] {
			return &Error{Off: u.off, Msg: "a unit of time is expected, not " + u.describe(p.src), Hint: "one of SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR ..."}
		}
		n.Args = append(n.Args, &Node{Op: OpUnit, Off: u.off, Name: name})
		return nil
	}
	var err *Error
	switch t.up {
	case "EXTRACT":
		if err = unit(); err == nil {
			if err = p.expectWord("FROM"); err == nil {
				err = arg()
			}
		}
	case "TIMESTAMPADD", "TIMESTAMPDIFF":
		if err = unit(); err == nil {
			if err = p.expectOp(","); err == nil {
				if err = arg(); err == nil {
					if err = p.expectOp(","); err == nil {
						err = arg()
					}
				}
			}
		}
	case "CEIL", "CEILING", "FLOOR":
		if err = arg(); err == nil && p.takeWord("TO") {
			err = unit()
		}
	case "POSITION":
		n.Args = nil
		a, e := p.parseExpr(precIn + 1)
		if err = e; err == nil {
			n.Args = append(n.Args, a)
			if err = p.expectWord("IN"); err == nil {
				if err = arg(); err == nil && p.takeWord("FROM") {
					err = arg()
				}
			}
		}
	case "TRIM":
		mode := &Node{Op: OpUnit, Off: t.off, Name: "BOTH"}
		if w := p.peek().up; w == "BOTH" || w == "LEADING" || w == "TRAILING" {
			// A field of that name is meant where the argument ends after it.
			if x := p.peekAt(1); !(x.kind == tOp && (x.text == ")" || x.text == ",")) {
				mode = &Node{Op: OpUnit, Off: p.next().off, Name: w}
			}
		}
		n.Args = append(n.Args, mode)
		if p.takeWord("FROM") {
			n.Args = append(n.Args, nil)
			if err = arg(); err == nil {
				n.Args[1], n.Args = n.Args[2], n.Args[:2]
			}
			break
		}
		if err = arg(); err == nil {
			if p.takeWord("FROM") {
				if err = arg(); err == nil {
					n.Args[1], n.Args[2] = n.Args[2], n.Args[1]
				}
			} else if p.takeOp(",") {
				err = arg()
			}
		}
	case "SUBSTRING", "OVERLAY":
		if err = arg(); err != nil {
			break
		}
		if t.up == "OVERLAY" && p.takeWord("PLACING") {
			if err = arg(); err == nil {
				err = p.expectWord("FROM")
			}
		} else if t.up == "SUBSTRING" && p.takeWord("FROM") {
		} else {
			for err == nil && p.takeOp(",") {
				err = arg()
			}
			break
		}
		if err == nil {
			if err = arg(); err == nil && p.takeWord("FOR") {
				err = arg()
			}
		}
	case "JSON_VALUE", "JSON_QUERY", "JSON_EXISTS":
		if err = arg(); err == nil {
			if err = p.expectOp(","); err == nil {
				if err = arg(); err == nil {
					err = p.parseJSONClauses(&n)
				}
			}
		}
	case "JSON_OBJECT", "JSON_ARRAY", "JSON_OBJECTAGG", "JSON_ARRAYAGG":
		err = p.parseJSONMembers(&n, strings.HasPrefix(t.up, "JSON_OBJECT"))
	default:
		if p.isOp("*") {
			p.next()
			n.Star = true
			break
		}
		if p.takeWord("DISTINCT") {
			n.Distinct = true
		} else if p.isWord("ALL") && !(p.peekAt(1).kind == tOp) {
			p.next()
		}
		if p.isOp(")") {
			break
		}
		for {
			if err = arg(); err != nil || !p.takeOp(",") {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := p.expectOp(")"); err != nil {
		return nil, err
	}
	if p.isWord("FILTER") && p.peekAt(1).kind == tOp && p.peekAt(1).text == "(" {
		p.next()
		p.next()
		if err := p.expectWord("WHERE"); err != nil {
			return nil, err
		}
		f, err := p.parseExpr(0)
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(")"); err != nil {
			return nil, err
		}
		n.Filter = f
	}
	return p.node(n)
}

func (n *Node) opt(k string, v *Node) {
	if n.Opts == nil {
		n.Opts = map[string]*Node{}
	}
	n.Opts[k] = v
}

// parseJSONClauses reads what follows the path: RETURNING, WRAPPER, ON EMPTY, ON ERROR.
func (p *parser) parseJSONClauses(n *Node) *Error {
	for {
		t := p.peek()
		mode := ""
		var def *Node
		switch {
		case t.up == "RETURNING":
			p.next()
			ty, err := p.parseType()
			if err != nil {
				return err
			}
			n.opt("RETURNING", &Node{Off: t.off, Type: ty})
			continue
		case p.words("WITHOUT", "ARRAY", "WRAPPER"), p.words("WITHOUT", "WRAPPER"):
			n.opt("WRAPPER", &Node{Off: t.off, Name: "WITHOUT"})
			continue
		case p.words("WITH", "CONDITIONAL", "ARRAY", "WRAPPER"), p.words("WITH", "CONDITIONAL", "WRAPPER"):
			n.opt("WRAPPER", &Node{Off: t.off, Name: "CONDITIONAL"})
			continue
		case p.words("WITH", "UNCONDITIONAL", "ARRAY", "WRAPPER"), p.words("WITH", "UNCONDITIONAL", "WRAPPER"), p.words("WITH", "ARRAY", "WRAPPER"), p.words("WITH", "WRAPPER"):
			n.opt("WRAPPER", &Node{Off: t.off, Name: "WITH"})
			continue
		case p.words("EMPTY", "ARRAY"):
			mode = "EMPTY ARRAY"
		case p.words("EMPTY", "OBJECT"):
			mode = "EMPTY OBJECT"
		case t.up == "NULL" || t.up == "ERROR" || t.up == "TRUE" || t.up == "FALSE" || t.up == "UNKNOWN":
			p.next()
			mode = t.up
		case t.up == "DEFAULT":
			p.next()
			mode = "DEFAULT"
			var err *Error
			if def, err = p.parseExpr(0); err != nil {
				return err
			}
		default:
			return nil
		}
		if err := p.expectWord("ON"); err != nil {
			return err
		}
		w := p.next()
		if w.up != "EMPTY" && w.up != "ERROR" {
			return errAt(w.off, "EMPTY or ERROR is expected, not %s", w.describe(p.src))
		}
		n.opt("ON "+w.up, &Node{Off: t.off, Name: mode})
		if def != nil {
			n.opt("DEFAULT "+w.up, def)
		}
	}
}

func (p *parser) parseJSONMembers(n *Node, object bool) *Error {
	onNull := func() bool {
		t := p.peek()
		if (t.up == "NULL" || t.up == "ABSENT") && p.peekAt(1).up == "ON" && p.peekAt(2).up == "NULL" {
			p.i += 3
			n.opt("ON NULL", &Node{Off: t.off, Name: t.up})
			return true
		}
		return false
	}
	if p.isOp(")") || onNull() {
		return nil
	}
	for {
		if object && p.isWord("KEY") && (p.peekAt(1).kind == tString || p.peekAt(1).kind == tName) {
			p.next()
		}
		a, err := p.parseExpr(0)
		if err != nil {
			return err
		}
		n.Args = append(n.Args, a)
		if object {
			if !p.takeWord("VALUE") && !p.takeOp(",") {
				return &Error{Off: p.peek().off, Msg: "VALUE is expected, not " + p.peek().describe(p.src), Hint: "as in JSON_OBJECT('a' VALUE x)"}
			}
			if a, err = p.parseExpr(0); err != nil {
				return err
			}
			n.Args = append(n.Args, a)
		}
		if onNull() || !p.takeOp(",") {
			return nil
		}
	}
}
