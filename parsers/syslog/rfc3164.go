package syslog

import (
	"bytes"
	"time"

	"github.com/rsetl/rsetl/record"
)

// rfc3164 reads what is behind the priority, if there is one.
func (s *step) rfc3164(at int) mistake {
	in := s.in
	if s.format == "rfc3164" {
		if at == 0 {
			return mistake{"a priority such as <34> is expected", 0}
		}
		if what := s.asWritten(in, at); what != "" {
			return mistake{what, at}
		}
	}
	for at < len(in) && in[at] == ' ' {
		at++
	}
	at = cisco(in, at)
	star := at
	if at < len(in) && (in[at] == '*' || in[at] == '.') { // Cisco: the clock isn't set, or has lost its server
		star++
	}
	t, end := s.stamp(in, star)
	if end < 0 {
		// No time: all of it is the message, with a program where that is plain to see.
		if at == 0 {
			return mistake{"a priority or a time is expected", at}
		}
		if len(in) == at {
			return mistake{"there is nothing behind the priority", at}
		}
		s.setMessage(s.tag(at))
		return mistake{}
	}
	if t.Kind() == record.Missing {
		return mistake{"there is no such day or time", at}
	}
	s.at = t
	at = end
	if at < len(in) && in[at] == ':' { // Cisco: no hostname
		for at++; at < len(in) && in[at] == ' '; at++ {
		}
		s.setMessage(s.tag(at))
		return mistake{}
	}
	if at >= len(in) || in[at] != ' ' {
		return mistake{"a blank is expected behind the time", at}
	}
	for at < len(in) && in[at] == ' ' {
		at++
	}
	from := at
	for at < len(in) && in[at] != ' ' {
		at++
	}
	if at == from {
		return mistake{"a hostname is expected behind the time", at}
	}
	if tagged(in[from:at]) { // no hostname
		s.setMessage(s.tag(from))
		return mistake{}
	}
	host := at
	if in[host-1] == ':' && host-1 > from { // some devices put a colon behind it
		host--
	}
	s.vals[fHostname] = s.src.Sub(from, host)
	for at < len(in) && in[at] == ' ' {
		at++
	}
	if at >= len(in) {
		return mistake{"a message is expected behind the hostname", at}
	}
	s.setMessage(s.tag(at))
	return mistake{}
}

// asWritten checks that a time has RFC 3164's form, `Oct  7 22:14:15`, or where it is accepted RFC 3339's without a fraction. It says
// what is wrong.
func (s *step) asWritten(in []byte, at int) string {
	if s.iso && at < len(in) && in[at]-'0' <= 9 {
		if _, end, _ := rfc3339(in, at, 0, true); end < 0 || end >= len(in) || in[end] != ' ' {
			return "a time such as Oct  7 22:14:15 or 2024-10-07T22:14:15Z is expected"
		}
		return ""
	}
	const want = "a time such as Oct  7 22:14:15 is expected"
	if at+15 > len(in) || monthOf(in[at:]) == 0 || in[at]-'A' > 25 || in[at+1]-'a' > 25 || in[at+2]-'a' > 25 || in[at+3] != ' ' || in[at+6] != ' ' || in[at+9] != ':' || in[at+12] != ':' {
		return want
	}
	day := two(in, at+4)
	if in[at+4] == ' ' {
		day = int(in[at+5] - '0')
	} else if in[at+4] == '0' {
		return want
	}
	if day < 1 || day > 31 || two(in, at+7) > 23 || two(in, at+10) > 59 || two(in, at+13) > 59 || at+15 < len(in) && in[at+15] != ' ' {
		return want
	}
	return ""
}

// tagged tells whether a word is a program, `su:` or `sshd[12]:`, rather than a host. An IPv6 address is no program.
func tagged(w []byte) bool {
	if len(w) < 2 || w[len(w)-1] != ':' {
		return false
	}
	w = w[:len(w)-1]
	if w[len(w)-1] == ']' {
		return bytes.IndexByte(w, '[') > 0
	}
	return false
}

// cisco skips a sequence number and a colon, and a hostname with a colon that some put there.
func cisco(in []byte, at int) int {
	i := at
	for i < len(in) && in[i]-'0' <= 9 {
		i++
	}
	if i > at && i-at <= 10 && i+1 < len(in) && in[i] == ':' && in[i+1] == ' ' {
		return i + 2
	}
	return at
}

// maxTag is the longest program's name.
const maxTag = 128

// tag reads `program[pid]: ` and gives where the message begins; it sets nothing where there is none.
func (s *step) tag(at int) int {
	in := s.in
	end := at
	for end < len(in) && end-at <= maxTag && in[end] > ' ' && in[end] != ':' && in[end] != '[' {
		end++
	}
	if end == at || end >= len(in) || end-at > maxTag {
		return at
	}
	next := end
	pid := [2]int{}
	if in[next] == '[' {
		n := bytes.IndexByte(in[next:], ']')
		if n < 0 || n > maxTag || bytes.IndexByte(in[next:next+n], ' ') >= 0 {
			return at
		}
		pid = [2]int{next + 1, next + n}
		next += n + 1
	}
	if next >= len(in) || in[next] != ':' {
		if pid[1] == 0 || next < len(in) && in[next] != ' ' {
			return at
		}
		next-- // `program[pid] text`
	}
	next++
	// `10:20:30 text` and `http://…` are no programs.
	if next < len(in) && in[next] != ' ' && pid[1] == 0 {
		return at
	}
	s.vals[fAppname] = s.src.Sub(at, end)
	if pid[1] > pid[0] {
		s.vals[fProcid] = s.src.Sub(pid[0], pid[1])
	}
	if next < len(in) && in[next] == ' ' {
		next++
	}
	return next
}

func (s *step) clock() {
	if s.nowYear == 0 {
		t := s.now()
		s.nowSec, s.nowYear = t.Unix(), t.UTC().Year()
	}
}

// stamp reads a time; end is -1 where there is none. The value is Missing where the numbers are out of range.
func (s *step) stamp(in []byte, at int) (v record.Value, end int) {
	if at >= len(in) {
		return v, -1
	}
	if in[at]-'0' <= 9 {
		t, end, zoned := rfc3339(in, at, 9, false)
		if end >= 0 && !zoned {
			t = record.MakeTime(s.local(t.Sec(), s.zone), t.Nsec(), t.Digits())
		}
		if end >= 0 {
			return t, end
		}
		// `2024 Oct 11 22:14:15`
		if y, e := digits(in, at, 4, 4); e >= 0 && e < len(in) && in[e] == ' ' {
			return s.named(in, e+1, y)
		}
		return v, -1
	}
	return s.named(in, at, 0)
}

// named reads `Oct 11 22:14:15`, with what may stand around it.
func (s *step) named(in []byte, at, year int) (v record.Value, end int) {
	if at+3 > len(in) {
		return v, -1
	}
	month := monthOf(in[at:])
	if month == 0 && at+4 < len(in) && in[at+3] == ' ' && dayName(in[at:]) { // `Fri Oct 11 …`
		at += 4
		if at+3 > len(in) {
			return v, -1
		}
		month = monthOf(in[at:])
	}
	if month == 0 {
		return v, -1
	}
	at += 3
	from := at
	for at < len(in) && in[at] == ' ' {
		at++
	}
	if at == from {
		return v, -1
	}
	day, e := digits(in, at, 1, 2)
	if e < 0 || e >= len(in) || in[e] != ' ' && in[e] != ',' {
		return v, -1
	}
	at = e + 1
	if at < len(in) && in[at-1] == ',' && in[at] == ' ' {
		at++
	}
	if y, e := digits(in, at, 4, 4); e >= 0 && e < len(in) && in[e] == ' ' { // `Oct 11 2024 22:14:15`
		year, at = y, e+1
	}
	h, e := digits(in, at, 1, 2)
	if e < 0 || e >= len(in) || in[e] != ':' {
		return v, -1
	}
	mi, e := digits(in, e+1, 2, 2)
	if e < 0 || e >= len(in) || in[e] != ':' {
		return v, -1
	}
	sec, e := digits(in, e+1, 2, 2)
	if e < 0 {
		return v, -1
	}
	at = e
	nsec, nd := uint32(0), 0
	if at+1 < len(in) && (in[at] == '.' || in[at] == ',') && in[at+1]-'0' <= 9 {
		nsec, nd, at = fraction(in, at+1, 9)
	}
	// A zone, and a year behind the time: `22:14:15 UTC:`, `22:14:15 2024`, `05:34:00 CST 1987`.
	zone, shift, zoned := s.zone, int64(0), false
	for range 2 {
		if at >= len(in) || in[at] != ' ' {
			break
		}
		if y, e := digits(in, at+1, 4, 4); e >= 0 && year == 0 && y > 1900 && y < 2200 && (e == len(in) || in[e] == ' ' || in[e] == ':') {
			year, at = y, e
			continue
		}
		if sh, e := zoneOf(in, at+1); e >= 0 && !zoned {
			zoned, zone, shift, at = true, time.UTC, sh, e
			continue
		}
		break
	}
	if at < len(in) && (in[at] == '+' || in[at] == '-') && !zoned {
		if sh, e := offset(in, at); e >= 0 {
			zone, shift, at = time.UTC, sh, e
		}
	}
	if h > 23 || mi > 59 || sec > 60 {
		return record.Value{}, at
	}
	secs := int64(h*3600 + mi*60 + sec)
	if year > 0 {
		if day < 1 || day > daysIn(year, month) {
			return record.Value{}, at
		}
		return record.MakeTime(s.local(days(year, month, day)*86400+secs, zone)-shift, nsec, nd), at
	}
	s.clock()
	for y := s.nowYear + 1; y > s.nowYear-9; y-- {
		if day < 1 || day > daysIn(y, month) {
			continue
		}
		if t := s.local(days(y, month, day)*86400+secs, zone) - shift; t <= s.nowSec+86400 {
			return record.MakeTime(t, nsec, nd), at
		}
	}
	return record.Value{}, at
}

// local turns seconds since 1970 by a zone's clock into an instant.
func (s *step) local(sec int64, zone *time.Location) int64 {
	if zone == time.UTC {
		return sec
	}
	t := time.Unix(sec, 0).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, zone).Unix()
}

// abbreviations are zones that have one meaning in logs, in hours.
var abbreviations = map[string]int64{"UTC": 0, "GMT": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
	"PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "WET": 0, "WEST": 1, "BST": 1, "MSK": 3, "JST": 9}

// zoneOf reads an abbreviation that a blank or colon follows.
func zoneOf(in []byte, at int) (shift int64, end int) {
	end = at
	for end < len(in) && end-at < 5 && in[end]-'A' < 26 {
		end++
	}
	if end-at < 3 || end < len(in) && in[end] != ' ' && in[end] != ':' {
		return 0, -1
	}
	h, ok := abbreviations[string(in[at:end])]
	if !ok {
		return 0, -1
	}
	return h * 3600, end
}
