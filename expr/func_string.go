package expr

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

func typeOfFirst(c *Call) (Type, error) {
	t := c.ArgType(0)
	if !t.isText() && t.Kind != TArray { // converted to text
		if t.Kind == TAny && argLetter(c.fn.Args, 0) != 's' {
			return Any, nil
		}
		t = stringType()
	}
	return t.null(c.NotNull()), nil
}

// varcharOfFirst is VARCHAR of the first text's length.
func varcharOfFirst(c *Call) (Type, error) {
	t := c.ArgType(0)
	if !t.isText() {
		t = stringType()
	}
	t.Kind = TVarchar
	return t.null(c.NotNull()), nil
}

func varcharNullable(c *Call) (Type, error) {
	t, err := varcharOfFirst(c)
	return t.nullable(), err
}

var (
	stringNN  = stringType().notNull()
	intNN     = simple(TInt).notNull()
	bigintNN  = simple(TBigInt).notNull()
	doubleNN  = simple(TDouble).notNull()
	booleanNN = simple(TBoolean).notNull()
)

func isASCII(p []byte) bool {
	for _, c := range p {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func charLen(p []byte) int64 { return int64(utf8.RuneCount(p)) }

// charOffset is the byte offset of character n (from 0), len(p) beyond the end.
func charOffset(p []byte, n int64) int {
	i := 0
	for ; n > 0 && i < len(p); n-- {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, w := utf8.DecodeRune(p[i:])
		i += w
	}
	return i
}

// mapRunes writes p changed by f; v itself where nothing changes.
func mapRunes(env *Env, v record.Value, f func(r rune) rune) record.Value {
	p := env.bytes(v)
	for i := 0; i < len(p); {
		r, w := utf8.DecodeRune(p[i:])
		if f(r) != r || r == 'ß' {
			off := len(env.B.Buf)
			buf := append(env.B.Buf, p[:i]...)
			for i < len(p) {
				r, w := utf8.DecodeRune(p[i:])
				if x := f(r); r == 'ß' && f('a') == 'A' {
					buf = append(buf, "SS"...) // as Java
				} else if r == utf8.RuneError && w == 1 {
					buf = append(buf, p[i])
				} else {
					buf = utf8.AppendRune(buf, x)
				}
				i += w
			}
			env.B.Buf = buf
			return env.B.Since(off)
		}
		i += w
	}
	return v
}

func upper(env *Env, a []record.Value) record.Value { return mapRunes(env, a[0], unicode.ToUpper) }
func lower(env *Env, a []record.Value) record.Value { return mapRunes(env, a[0], unicode.ToLower) }

func trimValue(env *Env, v, set record.Value, left, right bool) record.Value {
	p := env.bytes(v)
	from, to := 0, len(p)
	cut := []byte{' '}
	if set.Kind() == record.String {
		cut = env.bytes(set)
	}
	for left && from < to {
		r, w := utf8.DecodeRune(p[from:to])
		if !bytes.ContainsRune(cut, r) {
			break
		}
		from += w
	}
	for right && from < to {
		r, w := utf8.DecodeLastRune(p[from:to])
		if !bytes.ContainsRune(cut, r) {
			break
		}
		to -= w
	}
	return v.Sub(from, to)
}

func arg(a []record.Value, i int) record.Value {
	if i < len(a) {
		return a[i]
	}
	return record.Value{}
}

func substring(env *Env, a []record.Value) record.Value {
	v, pos := a[0], a[1].Int()
	n := int64(1 << 40)
	if len(a) > 2 {
		if n = a[2].Int(); n < 0 {
			return null
		}
	}
	return subValue(env, v, pos, n)
}

// subValue is n characters of v from pos: 1 is the first, 0 too, -1 the last.
func subValue(env *Env, v record.Value, pos, n int64) record.Value {
	p := env.bytes(v)
	if pos < 0 {
		if pos += charLen(p); pos < 0 {
			return v.Sub(0, 0)
		}
	} else if pos > 0 {
		pos--
	}
	from := charOffset(p, pos)
	return v.Sub(from, from+charOffset(p[from:], n))
}

// position is the character number of needle at or after character from (from 1); 0 where there is none.
func position(needle, p []byte, from int64) int64 {
	at := 0
	if from > 1 {
		if from > charLen(p) {
			return 0
		}
		at = charOffset(p, from-1)
	}
	k := bytes.Index(p[at:], needle)
	if k < 0 {
		return 0
	}
	return charLen(p[:at+k]) + 1
}

func pad(env *Env, a []record.Value, left bool) record.Value {
	p, n, fill := env.bytes(a[0]), a[1].Int(), env.bytes(a[2])
	if n < 0 || n > maxFill || len(fill) == 0 {
		return null
	}
	have := charLen(p)
	if n <= have {
		return a[0].Sub(0, charOffset(p, n))
	}
	off := len(env.B.Buf)
	buf := env.B.Buf
	if !left {
		buf = append(buf, p...)
	}
	for k := n - have; k > 0; {
		w := charLen(fill)
		if w > k {
			buf = append(buf, fill[:charOffset(fill, k)]...)
			break
		}
		buf = append(buf, fill...)
		k -= w
	}
	if left {
		buf = append(buf, p...)
	}
	env.B.Buf = buf
	return env.B.Since(off)
}

// replaceInto appends p with old replaced.
func replace(env *Env, a []record.Value) record.Value {
	p, old, repl := env.bytes(a[0]), env.bytes(a[1]), env.bytes(a[2])
	if len(old) > 0 && !bytes.Contains(p, old) {
		return a[0]
	}
	if len(repl) > 0 && (len(p)+1)*len(repl) > maxText && bytes.Count(p, old)*len(repl) > maxText {
		return null
	}
	off := len(env.B.Buf)
	buf := env.B.Buf
	if len(old) == 0 {
		buf = append(buf, repl...)
		for len(p) > 0 {
			_, w := utf8.DecodeRune(p)
			buf = append(append(buf, p[:w]...), repl...)
			p = p[w:]
		}
	} else {
		for {
			k := bytes.Index(p, old)
			if k < 0 {
				break
			}
			buf = append(append(buf, p[:k]...), repl...)
			p = p[k+len(old):]
		}
		buf = append(buf, p...)
	}
	env.B.Buf = buf
	return env.B.Since(off)
}

// splitIndex is the n-th part (from 0) of p between separators.
func splitIndex(env *Env, v, sep record.Value, n int64) record.Value {
	p, s := env.bytes(v), env.bytes(sep)
	if n < 0 || len(s) == 0 || len(p) == 0 {
		return null
	}
	from := 0
	for {
		k := bytes.Index(p[from:], s)
		if n == 0 {
			if k < 0 {
				return v.Sub(from, len(p))
			}
			return v.Sub(from, from+k)
		}
		if k < 0 {
			return null
		}
		from += k + len(s)
		n--
	}
}

func initcap(env *Env, a []record.Value) record.Value {
	p := env.bytes(a[0])
	off := len(env.B.Buf)
	buf := env.B.Buf
	start := true
	for len(p) > 0 {
		r, w := utf8.DecodeRune(p)
		switch {
		case r == utf8.RuneError && w == 1:
			buf = append(buf, p[0])
		case start:
			buf = utf8.AppendRune(buf, unicode.ToUpper(r))
		default:
			buf = utf8.AppendRune(buf, unicode.ToLower(r))
		}
		start = !unicode.IsLetter(r) && !unicode.IsDigit(r)
		p = p[w:]
	}
	env.B.Buf = buf
	return env.B.Since(off)
}

func overlay(env *Env, a []record.Value) record.Value {
	p, q, pos := env.bytes(a[0]), env.bytes(a[1]), a[2].Int()
	n := charLen(q)
	if len(a) > 3 {
		n = a[3].Int()
	}
	size := charLen(p)
	if pos <= 0 || pos > size {
		return a[0]
	}
	from := charOffset(p, pos-1)
	to := len(p)
	if n > 0 && pos-1+n < size { // a length below 1 takes the rest, as in Flink
		to = charOffset(p, pos-1+n)
	}
	off := len(env.B.Buf)
	env.B.Buf = append(append(append(env.B.Buf, p[:from]...), q...), p[to:]...)
	return env.B.Since(off)
}

func concat(env *Env, a []record.Value) record.Value {
	if len(a) == 1 {
		return a[0]
	}
	off := len(env.B.Buf)
	for _, v := range a {
		env.B.Buf = append(env.B.Buf, env.bytes(v)...)
		if len(env.B.Buf)-off > maxText {
			return null
		}
	}
	return env.B.Since(off)
}

func translate(env *Env, a []record.Value) record.Value {
	if a[0].IsNull() {
		return null
	}
	var from, to []rune
	if !a[1].IsNull() {
		from = []rune(string(env.bytes(a[1])))
	}
	if !a[2].IsNull() {
		to = []rune(string(env.bytes(a[2])))
	}
	off := len(env.B.Buf)
	buf := env.B.Buf
	for _, r := range string(env.bytes(a[0])) {
		at := -1
		for i, f := range from {
			if f == r {
				at = i
				break
			}
		}
		switch {
		case at < 0:
			buf = utf8.AppendRune(buf, r)
		case at < len(to):
			buf = utf8.AppendRune(buf, to[at])
		}
	}
	env.B.Buf = buf
	return env.B.Since(off)
}

// splitInto puts the parts of a text in an array.
func split(env *Env, a []record.Value) record.Value {
	v, p, sep := a[0], env.bytes(a[0]), env.bytes(a[1])
	base := len(env.items)
	switch {
	case len(p) == 0:
	case len(sep) == 0:
		for i := 0; i < len(p); {
			_, w := utf8.DecodeRune(p[i:])
			env.items = append(env.items, v.Sub(i, i+w))
			i += w
		}
	default:
		from := 0
		for {
			k := bytes.Index(p[from:], sep)
			if k < 0 {
				break
			}
			env.items = append(env.items, v.Sub(from, from+k))
			from += k + len(sep)
		}
		env.items = append(env.items, v.Sub(from, len(p)))
	}
	out := env.B.PutItems(record.Array, env.items[base:])
	env.items = env.items[:base]
	return out
}

func stringFuncs() []Function {
	const cat = "string"
	fs := []Function{
		{Name: "UPPER", Aliases: []string{"UCASE"}, Signature: "UPPER(text)", Summary: "text in upper case", Example: "UPPER('Straße 1')", ExampleResult: "STRASSE 1", Args: "s", Type: typeOfFirst, Fn: upper},
		{Name: "LOWER", Aliases: []string{"LCASE"}, Signature: "LOWER(text)", Summary: "text in lower case", Example: "LOWER('GET')", ExampleResult: "get", Args: "s", Type: typeOfFirst, Fn: lower},
		{Name: "TRIM", Signature: "TRIM([BOTH | LEADING | TRAILING] [characters FROM] text)", Summary: "text without blanks, or the given characters, at its ends", Example: "TRIM(BOTH '\"' FROM '\"curl/8\"')", ExampleResult: "curl/8", Args: "us?s",
			Type: func(c *Call) (Type, error) {
				t := c.ArgType(1)
				if !t.isText() {
					t = stringType()
				}
				t.Kind = TVarchar
				return t.null(c.ArgType(1).NotNull && (c.Len() < 3 || c.ArgType(2).NotNull)), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				mode := c.Node.Args[0].Name
				l, r := mode != "TRAILING", mode != "LEADING"
				f := c.Arg(1)
				if c.Len() == 2 {
					return func(env *Env, i int) record.Value {
						v := f(env, i)
						if v.IsNull() {
							return null
						}
						return trimValue(env, v, record.Value{}, l, r)
					}, nil
				}
				g := c.Arg(2)
				return func(env *Env, i int) record.Value {
					v, s := f(env, i), g(env, i)
					if v.IsNull() || s.IsNull() {
						return null
					}
					return trimValue(env, v, s, l, r)
				}, nil
			}},
		{Name: "LTRIM", Signature: "LTRIM(text[, characters])", Summary: "text without blanks, or the given characters, at its start", Example: "LTRIM('007', '0')", ExampleResult: "7", Args: "s?s", Type: varcharOfFirst,
			Fn: func(env *Env, a []record.Value) record.Value { return trimValue(env, a[0], arg(a, 1), true, false) }},
		{Name: "RTRIM", Signature: "RTRIM(text[, characters])", Summary: "text without blanks, or the given characters, at its end", Example: "RTRIM('/a/', '/')", ExampleResult: "/a", Args: "s?s", Type: varcharOfFirst,
			Fn: func(env *Env, a []record.Value) record.Value { return trimValue(env, a[0], arg(a, 1), false, true) }},
		{Name: "BTRIM", Signature: "BTRIM(text[, characters])", Summary: "text without blanks, or the given characters, at both ends", Example: "BTRIM('[x]', '[]')", ExampleResult: "x", Args: "s?s", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value { return trimValue(env, a[0], arg(a, 1), true, true) }},
		{Name: "CONCAT", Signature: "CONCAT(text, ...)", Summary: "the texts one after the other", Example: "CONCAT('a', 'b', 'c')", ExampleResult: "abc", Args: "s*", Result: stringNN, Fn: concat},
		{Name: "CONCAT_WS", Signature: "CONCAT_WS(separator, text, ...)", Summary: "the texts with the separator between them", Nulls: "NULL where the separator is; NULL texts are left out", Example: "CONCAT_WS('-', 'a', NULL, 'b')", ExampleResult: "a-b", Args: "s?s*", Result: stringNN, TakesNull: true,
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].IsNull() {
					return null
				}
				off, first := len(env.B.Buf), true
				for _, v := range a[1:] {
					if v.IsNull() {
						continue
					}
					if !first {
						env.B.Buf = append(env.B.Buf, env.bytes(a[0])...)
					}
					first = false
					env.B.Buf = append(env.B.Buf, env.bytes(v)...)
				}
				return env.B.Since(off)
			}},
		{Name: "SUBSTRING", Aliases: []string{"SUBSTR"}, Signature: "SUBSTRING(text, start[, length])", Summary: "the part of text from character start (1 is the first, -1 the last) on", Nulls: "NULL where an argument is, or the length is negative", Example: "SUBSTRING('abcdef', 2, 3)", ExampleResult: "bcd", Args: "si?i", Type: varcharNullable, Fn: substring},
		{Name: "LEFT", Signature: "LEFT(text, n)", Summary: "the first n characters", Example: "LEFT('2024-02-24', 4)", ExampleResult: "2024", Args: "si", Type: varcharNullable,
			Fn: func(env *Env, a []record.Value) record.Value { return subValue(env, a[0], 1, max(a[1].Int(), 0)) }},
		{Name: "RIGHT", Signature: "RIGHT(text, n)", Summary: "the last n characters", Example: "RIGHT('access.log', 3)", ExampleResult: "log", Args: "si", Type: varcharNullable,
			Fn: func(env *Env, a []record.Value) record.Value {
				n, p := a[1].Int(), env.bytes(a[0])
				if n <= 0 {
					return a[0].Sub(0, 0)
				}
				return a[0].Sub(charOffset(p, charLen(p)-n), len(p))
			}},
		{Name: "REPLACE", Signature: "REPLACE(text, old, new)", Summary: "text with every old replaced", Example: "REPLACE('a-b-c', '-', '+')", ExampleResult: "a+b+c", Args: "sss", Result: stringNN, Fn: replace},
		{Name: "POSITION", Signature: "POSITION(part IN text)", Summary: "the number of the character where part begins, 0 where it isn't there", Example: "POSITION('b' IN 'abc')", ExampleResult: "2", Args: "ss?i", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				from := int64(1)
				if len(a) > 2 {
					from = a[2].Int()
				}
				return record.MakeInt(position(env.bytes(a[0]), env.bytes(a[1]), from))
			}},
		{Name: "INSTR", Signature: "INSTR(text, part[, from[, nth]])", Summary: "the number of the character where part begins, 0 where it isn't there", Example: "INSTR('abc', 'c')", ExampleResult: "3", Args: "ss?ii", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				from := int64(1)
				if len(a) > 2 {
					from = a[2].Int()
				}
				return record.MakeInt(position(env.bytes(a[1]), env.bytes(a[0]), from))
			}},
		{Name: "LOCATE", Signature: "LOCATE(part, text[, from])", Summary: "the number of the character where part begins, at or after from; 0 where it isn't there", Example: "LOCATE('b', 'abcabc', 3)", ExampleResult: "5", Args: "ss?i", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				from := int64(1)
				if len(a) > 2 {
					from = a[2].Int()
				}
				return record.MakeInt(position(env.bytes(a[0]), env.bytes(a[1]), from))
			}},
		{Name: "CHAR_LENGTH", Aliases: []string{"CHARACTER_LENGTH", "LENGTH"}, Signature: "CHAR_LENGTH(text)", Summary: "the number of characters", Example: "CHAR_LENGTH('日本')", ExampleResult: "2", Args: "s", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value { return record.MakeInt(charLen(env.bytes(a[0]))) }},
		{Name: "OCTET_LENGTH", Signature: "OCTET_LENGTH(text)", Summary: "the number of bytes, in UTF-8", Example: "OCTET_LENGTH('日本')", ExampleResult: "6", Args: "y", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value { return record.MakeInt(int64(a[0].Len())) }},
		{Name: "LPAD", Signature: "LPAD(text, length, fill)", Summary: "text filled up on the left, or cut, to the length", Nulls: "NULL where an argument is, the length is negative or the fill is empty and needed", Example: "LPAD('7', 3, '0')", ExampleResult: "007", Args: "sis", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value { return pad(env, a, true) }},
		{Name: "RPAD", Signature: "RPAD(text, length, fill)", Summary: "text filled up on the right, or cut, to the length", Nulls: "NULL where an argument is, the length is negative or the fill is empty and needed", Example: "RPAD('7', 3, '.')", ExampleResult: "7..", Args: "sis", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value { return pad(env, a, false) }},
		{Name: "REPEAT", Signature: "REPEAT(text, n)", Summary: "text n times; at most 1 MiB, else NULL", Example: "REPEAT('ab', 3)", ExampleResult: "ababab", Args: "si", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				n, p := a[1].Int(), env.bytes(a[0])
				if n <= 0 || len(p) == 0 {
					return a[0].Sub(0, 0)
				}
				if n > maxFill/int64(len(p)) {
					return null
				}
				off := len(env.B.Buf)
				for range n {
					env.B.Buf = append(env.B.Buf, p...)
				}
				return env.B.Since(off)
			}},
		{Name: "REVERSE", Signature: "REVERSE(text)", Summary: "the characters in reverse order", Example: "REVERSE('abc')", ExampleResult: "cba", Args: "s", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				p := env.bytes(a[0])
				off := len(env.B.Buf)
				for len(p) > 0 {
					_, w := utf8.DecodeLastRune(p)
					env.B.Buf = append(env.B.Buf, p[len(p)-w:]...)
					p = p[:len(p)-w]
				}
				return env.B.Since(off)
			}},
		{Name: "INITCAP", Signature: "INITCAP(text)", Summary: "every word with a capital and lower case after it", Example: "INITCAP('hello-world a1b')", ExampleResult: "Hello-World A1b", Args: "s", Type: typeOfFirst, Fn: initcap},
		{Name: "OVERLAY", Signature: "OVERLAY(text PLACING new FROM start [FOR length])", Summary: "text with the characters from start on replaced", Example: "OVERLAY('abcdef' PLACING 'XY' FROM 2)", ExampleResult: "aXYdef", Args: "ssi?i",
			Type: func(c *Call) (Type, error) {
				t := stringType()
				if a, b := c.ArgType(0), c.ArgType(1); a.isText() && b.isText() && a.Prec < maxLen && b.Prec < maxLen {
					t.Prec = a.Prec + b.Prec
				}
				return t.null(c.NotNull()), nil
			}, Fn: overlay},
		{Name: "TRANSLATE", Signature: "TRANSLATE(text, from, to)", Summary: "text with each character of from replaced by the one in its place in to, or left out", Nulls: "NULL where the text is; NULL otherwise is as empty", Example: "TRANSLATE('a.b:c', '.:', '--')", ExampleResult: "a-b-c", Args: "sss", TakesNull: true,
			Type: func(c *Call) (Type, error) { return stringType().null(c.ArgType(0).NotNull), nil }, Fn: translate},
		{Name: "SPLIT_INDEX", Signature: "SPLIT_INDEX(text, separator, n)", Summary: "part n (from 0) of text between separators", Nulls: "NULL where an argument is, or there is no such part", Example: "SPLIT_INDEX('GET /a HTTP/1.1', ' ', 1)", ExampleResult: "/a", Args: "sxi", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				sep := a[1]
				if sep.Kind() == record.Int { // Flink also takes a character's number
					if sep.Int() < 0 || sep.Int() > unicode.MaxRune {
						return null
					}
					sep = env.B.PutString(string(rune(sep.Int())))
				} else if sep.Kind() != record.String {
					return null
				}
				return splitIndex(env, a[0], sep, a[2].Int())
			}},
		{Name: "SPLIT", Aliases: []string{"SPLIT_ARRAY"}, Signature: "SPLIT(text, separator)", Summary: "the parts of text between separators, as an array", Example: "SPLIT('a,b,c', ',')", ExampleResult: "[a, b, c]", Args: "ss",
			Type: func(c *Call) (Type, error) { return arrayOf(stringType()).null(c.NotNull()), nil }, Fn: split},
		{Name: "STARTSWITH", Signature: "STARTSWITH(text, start)", Summary: "whether text begins so", Example: "STARTSWITH('/health/x', '/health')", ExampleResult: "TRUE", Args: "xx", Result: booleanNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Kind() < record.String || a[0].Kind() > record.Bytes {
					a[0] = env.text(a[0])
				}
				return record.MakeBool(bytes.HasPrefix(env.bytes(a[0]), env.bytes(env.text(a[1]))))
			}},
		{Name: "ENDSWITH", Signature: "ENDSWITH(text, end)", Summary: "whether text ends so", Example: "ENDSWITH('a.css', '.css')", ExampleResult: "TRUE", Args: "ss", Result: booleanNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				return record.MakeBool(bytes.HasSuffix(env.bytes(a[0]), env.bytes(a[1])))
			}},
		{Name: "ASCII", Signature: "ASCII(text)", Summary: "the number of the first byte, 0 for an empty text", Example: "ASCII('a')", ExampleResult: "97", Args: "s", Result: intNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Len() == 0 {
					return record.MakeInt(0)
				}
				return record.MakeInt(int64(env.bytes(a[0])[0]))
			}},
		{Name: "CHR", Signature: "CHR(n)", Summary: "the character with that number, modulo 256; empty for a negative one", Example: "CHR(97)", ExampleResult: "a", Args: "i", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].Int() < 0 {
					return env.B.PutString("")
				}
				return env.B.PutString(string(rune(a[0].Int() & 255)))
			}},
		{Name: "ELT", Signature: "ELT(n, text, ...)", Summary: "the n-th (from 1) of the texts", Nulls: "NULL where n is, or there is no such text", Example: "ELT(2, 'a', 'b')", ExampleResult: "b", Args: "is*", Result: stringType(), TakesNull: true,
			Fn: func(env *Env, a []record.Value) record.Value {
				if a[0].IsNull() || a[0].Int() < 1 || a[0].Int() >= int64(len(a)) {
					return null
				}
				return a[a[0].Int()]
			}},
		{Name: "PRINTF", Signature: "PRINTF(format, value, ...)", Summary: "the values as the format says (%d, %s, %x, %f ...)", Nulls: "NULL where the format is, or a value doesn't fit it", Example: "PRINTF('%05d|%-5s|%x', 42, 'ab', 255)", ExampleResult: "00042|ab   |ff", Args: "sx*?", Result: stringType(), TakesNull: true, Fn: printf},
		{Name: "STR_TO_MAP", Signature: "STR_TO_MAP(text[, pair separator, key separator])", Summary: "a map of 'k1=v1,k2=v2'; the separators are regular expressions", Example: "STR_TO_MAP('a=1&b=2', '&', '=')", ExampleResult: "{a=1, b=2}", Args: "s?ss", Result: mapOf(stringType(), stringType()), Fn: strToMap},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// maxPairs bounds the map that STR_TO_MAP makes of one text; looking for a key is linear.
const maxPairs = 4096

func strToMap(env *Env, a []record.Value) record.Value {
	pair, key := []byte(","), []byte("=")
	if len(a) == 2 {
		pair = env.bytes(a[1])
	}
	if len(a) > 2 {
		pair, key = env.bytes(a[1]), env.bytes(a[2])
	}
	pr, kr := env.regex(pair, false, 0), env.regex(key, false, 0)
	if pr == nil || kr == nil {
		return null
	}
	base := len(env.items)
	v, p := a[0], env.bytes(a[0])
	put := func(from, to int) {
		k, val := v.Sub(from, to), null
		if m := kr.find(env, p[from:to]); m != nil && m[1] > m[0] {
			k, val = v.Sub(from, from+m[0]), v.Sub(from+m[1], to)
		}
		for at := base; at < len(env.items); at += 2 {
			if same(env, env.items[at], k) {
				env.items[at+1] = val
				return
			}
		}
		if len(env.items)-base < 2*maxPairs {
			env.items = append(env.items, k, val)
		}
	}
	from := 0
	for m := range pr.all(env, p) {
		if m[1] > m[0] {
			put(from, m[0])
			from = m[1]
		}
	}
	if from < len(p) { // what is empty at the end is no entry
		put(from, len(p))
	}
	out := env.B.PutItems(record.Map, env.items[base:])
	env.items = env.items[:base]
	return out
}

// printf is Java's String.format for the conversions that values here have.
func printf(env *Env, a []record.Value) record.Value {
	if a[0].IsNull() {
		return null
	}
	f := env.bytes(a[0])
	off := len(env.B.Buf)
	next := 1
	var out []byte
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			out = append(out, f[i])
			continue
		}
		i++
		start := i
		for i < len(f) && strings.IndexByte("-#+ 0,(123456789.$", f[i]) >= 0 {
			i++
		}
		if i >= len(f) {
			return null
		}
		spec := string(f[start:i])
		c := f[i]
		if c == '%' {
			out = append(out, '%')
			continue
		}
		if c == 'n' {
			out = append(out, '\n')
			continue
		}
		if next >= len(a) {
			return null
		}
		v := a[next]
		next++
		var ok bool
		if out, ok = formatOne(env, out, spec, c, v); !ok {
			return null
		}
	}
	env.B.Buf = append(env.B.Buf, out...)
	return env.B.Since(off)
}
