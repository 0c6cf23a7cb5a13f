package logstash

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// flatten gives the leaves of an object by their dotted paths. NULL and empty objects count as missing.
func flatten(v any) map[string]any {
	out := map[string]any{}
	flattenInto(out, "", v)
	return out
}

func flattenInto(out map[string]any, prefix string, v any) {
	switch v := v.(type) {
	case nil:
		return
	case *Object:
		if special(v) {
			break
		}
		for _, k := range v.Keys {
			name := k
			if prefix != "" {
				name = prefix + "." + k
			}
			flattenInto(out, name, v.Vals[k])
		}
		return
	}
	out[prefix] = v
}

func special(o *Object) bool {
	return len(o.Keys) == 1 && (o.Has("$ts") || o.Has("$bigdecimal") || o.Has("$float") || o.Has("$b64"))
}

// same compares a value that Logstash gave with rsetl's.
func same(want, got any) bool {
	switch w := want.(type) {
	case *Object:
		if w.Has("$ts") {
			return sameTime(textOf(w.Get("$ts")), got)
		}
		if d := w.Get("$bigdecimal"); d != nil {
			return sameNumber(textOf(d), got)
		}
		if f := w.Get("$float"); f != nil {
			return got == nil || textOf(got) == textOf(f)
		}
		if b := w.Get("$b64"); b != nil {
			raw, _ := base64.StdEncoding.DecodeString(textOf(b))
			return got == shown(raw)
		}
		g, ok := got.(*Object)
		return ok && len(diff(flatten(w), flatten(g))) == 0
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(w[i], g[i]) {
				return false
			}
		}
		return true
	case json.Number:
		return sameNumber(w.String(), got)
	}
	return reflect.DeepEqual(want, got)
}

// sameTime compares at Logstash's precision, a millisecond.
func sameTime(want string, got any) bool {
	s, ok := got.(string)
	if !ok {
		return false
	}
	if want == "$now" {
		return true
	}
	a, err1 := parseTime(want)
	b, err2 := parseTime(s)
	return err1 == nil && err2 == nil && a == b
}

// parseTime gives the milliseconds of a time with any year, rounded down.
func parseTime(s string) (int64, error) {
	neg := strings.HasPrefix(s, "-")
	rest := strings.TrimLeft(s, "+-")
	dash := strings.IndexByte(rest, '-')
	if dash < 0 {
		return 0, fmt.Errorf("%q is no time", s)
	}
	year, err := strconv.Atoi(rest[:dash])
	if err != nil {
		return 0, err
	}
	if neg {
		year = -year
	}
	t, err := time.Parse("2006-01-02T15:04:05.999999999Z07:00", "2000"+rest[dash:])
	if err != nil {
		return 0, err
	}
	t = time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
	return t.Unix()*1000 + int64(t.Nanosecond()/1e6), nil
}

func sameNumber(want string, got any) bool {
	n, ok := got.(json.Number)
	if !ok {
		return false
	}
	a, ok1 := new(big.Rat).SetString(want)
	b, ok2 := new(big.Rat).SetString(n.String())
	if ok1 && ok2 && a.Cmp(b) == 0 {
		return true
	}
	x, err1 := strconv.ParseFloat(want, 64)
	y, err2 := strconv.ParseFloat(n.String(), 64)
	return strings.ContainsAny(want, ".eE") && err1 == nil && err2 == nil && x == y
}

// diff tells how two flat records differ.
func diff(want, got map[string]any) (out []string) {
	for k, w := range want {
		if g, ok := got[k]; !ok {
			out = append(out, fmt.Sprintf("%s: want %s, it is missing", k, show(w)))
		} else if !same(w, g) {
			out = append(out, fmt.Sprintf("%s: want %s, got %s", k, show(w), show(g)))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			out = append(out, fmt.Sprintf("%s: got %s, Logstash has none", k, show(g)))
		}
	}
	sort.Strings(out)
	return out
}

func show(v any) string {
	switch v := v.(type) {
	case *Object:
		var b strings.Builder
		b.WriteByte('{')
		for i, k := range v.Keys {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Quote(k) + ":" + show(v.Vals[k]))
		}
		return b.String() + "}"
	case []any:
		var s []string
		for _, e := range v {
			s = append(s, show(e))
		}
		return "[" + strings.Join(s, ",") + "]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// shown is a text as JSON shows it: each byte that is not UTF-8 is U+FFFD.
func shown(p []byte) string {
	var b strings.Builder
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		b.WriteRune(r)
		p = p[n:]
	}
	return b.String()
}
