package components

import (
	"strings"
	"testing"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/steps"
)

// Every step's example is one that loads.
func TestExamples(t *testing.T) {
	for _, kind := range steps.Registry.Names() {
		spec, _ := steps.Registry.Get(kind)
		if spec.Example == "" {
			t.Errorf("%s has no example", kind)
		}
		text := "name: example\nsource: {stdin: {}, codec: json}\nsteps:\n  - date: {field: t, formats: [UNIX]}\n  " + strings.ReplaceAll(spec.Example, "\n", "\n  ") + "\nsinks: [stdout: {}]\n"
		f, err := pipeline.Load("example.yaml", []byte(text), pipeline.LoadOptions{})
		if err == nil {
			_, err = pipeline.Compile(f, pipeline.CompileOptions{Once: true})
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", kind, err, text)
		}
	}
}
