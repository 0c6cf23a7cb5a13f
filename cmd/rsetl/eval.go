package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/record"
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
			root, err := recordNode(rec)
			if err != nil {
				return fmt.Errorf("--record: %w", err)
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
	c.Flags().StringVar(&rec, "record", "", "the record, a JSON object")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object a line")
	return c
}

func recordNode(text string) (*yaml.Node, error) {
	if text == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("not JSON: %.60s", text)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("want a JSON object")
	}
	return doc.Content[0], nil
}

func (a *app) evalOne(src string, rec *yaml.Node, asJSON bool) error {
	err := writeEval(a.out, src, rec, asJSON)
	if err != nil && asJSON {
		return nil
	}
	return err
}

// writeEval writes one answer; with asJSON an error is written too.
func writeEval(w interface{ Write([]byte) (int, error) }, src string, rec *yaml.Node, asJSON bool) error {
	text, typ, err := evaluate(src, rec, asJSON)
	switch {
	case err != nil && asJSON:
		msg, _ := json.Marshal(err.Error())
		fmt.Fprintf(w, "{\"error\": %s}\n", msg)
	case err != nil:
	case asJSON:
		t, _ := json.Marshal(typ)
		fmt.Fprintf(w, "{\"result\": %s, \"type\": %s}\n", text, t)
	default:
		fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

func evaluate(src string, rec *yaml.Node, asJSON bool) (text []byte, typ string, err error) {
	e, err := expr.Parse(src)
	if err != nil {
		return nil, "", describe(src, err)
	}
	t := record.NewTable()
	p, err := (&expr.Compiler{Table: t}).Compile(e)
	if err != nil {
		return nil, "", describe(src, err)
	}
	b := record.NewBatch(t)
	i := b.Add(record.Position{}, record.Value{})
	if rec != nil {
		if err := pipeline.PutFields(b, i, rec); err != nil {
			return nil, "", err
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
