package expr

import (
	"strings"
	"unicode/utf8"
)

type tokKind uint8

const (
	tEOF    tokKind = iota
	tName           // one bare name: a keyword, function or field; up is it in upper case
	tPath           // a dotted or quoted path: always a field
	tNumber         // text
	tString         // text, unescaped
	tBytes          // text: the bytes
	tOp             // text
)

type token struct {
	kind tokKind
	off  int
	end  int
	text string
	up   string
}

// lex splits src into tokens, the last one tEOF.
func lex(src string) ([]token, *Error) {
	toks := make([]token, 0, len(src)/4+2)
	i := 0
	for {
		for i < len(src) {
			c := src[i]
			if c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' {
				i++
			} else if strings.HasPrefix(src[i:], "--") {
				if k := strings.IndexByte(src[i:], '\n'); k >= 0 {
					i += k
				} else {
					i = len(src)
				}
			} else if strings.HasPrefix(src[i:], "/*") {
				k := strings.Index(src[i+2:], "*/")
				if k < 0 {
					return nil, errAt(i, "a comment is not closed")
				}
				i += k + 4
			} else {
				break
			}
		}
		if i >= len(src) {
			return append(toks, token{kind: tEOF, off: len(src), end: len(src)}), nil
		}
		t := token{off: i}
		c := src[i]
		switch {
		case c == '\'':
			s, n, err := lexString(src, i)
			if err != nil {
				return nil, err
			}
			t.kind, t.text = tString, s
			i = n
		case (c == 'x' || c == 'X') && i+1 < len(src) && src[i+1] == '\'':
			s, n, err := lexString(src, i+1)
			if err != nil {
				return nil, err
			}
			p, ok := unhexExact(s)
			if !ok {
				return nil, &Error{Off: i, Msg: "X'" + s + "' is no hexadecimal text", Hint: "an even number of hexadecimal digits"}
			}
			t.kind, t.text = tBytes, string(p)
			i = n
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(src) && src[i+1] >= '0' && src[i+1] <= '9':
			n := lexNumber(src, i)
			t.kind, t.text = tNumber, src[i:n]
			i = n
			if i < len(src) {
				if r, _ := utf8.DecodeRuneInString(src[i:]); nameStart(r) {
					return nil, &Error{Off: i, Msg: "a number goes on with " + quoteAt(src, i), Hint: "put field names that begin with a digit in backticks"}
				}
			}
		case c == '`' || c == '_' || c == '@' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
			p, n, bare, err := scanPath(src[i:], i)
			if err != nil {
				return nil, err.(*Error)
			}
			t.kind, t.text = tPath, p
			if bare {
				t.kind, t.up = tName, strings.ToUpper(p)
			}
			i += n
		default:
			op := ""
			if i+1 < len(src) {
				switch src[i : i+2] {
				case "<=", ">=", "<>", "!=", "||", "==":
					op = src[i : i+2]
				}
			}
			if op == "" && strings.IndexByte("+-*/%()[],<>=.?", c) >= 0 {
				op = src[i : i+1]
			}
			if op == "" {
				e := errAt(i, "unexpected %s", quoteAt(src, i))
				switch c {
				case '"':
					e.Hint = "text goes in single quotes, a field with other characters in backticks"
				case '&', '|', '^', '~':
					e.Hint = "AND, OR and NOT are words; || concatenates"
				}
				return nil, e
			}
			i += len(op)
			switch op {
			case "!=":
				op = "<>"
			case "==":
				op = "="
			}
			t.kind, t.text = tOp, op
		}
		t.end = i
		toks = append(toks, t)
	}
}

func lexString(src string, i int) (string, int, *Error) {
	start := i
	i++
	k := strings.IndexByte(src[i:], '\'')
	if k < 0 {
		return "", 0, &Error{Off: start, Msg: "a text is not closed", Hint: "a quote inside is written ''"}
	}
	if i+k+1 >= len(src) || src[i+k+1] != '\'' {
		return src[i : i+k], i + k + 1, nil
	}
	var sb strings.Builder
	for {
		k := strings.IndexByte(src[i:], '\'')
		if k < 0 {
			return "", 0, &Error{Off: start, Msg: "a text is not closed", Hint: "a quote inside is written ''"}
		}
		sb.WriteString(src[i : i+k])
		i += k + 1
		if i < len(src) && src[i] == '\'' {
			sb.WriteByte('\'')
			i++
			continue
		}
		return sb.String(), i, nil
	}
}

func lexNumber(src string, i int) int {
	digits := func() {
		for i < len(src) && src[i] >= '0' && src[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(src) && src[i] == '.' {
		i++
		digits()
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		j := i + 1
		if j < len(src) && (src[j] == '+' || src[j] == '-') {
			j++
		}
		if j < len(src) && src[j] >= '0' && src[j] <= '9' {
			i = j
			digits()
		}
	}
	return i
}

func unhexExact(s string) ([]byte, bool) {
	if len(s)%2 != 0 {
		return nil, false
	}
	out := make([]byte, len(s)/2)
	for i := range out {
		h, l := hexVal(s[2*i]), hexVal(s[2*i+1])
		if h < 0 || l < 0 {
			return nil, false
		}
		out[i] = byte(h<<4 | l)
	}
	return out, true
}

func hexVal(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
