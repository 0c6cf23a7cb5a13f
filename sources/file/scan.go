package file

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/state"
)

// found is a file that matches now.
type found struct {
	path string
	fi   fs.FileInfo
}

// list gives the files that match, by name, each once whatever names it has.
func (r *run) list() []found {
	var paths []string
	for _, p := range r.cfg.Paths {
		// A name may have a glob's characters: what is there under it is meant.
		if _, err := os.Lstat(p); err == nil || !hasMeta(p) {
			paths = append(paths, p)
			continue
		}
		var opts []doublestar.GlobOption
		if strings.Contains(p, "**") { // symbolic links may go round in circles
			opts = append(opts, doublestar.WithNoFollow())
		}
		m, err := doublestar.FilepathGlob(p, opts...)
		if err != nil {
			r.setTrouble(p, fmt.Errorf("cannot look for %s: %w", p, err))
			continue
		}
		paths = append(paths, m...)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	var out []found
	seen := map[fileID]int{}
	for _, p := range paths {
		if r.excluded(p) {
			continue
		}
		fi, err := os.Stat(p)
		if err != nil {
			r.missing(p, err)
			continue
		}
		if err := refuse(p, fi); err != nil {
			// A glob matches folders and sockets too; that is no mistake.
			literal := slices.Contains(r.cfg.Paths, p)
			if !r.said[p] && (literal || !fi.IsDir()) {
				r.said[p] = true
				r.log.Warn("not read", "err", err)
				if r.once && literal {
					r.failed = append(r.failed, err)
				}
			}
			if literal {
				r.setTrouble(p, err)
			}
			continue
		}
		id := idOf(fi)
		if i, ok := seen[id]; ok && id != (fileID{}) {
			// The name it is known by stays; else the first.
			if e := r.byID[id]; e != nil && e.path == p {
				out[i].path = p
			}
			continue
		}
		seen[id] = len(out)
		out = append(out, found{p, fi})
	}
	return out
}

// missing is called for a path that can't be looked at.
func (r *run) missing(p string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	err = fmt.Errorf("cannot open %s: %w", p, unpath(err))
	if r.once {
		r.failed = append(r.failed, err)
	}
	r.setTrouble(p, err)
}

func hasMeta(p string) bool { return strings.ContainsAny(p, `*?[{\`) }

func (r *run) excluded(p string) bool {
	for _, x := range r.exclude {
		name := p
		if !strings.ContainsRune(x, filepath.Separator) {
			name = filepath.Base(p)
		}
		if ok, _ := doublestar.PathMatch(x, name); ok {
			return true
		}
	}
	return false
}

// candidate is a file that no open split has.
type candidate struct {
	found
	id   fileID
	h    *handle
	head []byte
	sums map[int]string // hashes of head's beginnings, for what many splits are compared with
}

// fits is fingerprint.fits for head.
func (c *candidate) fits(p fingerprint) bool {
	if len(c.head) < p.n {
		return false
	}
	sum, ok := c.sums[p.n]
	if !ok {
		if c.sums == nil {
			c.sums = map[int]string{}
		}
		sum = hash(c.head[:p.n])
		c.sums[p.n] = sum
	}
	return sum == p.sum
}

// scan looks for files that came, moved or went.
func (r *run) scan() error {
	r.scanning = true
	defer func() { r.scanning = false }()
	r.rescan = false
	r.scanned = time.Now()
	defer func() { r.scanCost = time.Since(r.scanned) }()
	files := r.list()
	r.watchDirs(files)
	if len(files) == 0 && len(r.entries) == 0 && !r.said[""] {
		r.said[""] = true
		msg := "no file matches " + strings.Join(r.cfg.Paths, ", ")
		if r.once {
			for _, p := range r.cfg.Paths {
				if !strings.ContainsAny(p, "*?[{\\") {
					return fmt.Errorf("%s; relative paths count from the working directory", msg)
				}
			}
			r.out.Trouble(errors.New(msg))
		} else {
			r.log.Info(msg + "; waiting for one")
		}
	}

	clear(r.unborn)
	there := map[fileID]bool{}
	var cands []*candidate
	for _, f := range files {
		id := idOf(f.fi)
		there[id] = true
		e := r.byID[id]
		if e == nil {
			cands = append(cands, &candidate{found: f, id: id})
			continue
		}
		e.left = time.Time{}
		if e.path != f.path {
			r.log.Info("file was renamed", "from", e.path, "to", f.path)
			r.clearTrouble(e.path)
			e.path, e.c.Path = f.path, f.path
			if err := r.put(item{update: e.state()}); err != nil {
				return err
			}
		}
	}
	for id := range r.waiting {
		if !there[id] {
			delete(r.waiting, id)
		}
	}
	for _, e := range slices.Clone(r.entries) {
		if !there[e.m.id] && e.left.IsZero() {
			e.left = time.Now()
			if e.h == nil {
				r.activate(e) // opened again if its inode can be found, else over
			}
		}
	}

	opened, err := r.identify(cands)
	if err != nil {
		return err
	}
	if r.first && !r.once {
		opened = append(opened, r.movedAway(there)...)
	}
	if err := r.openAll(opened); err != nil {
		return err
	}
	for p := range maps.Clone(r.trouble) {
		if !slices.ContainsFunc(files, func(f found) bool { return f.path == p }) && !slices.ContainsFunc(r.entries, func(e *entry) bool { return e.path == p }) {
			if _, err := os.Lstat(p); err != nil {
				r.clearTrouble(p)
			}
		}
	}
	r.paths = make(map[string]*entry, len(r.entries))
	for _, e := range r.entries {
		r.paths[e.path] = e
	}
	return r.forget(there)
}

// identify finds out what each new file is: the going on of a known split or a new one.
func (r *run) identify(cands []*candidate) (opened []*entry, err error) {
	defer func() {
		for _, c := range cands {
			if c.h != nil {
				c.h.close()
			}
		}
	}()
	// Inodes are used again, so several splits may have been of one.
	byID := map[fileID][]*known{}
	for _, k := range r.known {
		if k.m.id != (fileID{}) && !k.used {
			byID[k.m.id] = append(byID[k.m.id], k)
		}
	}
	// Those that are where they were come first: what they leave over may be carried on by a copy.
	var rest []*candidate
	for _, c := range cands {
		ks := byID[c.id]
		if len(ks) == 0 {
			rest = append(rest, c)
			continue
		}
		if !r.look(c) {
			continue
		}
		k, tail, err := c.best(ks)
		if err != nil {
			r.missing(c.path, err)
			continue
		}
		if k == nil {
			rest = append(rest, c)
			continue
		}
		opened = append(opened, r.resume(c, k, tail))
	}
	atEnd := r.first && r.atEnd && r.out.Fresh()
	for _, c := range rest {
		if c.fi.Size() == 0 && !r.once {
			// It has nothing to read, and may become anything: a packed copy, say.
			r.unborn[c.path] = true
			continue
		}
		if c.h == nil && !r.look(c) {
			continue
		}
		if k, tail := r.original(c); k != nil {
			r.log.Info("file carries on what was read under another name", "path", c.path, "was", k.st.Path, "offset", k.pos)
			opened = append(opened, r.resume(c, k, tail))
			continue
		}
		if r.mustWait(c, opened) {
			continue
		}
		delete(r.waiting, c.id)
		start := int64(0)
		if atEnd {
			if start, err = r.lastLine(c); err != nil {
				r.missing(c.path, err)
				continue
			}
		}
		h := c.h
		c.h = nil
		e, err := r.fresh(h, c.fi, c.path, c.id, start)
		if err != nil {
			h.close()
			r.missing(c.path, err)
			continue
		}
		for _, o := range r.entries {
			if o.path == c.path && !o.left.IsZero() {
				e.after = o
			}
		}
		opened = append(opened, e)
	}
	slices.SortStableFunc(opened, func(a, b *entry) int { return strings.Compare(a.path, b.path) })
	return opened, nil
}

// best finds the split that c is of: the one that was read furthest of those that fit.
func (c *candidate) best(ks []*known) (best *known, tail []byte, err error) {
	for _, k := range ks {
		if best != nil && (k.pos < best.pos || k.pos == best.pos && (k.st.Done || !best.st.Done)) || k.m.print.n > 0 && !c.fits(k.m.print) {
			continue
		}
		ok, t, e := k.m.trust(c.h, c.head, k.pos)
		if e != nil {
			return nil, nil, e
		}
		if ok {
			best, tail = k, t
		}
	}
	return best, tail, nil
}

// look opens a candidate and reads its beginning.
func (r *run) look(c *candidate) bool {
	h, fi, err := openFile(c.path)
	if err != nil {
		r.missing(c.path, err)
		return false
	}
	if idOf(fi) != c.id { // changed since it was listed; the next scan finds out
		h.close()
		r.rescan = true
		return false
	}
	err = h.sniff(r.once)
	if err == nil {
		c.head, err = h.head(printLen)
	}
	if err != nil && err != errPartial {
		h.close()
		r.missing(c.path, err)
		return false
	}
	c.h, c.fi = h, fi
	return true
}

// original finds the split that c carries on: one whose file is gone, with the same first bytes and
// the same bytes before the position.
func (r *run) original(c *candidate) (*known, []byte) {
	var best *known
	var tail []byte
	for _, k := range r.known {
		if k.pos == 0 || k.m.print.n == 0 || best != nil && k.pos <= best.pos {
			continue
		}
		// A copy is made while the original is there. A file made after it was deleted is another
		// one, however it begins.
		if !c.fits(k.m.print) || c.after(k.died, k.st.Path) {
			continue
		}
		if ok, t, err := k.m.trust(c.h, c.head, k.pos); ok && err == nil {
			best, tail = k, t
		}
	}
	return best, tail
}

// mustWait tells whether c looks like a copy of a file that is still read, or may become one: until
// the original is gone or truncated it isn't known which of them carries the split on, and while c
// is written it isn't known what it is.
func (r *run) mustWait(c *candidate, opened []*entry) bool {
	if r.once || r.first && r.out.Fresh() {
		return false
	}
	if since, ok := r.waiting[c.id]; ok && time.Since(since) > copyWait {
		return false
	}
	of := ""
	for _, e := range slices.Concat(r.entries, opened) {
		if e.c.End() == 0 || e.m.print.n == 0 || !e.mayBegin(c) || r.madeAfter(c, e) {
			continue
		}
		if r.resembles(c, e.m.print, e.c.End(), hash(e.c.Tail())) {
			of = e.path
			break
		}
	}
	if of == "" {
		for _, k := range r.known {
			if k.pos == 0 || k.m.print.n == 0 || k.m.id == c.id || len(c.head) < k.m.print.n && c.h.kind == plain {
				continue
			}
			if c.after(k.died, k.st.Path) {
				continue
			}
			if r.resembles(c, k.m.print, k.pos, "") {
				of = k.st.Path
				break
			}
		}
	}
	if of == "" {
		return false
	}
	r.unborn[c.path] = true
	if _, ok := r.waiting[c.id]; !ok {
		r.waiting[c.id] = time.Now()
		r.log.Info("file looks like a copy of another one; it waits", "path", c.path, "of", of)
	}
	return true
}

// resembles: c has the same bytes before pos, or is a part of it that is still growing.
func (r *run) resembles(c *candidate, p fingerprint, pos int64, sum string) bool {
	if len(c.head) >= p.n && !c.fits(p) {
		return false
	}
	growing := time.Since(c.fi.ModTime()) < r.cfg.RotateWait.D()
	if len(c.head) < p.n {
		return growing
	}
	tail, err := c.h.tail(pos)
	if err != nil {
		return growing
	}
	return hash(tail) == sum
}

// mayBegin tells whether c begins as e's file does, as far as c goes.
func (e *entry) mayBegin(c *candidate) bool {
	if len(c.head) >= e.m.print.n {
		return c.fits(e.m.print)
	}
	if e.h == nil || len(c.head) == 0 {
		return c.h.kind != plain
	}
	head, err := e.h.head(len(c.head))
	return err == nil && string(head) == string(c.head)
}

// madeAfter: a file that was made after e's was deleted is no copy of it.
func (r *run) madeAfter(c *candidate, e *entry) bool {
	if e.left.IsZero() || e.h == nil {
		return false
	}
	fi, err := e.h.stat()
	if err != nil {
		return false
	}
	return c.after(deleted(fi), e.path)
}

// after tells whether the file was made after one at that path was deleted, 0 for not or not known. Where
// the clock of file times is too coarse to tell, one at the same path was, and a packed copy beside it wasn't.
func (c *candidate) after(died int64, path string) bool {
	b := born(c.h.f)
	return died != 0 && (b > died || b == died && c.path == path)
}

// lastLine is where a file that is read from its end begins: behind its last newline, so that
// no half a line is read.
func (r *run) lastLine(c *candidate) (int64, error) {
	n, err := c.h.length()
	if err != nil && c.h.kind == plain {
		return 0, err
	}
	if c.h.kind != plain {
		return n, nil
	}
	return r.format.LastLine(c.h.f, n)
}

// fresh makes the entry of a new split.
func (r *run) fresh(h *handle, fi fs.FileInfo, path string, id fileID, start int64) (*entry, error) {
	if err := h.sniff(r.once); err != nil && err != errPartial {
		return nil, err
	}
	head, err := h.head(printLen)
	if err != nil {
		return nil, err
	}
	m := newMeta(id, printOf(head))
	st := state.Split{ID: newID()}
	var tail []byte
	if start > 0 {
		if tail, err = h.tail(start); err != nil {
			return nil, err
		}
		m.push(anchorOf(start, tail))
		st.Recent = []record.Position{{Offset: start}}
	}
	return r.entry(st, m, path, h, fi, start, head, tail), nil
}

// resume makes the entry of a known split, whose file is c's now.
func (r *run) resume(c *candidate, k *known, tail []byte) *entry {
	delete(r.known, k.st.ID)
	delete(r.waiting, c.id)
	m, st := k.m, k.st
	m.id, m.gone = c.id, 0
	// The position's anchor alone: what was read behind it before it was committed is read again, perhaps in other batches, and
	// an anchor of then would push out this one before the next position is committed.
	m.tails = [2]anchor{{off: -1}, {off: -1}}
	if k.pos > 0 {
		m.push(anchorOf(k.pos, tail))
	}
	if n := printOf(c.head); n.n > m.print.n {
		m.print = n
	}
	st.Done = false
	if k.used {
		// A split is opened once in a run: its rest is one of its own, and the old one is superseded.
		old := k.st.ID
		st = state.Split{ID: newID(), Recent: []record.Position{{Offset: k.pos}}}
		r.put(item{forget: old})
	}
	h := c.h
	c.h = nil
	return r.entry(st, m, c.path, h, c.fi, k.pos, c.head, tail)
}

func (r *run) entry(st state.Split, m meta, path string, h *handle, fi fs.FileInfo, pos int64, head, tail []byte) *entry {
	e := &entry{st: st, m: m, path: path, size: fi.Size(), grown: time.Now(), limit: -1}
	e.c = r.format.NewCutter(r.table, st.ID, path, pos, head)
	e.c.SetTail(tail)
	if m.print.n < printLen {
		e.head = head
	}
	e.checked = true
	e.st.Path, e.st.Meta = path, m.encode()
	r.clearTrouble(path)
	delete(r.said, path)
	r.byID[m.id] = e
	if h.pos < keepDecoder {
		h.stopDecoder()
	}
	if !r.once {
		r.makeRoom(true)
	}
	if r.open >= r.cfg.MaxOpen {
		h.close() // opened again when its turn comes
	} else {
		e.h = h
		r.open++
		r.tick++
		e.used = r.tick
	}
	return e
}

// openAll makes the entries' splits usable, in one commit.
func (r *run) openAll(es []*entry) error {
	if len(es) == 0 {
		return nil
	}
	sts := make([]state.Split, len(es))
	for i, e := range es {
		sts[i] = e.st
	}
	sps, err := r.out.Open(r.ctx, sts...)
	if err != nil {
		for _, e := range es {
			r.close(e)
		}
		return err
	}
	for i, e := range es {
		e.sp = sps[i]
		r.entries = append(r.entries, e)
		r.paths[e.path] = e
		r.activate(e)
	}
	return nil
}

// movedAway finds, at start, the rest of files that were renamed out of the globs while nothing was running.
func (r *run) movedAway(there map[fileID]bool) (opened []*entry) {
	for _, k := range r.known {
		if k.used || k.st.Done || there[k.m.id] || r.byID[k.m.id] != nil {
			continue
		}
		p := findInode(k.st.Path, k.m.id)
		if p == "" {
			continue
		}
		c := &candidate{found: found{path: p}, id: k.m.id}
		if !r.look(c) {
			continue
		}
		ok, tail, err := k.m.trust(c.h, c.head, k.pos)
		if err != nil || !ok {
			c.h.close()
			continue
		}
		r.log.Info("file was renamed; its rest is read", "from", k.st.Path, "to", p, "offset", k.pos)
		e := r.resume(c, k, tail)
		e.left = time.Now()
		opened = append(opened, e)
	}
	return opened
}

// findInode looks for a file under another name in its folder.
func findInode(path string, id fileID) string {
	if id == (fileID{}) {
		return ""
	}
	des, err := os.ReadDir(dirOf(path))
	if err != nil {
		return ""
	}
	for _, de := range des {
		if !de.Type().IsRegular() {
			continue
		}
		if fi, err := de.Info(); err == nil && idOf(fi) == id {
			if other := filepath.Join(dirOf(path), de.Name()); other != filepath.Clean(path) {
				return other
			}
			return "" // it is where it was: no longer asked for, not renamed
		}
	}
	return ""
}

// forget notes which known files are gone, and drops what was gone for long.
func (r *run) forget(there map[fileID]bool) error {
	now := r.now().Unix()
	for id, k := range r.known {
		switch {
		case there[k.m.id] && !k.used && r.byID[k.m.id] == nil: // it can't be read now, or is waiting
		case k.m.gone == 0 && !(r.once && k.st.Done):
			k.m.gone = now
			k.st.Meta = k.m.encode()
			st := k.st
			st.Recent = nil
			if err := r.put(item{update: &st}); err != nil {
				return err
			}
		case k.m.gone != 0 && now-k.m.gone > int64(forgetAfter.Seconds()):
			delete(r.known, id)
			if err := r.put(item{forget: id}); err != nil {
				return err
			}
		}
	}
	return nil
}

// watchDirs has the folders watched in which files are or may turn up.
func (r *run) watchDirs(files []found) {
	if r.w == nil {
		return
	}
	dirs := map[string]bool{}
	for _, f := range files {
		dirs[dirOf(f.path)] = true
	}
	for _, p := range r.cfg.Paths {
		base := p
		if hasMeta(p) {
			base, _ = doublestar.SplitPattern(filepath.ToSlash(p))
			base = filepath.FromSlash(base)
		} else {
			base = dirOf(p)
		}
		if fi, err := os.Stat(base); err == nil && fi.IsDir() {
			dirs[base] = true
		}
	}
	r.w.keep(dirs)
	for d := range dirs {
		r.w.watch(d)
	}
}
