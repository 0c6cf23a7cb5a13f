package engine_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/dlclark/regexp2"

	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/parsers/grok"
)

// mutations is how many changed lines TestLogs makes of each.
var mutations = flag.Int("mutations", 2, "changed lines that TestLogs makes of each line")

// other runs the expression on another engine.
func other(t *testing.T, src string) (name string, find func([]byte) []int) {
	if text, ok := engine.ForRegexp(src); ok {
		return "regexp", regexp.MustCompile(text).FindSubmatchIndex
	}
	text, err := engine.ForRegexp2(src)
	if err != nil {
		t.Fatal(err)
	}
	re := regexp2.MustCompile(text, regexp2.None)
	return "regexp2", func(p []byte) []int {
		var runes []rune
		var offs []int
		for i, r := range string(p) {
			runes, offs = append(runes, r), append(offs, i)
		}
		offs = append(offs, len(p))
		m, err := re.FindRunesMatch(runes)
		if err != nil || m == nil {
			return nil
		}
		var caps []int
		for _, g := range m.Groups() {
			if len(g.Captures) == 0 {
				caps = append(caps, -1, -1)
			} else {
				caps = append(caps, offs[g.Index], offs[g.Index+g.Length])
			}
		}
		return caps
	}
}

func mutate(r *rand.Rand, line []byte) []byte {
	out := slices.Clone(line)
	for range 1 + r.IntN(3) {
		if len(out) < 2 {
			return out
		}
		a, b := r.IntN(len(out)), r.IntN(len(out))
		a, b = min(a, b), max(a, b)
		switch r.IntN(6) {
		case 0:
			out = out[:b]
		case 1:
			out = slices.Delete(out, a, min(b, a+1+r.IntN(4)))
		case 2:
			out = slices.Insert(out, a, slices.Clone(out[b:min(len(out), b+1+r.IntN(6))])...)
		case 3:
			out[a] = out[b]
		case 4:
			out = slices.Insert(out, a, []byte([]string{" ", "-", "\"", "é", "\n", "[", "0", "世", ":", "\xff", "a"}[r.IntN(11)])...)
		case 5:
			out[a] = "09azAZ -_.:/[]\"\\\n\t"[r.IntN(18)]
		}
	}
	return out
}

// Real lines, and lines made from them, give what Go's regexp gives for the same expression, or regexp2 for one that only
// that has.
func TestLogs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, uint64(*mutations)))
	type both struct {
		m    engine.Matcher
		caps []int
		name string
		find func([]byte) []int
	}
	compiled := map[string]*both{}
	times := map[string]int{}
	for _, name := range []string{"grok-logs.jsonl", "grok-logstash.jsonl"} {
		path := filepath.Join("../../../shared/corpus", name)
		f, err := os.Open(path)
		if err != nil {
			t.Skipf("%s is not there: shared/corpus is no part of the repository", path)
		}
		defer f.Close()
		in := bufio.NewScanner(f)
		in.Buffer(nil, 4<<20)
		for in.Scan() {
			var c struct {
				ECS     string `json:"ecs_compatibility"`
				Pattern any    `json:"pattern"`
				Message string `json:"message"`
				Input   string `json:"input"`
			}
			if err := json.Unmarshal(in.Bytes(), &c); err != nil {
				t.Fatal(err)
			}
			list, ok := c.Pattern.([]any)
			if !ok {
				list = []any{c.Pattern}
			}
			set := "ecs"
			if c.ECS == "disabled" {
				set = "legacy"
			}
			dict, _ := grok.Set(set)
			for _, p := range list {
				src := p.(string)
				b, ok := compiled[set+src]
				if !ok {
					if p, err := grok.Compile(src, dict, nil); err == nil && p.Regex.Engine == "native" {
						b = &both{m: p.Regex.Matcher(), caps: make([]int, 2*(p.Regex.Groups+1))}
						b.name, b.find = other(t, p.Regex.Source)
					}
					compiled[set+src] = b
				}
				if b == nil {
					continue
				}
				for k := range 1 + *mutations {
					line := []byte(c.Message + c.Input)
					if k > 0 {
						line = mutate(r, line)
					}
					want := b.find(line)
					ok, err := b.m.Match(line, b.caps)
					if times[b.name]++; err != nil || ok != (want != nil) || ok && !slices.Equal(b.caps, want) {
						t.Errorf("%s on %q: %v %v %v, %s %v", src, line, ok, b.caps, err, b.name, want)
					}
				}
			}
		}
	}
	t.Logf("comparisons: %v", times)
}
