package expr

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

// testNow is the clock of all tests.
func testNow() time.Time { return time.Date(2026, 2, 24, 23, 13, 42, 123e6, time.UTC) }

// evalOne evaluates src over one record with the given fields (kind by Go type).
func evalOne(t testing.TB, src string, fields map[string]any) (string, *Program, *Env) {
	t.Helper()
	e, err := Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	c := &Compiler{Table: record.NewTable(), Now: testNow}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		c.Table.Slot(k)
	}
	p, err := c.Compile(e)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	env := &Env{B: record.NewBatch(c.Table)}
	i := env.B.Add(record.Position{}, record.Value{})
	for k, v := range fields {
		env.B.Set(i, c.Table.Find(k), goValue(env.B, v))
	}
	v := p.Eval(env, i)
	if v.IsNull() {
		return "NULL", p, env
	}
	t0 := p.Type()
	return string(appendText(nil, env.B, v, &t0)), p, env
}

func goValue(b *record.Batch, v any) record.Value {
	switch x := v.(type) {
	case int:
		return record.MakeInt(int64(x))
	case int64:
		return record.MakeInt(x)
	case float64:
		return record.MakeFloat(x)
	case string:
		return b.PutString(x)
	case bool:
		return record.MakeBool(x)
	case record.Value:
		return x
	}
	return record.MakeNull()
}

func TestEval(t *testing.T) {
	fields := map[string]any{"status": 503, "url": "/health/x", "agent": "Googlebot/2.1", "dur": 1.5, "n": "17", "bad": "x17", "nothing": nil,
		"http.a": 1, "http.b.c": "x", "big": int64(9223372036854775807), "flag": true, "user-agent": "curl", "neg": int64(-9223372036854775808)}
	f := func(src, want string) {
		t.Helper()
		if got, _, _ := evalOne(t, src, fields); got != want {
			t.Errorf("%s: got %s, want %s", src, got, want)
		}
	}
	// Dynamic fields
	f("status >= 500 AND url NOT LIKE '/health%'", "FALSE")
	f("status >= 500 AND agent REGEXP '(?i)BOT'", "TRUE")
	f("n = 17", "TRUE")
	f("17 = n", "TRUE")
	f("n + 1", "18")
	f("bad = 17", "NULL")
	f("bad + 1", "NULL")
	f("bad <> 17", "NULL")
	f("status IN (500, 503)", "TRUE")
	f("status IN (500, NULL)", "NULL")
	f("status NOT IN (500, NULL)", "NULL")
	f("status IN ('503')", "TRUE")
	f("n IN (1, 17)", "TRUE")
	f("missing IS NULL", "TRUE")
	f("nothing IS NULL", "TRUE")
	f("missing = 1 OR flag", "TRUE")
	f("missing = 1 AND NOT flag", "FALSE")
	f("NOT missing", "NULL")
	f("`user-agent`", "curl")
	f("http.b.c", "x")
	f("CAST(http AS STRING)", "{a=1, b={c=x}}")
	f("http IS NULL", "FALSE")
	f("http['a']", "1")
	f("status || '/' || url", "503//health/x")
	f("status / 100", "5")
	f("status % 100", "3")
	f("dur * 2", "3.0")
	f("status + dur", "504.5")
	f("status / 0", "NULL")
	f("CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'odd' ELSE 'ok' END", "bad")
	f("CASE status WHEN 200, 201 THEN 'a' WHEN 502, 503 THEN 'b' END", "b")
	f("CASE missing WHEN NULL THEN 'a' ELSE 'b' END", "b")
	f("status BETWEEN 500 AND 599", "TRUE")
	f("status NOT BETWEEN 599 AND 500", "TRUE")
	f("status BETWEEN SYMMETRIC 599 AND 500", "TRUE")
	f("status IS DISTINCT FROM missing", "TRUE")
	f("nothing IS NOT DISTINCT FROM missing", "TRUE")
	f("TYPEOF(status)", "BIGINT")
	f("url LIKE '%h/_'", "TRUE")
	f("url SIMILAR TO '/(health|ready)/%'", "TRUE")
	// Overflow is NULL, not a wrapped number
	f("big + 1", "NULL")
	f("big * 2", "NULL")
	f("neg / -1", "NULL")
	f("neg % -1", "0")
	f("-neg", "NULL")
	f("neg - 1", "NULL")
	f("2147483647 + 1", "NULL")
	f("CAST(300 AS TINYINT)", "NULL")
	// Decimals: exact
	f("0.1 + 0.2 = 0.3", "TRUE")
	f("1.005 * 1000", "1005.000")
	f("7 / 2.0", "3.500000")
	f("CAST('12345678901234567890123.45' AS DECIMAL(30, 2)) + 1", "12345678901234567890124.45")
	f("CAST(2.5 AS DECIMAL(1, 0))", "3")
	f("CAST(-2.5 AS DECIMAL(1, 0))", "-3")
	f("CAST(99.5 AS DECIMAL(2, 0))", "NULL")
	// Precedence and lexing
	f("1 + 2 * 3 - 4", "3")
	f("NOT TRUE = FALSE", "TRUE")
	f("TRUE OR TRUE AND FALSE", "TRUE")
	f("1 = 1 IS TRUE", "TRUE")
	f("- - 5", "5")
	f("-2 - -3", "1")
	f("'it''s'", "it's")
	f("1 -- comment\n + 1", "2")
	f("/* x */ 2", "2")
	f("x'4142' = X'4142'", "TRUE")
	// Times
	f("TIMESTAMP '2024-01-31 10:00:00' + INTERVAL '1' MONTH", "2024-02-29 10:00:00")
	f("DATE '1969-12-31' - INTERVAL '1' DAY", "1969-12-30")
	f("INTERVAL '1' WEEK = INTERVAL '7' DAY", "TRUE")
	f("INTERVAL '1' QUARTER = INTERVAL '3' MONTH", "TRUE")
	f("CAST('2024-01-05T10:20:30.5+08:00' AS TIMESTAMP(3))", "2024-01-05 02:20:30.500")
	f("CAST('2024-02-30' AS TIMESTAMP(3))", "NULL")
	f("EXTRACT(HOUR FROM TIMESTAMP '1969-12-31 23:59:59.5')", "23")
	f("YEAR(TIMESTAMP '1969-12-31 23:59:59.5')", "1969")
	f("NOW()", "2026-02-24 23:13:42.123")
	f("CURRENT_DATE", "2026-02-24")
	f("ts + INTERVAL '1' DAY", "NULL")
	f("EXTRACT(EPOCH FROM TIMESTAMP '2024-02-24 23:13:42')", "1708816422")
	f("(DATE '2024-03-01' - DATE '2024-01-31') DAY", "+30 00:00:00.000")
	// Collections
	f("ARRAY[1, 2, 3][2]", "2")
	f("ARRAY[1, 2, 3][9]", "NULL")
	f("MAP['a', 1, 'b', 2]['b']", "2")
	f("CAST(ROW(1, 'x') AS STRING)", "(1, x)")
	// A bare word that is a keyword elsewhere is a field where it can be
	f("date IS NULL AND timestamp IS NULL AND interval IS NULL AND row IS NULL", "TRUE")
	f("JSON_OBJECT('z' VALUE status, 'a' VALUE NULL)", `{"z":503,"a":null}`)
	f("ASCII('é') > 0", "TRUE")
}

func TestOverflowsAreCounted(t *testing.T) {
	_, _, env := evalOne(t, "a + 1", map[string]any{"a": int64(9223372036854775807)})
	if env.Overflows != 1 {
		t.Errorf("Overflows is %d", env.Overflows)
	}
}

func TestErrors(t *testing.T) {
	f := func(src string, off int, parts ...string) {
		t.Helper()
		e, err := Parse(src)
		if err == nil {
			_, err = (&Compiler{}).Compile(e)
		}
		var x *Error
		if !errors.As(err, &x) {
			t.Errorf("%s: got %v", src, err)
			return
		}
		if x.Off != off {
			t.Errorf("%s: offset %d, want %d (%v)", src, x.Off, off, err)
		}
		for _, p := range parts {
			if !strings.Contains(err.Error(), p) {
				t.Errorf("%s: %q lacks %q", src, err, p)
			}
		}
	}
	f("", 0, "nothing")
	f("status >", 8, "the end")
	f("status = = 1", 9, "'='")
	f("1 + LOWR('x')", 4, "LOWR", "LOWER")
	f("UPPER()", 0, "one argument")
	f("UPPER('a', 'b')", 0, "one argument")
	f("'abc", 0, "not closed")
	f("a & b", 2, "AND")
	f("a === 1", 4, "'='")
	f("CASE a END", 7, "WHEN")
	f("COUNT(*)", 0, "aggregate", "window")
	f("1 + SUM(DISTINCT x) FILTER (WHERE a > 1)", 4, "SUM")
	f("DATE '2024-02-30'", 0, "no date")
	f("DATE '2024-02-20' + 1 > 0", 18, "DATE")
	f("a REGEXP '('", 9, "regular expression")
	f("a LIKE 'x!' ESCAPE '!'", 7, "escape")
	f("CAST(a AS FOO)", 10, "FOO")
	f("select", 0, "backticks")
	f("1 AND TRUE", 0, "AND", "INT")
	f("TRUE = 1", 5, "compared")
	f("CASE WHEN a THEN 1 ELSE 'x' END", 24, "mixes")
	f("a.b c", 4, "unexpected")
	f("DATE_FORMAT(ts, 'bogus')", 16, "quotes")
	f(strings.Repeat("(", 1000)+"1", 500, "nested")
	f(strings.Repeat("NOT ", 1000)+"a", 2000, "nested")
}

func TestFields(t *testing.T) {
	e, err := Parse("a.b > 1 AND `x-y` = @path OR a.b < JSON_VALUE(c, '$.x' DEFAULT d ON EMPTY) AND COUNT(q) FILTER (WHERE z) > 1")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.Fields(), " "); got != "a.b x-y @path c d q z" {
		t.Error(got)
	}
}

func TestParsePath(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := ParsePath(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if err == nil {
			if again, err := ParsePath(QuotePath(got)); err != nil || again != got {
				t.Errorf("QuotePath(%q) is %q, read as %q, %v", got, QuotePath(got), again, err)
			}
		}
	}
	f("a", "a")
	f("a.b_1.c", "a.b_1.c")
	f("@timestamp", "@timestamp")
	f("`user-agent`", "user-agent")
	f("a.`b-c`.d", "a.b-c.d")
	f("`a``b`", "a`b")
	f("größe", "größe")
	f("a.0", "a.0")
	f("", "error")
	f("a-b", "error")
	f("a.", "error")
	f(".a", "error")
	f("`a", "error")
	f("a b", "error")
	f("1a", "error")
}

func TestTemplates(t *testing.T) {
	f := func(src, want string) {
		t.Helper()
		tm, err := ParseTemplate(src)
		if err != nil {
			if want != "error" {
				t.Errorf("%s: %v", src, err)
			}
			return
		}
		c := &Compiler{Table: record.NewTable(), Zone: time.FixedZone("x", 3600)}
		p, err := c.CompileTemplate(tm)
		if err != nil {
			t.Fatal(err)
		}
		b := record.NewBatch(c.Table)
		i := b.Add(record.Position{}, record.Value{})
		for k, v := range map[string]record.Value{"@timestamp": record.MakeTime(1708816422, 5e8, 3), "host": b.PutString("web1"), "n": record.MakeInt(7), "a.b-c": record.MakeBool(true)} {
			if s := c.Table.Find(k); s >= 0 {
				b.Set(i, s, v)
			}
		}
		out, ok := p.Append(nil, &Env{B: b}, i)
		got := string(out)
		if !ok {
			got = "missing"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
	f("", "")
	f("plain", "plain")
	f("error on %{host}", "error on web1")
	f("%{n}%% of %{host}", "7% of web1")
	f("100% sure %", "100% sure %")
	f("web-%{+yyyy.MM.dd}", "web-2024.02.25") // 00:13 in the zone
	f("%{+HH:mm:ss.SSS Z}", "00:13:42.500 +0100")
	f("%{a.`b-c`}", "true")
	f("%{[a][b-c]}", "true")
	f("%{nope}", "missing")
	f("%{host", "error")
	f("%{a b}", "error")
	f("%{+bogus}", "error")
	tm, _ := ParseTemplate("%{b} %{+yyyy} %{a} %{b}")
	if got := strings.Join(tm.Fields(), " "); got != "b @timestamp a" {
		t.Error(got)
	}
	if got := strings.Join(tm.FieldsFor("window_start"), " "); got != "b window_start a" {
		t.Error(got)
	}
	if tm.IsConst() {
		t.Error("IsConst")
	}
}

func TestParseNumber(t *testing.T) {
	b := record.NewBatch(record.NewTable())
	f := func(in, want string, k record.Kind) {
		t.Helper()
		v, ok := ParseNumber([]byte(in))
		got := "none"
		if ok {
			got = string(AppendText(nil, b, v))
		}
		if got != want || ok && v.Kind() != k {
			t.Errorf("%q: got %s %s, want %s %s", in, got, v.Kind(), want, k)
		}
	}
	f("0", "0", record.Int)
	f("-17", "-17", record.Int)
	f("+5", "5", record.Int)
	f("9223372036854775807", "9223372036854775807", record.Int)
	f("-9223372036854775808", "-9223372036854775808", record.Int)
	f("9223372036854775808", "9.223372036854776E18", record.Float)
	f("1.50", "1.50", record.Decimal)
	f("-0.05", "-0.05", record.Decimal)
	f("1e3", "1000.0", record.Float)
	f("1.", "1", record.Int)
	f(".5", "0.5", record.Decimal)
	for _, bad := range []string{"", "-", ".", "e3", "1e", "1e+", "0x10", " 1", "1 ", "1_000", "NaN", "inf", "1.2.3", "--1"} {
		f(bad, "none", 0)
	}
}

func TestExamples(t *testing.T) {
	for _, name := range Default().Names() {
		fn := Default().Lookup(name)
		if fn.Signature == "" || fn.Summary == "" || fn.Category == "" {
			t.Errorf("%s lacks documentation", name)
		}
		if fn.Kind != Scalar {
			continue
		}
		if fn.Example == "" {
			t.Errorf("%s lacks an example", name)
			continue
		}
		if got, _, _ := evalOne(t, fn.Example, nil); got != fn.ExampleResult {
			t.Errorf("%s: %s is %q, its documentation says %q", name, fn.Example, got, fn.ExampleResult)
		}
	}
}

func TestRegistry(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a duplicate is accepted")
		}
	}()
	r := NewRegistry()
	r.MustRegister(Function{Name: "A"})
	if r.Lookup("a") == nil || r.Lookup("b") != nil {
		t.Error("Lookup")
	}
	r.MustRegister(Function{Name: "B", Aliases: []string{"a"}})
}

// Folding must not change an answer: the same expression over constants and
// over fields that hold them.
func TestFoldingAgrees(t *testing.T) {
	vals := []string{"1", "-7", "2.50", "1e3", "'12'", "'abc'", "''", "NULL", "TRUE", "DATE '2024-02-29'", "TIMESTAMP '2024-02-29 10:20:30.5'"}
	ops := []string{"a + b", "a * b", "a / b", "a % b", "a = b", "a < b", "a || b", "COALESCE(a, b)", "a IN (b, 1)", "a BETWEEN b AND 5", "NULLIF(a, b)", "CASE WHEN a = b THEN 1 ELSE 2 END", "SUBSTRING(a, b)", "a IS DISTINCT FROM b", "a LIKE b"}
	for _, op := range ops {
		for _, x := range vals {
			for _, y := range vals {
				konst := replaceField(op, x, y)
				e, err := Parse(konst)
				if err != nil {
					t.Fatal(konst, err)
				}
				p, err := (&Compiler{Table: record.NewTable()}).Compile(e)
				if err != nil {
					continue // static types don't fit
				}
				typ := p.Type()
				got, _, _ := evalOne(t, konst, nil)
				// The same through fields of the constants' types, so that nothing folds.
				want, ok := evalFields(op, x, y)
				if ok && got != want {
					t.Errorf("%s (%s): folded %s, run %s", konst, typ, got, want)
				}
			}
		}
	}
}

func replaceField(op, x, y string) string {
	var sb strings.Builder
	toks, _ := lex(op)
	at := 0
	for _, t := range toks {
		sb.WriteString(op[at:t.off])
		switch {
		case t.kind == tName && t.text == "a":
			sb.WriteString(x)
		case t.kind == tName && t.text == "b":
			sb.WriteString(y)
		default:
			sb.WriteString(op[t.off:t.end])
		}
		at = t.end
	}
	return sb.String()
}

func evalFields(op, x, y string) (string, bool) {
	table := record.NewTable()
	types := map[string]Type{}
	var progs [2]*Program
	for k, src := range []string{x, y} {
		e, _ := Parse(src)
		p, err := (&Compiler{Table: table}).Compile(e)
		if err != nil {
			return "", false
		}
		progs[k] = p
		types[[]string{"a", "b"}[k]] = p.Type()
	}
	e, _ := Parse(op)
	p, err := (&Compiler{Table: table, TypeOf: func(f string) Type { return types[f] }}).Compile(e)
	if err != nil {
		return "", false
	}
	env := &Env{B: record.NewBatch(table)}
	i := env.B.Add(record.Position{}, record.Value{})
	for k, f := range []string{"a", "b"} {
		if s := table.Find(f); s >= 0 {
			env.B.Set(i, s, progs[k].Eval(env, i))
		}
	}
	v := p.Eval(env, i)
	if v.IsNull() {
		return "NULL", true
	}
	t := p.Type()
	return string(appendText(nil, env.B, v, &t)), true
}

func TestLiteralRegexes(t *testing.T) {
	texts := []string{"", "bot", "xBOTx", "Googlebot/2.1", "GET /a.css", "a.css", "a.cssx", "\u212A", "Kelvin", "crawler", "bo", "BO", "boat", "ſ", "s"}
	for _, src := range []string{"bot", "(?i)bot", "^GET", `\.css$`, "^bot$", "(?i)bot|crawler", "(bot|crawler)", "(?i)k", "(?i)s", "(?i)^k$", "(?i:bot)|crawl"} {
		re, err := compileRegex(src, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		g := re.(*engineRegex)
		want := regexp.MustCompile(src)
		if g.lit == nil {
			t.Errorf("%s is not taken as text", src)
		}
		for _, s := range texts {
			if got, want := g.match([]byte(s)), want.MatchString(s); got != want {
				t.Errorf("%q REGEXP %q: got %v, want %v", s, src, got, want)
			}
		}
	}
	for _, src := range []string{"a.c", "a*", "^", "", "(?i)é", "a|", "(?m)^a"} {
		if literalsOf(src) != nil {
			t.Errorf("%q is taken as text", src)
		}
	}
}

// A program runs on many workers at once, each with its own Env.
func TestConcurrentUse(t *testing.T) {
	e, err := Parse("CAST(http AS STRING) || REGEXP_EXTRACT(s, p, 1) || DATE_FORMAT(ts, f)")
	if err != nil {
		t.Fatal(err)
	}
	c := &Compiler{Table: record.NewTable()}
	p, err := c.Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	c.Table.Slot("http.a")
	batches := []*record.Batch{record.NewBatch(c.Table), record.NewBatch(c.Table)}
	done := make(chan string)
	for _, b := range batches {
		go func() {
			env := &Env{B: b}
			last := ""
			for range 200 {
				b.Reset()
				i := b.Add(record.Position{}, record.Value{})
				b.Set(i, c.Table.Find("http.a"), record.MakeInt(1))
				b.Set(i, c.Table.Find("s"), b.PutString("x=12"))
				b.Set(i, c.Table.Find("p"), b.PutString("=(.)"))
				b.Set(i, c.Table.Find("ts"), record.MakeTime(0, 0, 0))
				b.Set(i, c.Table.Find("f"), b.PutString("yyyy"))
				v := p.Eval(env, i)
				last = string(AppendText(nil, b, v))
			}
			done <- last
		}()
	}
	for range batches {
		if got := <-done; got != "{a=1}11970" {
			t.Error(got)
		}
	}
}
