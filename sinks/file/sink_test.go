package file

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load reads a configuration and builds the sink over a table with those fields.
func load(t testing.TB, text string, open bool, fields ...string) (*Sink, *record.Batch, error) {
	t.Helper()
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	errs := &config.Errors{File: "p.yaml"}
	var c Config
	ctx := &config.Context{Errs: errs}
	ctx.Decode(n.Content[0], &c)
	d := &steps.Decl{Errs: errs, Node: n.Content[0]}
	c.Declare(d)
	if errs.Failed() {
		return nil, nil, errs.Err()
	}
	table := record.NewTable()
	for _, f := range fields {
		table.Slot(f)
	}
	s, err := c.Build(&steps.Build{Decl: *d, Table: table, Compiler: &expr.Compiler{Table: table}, Now: time.Now, Ship: fields, OpenEnded: open})
	if err != nil {
		t.Fatal(err)
	}
	if errs.Failed() {
		return nil, nil, errs.Err()
	}
	return s.(*Sink), record.NewBatch(table), nil
}

func mustLoad(t testing.TB, text string, open bool, fields ...string) (*Sink, *record.Batch) {
	t.Helper()
	s, b, err := load(t, text, open, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// rig runs a sink as the core does, with a committed state that survives its crashes.
type rig struct {
	t         testing.TB
	config    string
	fields    []string
	s         *Sink
	b         *record.Batch
	committed []byte
	fresh     bool
	split     record.Split
	edit      func(*Sink) // before each start
}

func newRig(t testing.TB, config string, fields ...string) *rig {
	return &rig{t: t, config: config, fields: fields, fresh: true, split: record.Split{ID: "x"}}
}

func (r *rig) start() {
	r.t.Helper()
	r.s, r.b = mustLoad(r.t, r.config, true, r.fields...)
	if r.edit != nil {
		r.edit(r.s)
	}
	if err := r.s.Start(context.Background(), &sinks.Env{Fresh: r.fresh, State: r.committed}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.s.Stop(context.Background()) })
}

// crash leaves everything as a killed process does.
func (r *rig) crash() {
	r.s.Stop(context.Background())
}

// chunk encodes records, each a list of values for the fields, then of further names and values.
func (r *rig) chunk(rows ...[]string) (*sinks.Chunk, []error) {
	r.b.Reset()
	p := sinks.Part{Split: &r.split}
	var errs []error
	for _, row := range rows {
		i := r.b.Add(record.Position{}, record.Value{})
		for k, v := range row {
			if k < len(r.fields) {
				r.b.SetNamed(i, r.b.PutString(r.fields[k]), r.b.PutString(v))
			}
		}
		for k := len(r.fields); k+1 < len(row); k += 2 {
			r.b.SetNamed(i, r.b.PutString(row[k]), r.b.PutString(row[k+1]))
		}
		data, err := r.s.Encode(p.Data, r.b, i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Data = data
		p.Ends = append(p.Ends, len(data))
		p.Pos = append(p.Pos, record.Position{})
	}
	return &sinks.Chunk{Parts: []sinks.Part{p}}, errs
}

func (r *rig) try(c *sinks.Chunk) ([]sinks.Reject, error) {
	for {
		if !r.s.Ready() {
			state, err := r.s.Prepare(context.Background())
			if err != nil {
				return nil, err
			}
			r.committed = state
			if err := r.s.Prepared(context.Background()); err != nil {
				return nil, err
			}
		}
		rejects, err := r.s.Deliver(context.Background(), c)
		if !errors.Is(err, sinks.ErrUnprepared) {
			return rejects, err
		}
		if r.s.Ready() {
			r.t.Fatal("unprepared, but ready")
		}
	}
}

func (r *rig) deliver(rows ...[]string) []sinks.Reject {
	r.t.Helper()
	c, errs := r.chunk(rows...)
	for _, err := range errs {
		r.t.Fatal(err)
	}
	rejects, err := r.try(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return rejects
}

// checkpoint commits.
func (r *rig) checkpoint() {
	r.t.Helper()
	state, err := r.s.Mark(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	if state != nil {
		r.committed = state
	}
	r.fresh = false
	if err := r.s.Committed(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) holds(path, want string) {
	r.t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		r.t.Error(err)
	} else if string(got) != want {
		r.t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

func one(v string) []string { return []string{v} }

func TestCutAtStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "folder", "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	r.deliver(one("a"))
	r.checkpoint()
	r.deliver(one("b"), one("c"))
	r.crash()
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
	r.start()
	r.holds(path, "{\"v\":\"a\"}\n")
	r.deliver(one("b"))
	r.checkpoint()
	r.crash()
	r.start()
	r.deliver(one("c"))
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
	st, _ := os.Stat(path)
	dir, _ := os.Stat(filepath.Dir(path))
	if st.Mode().Perm()&^0o640 != 0 || dir.Mode().Perm()&^0o750 != 0 {
		t.Error(st.Mode(), dir.Mode())
	}
}

func TestNothingCommittedYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	r.deliver(one("a")) // its file and length 0 are committed by now
	r.crash()
	r.start()
	r.deliver(one("a"))
	r.holds(path, "{\"v\":\"a\"}\n")
}

func TestForeignFiles(t *testing.T) {
	old := "{\"v\":\"a\"}\n{\"v\":\"b\"}\n"
	for what, c := range map[string]struct {
		between func(path string)
		want    string // after the restart and row c
	}{
		"replaced by a longer one": {func(p string) { os.Rename(p, p+".old"); os.WriteFile(p, []byte("someone else's long text\n"), 0o600) }, "someone else's long text\n{\"v\":\"c\"}\n"},
		"replaced by the same":     {func(p string) { os.Rename(p, p+".old"); os.WriteFile(p, []byte(old), 0o600) }, old + "{\"v\":\"c\"}\n"},
		"removed":                  {func(p string) { os.Remove(p) }, "{\"v\":\"c\"}\n"},
		"truncated":                {func(p string) { os.Truncate(p, 0) }, "{\"v\":\"c\"}\n"},
		"truncated and written":    {func(p string) { os.WriteFile(p, []byte("another, longer than what was there\n"), 0o600) }, "another, longer than what was there\n{\"v\":\"c\"}\n"},
		"unfinished line":          {func(p string) { os.Rename(p, p+".old"); os.WriteFile(p, []byte("no end"), 0o600) }, "no end\n{\"v\":\"c\"}\n"},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.json")
			r := newRig(t, "{path: "+path+"}", "v")
			r.start()
			r.deliver(one("a"))
			r.checkpoint()
			r.deliver(one("b"))
			r.crash()
			c.between(path)
			r.start()
			r.deliver(one("c"))
			r.holds(path, c.want)
			if _, err := os.Stat(path + ".old"); err == nil {
				r.holds(path+".old", old)
			}
		})
	}
}

// What was there before the pipeline is kept, and is never cut.
func TestAppendAndOverwrite(t *testing.T) {
	for mode, want := range map[string]string{"append": "before\n{\"v\":\"a\"}\n{\"v\":\"b\"}\n", "overwrite": "{\"v\":\"a\"}\n{\"v\":\"b\"}\n"} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.json")
			os.WriteFile(path, []byte("before\n"), 0o600)
			r := newRig(t, "{path: "+path+", mode: "+mode+"}", "v")
			r.start()
			r.crash()
			r.start()
			r.deliver(one("a"))
			r.crash() // nothing is committed: again from the beginning
			r.start()
			r.deliver(one("a"))
			r.checkpoint()
			r.crash()
			r.start()
			r.deliver(one("b"))
			r.holds(path, want)
		})
	}
}

// A file that turns up after the first commit is appended to, as it would be after a restart.
func TestOverwriteEndsWithTheFirstCommit(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"early", "late"} {
		os.WriteFile(filepath.Join(dir, f), []byte("before\n"), 0o600)
	}
	r := newRig(t, "{path: '"+dir+"/%{f}', mode: overwrite}", "f")
	r.start()
	r.deliver(one("early"))
	r.checkpoint()
	r.deliver(one("early"), one("late"))
	r.holds(filepath.Join(dir, "early"), strings.Repeat("{\"f\":\"early\"}\n", 2))
	r.holds(filepath.Join(dir, "late"), "before\n{\"f\":\"late\"}\n")
}

func TestMovedWhileRunning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	r.deliver(one("a"))
	os.Rename(path, path+".1")
	r.deliver(one("b"))
	r.checkpoint()
	r.deliver(one("c"))
	r.checkpoint()
	r.holds(path+".1", "{\"v\":\"a\"}\n{\"v\":\"b\"}\n")
	r.holds(path, "{\"v\":\"c\"}\n")
	os.Truncate(path, 0)
	r.deliver(one("d"))
	r.holds(path, "{\"v\":\"d\"}\n")
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	r := newRig(t, "{path: "+path+", rotate: {size: 20, keep: 2}}", "v")
	now := time.Date(2026, 2, 24, 23, 59, 0, 0, time.UTC)
	r.edit = func(s *Sink) { s.now = func() time.Time { return now } }
	r.start()
	os.WriteFile(filepath.Join(dir, "out-mine.json"), nil, 0o600)
	r.deliver(one("a"), one("b"))
	r.deliver(one("c"))
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n") // not before a commit
	r.checkpoint()
	first := filepath.Join(dir, "out-20260224T235900Z.json")
	r.holds(first, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
	r.crash() // between the rotation and the next commit
	r.start()
	r.deliver(one("d"), one("e"))
	r.crash()
	r.start()
	r.holds(first, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
	r.deliver(one("d"), one("e"))
	r.checkpoint()
	r.holds(filepath.Join(dir, "out-20260224T235900Z-2.json"), "{\"v\":\"d\"}\n{\"v\":\"e\"}\n")
	for range 3 {
		now = now.Add(time.Hour)
		r.deliver(one("x"), one("y"))
		r.checkpoint()
	}
	var names []string
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		names = append(names, e.Name())
	}
	if want := []string{"out-20260225T015900Z.json", "out-20260225T025900Z.json", "out-mine.json"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

func TestRotationByTime(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	r := newRig(t, "{path: "+path+", rotate: {every: 1d}}", "v")
	now := time.Date(2026, 2, 24, 23, 59, 0, 0, time.UTC)
	r.edit = func(s *Sink) { s.now = func() time.Time { return now } }
	r.start()
	r.deliver(one("a"))
	r.checkpoint()
	r.holds(path, "{\"v\":\"a\"}\n")
	now = now.Add(2 * time.Minute)
	r.checkpoint()
	r.holds(path+"-20260225T000100Z", "{\"v\":\"a\"}\n")
	now = now.Add(23 * time.Hour)
	r.deliver(one("b"))
	r.checkpoint()
	r.holds(path, "{\"v\":\"b\"}\n")
}

func TestTemplates(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "{path: '"+dir+"/%{host}/x-%{app}.json'}", "host", "app")
	r.start()
	r.deliver([]string{"h1", "a"}, []string{"h2", "a"}, []string{"h1", "a"}, []string{"h1", "b"})
	r.checkpoint()
	r.deliver([]string{"h1", "a"}, []string{"h3", "c"})
	r.crash()
	r.start()
	r.holds(dir+"/h1/x-a.json", strings.Repeat("{\"host\":\"h1\",\"app\":\"a\"}\n", 2))
	r.holds(dir+"/h2/x-a.json", "{\"host\":\"h2\",\"app\":\"a\"}\n")
	r.holds(dir+"/h3/x-c.json", "")
	for path, why := range map[string]string{
		"..":                       "leaves its folder",
		".":                        "leaves its folder",
		"":                         "is empty",
		"a/b":                      "slash",
		"../../etc":                "slash",
		"a\x00":                    "NUL",
		strings.Repeat("long", 90): "bytes long",
	} {
		_, errs := r.chunk([]string{path, "a"})
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), why) {
			t.Errorf("%q: %v", path, errs)
		}
	}
	r.b.Reset()
	i := r.b.Add(record.Position{}, record.Value{})
	if _, err := r.s.Encode(nil, r.b, i); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Error(err)
	}
	// A name that is a folder already is no reason to stop for ever.
	os.MkdirAll(dir+"/h4/x-d.json", 0o700)
	rejects := r.deliver([]string{"h4", "d"}, []string{"h4", "e"}, []string{"h4", "d"})
	if len(rejects) != 2 || rejects[0].Row != 0 || rejects[1].Row != 2 || !strings.Contains(rejects[0].Reason, "directory") {
		t.Errorf("%+v", rejects)
	}
	r.holds(dir+"/h4/x-e.json", "{\"host\":\"h4\",\"app\":\"e\"}\n")
}

func TestTemplateRoots(t *testing.T) {
	for src, want := range map[string]layout{
		"/a/b/%{x}.json":          {root: "/a/b/", slashes: 3},
		"%{x}/%{y}":               {slashes: 1},
		"/a/%{+yyyy/MM}/b-%{x}":   {root: "/a/", slashes: 4},
		"/a%%b/%{[x][y]}/c%{z}/d": {root: "/a%b/", slashes: 4},
	} {
		if got := newLayout(src); got != want {
			t.Errorf("%s: %+v, want %+v", src, got, want)
		}
	}
}

// More files than may be open, or be known: all rows arrive once, through crashes.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "{path: '"+dir+"/%{f}'}", "f", "n")
	r.edit = func(s *Sink) { s.maxOpen, s.maxKnown = 3, 8 }
	r.start()
	dice := rand.New(rand.NewPCG(5, 6))
	want := map[string]string{} // committed
	next := map[string]string{}
	n := 0
	for range 300 {
		var rows [][]string
		for range 1 + dice.IntN(10) {
			f := fmt.Sprintf("f%d", dice.IntN(30))
			n++
			rows = append(rows, []string{f, fmt.Sprint(n)})
			next[f] += fmt.Sprintf("{\"f\":\"%s\",\"n\":\"%d\"}\n", f, n)
		}
		r.deliver(rows...)
		if r.s.open > 3 {
			t.Fatalf("%d handles", r.s.open)
		}
		switch dice.IntN(6) {
		case 0, 1:
			r.checkpoint()
			for f, s := range next {
				want[f] += s
			}
			clear(next)
			if len(r.s.files) > 8 {
				t.Errorf("%d files known", len(r.s.files))
			}
		case 2:
			r.crash()
			r.start()
			clear(next)
			for f := range want {
				r.holds(filepath.Join(dir, f), want[f])
			}
		}
	}
	r.checkpoint()
	for f, s := range next {
		want[f] += s
	}
	for f := range want {
		r.holds(filepath.Join(dir, f), want[f])
	}
}

// A disk that is full in the middle of a write: the retry leaves neither half nor double lines.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	r.deliver(one("a"))
	f := r.s.files[path]
	lim := &syscall.Rlimit{}
	syscall.Getrlimit(syscall.RLIMIT_FSIZE, lim)
	full := &syscall.Rlimit{Cur: uint64(f.len) + 15, Max: lim.Max} // SIGXFSZ is ignored by Go's runtime: EFBIG
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, full); err != nil {
		t.Skip(err)
	}
	c, _ := r.chunk(one("b"))
	more, _ := r.chunk(one("c"))
	c.Parts = append(c.Parts, more.Parts...)
	_, err := r.try(c)
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, lim)
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatal(err)
	}
	r.holds(path, "{\"v\":\"a\"}\n")
	if _, err := r.try(c); err != nil {
		t.Fatal(err)
	}
	r.checkpoint()
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
	r.deliver(one("d"))
	r.crash()
	r.start() // it must know its file again
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n{\"v\":\"c\"}\n")
}

// A failed fsync must not be followed by one that succeeds without the rows.
func TestFailedSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	r.deliver(one("a"))
	r.checkpoint()
	r.deliver(one("b"))
	r.s.fsync = func(*os.File) error { return syscall.EIO }
	_, err := r.s.Mark(context.Background())
	r.s.fsync = (*os.File).Sync
	if !errors.Is(err, syscall.EIO) || !r.s.files[path].dirty || !r.s.files[path].unsure {
		t.Fatal(err)
	}
	r.checkpoint()
	r.crash()
	r.start()
	r.holds(path, "{\"v\":\"a\"}\n{\"v\":\"b\"}\n")
}

func TestTwoSinksOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	r := newRig(t, "{path: "+path+"}", "v")
	r.start()
	s, _ := mustLoad(t, r.config, true, "v")
	if err := s.Start(context.Background(), &sinks.Env{}); err == nil || !strings.Contains(err.Error(), "another sink") {
		t.Error(err)
	}
	s.Stop(context.Background())
	r.crash()
	if err := s.Start(context.Background(), &sinks.Env{}); err != nil {
		t.Error(err)
	}
	s.Stop(context.Background())
}

// TestPathChanged: a file that the pipeline's path no longer means is left as it is: it may be another pipeline's.
func TestPathChanged(t *testing.T) {
	for name, c := range map[string]struct{ from, to, first string }{
		"constant":     {"{path: %s/x}", "{path: %s/y}", "x"},
		"from pattern": {"{path: '%s/a-%%{v}'}", "{path: %s/y}", "a-a"},
		"to pattern":   {"{path: %s/x}", "{path: '%s/b/%%{v}'}", "x"},
		"pattern":      {"{path: '%s/a/%%{v}'}", "{path: '%s/b/%%{v}'}", "a/a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRig(t, fmt.Sprintf(c.from, dir), "v")
			first := filepath.Join(dir, c.first)
			r.start()
			r.deliver(one("a"))
			r.checkpoint()
			r.deliver(one("a"))
			r.crash()
			r.config = fmt.Sprintf(c.to, dir)
			between := newRig(t, "{path: "+first+"}", "v")
			between.start()
			between.deliver(one("x"))
			between.crash()
			r.start()
			r.deliver(one("b"))
			r.crash()
			other := newRig(t, "{path: "+first+"}", "v")
			other.start()
			other.deliver(one("c"))
			other.crash()
			want := "{\"v\":\"a\"}\n{\"v\":\"a\"}\n{\"v\":\"x\"}\n{\"v\":\"c\"}\n"
			r.start()
			r.crash()
			r.holds(first, want)
			r.config = fmt.Sprintf(c.from, dir) // and back
			r.start()
			r.holds(first, want)
		})
	}
}

// TestPathTaken: the file is another's before the one that wrote it has started with its new path.
func TestPathTaken(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "{path: "+dir+"/x}", "v")
	r.start()
	r.deliver(one("a"))
	r.checkpoint()
	r.crash()
	other := newRig(t, r.config, "v")
	other.start()
	other.deliver(one("c"))
	r.config = "{path: " + dir + "/y}"
	r.start()
	r.deliver(one("b"))
	r.holds(dir+"/x", "{\"v\":\"a\"}\n{\"v\":\"c\"}\n")
	r.holds(dir+"/y", "{\"v\":\"b\"}\n")
}

func TestNoRegularFile(t *testing.T) {
	s, _ := mustLoad(t, "{path: /dev/null}", true, "v")
	if err := s.Start(context.Background(), &sinks.Env{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	syscall.Mkfifo(fifo, 0o600)
	s, _ = mustLoad(t, "{path: "+fifo+"}", true, "v")
	if err := s.Start(context.Background(), &sinks.Env{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func TestCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	r := newRig(t, `{path: `+path+`, format: csv, columns: {"a,b": v, two: w, n: "1", none: "NULL", empty: "''"}}`, "v", "w")
	r.start()
	values := []string{"plain", "with,comma", "with \"quotes\"", "two\nlines", " blank", "", "é", "\r"}
	var rows [][]string
	for _, v := range values {
		rows = append(rows, []string{v, "x"})
	}
	r.deliver(rows[:4]...)
	r.checkpoint()
	r.crash()
	r.start()
	r.deliver(rows[4:]...)
	text, _ := os.ReadFile(path)
	if !bytes.HasPrefix(text, []byte("\"a,b\",two,n,none,empty\nplain,x,1,,\"\"\n\"with,comma\",x,1,,\"\"\n\"with \"\"quotes\"\"\",x,1,,\"\"\n\"two\nlines\",x,1,,\"\"\n")) {
		t.Errorf("%s", text)
	}
	got, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(got) != 9 {
		t.Fatalf("%v: %q", err, got)
	}
	for i, v := range values {
		if want := []string{v, "x", "1", "", ""}; !reflect.DeepEqual(got[i+1], want) {
			t.Errorf("got %q, want %q", got[i+1], want)
		}
	}
	c, _ := r.chunk([]string{"a\"b\n", "x"})
	if d := string(r.s.Describe(nil, c.Parts[0].Row(0))); d != `{"a,b":"a\"b\n","two":"x","n":"1","none":"","empty":""}` {
		t.Error(d)
	}
}

func TestCSVOneColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	r := newRig(t, `{path: `+path+`, format: csv, columns: {a: x}}`, "v")
	r.start()
	r.deliver(one("1"))
	r.holds(path, "a\n\"\"\n")
}

func TestColumnsJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	r := newRig(t, `{path: `+path+`, columns: {b: UPPER(v), a.x: "1", a.y: v || '!'}}`, "v")
	r.start()
	r.deliver(one("q"))
	r.holds(path, `{"b":"Q","a":{"x":1,"y":"q!"}}`+"\n")
}

func TestLoadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{format: csv, path: /a}":               "list what to write in `columns:",
		"{}":                                    `key "path" is missing`,
		"{path: /a/}":                           "names a folder",
		"{path: /a, format: xml}":               "json, csv",
		"{path: /a, mode: truncate}":            "append, overwrite",
		"{path: '/a/../%{x}.json'}":             "without . and ..",
		"{path: /a, columns: {'@path': '1'}}":   "metadata",
		"{path: /a, columns: {x: 'nofunc(1)'}}": "p.yaml:1:",
		"{path: /a, rotate: {size: x}}":         "not a size",
		"{path: '/a%{'}":                        "not closed",
	} {
		if _, _, err := load(t, text, true, "v"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, _, err := load(t, "{format: csv, path: /a}", false, "v"); err != nil {
		t.Error(err)
	}
}

func TestConstPath(t *testing.T) {
	wd, _ := os.Getwd()
	for src, want := range map[string]string{"/a//b/../c": "/a/c", "x%%.json": filepath.Join(wd, "x%.json"), "/a/%{x}": ""} {
		tpl, err := expr.ParseTemplate(src)
		if err != nil {
			t.Fatal(err)
		}
		c := &Config{Path: steps.Template{Template: tpl}}
		if got, ok := c.ConstPath(); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v", src, got, ok)
		}
	}
}

// A model of the whole: random deliveries, faults, commits and crashes; committed rows are there
// once, in order, and nothing else is.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		dir := t.TempDir()
		path := filepath.Join(dir, "out.json")
		dice := rand.New(rand.NewPCG(seed, 7))
		r := newRig(t, "{path: "+path+", rotate: {size: 200}}", "v")
		r.start()
		committed, next := 0, 0
		for range 60 {
			switch dice.IntN(6) {
			case 0:
				r.checkpoint()
				committed = next
			case 1:
				r.crash()
				r.start()
				next = committed
			default:
				var rows [][]string
				for range 1 + dice.IntN(5) {
					rows = append(rows, one(fmt.Sprint(next)))
					next++
				}
				r.deliver(rows...)
			}
		}
		r.checkpoint()
		r.crash()
		var all []string
		list, _ := filepath.Glob(dir + "/out-*.json")
		sort.Slice(list, func(a, b int) bool { return rotatedOrder(list[a]) < rotatedOrder(list[b]) })
		for _, p := range append(list, path) {
			text, err := os.ReadFile(p)
			if err != nil && p != path {
				t.Fatal(err)
			}
			for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
				if line == "" {
					continue
				}
				var v struct{ V string }
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatalf("seed %d: %q: %v", seed, line, err)
				}
				all = append(all, v.V)
			}
		}
		if len(all) != next {
			t.Fatalf("seed %d: %d rows, want %d", seed, len(all), next)
		}
		for i, v := range all {
			if v != fmt.Sprint(i) {
				t.Fatalf("seed %d: row %d is %s", seed, i, v)
			}
		}
	}
}

func rotatedOrder(p string) string {
	m := rotatedSuffix.FindStringSubmatch(strings.TrimSuffix(p[strings.LastIndex(p, "/out")+4:], ".json"))
	return fmt.Sprintf("%s-%05s", m[1], m[2])
}

func BenchmarkFile(b *testing.B) {
	for what, config := range map[string]string{"constant": "{path: %s/out.json}", "template": "{path: '%s/%%{h}.json'}"} {
		b.Run(what, func(b *testing.B) {
			r := newRig(b, fmt.Sprintf(config, b.TempDir()), "h", "v")
			r.start()
			var rows [][]string
			for i := range 1000 {
				rows = append(rows, []string{fmt.Sprintf("host%d", i/10%10), strings.Repeat("x", 200)})
			}
			c, _ := r.chunk(rows...)
			b.SetBytes(int64(len(c.Parts[0].Data)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, err := r.try(c); err != nil {
					b.Fatal(err)
				}
				if n++; n%1000 == 0 { // keep the disk from filling
					for _, f := range r.s.files {
						f.h.Truncate(0)
						f.len, f.tail = 0, tail{}
					}
				}
			}
		})
	}
}
