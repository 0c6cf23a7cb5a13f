package expr

import (
	"testing"

	"github.com/rsetl/rsetl/record"
)

func BenchmarkEval(b *testing.B) {
	for _, bc := range []struct{ name, src string }{
		{"filter", "status >= 500 AND url NOT LIKE '/health%' AND agent REGEXP '(?i)bot'"},
		{"filter_no_regex", "status >= 500 AND url NOT LIKE '/health%' AND agent LIKE '%Chrome%'"},
		{"compare_int", "status >= 500"},
		{"compare_text", "host = 'web1'"},
		{"in_text", "host IN ('web2', 'web3', 'web1')"},
		{"in_int", "status IN (500, 502, 503, 504)"},
		{"like_general", "url LIKE '/a_i/%/x%'"},
		{"arith", "bytes * 8 / 1000 + 1"},
		{"decimal", "bytes * 1.5"},
		{"case", "CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'odd' ELSE 'ok' END"},
		{"lower", "LOWER(host)"},
		{"concat", "host || ':' || status"},
		{"split_index", "SPLIT_INDEX(url, '/', 2)"},
		{"substring", "SUBSTRING(url, 2, 3)"},
		{"cast_int", "CAST(n AS INT)"},
		{"json_value", "JSON_VALUE(js, '$.a.b')"},
		{"date_format", "DATE_FORMAT(ts, 'yyyy-MM-dd')"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			e, err := Parse(bc.src)
			if err != nil {
				b.Fatal(err)
			}
			c := &Compiler{Table: record.NewTable()}
			p, err := c.Compile(e)
			if err != nil {
				b.Fatal(err)
			}
			env := &Env{B: record.NewBatch(c.Table)}
			i := env.B.Add(record.Position{}, record.Value{})
			for k, v := range map[string]record.Value{"status": record.MakeInt(503), "url": env.B.PutString("/api/v1/xyz"), "host": env.B.PutString("web1"), "bytes": record.MakeInt(12345), "n": env.B.PutString("4711"),
				"agent": env.B.PutString("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/121.0 Safari/537.36 bot"),
				"js":    env.B.PutString(`{"a":{"b":7},"c":"x"}`), "ts": record.MakeTime(1708816422, 0, 3)} {
				if s := c.Table.Find(k); s >= 0 {
					env.B.Set(i, s, v)
				}
			}
			n := len(env.B.Buf)
			b.ReportAllocs()
			for b.Loop() {
				p.Eval(env, i)
				env.B.Buf = env.B.Buf[:n]
			}
		})
	}
}
