// Package text cuts streams of bytes into lines: what all sources share whose input is one stream
// per split.
//
// Lines are cut in place, in the block that was read into the batch. What follows the last complete
// record of a block is kept by the Cutter and put in front of the next block, so that a record's
// bytes are always contiguous and a batch's End is always behind a complete record.
package text

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/text/encoding"

	"github.com/rsetl/rsetl/record"
)

// DefaultMaxLine is the longest line in bytes that is read where nothing else is configured.
const DefaultMaxLine = 1 << 20

// TailLen is how many bytes before a position its hash covers.
const TailLen = 256

// Options say how a source's text is read.
type Options struct {
	MaxLine   int    // longest line in bytes without its ending; 0: DefaultMaxLine
	Encoding  string // IANA name, "" for UTF-8
	Multiline *Multiline
	Source    string           // @source
	Now       func() time.Time // @received and multiline's timeout; nil: time.Now
}

// Matcher is a pattern; *regexp.Regexp is one. It is called by one goroutine per Cutter.
type Matcher interface {
	Match(p []byte) bool
}

// Multiline joins lines as Logstash's codec of that name does.
type Multiline struct {
	Pattern  Matcher
	Negate   bool
	Next     bool // a line that matches belongs to the one after it, else to the one before
	Timeout  time.Duration
	MaxLines int // a record ends once it has more lines
	MaxBytes int // a record ends once it has so many bytes, newlines not counted
}

// Format is Options ready for use. It is immutable and may be used by several goroutines.
type Format struct {
	o  Options
	cs *charset
}

// New checks the options.
func New(o Options) (*Format, error) {
	if o.MaxLine <= 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	cs, err := lookup(o.Encoding)
	if err != nil {
		return nil, err
	}
	if cs != nil && o.MaxLine%cs.unit != 0 {
		o.MaxLine += cs.unit - o.MaxLine%cs.unit
	}
	return &Format{o, cs}, nil
}

// Mode is what follows the bytes that Cut is given.
type Mode uint8

const (
	More  Mode = iota // more may come: a line without its newline waits
	Flush             // as More, but the record that multiline holds open ends here
	Final             // nothing: a last line without newline is a record
)

// Cutter cuts one split's stream. It belongs to the goroutine that reads the split. The order of
// calls is Begin, reading into what it gave, Cut.
type Cutter struct {
	f    *Format
	cs   *charset
	dec  *encoding.Decoder
	Path string // @path; may be changed between batches

	splitID string
	slots   struct{ message, path, offset, split, received, source int }
	metas   []meta

	end   int64  // offset in the stream behind the last complete record: of carry[0]
	carry []byte // what was read behind end
	// A line over the limit is not kept whole: carry[:gapAt] is its beginning, then gap bytes
	// of the stream are missing, then come its last ones.
	gapAt int
	gap   int64
	line  int // in carry: where the unfinished line begins
	scan  int // in carry: where the search for its newline goes on
	boms  []bom

	pend    pending
	scratch []byte
	touched time.Time // when the last bytes came

	tail  [TailLen]byte // the bytes before end, right-aligned
	tailN int

	off int // of the block in the batch's Buf
}

type meta struct {
	slot int
	v    record.Value
}

// pending is multiline's open record; places are in carry, or in the block during Cut.
type pending struct {
	open        bool
	start, end  int // end: without the last line's ending
	lines, size int
	join        bool // its text isn't the bytes as they stand
}

// NewCutter makes a Cutter for a split that is read from at on. head is how the stream begins
// (4 bytes are enough), needed where at > 0: a byte order mark there holds for the rest too.
func (f *Format) NewCutter(t *record.Table, splitID, path string, at int64, head []byte) *Cutter {
	c := &Cutter{f: f, cs: f.cs, Path: path, splitID: splitID, end: at}
	c.slots.message = t.Find("message")
	c.slots.path = t.Find("@path")
	c.slots.offset = t.Find("@offset")
	c.slots.split = t.Find("@split")
	c.slots.received = t.Find("@received")
	c.slots.source = t.Find("@source")
	boms := utf8BOM
	if f.cs != nil {
		boms = f.cs.boms
	}
	if at == 0 {
		c.boms = boms
	} else {
		for _, m := range boms {
			if bytes.HasPrefix(head, m.mark) && m.then != nil {
				c.cs = m.then
			}
		}
	}
	if c.cs != nil {
		c.dec = c.cs.enc.NewDecoder()
	}
	return c
}

// End is the offset behind the last complete record.
func (c *Cutter) End() int64 { return c.end }

// ReadOffset is the offset of the next byte to be read.
func (c *Cutter) ReadOffset() int64 { return c.end + int64(len(c.carry)) + c.gap }

// Held is the number of bytes that were read but belong to no record yet.
func (c *Cutter) Held() int64 { return int64(len(c.carry)) + c.gap }

// Memory is what the Cutter keeps between batches, in bytes.
func (c *Cutter) Memory() int { return cap(c.carry) + cap(c.scratch) }

// Tail are the last bytes before End, at most TailLen, as far as the Cutter knows them. It is
// valid until the next Cut.
func (c *Cutter) Tail() []byte { return c.tail[TailLen-c.tailN:] }

// Before are the last bytes before ReadOffset, at most TailLen, as far as they are known.
func (c *Cutter) Before() []byte {
	if len(c.carry) >= TailLen {
		return c.carry[len(c.carry)-TailLen:]
	}
	p := append(append([]byte(nil), c.Tail()...), c.carry...)
	return p[max(0, len(p)-TailLen):]
}

// SetTail tells a Cutter that begins in the middle of a stream what stands before that place.
func (c *Cutter) SetTail(p []byte) { c.tailN = 0; c.addTail(p) }

// Rewind forgets what is held; the stream is to be read from End again.
func (c *Cutter) Rewind() {
	c.carry, c.scratch, c.gap, c.gapAt, c.line, c.scan = nil, nil, 0, 0, 0, 0
	c.pend = pending{}
}

// Deadline is when multiline's open record ends unless another line comes; zero where none is open.
func (c *Cutter) Deadline() time.Time {
	if !c.pend.open || c.f.o.Multiline.Timeout <= 0 {
		return time.Time{}
	}
	return c.touched.Add(c.f.o.Multiline.Timeout)
}

// Room is the size to ask of the budget for a block of n bytes: the block with what is put in
// front of it, and as much for what is made of it.
func (c *Cutter) Room(n int) int { return 2 * (n + len(c.carry)) }

// Want is how large a block should be: as large as n, and more while a long line is incomplete, so
// that the copies that it takes stay linear.
func (c *Cutter) Want(n int) int { return max(n, len(c.carry)) }

// Begin prepares an empty batch for a block of at most n bytes and returns the place to read it to.
// It is valid until anything is appended to b.Buf.
func (c *Cutter) Begin(b *record.Batch, n int) []byte {
	c.metas = c.metas[:0]
	if s := c.slots.path; s >= 0 {
		c.metas = append(c.metas, meta{s, b.PutString(c.Path)})
	}
	if s := c.slots.split; s >= 0 {
		c.metas = append(c.metas, meta{s, b.PutString(c.splitID)})
	}
	if s := c.slots.source; s >= 0 {
		c.metas = append(c.metas, meta{s, b.PutString(c.f.o.Source)})
	}
	c.off = len(b.Buf)
	b.Buf = slices.Grow(b.Buf, len(c.carry)+n)
	b.Buf = append(b.Buf, c.carry...)
	at := len(b.Buf)
	return b.Buf[at : at+n : at+n]
}

// Cut makes records of the n bytes that were read since Begin and of what was held before, and
// sets b's Start and End. Where both are equal the batch has nothing.
func (c *Cutter) Cut(b *record.Batch, n int, mode Mode) {
	size := len(c.carry) + n
	b.Buf = b.Buf[:c.off+size]
	b.Start = record.Position{Offset: c.end}
	if n > 0 && (c.f.o.Multiline != nil || c.slots.received >= 0) {
		c.touched = c.f.o.Now()
	}
	if s := c.slots.received; s >= 0 {
		c.metas = append(c.metas, meta{s, record.MakeTime(c.touched.Unix(), uint32(c.touched.Nanosecond()), 6)})
	}
	base := c.end // offset in the stream of the block's first byte, but for what lies behind a gap
	data := b.Buf[c.off : c.off+size]

	done := 0
	if c.boms == nil || c.mark(data, mode == Final) {
		if c.cs == nil && c.f.o.Multiline == nil && c.gap == 0 {
			c.plain(b, data, base)
			done = c.line
		} else {
			done, base = c.general(b, data, base, mode)
		}
		if mode == Final && c.line < size {
			// The line after the last newline. data may have moved: records are appended to Buf.
			data = b.Buf[c.off : c.off+size]
			done, base = c.emit(b, data, base, c.line, size, size, done)
		}
		if mode != More && c.pend.open {
			done = c.flush(b, base, c.pendNext(size, mode))
		}
	}
	c.keep(b.Buf[c.off:c.off+size], base, done)
	b.End = record.Position{Offset: c.end}
}

// pendNext is where the stream goes on behind multiline's open record when it is flushed.
func (c *Cutter) pendNext(size int, mode Mode) int {
	if mode == Final {
		return size
	}
	return c.line
}

// mark skips a byte order mark at the stream's beginning. It is false while too little was read to tell.
func (c *Cutter) mark(data []byte, final bool) bool {
	for _, m := range c.boms {
		if len(data) < len(m.mark) && bytes.HasPrefix(m.mark, data) && !final {
			return false
		}
	}
	for _, m := range c.boms {
		if bytes.HasPrefix(data, m.mark) {
			c.line, c.scan = len(m.mark), len(m.mark)
			if m.then != nil && m.then != c.cs {
				c.cs, c.dec = m.then, m.then.enc.NewDecoder()
			}
			break
		}
	}
	c.boms = nil
	return true
}

// plain is the hot path: UTF-8, one line is one record.
func (c *Cutter) plain(b *record.Batch, data []byte, base int64) {
	line, scan, off, msg := c.line, c.scan, c.off, c.slots.message
	limit := c.f.o.MaxLine
	metas, offset := c.metas, c.slots.offset
	for {
		i := bytes.IndexByte(data[scan:], '\n')
		if i < 0 {
			break
		}
		e := scan + i
		next := e + 1
		if e > line && data[e-1] == '\r' {
			e--
		}
		if e-line > limit {
			c.overlong(b, base+int64(line), line)
		} else {
			v := record.MakeRef(record.String, off+line, e-line)
			r := b.Add(record.Position{Offset: base + int64(line)}, v)
			if msg >= 0 {
				b.Set(r, msg, v)
			}
			if offset >= 0 {
				b.Set(r, offset, record.MakeInt(base+int64(line)))
			}
			for _, m := range metas {
				b.Set(r, m.slot, m.v)
			}
		}
		line, scan = next, next
	}
	c.line, c.scan = line, len(data)
}

// overlong adds the line that begins there as a failed record with its first bytes.
func (c *Cutter) overlong(b *record.Batch, at int64, line int) {
	v := record.MakeRef(record.String, c.off+line, c.f.o.MaxLine)
	r := c.add(b, at, v, v)
	b.FailRecord(r, fmt.Sprintf("the line is longer than max_line (%d bytes); its first bytes are kept", c.f.o.MaxLine))
}

func (c *Cutter) add(b *record.Batch, at int64, raw, msg record.Value) int {
	r := b.Add(record.Position{Offset: at}, raw)
	if s := c.slots.message; s >= 0 {
		b.Set(r, s, msg)
	}
	if s := c.slots.offset; s >= 0 {
		b.Set(r, s, record.MakeInt(at))
	}
	for _, m := range c.metas {
		b.Set(r, m.slot, m.v)
	}
	return r
}

// general cuts with an encoding, multiline or a line that is over the limit already. It returns
// where the bytes begin that no record took yet, and base behind the gap.
func (c *Cutter) general(b *record.Batch, data []byte, base int64, mode Mode) (int, int64) {
	done := 0
	if !c.pend.open {
		done = c.line
	}
	size := len(data)
	for {
		// Appending to the arena may move Buf, so the block is taken anew each time.
		data = b.Buf[c.off : c.off+size]
		var nl, unit int
		if c.cs == nil {
			unit, nl = 1, bytes.IndexByte(data[c.scan:], '\n')
			if nl >= 0 {
				nl += c.scan
			}
		} else {
			unit = c.cs.unit
			nl = c.findUnit(data)
		}
		if nl < 0 {
			c.scan = size - (size-c.line)%unit
			return done, base
		}
		e := nl
		if c.cs == nil {
			if e > c.line && data[e-1] == '\r' {
				e--
			}
		} else if e-unit >= c.line && bytes.Equal(data[e-unit:e], c.cs.cr) {
			e -= unit
		}
		done, base = c.emit(b, data, base, c.line, e, nl+unit, done)
		c.line, c.scan = nl+unit, nl+unit
	}
}

// findUnit looks for a newline at a multiple of the code unit, counted from the line's beginning,
// or from the end of the gap where there is one.
func (c *Cutter) findUnit(data []byte) int {
	from := c.line
	if c.gap > 0 {
		from = c.gapAt
	}
	i := c.cs.find(data[from:], max(c.scan-from, 0))
	if i >= 0 {
		i += from
	}
	return i
}

// emit takes the line data[s:e], the next one begins at next. It returns what general does.
func (c *Cutter) emit(b *record.Batch, data []byte, base int64, s, e, next, done int) (int, int64) {
	gap := c.gap
	if gap > 0 || e-s > c.f.o.MaxLine {
		if c.pend.open {
			c.flush(b, base, s)
		}
		c.overlong(b, base+int64(s), s)
		c.gap, c.gapAt = 0, 0
		return next, base + gap
	}
	if c.f.o.Multiline != nil {
		return c.join(b, data, base, s, e, next, done), base
	}
	raw := record.MakeRef(record.String, c.off+s, e-s)
	msg := raw
	if c.cs != nil && c.slots.message >= 0 && !(c.cs.ascii && isASCII(data[s:e])) {
		at := len(b.Buf)
		b.Buf = c.cs.decode(c.dec, b.Buf, data[s:e])
		msg = b.Since(at)
	}
	c.add(b, base+int64(s), raw, msg)
	return next, base
}

// join is Logstash's do_previous and do_next: the limits are looked at before a line is added to
// the open record (previous) or after (next).
func (c *Cutter) join(b *record.Batch, data []byte, base int64, s, e, next, done int) int {
	m := c.f.o.Multiline
	text := data[s:e]
	if c.cs != nil {
		c.scratch = c.cs.decode(c.dec, c.scratch[:0], text)
		text = c.scratch
	}
	matched := m.Pattern.Match(text) != m.Negate
	if !m.Next && c.pend.open && (!matched || c.full()) {
		done = c.flush(b, base, s)
	}
	p := &c.pend
	if !p.open {
		*p = pending{open: true, start: s}
	} else if p.end+1 != s {
		p.join = true // a line ending before this one that isn't "\n"
	}
	p.end = e
	p.lines++
	p.size += len(text)
	if c.cs != nil {
		p.join = true
	}
	if m.Next && (!matched || c.full()) {
		done = c.flush(b, base, next)
	}
	return done
}

func (c *Cutter) full() bool {
	m := c.f.o.Multiline
	return m.MaxLines > 0 && c.pend.lines > m.MaxLines || m.MaxBytes > 0 && c.pend.size >= m.MaxBytes
}

// flush makes a record of multiline's open lines; reading goes on at next. A record of nothing but
// empty lines is none, as in Logstash.
func (c *Cutter) flush(b *record.Batch, base int64, next int) int {
	p := c.pend
	c.pend = pending{}
	if p.size == 0 {
		return next
	}
	raw := record.MakeRef(record.String, c.off+p.start, p.end-p.start)
	msg := raw
	if p.join && c.slots.message >= 0 {
		msg = c.joined(b, p)
	}
	c.add(b, base+int64(p.start), raw, msg)
	return next
}

func (c *Cutter) joined(b *record.Batch, p pending) record.Value {
	at := len(b.Buf)
	unit, nl, cr := 1, []byte("\n"), []byte("\r")
	if c.cs != nil {
		unit, nl, cr = c.cs.unit, c.cs.nl, c.cs.cr
	}
	for s := p.start; ; {
		rest := b.Buf[c.off+s : c.off+p.end]
		var i int
		if c.cs == nil {
			i = bytes.IndexByte(rest, '\n')
		} else {
			i = c.cs.find(rest, 0)
		}
		last := i < 0
		if last {
			i = len(rest)
		}
		e := i
		if !last && e >= unit && bytes.Equal(rest[e-unit:e], cr) {
			e -= unit
		}
		if c.cs == nil {
			b.Buf = append(b.Buf, rest[:e]...)
		} else {
			b.Buf = c.cs.decode(c.dec, b.Buf, rest[:e])
		}
		if last {
			return b.Since(at)
		}
		b.Buf = append(b.Buf, '\n')
		s += i + len(nl)
	}
}

// keep takes what no record has taken, data[done:], over to the next block.
func (c *Cutter) keep(data []byte, base int64, done int) {
	if done > 0 {
		c.addTail(data[max(0, done-TailLen):done])
	}
	c.end = base + int64(done)
	rest := data[done:]
	c.line = max(c.line-done, 0)
	c.scan = max(c.scan-done, 0)
	if c.pend.open {
		c.pend.start -= done
		c.pend.end -= done
	}
	// The end of a line over the limit is kept too, for the newline's alignment and the tail.
	const last = TailLen + 8
	head := c.line + c.f.o.MaxLine
	if c.gap > 0 {
		head = c.gapAt - done
	}
	if cut := len(rest) - last; cut > head && (c.gap > 0 || cut-head > last) {
		unit := 1
		if c.cs != nil {
			unit = c.cs.unit
		}
		cut -= (cut - head) % unit
		c.carry = append(append(c.carry[:0], rest[:head]...), rest[cut:]...)
		c.gap += int64(cut - head)
		c.gapAt = head
		c.scan = max(c.scan-(cut-head), head)
		return
	}
	if c.gap > 0 {
		c.gapAt = head
	}
	if cap(c.carry) > 4*len(rest)+64<<10 {
		c.carry = nil
	}
	c.carry = append(c.carry[:0], rest...)
}

func (c *Cutter) addTail(p []byte) {
	if len(p) >= TailLen {
		copy(c.tail[:], p[len(p)-TailLen:])
		c.tailN = TailLen
		return
	}
	copy(c.tail[:], c.tail[len(p):])
	copy(c.tail[TailLen-len(p):], p)
	c.tailN = min(c.tailN+len(p), TailLen)
}

// LastLine gives the offset behind the last newline before size in a stream that can be read anywhere:
// where a reader begins that wants what is new. A line longer than MaxLine has no such place; then it is size.
func (f *Format) LastLine(r io.ReaderAt, size int64) (int64, error) {
	unit, nl := int64(1), []byte("\n")
	cs := f.cs
	if cs != nil {
		var head [4]byte
		n, _ := r.ReadAt(head[:], 0)
		for _, m := range cs.boms {
			if bytes.HasPrefix(head[:n], m.mark) {
				cs = m.then
			}
		}
		unit, nl = int64(cs.unit), cs.nl
	}
	size -= size % unit
	const step = 64 << 10
	p := make([]byte, step)
	for end := size; end > 0 && size-end <= int64(f.o.MaxLine)+step; {
		from := max(0, end-step)
		q := p[:end-from]
		if n, err := r.ReadAt(q, from); n < len(q) {
			return 0, err
		}
		for i := len(q); ; {
			if i = bytes.LastIndex(q[:i], nl); i < 0 {
				break
			}
			if at := from + int64(i); at%unit == 0 {
				return at + int64(len(nl)), nil
			}
			i += len(nl) - 1
		}
		end = from
		if from == 0 {
			return 0, nil
		}
	}
	return size, nil
}
