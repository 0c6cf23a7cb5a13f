package manager

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/rsetl/rsetl/pipeline"
)

// maxFile bounds a pipeline file.
const maxFile = 4 << 20

// found is one file of the folder as it is now.
type found struct {
	path, ns string
	shared   bool             // its name begins with _
	with     *pipeline.Shared // what its folder shares
	id       [2]uint64        // device and inode: a rename keeps them, a copy doesn't
	raw      []byte
	err      error // it is there and can't be read
}

// listing is the folder as it is now.
type listing struct {
	files   []found
	folders []string         // to be watched
	unread  map[string]error // namespaces whose folder can't be read: what is there is not known
}

var nsName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// list reads the folder and the namespaces below it. The error is the folder's own: then nothing is known.
func list(root string) (*listing, error) {
	l := &listing{unread: map[string]error{}, folders: []string{root}}
	top, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("read the pipelines' folder: %w", err)
	}
	for _, e := range top {
		path := filepath.Join(root, e.Name())
		if nsName.MatchString(e.Name()) && isDir(e, path) {
			l.folders = append(l.folders, path)
			sub, err := os.ReadDir(path)
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				l.unread[e.Name()] = fmt.Errorf("read the namespace %s: %w", e.Name(), err)
			default:
				for _, f := range sub {
					l.add(filepath.Join(path, f.Name()), f, e.Name())
				}
			}
			continue
		}
		l.add(path, e, "default")
	}
	return l, nil
}

// isDir follows a symbolic link, as Kubernetes makes them.
func isDir(e fs.DirEntry, path string) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// add takes a file in, unless it is hidden or is an editor's or package manager's own (web.yaml~, .web.yaml.swp,
// #web.yaml#, 4913, web.yaml.dpkg-new).
func (l *listing) add(path string, e fs.DirEntry, ns string) {
	name := e.Name()
	if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" || name[0] == '.' || name[0] == '#' || e.IsDir() {
		return
	}
	f := found{path: path, ns: ns, shared: pipeline.IsShared(name)}
	st, err := os.Stat(path)
	if err == nil {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			f.id = [2]uint64{uint64(sys.Dev), sys.Ino}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0:
		return // deleted meanwhile
	case err != nil:
		f.err = err
	case st.IsDir():
		return
	case !st.Mode().IsRegular():
		f.err = fmt.Errorf("%s: not a regular file", path)
	case st.Size() > maxFile:
		f.err = fmt.Errorf("%s: %d bytes; a pipeline file has at most 4MiB", path, st.Size())
	default:
		f.raw, err = os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			return
		}
		f.err = err
	}
	l.files = append(l.files, f)
}

// sum tells two listings apart.
func (l *listing) sum() [32]byte {
	h := sha256.New()
	for _, f := range l.files {
		fmt.Fprintf(h, "%q %v %x\n", f.path, f.err, sha256.Sum256(f.raw))
	}
	for ns, err := range l.unread {
		fmt.Fprintf(h, "%q %v\n", ns, err)
	}
	return [32]byte(h.Sum(nil))
}

func (f *found) same(o *found) bool {
	return o != nil && f.path == o.path && f.ns == o.ns && f.with == o.with && f.err == nil && o.err == nil && bytes.Equal(f.raw, o.raw)
}

// baseName is what a pipeline is named after its file.
func (f *found) baseName() string {
	b := filepath.Base(f.path)
	return f.ns + "/" + strings.TrimSuffix(strings.TrimSuffix(b, ".yml"), ".yaml")
}

// shared loads what each namespace shares. Where a file has mistakes or can't be read, what was there before is kept for the
// pipelines that run; the mistakes are told.
func (m *Manager) shared(l *listing) {
	texts := map[string][]pipeline.SharedFile{}
	unread := map[string]error{}
	for i := range l.files {
		f := &l.files[i]
		switch {
		case !f.shared:
		case f.err != nil:
			unread[f.ns] = f.err
			m.problem(f.path, f.err.Error())
		default:
			texts[f.ns] = append(texts[f.ns], pipeline.SharedFile{Path: f.path, Data: f.raw})
		}
	}
	now := map[string]*pipeline.Shared{}
	for ns := range l.namespaces() {
		old := m.sharing[ns]
		s := pipeline.LoadShared(texts[ns])
		if old != nil && old.Sum == s.Sum {
			s = old
		}
		now[ns] = s
		failed := unread[ns] != nil
		for _, errs := range s.Errs {
			for _, e := range errs.List() {
				failed = failed || !e.Warning
				m.problem(e.File, e.Error())
			}
		}
		good := m.good[ns]
		if !failed || good == nil {
			m.good[ns], good = s, s
		}
		for i := range l.files {
			if l.files[i].ns == ns {
				l.files[i].with = good
			}
		}
	}
	m.sharing = now
}

// namespaces are those that have a file.
func (l *listing) namespaces() map[string]bool {
	out := map[string]bool{}
	for i := range l.files {
		out[l.files[i].ns] = true
	}
	return out
}
