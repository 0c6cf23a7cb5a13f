package pipeline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/pipeline"
)

type yamlNode = yaml.Node

var update = flag.Bool("update", false, "write what is wrong with the bad files beside them")

// mistakes loads and compiles a file and lists everything that is said about it.
func mistakes(t testing.TB, path string, data []byte) string {
	f, _ := pipeline.Load(path, data, pipeline.LoadOptions{StateDir: "/state", Lookup: func(n string) (string, bool) {
		return "value of " + n, n == "SET" || n == "EMPTY"
	}})
	if f == nil {
		t.Fatal("no file")
	}
	pipeline.Compile(f, pipeline.CompileOptions{})
	var s strings.Builder
	for _, e := range f.Errs.List() {
		s.WriteString(e.Error() + "\n")
	}
	return s.String()
}

// TestFiles: testdata/*.good.yaml have nothing wrong with them; what is wrong with testdata/*.bad.yaml stands in a .txt
// beside each.
func TestFiles(t *testing.T) {
	good, _ := filepath.Glob("testdata/*.good.yaml")
	bad, _ := filepath.Glob("testdata/*.bad.yaml")
	if len(good) == 0 || len(bad) == 0 {
		t.Fatal("no test data")
	}
	for _, path := range good {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := mistakes(t, filepath.Base(path), data); got != "" {
			t.Errorf("%s:\n%s", path, got)
		}
	}
	for _, path := range bad {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := mistakes(t, filepath.Base(path), data)
		txt := strings.TrimSuffix(path, ".yaml") + ".txt"
		if *update {
			if err := os.WriteFile(txt, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, _ := os.ReadFile(txt)
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", path, got, want)
		}
	}
}

// FuzzLoad: no text makes the loader panic or hang, and every text that is no pipeline gets a mistake.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../examples/*.yaml"} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			b, _ := os.ReadFile(p)
			f.Add(b)
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("a: &a {b: *a}\nsource: *a"))
	f.Add([]byte("source: {<<: [{stdin: {}}]}\nsinks: ['null']"))
	f.Fuzz(func(t *testing.T, data []byte) {
		hang := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("the loader hangs on %q", data)) })
		defer hang.Stop()
		file, err := pipeline.Load("fuzz.yaml", data, pipeline.LoadOptions{Lookup: func(string) (string, bool) { return "", false }})
		if file == nil {
			t.Skip()
		}
		p, cerr := pipeline.Compile(file, pipeline.CompileOptions{})
		if p == nil && cerr == nil || p != nil && (err != nil || cerr != nil) {
			t.Fatalf("plan %v, errors %v %v", p != nil, err, cerr)
		}
	})
}
