package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/test/binary"
)

const dedupePipeline = `
source:
  file: {paths: ['%[1]s/in.log'], start: beginning}
  codec: json
workers: 2
memory: 1MiB
steps:
  - dedupe: {by: [id], keep: %[2]s, within: 24h}
sinks:
  - file: {path: '%[1]s/out.json'}
    batch: {size: 97, interval: 20ms}
checkpoint: {interval: 40ms}
drain: 20s
`

// TestDedupe kills the program while it drops records that came before: each key comes out once, the first or the last of it.
func TestDedupe(t *testing.T) {
	bin := binary.Path(t)
	for _, keep := range []string{"first", "last"} {
		t.Run(keep, func(t *testing.T) {
			t.Parallel()
			s := *seed
			if s == 0 {
				s = uint64(time.Now().UnixNano())
			}
			t.Logf("seed %d", s)
			r := rand.New(rand.NewPCG(s, 1))
			dir := t.TempDir()
			conf := filepath.Join(dir, "dedupe.yaml")
			if err := os.WriteFile(conf, fmt.Appendf(nil, dedupePipeline, dir, keep), 0o644); err != nil {
				t.Fatal(err)
			}
			in, err := os.Create(filepath.Join(dir, "in.log"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			want := map[string]int{} // by id: the line that must come out
			line := 0
			write := func(n int) {
				var text strings.Builder
				for range n {
					line++
					id := fmt.Sprint(r.IntN(1 + line/2))
					if _, seen := want[id]; !seen || keep == "last" {
						want[id] = line
					}
					fmt.Fprintf(&text, `{"id":"%s","line":%d}`+"\n", id, line)
				}
				if _, err := in.WriteString(text.String()); err != nil {
					t.Fatal(err)
				}
			}
			run := func(args ...string) *exec.Cmd {
				cmd := exec.Command(bin, append([]string{"run", "--state-dir", filepath.Join(dir, "state")}, append(args, conf)...)...)
				cmd.Dir = dir
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				return cmd
			}
			for range *kills / 2 {
				cmd := run()
				for range 1 + r.IntN(8) {
					write(r.IntN(3000))
					time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
				}
				cmd.Process.Kill()
				cmd.Wait()
				if cmd.ProcessState.Exited() {
					t.Fatal("it ended by itself")
				}
			}
			if err := run("--once").Wait(); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, m := range objects(t, filepath.Join(dir, "out.json")) {
				id := m["id"].(string)
				if got[id] != 0 {
					t.Errorf("%s comes twice", id)
				}
				got[id] = int(m["line"].(float64))
			}
			wrong := 0
			for id, n := range want {
				if got[id] != n {
					if wrong++; wrong < 4 {
						t.Errorf("%s: line %d came out, want %d", id, got[id], n)
					}
				}
			}
			t.Logf("%d lines, %d keys, %d wrong", line, len(want), wrong)
			if len(got) != len(want) {
				t.Errorf("%d keys came out, want %d", len(got), len(want))
			}
		})
	}
}
