package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// remembered is what outlives the process about a pipeline beside its state.
type remembered struct {
	Version string `json:"version,omitempty"` // the last that was accepted, to know a file that is renamed meanwhile
	Paused  bool   `json:"paused,omitempty"`
	State   string `json:"state,omitempty"` // the name that its state has in the store until it is moved to the file's new one
}

func (m *Manager) memoryPath() string { return filepath.Join(m.o.StateDir, "pipelines.json") }

func (m *Manager) remember() (map[string]remembered, error) {
	b, err := os.ReadFile(m.memoryPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out map[string]remembered
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("%s can't be read, so renamed files and pauses of before are not known: %w", m.memoryPath(), err)
	}
	return out, nil
}

// memorise writes down which pipelines there are, where that changed. A rename is in it before the state is moved and
// until that is done, so that a crash between finds the state.
func (m *Manager) memorise() {
	m.memoryMu.Lock()
	defer m.memoryMu.Unlock()
	now := map[string]remembered{}
	m.mu.Lock()
	if !m.scanned {
		m.mu.Unlock()
		return
	}
	for name, u := range m.units {
		u.mu.Lock()
		if !u.want.gone {
			r := remembered{Version: u.memory, Paused: u.paused}
			switch {
			case u.want.v.err == nil:
				r.Version = u.want.v.hash
			case u.current != nil:
				r.Version = u.current.hash
			}
			if u.from != u.name {
				r.State = u.from
			}
			now[name] = r
		}
		u.mu.Unlock()
	}
	m.mu.Unlock()
	b, err := json.MarshalIndent(now, "", "  ")
	if err == nil && string(b) != m.memory {
		if err = WriteFile(m.memoryPath(), append(b, '\n'), 0o640); err == nil {
			m.memory = string(b)
		}
	}
	if err != nil {
		m.o.Log.Warn("cannot write down which pipelines there are; a file renamed while rsetl is down would begin anew", "err", err)
	}
}

// WriteFile replaces a file as a whole: a crash leaves the old one or the new one.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
