package syslog

import (
	"strconv"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

type maker struct {
	field         int
	message, time int // slots; -1: nothing reads it
	slots         [nFields]int
	data          bool
	format        string
	iso           bool // rfc3164 takes RFC 3339's times
	effort        bool
	keepBOM       bool
	labels        bool
	now           func() time.Time
	zone          *time.Location
	severity      [8]record.Value
	facility      [24]record.Value
}

type param struct {
	name *steps.Name
	val  record.Value
}

type step struct {
	*maker
	names *steps.Names
	below *steps.Below
	each  func(int) record.Outcome
	b     *record.Batch

	// What the message at hand has; a Missing value: it doesn't.
	in       []byte
	src      record.Value
	vals     [nFields]record.Value
	msg      record.Value
	at       record.Value
	params   []param
	elements bool
	ids      []record.Value
	key      []byte
	rec      uint64

	nowSec  int64 // taken once a batch; 0: not yet
	nowYear int
}

func (s *step) Apply(b *record.Batch) {
	s.b, s.nowSec, s.nowYear = b, 0, 0
	s.names.Batch(b)
	b.Each(s.each)
	s.b = nil
}

// mistake says what a message breaks, and where.
type mistake struct {
	what string
	at   int
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	s.src = b.Get(i, s.field)
	switch s.src.Kind() {
	case record.String, record.Bytes:
		s.src = s.src.As(record.String)
	case record.Missing, record.Null:
		b.Fail(i, "syslog: the field is missing")
		return record.Failed
	default:
		b.Fail(i, "syslog: the field is no text but "+s.src.Kind().String())
		return record.Failed
	}
	s.in = b.Bytes(s.src)
	s.vals = [nFields]record.Value{}
	s.msg, s.at, s.params, s.elements = record.Value{}, record.Value{}, s.params[:0], false
	s.rec++
	s.names.Begin()
	m := s.parse()
	if m.what != "" && !s.effort {
		b.Fail(i, "syslog: "+m.what+", at byte "+strconv.Itoa(m.at+1))
		return record.Failed
	}
	row := b.Row(i)
	for k, v := range s.vals {
		if slot := s.slots[k]; slot >= 0 {
			row[slot] = v
		}
	}
	if s.time >= 0 && s.at.Kind() != record.Missing {
		row[s.time] = s.at
	}
	switch {
	case s.message < 0:
	case m.what != "":
		row[s.message] = s.src
	default:
		row[s.message] = s.msg
	}
	if s.data && s.elements {
		s.below.Clear(b, i)
		s.names.Open(i)
		for _, p := range s.params {
			if p.val.Kind() == record.Missing {
				continue
			}
			s.names.Put(i, p.name, p.val)
		}
	}
	return record.Keep
}

func (s *step) parse() (m mistake) {
	in := s.in
	at := 0
	switch {
	case len(in) > 0 && in[0] == '<':
		pri, end, m := priority(in, s.format == "rfc5424")
		if m.what != "" {
			return m
		}
		at = end
		s.vals[fPriority] = record.MakeInt(int64(pri))
		s.vals[fFacility] = record.MakeInt(int64(pri >> 3))
		s.vals[fSeverity] = record.MakeInt(int64(pri & 7))
		if s.labels {
			s.vals[fFacilityLabel], s.vals[fSeverityLabel] = s.facility[pri>>3], s.severity[pri&7]
		}
	case s.format == "rfc5424":
		return mistake{"a priority such as <34> is expected", 0}
	}
	if s.format == "rfc5424" || s.format == "auto" && at > 0 && hasVersion(in, at) {
		return s.rfc5424(at)
	}
	return s.rfc3164(at)
}

// priority reads <N>.
func priority(in []byte, strict bool) (pri, end int, m mistake) {
	at := 1
	for at < len(in) && at < 5 && in[at]-'0' <= 9 {
		pri = pri*10 + int(in[at]-'0')
		at++
	}
	switch {
	case at == 1 || pri > 191:
		return 0, 0, mistake{"a priority from 0 to 191 is expected", min(at, len(in))}
	case at > 2 && in[1] == '0':
		return 0, 0, mistake{"a priority begins with 0", 1}
	case at >= len(in) || in[at] != '>':
		return 0, 0, mistake{"a > is expected behind the priority", at}
	}
	return pri, at + 1, m
}

// hasVersion tells whether a version and a blank are at in[at], and behind them what RFC 5424 has there.
func hasVersion(in []byte, at int) bool {
	i := at
	for i < len(in) && i < at+3 && in[i]-'0' <= 9 {
		i++
	}
	if i == at || in[at] == '0' || i+1 >= len(in) || in[i] != ' ' {
		return false
	}
	c := in[i+1]
	return c == '-' || c-'0' <= 9 && i+5 < len(in) && in[i+5] == '-'
}

// setMessage takes the rest of the text as the message.
func (s *step) setMessage(at int) {
	if at < len(s.in) {
		s.msg = s.src.Sub(at, len(s.in))
	}
}
