package expr

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// value evaluates a constant expression to its text.
func value(t *testing.T, src string) string {
	t.Helper()
	s, _, _ := evalOne(t, src, nil)
	return s
}

// TestCastAndBack: a value as a text and read again is the value.
func TestCastAndBack(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte('0' + byte(r.IntN(10)))
		}
		return b.String()
	}
	for range 2000 {
		when := time.Unix(r.Int64N(253402300799+62135596800)-62135596800, r.Int64N(1e9)).UTC()
		p := 1 + r.IntN(38)
		s := r.IntN(p + 1)
		dec := strings.TrimLeft(digits(p-s), "0")
		if dec == "" {
			dec = "0"
		}
		if s > 0 {
			dec += "." + digits(s)
		}
		for _, c := range []struct{ typ, text string }{
			{"BIGINT", fmt.Sprint(int64(r.Uint64()))},
			{"INT", fmt.Sprint(int32(r.Uint32()))},
			{fmt.Sprintf("DECIMAL(%d, %d)", p, s), dec},
			{"TIMESTAMP(9)", when.Format("2006-01-02 15:04:05.000000000")},
			{"TIMESTAMP(3)", when.Format("2006-01-02 15:04:05.000")},
			{"DATE", when.Format("2006-01-02")},
			{"TIME(0)", when.Format("15:04:05")},
			{"BOOLEAN", []string{"TRUE", "FALSE"}[r.IntN(2)]},
		} {
			if got := value(t, fmt.Sprintf("CAST(CAST('%s' AS %s) AS STRING)", c.text, c.typ)); got != c.text {
				t.Fatalf("%s as %s and back: %s", c.text, c.typ, got)
			}
		}
		f := r.NormFloat64() * float64(int64(1)<<r.IntN(60))
		text := value(t, fmt.Sprintf("CAST(CAST('%v' AS DOUBLE) AS STRING)", f))
		if again := value(t, fmt.Sprintf("CAST(CAST('%s' AS DOUBLE) AS STRING)", text)); again != text {
			t.Fatalf("%v: %s, then %s", f, text, again)
		}
		if eq := value(t, fmt.Sprintf("CAST('%s' AS DOUBLE) = CAST('%v' AS DOUBLE)", text, f)); eq != "TRUE" {
			t.Fatalf("%v as a text is %s, another number", f, text)
		}
	}
}

// TestDateFormatAndParse: a time written by a pattern and read by it is the time, cut to what the pattern has.
func TestDateFormatAndParse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		when := time.Date(1+r.IntN(9998), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000)*1e6, time.UTC)
		for _, c := range []struct{ pattern, layout string }{
			{"yyyy-MM-dd HH:mm:ss.SSS", "2006-01-02 15:04:05.000"},
			{"dd/MMM/yyyy HH:mm:ss", "02/Jan/2006 15:04:05"},
			{"yyyyMMddHHmmss", "20060102150405"},
			{"EEE, d MMM yyyy h:mm:ss a", "Mon, 2 Jan 2006 3:04:05 PM"},
		} {
			text := value(t, fmt.Sprintf("DATE_FORMAT(TIMESTAMP '%s', '%s')", when.Format("2006-01-02 15:04:05.000"), c.pattern))
			if want := when.Format(c.layout); text != want {
				t.Fatalf("%s by %s is %s, want %s", when, c.pattern, text, want)
			}
			back, err := time.Parse(c.layout, text)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := value(t, fmt.Sprintf("TO_TIMESTAMP('%s', '%s')", text, c.pattern)), back.Format("2006-01-02 15:04:05.000"); got != want {
				t.Fatalf("%s by %s is read as %s, want %s", text, c.pattern, got, want)
			}
		}
	}
}

// TestDecimalsAgainstBig: sums, differences and products of decimals are those of math/big.
func TestDecimalsAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	number := func() (string, *big.Rat) {
		whole, frac := r.Int64N(1_000_000_000_000), r.IntN(7)
		s := fmt.Sprint(whole)
		if frac > 0 {
			s += "." + fmt.Sprintf("%0*d", frac, r.Int64N(int64(pow10[frac])))
		}
		if r.IntN(2) == 0 {
			s = "-" + s
		}
		x, _ := new(big.Rat).SetString(s)
		return s, x
	}
	for range 5000 {
		a, x := number()
		b, y := number()
		for op, f := range map[string]func(z, x, y *big.Rat) *big.Rat{"+": (*big.Rat).Add, "-": (*big.Rat).Sub, "*": (*big.Rat).Mul} {
			src := fmt.Sprintf("CAST(%s AS DECIMAL(18, 6)) %s CAST(%s AS DECIMAL(18, 6))", a, op, b)
			got, ok := new(big.Rat).SetString(value(t, src))
			if want := f(new(big.Rat), x, y); !ok || got.Cmp(want) != 0 {
				t.Fatalf("%s = %v, want %s", src, got, want.FloatString(12))
			}
		}
		if got, want := value(t, fmt.Sprintf("CAST(%s AS DECIMAL(18, 6)) < CAST(%s AS DECIMAL(18, 6))", a, b)), strings.ToUpper(fmt.Sprint(x.Cmp(y) < 0)); got != want {
			t.Fatalf("%s < %s is %s", a, b, got)
		}
	}
}
