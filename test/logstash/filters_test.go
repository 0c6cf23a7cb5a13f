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

// floor is the share, in parts of a thousand, of each filter's cases that must agree: those left out whose answer is a fault
// that the corpus names, or was forced.
const floor = 970

type tally struct{ agreed, faults, forced, chosen, total int }

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

// TestFilters prints, for each filter, how many cases agree with Logstash, and fails below the floor, which is for the corpus
// itself: files of further cases may have few of a filter's. With -v it
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
			reason, why := Design(c, r)
			switch {
			case reason == "":
			case why == fault:
				s.faults++
			case why == forced:
				s.forced++
			default:
				s.chosen++
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
	line := func(name string, s *tally) {
		t.Logf("%s: %d/%d agreed; of the others %d are faults of Logstash's that the corpus names, %d were forced by its spec or a time-out, %d differ by choice, %d are open",
			name, s.agreed, s.total, s.faults, s.forced, s.chosen, s.total-s.agreed-s.faults-s.forced-s.chosen)
	}
	for _, f := range order {
		s := sums[f]
		all.agreed, all.faults, all.forced, all.chosen, all.total = all.agreed+s.agreed, all.faults+s.faults, all.forced+s.forced, all.chosen+s.chosen, all.total+s.total
		line(f, s)
		if n := s.total - s.faults - s.forced; len(corpus) == 0 && n > 0 && s.agreed*1000/n < floor {
			t.Errorf("%s: %d of 1000 agree, below the floor of %d", f, s.agreed*1000/n, floor)
		}
	}
	line("all", &all)
}
