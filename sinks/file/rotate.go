package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// rotateFile gives a file another name; the next row goes to a new one. A failure is
// logged and tried again after the next commit: rows can go on into the old file.
func (s *Sink) rotateFile(f *file) {
	to, err := s.rotatedName(f.path)
	if err == nil {
		err = os.Rename(f.path, to)
	}
	if err != nil {
		s.log.Warn("an output file can't be rotated, it goes on", "path", f.path, "error", err)
		return
	}
	if err := s.drop(f); err != nil {
		s.log.Warn("a rotated file", "error", err)
	}
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		s.log.Warn("sync the folder of a rotated file", "path", f.path, "error", err)
	}
	s.log.Info("rotated an output file", "path", f.path, "to", to, "bytes", f.len)
	if s.rotate.Keep > 0 {
		s.removeOld(f.path)
	}
}

const rotatedTime = "20060102T150405Z"

// rotatedName is out-20261201T040543Z.json for out.json, with -2 and so on where that is taken.
func (s *Sink) rotatedName(path string) (string, error) {
	ext := filepath.Ext(path)
	if ext == filepath.Base(path) {
		ext = "" // a name that begins with a dot
	}
	stem := strings.TrimSuffix(path, ext) + "-" + s.now().UTC().Format(rotatedTime)
	for n := 1; n < 10000; n++ {
		to := stem + ext
		if n > 1 {
			to = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		if _, err := os.Lstat(to); errors.Is(err, os.ErrNotExist) {
			return to, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no free name like %s%s", stem, ext)
}

var rotatedSuffix = regexp.MustCompile(`^-(\d{8}T\d{6}Z)(?:-(\d{1,4}))?$`)

// removeOld removes the oldest rotated files of path but for those to keep.
func (s *Sink) removeOld(path string) {
	dir, base := filepath.Split(path)
	ext := filepath.Ext(base)
	if ext == base {
		ext = ""
	}
	stem := strings.TrimSuffix(base, ext)
	list, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		s.log.Warn("old output files can't be listed", "error", err)
		return
	}
	type old struct{ name, key string }
	var all []old
	for _, e := range list {
		mid, ok := strings.CutPrefix(e.Name(), stem)
		if !ok || !strings.HasSuffix(mid, ext) || !e.Type().IsRegular() {
			continue
		}
		if m := rotatedSuffix.FindStringSubmatch(strings.TrimSuffix(mid, ext)); m != nil {
			all = append(all, old{e.Name(), fmt.Sprintf("%s-%05s", m[1], m[2])})
		}
	}
	sort.Slice(all, func(a, b int) bool { return all[a].key < all[b].key })
	for _, o := range all[:max(len(all)-s.rotate.Keep, 0)] {
		if err := os.Remove(filepath.Join(dir, o.name)); err != nil {
			s.log.Warn("an old output file can't be removed", "error", err)
		}
	}
}
