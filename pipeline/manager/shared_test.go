package manager

import (
	"strings"
	"testing"
)

// TestShared: those that use what changed of a shared file are reloaded, others don't notice; a version with mistakes
// changes nothing that runs.
func TestShared(t *testing.T) {
	p := newPlace(t)
	shared := func(pattern, limit, more string) {
		p.write("conf.d/_shared.yaml", "patterns: {WORDS: '"+pattern+"'}\nfunctions: {'large(n)': 'n > "+limit+"'}\n"+
			"connections: {here: {gated: {into: '"+t.Name()+" shared'}}}\n"+more)
	}
	shared("[a-z]+", "5", "")
	p.write("in/a.log", "six 6\n")
	p.write("conf.d/grok.yaml", p.pipe("a", t.Name()+" grok", "steps:\n  - grok: '%{WORDS:w} %{INT:n:int}'\n"))
	p.write("conf.d/func.yaml", p.pipe("a", t.Name()+" func", "steps:\n  - grok: '%{INT:n:int}'\n  - filter: LARGE(n)\n"))
	p.write("conf.d/conn.yaml", strings.Replace(p.pipe("a", "", ""), "into: ''", "connection: here", 1))
	p.write("conf.d/none.yaml", p.pipe("a", t.Name()+" none", ""))
	p.write("conf.d/other/none.yaml", strings.Replace(p.pipe("a", "", ""), "into: ''", "connection: here", 1)) // another namespace
	p.start()
	names := []string{"default/grok", "default/func", "default/conn", "default/none"}
	for _, n := range names {
		p.is(n, Running)
	}
	p.is("other/none", Failed)
	if e := p.status("other/none").Error; !strings.Contains(e, `unknown connection "here"`) {
		t.Error(e)
	}
	p.rows(t.Name()+" shared", "six 6")

	changed := func(what string, want ...string) {
		t.Helper()
		before := map[string]string{}
		for _, n := range names {
			before[n] = p.status(n).StartedAt.String()
		}
		shared := map[string]string{"pattern": "[a-z]*", "limit": "5"}
		switch what {
		case "function":
			shared["limit"] = "6"
		case "comment":
			shared["limit"] = "6"
		}
		more := ""
		if what == "comment" {
			more = "# nothing\n"
		}
		p.write("conf.d/_shared.yaml", "patterns: {WORDS: '"+shared["pattern"]+"'}\nfunctions: {'large(n)': 'n > "+shared["limit"]+"'}\n"+
			"connections: {here: {gated: {into: '"+t.Name()+" shared'}}}\n"+more)
		p.rescan()
		for _, n := range names {
			now := p.status(n).StartedAt.String()
			wanted := false
			for _, w := range want {
				wanted = wanted || w == n
			}
			if (now != before[n]) != wanted {
				t.Errorf("%s changed: %s restarted: %v", what, n, now != before[n])
			}
		}
	}
	changed("pattern", "default/grok")
	changed("function", "default/func")
	changed("comment")

	started := p.status("default/conn").StartedAt
	shared("[a-z", "5", "")
	p.rescan()
	problems := p.m.Problems()
	if len(problems) == 0 || !strings.Contains(problems[0].Error, "_shared.yaml:1:") {
		t.Errorf("%+v", problems)
	}
	for _, n := range names {
		if s := p.status(n); s.State != Running || s.Rejected != nil {
			t.Errorf("%s: %+v", n, s)
		}
	}
	p.remove("conf.d/_shared.yaml")
	p.rescan()
	if s := p.status("default/conn"); s.Rejected == nil || s.State != Running || !s.StartedAt.Equal(*started) {
		t.Errorf("the old version does not go on: %+v", s)
	}
}
