package logstash

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsetl/rsetl/pipeline"
	"github.com/rsetl/rsetl/record"
)

// clock is the time of a case that doesn't tell its own.
var clock = time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)

// Result is what rsetl made of a case.
type Result struct {
	File   string // the pipeline
	Err    error  // it isn't accepted
	Out    []map[string]any
	Failed bool
	Reason string
	Dead   map[string]any // the record that failed
	Passes bool           // Logstash lets what fails there pass
}

// Run takes a case through rsetl.
func Run(c *Case) (*Result, error) {
	steps := Translate(c)
	now := clock
	for _, s := range []string{c.Clock, c.Pivot} {
		if s != "" {
			var err error
			if now, err = time.Parse(time.RFC3339Nano, s); err != nil {
				return nil, err
			}
		}
	}
	var in any
	if c.ConfigError == "" {
		var err error
		if in, err = parse(c.Input); err != nil {
			return nil, fmt.Errorf("input_event: %w", err)
		}
	}
	before := 0 // records that those before have given
	r, failedAt, err := runSteps(steps, now, func(b *record.Batch) {
		for _, e := range c.Before {
			if v, err := parse(e.Input); err == nil {
				setFields(b, b.Add(record.Position{Offset: int64(b.Len())}, record.Value{}), "", v.(*Object))
				if !e.Cancelled {
					before++
				}
			}
		}
		if in != nil {
			setFields(b, b.Add(record.Position{Offset: int64(b.Len())}, record.Value{}), "", in.(*Object))
		}
	})
	if err != nil {
		return nil, err
	}
	r.Out = r.Out[min(before, len(r.Out)):]
	r.Passes = failedAt >= 0 && steps[failedAt].passes
	return r, nil
}

// runSteps takes the records that put adds through steps. failedAt is the number of the step that failed one, -1: none did.
func runSteps(list []step, now time.Time, put func(b *record.Batch)) (r *Result, failedAt int, err error) {
	file, err := YAML(list)
	if err != nil {
		return nil, -1, err
	}
	r = &Result{File: string(file)}
	f, err := pipeline.Load("case.yaml", file, pipeline.LoadOptions{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		r.Err = err
		return r, -1, nil
	}
	p, err := pipeline.Compile(f, pipeline.CompileOptions{Once: true, Now: func() time.Time { return now }})
	if err != nil {
		r.Err = err
		return r, -1, nil
	}
	failedAt = -1
	t := p.Try(put)
	for _, o := range t.Out {
		v, err := parse(o)
		if err != nil {
			return nil, -1, fmt.Errorf("rsetl's %s: %w", o, err)
		}
		r.Out = append(r.Out, flatten(v))
	}
	for _, l := range t.Dead {
		r.Failed, r.Reason = true, l.Reason
		v, err := parse(l.Record)
		if err != nil {
			return nil, -1, fmt.Errorf("rsetl's %s: %w", l.Record, err)
		}
		r.Dead = flatten(v)
		delete(r.Dead, "_taken")
		for i := range list {
			if l.Step == fmt.Sprintf("s%d", i) {
				failedAt = i
			}
		}
	}
	return r, failedAt, nil
}

// Judge compares a result with what Logstash did. No difference: they agree.
func Judge(c *Case, r *Result) []string {
	if c.ConfigError != "" {
		if r.Err == nil {
			return []string{"Logstash refuses the options, rsetl takes them"}
		}
		return nil
	}
	if r.Err != nil {
		return []string{"rsetl refuses: " + r.Err.Error()}
	}
	if c.Raised != "" {
		if !r.Failed {
			return []string{"Logstash raised an error, rsetl has " + fmt.Sprint(r.Out)}
		}
		return nil
	}
	text := c.Output
	if len(text) == 0 {
		text = c.LogstashOut
	}
	v, err := parse(text)
	if err != nil {
		return []string{err.Error()}
	}
	want, _ := v.(*Object)
	if c.Cancelled {
		if r.Failed {
			return []string{"it failed: " + r.Reason}
		}
		var yields []any
		if len(c.Yielded) > 0 {
			v, err := parse(c.Yielded)
			if err != nil {
				return []string{err.Error()}
			}
			yields, _ = v.([]any)
		}
		if len(yields) != len(r.Out) {
			return []string{fmt.Sprintf("want %d records, got %d: %v", len(yields), len(r.Out), r.Out)}
		}
		for i, y := range yields {
			if d := diff(flatten(y), r.Out[i]); len(d) > 0 {
				return append([]string{fmt.Sprintf("record %d", i+1)}, d...)
			}
		}
		return nil
	}
	failed := untag(c, want)
	flat := flatten(want)
	if len(c.LogstashOut) > 0 && !want.Has("message") { // recorded without the text that was parsed
		for _, o := range append(r.Out, r.Dead) {
			delete(o, "message")
		}
	}
	switch {
	case failed && !r.Failed:
		return []string{fmt.Sprintf("Logstash fails it, rsetl has %s", showAll(r.Out))}
	case r.Failed && !failed && !r.Passes:
		return []string{"it failed: " + r.Reason + "; want " + show(want)}
	case r.Failed:
		return diff(flat, r.Dead)
	case len(r.Out) != 1:
		return []string{fmt.Sprintf("want one record, got %d", len(r.Out))}
	}
	return diff(flat, r.Out[0])
}

func showAll(out []map[string]any) string {
	var s []string
	for _, o := range out {
		var keys []string
		for k := range o {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		var kv []string
		for _, k := range keys {
			kv = append(kv, k+"="+show(o[k]))
		}
		s = append(s, strings.Join(kv, " "))
	}
	return strings.Join(s, " | ")
}

// soft are tags that tell of something short of a failure: rsetl doesn't tag.
var soft = []string{"_csvskippedemptyfield", "_dataconversionuncoercible", "_dataconversionnullvalue", "_dataconversionmissing", "_timestampparsefailure"}

// untag takes the tags that Logstash sets on failures off an event; failed tells whether there was one.
func untag(c *Case, o *Object) (failed bool) {
	added := list(c.Options.Get("add_tag"))
	mark := map[string]bool{}
	for _, t := range c.NewTags {
		if slices.ContainsFunc(added, func(a any) bool { return textOf(a) == t }) {
			continue
		}
		own := slices.ContainsFunc(list(c.Options.Get("tag_on_failure")), func(a any) bool { return textOf(a) == t }) || textOf(c.Options.Get("tag_on_timeout")) == t
		if !strings.HasPrefix(t, "_") && !own {
			continue
		}
		mark[t] = true
		if !slices.ContainsFunc(soft, func(s string) bool { return strings.HasPrefix(t, s) }) {
			failed = true
		}
	}
	tags := list(o.Get("tags"))
	if len(c.NewTags) == 0 && len(c.LogstashOut) > 0 { // cases without new_tags
		for _, t := range tags {
			if strings.HasSuffix(textOf(t), "failure") {
				failed, mark[textOf(t)] = true, true
			}
		}
	}
	if len(mark) == 0 {
		return false
	}
	var left []any
	for _, t := range tags {
		if !mark[textOf(t)] {
			left = append(left, t)
		}
	}
	if len(left) == 0 {
		delete(o.Vals, "tags")
		o.Keys = slices.DeleteFunc(o.Keys, func(k string) bool { return k == "tags" })
	} else {
		o.Vals["tags"] = left
	}
	return failed
}
