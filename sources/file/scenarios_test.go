package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/sourcetest"
)

// life is a folder of files that change while a source reads them.
type life struct {
	*testing.T
	dir    string
	c      Config
	common sources.Common
	block  int
	store  *sourcetest.Store
	r      *running
	lost   int64
	before []string // what runs before the last restart have read
}

func (l *life) path(name string) string { return filepath.Join(l.dir, name) }

func (l *life) w(name string, lines ...string) { l.Helper(); write(l, l.path(name), join(lines)) }
func (l *life) a(name string, lines ...string) { l.Helper(); add(l, l.path(name), join(lines)) }
func (l *life) raw(name, text string)          { l.Helper(); add(l, l.path(name), text) }
func (l *life) mv(from, to string)             { l.Helper(); rename(l, l.path(from), l.path(to)) }
func (l *life) cp(from, to string) {
	l.Helper()
	b, err := os.ReadFile(l.path(from))
	if err != nil {
		l.Fatal(err)
	}
	write(l, l.path(to), string(b))
}
func (l *life) rm(name string) {
	l.Helper()
	if err := os.Remove(l.path(name)); err != nil {
		l.Fatal(err)
	}
}
func (l *life) empty(name string) {
	l.Helper()
	if err := os.Truncate(l.path(name), 0); err != nil {
		l.Fatal(err)
	}
}
func (l *life) link(target, name string) {
	l.Helper()
	if err := os.Symlink(target, l.path(name)); err != nil {
		l.Fatal(err)
	}
}

func join(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// begin starts the source over the patterns.
func (l *life) begin(patterns ...string) {
	l.Helper()
	l.c.Paths = nil
	for _, p := range patterns {
		l.c.Paths = append(l.c.Paths, l.path(p))
	}
	l.again()
}

func (l *life) again() {
	l.Helper()
	c := l.c
	c.Follow = true
	if c.Start == "" {
		c.Start = "beginning"
	}
	c.Poll, c.Scan = 5*ms, 10*ms
	if c.RotateWait == 0 {
		c.RotateWait = 40 * ms
	}
	s := build(l, c, l.common, false)
	s.notify = false
	if l.block > 0 {
		s.block = l.block
	}
	if l.store == nil {
		l.store = sourcetest.NewStore()
	}
	l.r = start(l, s, l.store)
}

// stop ends the run; what a last checkpoint commits is kept.
func (l *life) stop() {
	l.Helper()
	if l.r == nil {
		return
	}
	l.before = append(l.before, l.r.out.Messages()...)
	for _, x := range l.r.out.Losses() {
		l.lost += x.Bytes
	}
	l.store = l.r.end()
	l.r = nil
}

// n waits for that many records in this run.
func (l *life) n(n int) { l.Helper(); l.r.records(n) }

// ok waits until the run has read all and checks everything that was read, in any order between files.
func (l *life) ok(want ...string) {
	l.Helper()
	n := len(want) - len(l.before)
	l.r.wait(func(v sourcetest.View) bool { return v.Count() >= n && v.Idle() })
	l.stop()
	got := slices.Clone(l.before)
	slices.Sort(got)
	slices.Sort(want)
	equal(l, got, want)
	if l.lost > 0 {
		l.Errorf("%d bytes are lost", l.lost)
	}
}

// looked gives the source time for six looks at the folder: nothing tells of one that finds nothing.
func (l *life) looked() { time.Sleep(60 * time.Millisecond) }

func lines(n int, prefix string) []string {
	_, l := numbered(1, n, prefix)
	return l
}

// TestScenarios are sequences of file operations that other readers' suites have, by their numbers there: whatever happens to
// the files, every line is read once, and none is joined to another file's. Where others lose or double lines, this doesn't.
func TestScenarios(t *testing.T) {
	for _, s := range []struct {
		n    string
		what string
		do   func(l *life)
	}{
		// Renamed.
		{"1", "a partial line, renamed away, a new file that begins with a newline", func(l *life) {
			l.begin("*A.log")
			l.w("1A.log", "L1")
			l.n(1)
			l.raw("1A.log", "L2")
			l.w("new", "", "L3")
			l.mv("1A.log", "1.log.1")
			l.mv("new", "1A.log")
			l.ok("L1", "L2", "", "L3") // each file's lines are its own
		}},
		{"2", "a cascade in the glob", func(l *life) {
			l.begin("?B")
			l.w("1B", "L1")
			l.n(1)
			l.mv("1B", "2B")
			l.w("1B", "L2")
			l.n(2)
			l.mv("2B", "3B")
			l.mv("1B", "2B")
			l.w("1B", "L3")
			l.ok("L1", "L2", "L3")
		}},
		{"3, 4, 9", "a rename over another file", func(l *life) {
			l.begin("?C")
			l.w("1C", "L1", "L2")
			l.n(2)
			l.mv("1C", "2C")
			l.w("1C", "L3")
			l.n(3)
			l.mv("1C", "2C")
			l.w("1C", "L4")
			l.ok("L1", "L2", "L3", "L4")
		}},
		{"5", "renamed away while the reader lags", func(l *life) {
			l.block = 8
			l.begin("1E")
			l.w("1E", lines(65, "n")...)
			l.n(1)
			l.mv("1E", "out")
			l.w("1E", "new")
			l.ok(append(lines(65, "n"), "new")...)
		}},
		{"6, 13, 14, 18", "renamed in the glob, appended under the new name", func(l *life) {
			l.begin("*")
			l.w("a", "L1", "L2")
			l.n(2)
			l.mv("a", "b")
			l.a("b", "L3")
			l.w("a", "L4", "L5")
			l.ok("L1", "L2", "L3", "L4", "L5")
			if n := len(l.store.Splits); n != 2 {
				l.Errorf("%d splits", n)
			}
		}},
		{"7", "the same while the reader lags", func(l *life) {
			l.block = 8
			l.begin("*")
			l.w("a", lines(65, "n")...)
			l.n(1)
			l.mv("a", "b")
			l.a("b", "last")
			l.ok(append(lines(65, "n"), "last")...)
		}},
		{"8, 55, 56", "one file open at a time; another renamed away before its turn", func(l *life) {
			l.c.MaxOpen, l.block = 1, 64
			l.w("1J", lines(65, "one")...)
			l.w("2J", lines(65, "two")...)
			l.begin("?J")
			l.n(66)
			l.mv("2J", "out")
			l.ok(append(lines(65, "one"), lines(65, "two")...)...)
		}},
		{"10, 15, 16, 19, 57", "renamed away, then appended", func(l *life) {
			l.c.RotateWait = 10_000 * ms
			l.begin("a")
			l.w("a", "L1")
			l.n(1)
			l.mv("a", "out")
			l.looked()
			l.a("out", "L2", "L3")
			l.n(3)
			l.w("a", "L4")
			l.n(4)
			l.rm("out")
			l.ok("L1", "L2", "L3", "L4")
		}},
		{"11", "followed from its end, renamed in the glob, appended", func(l *life) {
			l.c.Start = "end"
			l.w("a", "old")
			l.begin("*")
			l.looked()
			l.mv("a", "b")
			l.a("b", "L1", "L2")
			l.ok("L1", "L2")
		}},
		{"12", "renamed before its turn", func(l *life) {
			l.c.MaxOpen = 1
			l.w("1", "one")
			l.w("2", "two")
			l.begin("*")
			l.mv("2", "3")
			l.ok("one", "two")
		}},
		{"17", "renamed away, a new one of the same length, the old removed", func(l *life) {
			l.begin("a")
			l.w("a", "x1", "x2", "x3")
			l.n(3)
			l.mv("a", "out")
			l.w("a", "y1", "y2", "y3")
			l.n(6)
			l.rm("out")
			l.ok("x1", "x2", "x3", "y1", "y2", "y3")
		}},
		{"21", "renamed while nothing runs", func(l *life) {
			l.begin("*")
			l.w("a", "L1")
			l.n(1)
			l.stop()
			l.mv("a", "a.old")
			l.w("a", "L2")
			l.again()
			l.ok("L1", "L2")
		}},
		// Copied and truncated.
		{"20, 23, 27, 33", "copied away and truncated", func(l *life) {
			l.begin("a")
			l.w("a", "L1", "L2")
			l.n(2)
			l.cp("a", "out")
			l.empty("a")
			l.looked()
			l.a("a", "L3")
			l.ok("L1", "L2", "L3")
		}},
		{"25, 26, 28", "truncated and written shorter at once", func(l *life) {
			l.begin("a")
			l.w("a", "L1", "L2", "L3", "L4")
			l.n(4)
			l.w("a", "5", "6")
			l.ok("L1", "L2", "L3", "L4", "5", "6")
		}},
		{"29", "truncated, nothing written", func(l *life) {
			l.begin("a")
			l.w("a", "L1")
			l.n(1)
			l.empty("a")
			l.looked()
			l.stop()
			l.a("a", "L2")
			l.again()
			l.ok("L1", "L2")
		}},
		// Links.
		{"31", "a file and a link to it", func(l *life) {
			l.w("a", "L1", "L2", "L3")
			l.link("a", "z")
			l.begin("a", "z")
			l.n(3)
			l.rm("z")
			l.empty("a")
			l.looked()
			l.a("a", "L4", "L5")
			l.ok("L1", "L2", "L3", "L4", "L5")
		}},
		{"32", "a link that goes and comes around a truncation", func(l *life) {
			l.w("a", "L1")
			l.link("a", "z")
			l.begin("*")
			l.n(1)
			l.rm("z")
			l.empty("a")
			l.looked()
			l.link("a", "z")
			l.a("a", "L2")
			l.ok("L1", "L2")
		}},
		{"34, 35", "a link that is turned to another file", func(l *life) {
			l.w("1", "one")
			l.w("2", "two")
			l.link("1", "now")
			l.begin("now")
			l.n(1)
			l.rm("now")
			l.link("2", "now")
			l.n(2)
			l.a("2", "three")
			l.ok("one", "two", "three")
		}},
		{"36", "a link that is removed, its file appended", func(l *life) {
			l.c.RotateWait = 10_000 * ms
			l.w("a", "L1")
			l.link("a", "now")
			l.begin("now")
			l.n(1)
			l.rm("now")
			l.a("a", "L2")
			l.ok("L1", "L2")
		}},
		// Removed.
		{"37, 38, 39", "removed after it was read, while it is read, before it is read", func(l *life) {
			l.block = 8
			l.begin("*")
			l.w("a", lines(30, "n")...)
			l.n(1)
			l.rm("a")
			l.n(30)
			l.w("b", "b")
			l.n(31)
			l.rm("b")
			l.w("c", "c")
			l.ok(append(lines(30, "n"), "b", "c")...)
		}},
		// Starts.
		{"40, 41", "from the end; a file that comes later from its beginning", func(l *life) {
			l.c.Start = "end"
			l.w("a", "old")
			l.begin("*")
			l.looked()
			l.a("a", "new")
			l.w("b", "b1", "b2")
			l.ok("new", "b1", "b2")
		}},
		{"42, 44, 45", "stopped, appended, started", func(l *life) {
			l.begin("a")
			l.w("a", "L1", "L2")
			l.n(2)
			l.stop()
			l.a("a", "L3", "L4", "L5")
			l.again()
			l.ok("L1", "L2", "L3", "L4", "L5")
		}},
		{"43, 48", "records of several lines around a restart", func(l *life) {
			l.common.Multiline = &sources.Multiline{Pattern: `^\s`, What: "previous", MaxLines: 500, MaxBytes: 1 << 20, Timeout: 30 * ms}
			l.begin("a")
			l.w("a", "one", " more", "two")
			l.n(2) // the second by the timeout
			l.stop()
			l.a("a", "three")
			l.again()
			l.ok("one\n more", "two", "three")
		}},
		{"50", "gone for long, its position is forgotten", func(l *life) {
			l.begin("*")
			l.w("a", "L1")
			l.n(1)
			l.rm("a")
			l.r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 })
			l.stop()
			l.w("b", "L2")
			l.again()
			l.ok("L1", "L2")
			for _, s := range l.store.Splits {
				if s.Path == l.path("b") {
					continue
				}
				if !s.Done {
					l.Errorf("%+v is still known", s)
				}
			}
		}},
		{"51, 54, 58, 59", "closed while idle, opened again when something comes", func(l *life) {
			l.c.MaxOpen = 1
			l.begin("?")
			l.w("a", "a1")
			l.n(1)
			l.w("b", "b1")
			l.n(2)
			l.a("a", "a2", "a3")
			l.n(4)
			l.a("b", "b2")
			l.ok("a1", "a2", "a3", "b1", "b2")
		}},
		// Identity.
		{"61", "empty, and without a whole line", func(l *life) {
			l.begin("*")
			l.w("a")
			l.raw("b", "half")
			l.looked()
			l.a("a", "a1")
			l.raw("b", " a line\n")
			l.ok("a1", "half a line")
		}},
		{"62, 63, 65", "two files that begin the same", func(l *life) {
			head := strings.Repeat("the same first line ", 100)
			l.begin("*")
			l.w("a", head, "a1")
			l.n(2)
			l.w("b", head, "b1")
			l.ok(head, "a1", head, "b1")
		}},
		{"64", "rotated and packed", func(l *life) {
			l.begin("a*")
			l.w("a", "L1", "L2")
			l.n(2)
			l.mv("a", "a.1")
			l.w("a", "L3")
			l.n(3)
			write(l, l.path("a.1.gz"), gz("L1\nL2\n"))
			l.rm("a.1")
			l.looked()
			l.a("a", "L4")
			l.ok("L1", "L2", "L3", "L4")
		}},
		// Lines.
		{"66", "a partial line, a pause, the rest", func(l *life) {
			l.begin("a")
			l.raw("a", "one, ")
			l.looked()
			l.raw("a", "two\n")
			l.ok("one, two")
		}},
		{"68", "empty lines", func(l *life) {
			l.begin("a")
			l.w("a", "1", "", "", "", "", "")
			l.ok("1", "", "", "", "", "")
		}},
		{"72", "a packed file of several members", func(l *life) {
			write(l, l.path("a.gz"), gz("L1\nL", "2\nL3\n"))
			l.begin("*")
			l.ok("L1", "L2", "L3")
		}},
		// Users' cases.
		{"cases", "a cascade that uses an inode again", func(l *life) {
			l.begin("a*")
			var want []string
			for i := range 30 {
				os.Remove(l.path("a.2"))
				os.Rename(l.path("a.1"), l.path("a.2"))
				os.Rename(l.path("a"), l.path("a.1"))
				l.w("a", fmt.Sprint("n", i))
				want = append(want, fmt.Sprint("n", i))
				l.n(i + 1)
			}
			l.ok(want...)
		}},
		{"cases", "deleted, a longer one at its place", func(l *life) {
			l.begin("a")
			l.w("a", lines(101, "x")...)
			l.n(101)
			l.rm("a")
			l.r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 })
			l.w("a", lines(10_100, "y")...)
			l.ok(append(lines(101, "x"), lines(10_100, "y")...)...)
		}},
		{"cases", "rotated in sub-folders", func(l *life) {
			if err := os.Mkdir(l.path("old"), 0o755); err != nil {
				l.Fatal(err)
			}
			l.begin("**/*.log")
			l.w("a.log", "L1")
			l.n(1)
			l.mv("a.log", "old/a.log")
			l.a("old/a.log", "L2")
			l.w("a.log", "L3")
			l.ok("L1", "L2", "L3")
		}},
	} {
		t.Run(s.n+" "+s.what, func(t *testing.T) {
			t.Parallel()
			s.do(&life{T: t, dir: t.TempDir()})
		})
	}
}

// TestScenariosLost are those where lines can't be had any more: that is counted. What was read stays read.
func TestScenariosLost(t *testing.T) {
	// 24, 30: truncated while the reader lags.
	l := &life{T: t, dir: t.TempDir(), block: 8}
	l.begin("a")
	l.w("a", lines(2000, "n")...)
	l.r.wait(func(v sourcetest.View) bool { return v.Count() >= 1 })
	l.w("a", "new")
	l.r.wait(func(v sourcetest.View) bool {
		last := v.Last()
		return len(last) > 0 && last[len(last)-1].Message() == "new"
	})
	l.stop()
	if all := len(join(lines(2000, "n"))); len(join(l.before)) < all+4 && l.lost == 0 {
		t.Error("lines are lost and nothing says so")
	}
	// Lines overwritten in place behind the reader are changes of what was read: the file is read again from its
	// beginning where that is noticed, and ahead of it they are what is read.
	l = &life{T: t, dir: t.TempDir()}
	l.begin("a")
	l.w("a", lines(50, "line ")...)
	l.n(50)
	f, err := os.OpenFile(l.path("a"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 50; i += 10 {
		if _, err := f.WriteAt([]byte("LINE"), int64(len(join(lines(i, "line "))))); err != nil && i > 0 {
			t.Fatal(err)
		}
	}
	f.Close()
	l.a("a", "end")
	l.r.wait(func(v sourcetest.View) bool {
		last := v.Last()
		return len(last) > 0 && last[len(last)-1].Message() == "end"
	})
	l.stop()
	for _, want := range append(lines(50, "line "), "end") {
		if !slices.Contains(l.before, want) {
			t.Errorf("%q is not among what was read", want)
		}
	}
}
