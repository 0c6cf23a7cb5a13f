package grok

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/record"
)

func init() {
	expr.Provide(expr.Function{
		Name: "GROK", Category: "regex", Signature: "GROK(text, pattern[, field])",
		Summary: "what a grok pattern of the ecs set captures in the text: one field's value, or a map of all; pattern and field are constants",
		Nulls:   "NULL where the text does not match, or the field captured nothing",
		Example: "GROK('GET /a 200', '%{WORD:verb} %{NOTSPACE:path}', 'path')", ExampleResult: "/a",
		Args: "s?ss", Type: functionType, Build: buildFunction,
	})
}

func functionType(c *expr.Call) (expr.Type, error) {
	text, _ := expr.ParseType("STRING")
	if c.Len() == 3 {
		return text, nil
	}
	return expr.ParseType("MAP<STRING, STRING>")
}

// state is one evaluation's matcher.
type state struct {
	m    engine.Matcher
	caps []int
}

func buildFunction(c *expr.Call) (expr.EvalFunc, error) {
	source, ok := c.ConstText(1)
	if !ok {
		return nil, c.Errorf(1, "the pattern is a constant text")
	}
	dict, _ := Set("ecs")
	p, err := Compile(source, dict, nil)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			return nil, c.Errorf(1, "%s", e.Msg)
		}
		return nil, c.Errorf(1, "%v", err)
	}
	want := ""
	if c.Len() == 3 {
		if want, ok = c.ConstText(2); !ok {
			return nil, c.Errorf(2, "the field is a constant text")
		}
		if !slices.ContainsFunc(p.Captures, func(x Capture) bool { return x.Field == want }) {
			var names []string
			for _, x := range p.Captures {
				names = append(names, x.Field)
			}
			return nil, c.Errorf(2, "the pattern captures no field %q; it has %s", want, strings.Join(names, ", "))
		}
	}
	pool := &sync.Pool{New: func() any { return &state{p.Regex.Matcher(), make([]int, 2*(p.Regex.Groups+1))} }}
	text := c.Arg(0)
	return func(env *expr.Env, i int) record.Value {
		v := text(env, i)
		if v.IsNull() {
			return record.MakeNull()
		}
		s := pool.Get().(*state)
		defer pool.Put(s)
		if ok, err := s.m.Match(env.B.Bytes(v), s.caps); !ok || err != nil {
			return record.MakeNull()
		}
		var items []record.Value
		for k, x := range p.Captures {
			from, to := s.caps[2*k+2], s.caps[2*k+3]
			if from < 0 || from == to {
				continue
			}
			value := v.Sub(v.Off()+from, v.Off()+to)
			switch want {
			case "":
				items = append(items, env.B.PutString(x.Field), value)
			case x.Field:
				return value
			}
		}
		if want != "" {
			return record.MakeNull()
		}
		return env.B.PutItems(record.Map, items)
	}, nil
}
