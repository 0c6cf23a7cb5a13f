package stdin

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/sourcetest"
	"github.com/rsetl/rsetl/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func run(t *testing.T, ctx context.Context, in io.Reader, common sources.Common, started chan *sourcetest.Output) (*sourcetest.Output, error) {
	table := record.NewTable()
	table.Slot("message")
	c := &Config{in: in}
	config.Defaults(c)
	s, err := c.Build(&sources.Build{Build: steps.Build{Table: table, Name: "in"}, Common: common, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	out := sourcetest.New(sourcetest.NewStore(), table)
	if started != nil {
		started <- out
	}
	err = s.Run(ctx, out)
	if e := out.Err(); e != nil {
		t.Fatal(e)
	}
	return out, err
}

func TestLines(t *testing.T) {
	for _, in := range []io.Reader{strings.NewReader("a\r\nb\n\nc"), iotest.OneByteReader(strings.NewReader("a\nb\n\nc")), iotest.DataErrReader(strings.NewReader("a\nb\n\nc"))} {
		out, err := run(t, t.Context(), in, sources.Common{}, nil)
		if got := out.Messages(); err != nil || !slices.Equal(got, []string{"a", "b", "", "c"}) || !out.Finished("stdin") {
			t.Errorf("%q %v", got, err)
		}
	}
	out, err := run(t, t.Context(), strings.NewReader(""), sources.Common{}, nil)
	if err != nil || out.Count() != 0 || !out.Finished("stdin") {
		t.Error(err)
	}
	out, err = run(t, t.Context(), io.MultiReader(strings.NewReader("a\nhalf"), iotest.ErrReader(errors.New("broken"))), sources.Common{}, nil)
	if err == nil || !strings.Contains(err.Error(), "broken") || !slices.Equal(out.Messages(), []string{"a", "half"}) {
		t.Error(err, out.Messages())
	}
}

// An open record of multiline ends by its timeout, with the input still open; the end of ctx ends Run.
func TestTimeoutAndStop(t *testing.T) {
	pr, pw := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	started, done := make(chan *sourcetest.Output, 1), make(chan error, 1)
	common := sources.Common{Multiline: &sources.Multiline{Pattern: `^\s`, What: "previous", Timeout: config.Duration(20 * time.Millisecond), MaxLines: 500, MaxBytes: 1 << 20}}
	go func() { _, err := run(t, ctx, pr, common, started); done <- err }()
	out := <-started
	io.WriteString(pw, "a\n b\nhal")
	wait, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if err := out.Wait(wait, func(v sourcetest.View) bool { return v.Count() == 1 && v.Idle() }); err != nil {
		t.Fatal(err)
	}
	if got := out.Messages(); !slices.Equal(got, []string{"a\n b"}) {
		t.Errorf("%q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	pw.Close() // lets the reading goroutine go
}
