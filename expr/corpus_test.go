package expr

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

// corpusFloor is the number of cases that agree with Flink in value, type and
// text; it only ever rises.
const corpusFloor = 5920

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

func corpusFile(t testing.TB, name string) string {
	for _, dir := range []string{"../../shared/corpus", "../../../shared/corpus"} {
		p := filepath.Join(dir, name)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skipf("%s is not there: shared/corpus is no part of the repository", name)
	return ""
}

var corpusColumns = map[string]string{"rn": "INT", "s": "STRING", "p": "STRING", "i": "INT", "j": "INT", "l": "BIGINT", "d": "DOUBLE", "f": "FLOAT", "dc": "DECIMAL(10,2)",
	"b": "BOOLEAN", "b2": "BOOLEAN", "ts": "TIMESTAMP(3)", "ts2": "TIMESTAMP(3)", "dt": "DATE", "tm": "TIME(0)", "arr": "ARRAY<STRING>", "m": "MAP<STRING,STRING>", "js": "STRING"}

func mustType(s string) Type {
	t, err := ParseType(s)
	if err != nil {
		panic(err)
	}
	return t
}

func loadValue(env *Env, v any, t Type) record.Value {
	b := env.B
	switch x := v.(type) {
	case nil:
		return record.MakeNull()
	case bool:
		return record.MakeBool(x)
	case json.Number:
		if t.isFloat() {
			f, _ := x.Float64()
			if t.Kind == TFloat {
				f = float64(float32(f))
			}
			return record.MakeFloat(f)
		}
		n, _ := x.Int64()
		return record.MakeInt(n)
	case string:
		s := b.PutString(x)
		if t.isText() {
			return s
		}
		str := stringType()
		return castValue(env, s, &str, &t, nil)
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
	e, err := Parse(c.Expr)
	if err != nil {
		return nil, "", "", true, err
	}
	comp := &Compiler{Table: record.NewTable(), Now: func() time.Time { return time.Date(2026, 2, 24, 23, 13, 42, 123e6, time.UTC) }}
	if c.TZ != "" {
		comp.Zone, err = time.LoadLocation(c.TZ)
		if err != nil {
			return nil, "", "", true, err
		}
	}
	if c.Row != nil {
		comp.TypeOf = func(f string) Type {
			if s, ok := corpusColumns[f]; ok {
				return mustType(s)
			}
			return Any
		}
	}
	p, err := comp.Compile(e)
	if err != nil {
		return nil, "", "", true, err
	}
	env := &Env{B: record.NewBatch(comp.Table)}
	i := env.B.Add(record.Position{}, record.Value{})
	for k, v := range c.Row {
		if s := comp.Table.Find(k); s >= 0 {
			env.B.Set(i, s, loadValue(env, v, mustType(corpusColumns[k])))
		}
	}
	v := p.Eval(env, i)
	t := p.Type()
	out := AppendEvalJSON(nil, env.B, v, t)
	str := stringType()
	s := castValue(env, v, &t, &str, comp.Zone)
	if !s.IsNull() {
		text = string(env.B.Bytes(s))
	}
	return decodeJSON(out), t.String(), text, v.IsNull(), nil
}

func TestCorpus(t *testing.T) {
	f, err := os.Open(corpusFile(t, "flink-functions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<22)
	good, all, values := map[string]int{}, map[string]int{}, 0
	show := os.Getenv("EXPR_CORPUS") // a family, or "all": its disagreements are printed
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
	var sb strings.Builder
	for _, k := range fams {
		sb.WriteString(" " + k + " " + strconv.Itoa(good[k]) + "/" + strconv.Itoa(all[k]))
	}
	t.Logf("agreed %d/%d (values alone %d):%s", sum, total, values, sb.String())
	if sum < corpusFloor {
		t.Errorf("%d cases agree, fewer than the floor of %d", sum, corpusFloor)
	}
}
