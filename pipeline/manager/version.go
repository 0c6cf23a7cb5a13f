package manager

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/rsetl/rsetl/pipeline"
)

// version is one file's content, parsed and checked.
type version struct {
	file    found
	name    string // namespace/name
	hash    string // of the parsed content; "" where it is no YAML
	err     error  // why it can't run: the file can't be read, or mistakes
	places  []Mistake
	outputs []string            // files that only one pipeline may write
	stages  map[string]string   // what the state of each stage depends on
	mask    func(string) string // hides the file's secrets; nil where it could not be read
}

// Mistake is one error of a file with its place.
type Mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"`
}

// load parses and compiles a file. It connects to nothing; the plan is for one run.
func (m *Manager) load(f *found) (*pipeline.Plan, *version) {
	v := &version{file: *f, name: f.baseName()}
	if f.err != nil {
		v.err = f.err
		return nil, v
	}
	// Relative paths and messages are those of the file; nothing is read again, so that a version stays what it is.
	file, _ := pipeline.Load(f.path, f.raw, pipeline.LoadOptions{StateDir: m.o.StateDir, Lookup: m.o.Lookup, Shared: f.with})
	v.hash = file.Version()
	if file.Name != "" {
		file.Name = f.ns + file.Name[strings.IndexByte(file.Name, '/'):]
		v.name = file.Name
	}
	plan, err := pipeline.Compile(file, pipeline.CompileOptions{StateDir: m.o.StateDir, Log: m.o.Log})
	v.mask = file.Errs.Mask
	for _, e := range file.Errs.List() {
		v.places = append(v.places, Mistake{File: e.File, Line: e.Line, Column: e.Col, Path: e.Path, Message: e.Msg, Warning: e.Warning})
	}
	if err != nil {
		v.err = errors.New(v.hide(err.Error()))
		return nil, v
	}
	v.outputs, v.stages = append(plan.OutputPaths(), m.letters(plan)), plan.Definitions()
	return plan, v
}

// letters is where a pipeline's dead letters go.
func (m *Manager) letters(p *pipeline.Plan) string {
	if path := p.Options.DeadLetter.Path(); path != "" {
		return path
	}
	return m.defaultLetters(p.Name)
}

func (m *Manager) defaultLetters(name string) string { return Letters(m.o.StateDir, name) }

// Letters is where a pipeline's dead letters go under a daemon, where its file names no other place.
func Letters(stateDir, name string) string {
	return filepath.Join(stateDir, "dead", filepath.FromSlash(name)+".ndjson")
}

// hide takes the file's secrets out of a text.
func (v *version) hide(text string) string {
	if v.mask == nil {
		return text
	}
	return v.mask(text)
}
