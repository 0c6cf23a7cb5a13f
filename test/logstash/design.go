package logstash

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// design is a difference that is meant: what it is about, and how it shows.
type design struct {
	filter string
	why    cause
	reason string
	is     func(c *Case, r *Result) bool
}

// cause is why a difference is meant.
type cause int

const (
	choice cause = iota // rsetl's own
	fault               // the corpus lists Logstash's answer among the faults not to copy
	forced              // the answer was forced by Logstash's own spec, or is a time-out: nothing to compare with
)

// Design gives the reason why a case that differs is meant to; "" where it isn't.
func Design(c *Case, r *Result) (reason string, why cause) {
	for _, d := range designs {
		if d.filter == c.Filter && d.is(c, r) {
			return d.reason, d.why
		}
	}
	return "", choice
}

// tagged tells whether Logstash tagged the event so.
func (c *Case) tagged(tag string) bool { return slices.Contains(c.NewTags, tag) }

// field is the value of a field of the input event.
func (c *Case) field(path string) any {
	v, err := parse(c.Input)
	if err != nil {
		return nil
	}
	for _, p := range parts(path) {
		o, ok := v.(*Object)
		if !ok {
			return nil
		}
		v = o.Get(p)
	}
	return v
}

// isNull tells whether the input event has the field, as NULL.
func (c *Case) isNull(path string) bool {
	ps := parts(path)
	v, err := parse(c.Input)
	if err != nil {
		return false
	}
	for i, p := range ps {
		o, ok := v.(*Object)
		if !ok || !o.Has(p) {
			return false
		}
		if v = o.Get(p); i == len(ps)-1 {
			return v == nil
		}
	}
	return false
}

// date's case: the text, the formats, and what rsetl made of it.
func (c *Case) dated() (in, formats string) {
	match := list(c.Options.Get("match"))
	if len(match) < 2 {
		return "", ""
	}
	var f []string
	for _, m := range match[1:] {
		f = append(f, textOf(m))
	}
	return textOf(c.field(textOf(match[0]))), strings.Join(f, " | ")
}

func passed(r *Result) bool { return r.Err == nil && !r.Failed && len(r.Out) > 0 }

var (
	quoteBlank  = regexp.MustCompile(`(^|[,;|])[ \t]+\\"|\\"[ \t]+([,;|]|"$|$)`)
	isoBlank    = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d`)
	badPriority = regexp.MustCompile(`^<(0\d+|19[2-9]|[2-9]\d\d|\d{4,})`)
	abbreviated = regexp.MustCompile(`[A-Z]{3,4}$`)
	halfPair    = regexp.MustCompile(`\\\\u[dD][89a-fA-F]`)
	europeans   = regexp.MustCompile(`integer_eu|float_eu`)
)

var designs = []design{
	{"kv", forced, "no expression of rsetl's takes long, so there is nothing to time out", func(c *Case, r *Result) bool {
		return passed(r) && (c.tagged("_kv_filter_timeout") || c.tagged(textOf(c.Options.Get("tag_on_timeout"))))
	}},
	{"kv", forced, "the failure was forced by Logstash's own spec; the text is good", func(c *Case, r *Result) bool {
		return passed(r) && c.Options.Has("tag_on_failure") && !strings.HasPrefix(c.Suite, "probe")
	}},
	{"csv", choice, "blanks outside quotes don't count", func(c *Case, r *Result) bool {
		return passed(r) && quoteBlank.MatchString(strings.Trim(show(c.field("message")), `"`))
	}},
	{"json", fault, "text behind the value is a failure, not the value that counts", func(c *Case, r *Result) bool {
		return r.Failed && strings.Contains(r.Reason, "something follows the value")
	}},
	{"json", choice, "half a surrogate pair is U+FFFD", func(c *Case, r *Result) bool {
		return passed(r) && halfPair.MatchString(string(c.Input))
	}},
	{"split", fault, "a record with an empty text or array stays", func(c *Case, r *Result) bool {
		return c.Cancelled && len(c.Yielded) == 0 && passed(r) && len(r.Out) == 1
	}},
	{"syslog", choice, "the recorded answer is marked as hardly wanted", func(c *Case, _ *Result) bool { return c.Suspect != nil && c.Suspect != "" && c.Suspect != false }},
	{"syslog", choice, "a priority that is out of range gives no part of itself", func(c *Case, _ *Result) bool { return !c.Strict && badPriority.MatchString(c.Text) }},

	{"date", forced, "Logstash's spec cancels the event itself", func(c *Case, r *Result) bool { return c.Cancelled && passed(r) }},
	{"date", fault, "a wrong weekday moves nothing", func(c *Case, r *Result) bool {
		_, f := c.dated()
		return passed(r) && strings.Contains(f, "E") && strings.Contains(f, "d") && !c.failed()
	}},
	{"date", fault, "ISO8601 takes a blank between date and time", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return passed(r) && strings.Contains(f, "ISO8601") && isoBlank.MatchString(in)
	}},
	{"date", fault, "seconds above 2^31 are times", func(c *Case, r *Result) bool {
		in, f := c.dated()
		n, err := strconv.ParseFloat(in, 64)
		return passed(r) && strings.Contains(f, "UNIX") && err == nil && n > 1<<31-1
	}},
	{"date", choice, "abbreviations of zones outside America are read too", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return passed(r) && c.failed() && strings.Contains(f, "z") && abbreviated.MatchString(in)
	}},

	{"mutate", fault, "1.9 is no 19, and 1.0 no 10: a number's groups have three digits", func(c *Case, r *Result) bool {
		return r.Failed && strings.Contains(r.Reason, "is no number") && europeans.MatchString(string(c.RawOptions))
	}},
	{"mutate", choice, "1.000,5 is no 1.0005: a number's groups have three digits", func(c *Case, r *Result) bool {
		return r.Failed && strings.Contains(r.Reason, "is no number") && strings.Contains(r.Reason, ",")
	}},
	{"mutate", fault, "all renames of a step happen at once, and no field is lost", func(c *Case, r *Result) bool {
		from := map[string]bool{}
		for _, p := range pairs(c.Options.Get("rename")) {
			from[textOf(p[0])] = true
		}
		return passed(r) && slices.ContainsFunc(pairs(c.Options.Get("rename")), func(p [2]any) bool { return from[textOf(p[1])] })
	}},
	{"mutate", choice, "where a template's field is missing, the field stays as it was", func(c *Case, r *Result) bool {
		return c.templated(func(v any) bool { return v == nil })
	}},
	{"mutate", choice, "arrays and objects in a text are JSON", func(c *Case, r *Result) bool {
		nested := func(v any) bool {
			_, array := v.([]any)
			o, object := v.(*Object)
			return array || object && !special(o)
		}
		for _, p := range append(pairs(c.Options.Get("join")), pairs(c.Options.Get("convert"))...) {
			if slices.ContainsFunc(list(c.field(textOf(p[0]))), nested) {
				return passed(r)
			}
		}
		return passed(r) && c.templated(nested)
	}},
	{"mutate", choice, "a record may have a field and others below its name", func(c *Case, r *Result) bool {
		return passed(r) && c.tagged("_mutate_error") && strings.Contains(string(c.RawOptions), "][")
	}},
	{"mutate", choice, "@timestamp takes any value, like other fields", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(string(c.RawOptions), `"@timestamp"`)
	}},
}

// templated tells whether a template has a field whose value in the input event is such a one.
func (c *Case) templated(is func(v any) bool) bool {
	for _, k := range []string{"replace", "update", "add_field", "coerce", "gsub"} {
		for _, e := range flat(c.Options.Get(k)) {
			for _, ref := range reference.FindAllStringSubmatch(textOf(e), -1) {
				if is(c.field(ref[1])) {
					return true
				}
			}
		}
	}
	return false
}

// failed tells whether Logstash failed the event.
func (c *Case) failed() bool { return c.tagged("_dateparsefailure") }

// flat is an option's names and values in turn.
func flat(v any) []any {
	if o, ok := v.(*Object); ok {
		var out []any
		for _, k := range o.Keys {
			out = append(out, k)
			out = append(out, o.Vals[k])
		}
		return out
	}
	return list(v)
}
