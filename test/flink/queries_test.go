package flink

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
)

// queriesFloor is the number of cases of the repository's corpus whose rows agree; it only ever rises.
const queriesFloor = 58

type queryCase struct {
	Name   string            `json:"name"`
	Family string            `json:"family"`
	Delay  *float64          `json:"ddl_watermark_delay_s"`
	Input  []inputTable      `json:"input"`
	SQL    string            `json:"sql"`
	Views  []string          `json:"views"`
	Schema []string          `json:"schema"`
	Mode   string            `json:"mode"`
	Config map[string]string `json:"config"`
	Error  string            `json:"error"`
	Result []map[string]any  `json:"result"`
}

type inputTable struct {
	Table string            `json:"table"`
	DDL   string            `json:"ddl"`
	Rows  []json.RawMessage `json:"rows"`
}

var viewHead = regexp.MustCompile(`(?is)^CREATE\s+(?:TEMPORARY\s+)?VIEW\s+(\w+)\s+AS\s+(.*)$`)

// columns are a table's columns with their types, and the watermark's delay.
func (in *inputTable) columns() (names, types []string, delay time.Duration, err error) {
	_, body, _ := strings.Cut(in.DDL, "(")
	body = body[:strings.LastIndex(body, ")")]
	for _, c := range list(body) {
		t := tokens(c)
		if strings.EqualFold(t[0].text, "WATERMARK") {
			if _, iv, ok := strings.Cut(c, "- INTERVAL"); ok {
				if delay, err = interval("INTERVAL" + iv); err != nil {
					return
				}
			}
			continue
		}
		names = append(names, t[0].text)
		types = append(types, strings.TrimSpace(c[len(t[0].text):]))
	}
	return
}

// pipeline makes a pipeline of the case; an errLater where there is no step for it yet.
func (c *queryCase) pipeline(dir string) (yaml string, s *selectStmt, err error) {
	if s, err = parseSelect(c.SQL); err != nil {
		return
	}
	if len(c.Input) != 1 {
		return "", s, errLater("several tables")
	}
	in := &c.Input[0]
	names, types, delay, err := in.columns()
	if err != nil {
		return "", s, err
	}
	emit := ""
	if c.Config["table.exec.emit.late-fire.enabled"] == "true" {
		emit = "update"
		delay += time.Hour
	}
	if c.Mode == "batch" {
		delay = 100_000 * time.Hour
	}
	var out strings.Builder
	fmt.Fprintf(&out, "source:\n  file: {paths: [%s/in.json]}\n  codec: json\nworkers: 1\nsteps:\n  - set:\n", dir)
	for i, n := range names {
		if strings.Contains(types[i], "<") {
			continue
		}
		fmt.Fprintf(&out, "      %s: CAST(%s AS %s)\n", n, n, types[i])
	}
	views := map[string]*selectStmt{}
	for _, v := range c.Views {
		m := viewHead.FindStringSubmatch(v)
		if m == nil {
			return "", s, errLater("a view")
		}
		if views[m[1]], err = parseSelect(m[2]); err != nil {
			return "", s, err
		}
	}
	var chain []*selectStmt
	for q := s; q != nil; q = views[q.table] {
		chain = append([]*selectStmt{q}, chain...)
		if len(chain) > 8 {
			return "", s, errLater("views")
		}
	}
	if chain[0].table != in.Table {
		return "", s, errLater("FROM " + chain[0].table)
	}
	for i, q := range chain {
		steps, err := q.steps(fmt.Sprintf("q%d", i), names, delay, emit)
		if err != nil {
			return "", s, err
		}
		out.WriteString(steps)
		names = nil
		for _, it := range q.items {
			names = append(names, it.alias)
		}
		if i == 0 {
			delay = 0
		}
	}
	out.WriteString("sinks:\n  - file: {path: " + dir + "/out.json}\n")
	return out.String(), s, nil
}

// run gives the rows that rsetl makes.
func (c *queryCase) run(t *testing.T, bin string) (rows []map[string]any, yaml string, err error) {
	dir := t.TempDir()
	yaml, s, err := c.pipeline(dir)
	if err != nil {
		return nil, yaml, err
	}
	var in bytes.Buffer
	for _, r := range c.Input[0].Rows {
		in.Write(r)
		in.WriteByte('\n')
	}
	for name, text := range map[string][]byte{"in.json": in.Bytes(), "q.yaml": []byte(yaml)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(bin, "run", "--once", "q.yaml")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, yaml, fmt.Errorf("%w: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil && !os.IsNotExist(err) {
		return nil, yaml, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	latest := map[string]int{}
	for d.More() {
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			return nil, yaml, err
		}
		if _, ok := m["window_firing"]; ok { // the last result of a window and key counts
			delete(m, "window_firing")
			key := ""
			for _, it := range s.items {
				if !aggNames.MatchString(it.expr) {
					key += fmt.Sprintf("%v|", m[it.alias])
				}
			}
			if i, ok := latest[key]; ok {
				rows[i] = m
				continue
			}
			latest[key] = len(rows)
		}
		rows = append(rows, m)
	}
	for _, m := range rows[:len(rows)*min(1, len(c.Schema))] { // names that Flink has made
		for i, it := range s.items {
			if name, _, _ := strings.Cut(c.Schema[min(i, len(c.Schema)-1)], " "); strings.HasPrefix(name, "EXPR$") {
				m[name] = m[it.alias]
			}
		}
	}
	return rows, yaml, nil
}

// agree compares rows as sets that may have equals.
func agree(schema []string, want, got []map[string]any) string {
	used := make([]bool, len(got))
next:
	for _, w := range want {
		for i, g := range got {
			if !used[i] && sameRow(schema, w, g) {
				used[i] = true
				continue next
			}
		}
		text, _ := json.Marshal(w)
		return fmt.Sprintf("no row %s", text)
	}

	for i, g := range got {
		if !used[i] {
			text, _ := json.Marshal(g)
			return fmt.Sprintf("%d rows, want %d; too many: %s", len(got), len(want), text)
		}
	}
	return ""
}

func sameRow(schema []string, w, g map[string]any) bool {
	for _, col := range schema {
		name, typ, _ := strings.Cut(col, " ")
		if !same(typ, w[name], g[name]) {
			return false
		}
	}
	return true
}

func number(v any) (*big.Rat, bool) {
	switch v := v.(type) {
	case json.Number:
		return new(big.Rat).SetString(v.String())
	case string:
		return new(big.Rat).SetString(v)
	}
	return nil, false
}

func same(typ string, w, g any) bool {
	if w == nil || g == nil {
		// Flink wraps an integer that is too large; here it is NULL, counted.
		return w == nil && g == nil
	}
	switch {
	case strings.HasPrefix(typ, "TIMESTAMP"):
		ws, gs := fmt.Sprint(w), strings.TrimSuffix(strings.Replace(fmt.Sprint(g), "T", " ", 1), "Z")
		short := func(s string) string {
			if strings.Contains(s, ".") {
				s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
			}
			return s
		}
		return short(ws) == short(gs)
	case strings.HasPrefix(typ, "DOUBLE"), strings.HasPrefix(typ, "FLOAT"):
		a, ok1 := number(w)
		b, ok2 := number(g)
		if !ok1 || !ok2 {
			return fmt.Sprint(w) == fmt.Sprint(g)
		}
		x, _ := a.Float64()
		y, _ := b.Float64()
		return x == y || math.Abs(x-y) <= 1e-12*max(math.Abs(x), math.Abs(y))
	case strings.HasPrefix(typ, "INT"), strings.HasPrefix(typ, "BIGINT"), strings.HasPrefix(typ, "DECIMAL"):
		a, ok1 := number(w)
		b, ok2 := number(g)
		if ok1 && ok2 && a.Cmp(b) == 0 {
			return true
		}
		return ok1 && ok2 && strings.HasPrefix(typ, "INT") && a.IsInt() && b.IsInt() && b.Num().IsInt64() && wrapped(a.Num().Int64(), b.Num().Int64())
	}
	if ws, ok := w.(string); ok {
		if gs, ok := g.(string); ok && ws != gs && len(ws) > 1 && (ws[0] == '{' || ws[0] == '[') { // JSON has no order of members
			var a, b any
			return json.Unmarshal([]byte(ws), &a) == nil && json.Unmarshal([]byte(gs), &b) == nil && reflect.DeepEqual(a, b)
		}
	}
	a, _ := json.Marshal(w)
	b, _ := json.Marshal(g)
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// wrapped tells whether Flink's INT is a sum, or an average, whose sum has wrapped around: rsetl's fields of unknown type are BIGINT.
func wrapped(flink, rsetl int64) bool {
	for n := int64(1); n < 100; n++ {
		for r := -n + 1; r < n; r++ {
			if s := rsetl*n + r; s != int64(int32(s)) && int64(int32(s))/n == flink {
				return true
			}
		}
	}
	return false
}

// unordered sorts lists: where sessions become one, Flink puts their lists together in the order of the windows' hashes.
func unordered(rows []map[string]any) {
	for _, r := range rows {
		for k, v := range r {
			if s, ok := v.(string); ok && strings.Contains(s, ",") {
				l := strings.Split(s, ",")
				sort.Strings(l)
				r[k] = strings.Join(l, ",")
			}
		}
	}
}

// TestQueries runs Flink's windows and groups as pipelines and compares the final rows.
func TestQueries(t *testing.T) {
	path := corpusFile(t, "flink-queries.jsonl")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer binary.Cleanup()
	bin := binary.Path(t)
	type tally struct{ agreed, total, later int }
	families := map[string]*tally{}
	agreed, total := 0, 0
	why := map[string]int{}
	in := bufio.NewReaderSize(f, 1<<20)
	for {
		line, readErr := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var c queryCase
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			if c.SQL == "" || len(c.Schema) == 0 && c.Error == "" {
				t.Skipf("%s has other cases than queries", path)
			}
			fam := families[c.Family]
			if fam == nil {
				fam = &tally{}
				families[c.Family] = fam
			}
			rows, yaml, err := c.run(t, bin)
			var later errLater
			switch {
			case errors.As(err, &later):
				fam.later++
				why[string(later)]++
			case c.Error != "" && err == nil: // rsetl can what Flink can't
				fam.later++
				why["refused by Flink"]++
			default:
				fam.total++
				diff := ""
				if strings.Contains(strings.ToUpper(c.SQL), "SESSION") {
					unordered(c.Result)
					unordered(rows)
				}
				if err != nil && c.Error == "" {
					diff = err.Error()
				} else if err == nil {
					diff = agree(c.Schema, c.Result, rows)
				}
				if diff == "" {
					fam.agreed++
				} else if *showFamily == c.Family || *showFamily == "all" || *showFamily == c.Name {
					want, _ := json.Marshal(c.Result)
					got, _ := json.Marshal(rows)
					t.Logf("%s: %s\n%s\n%s\nwant %s\ngot  %s", c.Name, diff, c.SQL, yaml, want, got)
				}
			}
		}
		if readErr != nil {
			break
		}
	}
	var names []string
	for n, f := range families {
		names = append(names, n)
		agreed, total = agreed+f.agreed, total+f.total
	}
	sort.Strings(names)
	for _, n := range names {
		f := families[n]
		t.Logf("%-14s %d/%d agree, %d later", n, f.agreed, f.total, f.later)
	}
	t.Logf("later: %v", why)
	t.Logf("all            %d/%d agree", agreed, total)
	if *corpusFlag == "" && agreed < queriesFloor {
		t.Errorf("%d cases agree, there were %d", agreed, queriesFloor)
	}
}
