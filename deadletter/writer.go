package deadletter

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
	"unique"

	"github.com/rsetl/rsetl/record"
)

// Mark is how far a letter file is committed, for a checkpoint's parts: the JSON object
// {path, dev, ino, length}; dev and ino are 0 while there is no file.
type Mark []byte

type mark struct {
	Path   string `json:"path"`
	Dev    uint64 `json:"dev"`
	Ino    uint64 `json:"ino"`
	Length int64  `json:"length"`
}

// Options of a Writer. The zero value is usable.
type Options struct {
	Log *slog.Logger
	// MaxIDs bounds how many letters behind the mark are remembered, 120 bytes each; 1,000,000 where
	// zero. What is beyond is written twice when it comes again.
	MaxIDs int
	// Passed tells whether a split's committed position is behind pos, so that its letter can't come
	// again; nil: none is.
	Passed func(split string, epoch int64, pos record.Position) bool
	// MaxSize and MaxAge bound what is kept, in bytes and by a segment's last letter; 0: no bound.
	MaxSize int64
	MaxAge  time.Duration
	Now     func() time.Time // nil: time.Now
}

const (
	maxIDs   = 1_000_000
	maxLine  = 16 << 20  // longer letters behind the mark are not remembered
	maxWrite = 256 << 10 // Append writes when so much is waiting
)

// Writer appends letters to a file, which is made with the first. It is for one run of a
// pipeline: after an abort it is opened again, so that what comes again is known.
//
// A letter is {time, pipeline, step or sink, reason, split, path, epoch, offset, index, record,
// raw}; epoch is left out where it is 0, path, record and raw where unknown. Raw bytes that are no
// UTF-8 are in raw_base64 instead.
//
// All methods may be called from any goroutine. After an error the same call may be tried again.
type Writer struct {
	path string
	log  *slog.Logger
	o    Options

	mu                sync.Mutex
	f                 *os.File // nil: not open
	dev, ino          uint64
	len               int64  // the end of the last whole letter in the file
	synced            int64  // what of it is durable
	torn              bool   // there may be part of a letter behind len
	rewrite           bool   // a sync failed: the kernel may have dropped what it had to write
	dirSync           bool   // the file is new, its folder is not synced yet
	buf               []byte // letters to be written
	count             int64
	segment           mark                   // the end of the newest segment
	behind            []Segment              // segments that were read at start
	known             map[[2]uint64]uint64   // ids of letters behind the mark: 0, or the value of marks when it came again
	order             []knownLetter          // the known ones as they stand in the file; up to the first that has not come again yet
	lines             map[[12]byte][2]uint64 // while the file is read at start: the known ones by line
	matched           int
	marks             uint64
	marked, committed mark      // the last of Mark, and of those that were committed
	since             time.Time // the file's first letter
	checked           time.Time // when the bounds were last looked at
	gone              int64
	seeds             [2]maphash.Seed
	closed            bool
	truncate          func(f *os.File, n int64) error
	write             func(f *os.File, p []byte, at int64) (int, error) // tests put faults here
	sync              func(f *os.File) error
}

var _ Sink = (*Writer)(nil)

// knownLetter is a letter that was in the file at start: where it stands, its id, and where its record is.
type knownLetter struct {
	dev, ino uint64 // its file
	at       int64
	line     [12]byte // the letter's id for people
	id       [2]uint64
	step     bool // a step's, not a sink's
	split    unique.Handle[string]
	epoch    int64
	pos      record.Position
}

// Open prepares a writer for the file at path. committed is what Mark gave for the last
// committed checkpoint: the letters behind it are read, and not written again when their records
// come again. An unterminated last letter is cut off. For a pipeline's first start committed is nil;
// then the mark should be part of its first commit, so that a crash before the second finds it.
func Open(path string, committed Mark, o Options) (*Writer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxIDs <= 0 {
		o.MaxIDs = maxIDs
	}
	w := &Writer{path: path, log: o.Log, o: o, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		truncate: (*os.File).Truncate, write: (*os.File).WriteAt, sync: (*os.File).Sync}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	var m mark
	if len(committed) > 0 {
		if err := json.Unmarshal(committed, &m); err != nil {
			return nil, fmt.Errorf("the committed mark of dead letters can't be read: %w", err)
		}
	}
	w.committed = m
	defer func() { w.lines = nil }()
	if err := w.older(m); err != nil {
		return nil, err
	}
	err := w.open(false)
	if errors.Is(err, os.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	// Without a mark, or with another file's, nothing is known to come again, and an id may stand
	// for other data (a state that was removed): rather a letter twice than none.
	from := w.len
	switch {
	case m.Path != path:
	case m.Ino == 0 || len(w.behind) > 0: // the mark is in a segment, or was made before there was a file
		from = 0
	case m.Dev == w.dev && m.Ino == w.ino:
		from = m.Length
	}
	w.synced = min(w.synced, from) // the run before may have ended between writing letters and their sync
	if err := w.remember(w.f, w.dev, w.ino, from, w.len); err != nil {
		w.f.Close()
		return nil, err
	}
	return w, nil
}

// older remembers the letters behind the mark in segments.
func (w *Writer) older(m mark) error {
	all, err := Segments(w.path)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Seq != 0 {
			w.segment = mark{w.path, s.dev, s.ino, s.Size}
		}
	}
	if m.Path != w.path || m.Ino == 0 {
		return nil
	}
	i := slices.IndexFunc(all, func(s Segment) bool { return s.dev == m.Dev && s.ino == m.Ino })
	if i < 0 || all[i].Seq == 0 {
		return nil
	}
	for from := m.Length; all[i].Seq != 0; from = 0 {
		s := all[i]
		w.behind = append(w.behind, s)
		f, err := os.Open(s.Path)
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		err = w.remember(f, s.dev, s.ino, from, s.Size)
		f.Close()
		if err != nil {
			return err
		}
		if i++; i == len(all) {
			break
		}
	}
	return nil
}

// open opens the file; w.mu is held or w not shared yet.
func (w *Writer) open(create bool) error {
	flags := os.O_RDWR | syscall.O_NONBLOCK
	f, err := os.OpenFile(w.path, flags, 0)
	if create && errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(w.path), 0o750); err != nil {
			return fmt.Errorf("make the folder for dead letters: %w", err)
		}
		f, err = os.OpenFile(w.path, flags|os.O_CREATE, 0o640)
		w.dirSync = true
	}
	if err != nil {
		return fmt.Errorf("open dead letters: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", w.path)
	}
	end, glue := int64(0), false
	if err == nil {
		end, glue, err = lastLine(f, st.Size())
	}
	if err == nil && end < st.Size() {
		w.log.Warn("cut an unfinished dead letter; its record comes again", "path", w.path, "bytes", st.Size()-end)
		err = w.truncate(f, end)
	}
	if err == nil && glue {
		if _, err = w.write(f, []byte{'\n'}, end); err == nil {
			end++
		}
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("open dead letters: %w", err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	w.since = w.o.Now()
	if end > 0 {
		w.since = firstTime(f, w.since)
	}
	w.f, w.dev, w.ino, w.len, w.synced, w.torn, w.rewrite = f, uint64(sys.Dev), sys.Ino, end, end, false, false
	if end != st.Size() {
		w.synced = 0 // sync it though nothing is appended
	}
	return nil
}

// firstTime is the time of a file's first letter; other where it is none.
func firstTime(f *os.File, other time.Time) time.Time {
	b := make([]byte, len(letterBegin)+len(letterTime))
	if _, err := f.ReadAt(b, 0); err != nil || !bytes.HasPrefix(b, []byte(letterBegin)) {
		return other
	}
	if t, err := time.Parse(letterTime, string(b[len(letterBegin):])); err == nil {
		return t
	}
	return other
}

const letterTime = "2006-01-02T15:04:05.000Z"

const letterBegin = `{"time":"`

// lastLine finds the end of the last whole line. An unterminated one that is no letter of
// ours is left (glue: it needs a line feed).
func lastLine(f *os.File, size int64) (end int64, glue bool, err error) {
	block := make([]byte, 64<<10)
	for at := size; at > 0; {
		n := min(at, int64(len(block)))
		at -= n
		if _, err := f.ReadAt(block[:n], at); err != nil {
			return 0, false, err
		}
		if i := bytes.LastIndexByte(block[:n], '\n'); i >= 0 {
			end = at + int64(i) + 1
			break
		}
	}
	if end == size {
		return end, false, nil
	}
	head := make([]byte, min(size-end, int64(len(letterBegin))))
	if _, err := f.ReadAt(head, end); err != nil {
		return 0, false, err
	}
	if string(head) != letterBegin[:len(head)] {
		return size, true, nil
	}
	return end, false, nil
}

// remember reads the ids of a file's letters between two offsets.
func (w *Writer) remember(f *os.File, dev, ino uint64, from, to int64) error {
	if from >= to {
		return nil
	}
	limit, passed := w.o.MaxIDs, w.o.Passed
	if w.known == nil {
		w.known = map[[2]uint64]uint64{}
		w.lines = map[[12]byte][2]uint64{}
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), 64<<10)
	var line []byte
	skipped := 0
	at, size := from, int64(0) // of the line
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read dead letters: %w", err)
		}
		var l struct {
			Step, Sink, Split    string
			Epoch, Offset, Index int64
		}
		if gone, ok := voidedID(line); ok {
			delete(w.known, w.lines[gone])
			delete(w.lines, gone)
			line = line[:0]
		}
		switch {
		case len(line) == 0:
		case len(line) > maxLine || len(w.known) >= limit:
			skipped++
		case json.Unmarshal(line, &l) != nil || l.Step == "" && l.Sink == "": // someone else's line
		default:
			pos := record.Position{Offset: l.Offset, Index: int32(l.Index)}
			if passed != nil && passed(l.Split, l.Epoch, pos) {
				break
			}
			id := w.id(l.Step, l.Sink, l.Split, l.Epoch, pos)
			if _, twice := w.known[id]; !twice {
				own := lineID(line)
				w.known[id] = 0
				w.lines[own] = id
				w.order = append(w.order, knownLetter{dev, ino, at, own, id, l.Sink == "", unique.Make(l.Split), l.Epoch, pos})
			}
		}
		at += size
		size = 0
		if cap(line) > 1<<20 {
			line = nil
		}
		line = line[:0]
	}
	if skipped > 0 {
		w.log.Warn("too many or too long dead letters after the last checkpoint: some may be written twice", "path", w.path, "letters", skipped)
	}
	return nil
}

func (w *Writer) id(step, sink, split string, epoch int64, pos record.Position) (id [2]uint64) {
	var room [256]byte
	b := room[:0]
	b = strconv.AppendQuote(b, step)
	b = strconv.AppendQuote(b, sink)
	b = strconv.AppendQuote(b, split)
	b = strconv.AppendInt(append(b, ' '), epoch, 10)
	b = strconv.AppendInt(append(b, ' '), pos.Offset, 10)
	b = strconv.AppendInt(append(b, ' '), int64(pos.Index), 10)
	return [2]uint64{maphash.Bytes(w.seeds[0], b), maphash.Bytes(w.seeds[1], b)}
}

// ErrClosed is returned by a closed Writer.
var ErrClosed = errors.New("dead letters are closed")

// Append adds a letter, unless it is known to be in the file already.
func (w *Writer) Append(l *Letter) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if len(w.known) > 0 && l.Split != nil {
		id := w.id(l.Step, l.Sink, l.Split.ID, l.Split.Epoch, l.Pos)
		if at, ok := w.known[id]; ok {
			if at == 0 {
				w.matched++
			}
			w.known[id] = w.marks + 1
			return nil
		}
	}
	n := len(w.buf)
	w.buf = appendLetter(w.buf, l)
	if len(w.buf) >= maxWrite {
		if err := w.flush(); err != nil {
			w.buf = w.buf[:n] // the caller comes again with it
			return err
		}
	}
	w.count++
	return nil
}

func appendLetter(dst []byte, l *Letter) []byte {
	text := func(key, s string) {
		dst = append(dst, key...)
		dst = record.AppendJSONString(dst, []byte(s))
	}
	dst = append(dst, letterBegin...)
	dst = l.Time.UTC().AppendFormat(dst, letterTime)
	text(`","pipeline":`, l.Pipeline)
	if l.Sink != "" {
		text(`,"sink":`, l.Sink)
	} else {
		text(`,"step":`, l.Step)
	}
	text(`,"reason":`, l.Reason)
	if s := l.Split; s != nil {
		text(`,"split":`, s.ID)
		if s.Path != "" {
			text(`,"path":`, s.Path)
		}
		if s.Epoch != 0 {
			dst = strconv.AppendInt(append(dst, `,"epoch":`...), s.Epoch, 10)
		}
	}
	dst = strconv.AppendInt(append(dst, `,"offset":`...), l.Pos.Offset, 10)
	dst = strconv.AppendInt(append(dst, `,"index":`...), int64(l.Pos.Index), 10)
	if len(l.Record) > 0 {
		dst = append(dst, `,"record":`...)
		dst = appendOneLine(dst, l.Record)
	}
	switch {
	case l.Raw == nil:
	case utf8.Valid(l.Raw):
		dst = record.AppendJSONString(append(dst, `,"raw":`...), l.Raw)
	default:
		dst = base64.StdEncoding.AppendEncode(append(dst, `,"raw_base64":"`...), l.Raw)
		dst = append(dst, '"')
	}
	return append(dst, '}', '\n')
}

// appendOneLine appends a JSON document that may be written on several lines, or not be
// JSON after all.
func appendOneLine(dst, doc []byte) []byte {
	if bytes.IndexByte(doc, '\n') < 0 {
		return append(dst, doc...)
	}
	var one bytes.Buffer
	if json.Compact(&one, doc) != nil {
		return record.AppendJSONString(dst, doc)
	}
	return append(dst, one.Bytes()...)
}

// flush writes what is waiting.
func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	if w.f == nil {
		if err := w.open(true); err != nil {
			return err
		}
	}
	if w.torn {
		if err := w.truncate(w.f, w.len); err != nil {
			return fmt.Errorf("cut an unfinished dead letter off: %w", err)
		}
		w.torn = false
	} else if st, err := w.f.Stat(); err == nil && st.Size() != w.len {
		// Someone truncated the file or wrote to it: go on at its end.
		w.len = st.Size()
		w.synced = min(w.synced, w.len)
	}
	if _, err := w.write(w.f, w.buf, w.len); err != nil {
		w.torn = w.truncate(w.f, w.len) != nil
		return fmt.Errorf("write dead letters: %w", err)
	}
	w.len += int64(len(w.buf))
	if cap(w.buf) > 4*maxWrite {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return nil
}

// Sync makes all letters durable.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.f == nil {
		return w.turn()
	}
	if w.rewrite {
		if err := w.again(); err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		w.rewrite = false
	}
	if w.synced < w.len {
		if err := w.sync(w.f); err != nil {
			w.rewrite = true
			return fmt.Errorf("sync dead letters: %w", err)
		}
		w.synced = w.len
	}
	if w.dirSync {
		d, err := os.Open(filepath.Dir(w.path))
		if err == nil {
			err = d.Sync()
			d.Close()
		}
		if err != nil {
			return fmt.Errorf("sync the folder of dead letters: %w", err)
		}
		w.dirSync = false
	}
	// Someone may have moved the file away: then the next letters go to a new one.
	var st syscall.Stat_t
	if err := syscall.Stat(w.path, &st); errors.Is(err, syscall.ENOENT) || err == nil && (uint64(st.Dev) != w.dev || st.Ino != w.ino) {
		w.f.Close()
		w.f = nil
		w.len, w.synced = 0, 0
	}
	return w.turn()
}

// again writes what isn't durable once more: after a failed fsync the kernel takes the
// pages for written, and the next fsync would succeed without them.
func (w *Writer) again() error {
	block := make([]byte, 64<<10)
	for at := w.synced; at < w.len; {
		n := min(w.len-at, int64(len(block)))
		if _, err := w.f.ReadAt(block[:n], at); err != nil {
			return err
		}
		if _, err := w.write(w.f, block[:n], at); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// Mark gives what a checkpoint commits as its part. It must be called when the checkpoint's
// marker is sent off, not when it commits: a letter before the mark is one whose record is
// before the marker, so that it never comes again once the checkpoint is committed.
func (w *Writer) Mark() (Mark, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	w.marks++
	switch {
	case w.f != nil:
		w.marked = mark{w.path, w.dev, w.ino, w.len}
	case w.segment.Ino != 0: // what comes is behind it, in whatever files
		w.marked = w.segment
	default:
		w.marked = mark{Path: w.path}
	}
	// A letter from before the start whose record has not come again yet stays behind the mark: its record is
	// behind the marker.
	for len(w.order) > 0 {
		first := w.order[0]
		if at, ok := w.known[first.id]; ok && at == 0 {
			w.marked = mark{w.path, first.dev, first.ino, first.at}
			break
		}
		w.order = w.order[1:]
	}
	return json.Marshal(w.marked)
}

// Committed tells that the checkpoint of the last Mark is committed: letters that came again
// before it are forgotten.
func (w *Writer) Committed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.committed = w.marked
	if w.matched == 0 {
		return
	}
	for id, at := range w.known {
		if at != 0 && at <= w.marks {
			delete(w.known, id)
			w.matched--
		}
	}
	if len(w.known) == 0 {
		w.known = nil
	}
}

// Count is the number of letters that were added since Open.
func (w *Writer) Count() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Close syncs and closes the file. It may be called again.
func (w *Writer) Close() error {
	err := w.Sync()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	if w.f != nil {
		if e := w.f.Close(); err == nil {
			err = e
		}
		w.f = nil
	}
	return err
}
