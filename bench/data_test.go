package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestData pins the generated lines: results of two machines or dates are of the same data.
func TestData(t *testing.T) {
	for kind, want := range map[Kind]struct {
		sum  string
		size int
	}{Apache: {"0aca6ad9991a43a8", 228}, JSON: {"88b335e235320c84", 606}} {
		l := NewLines(kind)
		var all []byte
		for range 10_000 {
			all = l.Append(all)
		}
		h := sha256.Sum256(all)
		if sum := hex.EncodeToString(h[:8]); sum != want.sum {
			t.Errorf("%s: the lines are others than before: %s", kind, sum)
		}
		if size := len(all) / 10_000; size < want.size-5 || size > want.size+5 {
			t.Errorf("%s: a line has %d bytes", kind, size)
		}
		if kind == JSON {
			for i, line := range bytes.Split(bytes.TrimSpace(all), []byte("\n")) {
				if !json.Valid(line) {
					t.Fatalf("line %d: %s", i+1, line)
				}
			}
		}
	}
}

// TestLoops: what the loops give is what the standard library gives, also for a line longer than a block, a last
// line without newline, and text that isn't UTF-8.
func TestLoops(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	lines := []string{"plain", `quote " back \ tab	`, "caf\u00e9 \xff\xfe end", "", strings.Repeat("x", 3*LoopBlock), "ctl \x01", `last" 503 `}
	if err := os.WriteFile(in, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if n, err := LoopLines(in); err != nil || n != int64(len(lines)) {
		t.Errorf("lines: %d, %v", n, err)
	}
	if n, err := LoopGrep(in, FilterText); err != nil || n != 1 {
		t.Errorf("grep: %d, %v", n, err)
	}
	if n, err := LoopToJSON(in, out); err != nil || n != int64(len(lines)) {
		t.Fatalf("tojson: %d, %v", n, err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range strings.Split(strings.TrimSpace(string(got)), "\n") {
		var v struct{ Message string }
		if err := json.Unmarshal([]byte(row), &v); err != nil {
			t.Fatalf("row %d: %v: %.100q", i+1, err, row)
		}
		if want := strings.ToValidUTF8(strings.ReplaceAll(lines[i], "\xff\xfe", "\uFFFD\uFFFD"), "?"); v.Message != want {
			t.Errorf("row %d: %.100q, want %.100q", i+1, v.Message, want)
		}
	}
}
