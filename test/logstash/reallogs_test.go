package logstash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

// TestRealLogs parses the log files of the corpus, line by line, with the patterns that their list names: at least the share
// that Logstash matched must be parsed. JSON files are parsed as such, all lines that encoding/json takes.
func TestRealLogs(t *testing.T) {
	const place = "../../../shared/corpus"
	list, err := os.ReadFile(filepath.Join(place, "logs", "MANIFEST.tsv"))
	if err != nil {
		t.Skipf("%s is not there: shared/corpus is no part of the repository", place)
	}
	files := 0
	for n, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		col := strings.Split(line, "\t")
		if n == 0 || len(col) < 7 {
			continue
		}
		path, pattern, matched, note := col[0], col[5], col[6], ""
		if len(col) > 7 {
			note = col[7]
		}
		var s step
		switch {
		case strings.Contains(note, "json lines"):
			s = step{kind: "json", body: m("field", "message", "target", "doc")}
			matched = "json"
		case pattern == "-":
			t.Logf("%s: no pattern is named", path)
			continue
		default:
			var ps []any
			for _, p := range strings.Split(pattern, " | ") {
				ps = append(ps, p)
			}
			s = step{kind: "grok", body: m("field", "message", "set", "legacy", "patterns", node(ps))}
		}
		data, err := os.ReadFile(filepath.Join(place, path))
		if err != nil {
			t.Error(err)
			continue
		}
		lines, valid := 0, 0
		r, _, err := runSteps([]step{s}, time.Now(), func(b *record.Batch) {
			for _, l := range bytes.Split(data, []byte("\n")) {
				if l = bytes.TrimSuffix(l, []byte("\r")); len(l) > 0 {
					if lines++; json.Valid(l) {
						valid++
					}
					b.SetNamed(b.Add(record.Position{}, record.Value{}), b.PutString("message"), b.PutBytes(l))
				}
			}
		})
		if err != nil || r.Err != nil {
			t.Errorf("%s: %v %v", path, err, r.Err)
			continue
		}
		files++
		if matched == "json" {
			matched = fmt.Sprintf("%d/%d", valid, lines)
		}
		var m, of int
		if _, err := fmt.Sscanf(matched, "%d/%d", &m, &of); err != nil {
			m, of = 0, 1
		}
		t.Logf("%s: %d/%d lines parsed; Logstash %s", path, len(r.Out), lines, matched)
		if len(r.Out)*of < m*lines {
			t.Errorf("%s: %d of %d lines are parsed, Logstash matched %d of %d; one that failed: %s", path, len(r.Out), lines, m, of, r.Reason)
		}
	}
	t.Logf("%d files", files)
}
