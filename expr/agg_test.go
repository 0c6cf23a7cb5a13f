package expr

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/rsetl/rsetl/record"
)

// groupOf runs an aggregate over rows of x; each row's value is an expression without fields. It cuts the rows into parts that
// are merged, and takes each part through its binary form.
func groupOf(t *testing.T, call, xType string, parts [][]string) string {
	t.Helper()
	table := record.NewTable()
	typ := Any
	if xType != "" {
		var err error
		if typ, err = ParseType(xType); err != nil {
			t.Fatal(err)
		}
	}
	c := &Compiler{Table: table, TypeOf: func(f string) Type {
		if f == "x" {
			return typ
		}
		return Any
	}}
	table.Slot("x")
	e, err := Parse(call)
	if err != nil {
		t.Fatal(err)
	}
	s := NewAggregates(c)
	over, err := s.Take(e)
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	after := &Compiler{Table: table, TypeOf: func(f string) Type { ty, _ := s.Type(f); return ty }}
	prog, err := after.Compile(over)
	if err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	var vals [][]*Program
	for _, p := range parts {
		var l []*Program
		for _, src := range p {
			x, err := Parse(src)
			if err != nil {
				t.Fatal(err)
			}
			v, err := c.Compile(x)
			if err != nil {
				t.Fatal(err)
			}
			l = append(l, v)
		}
		vals = append(vals, l)
	}
	env := &Env{B: record.NewBatch(table)}
	var total Mem
	groups := make([][]uint64, len(s.Calls()))
	for k, call := range s.Calls() {
		groups[k] = make([]uint64, call.Words())
	}
	for _, l := range vals {
		for k, call := range s.Calls() {
			var m Mem
			w := make([]uint64, call.Words())
			for n, v := range l {
				env.Arrival++
				i := env.B.Add(record.Position{}, record.Value{})
				env.B.Set(i, table.Slot("x"), v.Eval(env, i))
				call.Add(env, i, &m, w)
				_ = n
			}
			state := call.AppendState(nil, &m, w)
			var back Mem
			b := make([]uint64, call.Words())
			rest, ok := call.ReadState(&back, b, append(state, 7))
			if !ok || len(rest) != 1 {
				t.Fatalf("%s: its state % x can't be read", call.Source, state)
			}
			for cut := range state { // a damaged one is no panic
				call.ReadState(&Mem{}, make([]uint64, call.Words()), state[:cut])
			}
			call.Merge(env, &total, groups[k], &back, b)
			call.Drop(&back, b)
		}
	}
	i := env.B.Add(record.Position{}, record.Value{})
	for k, call := range s.Calls() {
		env.B.Set(i, table.Slot(call.Field), call.Result(env, &total, groups[k]))
	}
	v := prog.Eval(env, i)
	if v.IsNull() {
		return fmt.Sprintf("NULL %d", env.Overflows)
	}
	return string(AppendText(nil, env.B, v)) + " " + prog.Type().nullable().String()
}

func TestAggregates(t *testing.T) {
	ints := [][]string{{"3", "NULL", "5"}, {"-2"}, {}, {"5"}}
	texts := [][]string{{"'b'", "'a'"}, {"NULL", "'c'", "'a'"}}
	for _, c := range []struct {
		call, typ string
		rows      [][]string
		want      string
	}{
		{"COUNT(*)", "", ints, "5 BIGINT"}, {"COUNT(x)", "", ints, "4 BIGINT"}, {"COUNT(DISTINCT x)", "", ints, "3 BIGINT"}, {"APPROX_COUNT_DISTINCT(x)", "", ints, "3 BIGINT"},
		{"SUM(x)", "", ints, "11 ANY"}, {"SUM(x)", "INT", ints, "11 INT"}, {"SUM(DISTINCT x)", "INT", ints, "6 INT"}, {"AVG(x)", "INT", ints, "2 INT"}, {"AVG(CAST(x AS DOUBLE))", "INT", ints, "2.75 DOUBLE"},
		{"MIN(x)", "INT", ints, "-2 INT"}, {"MAX(x)", "INT", ints, "5 INT"}, {"FIRST_VALUE(x)", "INT", ints, "3 INT"}, {"LAST_VALUE(x)", "INT", ints, "5 INT"},
		{"SUM(x) FILTER (WHERE x > 3)", "INT", ints, "10 INT"}, {"COUNT(*) FILTER (WHERE x IS NULL)", "", ints, "1 BIGINT"},
		{"SUM(x) / COUNT(x) + COUNT(x)", "BIGINT", ints, "6 BIGINT"},
		{"VAR_POP(x)", "INT", [][]string{{"1", "2"}, {"3", "4"}}, "1.25 DOUBLE"}, {"VAR_SAMP(x)", "INT", [][]string{{"1", "2"}, {"3", "4"}}, "1.6666666666666667 DOUBLE"},
		{"STDDEV_POP(x)", "INT", [][]string{{"2", "4", "4", "4"}, {"5", "5", "7", "9"}}, "2.0 DOUBLE"}, {"STDDEV(x)", "INT", [][]string{{"2"}}, "NULL 0"}, {"VARIANCE(x)", "INT", [][]string{{"2"}, {"2"}}, "0.0 DOUBLE"},
		// decimals are exact, with all digits; an average has at least six behind the point
		{"SUM(x)", "DECIMAL(10, 2)", [][]string{{"0.10", "0.20"}, {"1234567.89"}}, "1234568.19 DECIMAL(38, 2)"}, {"SUM(x)", "", [][]string{{"0.1", "0.02"}, {"1"}}, "1.12 ANY"},
		{"AVG(x)", "DECIMAL(10, 2)", [][]string{{"1.00", "1.00"}, {"2.00"}}, "1.333333 DECIMAL(38, 6)"}, {"SUM(x)", "", [][]string{{"0.1", "1e0"}}, "1.1 ANY"},
		{"SUM(x)", "DECIMAL(38, 0)", [][]string{{"99999999999999999999999999999999999999"}, {"-99999999999999999999999999999999999998"}}, "1 DECIMAL(38, 0)"},
		// overflow is NULL and counted, whatever the order
		{"SUM(x)", "INT", [][]string{{"2147483647", "1"}}, "NULL 1"}, {"SUM(x)", "INT", [][]string{{"2147483647", "1"}, {"-1"}}, "2147483647 INT"}, {"SUM(x)", "", [][]string{{"9223372036854775807"}, {"1"}}, "NULL 1"},
		{"SUM(x)", "DECIMAL(38, 0)", [][]string{{"99999999999999999999999999999999999999", "1"}}, "NULL 1"}, {"AVG(x)", "", [][]string{{"9223372036854775807"}, {"9223372036854775805"}}, "9223372036854775806 ANY"},
		// text that is a number counts as one
		{"SUM(x)", "", [][]string{{"'12'", "'x'"}, {"' 3 '"}}, "15 ANY"},
		{"MIN(x)", "", texts, "a ANY"}, {"MAX(x)", "", texts, "c ANY"}, {"FIRST_VALUE(x)", "", texts, "b ANY"}, {"LAST_VALUE(x)", "", texts, "a ANY"},
		{"LISTAGG(x)", "", texts, "b,a,c,a STRING"}, {"LISTAGG(x, ' / ')", "", texts, "b / a / c / a STRING"}, {"LISTAGG(DISTINCT x)", "", texts, "b,a,c STRING"},
		{"ARRAY_AGG(x)", "", texts, "[b, a, NULL, c, a] ARRAY<ANY>"}, {"COLLECT(x)", "", texts, "{b=1, a=2, c=1} MAP<ANY, INT>"}, {"CARDINALITY(COLLECT(x))", "", texts, "3 INT"},
		{"JSON_ARRAYAGG(x)", "", texts, `["b","a","c","a"] STRING`}, {"JSON_ARRAYAGG(x NULL ON NULL)", "", texts, `["b","a",null,"c","a"] STRING`}, {"JSON_OBJECTAGG(KEY x VALUE 1)", "", texts, `{"b":1,"a":1,"c":1,"a":1} STRING`},
		{"MAX(x)", "", [][]string{{"TIMESTAMP '2024-01-01 10:00:00'"}, {"TIMESTAMP '2023-01-01 10:00:00'"}}, "2024-01-01 10:00:00 ANY"}, {"MIN(x)", "", [][]string{{"99999999999999999999"}, {"99999999999999999998"}}, "99999999999999999998 ANY"},
		{"MAX(x > 3)", "", ints, "TRUE BOOLEAN"}, {"LAST_VALUE(x)", "", [][]string{{"ARRAY[1, 2]"}, {"ARRAY[3, NULL]"}}, "[3, NULL] ANY"},
		{"PERCENTILE(x, 0.5)", "INT", [][]string{{"1", "2"}, {"3", "10"}}, "2.5 DOUBLE"}, {"PERCENTILE(x, ARRAY[0, 0.25, 1])", "INT", [][]string{{"1", "2"}, {"3", "10"}}, "[1.0, 1.75, 10.0] ARRAY<DOUBLE>"},
		// nothing
		{"COUNT(x)", "", [][]string{{"NULL"}}, "0 BIGINT"}, {"SUM(x)", "", [][]string{{"NULL"}}, "NULL 0"}, {"MIN(x)", "", nil, "NULL 0"}, {"LISTAGG(x)", "", nil, "NULL 0"}, {"PERCENTILE(x, 0.5)", "", nil, "NULL 0"}, {"ARRAY_AGG(x)", "", nil, "NULL 0"}, {"JSON_ARRAYAGG(x)", "", nil, "[] STRING"},
	} {
		if got := groupOf(t, c.call, c.typ, c.rows); got != c.want {
			t.Errorf("%s over %s %v: %s, want %s", c.call, c.typ, c.rows, got, c.want)
		}
	}
}

// TestSumExact compares sums in 128 bits, at many scales and in any cut, with exact ones.
func TestSumExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		a := &sumAgg{}
		env := &Env{B: record.NewBatch(record.NewTable())}
		parts := [3][]uint64{make([]uint64, 4), make([]uint64, 4), make([]uint64, 4)}
		want := new(big.Rat)
		for range r.IntN(20) {
			u := r.Int64() >> r.IntN(63)
			if r.IntN(2) == 0 {
				u = -u
			}
			scale := r.IntN(7)
			v := record.MakeDecimal(u, scale)
			if scale == 0 {
				v = record.MakeInt(u)
			}
			want.Add(want, new(big.Rat).SetFrac(big.NewInt(u), bigTen(scale)))
			a.add(env, nil, parts[r.IntN(3)], v)
		}
		a.merge(env, nil, parts[0], nil, parts[1])
		a.merge(env, nil, parts[0], nil, parts[2])
		w := parts[0]
		got := new(big.Rat).SetFrac(bigOf(w[0], w[1]), bigTen(int(w[2]&0xff)))
		if got.Cmp(want) != 0 || w[2]&sumOverflow != 0 {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// TestSketches: PERCENTILE is off by at most 1 % of the value, APPROX_COUNT_DISTINCT by a few standard errors of 1.6 %, merged or not.
func TestSketches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	env := &Env{B: record.NewBatch(record.NewTable())}
	for _, n := range []int{10, 1000, 50_000} {
		parts := []*quantiles{{shares: []float64{0, 0.01, 0.5, 0.9, 0.999, 1}, array: true}, {}, {}}
		hlls := []*distinctCount{{}, {}}
		var all []float64
		for i := range n {
			x := math.Exp(r.NormFloat64()*3) * float64(1-2*r.IntN(2))
			all = append(all, x)
			parts[r.IntN(3)].add(x, 1)
			for range 2 {
				hlls[r.IntN(2)].Add(env, []record.Value{record.MakeInt(int64(i))})
			}
		}
		parts[0].Merge(env, parts[1])
		back := &quantiles{}
		if err := back.Restore(parts[2].AppendBinary(nil)); err != nil {
			t.Fatal(err)
		}
		parts[0].Merge(env, back)
		sort.Float64s(all)
		vs := env.B.Items(parts[0].Result(env))
		for i, p := range parts[0].shares {
			want := all[int(p*float64(n-1))]
			if n == 10 {
				continue // exact, between two values
			}
			if got := vs[i].Float(); math.Abs(got-want) > 0.0101*math.Abs(want) {
				t.Errorf("%d values: %v is %v, want %v", n, p, got, want)
			}
		}
		hlls[0].Merge(env, hlls[1])
		if got := float64(hlls[0].Result(env).Int()); math.Abs(got-float64(n)) > 0.06*float64(n) || n <= exactHashes && got != float64(n) {
			t.Errorf("%v distinct, want %d", got, n)
		}
	}
}

func TestAggregateMistakes(t *testing.T) {
	for src, want := range map[string]string{
		"SUM(*)": "takes no *", "COUNT()": "takes an argument or *", "SUM(x, 1)": "takes one argument", "SUM(ARRAY[1])": "takes a number", "COUNT(DISTINCT *)": "", "SUM(SUM(x))": "is an aggregate",
		"PERCENTILE(x, 2)": "from 0 to 1", "PERCENTILE(x, x)": "from 0 to 1", "LISTAGG(x, x)": "constant text", "SUM(x) FILTER (WHERE 1)": "takes a condition",
	} {
		e, err := Parse(src)
		if err == nil {
			_, err = NewAggregates(&Compiler{}).Take(e)
		}
		if err == nil || !containsText(err.Error(), want) {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

func containsText(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}

// product is an aggregate that a program of its own could register.
type product struct{ x int64 }

func (p *product) Add(_ *Env, args []record.Value) { p.x *= args[0].Int() }
func (p *product) Merge(_ *Env, other Accumulator) { p.x *= other.(*product).x }
func (p *product) Result(*Env) record.Value        { return record.MakeInt(p.x) }
func (p *product) AppendBinary(dst []byte) []byte  { return fmt.Append(dst, p.x) }
func (p *product) Restore(data []byte) (err error) { _, err = fmt.Sscan(string(data), &p.x); return }
func (p *product) Size() int                       { return 8 }

func TestUserAggregate(t *testing.T) {
	r := NewRegistry()
	for _, f := range aggregateFuncs() {
		r.MustRegister(f)
	}
	r.MustRegister(Function{Name: "PRODUCT", Kind: Aggregate, Args: "i", Result: simple(TBigInt),
		NewAggregate: func(*Call) (func() Accumulator, error) { return func() Accumulator { return &product{1} }, nil }})
	table := record.NewTable()
	x := table.Slot("x")
	s := NewAggregates(&Compiler{Table: table, Functions: r})
	e, err := Parse("PRODUCT(x)")
	if err == nil {
		_, err = s.Take(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	call := s.Calls()[0]
	env := &Env{B: record.NewBatch(table)}
	var m, back Mem
	w, b := make([]uint64, call.Words()), make([]uint64, call.Words())
	for _, n := range []int64{2, 3, 7} {
		i := env.B.Add(record.Position{}, record.Value{})
		env.B.Set(i, x, record.MakeInt(n))
		call.Add(env, i, &m, w)
	}
	if _, ok := call.ReadState(&back, b, call.AppendState(nil, &m, w)); !ok {
		t.Fatal("its state can't be read")
	}
	call.Merge(env, &back, b, &m, w)
	if got := call.Result(env, &back, b).Int(); got != 42*42 {
		t.Errorf("got %d", got)
	}
}
