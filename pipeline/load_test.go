package pipeline_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// What is no file is refused before it is opened: a named pipe would wait for a writer. Mistakes without end are counted,
// a thousand of them kept, and found in time that grows with the file.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	if _, err := pipeline.LoadFile(pipe, pipeline.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a named pipe: %v", err)
	}
	said := mistakes(t, "p.yaml", []byte("source: {stdin: {}}\nsinks: [{mysql: {dsn: '${file:"+pipe+"}', table: t}}]\n"))
	if !strings.Contains(said, "a named pipe") {
		t.Errorf("a secret in a named pipe: %s", said)
	}
	f, _ := pipeline.Load("p.yaml", []byte("source: {stdin: {}}\nsteps:\n"+strings.Repeat("  - nostep: 1\n", 5_000)+"sinks: [{stdout: {}}]\n"), pipeline.LoadOptions{})
	if f.Errs.Mistakes() < 5_000 || len(f.Errs.List()) > 1001 {
		t.Errorf("%d mistakes, %d kept", f.Errs.Mistakes(), len(f.Errs.List()))
	}
}
