// Package docs runs the commands and files of README and guide.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/test/binary"
)

func TestMain(m *testing.M) {
	code := m.Run()
	binary.Cleanup()
	os.Exit(code)
}

// block is one fenced block: its kind, the file it stands for, its text and line.
type block struct {
	kind, name, text string
	line             int
}

var fence = regexp.MustCompile("(?m)^```(\\w*) ?(\\S*)\\n((?s:.*?))^```$")

func blocks(t *testing.T, path string) (out []block) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllSubmatchIndex(b, -1) {
		out = append(out, block{string(b[m[2]:m[3]]), string(b[m[4]:m[5]]), string(b[m[6]:m[7]]), 1 + strings.Count(string(b[:m[0]]), "\n")})
	}
	return out
}

// TestGuide runs each page in a folder of its own: named blocks are files, sh blocks are run, and an
// output block is what the run before printed.
func TestGuide(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(binary.Root(), "docs", "guide", "*.md"))
	if err != nil || len(pages) < 3 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		t.Run(filepath.Base(page), func(t *testing.T) { runPage(t, page, t.TempDir(), nil) })
	}
}

// TestReadme runs the README's commands but make's, which CI runs apart.
func TestReadme(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"examples"} {
		if err := os.Symlink(filepath.Join(binary.Root(), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary.Path(t), filepath.Join(dir, "bin", "rsetl")); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	runPage(t, filepath.Join(binary.Root(), "README.md"), dir, func(s string) string {
		s = regexp.MustCompile(`(?m)^make .*$`).ReplaceAllString(s, "")
		return strings.ReplaceAll(s, "/tmp/rsetl-state", state)
	})
}

func runPage(t *testing.T, page, dir string, edit func(string) string) {
	out := ""
	for _, b := range blocks(t, page) {
		at := fmt.Sprintf("%s:%d", filepath.Base(page), b.line)
		switch {
		case b.name != "":
			if err := os.WriteFile(filepath.Join(dir, b.name), []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case b.kind == "sh":
			text := b.text
			if edit != nil {
				text = edit(text)
			}
			cmd := exec.Command("sh", "-euc", text)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary.Path(t))+":"+os.Getenv("PATH"))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			p, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v\n%s%s", at, err, p, stderr.String())
			}
			out = string(p)
		case b.kind == "output":
			if out != b.text {
				t.Errorf("%s: printed\n%s\nexpected\n%s", at, out, b.text)
			}
		}
	}
}

// TestReadmeShowsTheExample: the README's pipeline is the example's, but for its comment and tests.
func TestReadmeShowsTheExample(t *testing.T) {
	example, err := os.ReadFile(filepath.Join(binary.Root(), "examples", "web-errors.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t, filepath.Join(binary.Root(), "README.md")) {
		if b.kind != "yaml" {
			continue
		}
		_, body, _ := strings.Cut(b.text, "\n")
		if !strings.Contains(string(example), strings.TrimSpace(body)) {
			t.Errorf("README.md:%d: the pipeline differs from examples/web-errors.yaml", b.line)
		}
	}
}
