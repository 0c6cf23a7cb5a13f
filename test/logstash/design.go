package logstash

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// design is a difference that is meant: what it is about, and how it shows.
type design struct {
	filter, reason string
	is             func(c *Case, r *Result) bool
}

// Design gives the reason why a case that differs is meant to; "" where it isn't.
func Design(c *Case, r *Result) string {
	for _, d := range designs {
		if d.filter == c.Filter && d.is(c, r) {
			return d.reason
		}
	}
	return ""
}

// raw is the text of a case's input event, as JSON.
func (c *Case) raw() string { return string(c.Input) }

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
	grouped     = regexp.MustCompile(`[.,]`)
	badPriority = regexp.MustCompile(`^<(0\d+|19[2-9]|[2-9]\d\d|\d{4,})`)
	abbreviated = regexp.MustCompile(`[A-Z]{3,4}$`)
)

var designs = []design{
	{"kv", "no expression of rsetl's takes long, so there is nothing to time out", func(c *Case, r *Result) bool {
		return passed(r) && (c.tagged("_kv_filter_timeout") || c.tagged(textOf(c.Options.Get("tag_on_timeout"))))
	}},
	{"kv", "a field may have any name; Logstash fails names with brackets, @timestamp and @metadata", func(c *Case, r *Result) bool {
		return passed(r) && c.tagged("_kv_filter_error") && strings.ContainsAny(c.raw(), "[]@")
	}},
	{"kv", "the failure was forced by Logstash's own spec; the text is good", func(c *Case, r *Result) bool {
		return passed(r) && c.Options.Has("tag_on_failure") && !strings.HasPrefix(c.Suite, "probe")
	}},
	{"csv", "a row must not depend on which one was read first: columns are named in the step, which is said where it is loaded", func(c *Case, r *Result) bool {
		return truth(c.Options.Get("autodetect_column_names")) && r.Err != nil && strings.Contains(r.Err.Error(), "columns: […]")
	}},
	{"csv", "blanks outside quotes don't count", func(c *Case, r *Result) bool {
		return passed(r) && quoteBlank.MatchString(strings.Trim(show(c.field("message")), `"`))
	}},
	{"json", "text behind the value is a failure, not the value that counts", func(c *Case, r *Result) bool {
		return r.Failed && strings.Contains(r.Reason, "something follows the value")
	}},
	{"json", "an @timestamp that is no time stays what it is", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(c.raw(), "@timestamp") && (c.tagged("_timestampparsefailure") || len(c.NewTags) > 0)
	}},
	{"json", "half a surrogate pair is U+FFFD", func(c *Case, r *Result) bool {
		return passed(r) && regexp.MustCompile(`\\\\u[dD][89a-fA-F]`).MatchString(c.raw())
	}},
	{"json", "tags is a field like others", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(c.raw(), `\"tags\"`)
	}},
	{"json", "brackets in a key are part of it", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(c.raw(), `\"[`)
	}},
	{"split", "a record with an empty text or array stays", func(c *Case, r *Result) bool {
		return c.Cancelled && len(c.Yielded) == 0 && passed(r) && len(r.Out) == 1
	}},
	{"dissect", "a field that is NULL is one that is missing", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(c.raw(), "null")
	}},
	{"dissect", "%{*name} gives the name for %{&name}, as in Beats", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(string(c.RawOptions), "%{*")
	}},
	{"multiline", "bytes that are not UTF-8 are kept; JSON shows U+FFFD, not escapes", func(c *Case, _ *Result) bool {
		for _, s := range c.Steps {
			if !utf8.Valid(rawBytes(s.Input)) && textOf(c.Options.Get("charset")) == "" {
				return true
			}
		}
		return false
	}},
	{"multiline", "text in the character set ASCII-8BIT is UTF-8 where it can be", func(c *Case, _ *Result) bool { return textOf(c.Options.Get("charset")) == "ASCII-8BIT" }},
	{"syslog", "the recorded answer is marked as hardly wanted", func(c *Case, _ *Result) bool { return c.Suspect != nil && c.Suspect != "" && c.Suspect != false }},
	{"syslog", "the byte order mark that RFC 5424 puts before UTF-8 is no part of the message", func(c *Case, _ *Result) bool {
		return c.Format == "rfc5424" && strings.Contains(c.Text, "\uFEFF")
	}},
	{"syslog", "a priority that is out of range gives no part of itself", func(c *Case, _ *Result) bool { return !c.Strict && badPriority.MatchString(c.Text) }},

	{"date", "Logstash's spec cancels the event itself", func(c *Case, r *Result) bool { return c.Cancelled && passed(r) }},
	{"date", "a leap second is the second after 23:59:59", func(c *Case, r *Result) bool { in, _ := c.dated(); return passed(r) && strings.Contains(in, ":60") }},
	{"date", "24:00:00 is the next day's midnight", func(c *Case, r *Result) bool {
		in, _ := c.dated()
		return passed(r) && strings.Contains(in, "24:00")
	}},
	{"date", "a text without a date is never silently 1 January, of 1970 or another year; with `today: true` it is today's", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return r.Failed && (strings.Contains(f, "ISO8601") && strings.HasPrefix(in, "T") || !strings.ContainsAny(strings.ReplaceAll(f, "ISO8601", ""), "yYuMdDxwe"))
	}},
	{"date", "a weekyear, its week and day are the date", func(c *Case, r *Result) bool {
		_, f := c.dated()
		return passed(r) && strings.Contains(f, "x") && strings.Contains(f, "w")
	}},
	{"date", "without a year it is the latest that puts the time at most a day ahead of now", func(c *Case, r *Result) bool {
		_, f := c.dated()
		return passed(r) && c.Clock != "" && !strings.ContainsAny(f, "yYux")
	}},
	{"date", "a wrong weekday moves nothing", func(c *Case, r *Result) bool {
		_, f := c.dated()
		return passed(r) && strings.Contains(f, "E") && strings.Contains(f, "d") && !c.failed()
	}},
	{"date", "ISO8601 takes a blank between date and time", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return passed(r) && strings.Contains(f, "ISO8601") && isoBlank.MatchString(in)
	}},
	{"date", "seconds above 2^31 are times", func(c *Case, r *Result) bool {
		in, f := c.dated()
		n, err := strconv.ParseFloat(in, 64)
		return passed(r) && strings.Contains(f, "UNIX") && err == nil && n > 1<<31-1
	}},
	{"date", "a fraction may follow a comma", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return passed(r) && strings.Contains(f, "UNIX") && strings.Contains(in, ",")
	}},
	{"date", "names of months and days are read in any case, shortened or not, with a point or without", func(c *Case, r *Result) bool {
		l := textOf(c.Options.Get("locale"))
		_, f := c.dated()
		return passed(r) && c.failed() && strings.Contains(f, "MMM") && l != "" && !strings.HasPrefix(l, "en")
	}},
	{"date", "an abbreviation is one offset, in summer and winter, and all of them are read", func(c *Case, r *Result) bool {
		in, f := c.dated()
		return passed(r) && strings.Contains(strings.ToLower(f), "z") && abbreviated.MatchString(in)
	}},
	{"date", "a blank stands for one or more", func(c *Case, r *Result) bool {
		in, _ := c.dated()
		return passed(r) && c.failed() && strings.Contains(in, "  ")
	}},
	{"date", "a fraction may have more digits than the format", func(c *Case, r *Result) bool {
		_, f := c.dated()
		return passed(r) && c.failed() && strings.Contains(strings.ReplaceAll(f, "ISO8601", ""), "S")
	}},
	{"date", "a time that clocks leave out is taken with the offset of before", func(c *Case, r *Result) bool {
		in, _ := c.dated()
		zone, err := time.LoadLocation(textOf(c.Options.Get("timezone")))
		if !passed(r) || !c.failed() || err != nil || zone == time.UTC {
			return false
		}
		at, err := time.Parse(time.RFC3339Nano, textOf(r.Out[0]["@timestamp"]))
		local := at.In(zone)
		return err == nil && (!strings.Contains(in, local.Format("15:04")) || !strings.Contains(in, local.Format("02")))
	}},

	{"mutate", "fields' names are constants in a pipeline", func(c *Case, r *Result) bool {
		for _, k := range []string{"rename", "copy", "add_field", "remove_field", "merge", "replace", "update", "convert"} {
			for i, e := range flat(c.Options.Get(k)) {
				name := i%2 == 0 || k == "rename" || k == "copy" || k == "merge" || k == "remove_field"
				if name && strings.Contains(textOf(e), "%{") {
					return true
				}
			}
		}
		return false
	}},
	{"mutate", "a number's groups have three digits: 1.9 is no 19 and 1.000,5 no 1.0005", func(c *Case, r *Result) bool {
		return r.Failed && strings.Contains(r.Reason, "is no number") && grouped.MatchString(r.Reason)
	}},
	{"mutate", "all renames of a step happen at once, and no field is lost", func(c *Case, r *Result) bool {
		from := map[string]bool{}
		for _, p := range pairs(c.Options.Get("rename")) {
			from[textOf(p[0])] = true
		}
		return passed(r) && slices.ContainsFunc(pairs(c.Options.Get("rename")), func(p [2]any) bool { return from[textOf(p[1])] })
	}},
	{"mutate", "where a template's field is missing, the field stays as it was", func(c *Case, r *Result) bool {
		for _, k := range []string{"replace", "update", "add_field", "coerce", "gsub"} {
			for _, e := range flat(c.Options.Get(k)) {
				for _, ref := range reference.FindAllStringSubmatch(textOf(e), -1) {
					if v := c.field(ref[1]); v == nil {
						return true
					} else if o, ok := v.(*Object); ok && !special(o) { // an object has no text of its own
						return true
					}
				}
			}
		}
		return false
	}},
	{"mutate", "arrays and objects in a text are JSON", func(c *Case, r *Result) bool {
		nested := func(v any) bool {
			o, ok := v.(*Object)
			return ok && !special(o)
		}
		for _, p := range append(pairs(c.Options.Get("join")), pairs(c.Options.Get("convert"))...) {
			if slices.ContainsFunc(list(c.field(textOf(p[0]))), func(v any) bool { _, array := v.([]any); return array || nested(v) }) {
				return passed(r)
			}
		}
		for _, k := range []string{"replace", "update", "add_field"} {
			for _, e := range flat(c.Options.Get(k)) {
				for _, ref := range reference.FindAllStringSubmatch(textOf(e), -1) {
					if v := c.field(ref[1]); v != nil {
						if _, array := v.([]any); array || nested(v) {
							return passed(r)
						}
					}
				}
			}
		}
		return false
	}},
	{"mutate", "an array's element is changed by an expression or convert, not by its place in a name", func(c *Case, r *Result) bool {
		for _, k := range c.Options.Keys {
			for _, e := range flat(c.Options.Get(k)) {
				if _, _, ok := element(textOf(e)); ok {
					return true
				}
			}
		}
		return false
	}},
	{"mutate", "a record may have a field and others below its name", func(c *Case, r *Result) bool {
		return passed(r) && c.tagged("_mutate_error") && strings.Contains(string(c.RawOptions), "][")
	}},
	{"mutate", "@timestamp takes any value, like other fields", func(c *Case, r *Result) bool {
		return passed(r) && strings.Contains(string(c.RawOptions), `"@timestamp"`)
	}},
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
