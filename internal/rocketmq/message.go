package rocketmq

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Message is one message of a pull. Its slices are of the body that was decoded.
type Message struct {
	Offset   int64
	Flag     int32
	SysFlag  int32
	Born     int64 // ms since 1970
	Stored   int64 // ms since 1970
	Body     []byte
	Topic    []byte
	Props    []byte // name \x01 value \x02 ...
	Inner    int    // the message holds so many more with offsets of their own, from Offset; 0: it is an ordinary one
	Unwrap   bool   // Inner of them are in Body as AppendInner makes them
	Problems string // why Body is not what was sent, "": it is
}

const (
	magicOne, magicTwo = 0xDAA320A7, 0xDAA320AB
	flagCompressed     = 1
	flagBornV6         = 1 << 4
	flagStoredV6       = 1 << 5
	flagUnwrap         = 1 << 6
	flagInner          = 1 << 7
	compression        = 7 << 8
	byLZ4              = 1 << 8
	byZstd             = 2 << 8
	byZlib             = 3 << 8
)

var errShort = errors.New("a message ends too early")

// Next decodes the first message of p and gives what follows it.
func Next(p []byte, m *Message) (rest []byte, err error) {
	r := reader{p: p}
	total := int(int32(r.u32()))
	if total < 4 || total > len(p) {
		return nil, errShort
	}
	rest = p[total:]
	r.p = p[4:total]
	magic := r.u32()
	if magic != magicOne && magic != magicTwo {
		return nil, fmt.Errorf("a message with the unknown mark %x", magic)
	}
	r.u32() // CRC of the body; TCP has one of its own
	r.u32() // queue
	*m = Message{Flag: int32(r.u32()), Offset: int64(r.u64())}
	r.u64() // place in the log
	m.SysFlag = int32(r.u32())
	m.Born = int64(r.u64())
	r.host(m.SysFlag & flagBornV6)
	m.Stored = int64(r.u64())
	r.host(m.SysFlag & flagStoredV6)
	r.u32() // deliveries
	r.u64() // transaction
	m.Body = r.take(int(int32(r.u32())))
	if magic == magicTwo {
		m.Topic = r.take(int(r.u16()))
	} else {
		m.Topic = r.take(int(r.u8()))
	}
	m.Props = r.take(int(r.u16()))
	if r.short {
		return nil, errShort
	}
	if m.SysFlag&flagInner != 0 {
		n, err := strconv.Atoi(string(m.Prop("INNER_NUM")))
		if err != nil || n < 1 || n > 1<<20 {
			m.Problems = "it holds a batch of messages of unknown number"
			n = 1
		}
		m.Inner, m.Unwrap = n, m.SysFlag&flagUnwrap != 0
	}
	return rest, nil
}

// Prop is the value of a property, nil where there is none.
func (m *Message) Prop(name string) []byte {
	for p := m.Props; len(p) > 0; {
		k, v, rest := nextProp(p)
		if string(k) == name {
			return v
		}
		p = rest
	}
	return nil
}

// EachProp calls f with every property.
func (m *Message) EachProp(f func(name, value []byte)) {
	for p := m.Props; len(p) > 0; {
		k, v, rest := nextProp(p)
		if len(k) > 0 {
			f(k, v)
		}
		p = rest
	}
}

func nextProp(p []byte) (name, value, rest []byte) {
	if i := bytes.IndexByte(p, 2); i >= 0 {
		p, rest = p[:i], p[i+1:]
	}
	name, value, _ = bytes.Cut(p, []byte{1})
	return name, value, rest
}

// ErrTooLong: the body is longer than allowed when decompressed.
var ErrTooLong = errors.New("too long")

// zlibs, zstds and lz4s hold decompressors between messages. Those of the latter two with a concurrency of 1 have no goroutine, so that they may be dropped.
var zlibs, zstds, lz4s sync.Pool

// AppendBody appends the body as it was sent, decompressed, at most limit bytes of it. An error tells why it can't be.
func (m *Message) AppendBody(dst []byte, limit int) ([]byte, error) {
	if m.SysFlag&flagCompressed == 0 {
		if len(m.Body) > limit {
			return append(dst, m.Body[:limit]...), fmt.Errorf("the body has %d bytes, %w: max_message is %d", len(m.Body), ErrTooLong, limit)
		}
		return append(dst, m.Body...), nil
	}
	var r io.Reader
	switch kind := m.SysFlag & compression; kind {
	case 0, byZlib:
		z, _ := zlibs.Get().(io.Reader)
		var err error
		if z == nil {
			z, err = zlib.NewReader(bytes.NewReader(m.Body))
		} else {
			err = z.(zlib.Resetter).Reset(bytes.NewReader(m.Body), nil)
		}
		if err != nil {
			return dst, fmt.Errorf("the body is marked as compressed by zlib, and isn't: %w", err)
		}
		defer zlibs.Put(z)
		r = z
	case byZstd:
		z, _ := zstds.Get().(*zstd.Decoder)
		var err error
		if z == nil {
			z, err = zstd.NewReader(bytes.NewReader(m.Body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
		} else {
			err = z.Reset(bytes.NewReader(m.Body))
		}
		if err != nil {
			return dst, fmt.Errorf("the body is marked as compressed by zstd: %w", err)
		}
		defer func() {
			if z.Reset(nil) == nil {
				zstds.Put(z)
			}
		}()
		r = z
	case byLZ4:
		z, _ := lz4s.Get().(*lz4.Reader) // of frames, whose blocks have 4 MiB at most
		if z == nil {
			z = lz4.NewReader(nil)
		}
		z.Reset(bytes.NewReader(m.Body))
		defer func() {
			z.Reset(nil)
			lz4s.Put(z)
		}()
		r = z
	default:
		return dst, fmt.Errorf("the body is compressed in an unknown way (%d)", kind>>8)
	}
	buf := bytes.NewBuffer(dst)
	n, err := io.Copy(buf, io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return dst, fmt.Errorf("decompress the body: %w", err)
	}
	if n > int64(limit) {
		return buf.Bytes()[:len(dst)+limit], fmt.Errorf("the decompressed body is %w: max_message is %d", ErrTooLong, limit)
	}
	return buf.Bytes(), nil
}

// Compressed tells whether the body is.
func (m *Message) Compressed() bool { return m.SysFlag&flagCompressed != 0 }

// AppendInner appends a message in the form that batches have.
func AppendInner(dst []byte, flag int32, body, props []byte) []byte {
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(4+4+4+4+4+len(body)+2+len(props)))
	dst = be.AppendUint64(dst, 0) // mark, CRC: the broker's
	dst = be.AppendUint32(dst, uint32(flag))
	dst = be.AppendUint32(dst, uint32(len(body)))
	dst = append(dst, body...)
	dst = be.AppendUint16(dst, uint16(len(props)))
	return append(dst, props...)
}

// NextInner decodes the first message of a batch's body into m, whose other fields stay.
func NextInner(p []byte, m *Message) (rest []byte, err error) {
	r := reader{p: p}
	total := int(int32(r.u32()))
	if total < 22 || total > len(p) {
		return nil, errShort
	}
	rest = p[total:]
	r.p = p[4:total]
	r.u64()
	m.Flag = int32(r.u32())
	m.Body = r.take(int(int32(r.u32())))
	m.Props = r.take(int(r.u16()))
	if r.short {
		return nil, errShort
	}
	return rest, nil
}

type reader struct {
	p     []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.p) {
		r.short, r.p = true, nil
		return nil
	}
	out := r.p[:n:n]
	r.p = r.p[n:]
	return out
}

func (r *reader) u8() (n uint8) {
	if b := r.take(1); b != nil {
		n = b[0]
	}
	return
}

func (r *reader) u16() (n uint16) {
	if b := r.take(2); b != nil {
		n = binary.BigEndian.Uint16(b)
	}
	return
}

func (r *reader) u32() (n uint32) {
	if b := r.take(4); b != nil {
		n = binary.BigEndian.Uint32(b)
	}
	return
}

func (r *reader) u64() (n uint64) {
	if b := r.take(8); b != nil {
		n = binary.BigEndian.Uint64(b)
	}
	return
}

func (r *reader) host(v6 int32) {
	if v6 != 0 {
		r.take(20)
	} else {
		r.take(8)
	}
}
