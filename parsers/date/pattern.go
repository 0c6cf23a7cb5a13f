package date

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// parser reads one text. ok is false where it does not fit.
type parser func(p []byte, c *clock) (v record.Value, ok bool)

// clock is what formats without year or zone depend on. It is one worker's.
type clock struct {
	now   func() time.Time
	zone  *time.Location
	today bool // a format without a date means today
	// lenient takes leap seconds, 24:00:00 and times that clocks leave out; calendar is how a year is found that is not there.
	lenient, calendar bool

	// Now, taken once a batch: seconds since 1970, and the year in UTC. 0: not taken yet.
	sec  int64
	year int
	// The zone's offset from from to to, in seconds of local time.
	from, to int64
	offset   int64
}

func (c *clock) take() {
	if c.year == 0 {
		t := c.now()
		c.sec, c.year = t.Unix(), t.UTC().Year()
	}
}

// utc turns local seconds since 1970 into an instant. A time that comes twice, as clocks go back, is the earlier one;
// one that is left out is none or, where lenient, taken with the offset of before, so that it lies an hour later.
func (c *clock) utc(local int64, zone *time.Location) (sec int64, ok bool) {
	if zone == time.UTC {
		return local, true
	}
	if zone == c.zone && local >= c.from && local < c.to {
		return local - c.offset, true
	}
	_, before := time.Unix(local-86400, 0).In(zone).Zone()
	sec = local - int64(before)
	at := time.Unix(sec, 0).In(zone)
	if _, off := at.Zone(); off != before {
		// The clock has changed in between. The first of the two times would have had the offset before.
		if later := time.Unix(local-int64(off), 0).In(zone); offset(later) == off {
			return local - int64(off), true
		}
		return sec, c.lenient
	}
	if zone == c.zone {
		start, end := at.ZoneBounds()
		const day = 86400 // stays away from the changes
		c.offset, c.from, c.to = int64(before), -1<<62, 1<<62
		if !start.IsZero() {
			c.from = start.Unix() + int64(before) + day
		}
		if !end.IsZero() {
			c.to = end.Unix() + int64(before) - day
		}
	}
	return sec, true
}

func offset(t time.Time) int { _, off := t.Zone(); return off }

// compile makes the parser of one format: ISO8601, UNIX, UNIX_MS, UNIX_US, UNIX_NS, TAI64N, one of strftime's or a pattern of
// Joda's letters. Names are the locale's; nil: English.
func compile(format string, names *locale, lenient bool) (parser, error) {
	switch format {
	case "ISO8601":
		return iso8601, nil
	case "UNIX":
		return unixTime(0, lenient), nil
	case "UNIX_MS":
		return unixTime(3, lenient), nil
	case "UNIX_US":
		return unixTime(6, lenient), nil
	case "UNIX_NS":
		return unixTime(9, lenient), nil
	case "TAI64N":
		return tai64n, nil
	}
	parse := parseFormat
	if isStrftime(format) {
		parse = parseStrftime
	}
	ops, err := parse(format)
	if err != nil {
		return nil, err
	}
	for i := range ops {
		o := &ops[i]
		o.names, o.loose = names, lenient
		if o.kind == 'S' && lenient && (i+1 == len(ops) || !numeric(ops[i+1])) {
			o.max = max(o.max, 9)
		}
	}
	quick := fixedOf(ops)
	// What Logstash takes for a pattern with a year is one with the letter y; strftime's are our own.
	calendarYear := !isStrftime(format) && !slices.ContainsFunc(ops, func(o op) bool { return o.kind == 'y' })
	return func(p []byte, c *clock) (record.Value, bool) {
		if quick != nil {
			if v, ok := quick.read(p, c); ok {
				return v, true
			}
		}
		t := stamp{month: 1, day: 1, zoneAt: noZone, noYear: calendarYear}
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
	min  int // the digits that a number must have, where it stands next to another
	max  int // the most digits it may have

	names *locale // nil: English
	loose bool    // reads more than the pattern says
}

// letters are Joda's: y year, M month, d day, H 0-23, h 1-12, k 1-24, K 0-11, m minute, s second, S fraction, a AM/PM,
// E day's name, Z and X offset, z zone's name, D day of the year, x weekyear, w its week, e day of the week 1-7, G era.
const letters = "yYuMdHhkKmsSaEZzDXxweG"

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
			// Two quotes are one, within quotes and outside.
			text := ""
			i++
			for {
				end := strings.IndexByte(f[i:], '\'')
				if end < 0 {
					return nil, fmt.Errorf("the format %q has a ' without its end", f)
				}
				text += f[i : i+end]
				if i += end + 1; i >= len(f) || f[i] != '\'' || end == 0 && text == "" {
					break
				}
				text += "'"
				i++
			}
			if text == "" {
				text = "'"
			}
			lit(text)
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
			lit(f[i : i+1])
			i++
		}
	}
	if len(ops) == 0 {
		return nil, fmt.Errorf("a format is empty")
	}
	if len(ops) == 1 && ops[0].kind == 0 { // literals next to each other are one
		return nil, fmt.Errorf("the format %q has no letter for a date or a time, such as yyyy or HH", f)
	}
	for i := range ops {
		o := &ops[i]
		switch o.kind {
		case 'y', 'x':
			o.max = 9
		case 'e':
			o.max = 1
		case 'S':
			o.max = o.n
		case 'D':
			o.max = 3
		default:
			o.max = 2
		}
		// Numbers without anything between them have as many digits as letters.
		if i+1 < len(ops) && ops[i+1].kind != 0 && strings.IndexByte("yMdHhkKmsSDxwe", ops[i+1].kind) >= 0 && ops[i+1].n < 3 || i+1 < len(ops) && ops[i+1].kind == 'S' {
			o.max = o.n
		}
		if i > 0 && numeric(ops[i-1]) && numeric(*o) && o.kind != 'S' {
			o.min = o.n
		}
		if (o.kind == 'y' || o.kind == 'x') && o.n == 2 {
			o.max = min(o.max, 4)
		}
	}
	return ops, nil
}

func numeric(o op) bool {
	return o.kind != 0 && strings.IndexByte("yMdHhkKmsSDxwe", o.kind) >= 0 && !(o.kind == 'M' && o.n >= 3)
}

const noZone = 1 << 30

// stamp is what has been read.
type stamp struct {
	year, month, day int
	hour, min, sec   int
	nsec             uint32
	digits           int
	hasYear, hasDate bool
	short            bool // the year has two digits
	pm, half         bool // half: the hour is of 12
	zoneAt           int  // offset in seconds; noZone
	zone             *time.Location
	told             bool // the abbreviation has the offset told too, which counts where a time comes twice
	toldAt           int
	noYear           bool // the pattern has no y
	yday             int
	week, wday       int // of the weekyear, in year; 0: none was given
	bc               bool
	epoch            int64 // seconds since 1970, where unix
	unix             bool
}

// read takes the op's part of p at that place and gives where the next begins, -1 where it does not fit.
func (o *op) read(p []byte, at int, t *stamp) int {
	switch o.kind {
	case 0:
		if !o.loose {
			if len(p)-at < len(o.lit) || string(p[at:at+len(o.lit)]) != o.lit {
				return -1
			}
			return at + len(o.lit)
		}
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
		t.hasDate = true
		if o.n >= 3 {
			m, n := o.name(p[at:], true)
			if n == 0 {
				return -1
			}
			t.month = m + 1
			return at + n
		}
	case 'E':
		d, n := o.name(p[at:], false)
		if n == 0 {
			return -1
		}
		t.wday = d + 1
		return at + n
	case 'G':
		for _, e := range eras {
			if len(p)-at >= len(e) && string(p[at:at+len(e)]) == e {
				t.bc = e[0] == 'B'
				return at + len(e)
			}
		}
		return -1
	case 'U':
		n := at
		if n < len(p) && p[n] == '-' {
			n++
		}
		from := n
		for n < len(p) && n-from < 11 && p[n]-'0' <= 9 {
			t.epoch = t.epoch*10 + int64(p[n]-'0')
			n++
		}
		if n == from {
			return -1
		}
		if from > at {
			t.epoch = -t.epoch
		}
		t.unix, t.hasDate, t.hasYear = true, true, true
		return n
	case 'a':
		if o.names != nil && o.names.halves != nil {
			for k, h := range o.names.halves {
				if len(p)-at >= len(h) && string(p[at:at+len(h)]) == h {
					t.pm = k == 1
					return at + len(h)
				}
			}
		}
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
	case 'Z', 'X':
		if o.n >= 3 && o.kind == 'Z' {
			return readZone(p, at, t)
		}
		return readOffset(p, at, t)
	case 'z':
		return readAmerican(p, at, t)
	case 'S':
		n := at
		for n < len(p) && n-at < o.max && p[n]-'0' <= 9 {
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
	if n == from || n-from < o.min {
		return -1
	}
	switch o.kind {
	case 'y':
		t.short = o.n == 2 && n-from == 2
		t.year, t.hasYear, t.hasDate = v, true, true
	case 'x':
		t.short = o.n == 2 && n-from == 2
		t.year, t.hasYear, t.hasDate = v, true, true
	case 'w':
		t.week, t.hasDate = v, true
		if v < 1 || v > 53 {
			return -1
		}
	case 'e':
		t.wday = v
		if v < 1 || v > 7 {
			return -1
		}
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

var eras = [...]string{"AD", "BCE", "BC", "CE", "ad", "bce", "bc", "ce"}

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

// american are the abbreviations that stand for a zone with its summer time, and the offset that each tells.
var american = map[string]struct {
	zone  string
	hours int
}{"EST": {"America/New_York", -5}, "EDT": {"America/New_York", -4}, "CST": {"America/Chicago", -6}, "CDT": {"America/Chicago", -5},
	"MST": {"America/Denver", -7}, "MDT": {"America/Denver", -6}, "PST": {"America/Los_Angeles", -8}, "PDT": {"America/Los_Angeles", -7}}

// readAmerican is readZone, but for the American zones' abbreviations: `EST` in July is New York's summer time, since people
// leave it there all the year.
func readAmerican(p []byte, at int, t *stamp) int {
	if len(p)-at >= 3 && (len(p)-at == 3 || !(p[at+3]|0x20 >= 'a' && p[at+3]|0x20 <= 'z' || p[at+3] == '/' || p[at+3]-'0' <= 9)) {
		if a, ok := american[string(p[at:at+3])]; ok {
			if loc, ok := zones.get([]byte(a.zone)); ok {
				t.zone, t.told, t.toldAt = loc, true, a.hours*3600
				return at + 3
			}
		}
	}
	return readZone(p, at, t)
}

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
	loc, ok := zones.get(p[at:n])
	if !ok {
		return -1
	}
	t.zone = loc
	return n
}

// value makes the instant. Without a year it is the latest that brings the time no more than a day ahead of now, since a
// line is of the past, but for clocks that differ; without a date it is no instant, unless today is meant.
func (t *stamp) value(c *clock) (record.Value, bool) {
	if t.half && t.pm {
		t.hour += 12
	}
	if t.unix {
		return record.MakeTime(t.epoch, t.nsec, t.digits), true
	}
	if t.bc {
		t.year = 1 - t.year
	}
	if t.hour > 24 || t.hour == 24 && (t.min+t.sec > 0 || !c.lenient) || t.min > 59 || t.sec > 60 || t.sec == 60 && !c.lenient {
		return record.Value{}, false
	}
	zone := t.zone
	if zone == nil {
		zone = c.zone
	}
	shift := int64(0)
	if t.zoneAt != noZone {
		zone, shift = time.UTC, int64(t.zoneAt)
	}
	if t.short { // from eighty years before now to nineteen after
		c.take()
		for t.year += 1900; t.year < c.year-80; t.year += 100 {
		}
	}
	switch {
	case c.calendar && t.noYear && (!c.today || t.hasDate):
		if !t.calendar(c, zone, shift) {
			return record.Value{}, false
		}
	case !t.hasDate:
		if !c.today {
			return record.Value{}, false
		}
		c.take()
		y, m, d := time.Unix(c.sec+shift, 0).In(zone).Date()
		t.year, t.month, t.day = y, int(m), d
	case !t.hasYear:
		c.take()
		for y := c.year + 1; y > c.year-9; y-- { // within eight years there is a 29 February
			t.year = y
			if sec, ok := t.seconds(c, zone); ok && sec-shift <= c.sec+86400 {
				return record.MakeTime(sec-shift, t.nsec, t.digits), true
			}
		}
		return record.Value{}, false
	}
	sec, ok := t.seconds(c, zone)
	if !ok {
		return record.Value{}, false
	}
	return record.MakeTime(sec-shift, t.nsec, t.digits), true
}

// calendar gives the time the year that Logstash gives one without: now's, or the one before or after at the turn of the year.
func (t *stamp) calendar(c *clock, zone *time.Location, shift int64) bool {
	c.take()
	if t.week > 0 { // a week's day has a month and a day of its own
		sec, ok := t.weekSeconds(c, time.UTC)
		if !ok {
			return false
		}
		_, m, d := time.Unix(sec, 0).UTC().Date()
		t.month, t.day, t.week = int(m), d, 0
	}
	y, m, _ := time.Unix(c.sec+shift, 0).In(zone).Date()
	month := time.Month(t.month)
	if t.yday > 0 {
		month = time.Date(2000, 1, t.yday, 0, 0, 0, 0, time.UTC).Month()
	}
	switch t.year = y; {
	case month == time.December && m == time.January:
		t.year--
	case month == time.January && m == time.December:
		t.year++
	}
	return true
}

// local turns local seconds into an instant.
func (t *stamp) local(c *clock, sec int64, zone *time.Location) (int64, bool) {
	if t.told && offset(time.Unix(sec-int64(t.toldAt), 0).In(zone)) == t.toldAt {
		return sec - int64(t.toldAt), true
	}
	return c.utc(sec, zone)
}

// seconds are those since 1970; false where there is no such date.
func (t *stamp) seconds(c *clock, zone *time.Location) (int64, bool) {
	month, day := t.month, t.day
	if t.week > 0 {
		return t.weekSeconds(c, zone)
	}
	if t.yday > 0 {
		d := time.Date(t.year, 1, t.yday, 0, 0, 0, 0, time.UTC)
		if d.Year() != t.year {
			return 0, false
		}
		month, day = int(d.Month()), d.Day()
	}
	if month < 1 || month > 12 || day < 1 || day > daysIn(t.year, month) || t.year > 9999 {
		return 0, false
	}
	return t.local(c, days(t.year, month, day)*86400+int64(t.hour*3600+t.min*60+t.sec), zone)
}

// weekSeconds is seconds for a week of the weekyear: week 1 has its first Thursday, weeks begin with Monday.
func (t *stamp) weekSeconds(c *clock, zone *time.Location) (int64, bool) {
	if t.year < 0 || t.year > 9999 {
		return 0, false
	}
	fourth := days(t.year, 1, 4) // is always in week 1
	since := (fourth + 3) % 7    // 1970-01-01 was a Thursday
	if since < 0 {
		since += 7
	}
	monday := fourth - since
	day := monday + int64(t.week-1)*7 + int64(max(t.wday, 1)-1)
	if t.week == 53 && monday+52*7 >= days(t.year+1, 1, 1)-3 { // the year has 52
		return 0, false
	}
	return t.local(c, day*86400+int64(t.hour*3600+t.min*60+t.sec), zone)
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
