package reload

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	now := time.Unix(1000, 0)
	f := New(path, time.Minute, slog.New(slog.NewTextHandler(io.Discard, nil)), func(p string) (*string, error) {
		b, err := os.ReadFile(p)
		s := string(b)
		if s == "bad" {
			err = errors.New("bad content")
		}
		return &s, err
	})
	f.now = func() time.Time { return now }
	want := func(content string) {
		t.Helper()
		v, err := f.Get()
		if content == "" {
			if err == nil {
				t.Fatalf("got %q", *v)
			}
			return
		}
		if err != nil || *v != content {
			t.Fatalf("got %v %v, want %q", v, err, content)
		}
	}
	put := func(s string) {
		t.Helper()
		tmp := path + ".new"
		if err := errors.Join(os.WriteFile(tmp, []byte(s), 0o600), os.Rename(tmp, path)); err != nil {
			t.Fatal(err)
		}
	}
	want("")
	put("one")
	want("") // not looked at yet
	now = now.Add(time.Minute)
	want("one")
	put("two")
	want("one")
	now = now.Add(time.Minute)
	want("two")
	put("bad")
	now = now.Add(time.Minute)
	want("two")
	os.Remove(path)
	now = now.Add(time.Minute)
	want("two")
	put("three")
	now = now.Add(time.Minute)
	want("three")
}
