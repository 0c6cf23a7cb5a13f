// Package manager runs the pipelines of a folder: it watches the folder, and per pipeline it builds a new version
// beside the one that runs, drains that one, and starts the new one from the committed state.
//
// One goroutine (Run's) reads the folder and says what each pipeline should be; each pipeline has a goroutine of its
// own (unit.go) that brings that about, so that none waits for another's drain.
package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/state"
	"github.com/rsetl/rsetl/state/stores"
)

// Options say what a Manager works with.
type Options struct {
	ConfDir  string
	StateDir string
	Store    state.Store // of the state directory; the manager doesn't close it
	Log      *slog.Logger
	// Lookup resolves variables of pipeline files; nil: the environment.
	Lookup func(string) (string, bool)

	Debounce   time.Duration // so long the folder must be quiet before a change counts; 0: 200ms
	Rescan     time.Duration // how often the folder is read without a notice; 0: 5s
	BackoffMin time.Duration // before a failed pipeline is started again, doubled each time; 0: 1s
	BackoffMax time.Duration // 0: 1m
	Probation  time.Duration // so long a new version must run, else the one before runs again; 0: 10s
	Ready      time.Duration // how long a reload waits for the new version's sinks; 0: 2s
	ClaimWait  time.Duration // how long a pipeline waits for a file that another one still writes; 0: 30s
}

// Errors that callers decide on.
var (
	ErrUnknown  = errors.New("no such pipeline")
	ErrHasFile  = errors.New("the pipeline's file is still there")
	ErrBusy     = errors.New("the pipeline is still being stopped")
	ErrStopping = errors.New("rsetl is stopping")
	ErrNotRun   = errors.New("the pipeline does not run")
)

// Manager is the pipelines of one folder and one state directory.
type Manager struct {
	o      Options
	stores *stores.Stores

	mu       sync.Mutex
	units    map[string]*unit
	problems []Problem
	confErr  error
	scanned  bool
	sharing  map[string]*pipeline.Shared // by namespace: as its files are
	good     map[string]*pipeline.Shared // the last without mistakes, or the first
	known    map[string]*version         // by path: what was parsed of each file last
	gone     map[string]goneRecord       // pipelines that have stopped, by name
	before   map[string]remembered       // of the run of the program before, until the first scan

	scans    chan chan error // someone wants a rescan and waits for it
	stopping context.Context
	stop     context.CancelFunc
	ended    chan struct{} // Run has returned
	broken   chan error    // the store can't go on
	loops    sync.WaitGroup

	claimMu sync.Mutex
	claims  map[string]*unit

	memoryMu sync.Mutex
	memory   string

	countMu sync.Mutex
	counts  map[string]int64
}

// goneRecord is a pipeline whose file was deleted.
type goneRecord struct {
	hash  string
	at    time.Time
	state string // the name that its state has
}

// renameWithin is how long after a deletion a file with the same content counts as the old one renamed.
const renameWithin = 10 * time.Second

// Problem is something in the folder that is no pipeline.
type Problem struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

// New prepares a manager. Run does the work.
func New(o Options) *Manager {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.Debounce, 200*time.Millisecond)
	def(&o.Rescan, 5*time.Second)
	def(&o.BackoffMin, time.Second)
	def(&o.BackoffMax, time.Minute)
	def(&o.Probation, 10*time.Second)
	def(&o.Ready, 2*time.Second)
	def(&o.ClaimWait, 30*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	m := &Manager{o: o, stores: stores.New(o.Store, o.Log), good: map[string]*pipeline.Shared{}, units: map[string]*unit{}, known: map[string]*version{}, gone: map[string]goneRecord{}, scans: make(chan chan error),
		ended: make(chan struct{}), broken: make(chan error, 1), claims: map[string]*unit{}, counts: map[string]int64{}}
	m.stopping, m.stop = context.WithCancel(context.Background())
	return m
}

// Run watches the folder and runs its pipelines until ctx ends; then all of them drain at once. The error is the
// store's where it can't go on. It is called once.
func (m *Manager) Run(ctx context.Context) (err error) {
	defer close(m.ended)
	m.before, err = m.remember()
	if err != nil {
		m.o.Log.Warn(err.Error())
	}
	var events chan fsnotify.Event
	var errs chan error
	w, err := fsnotify.NewWatcher()
	if err != nil {
		m.o.Log.Warn("the operating system gives no notices of changes; the folder is looked at from time to time", "every", m.o.Rescan, "err", err)
	} else {
		defer w.Close()
		events, errs = w.Events, w.Errors
	}
	// Watched before it is read, so that no change is missed between the two.
	watch := func(folders ...string) {
		for _, d := range folders {
			if w != nil {
				_ = w.Add(d) // the rescan finds what this doesn't
			}
		}
	}
	var last [32]byte
	scan := func() error {
		watch(m.o.ConfDir)
		l, err := list(m.o.ConfDir)
		if err == nil {
			watch(l.folders...)
			if again, e := list(m.o.ConfDir); e == nil { // a namespace's first files may be older than its watch
				l = again
			}
			last = l.sum()
		}
		m.apply(l, err)
		m.memorise()
		return err
	}
	if err := scan(); err != nil {
		m.o.Log.Error("no pipelines yet", "err", err)
	}

	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var first time.Time // of the notices that are waited out
	noticed := func() {
		if first.IsZero() {
			first = time.Now()
		}
		// A file that is written all the time must not keep others from being noticed.
		quiet.Reset(min(m.o.Debounce, max(0, time.Until(first.Add(10*m.o.Debounce)))))
	}
	tick := time.NewTicker(m.o.Rescan)
	defer tick.Stop()
	defer func() {
		m.stop()
		m.loops.Wait()
		m.memorise()
		if err := m.stores.Close(); err != nil {
			m.o.Log.Warn("close the remote state", "err", err)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-m.broken:
			return err
		case <-events:
			noticed()
		case err := <-errs:
			m.o.Log.Warn("notices of changes got lost; the folder is read again", "err", err)
			noticed()
		case <-quiet.C:
			first = time.Time{}
			_ = scan()
		case reply := <-m.scans:
			quiet.Stop()
			first = time.Time{}
			reply <- scan()
		case <-tick.C:
			watch(m.o.ConfDir)
			l, err := list(m.o.ConfDir)
			switch {
			case err != nil || m.unhappy():
				_ = scan()
			case l.sum() != last && first.IsZero():
				noticed()
			}
		}
	}
}

// unhappy tells whether another look may help though no file changed: a file that couldn't be read, a variable
// whose secret wasn't there, a file of a sink that another pipeline writes.
func (m *Manager) unhappy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.confErr != nil {
		return true
	}
	for _, v := range m.known {
		if v.err != nil {
			return true
		}
	}
	return false
}

// apply says what each pipeline should be, from what is in the folder.
func (m *Manager) apply(l *listing, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil { // unmounted, perhaps: nothing is known, so nothing stops
		if m.confErr == nil || m.confErr.Error() != err.Error() {
			m.o.Log.Error("the pipelines' folder can't be read; what runs goes on", "err", err)
		}
		m.confErr = err
		return
	}
	m.confErr = nil
	before := m.problems
	m.problems = nil
	for _, ns := range slices.Sorted(maps.Keys(l.unread)) {
		m.problem(ns, l.unread[ns].Error())
	}

	m.shared(l)

	byPath := map[string]*unit{}
	for _, u := range m.units {
		u.mu.Lock()
		if !u.want.gone {
			byPath[u.want.v.file.path] = u
		}
		u.mu.Unlock()
	}
	known := map[string]*version{}
	wanted := map[string]*version{} // by name
	put := func(v *version, name string) {
		if other := wanted[name]; other != nil {
			// Who has the name keeps it.
			if u := byPath[v.file.path]; u != nil && u.nameNow() == name {
				other, v = v, other
				wanted[name] = other
			}
			m.problem(v.file.path, fmt.Sprintf("%s: name: the pipeline %s is also in %s; give one of them another `name:`", v.file.path, name, other.file.path))
			return
		}
		wanted[name] = v
	}
	for i := range l.files {
		f := &l.files[i]
		if f.shared {
			continue
		}
		v := m.known[f.path]
		if v == nil || v.err != nil || !f.same(&v.file) {
			_, v = m.load(f)
		} else if v.file.id != f.id {
			again := *v
			again.file.id = f.id
			v = &again
		}
		known[f.path] = v
		name := v.name
		if u := byPath[f.path]; u != nil && v.err != nil {
			name = u.nameNow() // a version with mistakes doesn't stop what runs, whatever name it says
		}
		put(v, name)
	}
	m.known = known
	m.conflicts(wanted, byPath)

	// A namespace that can't be read keeps what it has.
	var gone []*unit
	for _, name := range slices.Sorted(maps.Keys(m.units)) {
		u := m.units[name]
		u.mu.Lock()
		ns, leaving := "", u.want.gone
		if u.want.v != nil {
			ns = u.want.v.file.ns
		}
		u.mu.Unlock()
		if _, unread := l.unread[ns]; wanted[name] == nil && !leaving && !unread {
			gone = append(gone, u)
		}
	}
	fresh := func(hash string, ok func(v *version) bool) *version { // a new pipeline of that content
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			if v := wanted[name]; m.units[name] == nil && v.err == nil && v.hash == hash && ok(v) {
				return v
			}
		}
		return nil
	}
	rename := func(u *unit, old string, v *version) {
		delete(m.units, old)
		m.units[v.name] = u
		u.edit(func() { u.name = v.name })
		u.ask(want{v: v})
	}
	// A file that was renamed while another took its name.
	for _, old := range slices.Sorted(maps.Keys(m.units)) {
		u, now := m.units[old], wanted[old]
		u.mu.Lock()
		was, leaving := u.want.v, u.want.gone
		u.mu.Unlock()
		if now == nil || leaving || now.hash == was.hash || now.file.id == was.file.id {
			continue
		}
		if v := fresh(was.hash, func(v *version) bool { return v.file.id == was.file.id }); v != nil {
			rename(u, old, v)
		}
	}
	for _, u := range gone {
		u.mu.Lock()
		old, hash := u.name, u.want.v.hash
		if u.current != nil && u.want.v.err != nil {
			hash = u.current.hash
		}
		u.mu.Unlock()
		if v := fresh(hash, func(*version) bool { return true }); v != nil {
			rename(u, old, v)
			continue
		}
		m.gone[old] = goneRecord{hash, time.Now(), old}
		u.ask(want{gone: true})
	}
	if !m.scanned {
		for name, r := range m.before {
			if _, unread := l.unread[nsOf(name)]; wanted[name] == nil && !unread {
				m.gone[name] = goneRecord{r.Version, time.Now(), cmp.Or(r.State, name)}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		v := wanted[name]
		if u := m.units[name]; u != nil {
			u.ask(want{v: v})
			delete(m.gone, name)
			continue
		}
		from, state := "", ""
		for _, old := range slices.Sorted(maps.Keys(m.gone)) {
			if r := m.gone[old]; old != name && m.units[old] == nil && wanted[old] == nil && v.err == nil && r.hash != "" && r.hash == v.hash &&
				time.Since(r.at) < renameWithin && from == "" {
				from, state = old, r.state
			}
		}
		delete(m.gone, from)
		delete(m.gone, name)
		u := m.newUnit(name, state)
		r, ok := m.before[name]
		if !ok {
			r = m.before[from]
		}
		u.paused, u.memory = r.Paused, r.Version
		if r.State != "" {
			u.from = r.State
		}
		m.units[name] = u
		u.ask(want{v: v})
		m.loops.Add(1)
		go u.loop()
	}
	for name, r := range m.gone {
		if time.Since(r.at) > renameWithin {
			delete(m.gone, name)
		}
	}
	m.before = nil
	m.scanned = true
	sort.Slice(m.problems, func(i, j int) bool { return m.problems[i].File < m.problems[j].File })
	for _, p := range m.problems {
		if !slices.Contains(before, p) {
			m.o.Log.Error("not used", "file", p.File, "err", p.Error)
		}
	}
}

func nsOf(name string) string {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}

func (m *Manager) problem(file, err string) { m.problems = append(m.problems, Problem{file, err}) }

// conflicts refuses files that two pipelines would write. Those that run come first.
func (m *Manager) conflicts(wanted map[string]*version, byPath map[string]*unit) {
	owner := map[string]string{}
	check := func(name string, v *version) {
		for _, out := range v.outputs {
			if other, taken := owner[out]; taken && other != name {
				c := *v
				c.err = fmt.Errorf("%s: sinks: pipeline %s writes %s too; two on one file would mix their rows: give each its own path", v.file.path, other, out)
				c.places = append(slices.Clone(v.places), Mistake{File: v.file.path, Path: "sinks", Message: c.err.Error()})
				wanted[name] = &c
				m.known[v.file.path] = &c
				return
			}
		}
		for _, out := range v.outputs {
			owner[out] = name
		}
	}
	names := slices.Sorted(maps.Keys(wanted))
	var rest []string
	for _, name := range names {
		v := wanted[name]
		u := m.units[name]
		switch {
		case u == nil:
			rest = append(rest, name)
		case v.err != nil: // the old version goes on
			u.mu.Lock()
			cur := u.current
			u.mu.Unlock()
			if cur != nil {
				for _, out := range cur.outputs {
					owner[out] = name
				}
			}
		default:
			u.mu.Lock()
			same := u.current != nil && u.current.hash == v.hash
			u.mu.Unlock()
			if same {
				check(name, v)
			} else {
				rest = append(rest, name)
			}
		}
	}
	for _, name := range rest {
		if v := wanted[name]; v.err == nil {
			check(name, v)
		}
	}
}

// drop takes a stopped unit out, unless its file is back.
func (m *Manager) drop(u *unit) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.want.gone {
		return false
	}
	if m.units[u.name] == u {
		delete(m.units, u.name)
	}
	return true
}

// check notes a store that can't go on: then nothing can.
func (m *Manager) check(err error) {
	if errors.Is(err, state.ErrFailed) {
		select {
		case m.broken <- fmt.Errorf("the state store can't go on: %w", err):
		default:
		}
	}
}

func (m *Manager) count(result string) {
	m.countMu.Lock()
	m.counts[result]++
	m.countMu.Unlock()
}

// Reloads counts versions by what became of them: ok, rejected (mistakes), start_failed.
func (m *Manager) Reloads() map[string]int64 {
	m.countMu.Lock()
	defer m.countMu.Unlock()
	return maps.Clone(m.counts)
}

func (m *Manager) all() []*unit {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*unit
	for _, name := range slices.Sorted(maps.Keys(m.units)) {
		out = append(out, m.units[name])
	}
	return out
}

// Status lists the pipelines by name. Without their splits.
func (m *Manager) Status() []Status {
	out := []Status{}
	for _, u := range m.all() {
		out = append(out, u.status(false))
	}
	return out
}

// Known tells whether the ledgers are those of a run or the store; before, they are zero.
func (s *Status) Known() bool { return s.known }

// Problems are files and folders that can't be used and are no pipeline's.
func (m *Manager) Problems() []Problem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Problem{}, m.problems...)
}

// Ready tells why rsetl doesn't do all that it should; empty where it does.
func (m *Manager) Ready() (reasons []string) {
	m.mu.Lock()
	scanned, confErr := m.scanned, m.confErr
	m.mu.Unlock()
	switch {
	case m.stopping.Err() != nil:
		return []string{ErrStopping.Error()}
	case confErr != nil:
		reasons = append(reasons, confErr.Error())
	case !scanned:
		reasons = append(reasons, "the pipelines' folder has not been read yet")
	}
	for _, s := range m.Status() {
		switch {
		case s.State == Failed:
			reasons = append(reasons, "pipeline "+s.Pipeline+" failed: "+s.Error)
		case s.Rejected != nil:
			reasons = append(reasons, "pipeline "+s.Pipeline+" runs its old version: "+s.Rejected.Error)
		}
	}
	for _, p := range m.Problems() {
		reasons = append(reasons, p.Error)
	}
	return reasons
}

// Alive returns nil where nothing hangs that everything else would wait for.
func (m *Manager) Alive(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Manager) unit(name string) (*unit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.units[name]; u != nil {
		return u, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
}

// Get is one pipeline with its splits.
func (m *Manager) Get(name string) (Status, error) {
	u, err := m.unit(name)
	if err != nil {
		return Status{}, err
	}
	return u.status(true), nil
}

// Rescan reads the folder now, and waits until every pipeline is what it should be.
func (m *Manager) Rescan(ctx context.Context) error {
	reply := make(chan error, 1)
	select {
	case m.scans <- reply:
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ended:
		return ErrStopping
	}
	var err error
	select {
	case err = <-reply:
	case <-m.ended:
		return ErrStopping
	}
	for _, u := range m.all() {
		if e := u.settled(ctx); e != nil {
			return e
		}
	}
	return err
}

// Reload reads the folder, starts the pipeline anew, though nothing may have changed, and waits for that.
func (m *Manager) Reload(ctx context.Context, name string) error {
	if err := m.Rescan(ctx); err != nil {
		return err
	}
	u, err := m.unit(name)
	if err != nil {
		return err
	}
	u.mu.Lock()
	v, gone := u.want.v, u.want.gone
	u.mu.Unlock()
	if gone {
		return fmt.Errorf("%w: %s: its file is gone", ErrUnknown, name)
	}
	m.mu.Lock()
	u.ask(want{v: v, force: true})
	m.mu.Unlock()
	return u.settled(ctx)
}

// Check says what is wrong with the pipeline's file as it is now. It changes nothing.
func (m *Manager) Check(name string) ([]Mistake, error) {
	u, err := m.unit(name)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	f := u.want.v.file
	u.mu.Unlock()
	l, err := list(m.o.ConfDir)
	if err != nil {
		return nil, err
	}
	for i := range l.files {
		if l.files[i].path != f.path {
			continue
		}
		l.files[i].with = f.with
		_, v := m.load(&l.files[i])
		if v.err != nil && len(v.places) == 0 {
			return []Mistake{{File: f.path, Message: v.err.Error()}}, nil
		}
		return append([]Mistake{}, v.places...), nil
	}
	return []Mistake{{File: f.path, Message: "the file is gone"}}, nil
}

// Flush makes a checkpoint of the pipeline and waits for it. A finished one has nothing to flush.
func (m *Manager) Flush(ctx context.Context, name string) error {
	u, err := m.unit(name)
	if err != nil {
		return err
	}
	u.mu.Lock()
	n, finished, failed := u.run, u.finished, u.err
	u.mu.Unlock()
	switch {
	case n != nil:
		return n.r.Flush(ctx)
	case finished:
		return nil
	case failed != nil:
		return fmt.Errorf("%w: %s: %w", ErrNotRun, name, failed)
	}
	return fmt.Errorf("%w: %s: it is being started", ErrNotRun, name)
}

// Pause holds the pipeline's source back, also over reloads and restarts; Resume ends that.
func (m *Manager) Pause(name string) error  { return m.pause(name, true) }
func (m *Manager) Resume(name string) error { return m.pause(name, false) }

func (m *Manager) pause(name string, on bool) error {
	u, err := m.unit(name)
	if err != nil {
		return err
	}
	u.edit(func() {
		u.paused = on
		switch {
		case u.run == nil:
		case on:
			u.run.r.Pause()
		default:
			u.run.r.Resume()
		}
	})
	m.memorise()
	return nil
}

// Remove forgets the state of a pipeline whose file is gone. Its dead letters stay.
func (m *Manager) Remove(ctx context.Context, name string) error {
	// A file that is there may not have been noticed yet.
	if err := m.Rescan(ctx); err != nil {
		return err
	}
	holder := &unit{m: m, name: name}
	m.mu.Lock()
	u := m.units[name]
	m.mu.Unlock()
	if u != nil {
		u.mu.Lock()
		gone := u.want.gone
		u.mu.Unlock()
		if gone {
			return fmt.Errorf("%w: %s; try again", ErrBusy, name)
		}
		return fmt.Errorf("%w: %s; delete %s first", ErrHasFile, name, u.status(false).File)
	}
	if by := holder.claim("pipeline " + name); by != "" {
		return fmt.Errorf("%w: %s", ErrBusy, by)
	}
	defer holder.claim()
	holders, err := m.holders(ctx, name)
	if err != nil {
		return err
	}
	for _, s := range holders {
		if err := s.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// holders finds the stores that have something of a pipeline whose file is gone: databases that other pipelines here use, and the state
// directory, which comes last, since it says that there is more.
func (m *Manager) holders(ctx context.Context, name string) (out []state.Store, err error) {
	for _, s := range append(m.stores.Remotes(), m.o.Store) {
		names, err := s.Pipelines(ctx)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s: it has no file and no state", ErrUnknown, name)
	}
	if len(out) == 1 && out[0] == m.o.Store {
		snap, err := m.o.Store.Load(ctx, name)
		if err != nil {
			return nil, err
		}
		if where := pipeline.Elsewhere(snap); where != "" {
			return nil, fmt.Errorf("%w: %s: its state is in the database %s, which no pipeline here uses any more: remove it from another instance", ErrUnknown, name, where)
		}
	}
	return out, nil
}

// Removed names the pipelines whose files are gone and whose state is kept.
func (m *Manager) Removed(ctx context.Context) ([]string, error) {
	names, err := m.o.Store.Pipelines(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(names, func(n string) bool { return m.units[n] != nil }), nil
}
