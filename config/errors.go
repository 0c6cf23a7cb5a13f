// Package config fills structs from YAML nodes and reports every error of a file
// at once, each with its place, what is wrong and what would be right. The same
// structs give the JSON Schema and the reference.
package config

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// Error is one mistake in a file.
type Error struct {
	File      string
	Line, Col int    // from 1; 0 where there is no place
	Path      string // the key's path: steps[2].grok
	Msg       string
	Warning   bool
}

func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&s, ":%d:%d", e.Line, e.Col)
	}
	s.WriteString(": ")
	if e.Path != "" {
		s.WriteString(e.Path + ": ")
	}
	if e.Warning {
		s.WriteString("warning: ")
	}
	s.WriteString(e.Msg)
	return s.String()
}

// Errors collects the mistakes of one file.
type Errors struct {
	File  string
	Lines []string // the file's text, to place errors inside block scalars
	list  []*Error // the first of them

	mistakes, warnings int // all there were

	secrets []string
	foreign map[*yaml.Node]*Errors
}

// Foreign tells which nodes are of other files, whose File and Lines then place mistakes. The map is read only.
func (e *Errors) Foreign(nodes map[*yaml.Node]*Errors) { e.foreign = nodes }

// of is the file that a node is of.
func (e *Errors) of(n *yaml.Node) *Errors {
	if o := e.foreign[n]; o != nil {
		return o
	}
	return e
}

// Hide makes a secret invisible in all messages, and in what Mask is given.
func (e *Errors) Hide(secret string) {
	if len(secret) >= 3 && !slices.Contains(e.secrets, secret) { // shorter ones would tear other words apart
		e.secrets = append(e.secrets, secret)
	}
}

// Mask replaces the secrets that the file's values hold.
func (e *Errors) Mask(text string) string {
	for _, s := range e.secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// Addf adds a mistake at n.
func (e *Errors) Addf(n *yaml.Node, path, format string, args ...any) {
	e.add(n, path, fmt.Sprintf(format, args...), false)
}

// Warnf adds something that is no mistake but worth a look.
func (e *Errors) Warnf(n *yaml.Node, path, format string, args ...any) {
	e.add(n, path, fmt.Sprintf(format, args...), true)
}

// maxErrors bounds what is kept of one file: a file of a hundred thousand mistakes is not read to its end by anyone.
const maxErrors = 1000

func (e *Errors) keep(l ...*Error) {
	for _, x := range l {
		if x.Warning {
			e.warnings++
		} else {
			e.mistakes++
		}
		// The first mistake is kept whatever number of warnings came before it.
		if len(e.list) < maxErrors || !x.Warning && e.mistakes == 1 {
			e.list = append(e.list, x)
		}
	}
}

func (e *Errors) add(n *yaml.Node, path, msg string, warn bool) {
	x := &Error{File: e.of(n).File, Path: path, Msg: msg, Warning: warn}
	if n != nil {
		x.Line, x.Col = n.Line, n.Column
	}
	e.keep(x)
}

// AddAt adds a mistake at byte off of the scalar n's value.
func (e *Errors) AddAt(n *yaml.Node, off int, path, msg string) {
	x := &Error{File: e.of(n).File, Path: path, Msg: msg}
	if n != nil {
		x.Line, x.Col = e.of(n).place(n, off)
	}
	e.keep(x)
}

// place finds line and column (in characters) of byte off of a scalar's value. Inside folded
// and multi-line flow scalars, and after escapes, it is the nearest place before it.
func (e *Errors) place(n *yaml.Node, off int) (line, col int) {
	if off < 0 || off > len(n.Value) || n.Kind != yaml.ScalarNode {
		return n.Line, n.Column
	}
	before := n.Value[:off]
	switch n.Style &^ yaml.TaggedStyle {
	case yaml.LiteralStyle:
		nl := strings.Count(before, "\n")
		line = n.Line + 1 + nl
		indent := 0
		for i := n.Line; i < len(e.Lines); i++ { // the first line of the block that isn't blank sets the indent
			if t := strings.TrimLeft(e.Lines[i], " "); strings.TrimSpace(t) != "" {
				indent = len(e.Lines[i]) - len(t)
				break
			}
		}
		return line, indent + 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	case yaml.FoldedStyle:
		return n.Line + 1, 1
	case yaml.SingleQuotedStyle:
		if e.within(n) {
			return n.Line, n.Column + 1 + len([]rune(strings.ReplaceAll(before, "'", "''")))
		}
	case yaml.DoubleQuotedStyle:
		if e.within(n) {
			return n.Line, n.Column + 1 + len([]rune(before)) + strings.Count(before, `"`) + strings.Count(before, `\`)
		}
	default:
		if e.within(n) {
			return n.Line, n.Column + len([]rune(before))
		}
	}
	return n.Line, n.Column
}

// within tells whether the scalar is on one line.
func (e *Errors) within(n *yaml.Node) bool {
	if n.Line-1 >= len(e.Lines) {
		return true
	}
	r := []rune(e.Lines[n.Line-1])
	if n.Column-1 > len(r) {
		return false
	}
	rest := string(r[n.Column-1:])
	end := n.Value
	if i := strings.LastIndexAny(end, " \t'\"\\"); i >= 0 {
		end = end[i+1:]
	}
	return strings.Contains(rest, end)
}

// Add takes over another's errors.
func (e *Errors) Add(other *Errors) {
	e.keep(other.list...)
	e.mistakes += other.mistakes - count(other.list, false)
	e.warnings += other.warnings - count(other.list, true)
	for _, s := range other.secrets {
		e.Hide(s)
	}
}

func count(l []*Error, warnings bool) (n int) {
	for _, x := range l {
		if x.Warning == warnings {
			n++
		}
	}
	return n
}

// Failed tells whether there is an error that is not a warning.
func (e *Errors) Failed() bool { return e.mistakes > 0 }

// Mistakes is the number of errors that are not warnings.
func (e *Errors) Mistakes() int { return e.mistakes }

// Count is the number of errors and warnings.
func (e *Errors) Count() int { return e.mistakes + e.warnings }

// List gives the errors in the order of the file, each once, the first thousand that were found.
func (e *Errors) List() []*Error {
	l := make([]*Error, len(e.list))
	for i, x := range e.list {
		y := *x
		y.Msg = e.Mask(y.Msg)
		l[i] = &y
	}
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i], l[j]
		if a.File != b.File {
			return a.File < b.File
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	out := l[:0]
	for i, x := range l {
		if i == 0 || *x != *l[i-1] {
			out = append(out, x)
		}
	}
	return out
}

// Err is nil where nothing failed, else an error that lists everything, a line each.
func (e *Errors) Err() error {
	if !e.Failed() {
		return nil
	}
	return listError(e.List())
}

type listError []*Error

func (l listError) Error() string {
	var s []string
	for _, x := range l {
		if !x.Warning {
			s = append(s, x.Error())
		}
	}
	return strings.Join(s, "\n")
}
