package expr

import (
	"strconv"
	"strings"
)

// ParseType reads a SQL type: "BIGINT NOT NULL", "TIMESTAMP_LTZ(3)", "MAP<STRING, INT>".
// The error is an *Error.
func ParseType(src string) (Type, error) {
	toks, err := lex(src)
	if err != nil {
		return Any, err
	}
	p := &parser{src: src, toks: toks}
	t, err := p.parseType()
	if err == nil && p.peek().kind != tEOF {
		err = errAt(p.peek().off, "unexpected %s after the type", p.peek().describe(src))
	}
	if err != nil {
		return Any, err
	}
	return t, nil
}

// parseType reads a SQL type.
func (p *parser) parseType() (Type, *Error) {
	if err := p.enter(); err != nil {
		return Any, err
	}
	defer p.leave()
	t, err := p.parseTypeBase()
	if err != nil {
		return Any, err
	}
	for {
		if p.peek().up == "NOT" && p.peekAt(1).up == "NULL" {
			p.next()
			p.next()
			t.NotNull = true
			continue
		}
		if p.peek().up == "NULL" {
			p.next()
			continue
		}
		if p.peek().up == "ARRAY" {
			p.next()
			t = arrayOf(t)
			continue
		}
		return t, nil
	}
}

func (p *parser) parseTypeBase() (Type, *Error) {
	tok := p.next()
	if tok.kind != tName {
		return Any, &Error{Off: tok.off, Msg: "a type is expected, not " + tok.describe(p.src), Hint: "as in CAST(x AS BIGINT)"}
	}
	switch tok.up {
	case "BOOLEAN", "BOOL":
		return simple(TBoolean), nil
	case "TINYINT":
		return simple(TTinyInt), nil
	case "SMALLINT":
		return simple(TSmallInt), nil
	case "INT", "INTEGER":
		return simple(TInt), nil
	case "BIGINT", "LONG":
		return simple(TBigInt), nil
	case "FLOAT", "REAL":
		return simple(TFloat), nil
	case "DOUBLE":
		if p.peek().up == "PRECISION" {
			p.next()
		}
		return simple(TDouble), nil
	case "DECIMAL", "DEC", "NUMERIC":
		pr, sc, err := p.typeArgs(10, 0, 38)
		if err != nil {
			return Any, err
		}
		if pr < 1 || sc > pr {
			return Any, errAt(tok.off, "DECIMAL(%d, %d): the precision is 1 to 38 and the scale at most the precision", pr, sc)
		}
		return decimalType(pr, sc), nil
	case "STRING", "TEXT":
		return stringType(), nil
	case "CHAR", "CHARACTER", "VARCHAR", "BINARY", "VARBINARY":
		def := 1
		if strings.HasPrefix(tok.up, "VAR") {
			def = maxLen
		}
		n, _, err := p.typeArgs(def, 0, maxLen)
		if err != nil {
			return Any, err
		}
		k := TChar
		switch tok.up {
		case "VARCHAR":
			k = TVarchar
		case "BINARY":
			k = TBinary
		case "VARBINARY":
			k = TVarbinary
		}
		if n < 1 {
			return Any, errAt(tok.off, "the length of %s is at least 1", tok.up)
		}
		return Type{Kind: k, Prec: n}, nil
	case "BYTES":
		return bytesType(), nil
	case "DATE":
		return simple(TDate), nil
	case "TIME", "TIMESTAMP", "TIMESTAMP_LTZ":
		def := 6
		if tok.up == "TIME" {
			def = 0
		}
		n, _, err := p.typeArgs(def, 0, 9)
		if err != nil {
			return Any, err
		}
		k := TTimestamp
		if tok.up == "TIME" {
			k = TTime
		} else if tok.up == "TIMESTAMP_LTZ" {
			k = TTimestampLTZ
		}
		if w := p.peek().up; (w == "WITHOUT" || w == "WITH") && k != TTimestampLTZ {
			p.next()
			if p.peek().up == "LOCAL" && w == "WITH" {
				p.next()
				if k == TTimestamp {
					k = TTimestampLTZ
				}
			} else if w == "WITH" {
				return Any, &Error{Off: tok.off, Msg: tok.up + " WITH TIME ZONE is not supported", Hint: "use TIMESTAMP_LTZ"}
			}
			if err := p.expectWord("TIME"); err != nil {
				return Any, err
			}
			if err := p.expectWord("ZONE"); err != nil {
				return Any, err
			}
		}
		return Type{Kind: k, Prec: n}, nil
	case "INTERVAL":
		u := p.next()
		if !intervalUnit[u.up] {
			return Any, errAt(u.off, "a unit of time is expected after INTERVAL, not %s", u.describe(p.src))
		}
		if _, _, err := p.typeArgs(2, 0, 9); err != nil {
			return Any, err
		}
		to := ""
		if p.peek().up == "TO" {
			p.next()
			to = p.next().up
			if _, _, err := p.typeArgs(6, 0, 9); err != nil {
				return Any, err
			}
		}
		return intervalType(u.up, to, -1), nil
	case "ARRAY", "MULTISET":
		if err := p.expectOp("<"); err != nil {
			return Any, err
		}
		e, err := p.parseType()
		if err != nil {
			return Any, err
		}
		return arrayOf(e), p.expectOp(">")
	case "MAP":
		if err := p.expectOp("<"); err != nil {
			return Any, err
		}
		k, err := p.parseType()
		if err != nil {
			return Any, err
		}
		if err := p.expectOp(","); err != nil {
			return Any, err
		}
		v, err := p.parseType()
		if err != nil {
			return Any, err
		}
		return mapOf(k, v), p.expectOp(">")
	case "ROW":
		open, end := "<", ">"
		if p.isOp("(") {
			open, end = "(", ")"
		}
		if err := p.expectOp(open); err != nil {
			return Any, err
		}
		t := Type{Kind: TRow}
		for {
			n := p.next()
			if n.kind != tName && n.kind != tPath {
				return Any, errAt(n.off, "a field's name is expected, not %s", n.describe(p.src))
			}
			ct, err := p.parseType()
			if err != nil {
				return Any, err
			}
			t.Cols = append(t.Cols, Column{n.text, ct})
			if p.isOp(",") {
				p.next()
				continue
			}
			return t, p.expectOp(end)
		}
	}
	return Any, &Error{Off: tok.off, Msg: "unknown type " + tok.text, Hint: "types are BOOLEAN, INT, BIGINT, DOUBLE, DECIMAL(p, s), STRING, BYTES, DATE, TIME, TIMESTAMP(3), ARRAY<..>, MAP<.., ..>, ROW<..>"}
}

// typeArgs reads (a[, b]) where it is there.
func (p *parser) typeArgs(a, b, limit int) (int, int, *Error) {
	if !p.isOp("(") {
		return a, b, nil
	}
	p.next()
	for i := 0; ; i++ {
		t := p.next()
		n, err := strconv.Atoi(t.text)
		if t.kind != tNumber || err != nil || n > limit || i > 1 {
			return 0, 0, errAt(t.off, "a whole number up to %d is expected, not %s", limit, t.describe(p.src))
		}
		if i == 0 {
			a = n
		} else {
			b = n
		}
		if p.isOp(",") {
			p.next()
			continue
		}
		return a, b, p.expectOp(")")
	}
}
