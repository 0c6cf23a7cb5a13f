package date

import (
	"fmt"
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// parser reads one text. ok is false where it does not fit.
type parser func(p []byte, c *clock) (v record.Value, ok bool)

// clock is what formats without year or zone depend on.
type clock struct {
	now  func() time.Time
	zone *time.Location
}

// compile makes the parser of one format: ISO8601, UNIX, UNIX_MS, UNIX_US, UNIX_NS, or a pattern of Joda's letters.
func compile(format string) (parser, error) {
	switch format {
	case "ISO8601":
		return iso8601, nil
	case "UNIX":
		return unixTime(0), nil
	case "UNIX_MS":
		return unixTime(3), nil
	case "UNIX_US":
		return unixTime(6), nil
	case "UNIX_NS":
		return unixTime(9), nil
	}
	ops, err := parseFormat(format)
	if err != nil {
		return nil, err
	}
	return func(p []byte, c *clock) (record.Value, bool) {
		t := stamp{month: 1, day: 1, zoneAt: noZone}
		at := 0
		for i := range ops {
			if at = ops[i].read(p, at, &t); at < 0 {
				return record.Value{}, false
			}
		}
		if at != len(p) {
			return record.Value{}, false
		}
		return t.value(c)
	}, nil
}

// op is one part of a pattern: a literal, or a letter repeated n times.
type op struct {
	lit  string
	kind byte
	n    int
	max  int // the most digits a number may have
}

// letters are Joda's: y year, M month, d day, H 0-23, h 1-12, k 1-24, K 0-11, m minute, s second, S fraction, a AM/PM,
// E day's name, Z offset, z zone's name, D day of the year, e day of the week, w and x (week, weekyear) are not read.
const letters = "yYuMdHhkKmsSaEZzDXx"

func parseFormat(f string) ([]op, error) {
	var ops []op
	lit := func(s string) {
		if n := len(ops); n > 0 && ops[n-1].kind == 0 {
			ops[n-1].lit += s
			return
		}
		ops = append(ops, op{lit: s})
	}
	for i := 0; i < len(f); {
		c := f[i]
		switch {
		case c == '\'':
			end := strings.IndexByte(f[i+1:], '\'')
			switch {
			case end < 0:
				return nil, fmt.Errorf("the format %q has a ' without its end", f)
			case end == 0:
				lit("'")
			default:
				lit(f[i+1 : i+1+end])
			}
			i += end + 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for i+n < len(f) && f[i+n] == c {
				n++
			}
			if strings.IndexByte(letters, c) < 0 {
				return nil, fmt.Errorf("the format %q has the letter %c, which means nothing; texts are written in single quotes", f, c)
			}
			if c == 'Y' || c == 'u' {
				c = 'y'
			}
			ops = append(ops, op{kind: c, n: n})
			i += n
		default:
			lit(string(c))
			i++
		}
	}
	if len(ops) == 0 {
		return nil, fmt.Errorf("a format is empty")
	}
	for i := range ops {
		o := &ops[i]
		switch o.kind {
		case 'y':
			o.max = 9
		case 'S':
			o.max = 9
		case 'D':
			o.max = 3
		default:
			o.max = 2
		}
		// Numbers without anything between them have as many digits as letters.
		if i+1 < len(ops) && ops[i+1].kind != 0 && strings.IndexByte("yMdHhkKmsSD", ops[i+1].kind) >= 0 && ops[i+1].n < 3 || i+1 < len(ops) && ops[i+1].kind == 'S' {
			o.max = o.n
		}
		if o.kind == 'y' && o.n == 2 {
			o.max = min(o.max, 4)
		}
	}
	return ops, nil
}

const noZone = 1 << 30

// stamp is what has been read.
type stamp struct {
	year, month, day int
	hour, min, sec   int
	nsec             uint32
	digits           int
	hasYear, hasDate bool
	hasMonth         bool
	pm, half         bool // half: the hour is of 12
	zoneAt           int  // offset in seconds; noZone
	zone             *time.Location
	yday             int
}

// read takes the op's part of p at that place and gives where the next begins, -1 where it does not fit.
func (o *op) read(p []byte, at int, t *stamp) int {
	switch o.kind {
	case 0:
		// One blank in a format stands for any number of them: `MMM  d` and `MMM d` read both.
		for i := 0; i < len(o.lit); i++ {
			if o.lit[i] == ' ' {
				if at >= len(p) || p[at] != ' ' {
					return -1
				}
				for at < len(p) && p[at] == ' ' {
					at++
				}
				for i+1 < len(o.lit) && o.lit[i+1] == ' ' {
					i++
				}
				continue
			}
			if at >= len(p) || p[at] != o.lit[i] {
				return -1
			}
			at++
		}
		return at
	case 'M':
		t.hasMonth, t.hasDate = true, true
		if o.n >= 3 {
			m, n := name(p[at:], monthNames[:])
			if n == 0 {
				return -1
			}
			t.month = m + 1
			return at + n
		}
	case 'E':
		_, n := name(p[at:], dayNames[:])
		if n == 0 {
			return -1
		}
		return at + n
	case 'a':
		if at+2 > len(p) || p[at+1]|0x20 != 'm' {
			return -1
		}
		switch p[at] | 0x20 {
		case 'a':
		case 'p':
			t.pm = true
		default:
			return -1
		}
		return at + 2
	case 'Z', 'X', 'x':
		return readOffset(p, at, t)
	case 'z':
		return readZone(p, at, t)
	case 'S':
		n := at
		for n < len(p) && n-at < max(o.n, 9) && p[n]-'0' <= 9 {
			if n-at < 9 {
				t.nsec = t.nsec*10 + uint32(p[n]-'0')
			}
			n++
		}
		if n == at {
			return -1
		}
		t.digits = min(n-at, 9)
		for i := n - at; i < 9; i++ {
			t.nsec *= 10
		}
		return n
	}
	v, n := 0, at
	if (o.kind == 'd' || o.kind == 'H') && n < len(p) && p[n] == ' ' && o.n < 2 {
		n++ // `Feb  4`: a day that is filled with a blank
	}
	from := n
	for n < len(p) && n-from < o.max && p[n]-'0' <= 9 {
		v = v*10 + int(p[n]-'0')
		n++
	}
	if n == from {
		return -1
	}
	switch o.kind {
	case 'y':
		if o.n == 2 && n-from == 2 {
			if v += 1900; v < 1970 {
				v += 100
			}
		}
		t.year, t.hasYear, t.hasDate = v, true, true
	case 'M':
		t.month = v
	case 'd':
		t.day, t.hasDate = v, true
	case 'D':
		t.yday, t.hasDate = v, true
	case 'H':
		t.hour = v
	case 'k':
		t.hour = v % 24
		if v < 1 || v > 24 {
			return -1
		}
	case 'h', 'K':
		if v > 12 || o.kind == 'h' && v < 1 {
			return -1
		}
		t.hour, t.half = v%12, true
	case 'm':
		t.min = v
	case 's':
		t.sec = v
	}
	return n
}

var monthNames = [12]string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
var dayNames = [7]string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// name reads a name, whole or its first three letters, in any case. n is its length, 0 where there is none.
func name(p []byte, names []string) (index, n int) {
	l := 0
	for l < len(p) && l < 10 && (p[l]|0x20 >= 'a' && p[l]|0x20 <= 'z') {
		l++
	}
	if l < 3 {
		return 0, 0
	}
next:
	for i, full := range names {
		if l != 3 && l != len(full) && !(l == 4 && full == "september") {
			continue
		}
		for k := range l {
			if p[k]|0x20 != full[k] {
				continue next
			}
		}
		return i, l
	}
	return 0, 0
}

// readOffset reads Z, +hh, +hhmm or +hh:mm.
func readOffset(p []byte, at int, t *stamp) int {
	if at >= len(p) {
		return -1
	}
	if p[at] == 'Z' || p[at] == 'z' {
		t.zoneAt = 0
		return at + 1
	}
	neg := p[at] == '-'
	if !neg && p[at] != '+' {
		return -1
	}
	two := func(i int) int {
		if i+2 > len(p) || p[i]-'0' > 9 || p[i+1]-'0' > 9 {
			return -1
		}
		return int(p[i]-'0')*10 + int(p[i+1]-'0')
	}
	h := two(at + 1)
	if h < 0 || h > 18 {
		return -1
	}
	end := at + 3
	m := 0
	if end < len(p) && p[end] == ':' && two(end+1) >= 0 {
		m, end = two(end+1), end+3
	} else if v := two(end); v >= 0 {
		m, end = v, end+2
	}
	if m > 59 {
		return -1
	}
	t.zoneAt = h*3600 + m*60
	if neg {
		t.zoneAt = -t.zoneAt
	}
	return end
}

// abbreviations are the zones' short names that have one meaning in logs.
var abbreviations = map[string]int{"UTC": 0, "GMT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
	"PST": -8, "PDT": -7, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "WET": 0, "WEST": 1, "BST": 1, "MSK": 3, "JST": 9}

// readZone reads an abbreviation or an IANA name.
func readZone(p []byte, at int, t *stamp) int {
	n := at
	for n < len(p) && n-at < 40 && (p[n]|0x20 >= 'a' && p[n]|0x20 <= 'z' || n > at && (p[n] == '/' || p[n] == '_' || p[n] == '-' && n+1 < len(p) && p[n+1]-'0' > 9)) {
		n++
	}
	if n == at {
		return readOffset(p, at, t)
	}
	if h, ok := abbreviations[string(p[at:n])]; ok {
		t.zoneAt = h * 3600
		return n
	}
	loc, ok := zones.get(string(p[at:n]))
	if !ok {
		return -1
	}
	t.zone = loc
	return n
}

// value makes the instant. Without a year, it is the one that brings the time nearest to now, as a line is
// rarely of the future; without a date it is no instant.
func (t *stamp) value(c *clock) (record.Value, bool) {
	if !t.hasDate {
		return record.Value{}, false
	}
	if t.half && t.pm {
		t.hour += 12
	}
	zone := t.zone
	if zone == nil {
		zone = c.zone
	}
	if t.zoneAt != noZone {
		zone = time.UTC
	}
	if !t.hasYear {
		t.year = t.guessYear(c, zone)
	}
	if t.yday > 0 {
		d := time.Date(t.year, 1, t.yday, 0, 0, 0, 0, time.UTC)
		if d.Year() != t.year {
			return record.Value{}, false
		}
		t.month, t.day = int(d.Month()), d.Day()
	}
	if t.month < 1 || t.month > 12 || t.day < 1 || t.day > daysIn(t.year, t.month) || t.hour > 24 || t.hour == 24 && t.min+t.sec > 0 || t.min > 59 || t.sec > 60 {
		return record.Value{}, false
	}
	var sec int64
	if zone == time.UTC {
		sec = days(t.year, t.month, t.day)*86400 + int64(t.hour*3600+t.min*60+t.sec)
	} else {
		sec = time.Date(t.year, time.Month(t.month), t.day, t.hour, t.min, t.sec, 0, zone).Unix()
	}
	if t.zoneAt != noZone {
		sec -= int64(t.zoneAt)
	}
	return record.MakeTime(sec, t.nsec, t.digits), true
}

// guessYear gives the year that puts the time at most half a year from now.
func (t *stamp) guessYear(c *clock, zone *time.Location) int {
	now := c.now().In(zone)
	if t.zoneAt != noZone {
		now = c.now().In(time.FixedZone("", t.zoneAt))
	}
	switch month := int(now.Month()); {
	case month == 1 && t.month == 12:
		return now.Year() - 1
	case month == 12 && t.month == 1:
		return now.Year() + 1
	case t.month > month+1 || t.month == month+1 && month > 1 && t.day > now.Day():
		return now.Year() - 1
	}
	return now.Year()
}

func daysIn(y, m int) int {
	switch m {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// days counts from 1970-01-01 in the proleptic Gregorian calendar.
func days(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}
