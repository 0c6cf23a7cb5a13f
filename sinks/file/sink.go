package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"syscall"
	"time"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
)

// Sink writes files. Encode may be called from anywhere, all else by one goroutine at a time.
//
// A file's life: opened (pending), committed with its length by Prepare (ready), written
// behind that length, its new length committed by Mark. A start cuts it to what was committed
// last. A file that is none of ours, or was moved, is never cut: it begins anew as pending.
type Sink struct {
	csv, overwrite bool
	rotate         Rotate
	path           string // "" where template is set
	template       *expr.TemplateProgram
	layout         layout
	json           *record.Encoder // nil for csv
	header         []byte
	names          []string
	columns        []*expr.Program // one for each column; else slots
	slots          []int
	scratch        sync.Pool
	fsync          func(*os.File) error // tests put faults here
	now            func() time.Time
	log            *slog.Logger

	files       map[string]*file
	pending     []*file
	committed   map[string]saved // what the committed state holds
	marked      map[string]saved // what Mark returned; nil where nothing changed
	touched     []*file          // by the chunk at hand
	bad         map[string]string
	letGo       bool            // there are committed files that the path no longer means: the next commit drops them
	overwritten map[string]bool // files that were emptied for mode overwrite
	fresh       bool            // nothing was committed yet: mode overwrite acts
	clock       uint64          // counts uses of files
	open        int             // handles
	maxOpen     int             // limit of handles
	maxKnown    int             // limit of files, pending and uncommitted ones aside
}

var (
	_ sinks.Sink      = (*Sink)(nil)
	_ sinks.Starter   = (*Sink)(nil)
	_ sinks.Marked    = (*Sink)(nil)
	_ sinks.Preparer  = (*Sink)(nil)
	_ sinks.Describer = (*Sink)(nil)
)

// Encode appends the row, behind its path where that is a template.
func (s *Sink) Encode(dst []byte, b *record.Batch, i int) ([]byte, error) {
	if s.template == nil && s.columns == nil && !s.csv {
		return append(s.json.Append(dst, b, i), '\n'), nil
	}
	x := s.scratch.Get().(*scratch)
	defer func() {
		x.env.B = nil
		s.scratch.Put(x)
	}()
	x.env.B = b
	if s.template != nil {
		path, ok := s.template.Append(x.path[:0], &x.env, i)
		x.path = path
		if !ok {
			return dst, errors.New("the path can't be made: a field that it names is missing or NULL, or the event time is no time")
		}
		if why := s.layout.check(string(path)); why != "" {
			return dst, errors.New(why)
		}
		dst = binary.AppendUvarint(dst, uint64(len(path)))
		dst = append(dst, path...)
	}
	switch {
	case s.columns != nil:
		for k, p := range s.columns {
			x.values[k] = p.Eval(&x.env, i)
		}
	case s.csv:
		for k, slot := range s.slots {
			x.values[k] = b.Get(i, slot)
		}
	default:
		return append(s.json.Append(dst, b, i), '\n'), nil
	}
	if s.csv {
		dst, x.cell = appendRow(dst, b, x.values, x.cell)
		return dst, nil
	}
	return append(s.json.AppendValues(dst, b, x.values), '\n'), nil
}

// Describe shows a row for a dead letter.
func (s *Sink) Describe(dst, row []byte) []byte {
	if s.template != nil {
		_, row = cutPath(row)
	}
	row = bytes.TrimSuffix(row, []byte{'\n'})
	if !s.csv {
		return append(dst, row...)
	}
	cells, err := csv.NewReader(bytes.NewReader(row)).Read()
	if err != nil || len(cells) != len(s.names) {
		cells = []string{string(row)}
	}
	dst = append(dst, '{')
	for i, c := range cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = record.AppendJSONString(dst, []byte(s.names[i]))
		dst = append(dst, ':')
		dst = record.AppendJSONString(dst, []byte(c))
	}
	return append(dst, '}')
}

func cutPath(row []byte) (path, rest []byte) {
	n, w := binary.Uvarint(row)
	return row[w : w+int(n)], row[w+int(n):]
}

type savedState struct {
	Version int     `json:"v"`
	Files   []saved `json:"files"`
}

// Start cuts the files of the committed state to their committed lengths.
func (s *Sink) Start(ctx context.Context, env *sinks.Env) error {
	s.closeAll()
	s.fresh = env.Fresh
	if env.Log != nil {
		s.log = env.Log
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if len(env.State) > 0 {
		var st savedState
		if err := json.Unmarshal(env.State, &st); err != nil {
			return fmt.Errorf("the committed state of the file sink can't be read: %w", err)
		}
		if st.Version != 1 {
			return fmt.Errorf("the committed state of the file sink has version %d, this rsetl knows 1", st.Version)
		}
		for _, was := range st.Files {
			if s.abandoned(was.Path) {
				s.abandon(was)
				continue
			}
			s.committed[was.Path] = was
			if err := s.resume(was); err != nil {
				return err
			}
		}
	}
	if s.path == "" {
		return nil
	}
	_, err := s.ensure(s.path)
	return err
}

// abandoned tells whether the pipeline's path was changed and no longer means a committed file.
func (s *Sink) abandoned(path string) bool {
	if s.path != "" {
		return path != s.path
	}
	return s.layout.check(path) != ""
}

// abandon gives up a file that the pipeline's path no longer means. It isn't cut: what is behind the committed length may be another
// pipeline's by now.
func (s *Sink) abandon(was saved) {
	s.letGo = true
	if st, err := os.Stat(was.Path); err == nil && st.Size() > was.Len && was.at(was.Path) {
		s.log.Warn("an output file that the path no longer means is longer than at the last checkpoint: rows behind that come again at the new path",
			"path", was.Path, "length", was.Len, "found", st.Size())
	}
}

// resume takes up a committed file where it still is what was committed.
func (s *Sink) resume(was saved) error {
	h, id, size, err := openFile(was.Path, false)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		s.log.Warn("an output file is gone", "path", was.Path, "length", was.Len)
		return nil
	}
	if err != nil {
		return fmt.Errorf("open output: %w", err)
	}
	f := &file{path: was.Path, id: id, h: h, len: was.Len, from: was.Len, ready: true, since: time.Unix(was.Since, 0)}
	s.open++
	if id != was.identity || size < was.Len {
		s.close(f)
		s.log.Warn("an output file is not the one that was written, or was truncated; it is left as it is", "path", was.Path,
			"length", was.Len, "found", size)
		return nil
	}
	if err := f.tail.read(h, was.Len); err != nil {
		s.close(f)
		return fmt.Errorf("read the end of %s: %w", was.Path, err)
	}
	if f.tail.hash() != was.Tail {
		s.close(f)
		s.log.Warn("an output file holds something else than was written; it is left as it is", "path", was.Path, "length", was.Len)
		return nil
	}
	if size > was.Len {
		if err := h.Truncate(was.Len); err != nil {
			s.close(f)
			return fmt.Errorf("cut %s to its committed length %d: %w", was.Path, was.Len, err)
		}
		s.log.Info("cut what was written after the last checkpoint; it comes again", "path", was.Path, "length", was.Len, "cut", size-was.Len)
		f.dirty = true
	}
	s.files[was.Path] = f
	s.use(f)
	return s.limit()
}

// Stop closes all files.
func (s *Sink) Stop(context.Context) error {
	return s.closeAll()
}

func (s *Sink) closeAll() error {
	var err error
	for _, f := range s.files {
		err = errors.Join(err, s.close(f))
	}
	clear(s.files)
	clear(s.committed)
	s.pending, s.marked = nil, nil
	return err
}

// close closes the handle; what was written is made durable first.
func (s *Sink) close(f *file) error {
	if f.h == nil {
		return nil
	}
	var err error
	if f.dirty {
		err = f.sync(s.fsync)
	}
	if e := f.h.Close(); err == nil {
		err = e
	}
	f.h = nil
	s.open--
	if err != nil {
		return fmt.Errorf("close %s: %w", f.path, err)
	}
	return nil
}

func (s *Sink) use(f *file) {
	s.clock++
	f.used = s.clock
}

// limit closes the handles that were not used for longest.
func (s *Sink) limit() error {
	for s.open > s.maxOpen {
		var old *file
		for _, f := range s.files {
			if f.h != nil && (old == nil || f.used < old.used) {
				old = f
			}
		}
		if old == nil {
			return nil
		}
		if err := s.close(old); err != nil {
			return err
		}
	}
	return nil
}

// forget drops files that could be cut to what is committed without losing a row, least
// recently used first, so that the state doesn't grow for ever.
func (s *Sink) forget() error {
	if len(s.files) <= s.maxKnown {
		return nil
	}
	var idle []*file
	for _, f := range s.files {
		if c, ok := s.committed[f.path]; ok && f.ready && !f.held && !f.torn && c.Len == f.len {
			idle = append(idle, f)
		}
	}
	sort.Slice(idle, func(a, b int) bool { return idle[a].used < idle[b].used })
	for _, f := range idle[:min(len(idle), len(s.files)-s.maxKnown*3/4)] {
		delete(s.files, f.path)
		if err := s.close(f); err != nil {
			return err
		}
	}
	return nil
}

// ensure gives the file of that path, open. It may be pending.
func (s *Sink) ensure(path string) (*file, error) {
	f := s.files[path]
	if f != nil && f.h != nil {
		if linked(f.h) {
			s.use(f)
			return f, nil
		}
		s.log.Warn("an output file was removed; what it held is gone with it, writing goes on in a new one", "path", path, "bytes", f.len)
		s.drop(f) // an error of closing what is gone is nobody's
		f = nil
	}
	h, id, size, err := openFile(path, f == nil)
	if f != nil {
		if err == nil && id == f.id && size >= f.len {
			f.h = h
			s.open++
			s.use(f)
			return f, s.limit()
		}
		// Someone moved or replaced it while it was closed.
		if err == nil {
			h.Close()
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("open output: %w", err)
		}
		s.drop(f)
		h, id, size, err = openFile(path, true)
	}
	if err != nil {
		return nil, fmt.Errorf("open output: %w", err)
	}
	f = &file{path: path, id: id, h: h, len: size, from: size, since: s.now()}
	s.open++
	fail := func(what string, err error) (*file, error) {
		s.close(f)
		return nil, fmt.Errorf("%s %s: %w", what, path, err)
	}
	if s.overwrite && s.fresh && size > 0 && !s.overwritten[path] {
		if err := h.Truncate(0); err != nil {
			return fail("empty", err)
		}
		f.len, f.from, f.dirty = 0, 0, true
	}
	if s.overwrite && s.fresh {
		s.overwritten[path] = true
	}
	if err := f.tail.read(h, f.len); err != nil {
		return fail("read the end of", err)
	}
	f.glue = f.tail.n > 0 && f.tail.b[f.tail.n-1] != '\n'
	s.files[path] = f
	s.pending = append(s.pending, f)
	s.use(f)
	if err := s.limit(); err != nil {
		return nil, err
	}
	return f, s.forget()
}

// drop stops writing to a file.
func (s *Sink) drop(f *file) error {
	delete(s.files, f.path)
	s.pending = slices.DeleteFunc(s.pending, func(p *file) bool { return p == f })
	return s.close(f)
}

// Ready tells whether no file waits for a commit, be it a new one or one that is no longer the sink's.
func (s *Sink) Ready() bool { return len(s.pending) == 0 && !s.letGo }

// Prepare gives the committed files as they were committed, and the new ones.
func (s *Sink) Prepare(context.Context) ([]byte, error) {
	next := maps.Clone(s.committed)
	dirs := map[string]bool{}
	for _, f := range s.pending {
		if f.dirty && f.h != nil {
			if err := f.sync(s.fsync); err != nil {
				return nil, err
			}
		}
		dirs[filepath.Dir(f.path)] = true
		next[f.path] = f.save()
	}
	for d := range dirs {
		if err := syncDir(d); err != nil {
			return nil, fmt.Errorf("sync folder: %w", err)
		}
	}
	return encodeState(next), nil
}

// Prepared makes the new files writable.
func (s *Sink) Prepared(context.Context) error {
	for _, f := range s.pending {
		f.ready = true
		s.committed[f.path] = f.save()
	}
	s.pending = s.pending[:0]
	s.letGo = false
	return nil
}

func encodeState(m map[string]saved) []byte {
	st := savedState{Version: 1, Files: []saved{}}
	for _, path := range slices.Sorted(maps.Keys(m)) {
		st.Files = append(st.Files, m[path])
	}
	b, err := json.Marshal(st)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// Deliver writes the chunk, all of it or nothing.
func (s *Sink) Deliver(_ context.Context, c *sinks.Chunk) ([]sinks.Reject, error) {
	defer s.release()
	if s.template == nil {
		f, err := s.ensure(s.path)
		if err != nil {
			if hopeless(err) != "" {
				err = sinks.Permanent(err)
			}
			return nil, err
		}
		if !f.ready {
			return nil, sinks.ErrUnprepared
		}
		if err := s.begin(f); err != nil {
			return nil, err
		}
		for i := range c.Parts {
			if err := s.write(f, c.Parts[i].Data); err != nil {
				return nil, s.rollback(err)
			}
		}
		return nil, nil
	}
	rejects, err := s.distribute(c)
	if err != nil {
		return nil, err
	}
	for _, f := range s.touched {
		if !f.ready {
			return nil, sinks.ErrUnprepared
		}
	}
	for _, f := range s.touched {
		if _, err := s.ensure(f.path); err != nil {
			return nil, s.rollback(err)
		}
		if s.files[f.path] != f { // it was replaced just now, and the new one is not committed
			return nil, s.rollback(sinks.ErrUnprepared)
		}
		if err := s.begin(f); err != nil {
			return nil, s.rollback(err)
		}
		if err := s.write(f, f.buf); err != nil {
			return nil, s.rollback(err)
		}
	}
	return rejects, nil
}

// distribute puts the chunk's rows into the buffers of their files. It opens those that are new.
func (s *Sink) distribute(c *sinks.Chunk) (rejects []sinks.Reject, err error) {
	for i := range c.Parts {
		p := &c.Parts[i]
		for k := range p.Ends {
			path, row := cutPath(p.Row(k))
			f := s.files[string(path)]
			if f == nil || len(f.buf) == 0 {
				name := string(path)
				if why, ok := s.bad[name]; ok {
					rejects = append(rejects, sinks.Reject{Part: i, Row: k, Reason: why})
					continue
				}
				if f == nil {
					if f, err = s.ensure(name); err != nil {
						if why := hopeless(err); why != "" {
							if s.bad == nil {
								s.bad = map[string]string{}
							}
							s.bad[name] = why
							rejects = append(rejects, sinks.Reject{Part: i, Row: k, Reason: why})
							continue
						}
						return nil, err
					}
				}
				f.held = true
				s.touched = append(s.touched, f)
			}
			f.buf = append(f.buf, row...)
		}
	}
	return rejects, nil
}

// hopeless tells why a path that values made will never be a file, "" where it may become one.
func hopeless(err error) string {
	for _, e := range []error{syscall.EISDIR, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL, syscall.EILSEQ, errNotRegular} {
		if errors.Is(err, e) {
			return err.Error()
		}
	}
	return ""
}

// release ends the work on a chunk.
func (s *Sink) release() {
	for _, f := range s.touched {
		f.held, f.begun = false, false
		if cap(f.buf) > 64<<10 {
			f.buf = nil
		}
		f.buf = f.buf[:0]
	}
	clear(s.touched)
	s.touched = s.touched[:0]
	clear(s.bad)
}

// begin gets a file ready for a chunk's rows: it must end where the last ones did.
func (s *Sink) begin(f *file) error {
	if s.template == nil {
		s.touched = append(s.touched, f)
	}
	f.mark, f.old, f.held, f.begun = f.len, f.tail, true, true
	st, err := f.h.Stat()
	if err != nil {
		return err
	}
	switch size := st.Size(); {
	case size == f.len:
	case size > f.len && f.torn:
		if err := f.h.Truncate(f.len); err != nil {
			return fmt.Errorf("cut a failed write off %s: %w", f.path, err)
		}
	default:
		s.log.Warn("another program changed an output file; writing goes on at its end", "path", f.path, "length", f.len, "found", size)
		f.len = size
		if err := f.tail.read(f.h, size); err != nil {
			return err
		}
		f.glue = f.tail.n > 0 && f.tail.b[f.tail.n-1] != '\n'
		f.mark, f.old, f.from = f.len, f.tail, min(f.from, f.len)
	}
	f.torn = false
	return nil
}

// maxWrite bounds one write, so that a full disk costs little to undo.
const maxWrite = 1 << 20

// write writes data at the file's end, behind the header line where it is the first.
func (s *Sink) write(f *file, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if f.glue {
		f.glue = false
		if err := s.put(f, []byte{'\n'}); err != nil {
			f.glue = true
			return err
		}
	}
	if f.len == 0 && len(s.header) > 0 {
		if err := s.put(f, s.header); err != nil {
			return err
		}
	}
	for len(data) > 0 {
		n := min(len(data), maxWrite)
		if err := s.put(f, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (s *Sink) put(f *file, p []byte) error {
	f.dirty, f.torn = true, true
	if _, err := f.h.WriteAt(p, f.len); err != nil {
		return err
	}
	f.torn = false
	f.len += int64(len(p))
	f.tail.add(p)
	return nil
}

// rollback takes the chunk's rows out of the files again.
func (s *Sink) rollback(cause error) error {
	for _, f := range s.touched {
		if !f.begun {
			continue
		}
		if f.len == f.mark && !f.torn {
			continue
		}
		f.len, f.tail, f.torn = f.mark, f.old, true
		f.glue = f.tail.n > 0 && f.tail.b[f.tail.n-1] != '\n'
		if f.h == nil {
			continue
		}
		if err := f.h.Truncate(f.mark); err != nil {
			s.log.Warn("can't cut a failed write off; it is tried again before the next", "path", f.path, "error", err)
			continue
		}
		f.torn = false
	}
	return cause
}

// Mark makes what was written durable and gives the files' lengths.
func (s *Sink) Mark(context.Context) ([]byte, error) {
	next := map[string]saved{}
	for _, f := range slices.Collect(maps.Values(s.files)) {
		if (f.torn || f.dirty) && f.h == nil {
			if g, err := s.ensure(f.path); err != nil {
				return nil, err
			} else if g != f {
				f = g // it was moved while it was closed
			}
		}
		if f.torn && f.h != nil {
			if err := f.h.Truncate(f.len); err != nil {
				return nil, fmt.Errorf("cut a failed write off %s: %w", f.path, err)
			}
			f.torn, f.dirty = false, true
		}
		if f.dirty && f.h != nil {
			if err := f.sync(s.fsync); err != nil {
				return nil, err
			}
		}
		next[f.path] = f.save()
	}
	for _, f := range s.pending {
		if err := syncDir(filepath.Dir(f.path)); err != nil {
			return nil, fmt.Errorf("sync folder: %w", err)
		}
	}
	s.marked = next
	if maps.Equal(next, s.committed) {
		return nil, nil
	}
	return encodeState(next), nil
}

// Committed is the time for rotation: all that the files hold is committed.
func (s *Sink) Committed(context.Context) error {
	if s.marked == nil {
		return nil
	}
	s.committed, s.marked = s.marked, nil
	for _, f := range s.pending {
		f.ready = true
	}
	s.pending = s.pending[:0]
	s.fresh = false
	clear(s.overwritten)
	for _, f := range slices.Collect(maps.Values(s.files)) {
		if !f.id.at(f.path) {
			s.log.Info("an output file was moved; going on in a new one", "path", f.path)
			if err := s.drop(f); err != nil {
				s.log.Warn("an output file that was moved", "error", err)
			}
			continue
		}
		if s.ripe(f) {
			s.rotateFile(f)
		}
	}
	if err := s.forget(); err != nil {
		s.log.Warn("an output file that is not used", "error", err)
	}
	return nil
}

// ripe tells whether a file is to be rotated.
func (s *Sink) ripe(f *file) bool {
	if f.len == 0 {
		return false
	}
	every := s.rotate.Every.D()
	return s.rotate.Size > 0 && f.len >= int64(s.rotate.Size) ||
		every > 0 && s.now().UTC().Truncate(every).After(f.since.UTC().Truncate(every))
}
