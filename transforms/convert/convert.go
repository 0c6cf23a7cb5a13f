// Package convert changes the types of fields.
package convert

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/numbers"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
	"github.com/rsetl/rsetl/transforms/each"
)

func init() {
	steps.MustRegister("convert", steps.Spec{
		Doc: config.Doc{
			Summary: "Changes the types of fields: `integer`, `float`, `boolean`, `string`.",
			Details: "`integer` cuts a fraction off; a number beyond 64 bits is kept exactly, as DECIMAL. Commas between groups of three digits don't count; with `integer_eu` and `float_eu` these are points and the comma is the decimal point. " +
				"0x begins a hexadecimal number. TRUE is 1 and FALSE 0.\n\n" +
				"`boolean` takes true, t, yes, y, 1 and 1.0, false, f, no, n, 0, 0.0 and the empty text, in any case of letters; other values stay as they are. `string` writes numbers with a point where they are DOUBLE. " +
				"In an array each element is converted, with `field[2]` the third one alone, with `field[-1]` the last; NULL, objects and fields that are missing stay as they are. A text that is no number is a failure; nothing is converted then.",
			Example: "- convert: {http.response.status_code: integer, duration: float, sampled: boolean}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `convert: {FIELD: TYPE, …}`.
type Config struct {
	Fields config.Map[kind]
	names  []string
	at     []int // each.Whole: the field itself
}

type kind string

var kinds = []string{"integer", "float", "boolean", "string", "integer_eu", "float_eu"}

func (t *kind) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	s, ok := c.Scalar(n, "a type")
	if ok && !slices.Contains(kinds, s) {
		c.Errorf(n, "%q is no type to convert to%s", s, config.Meant(s, kinds))
	}
	*t = kind(s)
}

// JSONSchema lists the types.
func (kind) JSONSchema() map[string]any { return map[string]any{"type": "string", "enum": kinds} }

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	k.Fields.UnmarshalConfig(c, n)
	k.names, k.at = nil, nil
	plain := make(config.Map[kind], len(k.Fields))
	for i, f := range k.Fields {
		var at int
		f.Key, at = each.Element(f.Key)
		plain[i], k.at = f, append(k.at, at)
	}
	k.names = steps.Paths(c, plain)
}

// JSONSchema describes the mapping.
func (*Config) JSONSchema() map[string]any { return config.Map[kind]{}.JSONSchema() }

func (k *Config) Declare(d *steps.Decl) {
	for i, n := range k.names {
		d.Read(n, k.Fields[i].Node)
		d.Write(n, expr.Type{})
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	slots := each.Fields(b, k.names)
	return func() steps.Step {
		c := &converter{}
		for _, f := range k.Fields {
			c.kinds = append(c.kinds, f.Value)
		}
		c.names = k.names
		return &each.Step{Slots: slots, Elements: true, At: k.at, F: c.convert}
	}, nil
}

type converter struct {
	kinds []kind
	names []string
	buf   []byte
}

func (c *converter) convert(b *record.Batch, _, k int, v record.Value) (record.Value, string) {
	if v.IsNull() || v.Kind() == record.Map {
		return v, ""
	}
	to := c.kinds[k]
	switch to {
	case "boolean":
		return boolean(b, v), ""
	case "string":
		return c.text(b, v), ""
	}
	var ok bool
	switch v.Kind() {
	case record.String:
		p := b.Bytes(v)
		clean, good := ungroup(c.buf[:0], p, to == "integer_eu" || to == "float_eu")
		c.buf = clean
		if !good {
			break
		}
		t := v
		if !bytes.Equal(clean, p) {
			t = b.PutBytes(clean)
		}
		if to == "integer" || to == "integer_eu" {
			if v, ok = numbers.Int(b, t); ok {
				return v, ""
			}
		} else {
			var f float64
			if f, ok = numbers.Double(b.Bytes(t)); ok {
				return record.MakeFloat(f), ""
			}
		}
	case record.Bool:
		n := int64(0)
		if v.Bool() {
			n = 1
		}
		v, ok = record.MakeInt(n), true
	case record.Int, record.Float, record.Decimal:
		ok = true
	case record.Time:
		v, ok = record.MakeDecimal(v.Sec(), 0), true
	}
	if !ok {
		return v, "convert: " + c.names[k] + ": " + strconv.Quote(short(b.AppendPlain(nil, v))) + " is no number"
	}
	if to == "integer" || to == "integer_eu" {
		return integer(b, v), ""
	}
	return float(b, v), ""
}

func short(p []byte) string { return string(p[:min(len(p), 80)]) }

// ungroup appends a number's text without the separators of groups, with a point as the decimal point. good is false where the
// groups are no groups of three.
func ungroup(dst, p []byte, eu bool) (out []byte, good bool) {
	group, point := byte(','), byte('.')
	if eu {
		group, point = point, group
	}
	p = bytes.TrimSpace(p)
	if bytes.IndexByte(p, group) < 0 {
		for _, c := range p {
			if c == point {
				c = '.'
			}
			dst = append(dst, c)
		}
		return dst, true
	}
	run, groups, fraction := 0, 0, false
	for i, c := range p {
		switch {
		case c == group:
			if fraction || run == 0 || groups > 0 && run != 3 || run > 3 {
				return dst, false
			}
			groups++
			run = 0
		case c == point:
			if fraction || groups > 0 && run != 3 {
				return dst, false
			}
			fraction = true
			dst = append(dst, '.')
		case c-'0' <= 9:
			if !fraction {
				run++
			}
			dst = append(dst, c)
		case (c == '-' || c == '+') && i == 0:
			dst = append(dst, c)
		default:
			return dst, false
		}
	}
	return dst, fraction || run == 3
}

func integer(b *record.Batch, v record.Value) record.Value {
	switch v.Kind() {
	case record.Float:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return record.MakeNull()
		}
		if f = math.Trunc(f); math.Abs(f) < 1<<63 {
			return record.MakeInt(int64(f))
		}
		x, _ := big.NewFloat(f).Int(nil)
		return b.BigDecimal(x, 0)
	case record.Decimal:
		x := b.Unscaled(v)
		if v.Scale() > 0 {
			x.Quo(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale())), nil))
		}
		if x.IsInt64() {
			return record.MakeInt(x.Int64())
		}
		return b.BigDecimal(x, 0)
	}
	return v
}

func float(b *record.Batch, v record.Value) record.Value {
	switch v.Kind() {
	case record.Int:
		return record.MakeFloat(float64(v.Int()))
	case record.Decimal:
		f, err := strconv.ParseFloat(string(b.AppendDecimal(nil, v)), 64)
		if err != nil {
			return record.MakeNull()
		}
		return record.MakeFloat(f)
	}
	return v
}

func boolean(b *record.Batch, v record.Value) record.Value {
	switch v.Kind() {
	case record.Int:
		if n := v.Int(); n == 0 || n == 1 {
			return record.MakeBool(n == 1)
		}
	case record.Float:
		if f := v.Float(); f == 0 || f == 1 {
			return record.MakeBool(f == 1)
		}
	case record.String:
		p := b.Bytes(v)
		if len(p) > 5 {
			return v
		}
		var low [5]byte
		for i, c := range p {
			if c-'A' < 26 {
				c |= 0x20
			}
			low[i] = c
		}
		switch string(low[:len(p)]) {
		case "true", "t", "yes", "y", "1", "1.0":
			return record.MakeBool(true)
		case "false", "f", "no", "n", "0", "0.0", "":
			return record.MakeBool(false)
		}
	}
	return v
}

func (c *converter) text(b *record.Batch, v record.Value) record.Value {
	switch v.Kind() {
	case record.String:
		return v
	case record.Float:
		off := len(b.Buf)
		b.Buf = appendFloat(b.Buf, v.Float())
		return b.Since(off)
	}
	c.buf = b.AppendPlain(c.buf[:0], v)
	return b.PutBytes(c.buf)
}

// appendFloat appends a DOUBLE so that it shows as one: 123.0, 1.0e+20.
func appendFloat(dst []byte, f float64) []byte {
	a := math.Abs(f)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.AppendFloat(dst, f, 'g', -1, 64)
	}
	if a != 0 && (a < 1e-4 || a >= 1e16) {
		from := len(dst)
		dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
		if e := bytes.IndexByte(dst[from:], 'e'); bytes.IndexByte(dst[from:from+e], '.') < 0 {
			dst = slices.Insert(dst, from+e, '.', '0')
		}
		return dst
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[from:], '.') < 0 {
		dst = append(dst, '.', '0')
	}
	return dst
}
