package expr

import (
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// Template is a text with %{field} and %{+date pattern} in it; %% is a percent
// sign, any other % stands for itself.
type Template struct {
	src   string
	parts []templatePart
}

type templatePart struct {
	lit   string
	field string
	date  *datePattern
	off   int
}

// ParseTemplate reads a template. The error is an *Error.
func ParseTemplate(src string) (*Template, error) {
	t := &Template{src: src}
	lit := func(s string) {
		if n := len(t.parts); n > 0 && t.parts[n-1].field == "" && t.parts[n-1].date == nil {
			t.parts[n-1].lit += s
		} else if s != "" {
			t.parts = append(t.parts, templatePart{lit: s})
		}
	}
	for i := 0; i < len(src); {
		k := strings.IndexByte(src[i:], '%')
		if k < 0 || i+k+1 >= len(src) {
			lit(src[i:])
			break
		}
		lit(src[i : i+k])
		i += k
		switch src[i+1] {
		case '%':
			lit("%")
			i += 2
			continue
		case '{':
		default:
			lit("%")
			i++
			continue
		}
		end := templateEnd(src, i+2)
		if end < 0 {
			return nil, &Error{Off: i, Msg: "%{ is not closed", Hint: "write %% for a percent sign"}
		}
		in := src[i+2 : end]
		if strings.HasPrefix(in, "+") {
			p, err := parseDatePattern(in[1:])
			if err != nil {
				return nil, errAt(i+3, "%v", err)
			}
			if len(p.ops) == 0 {
				return nil, &Error{Off: i, Msg: "an empty date pattern", Hint: "as in %{+yyyy.MM.dd}"}
			}
			t.parts = append(t.parts, templatePart{date: p, off: i})
		} else {
			lead := len(in) - len(strings.TrimLeft(in, " "))
			path, err := templatePath(strings.TrimSpace(in))
			if err != nil {
				e := err.(*Error)
				return nil, &Error{Off: i + 2 + lead + e.Off, Msg: e.Msg, Hint: e.Hint}
			}
			t.parts = append(t.parts, templatePart{field: path, off: i + 2 + lead})
		}
		i = end + 1
	}
	return t, nil
}

// templatePath also takes Logstash's %{[a][b]}.
func templatePath(s string) (string, error) {
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		parts := strings.Split(s[1:len(s)-1], "][")
		for _, p := range parts {
			if p == "" || strings.ContainsAny(p, "[]") {
				return "", &Error{Msg: "'" + s + "' is no field", Hint: "as in %{[http][status]} or %{http.status}"}
			}
		}
		return strings.Join(parts, "."), nil
	}
	return ParsePath(s)
}

// templateEnd finds the closing brace, skipping backticks.
func templateEnd(s string, i int) int {
	quoted := false
	for ; i < len(s); i++ {
		switch {
		case s[i] == '`':
			quoted = !quoted
		case s[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}

// Source is the text that was parsed.
func (t *Template) Source() string { return t.src }

// IsConst tells whether the template refers to nothing.
func (t *Template) IsConst() bool {
	return len(t.parts) == 0 || len(t.parts) == 1 && t.parts[0].field == "" && t.parts[0].date == nil
}

// HasDate tells whether there is a %{+...}.
func (t *Template) HasDate() bool {
	for _, p := range t.parts {
		if p.date != nil {
			return true
		}
	}
	return false
}

// Fields are the fields that are read, in order of first use; %{+...} reads
// @timestamp. Where the compiler's EventTime is another, FieldsFor says so.
func (t *Template) Fields() []string { return t.FieldsFor("") }

// FieldsFor is Fields for a compiler with that EventTime.
func (t *Template) FieldsFor(eventTime string) []string {
	if eventTime == "" {
		eventTime = "@timestamp"
	}
	var out []string
	seen := map[string]bool{}
	for _, p := range t.parts {
		f := p.field
		if p.date != nil {
			f = eventTime
		}
		if f != "" && !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	return out
}

// TemplateProgram is a compiled template; as Program.
type TemplateProgram struct {
	parts []templateCode
	konst bool
}

type templateCode struct {
	lit  string
	f    EvalFunc
	date *datePattern
}

// CompileTemplate makes a program of t.
func (c *Compiler) CompileTemplate(t *Template) (*TemplateProgram, error) {
	if c.Table == nil {
		c.Table = record.NewTable()
	}
	p := &TemplateProgram{konst: t.IsConst()}
	zone := c.Zone
	for _, part := range t.parts {
		tc := templateCode{lit: part.lit}
		switch {
		case part.date != nil:
			name := c.EventTime
			if name == "" {
				name = "@timestamp"
			}
			tc.f = fieldFunc(c.Table, name)
			tc.date = part.date
		case part.field != "":
			tc.f = fieldFunc(c.Table, part.field)
		}
		p.parts = append(p.parts, tc)
	}
	if zone != nil && zone != time.UTC {
		for i := range p.parts {
			if d := p.parts[i].date; d != nil {
				p.parts[i].date = &datePattern{ops: d.ops, zone: zone}
			}
		}
	}
	return p, nil
}

// appendFilled appends what a template has for a value: an array's elements with commas between, an object as JSON, true and
// false, else what a cast to STRING gives.
func appendFilled(dst []byte, b *record.Batch, v record.Value) []byte {
	switch v.Kind() {
	case record.Array:
		for i, e := range b.Items(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if !e.IsNull() {
				dst = appendFilled(dst, b, e)
			}
		}
		return dst
	case record.Map, record.Bool:
		return b.AppendJSON(dst, v)
	}
	return AppendText(dst, b, v)
}

// Append writes the text for record i of env.B to dst, which must not be
// env.B.Buf. ok is false, and what was written to be ignored, where a field is
// missing or NULL, or the event time is no time.
func (p *TemplateProgram) Append(dst []byte, env *Env, i int) (out []byte, ok bool) {
	for j := range p.parts {
		part := &p.parts[j]
		if part.f == nil {
			dst = append(dst, part.lit...)
			continue
		}
		v := part.f(env, i)
		if v.IsNull() {
			return dst, false
		}
		if part.date == nil {
			dst = appendFilled(dst, env.B, v)
			continue
		}
		switch v.Kind() {
		case record.Time:
		case record.Date:
			v = asTime(v)
		case record.String:
			s, ok := parseStamp(env.bytes(v))
			if !ok {
				return dst, false
			}
			if v = s.value(9); v.IsNull() {
				return dst, false
			}
		default:
			return dst, false
		}
		dst = part.date.append(dst, v.Sec(), int64(v.Nsec()), part.date.zone)
	}
	return dst, true
}
