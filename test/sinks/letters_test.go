package sinks

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/test/binary"
	"github.com/rsetl/rsetl/test/services"
)

// TestRemoteRunKeepsLetters: `rsetl run` without --state-dir replaces the dead letters of the run before only where it begins anew; with
// its state in a database it goes on.
func TestRemoteRunKeepsLetters(t *testing.T) {
	bin, dsn, dir := binary.Path(t), services.MySQL(t), t.TempDir()
	for name, text := range map[string]string{
		"in.log": "1 a\nx\n",
		"p.yaml": fmt.Sprintf("source: {file: {paths: [in.log]}}\nsteps: [grok: '^%%{INT:n:int} %%{WORD:w}']\nsinks: [file: {path: out.json}]\nstate: {remote: {dsn: '%s'}}\n", dsn),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		cmd := exec.Command(bin, "run", "--once", "p.yaml")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "begins anew") {
			t.Fatalf("%v\n%s", err, out)
		}
		for name, n := range map[string]int{"out.json": 1, "p.dead.ndjson": 1} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || strings.Count(string(text), "\n") != n {
				t.Errorf("%s: %q %v", name, text, err)
			}
		}
	}
}
