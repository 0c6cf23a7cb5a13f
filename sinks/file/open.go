package file

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// identity tells a file from others that had or will have its name. Inode numbers are used
// again soon after a file is removed, hence the time of birth (0 where the file system has none).
type identity struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"` // nanoseconds since 1970
}

// saved is a file as it is committed.
type saved struct {
	Path string `json:"path"`
	identity
	Len   int64  `json:"len"`
	Tail  string `json:"tail,omitempty"`  // hash of the bytes before Len
	Since int64  `json:"since,omitempty"` // when its first row was to come, seconds since 1970: for rotation
}

// file is one output file.
type file struct {
	path   string
	id     identity
	h      *os.File // nil: closed for others
	len    int64    // the end of what was delivered
	tail   tail     // the bytes before len
	ready  bool     // it is in the committed state
	dirty  bool     // written since the last fsync
	torn   bool     // there may be part of a failed write behind len
	unsure bool     // an fsync failed
	from   int64    // what is before it is durable
	glue   bool     // it ends within someone else's line
	since  time.Time
	used   uint64 // when it was last used, by the sink's count
	buf    []byte // rows of the chunk at hand
	mark   int64  // len before the chunk at hand
	old    tail   // tail before the chunk at hand
	held   bool   // the chunk at hand has rows for it
	begun  bool   // some of them may be written
}

func (f *file) save() saved {
	return saved{f.path, f.id, f.len, f.tail.hash(), f.since.Unix()}
}

// tail is the last bytes of what a file holds.
type tail struct {
	b [256]byte
	n int
}

func (t *tail) add(p []byte) {
	if len(p) >= len(t.b) {
		t.n = copy(t.b[:], p[len(p)-len(t.b):])
		return
	}
	keep := min(t.n, len(t.b)-len(p))
	copy(t.b[:], t.b[t.n-keep:t.n])
	t.n = keep + copy(t.b[keep:], p)
}

func (t *tail) read(h *os.File, end int64) error {
	t.n = int(min(end, int64(len(t.b))))
	_, err := h.ReadAt(t.b[:t.n], end-int64(t.n))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (t *tail) hash() string {
	if t.n == 0 {
		return ""
	}
	h := fnv.New64a()
	h.Write(t.b[:t.n])
	return hex.EncodeToString(h.Sum(nil))
}

var errNotRegular = errors.New("not a regular file; the stdout sink writes to the terminal or a pipe")

// openFile opens a file, and takes the lock that keeps other sinks away.
// linked tells whether an open file still has a name. Where the file system can't say it has.
func linked(h *os.File) bool {
	st, err := h.Stat()
	if err != nil {
		return true
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return !ok || sys.Nlink > 0
}

func openFile(path string, create bool) (h *os.File, id identity, size int64, err error) {
	flags := os.O_RDWR | unix.O_NONBLOCK // a pipe of that name must not hang
	if create {
		flags |= os.O_CREATE
	}
	h, err = os.OpenFile(path, flags, 0o640)
	if err != nil && create && errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			h, err = os.OpenFile(path, flags, 0o640)
		}
	}
	if err != nil {
		return nil, id, 0, err
	}
	defer func() {
		if err != nil {
			h.Close()
			h = nil
		}
	}()
	st, err := h.Stat()
	if err != nil {
		return
	}
	if !st.Mode().IsRegular() {
		return h, id, 0, fmt.Errorf("%s: %w", path, errNotRegular)
	}
	if err = unix.Flock(int(h.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return h, id, 0, fmt.Errorf("%s is being written by another sink or process (it holds the lock); give each sink a path of its own", path)
	}
	// Some network file systems have no locks: go on without.
	id, err = identify(h)
	return h, id, st.Size(), err
}

func identify(h *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(h.Fd()), &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: h.Name(), Err: err}
	}
	id := identity{Dev: uint64(st.Dev), Ino: st.Ino}
	var x unix.Statx_t
	if unix.Statx(int(h.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x) == nil && x.Mask&unix.STATX_BTIME != 0 {
		id.Born = x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
	}
	return id, nil
}

// at tells whether path is still this file.
func (id identity) at(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && uint64(st.Dev) == id.Dev && st.Ino == id.Ino
}

// sync makes what was written durable. After a failed fsync the kernel takes the pages for
// written, and the next one would succeed without them: so all is written once more.
func (f *file) sync(fsync func(*os.File) error) error {
	if f.unsure {
		block := make([]byte, 64<<10)
		for at := f.from; at < f.len; {
			n := min(f.len-at, int64(len(block)))
			if _, err := f.h.ReadAt(block[:n], at); err != nil {
				return err
			}
			if _, err := f.h.WriteAt(block[:n], at); err != nil {
				return err
			}
			at += n
		}
	}
	if err := fsync(f.h); err != nil {
		f.unsure = true
		return fmt.Errorf("sync %s: %w", f.path, err)
	}
	f.from, f.dirty, f.unsure = f.len, false, false
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
