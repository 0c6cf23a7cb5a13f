package expr

import (
	"bytes"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

// maxDistance bounds the texts that LEVENSHTEIN compares, in characters: its time is their product.
const maxDistance = 4096

// levenshtein is how many characters must be put in, taken out or changed to make b of a.
func levenshtein(a, b []rune) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// entropy is Shannon's, in bits a character: 0 for one repeated, about 4 for English, more for random texts.
func entropy(p []byte) float64 {
	var ascii [utf8.RuneSelf]int
	var other map[rune]int
	n := 0
	for _, r := range string(p) {
		n++
		if r < utf8.RuneSelf {
			ascii[r]++
			continue
		}
		if other == nil {
			other = map[rune]int{}
		}
		other[r]++
	}
	h := 0.0
	add := func(k int) {
		if k > 0 {
			share := float64(k) / float64(n)
			h -= share * math.Log2(share)
		}
	}
	for _, k := range ascii {
		add(k)
	}
	for _, k := range other {
		add(k)
	}
	return h
}

// soundex is the code of the US census: a letter and three digits.
func soundex(dst, p []byte) []byte {
	const codes = "01230120022455012623010202" // of A to Z; 0: not coded
	n, last := 0, byte(0)
	for _, c := range p {
		if 'a' <= c && c <= 'z' {
			c -= 32
		}
		if c < 'A' || c > 'Z' {
			last = 0
			continue
		}
		code := codes[c-'A']
		switch {
		case n == 0:
			dst, n = append(dst, c), 1
		case code != '0' && code != last:
			if dst, n = append(dst, code), n+1; n == 4 {
				return dst
			}
		}
		if c != 'H' && c != 'W' { // they don't part two letters of one code
			last = code
		}
	}
	for ; n > 0 && n < 4; n++ {
		dst = append(dst, '0')
	}
	return dst
}

// humanBytes writes 1536 as 1.5 KiB.
func humanBytes(dst []byte, n float64) []byte {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	k := 0
	for math.Abs(n) >= 1024 && k < len(units)-1 {
		n /= 1024
		k++
	}
	digits := 1
	if k == 0 || n == math.Trunc(n) {
		digits = 0
	}
	dst = strconv.AppendFloat(dst, n, 'f', digits, 64)
	return append(append(dst, ' '), units[k]...)
}

var sizeUnits = map[string]float64{"": 1, "B": 1, "K": 1024, "KB": 1000, "KIB": 1024, "M": 1 << 20, "MB": 1e6, "MIB": 1 << 20, "G": 1 << 30, "GB": 1e9, "GIB": 1 << 30,
	"T": 1 << 40, "TB": 1e12, "TIB": 1 << 40, "P": 1 << 50, "PB": 1e15, "PIB": 1 << 50}

// parseBytes reads 1.5 KiB, 20MB, 512.
func parseBytes(p []byte) (float64, bool) {
	p = bytes.TrimSpace(p)
	i := 0
	for i < len(p) && (p[i] >= '0' && p[i] <= '9' || p[i] == '.' || p[i] == '-' || p[i] == '+') {
		i++
	}
	n, err := strconv.ParseFloat(string(p[:i]), 64)
	unit, ok := sizeUnits[string(bytes.ToUpper(bytes.TrimSpace(p[i:])))]
	return n * unit, err == nil && ok
}

// humanDuration writes milliseconds as 1d 2h 3m 4s, the two largest units; below a second as they are.
func humanDuration(dst []byte, ms float64) []byte {
	if ms < 0 {
		dst, ms = append(dst, '-'), -ms
	}
	if ms < 1000 {
		dst = strconv.AppendFloat(dst, math.Round(ms*1000)/1000, 'f', -1, 64)
		return append(dst, "ms"...)
	}
	if ms < 60_000 {
		dst = strconv.AppendFloat(dst, math.Round(ms)/1000, 'f', -1, 64)
		return append(dst, 's')
	}
	s := int64(math.Min(math.Round(ms/1000), 1<<62))
	written := 0
	for _, u := range []struct {
		n    int64
		name byte
	}{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}} {
		k := s / u.n
		s %= u.n
		if k == 0 {
			if written > 0 {
				break
			}
			continue
		}
		if written > 0 {
			dst = append(dst, ' ')
		}
		dst = append(strconv.AppendInt(dst, k, 10), u.name)
		if written++; written == 2 {
			break
		}
	}
	return dst
}

// parseDuration reads Go's durations (1h2m, 350ms), d for days and w for weeks, and a plain number as seconds. In milliseconds.
func parseDuration(p []byte) (float64, bool) {
	p = bytes.ReplaceAll(bytes.TrimSpace(p), []byte(" "), nil)
	if n, err := strconv.ParseFloat(string(p), 64); err == nil {
		return n * 1000, !math.IsNaN(n) && !math.IsInf(n, 0)
	}
	total, sign := 0.0, 1.0
	if len(p) > 0 && p[0] == '-' {
		sign, p = -1, p[1:]
	}
	if len(p) == 0 || len(p) > 100 {
		return 0, false
	}
	for len(p) > 0 {
		i := 0
		for i < len(p) && (p[i] >= '0' && p[i] <= '9' || p[i] == '.') {
			i++
		}
		k := i
		for k < len(p) && (p[k] < '0' || p[k] > '9') {
			k++
		}
		n, err := strconv.ParseFloat(string(p[:i]), 64)
		if err != nil {
			return 0, false
		}
		switch unit := string(p[i:k]); unit {
		case "d":
			total += n * 24 * 3600e3
		case "w":
			total += n * 7 * 24 * 3600e3
		default:
			d, err := time.ParseDuration("1" + unit)
			if err != nil {
				return 0, false
			}
			total += n * float64(d) / 1e6
		}
		p = p[k:]
	}
	return sign * total, true
}

// mask replaces characters but for the first and last ones.
func mask(dst, p []byte, first, last int64, with []byte) []byte {
	n := charLen(p)
	first, last = min(max(first, 0), n), max(last, 0)
	last = min(last, n-first)
	i := int64(0)
	for at, r := range string(p) {
		size := utf8.RuneLen(r)
		if size < 0 || r == utf8.RuneError {
			_, size = utf8.DecodeRune(p[at:])
		}
		if i < first || i >= n-last {
			dst = append(dst, p[at:at+size]...)
		} else {
			dst = append(dst, with...)
		}
		i++
	}
	return dst
}

// putText is the text that f appends to the batch's buffer; one that grows beyond maxText is NULL.
func putText(env *Env, f func(dst []byte) []byte) record.Value {
	off := len(env.B.Buf)
	env.B.Buf = f(env.B.Buf)
	if len(env.B.Buf)-off > maxText {
		env.B.Buf = env.B.Buf[:off]
		return null
	}
	return env.B.Since(off)
}

// index is the place of separator number n (from 1; from the end where negative), -1 where there are fewer.
func index(p, sep []byte, n int64) int {
	at := -1
	if n > 0 {
		from := 0
		for ; n > 0; n-- {
			i := bytes.Index(p[from:], sep)
			if i < 0 {
				return -1
			}
			at = from + i
			from = at + len(sep)
		}
		return at
	}
	end := len(p)
	for ; n < 0; n++ {
		if at = bytes.LastIndex(p[:end], sep); at < 0 {
			return -1
		}
		end = at
	}
	return at
}

func wordFuncs() []Function {
	const cat = "text"
	text := func(name, args, signature, summary, example, result string, f func(dst []byte, env *Env, a []record.Value) []byte, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Signature: signature, Summary: summary, Example: example, ExampleResult: result, Args: args, Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				return putText(env, func(dst []byte) []byte { return f(dst, env, a) })
			}}
	}
	fs := []Function{
		{Name: "SPACE", Signature: "SPACE(count)", Summary: "so many blanks", Nulls: "NULL for more than 1048576", Example: "CONCAT('a', SPACE(3), 'b')", ExampleResult: "a   b", Args: "i", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				n := a[0].Int()
				if n > maxFill {
					return null
				}
				return putText(env, func(dst []byte) []byte { return append(dst, bytes.Repeat([]byte{' '}, int(max(n, 0)))...) })
			}},
		text("SUBSTRING_INDEX", "ssi", "SUBSTRING_INDEX(text, separator, count)", "what is before separator number count; behind it, counted from the end, where count is negative",
			"SUBSTRING_INDEX('www.example.com', '.', -2)", "example.com", func(dst []byte, env *Env, a []record.Value) []byte {
				p, sep, n := env.bytes(a[0]), env.bytes(a[1]), a[2].Int()
				if n == 0 || len(sep) == 0 {
					return dst
				}
				at := index(p, sep, n)
				switch {
				case at < 0:
					return append(dst, p...)
				case n > 0:
					return append(dst, p[:at]...)
				}
				return append(dst, p[at+len(sep):]...)
			}),
		{Name: "SPLIT_PART", Signature: "SPLIT_PART(text, separator, n)", Summary: "part number n, from 1, of the text between separators; from the end where n is negative", Nulls: "NULL where there is no such part",
			Example: "SPLIT_PART('a,b,c', ',', 2)", ExampleResult: "b", Args: "ssi", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				p, sep, n := env.bytes(a[0]), env.bytes(a[1]), a[2].Int()
				if n == 0 || len(sep) == 0 {
					return null
				}
				from, to := 0, len(p)
				if n > 1 {
					at := index(p, sep, n-1)
					if at < 0 {
						return null
					}
					from = at + len(sep)
				}
				if n < -1 {
					if to = index(p, sep, n+1); to < 0 {
						return null
					}
				}
				if n > 0 {
					if i := bytes.Index(p[from:], sep); i >= 0 {
						to = from + i
					}
				} else if i := bytes.LastIndex(p[:to], sep); i >= 0 {
					from = i + len(sep)
				}
				return a[0].Sub(a[0].Off()+from, a[0].Off()+to)
			}},
		{Name: "KEY_VALUE", Aliases: []string{"KEYVALUE"}, Signature: "KEY_VALUE(text, pair_separator, value_separator, key)", Summary: "the value of a key in a text of pairs", Nulls: "NULL where there is no such key",
			Example: "KEY_VALUE('a=1&b=2', '&', '=', 'b')", ExampleResult: "2", Args: "ssss", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				p, sep, eq, key := env.bytes(a[0]), env.bytes(a[1]), env.bytes(a[2]), env.bytes(a[3])
				if len(sep) == 0 || len(eq) == 0 {
					return null
				}
				for at := 0; at <= len(p); {
					end := len(p)
					if i := bytes.Index(p[at:], sep); i >= 0 {
						end = at + i
					}
					if i := bytes.Index(p[at:end], eq); i >= 0 && bytes.Equal(p[at:at+i], key) {
						return a[0].Sub(a[0].Off()+at+i+len(eq), a[0].Off()+end)
					}
					at = end + len(sep)
				}
				return null
			}},
		{Name: "CHAR_MATCHCOUNT", Signature: "CHAR_MATCHCOUNT(text, characters)", Summary: "how many characters of text are among these", Example: "CHAR_MATCHCOUNT('hello', 'lo')", ExampleResult: "3", Args: "ss", Result: bigintNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				n, set := 0, string(env.bytes(a[1]))
				for _, r := range string(env.bytes(a[0])) {
					for _, c := range set {
						if c == r {
							n++
							break
						}
					}
				}
				return record.MakeInt(int64(n))
			}},
		text("SOUNDEX", "s", "SOUNDEX(text)", "the code of how an English word sounds: a letter and three digits", "SOUNDEX('Robert')", "R163",
			func(dst []byte, env *Env, a []record.Value) []byte { return soundex(dst, env.bytes(a[0])) }),
		{Name: "IS_NUMBER", Aliases: []string{"IS_NUMERIC"}, Signature: "IS_NUMBER(text)", Summary: "whether the text is a number: digits, a sign, a point, an exponent", Example: "IS_NUMBER('-1.5e3')", ExampleResult: "TRUE", Args: "s", Result: booleanNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				_, ok := env.number(a[0])
				return record.MakeBool(ok)
			}},
		{Name: "LEVENSHTEIN", Aliases: []string{"EDIT_DISTANCE"}, Signature: "LEVENSHTEIN(a, b)", Summary: "how many characters must be changed, put in or taken out to make one text the other", Nulls: "NULL for more than 4096 characters",
			Example: "LEVENSHTEIN('kitten', 'sitting')", ExampleResult: "3", Args: "ss", Result: simple(TBigInt),
			Fn: func(env *Env, a []record.Value) record.Value {
				x, y := []rune(string(env.bytes(a[0]))), []rune(string(env.bytes(a[1])))
				if len(x) > maxDistance || len(y) > maxDistance {
					return null
				}
				return record.MakeInt(int64(levenshtein(x, y)))
			}},
		{Name: "ENTROPY", Signature: "ENTROPY(text)", Summary: "Shannon's entropy in bits a character: high for random names and secrets", Example: "ENTROPY('aabb')", ExampleResult: "1.0", Args: "s", Result: doubleNN,
			Fn: func(env *Env, a []record.Value) record.Value { return record.MakeFloat(entropy(env.bytes(a[0]))) }},
		text("MASK", "s?iis", "MASK(text[, first[, last[, with]]])", "the text with * for its characters, but for so many at its beginning and end", "MASK('4111111111111111', 4, 4)", "4111********1111",
			func(dst []byte, env *Env, a []record.Value) []byte {
				first, last, with := int64(0), int64(0), []byte{'*'}
				if len(a) > 1 {
					first = a[1].Int()
				}
				if len(a) > 2 {
					last = a[2].Int()
				}
				if len(a) > 3 {
					with = env.bytes(a[3])
				}
				return mask(dst, env.bytes(a[0]), first, last, with)
			}),
		{Name: "MASK_EMAIL", Signature: "MASK_EMAIL(text)", Summary: "an e-mail address with * for its name but the first letter", Nulls: "NULL for what is no address", Example: "MASK_EMAIL('jane.doe@example.com')", ExampleResult: "j*******@example.com", Args: "s", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				p := env.bytes(a[0])
				at := bytes.LastIndexByte(p, '@')
				if at <= 0 || at == len(p)-1 {
					return null
				}
				return putText(env, func(dst []byte) []byte { return append(mask(dst, p[:at], 1, 0, []byte{'*'}), p[at:]...) })
			}},
		text("FORMAT_BYTES", "f", "FORMAT_BYTES(number)", "a number of bytes as people read it", "FORMAT_BYTES(1572864)", "1.5 MiB",
			func(dst []byte, _ *Env, a []record.Value) []byte { return humanBytes(dst, a[0].Float()) }, "HUMAN_BYTES"),
		{Name: "PARSE_BYTES", Signature: "PARSE_BYTES(text)", Summary: "the bytes of a size: 1.5 KiB, 20MB, 512", Nulls: "NULL for what is no size", Example: "PARSE_BYTES('1.5 KiB')", ExampleResult: "1536", Args: "s", Result: simple(TBigInt),
			Fn: func(env *Env, a []record.Value) record.Value {
				n, ok := parseBytes(env.bytes(a[0]))
				if !ok || math.Abs(n) > 1<<62 {
					return null
				}
				return record.MakeInt(int64(math.Round(n)))
			}},
		text("FORMAT_DURATION", "f", "FORMAT_DURATION(milliseconds)", "a time span as people read it, its two largest units", "FORMAT_DURATION(93784000)", "1d 2h",
			func(dst []byte, _ *Env, a []record.Value) []byte { return humanDuration(dst, a[0].Float()) }, "HUMAN_DURATION"),
		{Name: "PARSE_DURATION", Signature: "PARSE_DURATION(text)", Summary: "the milliseconds of a time span: 1h30m, 350ms, 2d; a plain number is seconds", Nulls: "NULL for what is no time span",
			Example: "PARSE_DURATION('1h30m')", ExampleResult: "5400000.0", Args: "s", Result: simple(TDouble),
			Fn: func(env *Env, a []record.Value) record.Value {
				ms, ok := parseDuration(env.bytes(a[0]))
				if !ok {
					return null
				}
				return record.MakeFloat(ms)
			}},
		{Name: "IS_NULL", Signature: "IS_NULL(value)", Summary: "whether the value is NULL; the same as value IS NULL", Nulls: "TRUE", Example: "IS_NULL(NULL)", ExampleResult: "TRUE", Args: "x", Result: booleanNN, TakesNull: true,
			Fn: func(_ *Env, a []record.Value) record.Value { return record.MakeBool(a[0].IsNull()) }},
		{Name: "IN_BY_REGEX", Signature: "IN_BY_REGEX(text, regex, ...)", Summary: "whether one of the regular expressions matches somewhere in text", Example: "IN_BY_REGEX('curl/8', '^wget', '^curl')", ExampleResult: "TRUE", Args: "ss*", Result: simple(TBoolean),
			Build: func(c *Call) (EvalFunc, error) {
				var res []func(env *Env, rec int) regex
				for i := 1; i < c.Len(); i++ {
					re, err := regexArg(c, i)
					if err != nil {
						return nil, err
					}
					res = append(res, re)
				}
				f := c.Arg(0)
				return func(env *Env, i int) record.Value {
					v := f(env, i)
					if v.IsNull() {
						return null
					}
					for _, get := range res {
						if re := get(env, i); re != nil && re.match(env.bytes(v)) {
							return record.MakeBool(true)
						}
					}
					return record.MakeBool(false)
				}, nil
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
