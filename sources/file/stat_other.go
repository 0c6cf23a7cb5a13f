//go:build !linux

package file

import (
	"io"
	"io/fs"
	"os"
	"reflect"
)

// idOf takes device and inode out of what the system gives; where it gives none, files are told
// apart by their content only.
func idOf(fi fs.FileInfo) fileID {
	v := reflect.Indirect(reflect.ValueOf(fi.Sys()))
	if v.Kind() != reflect.Struct {
		return fileID{}
	}
	get := func(name string) uint64 {
		f := v.FieldByName(name)
		switch {
		case !f.IsValid():
			return 0
		case f.CanUint():
			return f.Uint()
		case f.CanInt():
			return uint64(f.Int())
		}
		return 0
	}
	return fileID{get("Dev"), get("Ino")}
}

func born(*os.File) int64       { return 0 }
func deleted(fs.FileInfo) int64 { return 0 }

// local: nothing is known of file systems here.
func local(string) bool { return false }

// readOver fills before with the bytes in front of off and p with those from off on. It gives how many bytes p has; 0 and
// io.EOF where there is none.
func readOver(f *os.File, before, p []byte, off int64) (int, error) {
	n, err := f.ReadAt(p, off)
	if n > 0 && err == io.EOF {
		err = nil
	}
	if k, _ := f.ReadAt(before, off-int64(len(before))); k < len(before) {
		clear(before[k:])
	}
	return n, err
}
