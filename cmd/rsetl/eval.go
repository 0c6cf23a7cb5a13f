package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/expr"
	jsonstep "github.com/rsetl/rsetl/parsers/json"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func (a *app) cmdEval() *cobra.Command {
	var rec string
	var asJSON bool
	c := &cobra.Command{
		Use:   "eval [EXPR]",
		Short: "Evaluate an expression, or one a line from stdin",
		Long: `Evaluates an expression on a record; without EXPR one expression a line from stdin. With --json each
answer is {"result": …, "type": "…"} or {"error": "…"}; an error is an answer too, the exit code is then 0.`,
		Example: `  rsetl eval "UPPER('a') || '!'"
  rsetl eval --record '{"status": "503"}' --json 'status >= 500'
  printf '%s\n' '1 + 2' "SUBSTRING('rsetl' FROM 3)" | rsetl eval`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := []byte(rec)
			if _, _, err := evaluate("TRUE", root, false); err != nil {
				return err
			}
			if len(args) == 1 {
				return a.evalOne(args[0], root, asJSON)
			}
			out := bufio.NewWriter(a.out)
			sc := bufio.NewScanner(a.in)
			sc.Buffer(nil, 16<<20)
			for sc.Scan() {
				if strings.TrimSpace(sc.Text()) == "" {
					continue
				}
				if err := writeEval(out, sc.Text(), root, asJSON); err != nil {
					if !asJSON {
						fmt.Fprintf(out, "error: %v\n", err)
					}
				}
			}
			if err := out.Flush(); err != nil {
				return failed(err)
			}
			return sc.Err()
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w\nan expression that begins with - stands behind --: rsetl eval -- '-1 + 2'", err)
	})
	c.Flags().StringVar(&rec, "record", "", "the record, a JSON object")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object a line")
	return c
}

func (a *app) evalOne(src string, rec []byte, asJSON bool) error {
	err := writeEval(a.out, src, rec, asJSON)
	if err != nil && asJSON {
		return nil
	}
	return err
}

// writeEval writes one answer; with asJSON an error is written too.
func writeEval(w interface{ Write([]byte) (int, error) }, src string, rec []byte, asJSON bool) error {
	text, typ, err := evaluate(src, rec, asJSON)
	switch {
	case err != nil && asJSON:
		fmt.Fprintf(w, "{\"error\": %s}\n", record.AppendJSONString(nil, []byte(err.Error())))
	case err != nil:
	case asJSON:
		fmt.Fprintf(w, "{\"result\": %s, \"type\": %s}\n", text, record.AppendJSONString(nil, []byte(typ)))
	default:
		fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

func evaluate(src string, rec []byte, asJSON bool) (text []byte, typ string, err error) {
	e, err := expr.Parse(src)
	if err != nil {
		return nil, "", describe(src, err)
	}
	t := record.NewTable()
	// The record comes through the json step, in a field that no expression can name.
	const field = "\x00record"
	parse, err := (&jsonstep.Config{Field: steps.FieldPath{Name: field}, Replace: true, MaxDepth: 64, MaxFields: 10_000}).Build(&steps.Build{Table: t})
	if err != nil {
		return nil, "", err
	}
	p, err := (&expr.Compiler{Table: t}).Compile(e)
	if err != nil {
		return nil, "", describe(src, err)
	}
	b := record.NewBatch(t)
	i := b.Add(record.Position{}, record.Value{})
	if len(rec) > 0 {
		b.Set(i, t.Find(field), b.PutBytes(rec))
		parse().Apply(b)
		if len(b.Fails) > 0 {
			return nil, "", fmt.Errorf("--record: %s", b.Fails[0].Reason)
		}
	}
	v := p.Eval(&expr.Env{B: b}, i)
	if asJSON {
		return expr.AppendEvalJSON(nil, b, v, p.Type()), p.Type().String(), nil
	}
	if v.IsNull() {
		return []byte("NULL"), p.Type().String(), nil
	}
	return expr.AppendText(nil, b, v), p.Type().String(), nil
}

// describe puts an expression's error under its text.
func describe(src string, err error) error {
	var x *expr.Error
	if !errors.As(err, &x) {
		return err
	}
	msg := x.Msg
	if x.Hint != "" {
		msg += "; " + x.Hint
	}
	if x.Off < 0 || x.Off > len(src) || strings.Contains(src, "\n") {
		return errors.New(msg)
	}
	return fmt.Errorf("at character %d: %s", 1+len([]rune(src[:x.Off])), msg)
}

func (a *app) cmdFunctions() *cobra.Command {
	return &cobra.Command{
		Use:     "functions [NAME]",
		Short:   "Show the functions of expressions",
		Long:    "Shows all functions, or one: signature, what it does, what it makes of NULL, an example. A name that\nis none searches names and descriptions.",
		Example: "  rsetl functions\n  rsetl functions SUBSTRING\n  rsetl functions base64",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			reg := expr.Default()
			if len(args) == 0 {
				for _, n := range reg.Names() {
					if f := reg.Lookup(n); f.Name == n {
						fmt.Fprintf(a.out, "%-44s %s\n", f.Signature, f.Summary)
					}
				}
				return nil
			}
			if f := reg.Lookup(args[0]); f != nil {
				showFunction(a.out, f)
				return nil
			}
			found := 0
			word := strings.ToLower(args[0])
			for _, n := range reg.Names() {
				if f := reg.Lookup(n); f.Name == n && (strings.Contains(strings.ToLower(f.Summary), word) || strings.Contains(strings.ToLower(n), word)) {
					fmt.Fprintf(a.out, "%-44s %s\n", f.Signature, f.Summary)
					found++
				}
			}
			if found == 0 {
				hint := ""
				if n := reg.Nearest(args[0]); n != "" {
					hint = "; did you mean " + n + "?"
				}
				return fmt.Errorf("no function %q%s", args[0], hint)
			}
			return nil
		},
	}
}

func showFunction(w interface{ Write([]byte) (int, error) }, f *expr.Function) {
	fmt.Fprintf(w, "%s\n  %s\n", f.Signature, f.Summary)
	if f.Nulls != "" {
		fmt.Fprintf(w, "  NULL: %s\n", f.Nulls)
	}
	if len(f.Aliases) > 0 {
		fmt.Fprintf(w, "  also: %s\n", strings.Join(f.Aliases, ", "))
	}
	if f.Example != "" {
		fmt.Fprintf(w, "  example: %s = %s\n", f.Example, f.ExampleResult)
	}
}
