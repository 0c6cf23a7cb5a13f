package syslog

import "github.com/rsetl/rsetl/record"

// digits reads a number of min to max digits; end is -1 where there is none.
func digits(in []byte, at, min, max int) (n, end int) {
	end = at
	for end < len(in) && end-at < max && in[end]-'0' <= 9 {
		n = n*10 + int(in[end]-'0')
		end++
	}
	if end-at < min {
		return 0, -1
	}
	return n, end
}

// fraction reads up to max digits of a second; what goes beyond nine is cut off.
func fraction(in []byte, at, max int) (nsec uint32, n, end int) {
	end = at
	for end < len(in) && in[end]-'0' <= 9 && end-at < max {
		if n < 9 {
			nsec = nsec*10 + uint32(in[end]-'0')
			n++
		}
		end++
	}
	for k := n; k < 9; k++ {
		nsec *= 10
	}
	return nsec, n, end
}

func two(in []byte, at int) int {
	a, b := in[at]-'0', in[at+1]-'0'
	if a > 9 || b > 9 {
		return 1 << 20
	}
	return int(a)*10 + int(b)
}

// rfc3339 reads a time at in[at]; end is -1 where there is none. Fractions have 1 to frac digits. strict takes only what
// RFC 5424 allows: a T, an offset or Z. zoned is false where there is none; the time is then as if it were UTC.
func rfc3339(in []byte, at, frac int, strict bool) (v record.Value, end int, zoned bool) {
	if at+19 > len(in) || in[at+4] != '-' || in[at+7] != '-' || in[at+13] != ':' || in[at+16] != ':' || in[at+10] != 'T' && (strict || in[at+10] != ' ') {
		return v, -1, false
	}
	y, mo, d := two(in, at)*100+two(in, at+2), two(in, at+5), two(in, at+8)
	h, mi, s := two(in, at+11), two(in, at+14), two(in, at+17)
	if y > 9999 || mo-1 > 11 || mo < 1 || d < 1 || d > 31 || d > daysIn(y, mo) || h > 23 || mi > 59 || s > 60 || strict && s > 59 {
		return v, -1, false
	}
	sec := days(y, mo, d)*86400 + int64(h*3600+mi*60+s)
	end = at + 19
	nsec, n := uint32(0), 0
	if end < len(in) && (in[end] == '.' || in[end] == ',' && !strict) {
		if nsec, n, end = fraction(in, end+1, frac); n == 0 || frac == 0 {
			return v, -1, false
		}
	}
	if end < len(in) && in[end] == 'Z' {
		return record.MakeTime(sec, nsec, n), end + 1, true
	}
	if sh, e := offset(in, end); e >= 0 && (!strict || e-end == 6) {
		return record.MakeTime(sec-sh, nsec, n), e, true
	}
	if strict || end < len(in) && in[end] != ' ' && in[end] != ':' {
		return v, -1, false
	}
	return record.MakeTime(sec, nsec, n), end, false
}

// offset reads +hh:mm or +hhmm, in seconds; end is -1 where there is none.
func offset(in []byte, at int) (shift int64, end int) {
	if at+5 > len(in) || in[at] != '+' && in[at] != '-' {
		return 0, -1
	}
	h, m := two(in, at+1), 1<<20
	end = at + 5
	if in[at+3] == ':' {
		if at+6 > len(in) {
			return 0, -1
		}
		m, end = two(in, at+4), at+6
	} else {
		m = two(in, at+3)
	}
	if h > 23 || m > 59 {
		return 0, -1
	}
	shift = int64(h*3600 + m*60)
	if in[at] == '-' {
		shift = -shift
	}
	return shift, end
}

// monthOf is the month whose English name of three letters p begins with, 0 for none. Any case.
func monthOf(p []byte) int {
	switch uint32(p[0]|0x20)<<16 | uint32(p[1]|0x20)<<8 | uint32(p[2]|0x20) {
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
	return 0
}

func dayName(p []byte) bool {
	switch string(p[:3]) {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
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

// days counts from 1970-01-01 in the proleptic Gregorian calendar; the year isn't negative.
func days(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = -1
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return int64(era)*146097 + int64(doe) - 719468
}
