package expr

import (
	"github.com/rsetl/rsetl/record"
)

// stamp is what a text says about a point in time.
type stamp struct {
	days    int64
	ns      int64 // of the day; 24:00:00 is nsDay
	digits  int   // of the fraction
	hasTime bool
	hasZone bool
	offset  int64 // seconds east of UTC
}

func num(p []byte, i, minD, maxD int) (n int64, next int, ok bool) {
	k := i
	for k < len(p) && k-i < maxD && p[k] >= '0' && p[k] <= '9' {
		n = n*10 + int64(p[k]-'0')
		k++
	}
	return n, k, k-i >= minD
}

// parseStamp reads 'yyyy-M-d[ |T]H:m:s[.f][zone]', the time optional. Days must
// exist; the zone is Z, UTC or an offset.
func parseStamp(p []byte) (s stamp, ok bool) {
	p = trimSpace(p)
	y, i, ok := num(p, 0, 4, 4)
	if !ok || i >= len(p) || p[i] != '-' {
		return s, false
	}
	m, i, ok := num(p, i+1, 1, 2)
	if !ok || i >= len(p) || p[i] != '-' {
		return s, false
	}
	d, i, ok := num(p, i+1, 1, 2)
	if !ok || m < 1 || m > 12 || d < 1 || d > monthDays(y, m) {
		return s, false
	}
	s.days = daysOf(y, m, d)
	if i == len(p) {
		return s, true
	}
	if p[i] != ' ' && p[i] != 'T' {
		return s, false
	}
	if i, ok = s.clock(p, i+1); !ok {
		return s, false
	}
	s.hasTime = true
	return s, s.zone(p[i:])
}

// clock reads H:m:s[.f].
func (s *stamp) clock(p []byte, i int) (int, bool) {
	h, i, ok := num(p, i, 1, 2)
	if !ok || i >= len(p) || p[i] != ':' {
		return i, false
	}
	m, i, ok := num(p, i+1, 1, 2)
	if !ok || i >= len(p) || p[i] != ':' {
		return i, false
	}
	sec, i, ok := num(p, i+1, 1, 2)
	if !ok || h > 24 || m > 59 || sec > 59 || h == 24 && m+sec > 0 {
		return i, false
	}
	ns := int64(0)
	if i < len(p) && (p[i] == '.' || p[i] == ',') {
		j := i + 1
		scale := nsSecond
		for j < len(p) && p[j] >= '0' && p[j] <= '9' {
			if scale /= 10; scale > 0 {
				ns += int64(p[j]-'0') * scale
				s.digits++
			}
			j++
		}
		if j == i+1 {
			return i, false
		}
		i = j
	}
	s.ns = (h*3600+m*60+sec)*nsSecond + ns
	return i, true
}

// zone reads a whole zone: nothing, Z, UTC, GMT or an offset.
func (s *stamp) zone(p []byte) bool {
	for len(p) > 0 && p[0] == ' ' {
		p = p[1:]
	}
	switch string(p) {
	case "":
		return true
	case "Z", "z", "UTC", "GMT":
		s.hasZone = true
		return true
	}
	off, n, ok := parseOffset(p)
	if !ok || n != len(p) {
		return false
	}
	s.hasZone, s.offset = true, off
	return true
}

// parseOffset reads +HH[[:]MM[[:]SS]].
func parseOffset(p []byte) (off int64, n int, ok bool) {
	if len(p) < 3 || p[0] != '+' && p[0] != '-' {
		return 0, 0, false
	}
	h, i, ok := num(p, 1, 2, 2)
	if !ok || h > 18 {
		return 0, 0, false
	}
	off = h * 3600
	for unit := int64(60); unit >= 1; unit /= 60 {
		j := i
		if j < len(p) && p[j] == ':' {
			j++
		}
		m, k, ok := num(p, j, 2, 2)
		if !ok || m > 59 {
			break
		}
		off += m * unit
		i = k
	}
	if p[0] == '-' {
		off = -off
	}
	return off, i, true
}

func (s stamp) value(digits int) record.Value {
	return makeTime(s.days*86400+s.ns/nsSecond-s.offset, s.ns%nsSecond, digits)
}

// parseDateText reads the date of 'yyyy[-M[-d]][ |T anything]'.
func parseDateText(p []byte) (int64, bool) {
	p = trimSpace(p)
	y, i, ok := num(p, 0, 1, 4)
	m, d := int64(1), int64(1)
	if !ok {
		return 0, false
	}
	if i < len(p) && p[i] == '-' {
		if m, i, ok = num(p, i+1, 1, 2); !ok {
			return 0, false
		}
		if i < len(p) && p[i] == '-' {
			if d, i, ok = num(p, i+1, 1, 2); !ok {
				return 0, false
			}
			if i < len(p) && (p[i] == ' ' || p[i] == 'T') {
				i = len(p)
			}
		}
	}
	if i != len(p) || m < 1 || m > 12 || d < 1 || d > monthDays(y, m) {
		return 0, false
	}
	return daysOf(y, m, d), true
}

// parseClockText reads 'H[:m[:s[.f]]]'.
func parseClockText(p []byte) (int64, bool) {
	p = trimSpace(p)
	var v [3]int64
	i, ok := 0, false
	for k := range v {
		if v[k], i, ok = num(p, i, 1, 2); !ok {
			return 0, false
		}
		if i == len(p) || p[i] != ':' {
			break
		}
		if k == 2 {
			return 0, false
		}
		i++
	}
	ns := int64(0)
	if i < len(p) && p[i] == '.' {
		scale := nsSecond
		i++
		for i < len(p) && p[i] >= '0' && p[i] <= '9' {
			scale /= 10
			ns += int64(p[i]-'0') * scale
			i++
		}
	}
	if i != len(p) || v[0] > 23 || v[1] > 59 || v[2] > 59 {
		return 0, false
	}
	return (v[0]*3600+v[1]*60+v[2])*nsSecond + ns, true
}
