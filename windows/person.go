package windows

import (
	"strings"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// person makes of a group what people read in a store that can be queried.
func (c *core) person(from, to int64, firing uint64, key []byte, m *expr.Mem, w []uint64) *state.Row {
	b := c.scratchBatch()
	before := c.env.B
	c.env.B = b
	defer func() { c.env.B = before }()
	row := &state.Row{Start: from, End: to, Firing: firing}
	vs, err := record.DecodeValues(b, key, len(c.by), c.vals[:0])
	c.vals = vs[:0]
	if err == nil {
		for k := range vs {
			row.Key = appendMember(row.Key, b, c.By[k].Name, vs[k])
		}
	}
	row.Key = closeObject(row.Key)
	for k, call := range c.calls {
		row.Aggregates = appendMember(row.Aggregates, b, c.texts[k], call.Result(&c.env, m, w[c.offs[k]:]))
	}
	row.Aggregates = closeObject(row.Aggregates)
	return row
}

func appendMember(dst []byte, b *record.Batch, name string, v record.Value) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	dst = append(b.AppendJSON(dst, b.PutString(name)), ':')
	if v.Kind() == record.Missing {
		v = record.MakeNull()
	}
	return b.AppendJSON(dst, v)
}

func closeObject(dst []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// callTexts finds the texts of the aggregate calls that fields stand for in over, which was made of an expression with that source.
func callTexts(texts map[string]string, source string, over *expr.Expr) {
	for _, n := range over.FieldsOutside() {
		if _, there := texts[n.Name]; !there && strings.HasPrefix(n.Name, "@aggregate") {
			texts[n.Name] = callText(source, n.Off)
		}
	}
}

// callText is the call that begins there, with its FILTER; empty where there is none, as in what a macro stands for.
func callText(source string, off int) string {
	if off < 0 || off >= len(source) {
		return ""
	}
	end := closing(source, off)
	if end < 0 {
		return ""
	}
	if rest := strings.TrimLeft(source[end:], " \t\r\n"); len(rest) > 6 && strings.EqualFold(rest[:6], "FILTER") {
		if more := closing(source, len(source)-len(rest)); more > 0 {
			end = more
		}
	}
	return source[off:end]
}

// closing is behind the parenthesis that closes the first one from off on; -1 where there is none.
func closing(source string, off int) int {
	depth, quote := 0, byte(0)
	for i := off; i < len(source); i++ {
		switch c := source[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth <= 0 {
				return i + 1
			}
		}
	}
	return -1
}
