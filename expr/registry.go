package expr

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/rsetl/rsetl/record"
)

// Kind is what a function takes and makes.
type Kind uint8

const (
	Scalar    Kind = iota // values to a value
	Table                 // a value to rows
	Aggregate             // the rows of a group to a value
)

func (k Kind) String() string { return [...]string{"scalar", "table", "aggregate"}[k] }

// EvalFunc computes one record's value.
type EvalFunc = func(env *Env, i int) record.Value

// Function is one registered function and its documentation.
type Function struct {
	Name          string // upper case
	Aliases       []string
	Kind          Kind
	Category      string
	Signature     string // SUBSTRING(text, start[, length])
	Summary       string
	Nulls         string // what it does with NULL; empty: NULL where an argument is
	Example       string // an expression
	ExampleResult string // its text; NULL for NULL

	// Args says what the arguments are converted to, one letter each: s text,
	// i integer, n number, f float, t timestamp, b boolean, y bytes, a array,
	// m map, x as it is. Those after a '?' are optional; '*' repeats the last.
	// An argument that can't be converted is NULL.
	Args string
	// Type is the result's static type; nil: Result.
	Type   func(c *Call) (Type, error)
	Result Type
	// Fn computes the result of converted arguments, none of which is NULL
	// unless TakesNull. It may append to env.B.Buf and Elems, and must not keep args.
	Fn        func(env *Env, args []record.Value) record.Value
	TakesNull bool
	// Build, where set, makes the evaluation itself instead of Fn.
	Build func(c *Call) (EvalFunc, error)
	// Volatile results differ from call to call: never folded.
	Volatile bool

	// NewAggregate prepares an aggregate; what it gives makes the state of a group. It must make the same for the same call.
	NewAggregate func(c *Call) (func() Accumulator, error)
	// aggregate is the same for those that keep their state in words.
	aggregate func(c *Call, t Type) (aggregate, error)
	// NewTable makes a table function; unused so far.
	NewTable func(c *Call) (TableFunc, error)
}

// TableFunc yields the rows that one record's arguments make.
type TableFunc interface {
	Rows(env *Env, args []record.Value, yield func(row []record.Value))
}

// Registry holds functions by name. It is filled before use and then read-only.
type Registry struct {
	byName map[string]*Function
	names  []string
}

// NewRegistry makes an empty registry.
func NewRegistry() *Registry { return &Registry{byName: map[string]*Function{}} }

// MustRegister adds a function; it panics where a name is taken.
func (r *Registry) MustRegister(f Function) {
	fp := &f
	for _, n := range append([]string{f.Name}, f.Aliases...) {
		n = strings.ToUpper(n)
		if r.byName[n] != nil {
			panic(fmt.Sprintf("expr: function %s is registered twice", n))
		}
		r.byName[n] = fp
	}
	r.names = append(r.names, f.Name)
	sort.Strings(r.names)
}

// Lookup finds a function by name or alias, in any case; nil where there is none.
func (r *Registry) Lookup(name string) *Function { return r.byName[strings.ToUpper(name)] }

// Names are the functions' names, sorted, without aliases.
func (r *Registry) Names() []string { return r.names }

// Nearest is the known name that is most like name, "" where none is.
func (r *Registry) Nearest(name string) string {
	name = strings.ToUpper(name)
	best, dist := "", len(name)/3+2
	all := make([]string, 0, len(r.byName))
	for n := range r.byName {
		all = append(all, n)
	}
	sort.Strings(all)
	for _, n := range all {
		if d := editDistance(name, n); d < dist {
			best, dist = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	prev := make([]int, len(b)+1)
	cur := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			c := 1
			if a[i-1] == b[j-1] {
				c = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+c)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}

// provided are functions of packages that this one can't import.
var provided []Function

// Provide adds a function to the default registry. It is for init functions only, before anything is compiled.
func Provide(f Function) { provided = append(provided, f) }

var defaultRegistry = sync.OnceValue(func() *Registry {
	r := NewRegistry()
	for _, fs := range [][]Function{stringFuncs(), regexFuncs(), mathFuncs(), timeFuncs(), condFuncs(), encodeFuncs(), jsonFuncs(), collFuncs(), aggregateFuncs(),
		netFuncs(), hashFuncs(), bitFuncs(), wordFuncs(), dateFuncs(), jsonEditFuncs(), provided} {
		for _, f := range fs {
			r.MustRegister(f)
		}
	}
	return r
})

// Default is the registry of the built-in functions; it is read-only.
func Default() *Registry { return defaultRegistry() }
