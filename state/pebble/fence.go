package pebble

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fence stands between the database and the disk. The first write that fails closes it: the
// failure is reported once, and that write and all later ones do nothing and report success.
//
// The database can't unwind a failed write: it ends the process through Logger.Fatalf, panics with mutexes in a state
// that makes the runtime end the process (DB.rotateWAL), or repeats a failed flush without a pause, also within
// Open. Behind a closed fence it believes all is well, nothing of that reaches the disk, and it can be closed
// like any other. No answer that it gives then may be believed: whoever asks it looks at the fence afterwards.
type fence struct {
	vfs.FS
	shut   atomic.Bool
	failed func(error) // called before the write that failed returns
}

// result takes a write's error; to the database the write has succeeded.
func (f *fence) result(err error) error {
	if err != nil {
		f.shut.Store(true)
		f.failed(err)
	}
	return nil
}

func (f *fence) file(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		f.result(err)
		file = nowhere{}
	}
	return &fencedFile{file, f}, nil
}

// Create syncs the directory before a marker is made in it, which names a file: Pebble syncs both by one sync
// afterwards, and a crash before that could leave the marker alone.
func (f *fence) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(f.PathBase(name), "marker.") && !f.shut.Load() {
		f.result(syncDir(f.FS, f.PathDir(name)))
	}
	if f.shut.Load() {
		return nowhere{}, nil
	}
	return f.file(f.FS.Create(name, c))
}

func (f *fence) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	if f.shut.Load() {
		return nowhere{}, nil
	}
	return f.file(f.FS.OpenReadWrite(name, c, o...))
}

func (f *fence) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if f.shut.Load() {
		return nowhere{}, nil
	}
	return f.file(f.FS.ReuseForWrite(from, to, c))
}

// OpenDir is for reading as to the directory's existence, for writing as to its Sync.
func (f *fence) OpenDir(name string) (vfs.File, error) {
	d, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &fencedFile{d, f}, nil
}

func (f *fence) Link(from, to string) error {
	if f.shut.Load() {
		return nil
	}
	return f.result(f.FS.Link(from, to))
}

func (f *fence) Rename(from, to string) error {
	if f.shut.Load() {
		return nil
	}
	return f.result(f.FS.Rename(from, to))
}

func (f *fence) Remove(name string) error {
	if f.shut.Load() {
		return nil
	}
	err := f.FS.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.result(err)
}

func (f *fence) RemoveAll(name string) error {
	if f.shut.Load() {
		return nil
	}
	return f.result(f.FS.RemoveAll(name))
}

func (f *fence) MkdirAll(dir string, perm fs.FileMode) error {
	if f.shut.Load() {
		return nil
	}
	return f.result(f.FS.MkdirAll(dir, perm))
}

// Lock passes failures on: they end Open in good order.
func (f *fence) Lock(name string) (io.Closer, error) { return f.FS.Lock(name) }

func (f *fence) Unwrap() vfs.FS { return f.FS }

// fencedFile is a file that is written. Preallocate's errors are left to the database, which can do without.
type fencedFile struct {
	vfs.File
	f *fence
}

func (w *fencedFile) Write(p []byte) (int, error) {
	if !w.f.shut.Load() {
		_, err := w.File.Write(p)
		w.f.result(err)
	}
	return len(p), nil
}

func (w *fencedFile) WriteAt(p []byte, at int64) (int, error) {
	if !w.f.shut.Load() {
		_, err := w.File.WriteAt(p, at)
		w.f.result(err)
	}
	return len(p), nil
}

func (w *fencedFile) Sync() error {
	if w.f.shut.Load() {
		return nil
	}
	return w.f.result(w.File.Sync())
}

func (w *fencedFile) SyncData() error {
	if w.f.shut.Load() {
		return nil
	}
	return w.f.result(w.File.SyncData())
}

func (w *fencedFile) SyncTo(n int64) (bool, error) {
	if w.f.shut.Load() {
		return true, nil
	}
	full, err := w.File.SyncTo(n)
	return full, w.f.result(err)
}

func (w *fencedFile) Close() error { return w.f.result(w.File.Close()) }

// Stat of a file that is written is part of DB.rotateWAL.
func (w *fencedFile) Stat() (vfs.FileInfo, error) {
	if !w.f.shut.Load() {
		i, err := w.File.Stat()
		if err == nil {
			return i, nil
		}
		w.f.result(err)
	}
	return noInfo{}, nil
}

type noInfo struct{}

func (noInfo) Name() string           { return "" }
func (noInfo) Size() int64            { return 0 }
func (noInfo) Mode() fs.FileMode      { return 0 }
func (noInfo) ModTime() time.Time     { return time.Time{} }
func (noInfo) IsDir() bool            { return false }
func (noInfo) Sys() any               { return nil }
func (noInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

// nowhere is a file that takes everything and keeps nothing.
type nowhere struct{}

func (nowhere) Close() error                           { return nil }
func (nowhere) Read([]byte) (int, error)               { return 0, io.EOF }
func (nowhere) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (nowhere) Write(p []byte) (int, error)            { return len(p), nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (nowhere) Preallocate(int64, int64) error         { return nil }
func (nowhere) Stat() (vfs.FileInfo, error)            { return noInfo{}, nil }
func (nowhere) Sync() error                            { return nil }
func (nowhere) SyncData() error                        { return nil }
func (nowhere) SyncTo(int64) (bool, error)             { return true, nil }
func (nowhere) Prefetch(int64, int64) error            { return nil }
func (nowhere) Fd() uintptr                            { return vfs.InvalidFd }

var (
	_ vfs.FS   = (*fence)(nil)
	_ vfs.File = nowhere{}
)
