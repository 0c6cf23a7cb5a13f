package expr

import (
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

var fuzzSeeds = []string{
	"status >= 500 AND url NOT LIKE '/health%' AND agent REGEXP '(?i)bot'", "CASE a WHEN 1, 2 THEN 'x' ELSE b END", "CAST(a AS DECIMAL(38, 10)) * 1.5e3 / b",
	"a[1] || m['k']", "ARRAY[a, NULL, b]", "MAP['a', a, a, b]", "ROW(a, b)", "EXTRACT(YEAR FROM a)", "FLOOR(TIMESTAMP '2024-01-01 00:00:00' TO WEEK)", "TIMESTAMPADD(MONTH, a, b)",
	"INTERVAL '1 02:03:04.5' DAY TO SECOND * a", "JSON_VALUE(a, 'lax $.a[0]' DEFAULT 'x' ON EMPTY NULL ON ERROR)", "JSON_QUERY(a, '$..b' WITH WRAPPER)", "JSON_OBJECT('a' VALUE a ABSENT ON NULL)",
	"REPEAT(a, 1000000000)", "LPAD(a, b, 'xy')", "REGEXP_REPLACE(a, b, a)", "SIMILAR_ SIMILAR TO '[[:alpha:]]+|%x{2,3}'", "COUNT(DISTINCT a) FILTER (WHERE b)", "x'41' = a IS NOT TRUE", "`a``b`.c",
	"DATE_FORMAT(a, 'yyyy-MM-dd''T''HH:mm:ss.SSSXXX')", "TO_TIMESTAMP(a, b)", "PRINTF('%5.2f|%-5s|%05d', a, b, 1)", "a BETWEEN SYMMETRIC b AND 5", "STR_TO_MAP(a, b, '=')", "ROUND(a, b)", "SPLIT(a, '')[2]",
	"ARRAY_SORT(ARRAY[a, b, 'x'])", "((((((((1))))))))", "- - - a", "CONVERT_TZ(a, b, 'UTC')", "CAST(a AS ROW<x INT, y ARRAY<STRING>>)", "OVERLAY(a PLACING b FROM 2 FOR 3)",
}

func FuzzParse(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if e, err := Parse(src); err == nil {
			e.Fields()
		} else if off := err.(*Error).Off; off < 0 || off > len(src) {
			t.Fatalf("offset %d in %d bytes", off, len(src))
		}
		if tm, err := ParseTemplate(src); err == nil {
			tm.Fields()
		} else if off := err.(*Error).Off; off < 0 || off > len(src) {
			t.Fatalf("offset %d in %d bytes of a template", off, len(src))
		}
		ParsePath(src)
	})
}

func FuzzEval(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s, "2024-02-29 10:20:30.5", int64(i), float64(i)/3)
	}
	f.Fuzz(func(t *testing.T, src, text string, n int64, x float64) {
		if len(src) > 2000 || len(text) > 2000 {
			return
		}
		watchdog := time.AfterFunc(5*time.Second, func() { panic("still not done: " + src) })
		defer watchdog.Stop()
		e, err := Parse(src)
		if err != nil {
			return
		}
		c := &Compiler{Table: record.NewTable(), Now: testNow, Zone: time.FixedZone("x", -3600)}
		p, err := c.Compile(e)
		if err != nil {
			if off := err.(*Error).Off; off < 0 || off > len(src) {
				t.Fatalf("offset %d in %d bytes", off, len(src))
			}
			return
		}
		env := &Env{B: record.NewBatch(c.Table)}
		vals := []record.Value{env.B.PutString(text), record.MakeInt(n), record.MakeFloat(x), record.MakeDecimal(n, 2), record.MakeTime(n%1e11, 5e8, 3),
			record.MakeDate(n % 1e6), {}, record.MakeBool(n%2 == 0), env.B.PutString(text).As(record.Bytes), record.MakeDuration(n)}
		vals = append(vals, env.B.PutItems(record.Array, []record.Value{vals[0], vals[1], record.MakeNull()}), env.B.PutItems(record.Map, []record.Value{vals[0], vals[1], vals[1], vals[2]}))
		for round := range 4 {
			i := env.B.Add(record.Position{}, record.Value{})
			for s := range c.Table.Len() {
				env.B.Set(i, s, vals[(round*3+s)%len(vals)])
			}
			v := p.Eval(env, i)
			AppendEvalJSON(nil, env.B, v, p.Type())
			AppendText(nil, env.B, v)
			p.True(env, i)
		}
		if len(env.stack) != 0 || len(env.items) != 0 {
			t.Fatalf("%d values left on the stack, %d items", len(env.stack), len(env.items))
		}
	})
}
