package stdout

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func build(t *testing.T, c *Config, open bool) (sinks.Sink, *record.Batch) {
	t.Helper()
	table := record.NewTable()
	table.Slot("host")
	table.Slot("n")
	s, err := c.Build(&steps.Build{Table: table, Ship: []string{"host", "n"}, OpenEnded: open})
	if err != nil {
		t.Fatal(err)
	}
	return s, record.NewBatch(table)
}

// chunk encodes one row per host, n counting from 1.
func chunk(t *testing.T, s sinks.Sink, b *record.Batch, hosts ...string) *sinks.Chunk {
	t.Helper()
	p := sinks.Part{Split: &record.Split{ID: "x"}}
	for k, h := range hosts {
		i := b.Add(record.Position{}, record.Value{})
		b.Set(i, 0, b.PutString(h))
		b.Set(i, 1, record.MakeInt(int64(k+1)))
		data, err := s.Encode(p.Data, b, i)
		if err != nil {
			t.Fatal(err)
		}
		p.Data, p.Ends, p.Pos = data, append(p.Ends, len(data)), append(p.Pos, record.Position{})
	}
	return &sinks.Chunk{Parts: []sinks.Part{p}}
}

func deliver(t *testing.T, s sinks.Sink, c *sinks.Chunk) {
	t.Helper()
	if _, err := s.Deliver(context.Background(), c); err != nil {
		t.Fatal(err)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	s, b := build(t, &Config{Out: &out}, false)
	deliver(t, s, chunk(t, s, b, "a", "b"))
	if got := out.String(); got != "{\"host\":\"a\",\"n\":1}\n{\"host\":\"b\",\"n\":2}\n" {
		t.Errorf("%q", got)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	s, b := build(t, &Config{Format: "table", Out: &out}, false)
	deliver(t, s, chunk(t, s, b, "web-1", "日志", "e\x1b[31m\nx\xff\u202e", strings.Repeat("w", 70)))
	deliver(t, s, chunk(t, s, b, "later"))
	want := "" +
		"host" + strings.Repeat(" ", 58) + "n\n" +
		"web-1" + strings.Repeat(" ", 57) + "1\n" +
		"日志" + strings.Repeat(" ", 58) + "2\n" +
		`e\x1b[31m\nx\xff\u202e` + strings.Repeat(" ", 40) + "3\n" +
		strings.Repeat("w", 70) + "  4\n" +
		"later" + strings.Repeat(" ", 57) + "1\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTableOfOpenRecords(t *testing.T) {
	var out bytes.Buffer
	s, b := build(t, &Config{Format: "table", Out: &out}, true)
	i := b.Add(record.Position{}, record.Value{})
	b.Set(i, 1, record.MakeNull())
	b.SetNamed(i, b.PutString("x.y"), b.PutString("z z"))
	b.SetNamed(i, b.PutString("@path"), record.MakeInt(1))
	b.SetNamed(i, b.PutString("k"), record.MakeInt(1))
	row, err := s.Encode(nil, b, i)
	if err != nil {
		t.Fatal(err)
	}
	c := &sinks.Chunk{Parts: []sinks.Part{{Data: row, Ends: []int{len(row)}}}}
	deliver(t, s, c)
	if got := out.String(); got != "host  n     ...\n      NULL  x.y=\"z z\" k=1\n" {
		t.Errorf("%q", got)
	}
	if got := string(s.(sinks.Describer).Describe(nil, row)); got != `{"host":"","n":"NULL","...":"x.y=\"z z\" k=1"}` {
		t.Error(got)
	}
}

// stutter takes so many bytes before each failure.
type stutter struct {
	bytes.Buffer
	takes []int
}

func (s *stutter) Write(p []byte) (int, error) {
	if len(s.takes) == 0 {
		return s.Buffer.Write(p)
	}
	n := min(s.takes[0], len(p))
	s.takes = s.takes[1:]
	s.Buffer.Write(p[:n])
	return n, errors.New("try again")
}

func TestRetryGoesOnWhereItEnded(t *testing.T) {
	for _, format := range []string{"json", "table"} {
		var whole bytes.Buffer
		s, b := build(t, &Config{Format: format, Out: &whole}, false)
		c := chunk(t, s, b, "a", "b", "c")
		c.Parts = append(c.Parts, c.Parts[0])
		deliver(t, s, c)
		for first := range whole.Len() {
			out := &stutter{takes: []int{first, 0, 5}}
			s, _ := build(t, &Config{Format: format, Out: out}, false)
			for {
				if _, err := s.Deliver(context.Background(), c); err == nil {
					break
				}
			}
			if out.String() != whole.String() {
				t.Fatalf("%s: got %q, want %q", format, out.String(), whole.String())
			}
		}
	}
}

func TestBrokenPipe(t *testing.T) {
	for _, format := range []string{"json", "table"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s, b := build(t, &Config{Format: format, Out: w}, false)
		r.Close()
		if _, err := s.Deliver(context.Background(), chunk(t, s, b, "a")); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", format, err)
		}
		w.Close()
	}
}
