package bench

import (
	"fmt"
	"strconv"
	"strings"
)

// FilterText is what 1 % of the Apache lines have.
const FilterText = `" 503 `

// Job is one thing that rsetl, a hand-written loop and a peer all do.
type Job struct {
	Name  string
	Input Kind
	Loop  string // the baseline's name in RunLoop
	Out   bool   // rows go to a file
	steps string
	// Benthos' mapping; "": it is not asked.
	Benthos string
	Also    string // another loop, for comparison
	// Verify, where the job has no output, is the same job with one, to see that all do the same.
	Verify *Job
}

// Jobs are those with a target.
var Jobs = []Job{
	{Name: "filter", Input: Apache, Loop: "lines", Also: "grep", steps: `- filter: message LIKE '%" 503 %'`,
		Benthos: `root = if !content().string().contains("\" 503 ") { deleted() }`,
		Verify: &Job{Name: "filter-out", Input: Apache, Loop: "grepjson", Out: true, steps: `- filter: message LIKE '%" 503 %'`,
			Benthos: `root = if content().string().contains("\" 503 ") { {"message": content().string()} } else { deleted() }`}},
	{Name: "tojson", Input: Apache, Loop: "tojson", Out: true,
		Benthos: `root.message = content().string()`},
	{Name: "json", Input: JSON, Loop: "json", Also: "stdjson", Out: true, steps: "- json: {replace: true}\n  - filter: level IN ('warn', 'error')",
		Benthos: `root = if this.level != "warn" && this.level != "error" { deleted() }`},
	{Name: "apache", Input: Apache, Loop: "apache", Out: true, steps: "- grok: '^%{COMBINEDAPACHELOG}'\n  - remove: [message]"},
	{Name: "apache5xx", Input: Apache, Loop: "apache5xx", Out: true, steps: "- grok: '^%{COMBINEDAPACHELOG}'\n  - filter: http.response.status_code >= 500\n  - remove: [message]"},
}

// FindJob gives the job of that name.
func FindJob(name string) *Job {
	for i := range Jobs {
		if Jobs[i].Name == name {
			return &Jobs[i]
		}
	}
	return nil
}

// Pipeline is rsetl's file for the job.
func (j *Job) Pipeline(in, out string, workers int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nworkers: %d\nsource:\n  file: {paths: [%s], start: beginning}\n", j.Name, workers, strconv.Quote(in))
	if j.steps != "" {
		fmt.Fprintf(&b, "steps:\n  %s\n", j.steps)
	}
	if j.Out {
		fmt.Fprintf(&b, "sinks:\n  - file: {path: %s}\n", strconv.Quote(out))
	} else {
		b.WriteString("sinks:\n  - null: {}\n")
	}
	return b.String()
}

// BenthosConfig is Benthos' file for the job.
func (j *Job) BenthosConfig(in, out string) string {
	sink := "drop: {}"
	if j.Out {
		sink = fmt.Sprintf("file: {path: %s, codec: lines}", strconv.Quote(out))
	}
	return fmt.Sprintf(`http: {enabled: false}
logger: {level: ERROR}
input:
  file: {paths: [%s], scanner: {lines: {}}}
pipeline:
  threads: 1
  processors:
    - mapping: |
        %s
output:
  %s
`, strconv.Quote(in), j.Benthos, sink)
}

// ParseSize reads bytes, or a number with KiB, MiB, GiB, MB or GB.
func ParseSize(s string) (int64, error) {
	mul := int64(1)
	for _, u := range []struct {
		name string
		n    int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"MB", 1e6}, {"GB", 1e9}} {
		if strings.HasSuffix(s, u.name) {
			s, mul = strings.TrimSuffix(s, u.name), u.n
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("a size is a number with KiB, MiB, GiB, MB or GB: %q", s)
	}
	return n * mul, nil
}
