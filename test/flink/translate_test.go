package flink

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// errLater is what a translation ends with for queries of a kind that rsetl doesn't run yet.
type errLater string

func (e errLater) Error() string { return string(e) }

// selectStmt is a SELECT cut into its clauses.
type selectStmt struct {
	distinct              bool
	items                 []item
	from, where           string
	group                 []string
	having                string
	windowing, table, col string // of the window: TUMBLE, ...; the table and time column
	partition             []string
	args                  []time.Duration
}

type item struct{ expr, alias string }

// words cuts SQL into tokens that are texts, names, numbers or single characters, with where each begins.
type token struct {
	text string
	at   int
}

func tokens(sql string) (out []token) {
	for i := 0; i < len(sql); {
		c := sql[i]
		j := i + 1
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			i++
			continue
		case c == '\'' || c == '`':
			for j < len(sql) {
				if sql[j] == c {
					if j+1 < len(sql) && sql[j+1] == c {
						j += 2
						continue
					}
					break
				}
				j++
			}
			j++
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			for j < len(sql) && (sql[j] == '_' || sql[j] == '$' || sql[j] >= '0' && sql[j] <= '9' || sql[j]|32 >= 'a' && sql[j]|32 <= 'z') {
				j++
			}
		case c >= '0' && c <= '9':
			for j < len(sql) && (sql[j] == '.' || sql[j] >= '0' && sql[j] <= '9') {
				j++
			}
		}
		j = min(j, len(sql))
		out = append(out, token{sql[i:j], i})
		i = j
	}
	return out
}

// cut cuts sql at the words at depth 0: what is before the first, and behind each that is there, by word.
func cut(sql string, words ...string) map[string]string {
	out := map[string]string{}
	depth, name, from := 0, "", 0
	toks := tokens(sql)
	for i, t := range toks {
		switch t.text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		if depth != 0 {
			continue
		}
		for _, w := range words {
			first, second, two := strings.Cut(w, " ")
			if strings.EqualFold(t.text, first) && (!two || i+1 < len(toks) && strings.EqualFold(toks[i+1].text, second)) {
				out[name] = strings.TrimSpace(sql[from:t.at])
				name, from = w, t.at+len(first)
				if two {
					from = toks[i+1].at + len(second)
				}
			}
		}
	}
	out[name] = strings.TrimSpace(sql[from:])
	return out
}

// list cuts at commas at depth 0.
func list(sql string) (out []string) {
	depth, from := 0, 0
	for _, t := range tokens(sql) {
		switch t.text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		case ",":
			if depth == 0 {
				out = append(out, strings.TrimSpace(sql[from:t.at]))
				from = t.at + 1
			}
		}
	}
	if s := strings.TrimSpace(sql[from:]); s != "" {
		out = append(out, s)
	}
	return out
}

// call cuts NAME(args); ok is false where sql is something else.
func call(sql string) (name string, args []string, ok bool) {
	toks := tokens(sql)
	if len(toks) < 3 || toks[1].text != "(" || toks[len(toks)-1].text != ")" {
		return "", nil, false
	}
	depth := 0
	for i, t := range toks {
		switch t.text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 && i < len(toks)-1 {
				return "", nil, false
			}
		}
	}
	return strings.ToUpper(toks[0].text), list(sql[toks[1].at+1 : toks[len(toks)-1].at]), true
}

// norm is SQL in one form, to compare expressions.
func norm(sql string) string {
	var out []string
	for _, t := range tokens(sql) {
		if t.text[0] != '\'' && t.text[0] != '`' {
			t.text = strings.ToUpper(t.text)
		}
		out = append(out, t.text)
	}
	return strings.Join(out, " ")
}

var units = map[string]time.Duration{"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour}

// interval reads INTERVAL '5' SECOND and the like.
func interval(sql string) (time.Duration, error) {
	toks := tokens(sql)
	if len(toks) < 3 || !strings.EqualFold(toks[0].text, "INTERVAL") {
		return 0, fmt.Errorf("%q is no interval", sql)
	}
	toks = toks[1:]
	sign := time.Duration(1)
	if toks[0].text == "-" {
		sign, toks = -1, toks[1:]
	}
	n, err := strconv.ParseFloat(strings.Trim(toks[0].text, "'"), 64)
	u := units[strings.TrimSuffix(strings.ToUpper(toks[1].text), "S")]
	if err != nil || u == 0 {
		return 0, fmt.Errorf("%q is no interval", sql)
	}
	return sign * time.Duration(n*float64(u)+0.5), nil
}

var (
	notYet   = regexp.MustCompile(`(?i)\b(JOIN|OVER|UNNEST|MATCH_RECOGNIZE|UNION|INTERSECT|EXCEPT|LIMIT|LATERAL|ROLLUP|CUBE|GROUPING|CURRENT_WATERMARK)\b`)
	windowed = map[string]bool{"TUMBLE": true, "HOP": true, "CUMULATE": true, "SESSION": true}
	aggNames = regexp.MustCompile(`(?i)\b(COUNT|SUM|AVG|MIN|MAX|FIRST_VALUE|LAST_VALUE|LISTAGG|COLLECT|ARRAY_AGG|STDDEV\w*|VAR_\w+|VARIANCE|PERCENTILE|APPROX_COUNT_DISTINCT|JSON_OBJECTAGG|JSON_ARRAYAGG)\s*\(`)
	boundOf  = regexp.MustCompile(`^(TUMBLE|HOP|SESSION)_(START|END|ROWTIME|PROCTIME) `)
)

// parseSelect reads a SELECT of the kinds that a window step can do.
func parseSelect(sql string) (*selectStmt, error) {
	if m := notYet.FindString(sql); m != "" {
		return nil, errLater(strings.ToUpper(m))
	}
	if strings.Count(strings.ToUpper(sql), "SELECT") != 1 {
		return nil, errLater("a query within")
	}
	parts := cut(sql, "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY")
	if parts["ORDER BY"] != "" {
		return nil, errLater("ORDER BY")
	}
	s := &selectStmt{from: parts["FROM"], where: parts["WHERE"], having: parts["HAVING"], group: list(parts["GROUP BY"])}
	sel := parts["SELECT"]
	if rest, ok := strings.CutPrefix(sel, "DISTINCT "); ok {
		s.distinct, sel = true, rest
	}
	for _, it := range list(sel) {
		p := cut(it, "AS")
		i := item{expr: p[""], alias: strings.Trim(p["AS"], "`")}
		if i.alias == "" {
			i.alias = strings.Trim(i.expr, "`")
			if len(tokens(i.expr)) != 1 { // Flink calls it EXPR$0 and so on; columns are compared by place
				i.alias = fmt.Sprintf("expr_%d", len(s.items))
			}
		}
		s.items = append(s.items, i)
	}
	s.table = s.from
	if name, args, ok := call(s.from); ok && name == "TABLE" && len(args) == 1 {
		name, args, ok := call(args[0])
		if !ok || !windowed[name] || len(args) < 3 {
			return nil, errLater(name)
		}
		s.windowing = name
		t := cut(args[0], "TABLE", "PARTITION BY")
		s.table, s.partition = t["TABLE"], list(t["PARTITION BY"])
		_, d, _ := call(args[1])
		if len(d) != 1 {
			return nil, errLater(args[1])
		}
		s.col = d[0]
		for _, a := range args[2:] {
			d, err := interval(a)
			if err != nil {
				return nil, err
			}
			s.args = append(s.args, d)
		}
	}
	var group []string
	for _, g := range s.group {
		name, args, ok := call(g)
		if !ok || !windowed[name] || s.windowing != "" || len(args) < 2 {
			group = append(group, g)
			continue
		}
		s.windowing, s.col = name, args[0]
		for _, a := range args[1:] {
			d, err := interval(a)
			if err != nil {
				return nil, err
			}
			s.args = append(s.args, d)
		}
	}
	if len(tokens(s.table)) != 1 {
		return nil, errLater("FROM " + s.table)
	}
	s.group = group
	return s, nil
}

// window is the step's part that says which windows.
func (s *selectStmt) window() (string, error) {
	arg := func(i int) string { return s.args[i].String() }
	out := ""
	switch {
	case s.windowing == "":
		return "tumble: 100000d\n      time: processing", nil // one window for all
	case s.windowing == "TUMBLE" && len(s.args) <= 2:
		out = "tumble: " + arg(0)
	case s.windowing == "SESSION" && len(s.args) == 1:
		out = "session: " + arg(0)
	case len(s.args) >= 2 && s.windowing == "HOP":
		out = fmt.Sprintf("hop: {every: %s, size: %s}", arg(0), arg(1))
	case len(s.args) >= 2 && s.windowing == "CUMULATE":
		out = fmt.Sprintf("cumulate: {every: %s, size: %s}", arg(0), arg(1))
	default:
		return "", errLater(s.windowing)
	}
	if n := map[string]int{"TUMBLE": 1, "HOP": 2, "CUMULATE": 2}[s.windowing]; n > 0 && len(s.args) > n {
		out += "\n      offset: " + arg(n)
	}
	return out + "\n      time: " + s.col, nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// steps makes the pipeline's steps of the query; prefix keeps the fields of several queries apart. columns are the table's.
func (s *selectStmt) steps(prefix string, columns []string, delay time.Duration, emit string) (string, error) {
	var before, sel, after, keep []string
	keys, keyOf := []string{}, map[string]string{}
	key := func(sql string) {
		n := norm(sql)
		if keyOf[n] != "" {
			return
		}
		name := sql
		if len(tokens(sql)) != 1 {
			name = fmt.Sprintf("%sk%d", prefix, len(keys))
			before = append(before, name+": "+quote(sql))
		}
		keyOf[n] = name
		keys = append(keys, name)
	}
	bound := func(n string) string {
		if m := boundOf.FindStringSubmatch(n); m != nil {
			n = map[string]string{"START": "WINDOW_START", "END": "WINDOW_END", "ROWTIME": "WINDOW_TIME", "PROCTIME": "WINDOW_TIME"}[m[2]]
		}
		switch n {
		case "WINDOW_START", "WINDOW_END":
			return strings.ToLower(n)
		case "WINDOW_TIME":
			return "window_end - INTERVAL '0.001' SECOND"
		}
		return ""
	}
	for _, g := range s.group {
		if bound(norm(g)) == "" {
			key(g)
		}
	}
	for _, p := range s.partition {
		key(p)
	}
	rows := len(s.group) == 0 && s.windowing != "" && !s.legacy()
	for _, it := range s.items {
		if aggNames.MatchString(it.expr) && !s.distinct {
			rows = false
		}
	}
	if rows { // the rows of windows: each is a group of its own
		for _, c := range columns {
			key(c)
		}
		key("`@offset`")
		keyOf[norm("`@offset`")], keys[len(keys)-1] = "@offset", "'@offset'"
		delay = 1000 * time.Hour
	}
	if s.distinct {
		for _, it := range s.items {
			key(it.expr)
		}
	}
	if s.where != "" { // rows that are left out move the watermark all the same
		key("COALESCE(" + s.where + ", FALSE)")
	}
	for _, it := range s.items {
		n := norm(it.expr)
		keep = append(keep, it.alias)
		switch b := bound(n); {
		case b == it.alias:
		case b != "":
			after = append(after, it.alias+": "+quote(b))
		case keyOf[n] != "":
			if keyOf[n] != it.alias {
				after = append(after, it.alias+": "+quote(keyOf[n]))
			}
		case aggNames.MatchString(it.expr):
			sel = append(sel, it.alias+": "+quote(it.expr))
		case s.windowing != "" && (len(keys) > 0 || rows):
			after = append(after, it.alias+": "+quote(it.expr))
		default:
			return "", errLater("no aggregate: " + it.expr)
		}
	}
	var out strings.Builder
	block := func(kind string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&out, "  - %s:\n      %s\n", kind, strings.Join(lines, "\n      "))
		}
	}
	block("set", before)
	w, err := s.window()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "  - window:\n      %s\n", w)
	if s.windowing != "" {
		fmt.Fprintf(&out, "      delay: %s\n", delay)
	}
	if len(keys) > 0 {
		fmt.Fprintf(&out, "      by: [%s]\n", strings.Join(keys, ", "))
	}
	if len(sel) > 0 {
		fmt.Fprintf(&out, "      select:\n        %s\n", strings.Join(sel, "\n        "))
	}
	if s.having != "" {
		fmt.Fprintf(&out, "      having: %s\n", quote(s.having))
	}
	if emit != "" {
		fmt.Fprintf(&out, "      emit: %s\n", emit)
		keep = append(keep, "window_firing")
	}
	if s.where != "" {
		fmt.Fprintf(&out, "  - filter: %s\n", keyOf[norm("COALESCE("+s.where+", FALSE)")])
	}
	block("set", after)
	fmt.Fprintf(&out, "  - keep: [%s]\n", strings.Join(keep, ", "))
	return out.String(), nil
}

// legacy tells of a window that is in GROUP BY.
func (s *selectStmt) legacy() bool { return !strings.HasPrefix(strings.ToUpper(s.from), "TABLE") }
