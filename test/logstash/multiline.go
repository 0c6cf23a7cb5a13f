package logstash

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/parsers/grok"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sources"
	"github.com/rsetl/rsetl/sources/text"
	"github.com/rsetl/rsetl/steps"
)

// charsets are Ruby's names of character sets that have other IANA names.
var charsets = map[string]string{"CP1252": "windows-1252", "ASCII-8BIT": "us-ascii", "": "utf-8-escaped"}

// rawBytes is a chunk as it came.
func rawBytes(v any) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case map[string]any:
		b, _ := base64.StdEncoding.DecodeString(fmt.Sprint(v["$b64"]))
		return b
	case *Object:
		b, _ := base64.StdEncoding.DecodeString(fmt.Sprint(v.Get("$b64")))
		return b
	}
	return nil
}

// runMultiline gives a source's multiline option what the codec got and compares the records' texts. The codec is given
// chunks of whole lines; empty lines at a chunk's end don't count there.
func runMultiline(c *Case) ([]string, error) {
	o := &c.Options
	var common sources.Common
	config.Defaults(&common)
	ml := &sources.Multiline{}
	config.Defaults(ml)
	ml.Pattern, ml.What, ml.Negate = textOf(o.Get("pattern")), textOf(o.Get("what")), truth(o.Get("negate"))
	if n, ok := o.Get("max_lines").(json.Number); ok {
		i, _ := n.Int64()
		ml.MaxLines = int(i)
	}
	if o.Has("max_bytes") {
		s := strings.NewReplacer(" mb", "MiB", " kb", "KiB", " b", "B").Replace(textOf(o.Get("max_bytes")))
		size, err := config.ParseSize(s)
		if err != nil {
			return nil, err
		}
		ml.MaxBytes = config.Size(size)
	}
	common.Multiline = ml
	newline := []byte("\n")
	if cs := textOf(o.Get("charset")); true {
		common.Encoding = cs
		if to, ok := charsets[cs]; ok {
			common.Encoding = to
		}
		switch strings.ToUpper(cs) {
		case "UTF-16LE":
			newline = []byte("\n\x00")
		case "UTF-16BE":
			newline = []byte("\x00\n")
		}
	}
	table := record.NewTable()
	msg := table.Slot("message")
	f, err := text.FromBuild(&sources.Build{Build: steps.Build{Name: "case"}, Common: common, Clock: func() time.Time { return clock },
		CompilePattern: func(p string) (sources.Matcher, error) { return grok.CompileMatcher(p, nil) }}, 16<<20)
	if err != nil {
		return nil, err
	}
	cut := f.NewCutter(table, "case", "case", 0, nil)
	var got, want []string
	feed := func(data []byte, mode text.Mode) {
		b := record.NewBatch(table)
		b.Split = &record.Split{ID: "case"}
		n := copy(cut.Begin(b, len(data)), data)
		cut.Cut(b, n, mode)
		for _, i := range b.Sel {
			v := b.Get(int(i), msg)
			got = append(got, strings.ToValidUTF8(string(b.Bytes(v)), "\uFFFD"))
		}
	}
	for _, s := range c.Steps {
		switch s.Op {
		case "decode":
			data := rawBytes(s.Input)
			for len(data) >= len(newline) && string(data[len(data)-len(newline):]) == string(newline) {
				data = data[:len(data)-len(newline)]
			}
			if len(data) > 0 {
				feed(append(append([]byte(nil), data...), newline...), text.More)
			}
		case "auto_flush":
			n := len(got)
			feed(nil, text.Flush)
			got = got[:n] // what it gives is not among the recorded events
		case "flush":
			feed(nil, text.Final)
		}
		if len(s.Events) == 0 {
			continue
		}
		v, err := parse(s.Events)
		if err != nil {
			return nil, err
		}
		for _, e := range list(v) {
			want = append(want, textOf(e.(*Object).Get("message")))
		}
	}
	if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		return []string{fmt.Sprintf("want %q, got %q", want, got)}, nil
	}
	return nil, nil
}
