package expr

import (
	"testing"

	"github.com/rsetl/rsetl/record"
)

func TestAppendEvalJSON(t *testing.T) {
	f := func(src, want, typ string) {
		t.Helper()
		e, err := Parse(src)
		if err != nil {
			t.Fatal(src, err)
		}
		c := &Compiler{Table: record.NewTable(), Now: testNow}
		p, err := c.Compile(e)
		if err != nil {
			t.Fatal(src, err)
		}
		env := &Env{B: record.NewBatch(c.Table)}
		i := env.B.Add(record.Position{}, record.Value{})
		if got := string(AppendEvalJSON(nil, env.B, p.Eval(env, i), p.Type())); got != want || p.Type().String() != typ {
			t.Errorf("%s: got %s %s, want %s %s", src, got, p.Type(), want, typ)
		}
	}
	f("NULL", "null", "NULL")
	f("nothing", "null", "ANY")
	f("TRUE", "true", "BOOLEAN NOT NULL")
	f("42", "42", "INT NOT NULL")
	f("1.50", `"1.50"`, "DECIMAL(3, 2) NOT NULL")
	f("1e10", "1.0E10", "DOUBLE NOT NULL")
	f("CAST('NaN' AS DOUBLE)", `"NaN"`, "DOUBLE NOT NULL")
	f("CAST('-Infinity' AS DOUBLE)", `"-Infinity"`, "DOUBLE NOT NULL")
	f("CAST(1.1 AS FLOAT)", "1.1", "FLOAT NOT NULL")
	f("'a\"\u00e9\n'", `"a\"é\n"`, "CHAR(4) NOT NULL")
	f("X'0aFF'", `"0x0AFF"`, "BINARY(2) NOT NULL")
	f("DATE '2024-02-29'", `"2024-02-29"`, "DATE NOT NULL")
	f("TIME '10:20:30.5'", `"10:20:30.5"`, "TIME(0) NOT NULL")
	f("TIMESTAMP '2024-02-29 10:20:30.5'", `"2024-02-29 10:20:30.500"`, "TIMESTAMP(1) NOT NULL")
	f("CAST('2024-02-29 10:20:30' AS TIMESTAMP(3))", `"2024-02-29 10:20:30"`, "TIMESTAMP(3) NOT NULL")
	f("TO_TIMESTAMP_LTZ(0, 3)", `"1970-01-01 00:00:00Z"`, "TIMESTAMP_LTZ(3)")
	f("INTERVAL '1-2' YEAR TO MONTH", `"P1Y2M"`, "INTERVAL MONTH NOT NULL")
	f("INTERVAL '1 02:03:04.5' DAY TO SECOND", `"PT26H3M4.5S"`, "INTERVAL SECOND(3) NOT NULL")
	f("ARRAY[1, NULL]", "[1,null]", "ARRAY<INT> NOT NULL")
	f("ROW(1, 'a')", `[1,"a"]`, "ROW<`EXPR$0` INT NOT NULL, `EXPR$1` CHAR(1) NOT NULL> NOT NULL")
	f("MAP[1, 'x']", `{"1":"x"}`, "MAP<INT NOT NULL, CHAR(1) NOT NULL> NOT NULL")
}

func TestJSONSkimAgrees(t *testing.T) {
	texts := []string{`{"a":{"b":[1,{"c":"x\u0041"}]},"d":null}`, `[1,2]`, `{"a":1,"a":{"b":2}}`, `{"a":{"b":2},"a":1}`, `{"a":`, `"s"`, ` 12 `, `{"a":{"b":[]}} trailing`, `{"a\"b":1}`, `null`, ``, `{"a":[1,2,]}`, `{"a":01}`}
	for _, path := range []string{"$", "$.a", "$.a.b", "$.a.b[0]", "$.a.b[1].c", "$[1]", "$['a\"b']", "$.d", "$.d.e"} {
		p, err := parseJSONPath(path)
		if err != nil || !p.quick {
			t.Fatal(path, err)
		}
		for _, s := range texts {
			want := "none"
			if r := parseJSON([]byte(s)); r == nil {
				want = "bad"
			} else if n := p.find(r); n != nil {
				want = string(n.append(nil))
			}
			got := "none"
			n, root := p.lookup(&Env{}, []byte(s))
			if root == 0 {
				got = "bad"
			} else if n != nil {
				got = string(n.append(nil))
			}
			if got != want {
				t.Errorf("%s in %s: got %s, want %s", path, s, got, want)
			}
		}
	}
}
