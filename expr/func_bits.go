package expr

import (
	"math"

	"github.com/rsetl/rsetl/record"
)

// maxFactorial is the largest number whose factorial is a BIGINT.
const maxFactorial = 20

func bitFuncs() []Function {
	const cat = "math"
	two := func(name, summary, example, result string, f func(a, b int64) int64, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Signature: name + "(a, b)", Summary: summary, Example: example, ExampleResult: result, Args: "ii", Result: bigintNN,
			Fn: func(_ *Env, a []record.Value) record.Value { return record.MakeInt(f(a[0].Int(), a[1].Int())) }}
	}
	fs := []Function{
		two("BITAND", "the bits that both numbers have", "BITAND(12, 10)", "8", func(a, b int64) int64 { return a & b }, "BIT_AND"),
		two("BITOR", "the bits that one of the numbers has", "BITOR(12, 10)", "14", func(a, b int64) int64 { return a | b }, "BIT_OR"),
		two("BITXOR", "the bits that just one of the numbers has", "BITXOR(12, 10)", "6", func(a, b int64) int64 { return a ^ b }, "BIT_XOR"),
		two("SHIFTLEFT", "the number's bits moved to the left by b, modulo 64", "SHIFTLEFT(1, 10)", "1024", func(a, b int64) int64 { return a << (uint64(b) & 63) }),
		two("SHIFTRIGHT", "the number's bits moved to the right by b, modulo 64; the sign stays", "SHIFTRIGHT(-16, 2)", "-4", func(a, b int64) int64 { return a >> (uint64(b) & 63) }),
		{Name: "BITNOT", Aliases: []string{"BIT_NOT"}, Signature: "BITNOT(number)", Summary: "the number's bits turned over", Example: "BITNOT(0)", ExampleResult: "-1", Args: "i", Result: bigintNN,
			Fn: func(_ *Env, a []record.Value) record.Value { return record.MakeInt(^a[0].Int()) }},
		{Name: "FACTORIAL", Signature: "FACTORIAL(number)", Summary: "the product of the numbers up to this one", Nulls: "NULL below 0 and above 20", Example: "FACTORIAL(5)", ExampleResult: "120", Args: "i", Result: simple(TBigInt),
			Fn: func(_ *Env, a []record.Value) record.Value {
				n := a[0].Int()
				if n < 0 || n > maxFactorial {
					return null
				}
				x := int64(1)
				for ; n > 1; n-- {
					x *= n
				}
				return record.MakeInt(x)
			}},
		float1("CBRT", "the cube root", "CBRT(27)", "3.0", math.Cbrt),
		{Name: "BROUND", Signature: "BROUND(number[, digits])", Summary: "the number rounded to so many digits after the point, half to even", Example: "BROUND(2.5)", ExampleResult: "2.0", Args: "f?i", Result: doubleNN,
			Fn: func(_ *Env, a []record.Value) record.Value {
				f, m := a[0].Float(), 1.0
				if len(a) > 1 {
					m = math.Pow(10, float64(min(max(a[1].Int(), -300), 300)))
				}
				if r := math.RoundToEven(f*m) / m; !math.IsNaN(r) && !math.IsInf(r, 0) {
					f = r
				}
				return record.MakeFloat(f)
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
