package file

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/sourcetest"
)

const ms = config.Duration(time.Millisecond)

// quick is a following source that looks often.
func quick(t testing.TB, c Config) *Source {
	c.Follow = true
	if c.Start == "" {
		c.Start = "beginning"
	}
	c.Poll, c.Scan = 5*ms, 10*ms
	if c.RotateWait == 0 {
		c.RotateWait = 40 * ms
	}
	s := build(t, c, sources.Common{}, false)
	s.notify = false
	return s
}

func gz(s ...string) string {
	var b bytes.Buffer
	for _, m := range s {
		w := gzip.NewWriter(&b)
		w.Write([]byte(m))
		w.Close()
	}
	return b.String()
}

func zst(s ...string) string {
	var b bytes.Buffer
	for _, m := range s {
		w, _ := zstd.NewWriter(&b)
		w.Write([]byte(m))
		w.Close()
	}
	return b.String()
}

func numbered(from, to int, prefix string) (text string, lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("%s%d", prefix, i))
	}
	return strings.Join(lines, "\n") + "\n", lines
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// At whichever moment a checkpoint was made, a restart reads exactly the rest.
func TestRestartEverywhere(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for i := range 150 {
		fmt.Fprintf(&text, "%d %s", i, strings.Repeat("x", rnd.IntN(60)))
		text.WriteString([]string{"\n", "\r\n", "\n\n", "\n  more\n"}[rnd.IntN(4)])
	}
	text.WriteString("last")
	var utf16 []byte
	for _, b := range []byte(text.String()) {
		utf16 = append(utf16, b, 0)
	}
	ml := &sources.Multiline{Pattern: `^\s`, What: "previous", MaxLines: 500, MaxBytes: 1 << 20, Timeout: 5000 * ms}
	for name, tc := range map[string]struct {
		content string
		common  sources.Common
	}{
		"plain":     {text.String(), sources.Common{}},
		"gzip":      {gz(text.String()[:1000], text.String()[1000:]), sources.Common{}},
		"zstd":      {zst(text.String()[:1000], text.String()[1000:]), sources.Common{}},
		"utf-16":    {"\xff\xfe" + string(utf16), sources.Common{Encoding: "utf-16"}},
		"multiline": {text.String(), sources.Common{Multiline: ml}},
	} {
		d := t.TempDir()
		write(t, filepath.Join(d, "a"), tc.content)
		write(t, filepath.Join(d, "b"), "other\n"+tc.content[:0])
		s := build(t, Config{Paths: []string{d + "/*"}}, tc.common, true)
		s.block = 170
		out := once(t, s, sourcetest.NewStore())
		all := out.Messages()
		if len(all) < 100 {
			t.Fatal(name, len(all))
		}
		for k := range out.Events() + 1 {
			store, before := out.At(k)
			again := once(t, s, store)
			var got []string
			for _, r := range before {
				got = append(got, r.Message())
			}
			// What was in a before b stays so; compare as sets of the two files' rests.
			got = append(got, again.Messages()...)
			if !slices.Equal(got, all) {
				t.Fatalf("%s, checkpoint after event %d: %d records, want %d\n%q", name, k, len(got), len(all), again.Messages())
			}
			if len(again.Losses()) > 0 {
				t.Error(name, again.Losses())
			}
		}
	}
}

// What a restart trusts.
func TestTrust(t *testing.T) {
	head, headLines := numbered(1, 300, "a line of the beginning ") // over 1 KiB
	rest, restLines := numbered(1, 50, "one of the end ")
	for name, tc := range map[string]struct {
		change func(p string)
		want   []string
	}{
		"unchanged":  {func(p string) {}, nil},
		"longer":     {func(p string) { add(t, p, "more\n") }, []string{"more"}},
		"other":      {func(p string) { write(t, p, strings.ToUpper(head+rest)) }, strings.Split(strings.ToUpper(strings.TrimSuffix(head+rest, "\n")), "\n")},
		"shorter":    {func(p string) { write(t, p, head) }, headLines},
		"empty":      {func(p string) { write(t, p, "") }, nil},
		"end other":  {func(p string) { write(t, p, head+strings.ReplaceAll(rest, "end", "eNd")) }, append(slices.Clone(headLines), replaceAll(restLines, "end", "eNd")...)},
		"head other": {func(p string) { write(t, p, "A"+(head + rest)[1:]) }, append(append([]string{"A" + headLines[0][1:]}, headLines[1:]...), restLines...)},
		"atomically replaced by a longer one": {func(p string) {
			write(t, p+".tmp", head+rest+"more\n")
			rename(t, p+".tmp", p)
		}, []string{"more"}},
		"deleted, a new one that begins otherwise": {func(p string) {
			os.Remove(p)
			write(t, p, "new\n")
		}, []string{"new"}},
	} {
		d := t.TempDir()
		p := filepath.Join(d, "a.log")
		write(t, p, head+rest)
		s := build(t, Config{Paths: []string{d + "/*.log"}}, sources.Common{}, true)
		s.block = 1000
		first := once(t, s, sourcetest.NewStore())
		id := first.Records()[0].Split
		tc.change(p)
		again := once(t, s, first.Commit())
		if !slices.Equal(again.Messages(), tc.want) {
			t.Errorf("%s: got %d records %.200q, want %d", name, again.Count(), again.Messages(), len(tc.want))
		}
		for _, r := range again.Records() {
			if (r.Split == id) != (r.Message() == "more") {
				t.Fatalf("%s: %q is of split %s, the first was %s", name, r.Message(), r.Split, id)
			}
		}
	}
}

func replaceAll(in []string, a, b string) (out []string) {
	for _, s := range in {
		out = append(out, strings.ReplaceAll(s, a, b))
	}
	return
}

// Two files whose first KiB is alike are two files.
func TestSameBeginning(t *testing.T) {
	d := t.TempDir()
	head, lines := numbered(1, 200, "header ")
	write(t, filepath.Join(d, "a"), head+"a\n")
	write(t, filepath.Join(d, "b"), head+"b\n")
	s := build(t, Config{Paths: []string{d + "/*"}}, sources.Common{}, true)
	out := once(t, s, sourcetest.NewStore())
	equal(t, out.Messages(), slices.Concat(lines, []string{"a"}, lines, []string{"b"}))
	write(t, filepath.Join(d, "c"), head+"c\n")
	equal(t, once(t, s, out.Commit()).Messages(), slices.Concat(lines, []string{"c"}))
}

func TestRenameRotation(t *testing.T) {
	for _, inside := range []bool{true, false} {
		for _, notify := range []bool{true, false} {
			d := t.TempDir()
			p := filepath.Join(d, "a.log")
			to := filepath.Join(d, "a.log.1")
			glob := d + "/a.log"
			if inside {
				glob += "*"
			}
			s := quick(t, Config{Paths: []string{glob}})
			s.notify = notify
			r := start(t, s, sourcetest.NewStore())
			write(t, p, "1\n2\n")
			r.records(2)
			f, _ := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			rename(t, p, to)
			f.WriteString("3\n")
			write(t, p, "4\n")
			r.wait(func(v sourcetest.View) bool { return v.Count() == 4 })
			f.WriteString("5 without its end")
			f.Close()
			add(t, p, "6\n")
			if inside {
				r.wait(func(v sourcetest.View) bool { return v.Count() == 5 })
				add(t, to, "!\n")
				r.wait(func(v sourcetest.View) bool { return v.Count() == 6 })
			} else {
				// Nothing more comes of the old one: its last line is a record.
				r.wait(func(v sourcetest.View) bool { return v.Count() == 6 && v.Finished() == 1 })
			}
			got := r.out.Messages()
			slices.Sort(got)
			last := "5 without its end"
			if inside {
				last += "!"
			}
			equal(t, got, []string{"1", "2", "3", "4", last, "6"})
			r.end()
		}
	}
}

// The file is renamed while nothing runs: its rest and the new one are read.
func TestRenamedWhileDown(t *testing.T) {
	for _, glob := range []string{"/a.log", "/a.log*"} {
		d := t.TempDir()
		p := filepath.Join(d, "a.log")
		s := quick(t, Config{Paths: []string{d + glob}})
		write(t, p, "1\n2\n")
		r := start(t, s, sourcetest.NewStore())
		r.records(2)
		store := r.end()
		add(t, p, "3\n")
		rename(t, p, p+".1")
		write(t, p, "4\n")
		r = start(t, s, store)
		r.wait(func(v sourcetest.View) bool { return v.Count() >= 2 })
		store = r.end()
		got := r.out.Messages()
		slices.Sort(got)
		equal(t, got, []string{"3", "4"})
		r = start(t, s, store)
		add(t, p, "5\n")
		r.wait(func(v sourcetest.View) bool { return v.Count() >= 1 })
		equal(t, r.out.Messages(), []string{"5"})
		r.end()
	}
}

func TestCascade(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{d + "/a.log*"}})
	r := start(t, s, sourcetest.NewStore())
	var want []string
	for i := range 20 {
		for j := 3; j > 0; j-- {
			os.Rename(fmt.Sprintf("%s.%d", p, j), fmt.Sprintf("%s.%d", p, j+1))
		}
		os.Rename(p, p+".1")
		os.Remove(p + ".4")
		write(t, p, fmt.Sprintf("line %d\n", i))
		want = append(want, fmt.Sprintf("line %d", i))
		r.wait(func(v sourcetest.View) bool { return v.Count() >= i+1 })
	}
	equal(t, r.out.Messages(), want)
	r.end()
}

// While the pipeline is blocked a file is rotated out of the glob thrice; all of it is read.
func TestRotationWhileBlocked(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p}})
	s.block = 16
	out := sourcetest.New(sourcetest.NewStore(), s.table)
	gate := make(chan struct{})
	out.Block = func(ctx context.Context) error {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return nil
	}
	text, want := numbered(1, 100, "n")
	write(t, p, text)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, out: out, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, out) }()
	for i := range 3 {
		r.wait(func(v sourcetest.View) bool { return v.Splits() == i+1 })
		rename(t, p, filepath.Join(d, fmt.Sprintf("old%d", i)))
		text, lines := numbered(1, 30, fmt.Sprintf("r%d-", i))
		write(t, p, text)
		want = append(want, lines...)
	}
	r.wait(func(v sourcetest.View) bool { return v.Splits() == 4 })
	for i := range 3 {
		os.Remove(filepath.Join(d, fmt.Sprintf("old%d", i)))
	}
	close(gate)
	r.wait(func(v sourcetest.View) bool { return v.Count() == len(want) && v.Finished() == 3 })
	got := out.Messages()
	slices.Sort(got)
	slices.Sort(want)
	equal(t, got, want)
	r.end()
}

func TestTruncated(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p}})
	r := start(t, s, sourcetest.NewStore())
	write(t, p, "1\n2\n3\nhalf")
	r.records(3)
	write(t, p, "4\n") // shorter
	r.wait(func(v sourcetest.View) bool { return v.Count() >= 5 && v.Idle() })
	equal(t, r.out.Messages(), []string{"1", "2", "3", "half", "4"})
	// Longer than it was, within one look.
	write(t, p, "5 is a longer line than all before\n6\n")
	r.records(7)
	equal(t, r.out.Messages()[5:], []string{"5 is a longer line than all before", "6"})
	// The same length.
	write(t, p, "7 is a longer line than all before\n8\n")
	r.records(9)
	equal(t, r.out.Messages()[7:], []string{"7 is a longer line than all before", "8"})
	write(t, p, "")
	r.wait(func(v sourcetest.View) bool { return v.Splits() == 5 })
	write(t, p, "9\n")
	r.records(10)
	equal(t, r.out.Messages()[9:], []string{"9"})
	if l := r.out.Losses(); len(l) != 0 {
		t.Error(l)
	}
	ids := map[string]bool{}
	for _, x := range r.out.Records() {
		ids[x.Split] = true
	}
	if len(ids) != 5 {
		t.Errorf("%d splits", len(ids))
	}
	r.end()
}

// What is cut off before it was read is counted.
func TestTruncatedUnread(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p}})
	s.block = 10
	out := sourcetest.New(sourcetest.NewStore(), s.table)
	gate, in := make(chan struct{}), make(chan struct{}, 1000)
	out.Block = func(ctx context.Context) error {
		in <- struct{}{}
		<-gate
		return nil
	}
	text, _ := numbered(1, 100, "line")
	write(t, p, text)
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, out: out, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx, out) }()
	<-in
	write(t, p, "new\n")
	close(gate)
	r.wait(func(v sourcetest.View) bool { return len(v.Lost()) > 0 && v.Idle() })
	bytesRead := int64(0)
	for _, m := range out.Messages() {
		bytesRead += int64(len(m)) + 1
	}
	recs := out.Records()
	if recs[len(recs)-1].Message() != "new" {
		t.Errorf("%q", out.Messages())
	}
	bytesRead -= 4
	lost := out.Losses()[0].Bytes
	// A line that was cut in the middle is a record without its newline.
	if n := lost + bytesRead; n != int64(len(text)) && n != int64(len(text))+1 {
		t.Errorf("%d lost, %d read, of %d", lost, bytesRead, len(text))
	}
	r.end()
}

// copytruncate: the copy carries on what was unread, and nothing is read twice.
func TestCopyTruncate(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p + "*"}})
	r := start(t, s, sourcetest.NewStore())
	write(t, p, "1\n2\n")
	r.records(2)
	id := r.out.Records()[0].Split
	write(t, p+".1", "1\n2\n3\n") // "3" was appended between our look and the copy
	write(t, p, "4\n")
	r.records(4)
	recs := r.out.Records()
	got := r.out.Messages()
	slices.Sort(got)
	equal(t, got, []string{"1", "2", "3", "4"})
	for _, x := range recs {
		if (x.Split == id) != (x.Message() != "4") {
			t.Errorf("%q is of %s", x.Message(), x.Split)
		}
	}
	store := r.end()
	add(t, p, "5\n")
	r = start(t, s, store)
	r.records(1)
	equal(t, r.out.Messages(), []string{"5"})
	r.end()
}

// A complete copy of a file that goes on waits, and isn't read again.
func TestCopyWaits(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{d + "/*"}})
	r := start(t, s, sourcetest.NewStore())
	write(t, p, "1\n2\n")
	r.records(2)
	write(t, p+".copy", "1\n2\n")
	write(t, filepath.Join(d, "b"), "b\n")
	r.records(3)
	equal(t, r.out.Messages(), []string{"1", "2", "b"})
	os.Remove(p)
	r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 && v.Splits() == 3 })
	add(t, p+".copy", "3\n")
	r.records(4)
	equal(t, r.out.Messages(), []string{"1", "2", "b", "3"})
	r.end()
}

// A file that is deleted and written anew is read from its start, also where it begins the same.
func TestDeletedAndAnew(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p}})
	r := start(t, s, sourcetest.NewStore())
	text, lines := numbered(1, 101, "line ")
	write(t, p, text)
	r.records(101)
	os.Remove(p)
	// The clock of file times ticks more slowly than this goes: the new one is to be later.
	r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 })
	long, longLines := numbered(1, 10_100, "line ")
	write(t, p, long)
	r.wait(func(v sourcetest.View) bool { return v.Count() >= 101+10_100 })
	equal(t, r.out.Messages(), slices.Concat(lines, longLines))
	r.end()
}

// The packed copy is there already when it starts, and the original still is.
func TestCopyAtStart(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "b.log")
	s := quick(t, Config{Paths: []string{d + "/*"}})
	r := start(t, s, sourcetest.NewStore())
	text, _ := numbered(1, 500, "some line ")
	write(t, p, text)
	r.records(500)
	store := r.end()
	write(t, filepath.Join(d, "a.gz"), gz(text))
	r = start(t, s, store)
	r.wait(func(v sourcetest.View) bool { return v.Splits() == 1 && v.Idle() })
	os.Remove(p)
	r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 && v.Splits() == 2 })
	write(t, filepath.Join(d, "c"), "c\n")
	r.records(1)
	equal(t, r.out.Messages(), []string{"c"})
	r.end()
}

// Two splits of the store were of one inode number; the file is the one that it fits.
func TestInodeUsedAgain(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	for i := range 8 { // the order of a map is not to matter
		os.Remove(p)
		s := build(t, Config{Paths: []string{p}}, sources.Common{}, true)
		write(t, p, fmt.Sprintf("first %d\n", i))
		one := once(t, s, sourcetest.NewStore()).Commit()
		write(t, p, fmt.Sprintf("second %d\n", i)) // the same inode
		out := once(t, s, one)
		equal(t, out.Messages(), []string{fmt.Sprintf("second %d", i)})
		two := out.Commit()
		if len(two.Splits) != 2 {
			t.Fatal(len(two.Splits))
		}
		for id, st := range two.Splits {
			st.Done = false
			delete(st.Meta, "gone")
			two.Splits[id] = st
		}
		add(t, p, "third\n")
		equal(t, once(t, s, two).Messages(), []string{"third"})
	}
}

// gzip, as logrotate does it: the packed copy of what was read isn't read again.
func TestCompressedRotation(t *testing.T) {
	for _, down := range []bool{false, true} {
		d := t.TempDir()
		p := filepath.Join(d, "a.log")
		s := quick(t, Config{Paths: []string{d + "/a.log*"}})
		r := start(t, s, sourcetest.NewStore())
		text, lines := numbered(1, 500, "some line ")
		write(t, p, text)
		r.records(500)
		var store *sourcetest.Store
		if down {
			store = r.end()
		}
		rename(t, p, p+".1")
		write(t, p, "new\n")
		if !down {
			r.records(501)
		}
		write(t, p+".1.gz", gz(text+"late\n"))
		os.Remove(p + ".1")
		want := append(slices.Clone(lines), "new", "late")
		if down {
			r = start(t, s, store)
			want = []string{"new", "late"}
		}
		r.records(len(want))
		got := r.out.Messages()
		slices.Sort(got)
		slices.Sort(want)
		equal(t, got, want)
		store = r.end()
		equal(t, once(t, build(t, Config{Paths: []string{d + "/a.log*"}}, sources.Common{}, true), store).Messages(), nil)
	}
}

func TestCompressed(t *testing.T) {
	d := t.TempDir()
	text, lines := numbered(1, 20_000, "a line of some length ")
	whole := gz(text)
	write(t, filepath.Join(d, "a.gz"), gz("1\n2", "2\n", "", "3\n"))
	write(t, filepath.Join(d, "b.log"), zst("z1\n", "z2"))
	write(t, filepath.Join(d, "c"), gz(""))
	write(t, filepath.Join(d, "d"), whole)
	s := build(t, Config{Paths: []string{d + "/*"}}, sources.Common{}, true)
	equal(t, once(t, s, sourcetest.NewStore()).Messages(), append([]string{"1", "22", "3", "z1", "z2"}, lines...))
	for name, content := range map[string]string{"cut off": whole[:len(whole)/2], "damaged": whole[:len(whole)/2] + strings.Repeat("\xaa", 100) + whole[len(whole)/2+100:], "trailing": whole + "garbage"} {
		d := t.TempDir()
		write(t, filepath.Join(d, "a.gz"), content)
		write(t, filepath.Join(d, "b"), "b\n")
		out := once(t, build(t, Config{Paths: []string{d + "/*"}}, sources.Common{}, true), sourcetest.NewStore())
		got := out.Messages()
		if len(got) < 100 || got[len(got)-1] != "b" || got[50] != lines[50] {
			t.Errorf("%s: %d records", name, len(got))
		}
		if len(out.Troubles()) == 0 || len(out.Losses()) == 0 || !strings.Contains(out.Losses()[0].Reason, "damaged or incomplete") {
			t.Errorf("%s: %v %v", name, out.Troubles(), out.Losses())
		}
	}
}

// A gzip file that is still written is read as far as it goes, then on.
func TestCompressedGrows(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.gz")
	s := quick(t, Config{Paths: []string{p}})
	r := start(t, s, sourcetest.NewStore())
	text, lines := numbered(1, 5000, "a line ")
	whole := gz(text)
	add(t, p, whole[:1])
	add(t, p, whole[1:len(whole)/2])
	r.wait(func(v sourcetest.View) bool { return v.Trouble() != nil })
	add(t, p, whole[len(whole)/2:])
	r.wait(func(v sourcetest.View) bool { return v.Count() == 5000 && v.Trouble() == nil })
	add(t, p, gz("another\n"))
	r.wait(func(v sourcetest.View) bool { return v.Count() == 5001 })
	equal(t, r.out.Messages(), append(lines, "another"))
	r.end()
}

func TestStart(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	write(t, p, "old\n")
	write(t, filepath.Join(d, "old.log.gz"), gz("packed\n"))
	s := quick(t, Config{Paths: []string{d + "/*"}, Start: "end"})
	r := start(t, s, sourcetest.NewStore())
	r.wait(func(v sourcetest.View) bool { return v.Idle() })
	add(t, p, "new\n")
	r.records(1)
	write(t, filepath.Join(d, "b.log"), "later\n")
	r.records(2)
	equal(t, r.out.Messages(), []string{"new", "later"})
	store := r.end()
	write(t, filepath.Join(d, "c.log"), "while down\n")
	r = start(t, s, store)
	r.records(1)
	equal(t, r.out.Messages(), []string{"while down"})
	r.end()
	// Stopped before anything was read: the place is committed.
	r = start(t, s, sourcetest.NewStore())
	r.wait(func(v sourcetest.View) bool { return v.Idle() })
	store = r.end()
	add(t, p, "after\n")
	r = start(t, s, store)
	r.records(1)
	equal(t, r.out.Messages(), []string{"after"})
	r.end()
}

func TestDefaults(t *testing.T) {
	for _, tc := range []struct {
		start        string
		follow, once bool
		end          bool
	}{{"", true, false, true}, {"", false, false, false}, {"", true, true, false}, {"end", true, true, true}, {"beginning", true, false, false}} {
		s := build(t, Config{Paths: []string{"/x"}, Start: tc.start, Follow: tc.follow}, sources.Common{}, tc.once)
		if s.atEnd != tc.end || s.once != (tc.once || !tc.follow) {
			t.Errorf("%+v: %v %v", tc, s.atEnd, s.once)
		}
	}
}

func TestGlobs(t *testing.T) {
	d := t.TempDir()
	for _, p := range []string{"a.log", "b.txt", "x/c.log", "x/y/d.log", "x/y/skip.log", "[odd].log"} {
		os.MkdirAll(filepath.Dir(filepath.Join(d, p)), 0o755)
		write(t, filepath.Join(d, p), p+"\n")
	}
	os.Symlink(filepath.Join(d, "a.log"), filepath.Join(d, "z.log"))
	os.Symlink(filepath.Join(d, "x"), filepath.Join(d, "link"))
	os.Mkdir(filepath.Join(d, "folder.log"), 0o755)
	for _, tc := range []struct {
		paths, exclude, want []string
	}{
		{[]string{"/*.log"}, nil, []string{"[odd].log", "a.log"}},
		{[]string{"/**/*.log"}, []string{"skip*"}, []string{"[odd].log", "a.log", "x/c.log", "x/y/d.log"}},
		{[]string{"/**/*.log"}, []string{d + "/x/**"}, []string{"[odd].log", "a.log"}},
		{[]string{"/{a,b}.*"}, nil, []string{"a.log", "b.txt"}},
		{[]string{"/[odd].log"}, nil, []string{"[odd].log"}},
		{[]string{"/b.txt", "/a.log", "/z.log"}, nil, []string{"a.log", "b.txt"}},
		{[]string{"/link/*.log"}, nil, []string{"x/c.log"}},
		{[]string{"/nothing*"}, nil, nil},
	} {
		for i := range tc.paths {
			tc.paths[i] = d + tc.paths[i]
		}
		out := once(t, build(t, Config{Paths: tc.paths, Exclude: tc.exclude}, sources.Common{}, true), sourcetest.NewStore())
		got := out.Messages()
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q: got %q, want %q", tc.paths, got, tc.want)
		}
		if len(tc.want) == 0 && (len(out.Troubles()) != 1 || !strings.Contains(out.Troubles()[0].Error(), "no file matches")) {
			t.Error(out.Troubles())
		}
	}
}

func TestRefused(t *testing.T) {
	d := t.TempDir()
	fifo := filepath.Join(d, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	write(t, filepath.Join(d, "a"), "a\n")
	for path, want := range map[string]string{fifo: "pipe", d: "folder"} {
		s := build(t, Config{Paths: []string{path, filepath.Join(d, "a")}}, sources.Common{}, true)
		out := sourcetest.New(sourcetest.NewStore(), s.table)
		if err := s.Run(context.Background(), out); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		equal(t, out.Messages(), []string{"a"})
		// Following: said once, the others go on.
		s = quick(t, Config{Paths: []string{path, filepath.Join(d, "a")}})
		r := start(t, s, sourcetest.NewStore())
		r.records(1)
		r.end()
		if n := len(r.out.Troubles()); n != 1 {
			t.Errorf("%d troubles: %v", n, r.out.Troubles())
		}
	}
}

func TestPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	d := t.TempDir()
	p := filepath.Join(d, "a")
	write(t, p, "a\n")
	os.Chmod(p, 0)
	r := start(t, quick(t, Config{Paths: []string{d + "/*"}}), sourcetest.NewStore())
	r.wait(func(v sourcetest.View) bool { return v.Trouble() != nil })
	os.Chmod(p, 0o600)
	r.wait(func(v sourcetest.View) bool { return v.Count() == 1 && v.Trouble() == nil })
	r.end()
}

func TestManyFiles(t *testing.T) {
	for _, finite := range []bool{false, true} {
		d := t.TempDir()
		var want []string
		for i := range 40 {
			write(t, filepath.Join(d, fmt.Sprintf("%02d", i)), fmt.Sprintf("%d\n", i))
			want = append(want, fmt.Sprint(i))
		}
		if finite {
			s := build(t, Config{Paths: []string{d + "/*"}, MaxOpen: 3}, sources.Common{}, true)
			equal(t, once(t, s, sourcetest.NewStore()).Messages(), want)
			continue
		}
		s := quick(t, Config{Paths: []string{d + "/*"}, MaxOpen: 3})
		r := start(t, s, sourcetest.NewStore())
		r.records(40)
		for i := range 40 {
			add(t, filepath.Join(d, fmt.Sprintf("%02d", i)), fmt.Sprintf("%d again\npart", i))
			want = append(want, fmt.Sprintf("%d again", i))
		}
		r.records(80)
		for i := range 40 {
			add(t, filepath.Join(d, fmt.Sprintf("%02d", i)), fmt.Sprintf("%d\n", i))
			want = append(want, fmt.Sprintf("part%d", i))
		}
		r.records(120)
		got := r.out.Messages()
		slices.Sort(got)
		slices.Sort(want)
		equal(t, got, want)
		for end := time.Now().Add(10 * time.Second); openFiles(d) > 3; time.Sleep(time.Millisecond) { // a look at a file opens it for a moment
			if time.Now().After(end) {
				t.Fatalf("%d files are open", openFiles(d))
			}
		}
		r.end()
	}
}

// openFiles counts this process's open files below a folder.
func openFiles(dir string) (n int) {
	des, _ := os.ReadDir("/proc/self/fd")
	for _, de := range des {
		if p, err := os.Readlink("/proc/self/fd/" + de.Name()); err == nil && strings.HasPrefix(p, dir) {
			n++
		}
	}
	return
}

func TestMultilineFollow(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	c := Config{Paths: []string{p}, Follow: true, Start: "beginning", Poll: 5 * ms, Scan: 10 * ms}
	common := sources.Common{Multiline: &sources.Multiline{Pattern: `^\s`, What: "previous", MaxLines: 500, MaxBytes: 1 << 20, Timeout: 30 * ms}}
	s := build(t, c, common, false)
	s.notify = false
	write(t, p, "a\n  b\nc\n")
	r := start(t, s, sourcetest.NewStore())
	r.records(2)
	equal(t, r.out.Messages(), []string{"a\n  b", "c"})
	store := r.end()
	// An open record isn't committed: it comes whole after a restart.
	common.Multiline.Timeout = 3600_000 * ms
	s = build(t, c, common, false)
	add(t, p, "d\n  e\n")
	r = start(t, s, store)
	r.wait(func(v sourcetest.View) bool { return v.Idle() })
	if r.out.Count() != 0 {
		t.Errorf("%q", r.out.Messages())
	}
	store = r.end()
	add(t, p, "  f\ng\n")
	r = start(t, s, store)
	r.records(1)
	equal(t, r.out.Messages(), []string{"d\n  e\n  f"})
	r.end()
}

func TestLongLine(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	write(t, p, "ok\n"+strings.Repeat("x", 100_000)+"\nalso\n")
	s := build(t, Config{Paths: []string{p}, MaxLine: 1000}, sources.Common{}, true)
	s.block = 512
	recs := once(t, s, sourcetest.NewStore()).Records()
	if len(recs) != 3 || recs[1].Failed == "" || len(recs[1].Raw) != 1000 || recs[2].Message() != "also" || recs[2].Pos.Offset != 100_004 {
		t.Fatalf("%d records, %v", len(recs), recs)
	}
}

func TestMetadata(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	write(t, p, "a\nb\n")
	recs := once(t, build(t, Config{Paths: []string{p}}, sources.Common{}, true), sourcetest.NewStore()).Records()
	if f := recs[1].Fields; f["@path"] != p || f["@offset"] != "2" || len(f["@split"]) != 32 || f["@split"] != recs[1].Split {
		t.Errorf("%v", f)
	}
}

// Appending random pieces while it runs and restarts gives each line once, in order.
func TestRandomLife(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	s := quick(t, Config{Paths: []string{p + "*"}})
	s.block = 50
	store := sourcetest.NewStore()
	var all, got []string
	part, n, rotated := "", 0, 0
	r := start(t, s, store)
	for range 300 {
		switch rnd.IntN(12) {
		case 0: // stop at some moment; what isn't committed comes again
			r.stop()
			<-r.done
			k := rnd.IntN(r.out.Events() + 1)
			st, recs := r.out.At(k)
			for _, x := range recs {
				got = append(got, x.Message())
			}
			r = start(t, s, st)
		case 1:
			if part == "" && n > 0 {
				os.Rename(p, fmt.Sprintf("%s.%d", p, rotated))
				rotated++
			}
		default:
			text := part + fmt.Sprintf("line %d %s", n, strings.Repeat("y", rnd.IntN(80)))
			if part != "" {
				text = strings.Repeat("z", rnd.IntN(5))
			}
			add(t, p, text)
			part += text
			if rnd.IntN(3) > 0 {
				add(t, p, "\n")
				all = append(all, part)
				part = ""
				n++
			}
		}
	}
	if part != "" {
		add(t, p, "\n")
		all = append(all, part)
	}
	r.wait(func(v sourcetest.View) bool { return len(got)+v.Count() >= len(all) && v.Idle() })
	got = append(got, r.out.Messages()...)
	r.end()
	slices.Sort(got)
	slices.Sort(all)
	equal(t, got, all)
}

// A position is found again by what stands before it, whatever batches were read behind it before each of several kills.
func TestAnchorStays(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("line %04d", i))
	}
	write(t, p, strings.Join(want, "\n")+"\n")
	for first := 1; first < 12; first++ {
		for second := 0; second < 8; second++ {
			store := sourcetest.NewStore()
			var got []string
			for run, block := range []int{50, 20, 30, 4096} {
				s := quick(t, Config{Paths: []string{p}})
				s.block = block
				r := start(t, s, store)
				left := len(want) - len(got)
				r.wait(func(v sourcetest.View) bool { return v.Count() >= left })
				r.end()
				k := r.out.Events()
				if run < 3 {
					k = min(k, []int{first, second, second}[run])
				}
				st, recs := r.out.At(k)
				for _, x := range recs {
					got = append(got, x.Message())
				}
				store = st
			}
			if !slices.Equal(got, want) {
				t.Fatalf("kills after %d and %d events: %d lines, want %d", first, second, len(got), len(want))
			}
		}
	}
}

// Notices alone are enough where polling takes for ever.
func TestNotices(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	write(t, p, "1\n")
	s := build(t, Config{Paths: []string{d + "/*.log"}, Follow: true, Start: "beginning", Poll: 3600_000 * ms, Scan: 3600_000 * ms, RotateWait: 10 * ms}, sources.Common{}, false)
	r := start(t, s, sourcetest.NewStore())
	r.records(1)
	for i := range 20 {
		add(t, p, fmt.Sprintf("line %d\n", i))
		r.records(i + 2)
	}
	write(t, filepath.Join(d, "b.log"), "b\n")
	r.records(22)
	rename(t, p, p+".1")
	write(t, p, "new\n")
	r.records(23)
	r.end()
}

// A finite run of a file that is written all the time ends, with no half a line.
func TestOnceGrowing(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a.log")
	write(t, p, "1\n2\nha")
	s := build(t, Config{Paths: []string{p}}, sources.Common{}, true)
	s.block = 2
	out := sourcetest.New(sourcetest.NewStore(), s.table)
	out.Block = func(context.Context) error { add(t, p, "lf\nha"); return nil }
	if err := s.Run(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	equal(t, out.Messages(), []string{"1", "2"})
	equal(t, once(t, s, out.Commit()).Messages(), []string{"half", "half", "ha"})
}

// The budget is never asked for while something is held, and blocks stay within it.
func TestBudget(t *testing.T) {
	d := t.TempDir()
	text, lines := numbered(1, 3000, "a line ")
	write(t, filepath.Join(d, "a"), text)
	write(t, filepath.Join(d, "b"), text)
	s := build(t, Config{Paths: []string{d + "/*"}}, sources.Common{}, true)
	s.block = 1000
	out := sourcetest.New(sourcetest.NewStore(), s.table)
	out.Budget = 2500
	if err := s.Run(context.Background(), out); err != nil {
		t.Fatal(err)
	}
	equal(t, out.Messages(), slices.Concat(lines, lines))
}

// Many packed files are read with few decoders.
func TestManyPacked(t *testing.T) {
	d := t.TempDir()
	n := 0
	for i := range 30 {
		text, lines := numbered(1, 50+20*i, fmt.Sprintf("file %d line ", i))
		pack := gz
		if i%2 == 0 {
			pack = zst
		}
		write(t, filepath.Join(d, fmt.Sprintf("%02d", i)), pack(text))
		n += len(lines)
	}
	s := quick(t, Config{Paths: []string{d + "/*"}})
	s.block = 100
	r := start(t, s, sourcetest.NewStore())
	r.records(n)
	store := r.end()
	r = start(t, s, store)
	r.wait(func(v sourcetest.View) bool { return v.Splits() == 30 && v.Idle() })
	if r.out.Count() != 0 {
		t.Error(r.out.Count())
	}
	r.end()
}

// A path that becomes a folder, and a file again.
func TestBecomesFolder(t *testing.T) {
	d := t.TempDir()
	p := filepath.Join(d, "a")
	s := quick(t, Config{Paths: []string{p}})
	r := start(t, s, sourcetest.NewStore())
	write(t, p, "1\n")
	r.records(1)
	os.Remove(p)
	os.Mkdir(p, 0o755)
	r.wait(func(v sourcetest.View) bool { return v.Finished() == 1 && v.Trouble() != nil })
	os.Remove(p)
	write(t, p, "2\n")
	r.records(2)
	r.end()
}

func BenchmarkFile(b *testing.B) {
	d := b.TempDir()
	p := filepath.Join(d, "big.log")
	var buf bytes.Buffer
	for i := 0; buf.Len() < 64<<20; i++ {
		fmt.Fprintf(&buf, "10.0.%d.%d - - [24/Feb/2026:23:13:%02d +0000] \"GET /index%d.html HTTP/1.1\" 200 %d \"-\" \"curl/8.0\"\n", i%256, i%250, i%60, i%1000, i)
	}
	write(b, p, buf.String())
	size := int64(buf.Len())
	for _, block := range []int{64 << 10, 128 << 10, 256 << 10} {
		b.Run(fmt.Sprintf("bare/%dKiB", block>>10), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			buf := make([]byte, block)
			for b.Loop() {
				f, _ := os.Open(p)
				for {
					m, err := f.Read(buf)
					for q := buf[:m]; ; {
						i := bytes.IndexByte(q, '\n')
						if i < 0 {
							break
						}
						q = q[i+1:]
					}
					if err != nil {
						break
					}
				}
				f.Close()
			}
		})
		b.Run(fmt.Sprintf("source/%dKiB", block>>10), func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			t := record.NewTable()
			t.Slot("message")
			for b.Loop() {
				s := build(b, Config{Paths: []string{p}}, sources.Common{}, true)
				s.table, s.block = t, block
				out := sourcetest.New(sourcetest.NewStore(), t)
				out.Discard = true
				if err := s.Run(context.Background(), out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
