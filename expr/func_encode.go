package expr

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

func digest(name, summary, example, result string, size int, sum func(dst, p []byte) []byte) Function {
	return Function{Name: name, Signature: name + "(text)", Summary: summary, Example: example, ExampleResult: result, Args: "y", Result: Type{Kind: TChar, Prec: 2 * size, NotNull: true},
		Fn: func(env *Env, a []record.Value) record.Value { return putDigest(env, env.bytes(a[0]), sum) }}
}

func putDigest(env *Env, p []byte, sum func(dst, p []byte) []byte) record.Value {
	env.tmp = sum(env.tmp[:0], p)
	off := len(env.B.Buf)
	env.B.Buf = hex.AppendEncode(env.B.Buf, env.tmp)
	return env.B.Since(off)
}

func sumMD5(dst, p []byte) []byte    { s := md5.Sum(p); return append(dst, s[:]...) }
func sumSHA1(dst, p []byte) []byte   { s := sha1.Sum(p); return append(dst, s[:]...) }
func sumSHA224(dst, p []byte) []byte { s := sha256.Sum224(p); return append(dst, s[:]...) }
func sumSHA256(dst, p []byte) []byte { s := sha256.Sum256(p); return append(dst, s[:]...) }
func sumSHA384(dst, p []byte) []byte { s := sha512.Sum384(p); return append(dst, s[:]...) }
func sumSHA512(dst, p []byte) []byte { s := sha512.Sum512(p); return append(dst, s[:]...) }

// charset gives the canonical name of a character set that ENCODE and DECODE know.
func charset(p []byte) string {
	switch strings.ToUpper(string(p)) {
	case "UTF-8", "UTF8":
		return "UTF-8"
	case "US-ASCII", "ASCII":
		return "US-ASCII"
	case "ISO-8859-1", "LATIN1", "ISO8859_1":
		return "ISO-8859-1"
	case "UTF-16", "UTF-16BE", "UTF-16LE":
		return strings.ToUpper(string(p))
	}
	return ""
}

func encodeText(dst, p []byte, cs string) []byte {
	switch cs {
	case "UTF-8":
		return append(dst, p...)
	case "US-ASCII", "ISO-8859-1":
		limit := rune(0x80)
		if cs == "ISO-8859-1" {
			limit = 0x100
		}
		for _, r := range string(p) {
			if r >= limit {
				r = '?'
			}
			dst = append(dst, byte(r))
		}
		return dst
	}
	if cs == "UTF-16" {
		dst = append(dst, 0xfe, 0xff)
	}
	for _, u := range utf16.Encode([]rune(string(p))) {
		if cs == "UTF-16LE" {
			dst = append(dst, byte(u), byte(u>>8))
		} else {
			dst = append(dst, byte(u>>8), byte(u))
		}
	}
	return dst
}

func decodeText(dst, p []byte, cs string) []byte {
	switch cs {
	case "UTF-8":
		return appendValid(dst, p)
	case "US-ASCII", "ISO-8859-1":
		for _, c := range p {
			r := rune(c)
			if cs == "US-ASCII" && c >= 0x80 {
				r = utf8.RuneError
			}
			dst = utf8.AppendRune(dst, r)
		}
		return dst
	}
	little := cs == "UTF-16LE"
	if cs == "UTF-16" && len(p) >= 2 {
		if p[0] == 0xff && p[1] == 0xfe {
			little = true
			p = p[2:]
		} else if p[0] == 0xfe && p[1] == 0xff {
			p = p[2:]
		}
	}
	var us []uint16
	for i := 0; i+1 < len(p); i += 2 {
		u := uint16(p[i])<<8 | uint16(p[i+1])
		if little {
			u = uint16(p[i+1])<<8 | uint16(p[i])
		}
		us = append(us, u)
	}
	return append(dst, string(utf16.Decode(us))...)
}

func encodeFuncs() []Function {
	const cat = "encoding"
	put := func(env *Env, f func(dst []byte) []byte) record.Value {
		off := len(env.B.Buf)
		env.B.Buf = f(env.B.Buf)
		return env.B.Since(off)
	}
	fs := []Function{
		digest("MD5", "the MD5 digest in hexadecimal", "MD5('')", "d41d8cd98f00b204e9800998ecf8427e", 16, sumMD5),
		digest("SHA1", "the SHA-1 digest in hexadecimal", "SHA1('')", "da39a3ee5e6b4b0d3255bfef95601890afd80709", 20, sumSHA1),
		digest("SHA224", "the SHA-224 digest in hexadecimal", "SHA224('hello')", "ea09ae9cc6768c50fcee903ed054556e5bfc8347907f12598aa24193", 28, sumSHA224),
		digest("SHA256", "the SHA-256 digest in hexadecimal", "SHA256('hello')", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 32, sumSHA256),
		digest("SHA384", "the SHA-384 digest in hexadecimal", "LEFT(SHA384('hello'), 8)", "59e17487", 48, sumSHA384),
		digest("SHA512", "the SHA-512 digest in hexadecimal", "LEFT(SHA512('hello'), 8)", "9b71d224", 64, sumSHA512),
		{Name: "SHA2", Signature: "SHA2(text, bits)", Summary: "the SHA-2 digest of 224, 256, 384 or 512 bits in hexadecimal", Nulls: "NULL where an argument is, or bits is another number", Example: "LEFT(SHA2('hello', 256), 8)", ExampleResult: "2cf24dba", Args: "yi", Result: Type{Kind: TVarchar, Prec: 128, NotNull: true},
			Fn: func(env *Env, a []record.Value) record.Value {
				sums := map[int64]func(dst, p []byte) []byte{224: sumSHA224, 256: sumSHA256, 384: sumSHA384, 512: sumSHA512}
				f := sums[a[1].Int()]
				if f == nil {
					return null
				}
				return putDigest(env, env.bytes(a[0]), f)
			}},
		{Name: "TO_BASE64", Aliases: []string{"BASE64_ENCODE"}, Signature: "TO_BASE64(text)", Summary: "text or bytes in Base64", Example: "TO_BASE64('hello')", ExampleResult: "aGVsbG8=", Args: "y", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				return put(env, func(dst []byte) []byte { return base64.StdEncoding.AppendEncode(dst, env.bytes(a[0])) })
			}},
		{Name: "FROM_BASE64", Signature: "FROM_BASE64(text)", Summary: "the text that Base64 holds", Nulls: "NULL where the argument is, or is no Base64", Example: "FROM_BASE64('aGVsbG8=')", ExampleResult: "hello", Args: "s", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				p := env.bytes(a[0])
				for len(p) > 0 && p[len(p)-1] == '=' {
					p = p[:len(p)-1]
				}
				for _, c := range p {
					if c == '\n' || c == '\r' {
						return null
					}
				}
				out, err := base64.RawStdEncoding.AppendDecode(env.tmp[:0], p)
				if err != nil {
					return null
				}
				env.tmp = out
				return put(env, func(dst []byte) []byte { return appendValid(dst, out) })
			}},
		{Name: "HEX", Signature: "HEX(value)", Summary: "a whole number, or the bytes of a text, in hexadecimal", Example: "HEX(255)", ExampleResult: "FF", Args: "x",
			Type: func(c *Call) (Type, error) {
				if t := c.ArgType(0); !t.isInt() && !t.isText() && !t.isDynamic() {
					return Any, c.Errorf(0, "HEX takes a whole number or text, not %s", t.nullable())
				}
				return stringType().null(c.NotNull()), nil
			},
			Fn: func(env *Env, a []record.Value) record.Value {
				return put(env, func(dst []byte) []byte {
					n := len(dst)
					if a[0].Kind() == record.Int {
						dst = strconv.AppendUint(dst, uint64(a[0].Int()), 16)
					} else {
						dst = hex.AppendEncode(dst, AppendText(nil, env.B, a[0]))
					}
					upperASCII(dst[n:])
					return dst
				})
			}},
		{Name: "UNHEX", Signature: "UNHEX(text)", Summary: "the bytes that hexadecimal digits stand for", Nulls: "NULL where the argument is, or holds another character", Example: "CAST(UNHEX('466C696E6B') AS STRING)", ExampleResult: "Flink", Args: "s", Result: bytesType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				p := env.bytes(a[0])
				off := len(env.B.Buf)
				buf := env.B.Buf
				// As Hive's, which Flink follows: with an odd number the first digit stands alone, and counts as none.
				if len(p)%2 != 0 {
					if hexVal(p[0]) < 0 {
						return null
					}
					buf = append(buf, 0)
					p = p[1:]
				}
				for i := 0; i < len(p); i += 2 {
					h, l := hexVal(p[i]), hexVal(p[i+1])
					if h < 0 || l < 0 {
						return null
					}
					buf = append(buf, byte(h<<4|l))
				}
				env.B.Buf = buf
				return env.B.Since(off).As(record.Bytes)
			}},
		{Name: "ENCODE", Signature: "ENCODE(text, charset)", Summary: "text as bytes in UTF-8, US-ASCII, ISO-8859-1, UTF-16, UTF-16BE or UTF-16LE", Example: "ENCODE('é', 'ISO-8859-1') = X'E9'", ExampleResult: "TRUE", Args: "ss", Result: bytesType().notNull(),
			Fn: func(env *Env, a []record.Value) record.Value {
				cs := charset(env.bytes(a[1]))
				if cs == "" {
					return null
				}
				return put(env, func(dst []byte) []byte { return encodeText(dst, env.bytes(a[0]), cs) }).As(record.Bytes)
			}},
		{Name: "DECODE", Signature: "DECODE(bytes, charset)", Summary: "the text that bytes are in a character set", Example: "DECODE(X'C3A9', 'UTF-8')", ExampleResult: "é", Args: "ys", Result: stringNN,
			Fn: func(env *Env, a []record.Value) record.Value {
				cs := charset(env.bytes(a[1]))
				if cs == "" {
					return null
				}
				return put(env, func(dst []byte) []byte { return decodeText(dst, env.bytes(a[0]), cs) })
			}},
		{Name: "URL_ENCODE", Signature: "URL_ENCODE(text)", Summary: "text for a form or query, blanks as +", Example: "URL_ENCODE('a b&c')", ExampleResult: "a+b%26c", Args: "s", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				return put(env, func(dst []byte) []byte {
					const hexDigits = "0123456789ABCDEF"
					for _, c := range env.bytes(a[0]) {
						switch {
						case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' || c == '*':
							dst = append(dst, c)
						case c == ' ':
							dst = append(dst, '+')
						default:
							dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
						}
					}
					return dst
				})
			}},
		{Name: "URL_DECODE", Signature: "URL_DECODE(text)", Summary: "the text of a form or query value", Nulls: "NULL where the argument is, or has a wrong %", Example: "URL_DECODE('a+b%26c')", ExampleResult: "a b&c", Args: "s", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				s, err := url.QueryUnescape(string(env.bytes(a[0])))
				if err != nil {
					return null
				}
				return put(env, func(dst []byte) []byte { return appendValid(dst, []byte(s)) })
			}},
		{Name: "PARSE_URL", Signature: "PARSE_URL(url, part[, key])", Summary: "a part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE, USERINFO; with a key the value of it in the QUERY", Nulls: "NULL where an argument is, or there is no such part", Example: "PARSE_URL('http://h/p?a=1&b=2', 'QUERY', 'b')", ExampleResult: "2", Args: "ss?s", Result: stringType(), Fn: parseURL},
		{Name: "UUID", Signature: "UUID()", Summary: "a random UUID, version 4", Example: "CHAR_LENGTH(UUID())", ExampleResult: "36", Result: Type{Kind: TChar, Prec: 36, NotNull: true}, Volatile: true,
			Fn: func(env *Env, _ []record.Value) record.Value {
				var u [16]byte
				rand.Read(u[:])
				u[6] = u[6]&0x0f | 0x40
				u[8] = u[8]&0x3f | 0x80
				return put(env, func(dst []byte) []byte {
					for i, b := range u {
						if i == 4 || i == 6 || i == 8 || i == 10 {
							dst = append(dst, '-')
						}
						dst = hex.AppendEncode(dst, []byte{b})
					}
					return dst
				})
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

// parseURL takes a URL apart as java.net.URL does, without checking what its parts hold.
func parseURL(env *Env, a []record.Value) record.Value {
	v, p := a[0], string(env.bytes(a[0]))
	part := string(env.bytes(a[1]))
	colon := strings.IndexByte(p, ':')
	if colon <= 0 {
		return null
	}
	switch strings.ToLower(p[:colon]) {
	case "http", "https", "ftp", "file", "jar":
	default:
		return null // a protocol that Java has no handler for
	}
	sub := func(from, to int) record.Value { return v.Sub(from, to) }
	end := len(p)
	ref := -1
	if k := strings.IndexByte(p, '#'); k >= 0 {
		ref, end = k+1, k
	}
	query := -1
	pathEnd := end
	if k := strings.IndexByte(p[:end], '?'); k >= 0 {
		query, pathEnd = k+1, k
	}
	auth, authEnd := colon+1, colon+1
	if strings.HasPrefix(p[auth:pathEnd], "//") {
		auth += 2
		if k := strings.IndexByte(p[auth:pathEnd], '/'); k >= 0 {
			authEnd = auth + k
		} else {
			authEnd = pathEnd
		}
	}
	if len(a) > 2 && part != "QUERY" {
		return null
	}
	switch part {
	case "PROTOCOL":
		return sub(0, colon)
	case "HOST":
		h, e := auth, authEnd
		if k := strings.LastIndexByte(p[h:e], '@'); k >= 0 {
			h += k + 1
		}
		if strings.HasPrefix(p[h:e], "[") {
			if k := strings.IndexByte(p[h:e], ']'); k >= 0 {
				e = h + k + 1
			}
		} else if k := strings.IndexByte(p[h:e], ':'); k >= 0 {
			e = h + k
		}
		return sub(h, e)
	case "PATH":
		return sub(authEnd, pathEnd)
	case "FILE":
		return sub(authEnd, end)
	case "AUTHORITY":
		if auth == authEnd {
			return null
		}
		return sub(auth, authEnd)
	case "USERINFO":
		if k := strings.LastIndexByte(p[auth:authEnd], '@'); k >= 0 {
			return sub(auth, auth+k)
		}
		return null
	case "REF":
		if ref < 0 {
			return null
		}
		return sub(ref, len(p))
	case "QUERY":
		if query < 0 {
			return null
		}
		if len(a) < 3 {
			return sub(query, end)
		}
		key := string(env.bytes(a[2]))
		for at := query; at <= end; {
			e := end
			if k := strings.IndexByte(p[at:end], '&'); k >= 0 {
				e = at + k
			}
			if strings.HasPrefix(p[at:e], key+"=") {
				return sub(at+len(key)+1, e)
			}
			at = e + 1
		}
	}
	return null
}
