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

// iso8601 reads yyyy-MM-dd['T'| ]HH:mm[:ss[.,fraction]][offset], and a date alone.
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
	t := stamp{zoneAt: noZone, hasYear: true, hasDate: true}
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
	var ok1, ok2, ok3 bool
	if t.year, ok1 = num(0, 4); !ok1 || len(p) < 10 || p[4] != '-' || p[7] != '-' {
		return record.Value{}, false
	}
	if t.month, ok2 = num(5, 2); !ok2 {
		return record.Value{}, false
	}
	if t.day, ok3 = num(8, 2); !ok3 {
		return record.Value{}, false
	}
	at := 10
	if at < len(p) {
		if p[at] != 'T' && p[at] != ' ' && p[at] != 't' {
			return record.Value{}, false
		}
		if t.hour, ok1 = num(at+1, 2); !ok1 {
			return record.Value{}, false
		}
		at += 3
		if at < len(p) && p[at] == ':' {
			if t.min, ok1 = num(at+1, 2); !ok1 {
				return record.Value{}, false
			}
			at += 3
			if at < len(p) && p[at] == ':' {
				if t.sec, ok1 = num(at+1, 2); !ok1 {
					return record.Value{}, false
				}
				at += 3
				if at < len(p) && (p[at] == '.' || p[at] == ',') {
					o := op{kind: 'S', n: 9}
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

// unixTime reads a count since 1970 of units of 10^-scale seconds, with a fraction or without.
func unixTime(scale int) parser {
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
			if p[i] != '.' && p[i] != ',' || i+1 == len(p) {
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
