// Package components registers every kind of component that rsetl is built with.
package components

// Adding a component is one line here.
import (
	_ "github.com/rsetl/rsetl/parsers/date"
	_ "github.com/rsetl/rsetl/parsers/grok"
	_ "github.com/rsetl/rsetl/parsers/json"
	_ "github.com/rsetl/rsetl/parsers/regex"
	_ "github.com/rsetl/rsetl/sinks/file"
	_ "github.com/rsetl/rsetl/sinks/null"
	_ "github.com/rsetl/rsetl/sinks/sql/sqlite"
	_ "github.com/rsetl/rsetl/sinks/stdout"
	_ "github.com/rsetl/rsetl/sources/file"
	_ "github.com/rsetl/rsetl/sources/stdin"
	_ "github.com/rsetl/rsetl/transforms/add"
	_ "github.com/rsetl/rsetl/transforms/filter"
	_ "github.com/rsetl/rsetl/transforms/keep"
	_ "github.com/rsetl/rsetl/transforms/remove"
	_ "github.com/rsetl/rsetl/transforms/rename"
	_ "github.com/rsetl/rsetl/transforms/set"
)
