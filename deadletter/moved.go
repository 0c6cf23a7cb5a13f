package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Move gives a letter file another path and returns the mark that goes with it: the letters behind it are known
// there too. It returns nil where the mark is of another path than from. Another file at the path to becomes
// a segment of it. Done a second time, after a crash before the mark was committed, it does what is missing.
func Move(committed Mark, from, to string) (Mark, error) {
	var m mark
	if err := json.Unmarshal(committed, &m); err != nil {
		return nil, fmt.Errorf("the committed mark of dead letters can't be read: %w", err)
	}
	if m.Path != from || from == to {
		return nil, nil
	}
	var st syscall.Stat_t
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(from); err == nil {
		if err := aside(to); err != nil {
			return nil, err
		}
		if err := os.Rename(from, to); err != nil {
			return nil, err
		}
		if err := syncDirs(filepath.Dir(from), filepath.Dir(to)); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	} else if syscall.Stat(to, &st) == nil && m.Ino != 0 && (uint64(st.Dev) != m.Dev || st.Ino != m.Ino) {
		if err := aside(to); err != nil { // another pipeline's, of before
			return nil, err
		}
	}
	m.Path = to
	return json.Marshal(m)
}

func syncDirs(paths ...string) error {
	for _, p := range paths {
		d, err := os.Open(p)
		if err != nil {
			return err
		}
		err = d.Sync()
		d.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
