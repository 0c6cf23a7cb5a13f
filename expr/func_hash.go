package expr

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"hash/crc32"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/twmb/murmur3"

	"github.com/rsetl/rsetl/record"
)

var hmacs = map[string]func() hash.Hash{"MD5": md5.New, "SHA1": sha1.New, "SHA224": sha256.New224, "SHA256": sha256.New, "SHA384": sha512.New384, "SHA512": sha512.New}

func hashFuncs() []Function {
	const cat = "encoding"
	hash64 := func(name, summary, example, result string, f func(p []byte) uint64, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Signature: name + "(text)", Summary: summary, Example: example, ExampleResult: result, Args: "y", Result: bigintNN,
			Fn: func(env *Env, a []record.Value) record.Value { return record.MakeInt(int64(f(env.bytes(a[0])))) }}
	}
	fs := []Function{
		hash64("XXHASH64", "the 64-bit hash xxHash (seed 0), as a signed number", "XXHASH64('hello')", "2794345569481354659", xxhash.Sum64, "XXHASH"),
		hash64("MURMUR3", "the 32-bit hash MurmurHash3 (x86, seed 0), as a number that isn't negative", "MURMUR3('hello')", "613153351", func(p []byte) uint64 { return uint64(murmur3.Sum32(p)) }, "MURMUR3_32"),
		hash64("MURMUR3_64", "the first half of the 128-bit hash MurmurHash3 (x64, seed 0), as a signed number", "MURMUR3_64('hello')", "-3758069500696749310", func(p []byte) uint64 { h, _ := murmur3.Sum128(p); return h }),
		hash64("CRC32", "the checksum CRC-32 (IEEE), as a number", "CRC32('hello')", "907060870", func(p []byte) uint64 { return uint64(crc32.ChecksumIEEE(p)) }),
		hash64("HASH_CODE", "the hash of Java's String.hashCode, as a number of 32 bits", "HASH_CODE('hello')", "99162322", func(p []byte) uint64 {
			h := int32(0)
			for _, r := range string(p) {
				if r >= 0x10000 { // Java hashes the two halves of a surrogate pair
					r -= 0x10000
					h = 31*h + (0xd800 + r>>10)
					r = 0xdc00 + r&0x3ff
				}
				h = 31*h + r
			}
			return uint64(int64(h))
		}),
		{Name: "HMAC", Signature: "HMAC(algorithm, key, text)", Summary: "the keyed hash of text in hex; the algorithm is MD5, SHA1, SHA224, SHA256, SHA384 or SHA512, and a constant",
			Example: "HMAC('SHA256', 'key', 'text')", ExampleResult: "6afa9046a9579cad143a384c1b564b9a250d27d6f6a63f9f20bf3a7594c9e2c6", Args: "syy", Result: stringNN,
			Build: func(c *Call) (EvalFunc, error) {
				name, ok := c.ConstText(0)
				algorithm := hmacs[strings.ToUpper(strings.ReplaceAll(name, "-", ""))]
				if !ok || algorithm == nil {
					return nil, c.Errorf(0, "want MD5, SHA1, SHA224, SHA256, SHA384 or SHA512 as a constant text")
				}
				key, text := c.Arg(1), c.Arg(2)
				return func(env *Env, i int) record.Value {
					k, v := key(env, i), text(env, i)
					if k.IsNull() || v.IsNull() {
						return null
					}
					h := hmac.New(algorithm, env.bytes(k))
					h.Write(env.bytes(v))
					return putDigest(env, nil, func(dst, _ []byte) []byte { return h.Sum(dst) })
				}, nil
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
