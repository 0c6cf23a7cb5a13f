package grok

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/steps/steptest"
)

// floors are the numbers of cases that agree with Logstash, by file and set; they only ever rise.
var floors = map[string]int{
	"grok-logstash.jsonl ecs": 111, "grok-logstash.jsonl legacy": 180, "grok-logs.jsonl ecs": 185, "grok-logs.jsonl legacy": 1307,
}

type corpusCase struct {
	ECS     string         `json:"ecs_compatibility"`
	Pattern any            `json:"pattern"`
	Message *string        `json:"message"`
	Input   string         `json:"input"`
	Fields  map[string]any `json:"fields"`
}

func (c *corpusCase) set() string {
	if c.ECS == "disabled" {
		return "legacy"
	}
	return "ecs"
}

func (c *corpusCase) patterns() []string {
	if s, ok := c.Pattern.(string); ok {
		return []string{s}
	}
	var out []string
	for _, p := range c.Pattern.([]any) {
		out = append(out, p.(string))
	}
	return out
}

func TestCorpus(t *testing.T) {
	verbose := os.Getenv("CORPUS") // a pattern's name: its differences are listed
	for _, name := range []string{"grok-logstash.jsonl", "grok-logs.jsonl"} {
		path := filepath.Join("../../../shared/corpus", name)
		file, err := os.Open(path)
		if err != nil {
			t.Skipf("%s is not there: shared/corpus is no part of the repository", path)
		}
		defer file.Close()
		agreed, total := map[string]int{}, map[string]int{}
		bad := map[string][2]int{}
		built := map[string]*steptest.S{}
		in := bufio.NewScanner(file)
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			d := json.NewDecoder(bytes.NewReader(in.Bytes()))
			d.UseNumber()
			var c corpusCase
			if err := d.Decode(&c); err != nil {
				t.Fatal(err)
			}
			key := name + " " + c.set()
			total[key]++
			pats, _ := json.Marshal(c.patterns())
			where := c.set() + " " + string(pats)
			n := bad[where]
			n[1]++
			s, seen := built[where]
			if !seen {
				var err error
				if s, err = steptest.Try("grok: {set: "+c.set()+", patterns: "+string(pats)+"}", steptest.Options{}); err != nil {
					t.Logf("%s: %v", where, err)
				}
				built[where] = s
			}
			text := c.Input
			if c.Message != nil {
				text = *c.Message
			}
			ok := false
			if s != nil {
				ok = c.agrees(t, s, text, verbose != "" && strings.Contains(where, verbose))
			}
			if ok {
				agreed[key]++
			} else {
				n[0]++
			}
			bad[where] = n
		}
		var keys []string
		for k := range total {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			t.Logf("%s: %d of %d agree with Logstash", k, agreed[k], total[k])
			if agreed[k] < floors[k] {
				t.Errorf("%s: %d agree, %d did before", k, agreed[k], floors[k])
			}
		}
		if testing.Verbose() {
			var lines []string
			for w, n := range bad {
				if n[0] > 0 {
					lines = append(lines, strconv.Itoa(n[0])+" of "+strconv.Itoa(n[1])+" differ: "+w)
				}
			}
			sort.Strings(lines)
			t.Log("\n" + strings.Join(lines, "\n"))
		}
	}
}

func (c *corpusCase) agrees(t *testing.T, s *steptest.S, text string, show bool) bool {
	q, _ := json.Marshal(text)
	out, fail := s.One(t, `{"message":`+string(q)+`}`)
	want := map[string]any{}
	for k, v := range c.Fields {
		want[k] = v
	}
	failed := false
	if tags, ok := want["tags"].([]any); ok && len(tags) == 1 && tags[0] == "_grokparsefailure" {
		failed = true
	}
	if failed || fail != "" {
		if show && failed != (fail != "") {
			t.Logf("%s\n  failed: %q, Logstash failed: %v %v", text, fail, failed, c.Fields)
		}
		return failed == (fail != "")
	}
	var got map[string]any
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	for _, m := range []map[string]any{got, want} {
		if m["message"] == text {
			delete(m, "message")
		}
	}
	if same(got, want) {
		return true
	}
	if show {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		t.Logf("%s\n  got  %s\n  want %s", text, g, w)
	}
	return false
}

// same compares numbers by value.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		o, ok := b.(map[string]any)
		if !ok || len(a) != len(o) {
			return false
		}
		for k, v := range a {
			if w, ok := o[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	case []any:
		o, ok := b.([]any)
		if !ok || len(a) != len(o) {
			return false
		}
		for i := range a {
			if !same(a[i], o[i]) {
				return false
			}
		}
		return true
	case json.Number:
		o, ok := b.(json.Number)
		if !ok {
			return false
		}
		f, _ := a.Float64()
		g, _ := o.Float64()
		return f == g
	}
	return reflect.DeepEqual(a, b)
}

// Every definition of both sets is one that a linear engine runs.
func TestDictionariesCompile(t *testing.T) {
	for _, name := range Sets {
		d, _ := Set(name)
		back := []string{}
		for _, n := range d.Names() {
			p, err := Compile("%{"+n+"}", d, nil)
			if err != nil {
				t.Errorf("%s: %s: %v", name, n, err)
			} else if !p.Regex.Linear() && n != "MONGO_QUERY" { // it looks ahead by more than a character
				back = append(back, n)
			}
		}
		if len(back) > 0 {
			t.Errorf("%s: patterns that need a backtracking engine: %v", name, back)
		}
	}
}
