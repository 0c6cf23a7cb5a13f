package expr

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// datePattern is a compiled pattern of Java's DateTimeFormatter, which Flink's
// functions and Logstash's %{+...} share for what logs need.
type datePattern struct {
	ops  []dateOp
	zone *time.Location // of templates only
}

type dateOp struct {
	c   byte // the letter, 0 for a literal
	n   int
	lit string
}

var monthNames = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
var dayNames = [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

func parseDatePattern(s string) (*datePattern, error) {
	p := &datePattern{}
	lit := func(t string) {
		if k := len(p.ops); k > 0 && p.ops[k-1].c == 0 {
			p.ops[k-1].lit += t
		} else {
			p.ops = append(p.ops, dateOp{lit: t})
		}
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\'':
			if i+1 < len(s) && s[i+1] == '\'' {
				lit("'")
				i += 2
				continue
			}
			i++
			closed := false
			for i < len(s) {
				if s[i] == '\'' {
					if i+1 < len(s) && s[i+1] == '\'' {
						lit("'")
						i += 2
						continue
					}
					closed = true
					i++
					break
				}
				lit(s[i : i+1])
				i++
			}
			if !closed {
				return nil, fmt.Errorf("a quote is not closed in the date pattern %q", s)
			}
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			k := i
			for k < len(s) && s[k] == c {
				k++
			}
			if strings.IndexByte("yuYMLdDHhkKmsSnNAaEecwWQqZXxzVOFG", c) < 0 || k-i > 19 {
				return nil, fmt.Errorf("the letter %q means nothing in the date pattern %q; put text in single quotes", s[i:k], s)
			}
			p.ops = append(p.ops, dateOp{c: c, n: k - i})
			i = k
		default:
			_, w := utf8.DecodeRuneInString(s[i:])
			lit(s[i : i+w])
			i += w
		}
	}
	return p, nil
}

// offsetAt is zone's offset from UTC at an instant; nil is UTC.
func offsetAt(zone *time.Location, sec int64) int64 {
	if zone == nil || zone == time.UTC {
		return 0
	}
	_, off := time.Unix(sec, 0).In(zone).Zone()
	return int64(off)
}

// localToUTC gives the instant of a wall-clock time in zone; in a gap it moves forward.
func localToUTC(zone *time.Location, local int64) int64 {
	if zone == nil || zone == time.UTC {
		return local
	}
	before := local - offsetAt(zone, local-86400)
	if before+offsetAt(zone, before) == local {
		return before
	}
	after := local - offsetAt(zone, local+86400)
	if after+offsetAt(zone, after) == local {
		return after
	}
	return before
}

// append writes the instant sec, nsec as zone shows it.
func (p *datePattern) append(dst []byte, sec, nsec int64, zone *time.Location) []byte {
	off := offsetAt(zone, sec)
	t := sec + off
	days := floorDiv(t, 86400)
	s := t - days*86400
	y, m, d := civil(days)
	for _, o := range p.ops {
		switch o.c {
		case 0:
			dst = append(dst, o.lit...)
		case 'y', 'u', 'Y':
			v := y
			if o.c == 'Y' {
				v, _ = usWeek(days)
			}
			if o.c == 'y' && v <= 0 {
				v = 1 - v // year of the era
			}
			if o.n == 2 {
				v = floorMod(v, 100)
			}
			dst = appendPad(dst, v, o.n)
		case 'M', 'L':
			dst = appendName(dst, o.n, m, monthNames[:])
		case 'd':
			dst = appendPad(dst, d, o.n)
		case 'D':
			dst = appendPad(dst, dayOfYear(days), o.n)
		case 'H':
			dst = appendPad(dst, s/3600, o.n)
		case 'k':
			dst = appendPad(dst, (s/3600+23)%24+1, o.n)
		case 'K':
			dst = appendPad(dst, s/3600%12, o.n)
		case 'h':
			dst = appendPad(dst, (s/3600+11)%12+1, o.n)
		case 'm':
			dst = appendPad(dst, s/60%60, o.n)
		case 's':
			dst = appendPad(dst, s%60, o.n)
		case 'S':
			v, k := nsec, 9
			for ; k > o.n; k-- {
				v /= 10
			}
			dst = appendPad(dst, v, k)
			for ; k < o.n; k++ {
				dst = append(dst, '0')
			}
		case 'n':
			dst = appendPad(dst, nsec, o.n)
		case 'A':
			dst = appendPad(dst, s*1000+nsec/1e6, o.n)
		case 'N':
			dst = appendPad(dst, s*1e9+nsec, o.n)
		case 'a':
			if s < 43200 {
				dst = append(dst, "AM"...)
			} else {
				dst = append(dst, "PM"...)
			}
		case 'E', 'e', 'c':
			if w := isoWeekday(days); o.c != 'E' && o.n < 3 {
				dst = appendPad(dst, w%7+1, o.n)
			} else {
				name := dayNames[w-1]
				if o.n < 4 {
					name = name[:3]
				} else if o.n == 5 {
					name = name[:1]
				}
				dst = append(dst, name...)
			}
		case 'w':
			_, w := usWeek(days)
			dst = appendPad(dst, w, o.n)
		case 'W':
			first := isoWeekday(days-d+1) % 7
			dst = appendPad(dst, (d-1+first)/7+1, o.n)
		case 'F':
			dst = appendPad(dst, (d-1)%7+1, o.n)
		case 'Q', 'q':
			q := (m + 2) / 3
			switch {
			case o.n == 3:
				dst = append(dst, 'Q', byte('0'+q))
			case o.n >= 4:
				dst = append(dst, [...]string{"1st", "2nd", "3rd", "4th"}[q-1]...)
				dst = append(dst, " quarter"...)
			default:
				dst = appendPad(dst, q, o.n)
			}
		case 'G':
			if y > 0 {
				dst = append(dst, "AD"...)
			} else {
				dst = append(dst, "BC"...)
			}
		case 'Z':
			dst = appendOffset(dst, off, o.n >= 5, o.n >= 5)
		case 'X', 'x':
			if off == 0 && o.c == 'X' {
				dst = append(dst, 'Z')
				break
			}
			k := len(dst)
			dst = appendOffset(dst, off, o.n == 3 || o.n == 5, false)
			if o.n == 1 && off%3600 == 0 {
				dst = dst[:k+3]
			}
		case 'O':
			dst = append(dst, "GMT"...)
			if off != 0 {
				dst = appendOffset(dst, off, true, false)
			}
		case 'V':
			if zone == nil {
				dst = append(dst, "UTC"...)
			} else {
				dst = append(dst, zone.String()...)
			}
		case 'z':
			if zone == nil {
				dst = append(dst, "UTC"...)
			} else {
				dst = time.Unix(sec, 0).In(zone).AppendFormat(dst, "MST")
			}
		}
	}
	return dst
}

func appendName(dst []byte, n int, v int64, names []string) []byte {
	switch {
	case n < 3:
		return appendPad(dst, v, n)
	case n == 3:
		return append(dst, names[v-1][:3]...)
	case n == 4:
		return append(dst, names[v-1]...)
	}
	return append(dst, names[v-1][0])
}

func appendOffset(dst []byte, off int64, colon, z bool) []byte {
	if off == 0 && z {
		return append(dst, 'Z')
	}
	if off < 0 {
		dst = append(dst, '-')
		off = -off
	} else {
		dst = append(dst, '+')
	}
	dst = appendPad(dst, off/3600, 2)
	if colon {
		dst = append(dst, ':')
	}
	return appendPad(dst, off/60%60, 2)
}

// usWeek is the week of the US locale, which Java's w and Y use there: weeks
// begin on Sunday, the first is that of 1 January.
func usWeek(days int64) (year, week int64) {
	y, _, _ := civil(days)
	start := func(y int64) int64 { d := daysOf(y, 1, 1); return d - isoWeekday(d)%7 }
	if days >= start(y+1) {
		y++
	}
	return y, (days-start(y))/7 + 1
}

// parse reads all of text. The weekday must fit the date where strict. A text
// without a zone is in zone.
func (p *datePattern) parse(text []byte, zone *time.Location, strict bool) (sec, nsec int64, ok bool) {
	sec, nsec, _, ok = p.parsePrefix(text, zone, strict, false)
	return sec, nsec, ok
}

// parsePrefix is parse; where prefix is set, text may go on. off is the offset that the text named.
func (p *datePattern) parsePrefix(text []byte, zone *time.Location, strict, prefix bool) (sec, nsec, off int64, ok bool) {
	y, m, d := int64(1970), int64(1), int64(1)
	var h, mi, s, doy, wd int64
	pm, hasOff, half := -1, false, false
	i := 0
	for k, o := range p.ops {
		if o.c == 0 {
			if !strings.HasPrefix(view(text[i:]), o.lit) {
				return 0, 0, 0, false
			}
			i += len(o.lit)
			continue
		}
		adjacent := k+1 < len(p.ops) && p.ops[k+1].c != 0 && numericOp(p.ops[k+1])
		width := 19
		if adjacent {
			width = o.n
		}
		read := func(least, most int) (v int64, ok bool) {
			// Java's d also takes a blank before a single digit.
			for i < len(text) && text[i] == ' ' && !adjacent {
				i++
			}
			v, n, ok := num(text, i, least, min(most, width))
			i = n
			return v, ok
		}
		switch o.c {
		case 'y', 'u', 'Y':
			if o.n == 2 {
				if y, ok = read(2, 2); !ok {
					return 0, 0, 0, false
				}
				y += 2000
			} else if y, ok = read(1, 9); !ok {
				return 0, 0, 0, false
			}
		case 'M', 'L':
			if o.n >= 3 {
				if m, i, ok = parseName(text, i, monthNames[:]); !ok {
					return 0, 0, 0, false
				}
			} else if m, ok = read(1, 2); !ok {
				return 0, 0, 0, false
			}
		case 'd':
			if d, ok = read(1, 2); !ok {
				return 0, 0, 0, false
			}
		case 'D':
			if doy, ok = read(1, 3); !ok || doy < 1 {
				return 0, 0, 0, false
			}
		case 'H', 'k':
			if h, ok = read(1, 2); !ok || h > 24 {
				return 0, 0, 0, false
			}
			if o.c == 'k' {
				h %= 24
			}
		case 'h', 'K':
			half = true
			if h, ok = read(1, 2); !ok || h > 12 {
				return 0, 0, 0, false
			}
			h %= 12
		case 'm':
			if mi, ok = read(1, 2); !ok || mi > 59 {
				return 0, 0, 0, false
			}
		case 's':
			if s, ok = read(1, 2); !ok || s > 59 {
				return 0, 0, 0, false
			}
		case 'S', 'n':
			v, n, ok := num(text, i, 1, min(width, 18))
			if !ok {
				return 0, 0, 0, false
			}
			for w := n - i; w < 9; w++ {
				v *= 10
			}
			for w := n - i; w > 9; w-- {
				v /= 10
			}
			nsec, i = v, n
		case 'a':
			if i+2 > len(text) {
				return 0, 0, 0, false
			}
			switch strings.ToUpper(string(text[i : i+2])) {
			case "AM":
				pm = 0
			case "PM":
				pm = 1
			default:
				return 0, 0, 0, false
			}
			i += 2
		case 'E':
			if wd, i, ok = parseName(text, i, dayNames[:]); !ok {
				return 0, 0, 0, false
			}
		case 'Z', 'X', 'x', 'z', 'V', 'O':
			hasOff = true
			rest := text[i:]
			switch {
			case len(rest) > 0 && rest[0] == 'Z':
				i++
			case strings.HasPrefix(view(rest), "UTC") || strings.HasPrefix(view(rest), "GMT"):
				i += 3
			default:
				v, n, ok := parseOffset(rest)
				if !ok {
					return 0, 0, 0, false
				}
				off = v
				i += n
			}
		default:
			return 0, 0, 0, false
		}
	}
	if i != len(text) && !prefix {
		return 0, 0, 0, false
	}
	if half && pm == 1 {
		h += 12
	}
	if h == 24 && mi+s > 0 {
		return 0, 0, 0, false
	}
	var days int64
	if doy > 0 {
		if doy > 366 || doy == 366 && !leap(y) {
			return 0, 0, 0, false
		}
		days = daysOf(y, 1, 1) + doy - 1
	} else {
		if m < 1 || m > 12 || d < 1 || d > monthDays(y, m) {
			return 0, 0, 0, false
		}
		days = daysOf(y, m, d)
	}
	if strict && wd > 0 && wd != isoWeekday(days) {
		return 0, 0, 0, false
	}
	sec = days*86400 + h*3600 + mi*60 + s
	if hasOff {
		return sec - off, nsec, off, true
	}
	return localToUTC(zone, sec), nsec, 0, true
}

func numericOp(o dateOp) bool {
	return strings.IndexByte("yuYdDHhkKmsSnw", o.c) >= 0 || (o.c == 'M' || o.c == 'L') && o.n < 3
}

// parseName reads a name in full or its first three letters, in any case.
func parseName(p []byte, i int, names []string) (int64, int, bool) {
	for k, n := range names {
		for _, w := range []string{n, n[:3]} {
			if len(p)-i >= len(w) && strings.EqualFold(view(p[i:i+len(w)]), w) {
				return int64(k + 1), i + len(w), true
			}
		}
	}
	return 0, i, false
}
