package text

import (
	"fmt"
	"regexp"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/steps"
)

// Declare declares the fields that every source of lines writes.
func Declare(d *steps.Decl) {
	str := expr.Type{Kind: expr.TVarchar, Prec: 2147483647, NotNull: true}
	d.Write("message", str)
	d.Write("@path", str)
	d.Write("@offset", expr.Type{Kind: expr.TBigInt, NotNull: true})
	d.Write("@split", str)
	d.Write("@received", expr.Type{Kind: expr.TTimestampLTZ, Prec: 6, NotNull: true})
	d.Write("@source", str)
}

// FromBuild makes the Format that a source's common keys ask for. Mistakes in them are reported at
// their place; the error then says so.
func FromBuild(b *sources.Build, maxLine int) (*Format, error) {
	o := Options{MaxLine: maxLine, Encoding: b.Common.Encoding, Source: b.Common.ID, Now: b.Clock}
	if o.Source == "" {
		o.Source = b.Name
	}
	if m := b.Common.Multiline; m != nil {
		compile := b.CompilePattern
		if compile == nil {
			compile = func(s string) (sources.Matcher, error) { return regexp.Compile(s) }
		}
		p, err := compile(m.Pattern)
		if err != nil {
			return nil, fmt.Errorf("multiline.pattern: %w", err)
		}
		o.Multiline = &Multiline{Pattern: p, Negate: m.Negate, Next: m.What == "next",
			Timeout: m.Timeout.D(), MaxLines: m.MaxLines, MaxBytes: int(m.MaxBytes)}
	}
	return New(o)
}
