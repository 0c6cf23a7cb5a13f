package syslog

import (
	"bytes"

	"github.com/rsetl/rsetl/record"
)

// rfc5424 reads what is behind the priority.
func (s *step) rfc5424(at int) mistake {
	in := s.in
	v, from := 0, at
	for at < len(in) && at < from+3 && in[at]-'0' <= 9 {
		v = v*10 + int(in[at]-'0')
		at++
	}
	if at == from || in[from] == '0' {
		return mistake{"a version from 1 to 999 is expected", at}
	}
	s.vals[fVersion] = record.MakeInt(int64(v))
	if at >= len(in) || in[at] != ' ' {
		return mistake{"a blank is expected behind the version", at}
	}
	at++
	// Timestamp.
	if at < len(in) && in[at] == '-' {
		at++
	} else {
		t, end, _ := rfc3339(in, at, 6, true)
		if end < 0 {
			return mistake{"a time such as 2024-01-02T03:04:05.678Z, or -, is expected", at}
		}
		s.at = t
		if at = end; at < len(in) && in[at] != ' ' {
			return mistake{"a blank is expected behind the time", at}
		}
	}
	for k := range header {
		h := &header[k]
		if at >= len(in) || in[at] != ' ' {
			return mistake{"a blank is expected before " + h.what, at}
		}
		at++
		from := at
		for at < len(in) && in[at]-'!' <= '~'-'!' {
			at++
		}
		if at == from || at-from > h.max || at < len(in) && in[at] != ' ' {
			return mistake{h.what + " has 1 to " + h.maxText + " printable ASCII characters, or is -", from}
		}
		if at == len(in) {
			// The rest must follow; what was read may be cut off.
			return mistake{"the message ends after " + h.what, at}
		}
		if at-from > 1 || in[from] != '-' {
			s.vals[h.field] = s.src.Sub(from, at)
		}
	}
	if at >= len(in) || in[at] != ' ' {
		return mistake{"a blank is expected before the structured data", at}
	}
	at++
	if at < len(in) && in[at] == '-' {
		at++
	} else {
		var m mistake
		if at, m = s.structured(at); m.what != "" {
			return m
		}
	}
	if at == len(in) {
		return mistake{}
	}
	if in[at] != ' ' {
		return mistake{"a blank is expected before the message", at}
	}
	at++
	if !s.keepBOM && bytes.HasPrefix(in[at:], bom) {
		at += len(bom)
	}
	s.setMessage(at)
	return mistake{}
}

var bom = []byte("\xEF\xBB\xBF")

var header = [...]struct {
	what, maxText string
	max, field    int
}{{"the hostname", "255", 255, fHostname}, {"the app name", "48", 48, fAppname}, {"the procid", "128", 128, fProcid}, {"the msgid", "32", 32, fMsgid}}

// What one message may have of elements and parameters.
const (
	maxElements = 1000
	maxParams   = 10_000
)

// sdName reads an element's id or a parameter's name: 1 to 32 printable characters without = ] " and blank.
func sdName(in []byte, at int) int {
	from := at
	for at < len(in) && in[at]-'!' <= '~'-'!' && in[at] != '=' && in[at] != ']' && in[at] != '"' {
		at++
	}
	if at == from || at-from > 32 {
		return -1
	}
	return at
}

// structured reads the elements.
func (s *step) structured(at int) (int, mistake) {
	in := s.in
	if at >= len(in) || in[at] != '[' {
		return at, mistake{"structured data such as [id name=\"value\"], or -, is expected", at}
	}
	s.ids = s.ids[:0]
	for at < len(in) && in[at] == '[' {
		id := at + 1
		end := sdName(in, id)
		if end < 0 {
			return at, mistake{"an element's id has 1 to 32 characters without = ] \" and blank", id}
		}
		for _, other := range s.ids {
			if bytes.Equal(s.b.Bytes(other), in[id:end]) {
				return at, mistake{"the element " + string(in[id:end]) + " comes twice", id}
			}
		}
		if len(s.ids) == maxElements {
			return at, mistake{"more than 1000 elements", id}
		}
		s.ids = append(s.ids, s.src.Sub(id, end))
		s.elements = true
		at = end
		params := 0
		for at < len(in) && in[at] == ' ' {
			name := at + 1
			if name < len(in) && in[name] == ']' { // a blank before the bracket is no parameter
				return at, mistake{"a parameter is expected", name}
			}
			end := sdName(in, name)
			if end < 0 {
				return at, mistake{"a parameter's name has 1 to 32 characters without = ] \" and blank", name}
			}
			if end+1 >= len(in) || in[end] != '=' || in[end+1] != '"' {
				return at, mistake{"a parameter is written name=\"value\"", end}
			}
			from := end + 2
			to, escaped := from, false
			for {
				for to < len(in) && in[to] != '"' && in[to] != '\\' && in[to] != ']' {
					to++
				}
				if to >= len(in) {
					return at, mistake{"a parameter's value is not closed", to}
				}
				if in[to] == '"' {
					break
				}
				if in[to] == ']' {
					return at, mistake{"a ] in a parameter's value is written \\]", to}
				}
				if to+1 < len(in) && (in[to+1] == '"' || in[to+1] == '\\' || in[to+1] == ']') {
					escaped = true
					to += 2
					continue
				}
				return at, mistake{"a backslash in a parameter's value is written \\\\", to}
			}
			if s.data {
				s.param(in[id:s.ids[len(s.ids)-1].Off()-s.src.Off()+s.ids[len(s.ids)-1].Len()], in[name:end], from, to, escaped)
			}
			if len(s.params) > maxParams {
				return at, mistake{"more than 10000 parameters", at}
			}
			params++
			at = to + 1
		}
		if params == 0 && s.data {
			s.params = append(s.params, param{s.names.Find(in[id:end]), record.MakeRef(record.Map, 0, 0)})
		}
		if at >= len(in) || in[at] != ']' {
			if params > 0 && len(s.params) > 0 { // most likely the value has a quote in it that isn't escaped
				s.params[len(s.params)-1].val = record.Value{}
			}
			return at, mistake{"a ] is expected behind an element", at}
		}
		at++
	}
	return at, mistake{}
}

func (s *step) param(id, name []byte, from, to int, escaped bool) {
	s.key = append(append(append(s.key[:0], id...), '.'), name...)
	n := s.names.Find(s.key)
	if !n.Live {
		return
	}
	v := s.src.Sub(from, to)
	if escaped {
		off := len(s.b.Buf)
		for i := from; i < to; i++ {
			if s.in[i] == '\\' {
				i++
			}
			s.b.Buf = append(s.b.Buf, s.in[i])
		}
		v = s.b.Since(off)
	}
	if n.Seen == s.rec { // a name that comes again: the last counts
		s.params[n.At].val = v
		return
	}
	n.Seen, n.At = s.rec, len(s.params)
	s.params = append(s.params, param{n, v})
}
