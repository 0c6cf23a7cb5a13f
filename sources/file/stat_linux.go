package file

import (
	"io"
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

// remote are the magic numbers of file systems that other hosts change, or whose notices are not to be relied on.
var remote = map[int64]bool{unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true,
	unix.CEPH_SUPER_MAGIC: true, unix.AFS_SUPER_MAGIC: true, unix.CODA_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.FUSE_SUPER_MAGIC: true,
	unix.OCFS2_SUPER_MAGIC: true, lustreMagic: true, gfs2Magic: true}

// Not in package unix: from their kernel sources.
const (
	lustreMagic = 0x0BD00BD0
	gfs2Magic   = 0x01161970
)

// local tells whether only this host changes the folder's files.
func local(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && !remote[int64(st.Type)]
}

// readOver fills before with the bytes in front of off and p with those from off on, in one read of a plain file, so that both
// are of the same content. It gives how many bytes p has; 0 and io.EOF where there is none.
func readOver(f *os.File, before, p []byte, off int64) (int, error) {
	at := off - int64(len(before))
	for {
		n, err := unix.Preadv(int(f.Fd()), [][]byte{before, p}, at)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		case n < len(before):
			clear(before[n:])
			return 0, io.EOF
		case n == len(before):
			return 0, io.EOF
		}
		return n - len(before), nil
	}
}
