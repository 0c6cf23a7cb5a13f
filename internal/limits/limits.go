// Package limits tells what the operating system allows this process.
package limits

import "golang.org/x/sys/unix"

const plenty = 1 << 20

// OpenFiles is how many files may be open at once; a large number where there is no limit, or none is known.
func OpenFiles() int {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur > plenty {
		return plenty
	}
	return int(l.Cur)
}
