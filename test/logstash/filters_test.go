package logstash

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/rsetl/rsetl/internal/components"
)

// files are further files of cases, or folders of them.
type files []string

func (f *files) String() string     { return strings.Join(*f, ",") }
func (f *files) Set(s string) error { *f = append(*f, s); return nil }

var corpus files

func init() {
	flag.Var(&corpus, "corpus", "a file of cases, or a folder with logstash-*.jsonl and syslog.jsonl; may be given several times")
}

// floors are the shares, in parts of a thousand, that must agree or differ for a reason in designs.
var floors = map[string]int{"csv": 970, "date": 970, "dissect": 970, "json": 970, "kv": 970, "multiline": 970, "mutate": 970, "split": 970, "syslog": 970}

type tally struct{ agreed, design, total int }

func paths(t *testing.T) []string {
	from := []string(corpus)
	if len(from) == 0 {
		const place = "../../../shared/corpus"
		if _, err := os.Stat(place); err != nil {
			t.Skipf("%s is not there: shared/corpus is no part of the repository", place)
		}
		from = []string{place}
	}
	var out []string
	for _, p := range from {
		st, err := os.Stat(p)
		if err != nil && !filepath.IsAbs(p) { // a test runs in its folder; the path is most likely from the repository's root
			if r := filepath.Join("../..", p); exists(r) {
				p = r
				st, err = os.Stat(p)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if !st.IsDir() {
			out = append(out, p)
			continue
		}
		all, _ := filepath.Glob(filepath.Join(p, "logstash-*.jsonl"))
		out = append(out, all...)
		if p = filepath.Join(p, "syslog.jsonl"); exists(p) {
			out = append(out, p)
		}
	}
	return out
}

// try runs a case and tells how rsetl differs.
func try(c *Case) (r *Result, diff []string, err error) {
	switch c.Filter {
	case "syslog":
		diff, err = runSyslog(c)
		return &Result{}, diff, err
	case "multiline":
		diff, err = runMultiline(c)
		return &Result{}, diff, err
	}
	if r, err = Run(c); err == nil {
		diff = Judge(c, r)
	}
	return r, diff, err
}

func exists(p string) bool { _, err := os.Stat(p); return err == nil }

// TestFilters prints, for each filter, how many cases agree with Logstash, and fails below a filter's floor. With -v it
// lists each difference.
func TestFilters(t *testing.T) {
	sums := map[string]*tally{}
	var order []string
	for _, path := range paths(t) {
		cases, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			s := sums[c.Filter]
			if s == nil {
				s = &tally{}
				sums[c.Filter] = s
				order = append(order, c.Filter)
			}
			s.total++
			r, d, err := try(c)
			if err != nil {
				t.Errorf("%s:%d: %v", filepath.Base(path), c.Line, err)
				continue
			}
			if len(d) == 0 {
				s.agreed++
				continue
			}
			reason := Design(c, r)
			if reason != "" {
				s.design++
			}
			if testing.Verbose() {
				in := string(c.Input)
				if c.Text != "" {
					in = c.Text
				}
				in = fmt.Sprintf("%.300s", in)
				word := "differs"
				if reason != "" {
					word = "by design (" + reason + ")"
				}
				t.Logf("%s:%d %s: %s %s\n\t%s", filepath.Base(path), c.Line, word, c.RawOptions, in, strings.Join(d, "\n\t"))
			}
		}
	}
	slices.Sort(order)
	var all tally
	for _, f := range order {
		s := sums[f]
		all.agreed, all.design, all.total = all.agreed+s.agreed, all.design+s.design, all.total+s.total
		t.Logf("%s: %d/%d agreed, %d differ by design", f, s.agreed, s.total, s.design)
		if share := (s.agreed + s.design) * 1000 / s.total; share < floors[f] {
			t.Errorf("%s: %d of 1000 agree or differ by design, below the floor of %d", f, share, floors[f])
		}
	}
	t.Logf("all: %d/%d agreed, %d differ by design", all.agreed, all.total, all.design)
}
