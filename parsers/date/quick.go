package date

import (
	"time"

	"github.com/rsetl/rsetl/record"
)

// fixed reads texts in which every part of a format has its usual width, at its place: all but a few. What it does not
// take is left to the format's ops.
type fixed struct {
	n                           int // bytes before the offset
	year, month, day            int // places; -1: the format has none
	hour, min, sec, frac, fracN int
	name                        bool // the month is a name of three letters
	offset                      bool // an offset follows
	lits                        []literal
}

type literal struct {
	at int
	c  byte
}

func fixedOf(ops []op) *fixed {
	f := &fixed{year: -1, month: -1, day: -1, hour: -1, min: -1, sec: -1, frac: -1}
	seen := map[byte]bool{}
	for i, o := range ops {
		if o.kind != 0 && seen[o.kind] || f.offset {
			return nil
		}
		seen[o.kind] = true
		width := 2
		var place *int
		switch o.kind {
		case 0:
			for k := range len(o.lit) {
				if k > 0 && o.lit[k] == ' ' && o.lit[k-1] == ' ' {
					return nil
				}
				f.lits = append(f.lits, literal{f.n + k, o.lit[k]})
			}
			width = len(o.lit)
		case 'y':
			if place, width = &f.year, 4; o.n != 4 {
				return nil
			}
		case 'M':
			place = &f.month
			if o.n == 3 {
				f.name, width = true, 3
			} else if o.n > 3 {
				return nil
			}
		case 'd':
			place = &f.day
		case 'H':
			place = &f.hour
		case 'm':
			place = &f.min
		case 's':
			place = &f.sec
		case 'S':
			place, width = &f.frac, o.n
			f.fracN = o.n
			if o.n > 9 {
				return nil
			}
		case 'Z':
			if o.n > 2 || i != len(ops)-1 {
				return nil
			}
			f.offset, width = true, 0
		default:
			return nil
		}
		if place != nil {
			*place = f.n
		}
		f.n += width
	}
	if f.year < 0 || f.month < 0 || f.day < 0 || f.hour < 0 || f.min < 0 || f.sec < 0 {
		return nil
	}
	return f
}

func (f *fixed) read(p []byte, c *clock) (v record.Value, ok bool) {
	if len(p) < f.n || !f.offset && len(p) != f.n {
		return v, false
	}
	for _, l := range f.lits {
		if p[l.at] != l.c {
			return v, false
		}
	}
	month := 0
	if f.name {
		if month = monthOf(p[f.month], p[f.month+1], p[f.month+2]); mixed(p[f.month], p[f.month+1], p[f.month+2]) {
			return v, false // letters of both cases, which is for the parts to judge
		}
	} else {
		month = two(p, f.month)
	}
	nsec := uint32(0)
	if f.frac >= 0 {
		for _, b := range p[f.frac : f.frac+f.fracN] {
			if b-'0' > 9 {
				return v, false
			}
			nsec = nsec*10 + uint32(b-'0')
		}
		nsec *= uint32(tens[9-f.fracN])
	}
	return instant(two(p, f.year), two(p, f.year+2), month, two(p, f.day), two(p, f.hour), two(p, f.min), two(p, f.sec), nsec, f.fracN, p[f.n:], f.offset, c)
}

// none is what two and monthOf give for what is no number or month: out of all ranges, also in a sum.
const none = 1 << 20

func two(p []byte, at int) int {
	a, b := p[at]-'0', p[at+1]-'0'
	if a > 9 || b > 9 {
		return none
	}
	return int(a)*10 + int(b)
}

var tens = [10]int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000}

// mixed tells whether three letters are in none of the cases abc, ABC and Abc.
func mixed(a, b, c byte) bool { return (b^c)&0x20 != 0 || a&^b&0x20 != 0 }

func monthOf(a, b, c byte) int {
	switch uint32(a|0x20)<<16 | uint32(b|0x20)<<8 | uint32(c|0x20) {
	case 'j'<<16 | 'a'<<8 | 'n':
		return 1
	case 'f'<<16 | 'e'<<8 | 'b':
		return 2
	case 'm'<<16 | 'a'<<8 | 'r':
		return 3
	case 'a'<<16 | 'p'<<8 | 'r':
		return 4
	case 'm'<<16 | 'a'<<8 | 'y':
		return 5
	case 'j'<<16 | 'u'<<8 | 'n':
		return 6
	case 'j'<<16 | 'u'<<8 | 'l':
		return 7
	case 'a'<<16 | 'u'<<8 | 'g':
		return 8
	case 's'<<16 | 'e'<<8 | 'p':
		return 9
	case 'o'<<16 | 'c'<<8 | 't':
		return 10
	case 'n'<<16 | 'o'<<8 | 'v':
		return 11
	case 'd'<<16 | 'e'<<8 | 'c':
		return 12
	}
	return none
}

// instant makes a time of numbers that may be none. rest is the offset, Z, +hhmm or +hh:mm, where withOffset.
func instant(century, year, month, day, hour, min, sec int, nsec uint32, digits int, rest []byte, withOffset bool, c *clock) (v record.Value, ok bool) {
	year += century * 100
	if year > 9999 || month-1 > 11 || day-1 > 30 || month < 1 || day < 1 || hour > 23 || min > 59 || sec > 59 || day > 28 && day > daysIn(year, month) {
		return v, false
	}
	local := days(year, month, day)*86400 + int64(hour*3600+min*60+sec)
	if !withOffset {
		if c.zone != time.UTC {
			if local, ok = c.utc(local, c.zone); !ok {
				return v, false
			}
		}
		return record.MakeTime(local, nsec, digits), true
	}
	switch {
	case len(rest) == 1 && rest[0]|0x20 == 'z':
	case len(rest) == 5 || len(rest) == 6 && rest[3] == ':':
		h, m := two(rest, 1), two(rest, len(rest)-2)
		if h > 18 || m > 59 {
			return v, false
		}
		switch rest[0] {
		case '+':
			local -= int64(h*3600 + m*60)
		case '-':
			local += int64(h*3600 + m*60)
		default:
			return v, false
		}
	default:
		return v, false
	}
	return record.MakeTime(local, nsec, digits), true
}
