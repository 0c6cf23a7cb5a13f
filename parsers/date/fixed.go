package date

import (
	"sync"
	"time"

	"github.com/rsetl/rsetl/record"
)

// zoneCache keeps what time.LoadLocation found, and what it didn't; bounded, since names come with the data.
type zoneCache struct {
	mu sync.Mutex
	m  map[string]*time.Location
}

var zones = zoneCache{m: map[string]*time.Location{}}

func (z *zoneCache) get(name []byte) (*time.Location, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	loc, ok := z.m[string(name)]
	if !ok {
		loc, _ = time.LoadLocation(string(name))
		if len(z.m) < 1000 {
			z.m[string(name)] = loc
		}
	}
	return loc, loc != nil
}

// iso8601 reads ISO 8601's times, see isoTime.
func iso8601(p []byte, c *clock) (record.Value, bool) {
	// The usual: seconds, with a fraction or without.
	if len(p) >= 19 && p[4] == '-' && p[7] == '-' && (p[10] == 'T' || p[10] == ' ') && p[13] == ':' && p[16] == ':' {
		at, nsec, digits := 19, uint32(0), 0
		if len(p) > 20 && (p[19] == '.' || p[19] == ',') {
			for at = 20; at < len(p) && at < 29 && p[at]-'0' <= 9; at++ {
				nsec = nsec*10 + uint32(p[at]-'0')
			}
			digits = at - 20
			nsec *= uint32(tens[9-digits])
		}
		if at == 19 || digits > 0 {
			if v, ok := instant(two(p, 0), two(p, 2), two(p, 5), two(p, 8), two(p, 11), two(p, 14), two(p, 17), nsec, digits, p[at:], at < len(p), c); ok {
				return v, true
			}
		}
	}
	return isoTime(p, c)
}

// IsISO8601 tells whether a text is what the format ISO8601 reads.
func IsISO8601(p []byte) bool {
	_, ok := iso8601(p, &clock{now: time.Now, zone: time.UTC})
	return ok
}

// isoTime reads any of ISO 8601's forms of a date, with a time or without: yyyy, yyyy-MM, yyyy-MM-dd, yyyy-DDD, yyyy-Www[-e],
// years with a sign, then `T` or a blank and HH[:mm[:ss]] with a fraction of seconds, and an offset.
func isoTime(p []byte, c *clock) (record.Value, bool) {
	t := stamp{zoneAt: noZone, hasYear: true, hasDate: true, month: 1, day: 1}
	num := func(at, n int) (int, bool) {
		if at+n > len(p) {
			return 0, false
		}
		v := 0
		for _, b := range p[at : at+n] {
			if b-'0' > 9 {
				return 0, false
			}
			v = v*10 + int(b-'0')
		}
		return v, true
	}
	digits := func(at int) (n int) {
		for at+n < len(p) && p[at+n]-'0' <= 9 {
			n++
		}
		return n
	}
	at, ok := 0, false
	if len(p) > 0 && (p[0] == '-' || p[0] == '+') {
		at = 1
	}
	if len(p) > 0 && p[0] == 'T' && c.calendar {
		t.year, at = 1970, -4
	} else if digits(at) != 4 {
		return record.Value{}, false
	}
	if at >= 0 {
		t.year, _ = num(at, 4)
	}
	if at == 1 && p[0] == '-' {
		t.year = -t.year
	}
	at += 4
	if at < len(p) && p[at] == '-' {
		at++
		switch n := digits(at); {
		case n == 0 && at < len(p) && p[at] == 'W':
			if t.week, ok = num(at+1, 2); !ok || t.week < 1 || t.week > 53 {
				return record.Value{}, false
			}
			if at += 3; at < len(p) && p[at] == '-' {
				if t.wday, ok = num(at+1, 1); !ok || t.wday < 1 || t.wday > 7 {
					return record.Value{}, false
				}
				at += 2
			}
		case n == 3:
			if t.yday, _ = num(at, 3); t.yday == 0 {
				return record.Value{}, false
			}
			at += 3
		case n == 2:
			t.month, _ = num(at, 2)
			if at += 2; at < len(p) && p[at] == '-' {
				if digits(at+1) != 2 {
					return record.Value{}, false
				}
				t.day, _ = num(at+1, 2)
				at += 3
			}
		default:
			return record.Value{}, false
		}
	}
	if at < len(p) {
		if p[at] != 'T' && p[at] != ' ' && p[at] != 't' {
			return record.Value{}, false
		}
		if t.hour, ok = num(at+1, 2); !ok {
			return record.Value{}, false
		}
		at += 3
		if at < len(p) && p[at] == ':' {
			if t.min, ok = num(at+1, 2); !ok {
				return record.Value{}, false
			}
			at += 3
			if at < len(p) && p[at] == ':' {
				if t.sec, ok = num(at+1, 2); !ok {
					return record.Value{}, false
				}
				at += 3
				if at < len(p) && (p[at] == '.' || p[at] == ',') {
					o := op{kind: 'S', n: 9, max: 9}
					if at = o.read(p, at+1, &t); at < 0 {
						return record.Value{}, false
					}
				}
			}
		}
		if at < len(p) && p[at] == ' ' {
			at++
		}
		if at < len(p) {
			if at = readOffset(p, at, &t); at != len(p) {
				return record.Value{}, false
			}
		}
	}
	return t.value(c)
}

// tai64n reads an @ or none, 16 hexadecimal digits of seconds and 8 of nanoseconds, as multilog writes them: the seconds are
// 2^62 + 10 more than those since 1970, leap seconds not counted.
func tai64n(p []byte, _ *clock) (record.Value, bool) {
	if len(p) > 0 && p[0] == '@' {
		p = p[1:]
	}
	if len(p) != 24 {
		return record.Value{}, false
	}
	var n [2]uint64
	for i, c := range p {
		d := uint64(c - '0')
		if c|0x20 >= 'a' && c|0x20 <= 'f' {
			d = uint64(c|0x20-'a') + 10
		} else if c-'0' > 9 {
			return record.Value{}, false
		}
		k := 0
		if i >= 16 {
			k = 1
		}
		n[k] = n[k]<<4 | d
	}
	sec := int64(n[0]-1<<62) - 10
	if n[1] > 999_999_999 || sec < -62135596800 || sec > 253402300799 {
		return record.Value{}, false
	}
	return record.MakeTime(sec, uint32(n[1]), 9), true
}

// unixTime reads a count since 1970 of units of 10^-scale seconds, with a fraction or without.
func unixTime(scale int, lenient bool) parser {
	return func(p []byte, _ *clock) (record.Value, bool) {
		i, neg := 0, false
		if len(p) > 0 && (p[0] == '-' || p[0] == '+') {
			neg = p[0] == '-'
			i++
		}
		from := i
		var n int64
		for ; i < len(p) && p[i]-'0' <= 9; i++ {
			if n > (1<<62)/10 {
				return record.Value{}, false
			}
			n = n*10 + int64(p[i]-'0')
		}
		if i == from {
			return record.Value{}, false
		}
		unit := int64(1)
		for range scale {
			unit *= 10
		}
		sec, nsec, digits := n/unit, n%unit*(1_000_000_000/unit), scale
		if i < len(p) {
			if p[i] != '.' && (p[i] != ',' || !lenient) || i+1 == len(p) {
				return record.Value{}, false
			}
			place := 1_000_000_000 / unit / 10
			for i++; i < len(p); i++ {
				if p[i]-'0' > 9 {
					return record.Value{}, false
				}
				if place > 0 {
					nsec += int64(p[i]-'0') * place
					place /= 10
					digits++
				}
			}
		}
		if neg {
			sec = -sec
			if nsec > 0 {
				sec, nsec = sec-1, 1_000_000_000-nsec
			}
		}
		if sec < -62135596800 || sec > 253402300799 { // years 1 to 9999
			return record.Value{}, false
		}
		return record.MakeTime(sec, uint32(nsec), digits), true
	}
}
