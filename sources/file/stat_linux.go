package file

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func idOf(fi fs.FileInfo) fileID {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(st.Dev), st.Ino}
}

// born is when the file was made, in nanoseconds since 1970; 0 where the file system doesn't say.
func born(f *os.File) int64 {
	var x unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &x); err != nil || x.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return x.Btime.Sec*1e9 + int64(x.Btime.Nsec)
}

// deleted is when the file's last name was removed, in nanoseconds since 1970; 0 while it has one.
func deleted(fi fs.FileInfo) int64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink > 0 {
		return 0
	}
	return st.Ctim.Nano()
}
