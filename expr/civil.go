package expr

import (
	"strconv"

	"github.com/rsetl/rsetl/record"
)

// Calendar arithmetic on days since 1970-01-01 in the proleptic Gregorian
// calendar, after Howard Hinnant's "chrono-compatible low-level date
// algorithms". It holds for all years, unlike time.Time it needs no Location.

func daysOf(y, m, d int64) int64 {
	if m <= 2 {
		y--
	}
	era := floorDiv(y, 400)
	yoe := y - era*400
	mp := (m + 9) % 12
	doy := (153*mp+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func civil(days int64) (y, m, d int64) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	y = yoe + era*400
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	if m > 12 {
		m -= 12
	}
	if m <= 2 {
		y++
	}
	return
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

func leap(y int64) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

func monthDays(y, m int64) int64 {
	switch m {
	case 2:
		if leap(y) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// isoWeekday is 1 for Monday to 7 for Sunday.
func isoWeekday(days int64) int64 { return floorMod(days+3, 7) + 1 }

func dayOfYear(days int64) int64 {
	y, _, _ := civil(days)
	return days - daysOf(y, 1, 1) + 1
}

func isoWeek(days int64) (year, week int64) {
	// The week belongs to the year of its Thursday.
	th := days - isoWeekday(days) + 4
	y, _, _ := civil(th)
	return y, (th-daysOf(y, 1, 1))/7 + 1
}

const (
	nsSecond = int64(1e9)
	nsDay    = 86400 * nsSecond
)

// addMonths moves a day by months, to the month's last day where it has fewer.
func addMonths(days, n int64) int64 {
	y, m, d := civil(days)
	t := y*12 + m - 1 + n
	y, m = floorDiv(t, 12), floorMod(t, 12)+1
	return daysOf(y, m, min(d, monthDays(y, m)))
}

// Times outside years 0 to 9999 can't be written; results beyond are NULL.
const (
	minDay = -719528 // 0000-01-01
	maxDay = 2932896 // 9999-12-31
)

func makeTime(sec, nsec int64, digits int) record.Value {
	sec += floorDiv(nsec, nsSecond)
	nsec = floorMod(nsec, nsSecond)
	if d := floorDiv(sec, 86400); d < minDay || d > maxDay {
		return null
	}
	return record.MakeTime(sec, uint32(nsec), digits)
}

func makeDate(days int64) record.Value {
	if days < minDay || days > maxDay {
		return null
	}
	return record.MakeDate(days)
}

func appendPad(dst []byte, n int64, width int) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	var tmp [20]byte
	p := strconv.AppendInt(tmp[:0], n, 10)
	for k := len(p); k < width; k++ {
		dst = append(dst, '0')
	}
	return append(dst, p...)
}

func appendDate(dst []byte, days int64) []byte {
	y, m, d := civil(days)
	dst = appendPad(dst, y, 4)
	dst = append(dst, '-')
	dst = appendPad(dst, m, 2)
	dst = append(dst, '-')
	return appendPad(dst, d, 2)
}

func appendClock(dst []byte, ns int64, digits int) []byte {
	s := ns / nsSecond
	dst = appendPad(dst, s/3600, 2)
	dst = append(dst, ':')
	dst = appendPad(dst, s/60%60, 2)
	dst = append(dst, ':')
	dst = appendPad(dst, s%60, 2)
	return appendFraction(dst, ns%nsSecond, digits)
}

func appendFraction(dst []byte, ns int64, digits int) []byte {
	if digits <= 0 {
		return dst
	}
	dst = append(dst, '.')
	for k := digits; k < 9; k++ {
		ns /= 10
	}
	return appendPad(dst, ns, digits)
}

func appendTimestamp(dst []byte, v record.Value) []byte {
	days := floorDiv(v.Sec(), 86400)
	dst = appendDate(dst, days)
	dst = append(dst, ' ')
	return appendClock(dst, (v.Sec()-days*86400)*nsSecond+int64(v.Nsec()), v.Digits())
}

func appendMonths(dst []byte, n int64) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	} else {
		dst = append(dst, '+')
	}
	dst = strconv.AppendInt(dst, n/12, 10)
	dst = append(dst, '-')
	return appendPad(dst, n%12, 2)
}

func appendDuration(dst []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		dst = append(dst, '-')
		u = -u
	} else {
		dst = append(dst, '+')
	}
	dst = strconv.AppendUint(dst, u/uint64(nsDay), 10)
	dst = append(dst, ' ')
	return appendClock(dst, int64(u%uint64(nsDay)), 3)
}

func appendPeriod(dst []byte, n int64) []byte {
	dst = append(dst, 'P')
	if n == 0 {
		return append(dst, "0M"...)
	}
	if n/12 != 0 {
		dst = strconv.AppendInt(dst, n/12, 10)
		dst = append(dst, 'Y')
	}
	if n%12 != 0 {
		dst = strconv.AppendInt(dst, n%12, 10)
		dst = append(dst, 'M')
	}
	return dst
}

// appendISODuration writes a duration as Java's Duration.toString does.
func appendISODuration(dst []byte, ns int64) []byte {
	dst = append(dst, "PT"...)
	if ns == 0 {
		return append(dst, "0S"...)
	}
	h, m, s := ns/(3600*nsSecond), ns/(60*nsSecond)%60, ns%(60*nsSecond)
	if h != 0 {
		dst = strconv.AppendInt(dst, h, 10)
		dst = append(dst, 'H')
	}
	if m != 0 {
		dst = strconv.AppendInt(dst, m, 10)
		dst = append(dst, 'M')
	}
	if s != 0 {
		if s < 0 {
			dst = append(dst, '-')
			s = -s
		}
		dst = strconv.AppendInt(dst, s/nsSecond, 10)
		if f := s % nsSecond; f != 0 {
			d := 9
			for f%10 == 0 {
				f /= 10
				d--
			}
			dst = append(dst, '.')
			dst = appendPad(dst, f, d)
		}
		dst = append(dst, 'S')
	}
	return dst
}
