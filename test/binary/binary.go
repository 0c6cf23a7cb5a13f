// Package binary builds rsetl once for black-box tests.
package binary

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rsetl-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "rsetl")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/rsetl")
	cmd.Dir = Root()
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return path, err
})

// Path builds the program and gives its path. Run it with Cleanup in the package's TestMain.
func Path(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatalf("build rsetl: %v", err)
	}
	return path
}

// Cleanup removes what Path built.
func Cleanup() {
	if path, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
}

// Root is the project's folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}
