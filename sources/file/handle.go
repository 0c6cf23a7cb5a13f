package file

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rsetl/rsetl/sources/text"
)

type kind uint8

const (
	plain kind = iota
	gzipped
	zstded
)

var (
	gzipMagic = []byte{0x1f, 0x8b, 0x08}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// errPartial: so little is there that it can't be told whether the file is compressed.
var errPartial = errors.New("the file's first bytes are not written yet")

// handle is an open file and, where it is compressed, its decoder.
type handle struct {
	f    *os.File
	kind kind
	raw  *bufio.Reader
	dec  io.Reader
	stop func()
	pos  int64 // of dec, in the content
	// seen is the file's size and time when its compressed content came to an end (or to
	// where it is cut off or damaged); more is looked for only when they have changed.
	seen stamp
	bad  error
}

type stamp struct {
	size  int64
	mtime time.Time
}

func stampOf(fi fs.FileInfo) stamp { return stamp{fi.Size(), fi.ModTime()} }

// openFile opens a regular file for reading. It never waits, whatever the path is.
func openFile(path string) (*handle, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	if err := refuse(path, fi); err != nil {
		f.Close()
		return nil, nil, err
	}
	return &handle{f: f}, fi, nil
}

// refuse says what is wrong with what is no regular file.
func refuse(path string, fi fs.FileInfo) error {
	switch m := fi.Mode(); {
	case m.IsRegular():
		return nil
	case m.IsDir():
		return refused(fmt.Sprintf("%s is a folder; write %s/* to read the files in it", path, path))
	case m&fs.ModeNamedPipe != 0:
		return refused(fmt.Sprintf("%s is a pipe (FIFO), which can't be read again after a restart; use the source stdin: rsetl run … < %s", path, path))
	default:
		return refused(fmt.Sprintf("%s is not a regular file (%s)", path, m.Type()))
	}
}

// refused is the error for what is no regular file: the file that was meant isn't there.
type refused string

func (e refused) Error() string      { return string(e) }
func (refused) Is(target error) bool { return target == fs.ErrNotExist }

func (h *handle) close() {
	h.stopDecoder()
	h.f.Close()
}

func (h *handle) stopDecoder() {
	if h.stop != nil {
		h.stop()
	}
	h.dec, h.stop, h.raw, h.pos = nil, nil, nil, 0
}

// sniff finds out whether the file is compressed. final: what is there is all.
func (h *handle) sniff(final bool) error {
	var p [4]byte
	n, err := h.f.ReadAt(p[:], 0)
	if err != nil && err != io.EOF {
		return err
	}
	h.kind = plain
	switch head := p[:n]; {
	case bytes.HasPrefix(head, gzipMagic):
		h.kind = gzipped
	case bytes.HasPrefix(head, zstdMagic):
		h.kind = zstded
	case n > 0 && !final && (bytes.HasPrefix(gzipMagic, head) || bytes.HasPrefix(zstdMagic, head)):
		return errPartial
	}
	return nil
}

// readAt fills p from off on in the content. It gives 0 and io.EOF at the end, and what was read
// before an error with it. A decoder goes on where it is; going back starts it again.
func (h *handle) readAt(p []byte, off int64) (int, error) {
	if h.kind == plain {
		n, err := h.f.ReadAt(p, off)
		if n > 0 && err == io.EOF {
			err = nil
		}
		return n, err
	}
	if h.dec == nil || h.pos > off {
		if err := h.decoder(); err != nil {
			return 0, err
		}
	}
	if h.pos < off {
		n, err := io.CopyN(io.Discard, h.dec, off-h.pos)
		h.pos += n
		if err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(h.dec, p)
	h.pos += int64(n)
	if err == io.ErrUnexpectedEOF && n > 0 && h.atEnd() {
		err = nil // ReadFull's own: the content ends within p
	}
	return n, err
}

// atEnd tells a content that ended well from one that was cut off: the decoder says io.EOF again.
func (h *handle) atEnd() bool {
	var one [1]byte
	n, err := h.dec.Read(one[:])
	return n == 0 && err == io.EOF
}

func (h *handle) decoder() error {
	h.stopDecoder()
	h.raw = bufio.NewReaderSize(io.NewSectionReader(h.f, 0, 1<<62), 64<<10)
	if h.kind == gzipped {
		z, err := gzip.NewReader(h.raw)
		if err != nil {
			return err
		}
		h.dec, h.stop = z, func() { z.Close() }
		return nil
	}
	z, err := zstd.NewReader(h.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return err
	}
	h.dec, h.stop = z, z.Close
	return nil
}

// head reads the content's first bytes, as many as there are up to n.
func (h *handle) head(n int) ([]byte, error) {
	p := make([]byte, n)
	m := 0
	for m < n {
		k, err := h.readAt(p[m:], int64(m))
		m += k
		if err == io.EOF || k == 0 && err == nil {
			break
		}
		if err != nil {
			if m > 0 && h.kind != plain {
				break // cut off; what there is counts
			}
			return p[:m], err
		}
	}
	return p[:m], nil
}

// tail reads the bytes before off, at most text.TailLen. It fails with io.EOF where the content is shorter.
func (h *handle) tail(off int64) ([]byte, error) {
	n := min(off, text.TailLen)
	p := make([]byte, n)
	for m := 0; m < int(n); {
		k, err := h.readAt(p[m:], off-n+int64(m))
		m += k
		if m < int(n) && (err != nil || k == 0) {
			if err == nil {
				err = io.EOF
			}
			return nil, err
		}
	}
	return p, nil
}

// length is the content's size, found by decompressing where it must be.
func (h *handle) length() (int64, error) {
	if h.kind == plain {
		fi, err := h.f.Stat()
		if err != nil {
			return 0, err
		}
		return fi.Size(), nil
	}
	if err := h.decoder(); err != nil {
		return 0, err
	}
	n, err := io.Copy(io.Discard, h.dec)
	h.pos = n
	return n, err
}

func (h *handle) stat() (fs.FileInfo, error) { return h.f.Stat() }
