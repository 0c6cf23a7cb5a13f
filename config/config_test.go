package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{"500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second, "7d": 7 * 24 * time.Hour,
		"1d12h": 36 * time.Hour, "0s": 0, "1.5d": 36 * time.Hour, "-2s": -2 * time.Second} {
		if got, err := ParseDuration(in); err != nil || got.D() != want {
			t.Errorf("%s: %v %v", in, got.D(), err)
		}
	}
	for _, in := range []string{"", "5", "5x", "d", "1d2", "s", "--1s", "NaNd", "9999999d"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("%q was taken for %v", in, got)
		}
	}
	for d, want := range map[Duration]string{Duration(10 * time.Second): "10s", Duration(time.Minute): "1m", Duration(2 * time.Hour): "2h", Duration(48 * time.Hour): "2d", Duration(90 * time.Second): "1m30s", 0: "0s"} {
		if got := d.String(); got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if back, err := ParseDuration(d.String()); err != nil || back != d {
			t.Errorf("%s reads back as %s", d, back)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]Size{"0": 0, "65536": 65536, "64KiB": 65536, "1MiB": 1 << 20, "1.5MiB": 3 << 19, "10MB": 10_000_000, "2 GiB": 2 << 30, "12B": 12} {
		if got, err := ParseSize(in); err != nil || got != want {
			t.Errorf("%s: %d %v", in, got, err)
		}
	}
	for _, in := range []string{"", "-1", "1Kb", "x", "1e40", "NaN", "Inf", "KiB"} {
		if got, err := ParseSize(in); err == nil {
			t.Errorf("%q was taken for %d", in, got)
		}
	}
	if got := Size(64<<10).String() + Size(3).String() + Size(0).String(); got != "64KiB30" {
		t.Error(got)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"filter", "rename", "remove", "grok", "codec", "dead_letter"}
	for in, want := range map[string]string{"fliter": "filter", "gork": "grok", "GROK": "grok", "codecs": "codec", "deadletter": "dead_letter", "xyz": "", "": "", "renmae": "rename"} {
		if got := Nearest(in, names); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

type sub struct {
	N    int      `yaml:"n" default:"3" min:"1"`
	Wait Duration `yaml:"wait" default:"5s"`
}

type sample struct {
	Name  string         `yaml:"name,required"`
	Kind  string         `yaml:"kind" enum:"a,b" default:"a"`
	Size  Size           `yaml:"size" default:"1KiB"`
	On    bool           `yaml:"on"`
	F     float64        `yaml:"f"`
	List  []string       `yaml:"list"`
	Subs  []sub          `yaml:"subs"`
	Sub   sub            `yaml:"sub"`
	Maybe *sub           `yaml:"maybe"`
	M     map[string]int `yaml:"m"`
	Order Map[string]    `yaml:"order"`
}

func decode(t *testing.T, text string, lenient bool) (sample, []*Error) {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	errs := &Errors{File: "f.yaml", Lines: strings.Split(text, "\n")}
	c := &Context{Errs: errs, Lenient: lenient, Lookup: func(n string) (string, bool) { return "v-" + n, n == "SET" }}
	var s sample
	c.Decode(doc.Content[0], &s)
	return s, errs.List()
}

func TestDecode(t *testing.T) {
	s, errs := decode(t, `
name: x ${SET} ${NO:def} $${SET}
size: 2KiB
on: yes
f: 1e3
list: single
subs: [{n: 5}, {wait: 1d}]
m: {a: 1}
order: {z: 1, a: two}
maybe: {}
`, false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if s.Name != "x v-SET def ${SET}" || s.Kind != "a" || s.Size != 2048 || !s.On || s.F != 1000 || len(s.List) != 1 || s.List[0] != "single" ||
		s.Subs[0] != (sub{5, Duration(5 * time.Second)}) || s.Subs[1] != (sub{3, Duration(24 * time.Hour)}) || s.Sub.N != 3 || *s.Maybe != s.Sub ||
		s.M["a"] != 1 || s.Order[0].Key != "z" || s.Order[1].Value != "two" {
		t.Errorf("%+v", s)
	}
}

func TestMistakes(t *testing.T) {
	_, errs := decode(t, `kind: c
siez: 1
size: lots
sub: {n: 0, wait: -1s}
subs: [{n: x}]
on: perhaps
list: {a: 1}
name: ${NO}
name: again
m: 3
f:
`, false)
	var got []string
	for _, e := range errs {
		got = append(got, e.Error())
	}
	want := []string{
		`f.yaml:1:7: kind: "c" is none of a, b`,
		`f.yaml:2:1: unknown key "siez"; did you mean "size"?`,
		`f.yaml:3:7: size: "lots" is not a size; write 65536, 64KiB or 10MB`,
		`f.yaml:4:10: sub.n: must be at least 1, got "0"`,
		`f.yaml:4:19: sub.wait: a duration here can't be negative`,
		`f.yaml:5:12: subs[0].n: want a whole number, got "x"`,
		`f.yaml:6:5: on: want true or false, got "perhaps"`,
		`f.yaml:7:7: list: want a list, got a mapping`,
		`f.yaml:8:7: name: ${NO}: the environment has no variable NO; set it or write ${NO:default}`,
		`f.yaml:9:1: key "name" is given twice, first at line 8`,
		`f.yaml:10:4: m: want a mapping, got "3"`,
		`f.yaml:11:3: f: a value is missing`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestSecrets: what a file holds fills a value and appears in no message; a variable that is missing is a warning
// where files are only checked.
func TestSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, errs := decode(t, "name: 'pw=${file:"+path+"}'\nkind: '${file:"+path+"}'\nsize: '${file:"+path+"}'\n", false)
	if len(errs) != 2 || !strings.Contains(errs[1].Msg, `"***" is not a size`) {
		t.Error(errs)
	}
	if s.Name != "pw=hunter2" {
		t.Errorf("%q", s.Name)
	}
	for _, e := range errs {
		if strings.Contains(e.Error(), "hunter2") {
			t.Errorf("a secret is shown: %v", e)
		}
	}
	_, errs = decode(t, "name: '${NO}/x'\nsize: '${NO}'\nkind: '${NO}'\n", true)
	for _, e := range errs {
		if !e.Warning {
			t.Error(e)
		}
	}
	if len(errs) != 3 {
		t.Errorf("%d warnings", len(errs))
	}
}

// TestPlaces: errors within scalars of every style stand at their character.
func TestPlaces(t *testing.T) {
	text := "a: plain x\nb: 'it''s x'\nc: \"q x\"\nd: |\n    one\n    tw x\n  \ne: x"
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "1:10", "b": "2:11", "c": "3:7", "d": "6:8", "e": "8:4"}
	m := doc.Content[0]
	for i := 0; i < len(m.Content); i += 2 {
		errs := &Errors{Lines: strings.Split(text, "\n")}
		v := m.Content[i+1]
		errs.AddAt(v, strings.IndexByte(v.Value, 'x'), "", "here")
		if got := strings.TrimSuffix(strings.TrimPrefix(errs.List()[0].Error(), ":"), ": here"); got != want[m.Content[i].Value] {
			t.Errorf("%s: %s, not %s", m.Content[i].Value, got, want[m.Content[i].Value])
		}
	}
}
