package config

import "sort"

// Doc is what a registration says about itself.
type Doc struct {
	Summary string // one sentence
	Details string // Markdown, may be empty
	Example string // YAML of the component as it stands in a pipeline file
}

// Registry holds the kinds of one component by name. It is filled by init
// functions and read-only afterwards.
type Registry[T any] struct {
	what string
	m    map[string]T
}

func NewRegistry[T any](what string) *Registry[T] { return &Registry[T]{what, map[string]T{}} }

// MustRegister adds a kind; a name that is taken panics.
func (r *Registry[T]) MustRegister(name string, t T) {
	if _, ok := r.m[name]; ok {
		panic("config: " + r.what + " " + name + " registered twice")
	}
	r.m[name] = t
}

func (r *Registry[T]) Get(name string) (T, bool) { t, ok := r.m[name]; return t, ok }

// Names are all kinds, sorted.
func (r *Registry[T]) Names() []string {
	var s []string
	for n := range r.m {
		s = append(s, n)
	}
	sort.Strings(s)
	return s
}
