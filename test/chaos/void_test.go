package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/deadletter"
	"github.com/rsetl/rsetl/test/binary"
)

// TestVoidLetters: records that failed before a kill and don't after it leave no dead letter behind, those that fail again one.
func TestVoidLetters(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "p.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("in.log", strings.Repeat("a\nb\n", 2000)+"c\n") // so many that some letters are written before the checkpoint
	write("t.csv", "k,v\nz,0\n")
	write("p.yaml", fmt.Sprintf(`
source: {file: {paths: ['%[1]s/in.log'], start: beginning}}
steps:
  - lookup: {field: message, file: '%[1]s/t.csv', missing: fail}
sinks:
  - file: {path: '%[1]s/out.json'}
checkpoint: {interval: 1h}
dead_letter: {file: {path: '%[1]s/dead.ndjson'}}
`, dir))
	args := []string{"run", "--state-dir", filepath.Join(dir, "state"), "--report", filepath.Join(dir, "report.json")}
	letters := func() (out []string) {
		err := deadletter.Read(filepath.Join(dir, "dead.ndjson"), func(e *deadletter.Entry) error { out = append(out, *e.Raw); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cmd := exec.Command(binary.Path(t), append(args, conf)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "letters", func() bool { return len(letters()) > 0 })
	cmd.Process.Kill()
	cmd.Wait()
	write("t.csv", "k,v\na,1\nb,2\n")
	if out, err := exec.Command(binary.Path(t), append(append(args, "--once"), conf)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := fmt.Sprint(letters()); got != "[c]" {
		t.Errorf("letters of %s", got)
	}
	var reports []struct{ In, Out, Dead int64 }
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &reports)
	}
	if err != nil || len(reports) != 1 || reports[0] != struct{ In, Out, Dead int64 }{4001, 4000, 1} {
		t.Errorf("%+v %v", reports, err)
	}
}
