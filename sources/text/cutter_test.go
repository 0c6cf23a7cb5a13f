package text

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
)

func table() *record.Table {
	t := record.NewTable()
	for _, n := range []string{"message", "@path", "@offset", "@split", "@received", "@source"} {
		t.Slot(n)
	}
	return t
}

// rec is a record as the tests write it.
type rec struct {
	off  int64
	msg  string
	fail bool
}

func (r rec) String() string { return fmt.Sprintf("{%d %.80q %v}", r.off, r.msg, r.fail) }

// cutAll gives the stream to a Cutter in pieces of those sizes (the last one again and again) and
// returns the records and each batch's End.
func cutAll(t testing.TB, f *Format, c *Cutter, stream []byte, sizes []int, final bool) (recs []rec, ends []int64) {
	t.Helper()
	b := record.NewBatch(tab)
	at := int64(0)
	take := func(n int, mode Mode) {
		b.Reset()
		p := c.Begin(b, n)
		if len(p) != n {
			t.Fatalf("Begin gave %d for %d", len(p), n)
		}
		if c.ReadOffset() != at {
			t.Fatalf("ReadOffset %d, want %d", c.ReadOffset(), at)
		}
		copy(p, stream[at:])
		at += int64(n)
		start := c.End()
		c.Cut(b, n, mode)
		if b.Start.Offset != start || b.End.Offset != c.End() || b.End.Offset < start || b.End.Offset > at {
			t.Fatalf("batch from %v to %v, cutter %d", b.Start, b.End, c.End())
		}
		fails := map[int32]bool{}
		for _, f := range b.Fails {
			fails[f.Rec] = true
		}
		for i := range b.Len() {
			msg := string(b.Bytes(b.Get(i, b.Table.Find("message"))))
			off := b.Pos(i).Offset
			if off < start || off >= b.End.Offset {
				t.Fatalf("record at %d in a batch from %d to %d", off, start, b.End.Offset)
			}
			if got := b.Get(i, b.Table.Find("@offset")).Int(); got != off {
				t.Fatalf("@offset %d at %d", got, off)
			}
			if got := string(b.Bytes(b.Get(i, b.Table.Find("@path")))); got != "p" {
				t.Fatalf("@path %q", got)
			}
			recs = append(recs, rec{off, msg, fails[int32(i)]})
		}
		end := c.End()
		if want := stream[max(0, end-TailLen):end]; !bytes.HasSuffix(want, c.Tail()) || len(c.Tail()) != len(want) {
			t.Fatalf("tail before %d is %q, want %q", end, c.Tail(), want)
		}
		before := c.Before()
		if want := stream[max(0, at-TailLen):at]; !bytes.Equal(want, before) {
			t.Fatalf("before %d is %q, want %q", at, before, want)
		}
		if end > start {
			ends = append(ends, end)
		}
	}
	for i := 0; at < int64(len(stream)); i++ {
		n := sizes[min(i, len(sizes)-1)]
		take(min(n, len(stream)-int(at)), More)
	}
	if final {
		take(0, Final)
		if c.Held() != 0 {
			t.Fatalf("%d bytes held after the end", c.Held())
		}
	}
	return recs, ends
}

var tab = table()

func format(t testing.TB, o Options) *Format {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLines(t *testing.T) {
	utf16 := func(s string, le bool) string {
		var out []byte
		for _, r := range s {
			if le {
				out = append(out, byte(r), byte(r>>8))
			} else {
				out = append(out, byte(r>>8), byte(r))
			}
		}
		return string(out)
	}
	for _, tc := range []struct {
		name, enc, in string
		max           int
		want          []rec
	}{
		{name: "empty", in: ""},
		{name: "LF", in: "a\nbc\n", want: []rec{{0, "a", false}, {2, "bc", false}}},
		{name: "CRLF", in: "a\r\nbc\r\n", want: []rec{{0, "a", false}, {3, "bc", false}}},
		{name: "no final newline", in: "a\nb", want: []rec{{0, "a", false}, {2, "b", false}}},
		{name: "empty lines", in: "\n\n\r\na\n\n", want: []rec{{0, "", false}, {1, "", false}, {2, "", false}, {4, "a", false}, {6, "", false}}},
		{name: "a CR alone stays", in: "a\rb\n\r", want: []rec{{0, "a\rb", false}, {4, "\r", false}}},
		{name: "two CRs", in: "a\r\r\n", want: []rec{{0, "a\r", false}}},
		{name: "NUL", in: "a\x00b\n\x00\n", want: []rec{{0, "a\x00b", false}, {4, "\x00", false}}},
		{name: "invalid UTF-8", in: "\xff\xfe\xc3\n\xe9", want: []rec{{0, "\xff\xfe\xc3", false}, {4, "\xe9", false}}},
		{name: "BOM", in: "\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n", want: []rec{{3, "a", false}, {5, "\xEF\xBB\xBFb", false}}},
		{name: "BOM only", in: "\xEF\xBB\xBF"},
		{name: "half a BOM", in: "\xEF\xBB", want: []rec{{0, "\xEF\xBB", false}}},
		{name: "nearly a BOM", in: "\xEF\xBBx\n", want: []rec{{0, "\xEF\xBBx", false}}},
		{name: "at the limit", max: 3, in: "abc\nabc\r\nabc", want: []rec{{0, "abc", false}, {4, "abc", false}, {9, "abc", false}}},
		{name: "over the limit", max: 3, in: "abcd\nx\nabcd\r\nabcd", want: []rec{{0, "abc", true}, {5, "x", false}, {7, "abc", true}, {13, "abc", true}}},
		{name: "far over the limit", max: 3, in: strings.Repeat("x", 5000) + "\nb\n" + strings.Repeat("y", 3000), want: []rec{{0, "xxx", true}, {5001, "b", false}, {5003, "yyy", true}}},
		{name: "utf-16le", enc: "utf-16le", in: utf16("añ\r\n\u0a0a\u0d0a\n本", true), want: []rec{{0, "añ", false}, {8, "\u0a0a\u0d0a", false}, {14, "本", false}}},
		{name: "utf-16be", enc: "UTF-16BE", in: utf16("añ\r\n\u0a0a\u0a00\n本", false), want: []rec{{0, "añ", false}, {8, "\u0a0a\u0a00", false}, {14, "本", false}}},
		{name: "utf-16 with BOM", enc: "utf-16", in: "\xFF\xFE" + utf16("a\nb\n", true), want: []rec{{2, "a", false}, {6, "b", false}}},
		{name: "utf-16 without", enc: "utf-16", in: utf16("a\nb\n", false), want: []rec{{0, "a", false}, {4, "b", false}}},
		{name: "utf-16le whose BOM says be", enc: "utf-16le", in: "\xFE\xFF" + utf16("a\nb", false), want: []rec{{2, "a", false}, {6, "b", false}}},
		{name: "utf-16le, half a unit at the end", enc: "utf-16le", in: "a\x00\n\x00b", want: []rec{{0, "a", false}, {4, "\uFFFD", false}}},
		{name: "utf-16le far over the limit", enc: "utf-16le", max: 5, in: utf16(strings.Repeat("x", 2001)+"\nb\n", true), want: []rec{{0, "x\x00x\x00x\x00", true}, {4004, "b", false}}},
		{name: "utf-32le", enc: "utf-32le", in: "a\x00\x00\x00\n\x00\x00\x00b\x00\x00\x00", want: []rec{{0, "a", false}, {8, "b", false}}},
		{name: "latin 1", enc: "iso-8859-1", in: "caf\xe9\r\nabc\n\x80", want: []rec{{0, "café", false}, {6, "abc", false}, {10, "\u0080", false}}},
		{name: "windows-1252", enc: "windows-1252", in: "\x93q\x94\n", want: []rec{{0, "“q”", false}}},
		{name: "cp1252", enc: "cp1252", in: "\x80\n", want: []rec{{0, "€", false}}},
		{name: "windows-1251", enc: "Windows-1251", in: "\xcf\xf0\n", want: []rec{{0, "Пр", false}}},
		{name: "gbk", enc: "gbk", in: "\xc4\xe3\xba\xc3 a\nb\n", want: []rec{{0, "你好 a", false}, {7, "b", false}}},
		{name: "gb18030", enc: "gb18030", in: "\x81\x30\x81\x30\n", want: []rec{{0, "\u0080", false}}},
		{name: "shift_jis", enc: "shift_jis", in: "\x83\x5c\x83\x5c\nb\\\n", want: []rec{{0, "ソソ", false}, {5, "b\\", false}}},
		{name: "euc-kr", enc: "euc-kr", in: "\xc7\xd1\n", want: []rec{{0, "한", false}}},
		{name: "iso-2022-jp", enc: "iso-2022-jp", in: "\x1b$B$\"\x1b(B\nb\n", want: []rec{{0, "あ", false}, {9, "b", false}}},
		{name: "ascii", enc: "us-ascii", in: "a\xffb\n", want: []rec{{0, "a\uFFFDb", false}}},
	} {
		f := format(t, Options{MaxLine: tc.max, Encoding: tc.enc})
		for size := 1; size <= len(tc.in)+1; size++ {
			if size > 20 && size < len(tc.in) && size%97 != 0 {
				continue
			}
			got, _ := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), []byte(tc.in), []int{size}, true)
			if !slices.Equal(got, tc.want) {
				t.Fatalf("%s, blocks of %d:\ngot  %v\nwant %v", tc.name, size, got, tc.want)
			}
		}
	}
}

func TestHalfLinesWait(t *testing.T) {
	in := "first\r\nsecond\n\nthird"
	f := format(t, Options{})
	for i := range len(in) + 1 {
		got, _ := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), []byte(in[:i]), []int{1}, false)
		if want := strings.Count(in[:i], "\n"); len(got) != want {
			t.Errorf("%q gave %d records, want %d", in[:i], len(got), want)
		}
	}
}

func TestUnknownEncoding(t *testing.T) {
	if _, err := New(Options{Encoding: "klingon"}); err == nil || !strings.Contains(err.Error(), "klingon") {
		t.Error(err)
	}
}

// A long line takes no more memory than its limit, and the copies stay linear.
func TestLongLineMemory(t *testing.T) {
	f := format(t, Options{MaxLine: 10_000})
	c := f.NewCutter(tab, "s", "p", 0, nil)
	b := record.NewBatch(tab)
	for range 1000 {
		b.Reset()
		n := c.Want(4096)
		p := c.Begin(b, n)
		for i := range p {
			p[i] = 'x'
		}
		c.Cut(b, n, More)
		if b.Len() != 0 || c.Memory() > 64<<10 {
			t.Fatalf("%d records, %d bytes kept", b.Len(), c.Memory())
		}
	}
	b.Reset()
	copy(c.Begin(b, 3), "\na\n")
	c.Cut(b, 3, More)
	if b.Len() != 2 || len(b.Fails) != 1 || b.Bytes(b.Raw(0))[0] != 'x' || b.Raw(0).Len() != 10_000 || string(b.Bytes(b.Raw(1))) != "a" {
		t.Fatal(b.Len(), b.Fails)
	}
	if len(b.Sel) != 1 || b.Sel[0] != 1 {
		t.Fatal(b.Sel)
	}
}

// model is the obvious way to cut UTF-8 without multiline.
func model(in []byte, limit int) (out []rec) {
	at := 0
	if bytes.HasPrefix(in, []byte("\xEF\xBB\xBF")) {
		at = 3
	}
	for at < len(in) {
		line, next := in[at:], len(in)
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line, next = line[:i], at+i+1
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		r := rec{int64(at), string(line), false}
		if len(line) > limit {
			r.msg, r.fail = string(line[:limit]), true
		}
		out = append(out, r)
		at = next
	}
	return
}

func checkCut(t testing.TB, in []byte, limit int, sizes []int) {
	f := format(t, Options{MaxLine: limit})
	got, ends := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), in, sizes, true)
	want := model(in, limit)
	if !slices.Equal(got, want) {
		t.Fatalf("%q, limit %d, blocks %v:\ngot  %v\nwant %v", in, limit, sizes, got, want)
	}
	// From each end the exact rest comes.
	for _, e := range ends {
		c := f.NewCutter(tab, "s", "p", e, in[:min(4, len(in))])
		c.SetTail(in[:e])
		rest := resume(t, c, in, e, sizes)
		var wantRest []rec
		for _, r := range want {
			if r.off >= e {
				wantRest = append(wantRest, r)
			}
		}
		if !slices.Equal(rest, wantRest) {
			t.Fatalf("%q from %d: got %v, want %v", in, e, rest, wantRest)
		}
	}
}

// resume is cutAll for a Cutter that begins later.
func resume(t testing.TB, c *Cutter, in []byte, at int64, sizes []int) (recs []rec) {
	b := record.NewBatch(tab)
	for i := 0; ; i++ {
		n := min(sizes[min(i, len(sizes)-1)], len(in)-int(at))
		b.Reset()
		copy(c.Begin(b, n), in[at:])
		at += int64(n)
		mode := More
		if at == int64(len(in)) {
			mode = Final
		}
		c.Cut(b, n, mode)
		for i := range b.Len() {
			recs = append(recs, rec{b.Pos(i).Offset, string(b.Bytes(b.Get(i, 0))), false})
		}
		for _, f := range b.Fails {
			recs[len(recs)-b.Len()+int(f.Rec)].fail = true
		}
		if mode == Final {
			return
		}
	}
}

func TestRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		var in []byte
		for range rnd.IntN(40) {
			switch rnd.IntN(8) {
			case 0:
				in = append(in, '\n')
			case 1:
				in = append(in, '\r', '\n')
			case 2:
				in = append(in, '\r')
			case 3:
				in = append(in, "\xEF\xBB\xBF"...)
			case 4:
				in = append(in, bytes.Repeat([]byte{'z'}, rnd.IntN(1200))...)
			default:
				in = append(in, "abcdefgh"[:rnd.IntN(8)]...)
			}
		}
		var sizes []int
		for range 1 + rnd.IntN(6) {
			sizes = append(sizes, 1+rnd.IntN([]int{3, 30, 3000}[rnd.IntN(3)]))
		}
		checkCut(t, in, 1+rnd.IntN(20), sizes)
	}
}

func FuzzCut(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nlonger than the limit\nx"), uint8(7), uint8(3))
	f.Add([]byte("\xEF\xBB\xBF\n\xff\x00"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, limit, size uint8) {
		if len(in) > 1500 { // the rest is read again from each place
			return
		}
		checkCut(t, in, int(limit)+1, []int{int(size) + 1})
	})
}

func TestLastLine(t *testing.T) {
	for _, tc := range []struct {
		enc, in string
		want    int64
	}{
		{"", "", 0}, {"", "abc", 0}, {"", "abc\n", 4}, {"", "a\nbc", 2}, {"", "\n", 1},
		{"", strings.Repeat("x", 70_000) + "\n" + strings.Repeat("y", 70_000), 70_001},
		{"", "a\n" + strings.Repeat("y", 3_000_000), 3_000_002},
		{"utf-16le", "a\x00\n\x00b\x00", 4}, {"utf-16le", "a\x00\x01\x0a\x00b", 0}, {"utf-16", "\xFF\xFEa\x00\n\x00b\x00", 6},
		{"utf-16be", "\x00a\x00\n\x0a\x00\x0a", 4},
	} {
		f := format(t, Options{Encoding: tc.enc})
		got, err := f.LastLine(bytes.NewReader([]byte(tc.in)), int64(len(tc.in)))
		if err != nil || got != tc.want {
			t.Errorf("%s %.40q: %d %v, want %d", tc.enc, tc.in, got, err, tc.want)
		}
	}
}

func TestUTF16Resume(t *testing.T) {
	in := "\xFF\xFEa\x00\n\x00b\x00\n\x00"
	f := format(t, Options{Encoding: "utf-16"})
	got := resume(t, f.NewCutter(tab, "s", "p", 6, []byte(in)), []byte(in), 6, []int{1})
	if !slices.Equal(got, []rec{{6, "b", false}}) {
		t.Errorf("%v", got)
	}
}

// Multiline

func multi(t testing.TB, pattern, what string, negate bool, maxLines, maxBytes int) *Multiline {
	return &Multiline{Pattern: regexp.MustCompile(pattern), Negate: negate, Next: what == "next", Timeout: 5 * time.Second, MaxLines: maxLines, MaxBytes: maxBytes}
}

func TestMultiline(t *testing.T) {
	for _, tc := range []struct {
		name, enc string
		m         *Multiline
		max       int
		in        string
		want      []rec
	}{
		{name: "previous", m: multi(t, `^\s`, "previous", false, 500, 1<<20), in: "a\n b\n\tc\nd\ne\n f", want: []rec{{0, "a\n b\n\tc", false}, {8, "d", false}, {10, "e\n f", false}}},
		{name: "CRLF is joined with LF", m: multi(t, `^\s`, "previous", false, 500, 1<<20), in: "a\r\n b\r\nc\r\n", want: []rec{{0, "a\n b", false}, {7, "c", false}}},
		{name: "endings mixed", m: multi(t, `^\s`, "previous", false, 500, 1<<20), in: "a\n b\r\n c\n d\r\n", want: []rec{{0, "a\n b\n c\n d", false}}},
		{name: "next", m: multi(t, `\\$`, "next", false, 500, 1<<20), in: "a\\\nb\nc\nd\\\n", want: []rec{{0, "a\\\nb", false}, {5, "c", false}, {7, "d\\", false}}},
		{name: "empty lines within stay", m: multi(t, `^\d`, "previous", true, 500, 1<<20), in: "1\n\nx\n2\n", want: []rec{{0, "1\n\nx", false}, {5, "2", false}}},
		{name: "nothing but empty lines is no record", m: multi(t, `^\s`, "previous", false, 500, 1<<20), in: "\n\na\n\n"},
		{name: "max_lines", m: multi(t, `^\s`, "previous", false, 2, 1<<20), in: "a\n b\n c\n d\n", want: []rec{{0, "a\n b\n c", false}, {8, " d", false}}},
		{name: "max_bytes", m: multi(t, `^\s`, "previous", false, 500, 5), in: "abc\n de\n fg\nh\n", want: []rec{{0, "abc\n de", false}, {8, " fg", false}, {12, "h", false}}},
		{name: "a line over the limit ends the record", m: multi(t, `^\s`, "previous", false, 500, 1<<20), max: 4, in: "a\n b\n cdef\n g\nh\n", want: []rec{{0, "a\n b", false}, {5, " cde", true}, {11, " g", false}, {14, "h", false}}},
		{name: "a line far over the limit", m: multi(t, `^\s`, "previous", false, 500, 1<<20), max: 4, in: "a\n b\n " + strings.Repeat("x", 3000) + "\n g\nh\n", want: []rec{{0, "a\n b", false}, {5, " xxx", true}, {3007, " g", false}, {3010, "h", false}}},
		{name: "utf-16", enc: "utf-16le", m: multi(t, `^\s`, "previous", false, 500, 1<<20), in: "a\x00\n\x00 \x00b\x00\r\x00\n\x00\xe9\x00\n\x00", want: []rec{{0, "a\n b", false}, {12, "é", false}}},
	} {
		f := format(t, Options{MaxLine: tc.max, Encoding: tc.enc, Multiline: tc.m})
		if tc.name == "nothing but empty lines is no record" {
			tc.want = []rec{{2, "a", false}}
		}
		for size := 1; size <= len(tc.in)+1; size++ {
			if size > 20 && size%97 != 0 {
				continue
			}
			got, ends := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), []byte(tc.in), []int{size}, true)
			if !slices.Equal(got, tc.want) {
				t.Fatalf("%s, blocks of %d:\ngot  %v\nwant %v", tc.name, size, got, tc.want)
			}
			for _, e := range ends {
				rest := resume(t, f.NewCutter(tab, "s", "p", e, nil), []byte(tc.in), e, []int{size})
				i := slices.IndexFunc(tc.want, func(r rec) bool { return r.off >= e })
				if i < 0 {
					i = len(tc.want)
				}
				if !slices.Equal(rest, tc.want[i:]) {
					t.Fatalf("%s from %d: got %v, want %v", tc.name, e, rest, tc.want[i:])
				}
			}
		}
	}
}

// Any blocks give the same as one, and from each end the exact rest comes.
func TestMultilineRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		var in []byte
		for range rnd.IntN(30) {
			in = append(in, []string{"a", " b", "\n", "\r\n", "c\n", " d\r\n", "\\\n", strings.Repeat("x", rnd.IntN(900))}[rnd.IntN(8)]...)
		}
		pattern, what := `^\s`, "previous"
		if rnd.IntN(2) == 0 {
			pattern, what = `\\$`, "next"
		}
		o := Options{MaxLine: 1 + rnd.IntN(15), Multiline: multi(t, pattern, what, rnd.IntN(3) == 0, 1+rnd.IntN(5), 1+rnd.IntN(30))}
		if rnd.IntN(3) == 0 {
			o.Encoding = "iso-8859-1"
		}
		f := format(t, o)
		want, _ := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), in, []int{len(in) + 1}, true)
		sizes := []int{1 + rnd.IntN(8), 1 + rnd.IntN(200), 1 + rnd.IntN(20)}
		got, ends := cutAll(t, f, f.NewCutter(tab, "s", "p", 0, nil), in, sizes, true)
		if !slices.Equal(got, want) {
			t.Fatalf("%q %+v:\ngot  %v\nwant %v", in, o, got, want)
		}
		for _, e := range ends {
			i := slices.IndexFunc(want, func(r rec) bool { return r.off >= e })
			if i < 0 {
				i = len(want)
			}
			if rest := resume(t, f.NewCutter(tab, "s", "p", e, nil), in, e, sizes); !slices.Equal(rest, want[i:]) {
				t.Fatalf("%q from %d: got %v, want %v", in, e, rest, want[i:])
			}
		}
	}
}

func TestMultilineTimeout(t *testing.T) {
	now := time.Unix(1000, 0)
	f := format(t, Options{Multiline: multi(t, `^\s`, "previous", false, 500, 1<<20), Now: func() time.Time { return now }})
	c := f.NewCutter(tab, "s", "p", 0, nil)
	b := record.NewBatch(tab)
	give := func(s string, mode Mode) (out []string) {
		b.Reset()
		copy(c.Begin(b, len(s)), s)
		c.Cut(b, len(s), mode)
		for i := range b.Len() {
			out = append(out, string(b.Bytes(b.Get(i, 0))))
		}
		return
	}
	if !c.Deadline().IsZero() {
		t.Error("a deadline with nothing open")
	}
	if got := give("a\n b\n pa", More); got != nil {
		t.Fatal(got)
	}
	if want := now.Add(5 * time.Second); !c.Deadline().Equal(want) {
		t.Errorf("deadline %v, want %v", c.Deadline(), want)
	}
	now = now.Add(3 * time.Second)
	if got := give("r", More); got != nil || !c.Deadline().Equal(now.Add(5*time.Second)) {
		t.Error(got, c.Deadline())
	}
	if got := give("", Flush); !slices.Equal(got, []string{"a\n b"}) || c.End() != 5 || !c.Deadline().IsZero() {
		t.Fatal(got, c.End())
	}
	if got := give("t\nc\n", More); !slices.Equal(got, []string{" part"}) || c.End() != 11 {
		t.Fatal(got, c.End())
	}
}

type text []byte

func (s *text) UnmarshalJSON(p []byte) error {
	var str string
	if json.Unmarshal(p, &str) == nil {
		*s = text(str)
		return nil
	}
	var o map[string]string
	if err := json.Unmarshal(p, &o); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(o["$b64"])
	*s = raw
	return err
}

// corpus finds the shared corpus file by looking upward; the test is skipped where it is absent.
func corpus(t *testing.T, name string) []byte {
	dir, _ := os.Getwd()
	for ; len(dir) > 1; dir = filepath.Dir(dir) {
		if p, err := os.ReadFile(filepath.Join(dir, "shared", "corpus", name)); err == nil {
			return p
		}
	}
	t.Skipf("%s is not here", name)
	return nil
}

func TestMultilineCorpus(t *testing.T) {
	data := corpus(t, "logstash-multiline.jsonl")
	cases := 0
	for n, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var tc struct {
			Options struct {
				Pattern, What, Charset string
				Negate                 bool
				MaxLines               int `json:"max_lines"`
				MaxBytes               any `json:"max_bytes"`
				AutoFlush              int `json:"auto_flush_interval"`
			}
			Steps []struct {
				Op     string
				Input  text
				Events []struct{ Message string }
			}
		}
		if err := json.Unmarshal(line, &tc); err != nil {
			t.Fatal(n, err)
		}
		o := tc.Options
		m := multi(t, o.Pattern, o.What, o.Negate, 500, 10<<20)
		if o.MaxLines > 0 {
			m.MaxLines = o.MaxLines
		}
		switch v := o.MaxBytes.(type) {
		case float64:
			m.MaxBytes = int(v)
		case string:
			var k int
			var unit string
			fmt.Sscan(v, &k, &unit)
			if unit == "mb" {
				k <<= 20
			}
			m.MaxBytes = k
		}
		enc := o.Charset
		if enc == "ASCII-8BIT" {
			enc = "us-ascii"
		}
		f := format(t, Options{Encoding: enc, Multiline: m})
		c := f.NewCutter(tab, "s", "p", 0, nil)
		b := record.NewBatch(tab)
		for i, s := range tc.Steps {
			b.Reset()
			mode := More
			var in []byte
			switch s.Op {
			case "decode":
				// The codec is given lines and splits at newlines what has some; a split drops what is empty at the end.
				nl, enclosed := []byte("\n"), s.Input
				if c.cs != nil {
					nl = c.cs.nl
				}
				for bytes.HasSuffix(enclosed, nl) && (c.cs == nil || c.cs.unit == 1 || len(enclosed)%c.cs.unit == 0) {
					enclosed = enclosed[:len(enclosed)-len(nl)]
				}
				if len(enclosed) > 0 {
					in = append(append(in, enclosed...), nl...)
				}
			case "flush":
				mode = Flush
			case "auto_flush":
				mode = Flush // its events went elsewhere in the recording
			default:
				t.Fatalf("case %d: op %s", n, s.Op)
			}
			copy(c.Begin(b, len(in)), in)
			c.Cut(b, len(in), mode)
			var got, want []string
			for i := range b.Len() {
				got = append(got, string(b.Bytes(b.Get(i, 0))))
			}
			for _, e := range s.Events {
				// Logstash writes bytes that are not UTF-8 as \xFF; here they stay.
				want = append(want, unescape(e.Message))
			}
			for i := range got {
				if enc == "" {
					got[i] = string(bytes.ToValidUTF8([]byte(got[i]), nil))
				}
			}
			if s.Op != "auto_flush" && !slices.Equal(got, want) {
				t.Errorf("case %d, step %d (%+v):\ngot  %q\nwant %q", n, i, o, got, want)
			}
		}
		cases++
	}
	if cases < 30 {
		t.Errorf("only %d cases", cases)
	}
}

var hexByte = regexp.MustCompile(`\\x[0-9A-F]{2}`)

func unescape(s string) string { return hexByte.ReplaceAllString(s, "") }

// Benchmarks

func lines(n int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "10.0.%d.%d - - [24/Feb/2026:23:13:%02d +0000] \"GET /index%d.html HTTP/1.1\" 200 %d \"-\" \"curl/8.0\"\n", i%256, i%250, i%60, i%1000, i)
	}
	return b.Bytes()
}

func BenchmarkCut(b *testing.B) {
	data := lines(8 << 20)
	const block = 128 << 10
	b.Run("bare", func(b *testing.B) {
		buf := make([]byte, block)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			for at := 0; at < len(data); {
				m := copy(buf, data[at:])
				at += m
				for p := buf[:m]; ; {
					i := bytes.IndexByte(p, '\n')
					if i < 0 {
						break
					}
					n++
					p = p[i+1:]
				}
			}
		}
	})
	run := func(name string, o Options, fields ...string) {
		b.Run(name, func(b *testing.B) {
			t := record.NewTable()
			for _, f := range fields {
				t.Slot(f)
			}
			f := format(b, o)
			batch := record.NewBatch(t)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				c := f.NewCutter(t, "s", "p", 0, nil)
				for at := 0; at < len(data); {
					batch.Reset()
					m := copy(c.Begin(batch, block), data[at:])
					at += m
					c.Cut(batch, m, More)
				}
			}
		})
	}
	run("message", Options{}, "message")
	run("12fields", Options{}, "message", "@path", "@offset", "a", "b", "c", "d", "e", "f", "g", "h", "i")
	run("latin1", Options{Encoding: "iso-8859-1"}, "message")
	run("multiline", Options{Multiline: multi(b, `^\s`, "previous", false, 500, 1<<20)}, "message")
}
