// Package flink compares rsetl with what a real Flink answers: scalar expressions here, windows in queries_test.go.
package flink

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
)

// functionsFloor is the number of cases of the repository's corpus that agree in value, type and text; it only ever rises.
const functionsFloor = 5916

var (
	corpusFlag = flag.String("corpus", "", "a file of cases, instead of shared/corpus")
	showFamily = flag.String("show", "", "print the disagreements of this family, or of all")
)

type corpusCase struct {
	Family  string          `json:"family"`
	Expr    string          `json:"expr"`
	TZ      string          `json:"tz"`
	Row     map[string]any  `json:"row"`
	Type    string          `json:"type"`
	Result  json.RawMessage `json:"result"`
	Text    *string         `json:"text"`
	Error   string          `json:"error"`
	Runtime *struct {
		Result json.RawMessage `json:"result"`
		Text   *string         `json:"text"`
		Error  string          `json:"error"`
	} `json:"runtime"`
}

// corpusFile is the file that -corpus names, or the one of that name in shared/corpus.
func corpusFile(t testing.TB, name string) string {
	if p := *corpusFlag; p != "" {
		if _, err := os.Stat(p); err != nil && !filepath.IsAbs(p) { // a test runs in its folder; the path is most likely from the root
			p = filepath.Join("../..", p)
		}
		return p
	}
	p := filepath.Join("../../../shared/corpus", name)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("%s is not there: shared/corpus is no part of the repository", p)
	}
	return p
}

var corpusColumns = map[string]string{"rn": "INT", "s": "STRING", "p": "STRING", "i": "INT", "j": "INT", "l": "BIGINT", "d": "DOUBLE", "f": "FLOAT", "dc": "DECIMAL(10,2)",
	"b": "BOOLEAN", "b2": "BOOLEAN", "ts": "TIMESTAMP(3)", "ts2": "TIMESTAMP(3)", "dt": "DATE", "tm": "TIME(0)", "arr": "ARRAY<STRING>", "m": "MAP<STRING,STRING>", "js": "STRING"}

func mustType(s string) expr.Type {
	t, err := expr.ParseType(s)
	if err != nil {
		panic(err)
	}
	return t
}

// loadValue makes a column's value of its JSON form.
func loadValue(env *expr.Env, v any, t expr.Type) record.Value {
	b := env.B
	switch x := v.(type) {
	case nil:
		return record.MakeNull()
	case bool:
		return record.MakeBool(x)
	case json.Number:
		if t.Kind == expr.TFloat || t.Kind == expr.TDouble {
			f, _ := x.Float64()
			if t.Kind == expr.TFloat {
				f = float64(float32(f))
			}
			return record.MakeFloat(f)
		}
		n, _ := x.Int64()
		return record.MakeInt(n)
	case string:
		s := b.PutString(x)
		if t.Kind == expr.TVarchar || t.Kind == expr.TChar || strings.HasPrefix(t.String(), "STRING") {
			return s
		}
		return castText(env, x, t)
	case []any:
		var vs []record.Value
		for _, e := range x {
			vs = append(vs, loadValue(env, e, *t.Elem))
		}
		return b.PutItems(record.Array, vs)
	case map[string]any:
		if f, ok := x["$float"]; ok {
			g, _ := strconv.ParseFloat(f.(string), 64)
			return record.MakeFloat(g)
		}
		var vs []record.Value
		var keys []string
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			vs = append(vs, b.PutString(k), loadValue(env, x[k], *t.Elem))
		}
		return b.PutItems(record.Map, vs)
	}
	return record.MakeNull()
}

func sameJSON(a, b any) bool {
	switch x := a.(type) {
	case json.Number:
		y, ok := b.(json.Number)
		if !ok {
			return false
		}
		if x == y {
			return true
		}
		f, _ := x.Float64()
		g, _ := y.Float64()
		return f == g || math.Abs(f-g) <= 4e-16*math.Max(math.Abs(f), math.Abs(g))
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameJSON(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			v, ok := y[k]
			if !ok || !sameJSON(x[k], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

func decodeJSON(p []byte) any {
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "undecodable " + string(p)
	}
	return v
}

// runCorpusCase evaluates one case; a parse or compile error comes back as err.
func runCorpusCase(c *corpusCase) (value any, typ, text string, isNull bool, err error) {
	e, err := expr.Parse(c.Expr)
	if err != nil {
		return nil, "", "", true, err
	}
	comp := &expr.Compiler{Table: record.NewTable(), Now: func() time.Time { return time.Date(2026, 2, 24, 23, 13, 42, 123e6, time.UTC) }}
	if c.TZ != "" {
		comp.Zone, err = time.LoadLocation(c.TZ)
		if err != nil {
			return nil, "", "", true, err
		}
	}
	if c.Row != nil {
		comp.TypeOf = func(f string) expr.Type {
			if s, ok := corpusColumns[f]; ok {
				return mustType(s)
			}
			return expr.Any
		}
	}
	p, err := comp.Compile(e)
	if err != nil {
		return nil, "", "", true, err
	}
	te, err := expr.Parse("CAST((" + c.Expr + "\n) AS STRING)")
	if err != nil {
		return nil, "", "", true, err
	}
	asText, err := comp.Compile(te)
	if err != nil {
		return nil, "", "", true, err
	}
	env := &expr.Env{B: record.NewBatch(comp.Table)}
	i := env.B.Add(record.Position{}, record.Value{})
	for k, v := range c.Row {
		if s := comp.Table.Find(k); s >= 0 {
			env.B.Set(i, s, loadValue(env, v, mustType(corpusColumns[k])))
		}
	}
	v := p.Eval(env, i)
	t := p.Type()
	out := expr.AppendEvalJSON(nil, env.B, v, t)
	if s := asText.Eval(env, i); !s.IsNull() {
		text = string(env.B.Bytes(s))
	}
	return decodeJSON(out), t.String(), text, v.IsNull(), nil
}

// castText reads a text as a value of that type.
func castText(env *expr.Env, text string, t expr.Type) record.Value {
	e, err := expr.Parse("CAST('" + strings.ReplaceAll(text, "'", "''") + "' AS " + t.String() + ")")
	if err != nil {
		panic(err)
	}
	table := record.NewTable()
	p, err := (&expr.Compiler{Table: table}).Compile(e)
	if err != nil {
		panic(err)
	}
	other := &expr.Env{B: record.NewBatch(table)}
	i := other.B.Add(record.Position{}, record.Value{})
	v := p.Eval(other, i)
	switch v.Kind() {
	case record.String, record.Bytes:
		return env.B.PutBytes(other.B.Bytes(v)).As(v.Kind())
	case record.Decimal:
		if v.IsBig() {
			panic("a decimal column of more than 18 digits")
		}
	}
	return v
}

// TestFunctions compares every case and prints how many of each family agree.
func TestFunctions(t *testing.T) {
	f, err := os.Open(corpusFile(t, "flink-functions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	good, all, values := map[string]int{}, map[string]int{}, 0
	show := *showFamily
	sum, total := 0, 0
	for sc.Scan() {
		d := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		d.UseNumber()
		var c corpusCase
		if err := d.Decode(&c); err != nil {
			t.Fatal(err)
		}
		total++
		all[c.Family]++
		result, text, failed := c.Result, c.Text, c.Error != ""
		if c.Runtime != nil {
			result, text, failed = c.Runtime.Result, c.Runtime.Text, c.Runtime.Error != ""
		}
		v, typ, txt, isNull, err := runCorpusCase(&c)
		want := decodeJSON(result)
		valueOK, textOK, typeOK := false, true, true
		if failed {
			valueOK = err != nil || isNull
		} else if err == nil {
			valueOK = sameJSON(want, v)
			if m, ok := want.(map[string]any); ok && m["$float"] != nil {
				valueOK = v == m["$float"]
			}
			textOK = text == nil || *text == txt
			typeOK = c.Type == typ
		}
		if valueOK {
			values++
		}
		if valueOK && textOK && typeOK {
			good[c.Family]++
			sum++
		} else if show == "all" || show == c.Family {
			row, _ := json.Marshal(c.Row)
			tt := ""
			if text != nil {
				tt = *text
			}
			t.Logf("%s %s %s: want %s %q %s, got %v %q %s %v", c.Family, c.Expr, row, result, tt, c.Type, v, txt, typ, err)
		}
	}
	var fams []string
	for k := range all {
		fams = append(fams, k)
	}
	sort.Strings(fams)
	for _, k := range fams {
		fmt.Printf("%-24s agreed %4d of %4d\n", k, good[k], all[k])
	}
	fmt.Printf("%-24s agreed %4d of %4d (values alone %d)\n", "total", sum, total, values)
	if *corpusFlag == "" && sum < functionsFloor {
		t.Errorf("%d cases agree, fewer than the floor of %d", sum, functionsFloor)
	}
}
