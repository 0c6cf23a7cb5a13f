package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rsetl/rsetl/parsers/engine"
	"github.com/rsetl/rsetl/parsers/grok"
	"github.com/rsetl/rsetl/record"
)

func (a *app) cmdGrok() *cobra.Command {
	var set string
	var asJSON, whole bool
	c := &cobra.Command{
		Use:   "grok PATTERN [FILE]",
		Short: "Try a grok pattern: fields of each line, or where it stopped",
		Long: `Tries a grok pattern on each line of FILE, or of stdin: the fields of a line that matches, under it; of one
that doesn't, how far it matched and which part of the pattern stopped it. With --json one object a line:
{"matched": true, "fields": {...}} or {"matched": false, "matched_to": N, "stopped_at": "..."}.`,
		Example: `  rsetl grok '%{COMBINEDAPACHELOG}' access.log
  echo '55.3.244.1 GET /index.html' | rsetl grok '%{IP:client} %{WORD:method} %{URIPATH:path}'`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			dict, ok := grok.Set(set)
			if !ok {
				return fmt.Errorf("--set: %q is no set of patterns; there are %s", set, strings.Join(grok.Sets, ", "))
			}
			p, err := grok.Compile(args[0], dict, nil)
			if err != nil {
				var e *grok.Error
				if errors.As(err, &e) && e.Off >= 0 {
					return fmt.Errorf("the pattern, at character %d: %s", 1+len([]rune(args[0][:e.Off])), e.Msg)
				}
				return err
			}
			if !p.Regex.Linear() {
				fmt.Fprintf(a.err, "warning: this pattern runs on a backtracking engine, at most %s a text: %s\n", engine.Timeout, p.Regex.Why)
			}
			in := a.in
			if len(args) == 2 {
				f, err := os.Open(args[1])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			t := &tryGrok{p: p, m: p.Regex.Matcher(), caps: make([]int, 2*(p.Regex.Groups+1)), debug: grok.NewDebugger(args[0], dict), json: asJSON}
			t.table = record.NewTable()
			for _, c := range p.Captures {
				t.table.Slot(c.Field)
			}
			t.b = record.NewBatch(t.table)
			out := bufio.NewWriter(a.out)
			if err := t.run(in, out, whole); err != nil {
				return failed(err)
			}
			return failed(out.Flush())
		},
	}
	c.Flags().StringVar(&set, "set", "ecs", "the patterns' set: ecs or legacy")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON, one object a line")
	c.Flags().BoolVar(&whole, "whole", false, "the input is one text, newlines and all")
	return c
}

type tryGrok struct {
	p     *grok.Pattern
	m     engine.Matcher
	caps  []int
	debug *grok.Debugger
	table *record.Table
	b     *record.Batch
	json  bool
}

// maxText bounds one line, or the whole input.
const maxText = 64 << 20

func (t *tryGrok) run(in io.Reader, out *bufio.Writer, whole bool) error {
	if whole {
		text, err := io.ReadAll(io.LimitReader(in, maxText))
		if err != nil {
			return err
		}
		t.try(text, out)
		return nil
	}
	r := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > maxText {
			return fmt.Errorf("a line is longer than %d bytes", maxText)
		}
		if len(line) > 0 {
			line = []byte(strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"))
			t.try(line, out)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if r.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (t *tryGrok) try(text []byte, out *bufio.Writer) {
	ok, err := t.m.Match(text, t.caps)
	if err == nil && ok {
		t.hit(text, out)
		return
	}
	stop := grok.Stop{}
	if err != nil {
		stop.At = err.Error()
	} else {
		stop = t.debug.Explain(text)
		if p, ok := t.p.Regex.Partial(text); ok && p.To == stop.MatchedTo {
			stop.Needed = p.Wants
		}
	}
	if t.json {
		at := record.AppendJSONString(nil, []byte(stop.At))
		needed := record.AppendJSONString(nil, []byte(stop.Needed))
		fmt.Fprintf(out, "{\"matched\": false, \"matched_to\": %d, \"stopped_at\": %s, \"needed\": %s}\n", stop.MatchedTo, at, needed)
		return
	}
	fmt.Fprintf(out, "%s\n\n", stop.Caret(text))
}

func (t *tryGrok) hit(text []byte, out *bufio.Writer) {
	b := t.b
	b.Reset()
	src := b.PutBytes(text)
	i := b.Add(record.Position{}, src)
	t.p.Take(b, i, src, t.caps)
	if t.json {
		fmt.Fprint(out, `{"matched": true, "fields": {`)
	} else {
		fmt.Fprintf(out, "%s\n", text)
	}
	n := 0
	var buf []byte
	for slot, name := range t.table.Names() {
		v := b.Get(i, slot)
		if v.Kind() == record.Missing {
			continue
		}
		buf = b.AppendJSON(buf[:0], v)
		if t.json {
			if n++; n > 1 {
				out.WriteString(", ")
			}
			key := record.AppendJSONString(nil, []byte(name))
			fmt.Fprintf(out, "%s: %s", key, buf)
		} else {
			fmt.Fprintf(out, "  %s: %s\n", name, buf)
		}
	}
	if t.json {
		fmt.Fprintln(out, "}}")
	} else {
		fmt.Fprintln(out)
	}
}
