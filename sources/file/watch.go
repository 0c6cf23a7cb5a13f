package file

import (
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// maxNames bounds the names that wait to be taken; beyond, all files are looked at.
const maxNames = 4096

// watcher wakes the reader when something changes in the folders of its files. It is a wake-up
// only: what it misses, polling finds.
type watcher struct {
	fs   *fsnotify.Watcher
	log  *slog.Logger
	wake chan struct{}
	done chan struct{}
	dirs map[string]bool
	said bool
	// unsure are folders that can't be watched, or where others make changes that are not noticed.
	unsure map[string]bool

	mu     sync.Mutex
	names  map[string]bool
	rescan bool
}

// newWatcher gives nil where the system has no notices to offer.
func newWatcher(log *slog.Logger) *watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		log.Info("no notices of file changes; files are polled", "err", err)
		return nil
	}
	x := &watcher{fs: w, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), dirs: map[string]bool{}, unsure: map[string]bool{}, names: map[string]bool{}}
	go x.run()
	return x
}

func (w *watcher) run() {
	defer close(w.done)
	for {
		select {
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if ev.Op == fsnotify.Chmod {
				continue
			}
			w.mu.Lock()
			if ev.Has(fsnotify.Create) || ev.Has(fsnotify.Rename) || ev.Has(fsnotify.Remove) || len(w.names) >= maxNames {
				w.rescan = true
			}
			if len(w.names) < maxNames {
				w.names[ev.Name] = true
			}
			w.mu.Unlock()
		case _, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			w.mu.Lock()
			w.rescan = true
			w.mu.Unlock()
		}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// take gives the changed paths since the last time, and whether files came or went.
func (w *watcher) take() (names map[string]bool, rescan bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, rescan = w.names, w.rescan
	w.names, w.rescan = map[string]bool{}, false
	return
}

// watch adds a folder. Where the system can't watch more, polling has to do.
func (w *watcher) watch(dir string) {
	if w.dirs[dir] {
		return
	}
	w.dirs[dir] = true
	err := w.fs.Add(dir)
	if err != nil || !local(dir) {
		w.unsure[dir] = true
	}
	if err != nil && !w.said {
		w.said = true
		w.log.Info("cannot watch a folder; it is polled", "path", dir, "err", err)
	}
}

// trusted tells whether every change of the files is noticed: all folders are watched, on file systems that only this
// host changes.
func (w *watcher) trusted() bool { return len(w.dirs) > 0 && len(w.unsure) == 0 }

// keep forgets folders that are not in use, so that one that comes again is watched again.
func (w *watcher) keep(dirs map[string]bool) {
	for d := range w.dirs {
		if !dirs[d] {
			delete(w.dirs, d)
			delete(w.unsure, d)
			w.fs.Remove(d)
		}
	}
}

func (w *watcher) close() {
	w.fs.Close()
	<-w.done
}

func dirOf(path string) string { return filepath.Dir(path) }
