package expr

import (
	"math"
	"time"

	"github.com/rsetl/rsetl/record"
)

var (
	patISO = mustPattern("yyyy-MM-dd HH:mm:ss")
)

func mustPattern(s string) *datePattern {
	p, err := parseDatePattern(s)
	if err != nil {
		panic(err)
	}
	return p
}

// roundTime cuts a time to the unit, or rounds it up; off is what to add to get its wall clock.
func roundTime(v record.Value, unit string, up bool, off int64) record.Value {
	switch v.Kind() {
	case record.Clock:
		n := unitNanos(unit)
		if n == 0 || n >= nsDay {
			if up && v.Int() > 0 {
				return record.MakeClock(0, v.Digits())
			}
			return record.MakeClock(0, v.Digits())
		}
		f := v.Int() / n * n
		if up && f < v.Int() {
			f += n
		}
		return record.MakeClock(f%nsDay, v.Digits())
	case record.Date:
		d := floorDays(v.Int(), unit, false)
		if up && d < v.Int() || up && unit == "DAY" {
			d = floorDays(v.Int(), unit, true)
		}
		return makeDate(d)
	case record.Time:
		sec, ns := v.Sec()+off, int64(v.Nsec())
		if n := unitNanos(unit); n > 0 && n < nsDay {
			if n < nsSecond {
				f := ns / n * n
				if up && f < ns {
					f += n
				}
				return makeTime(sec-off, f, v.Digits())
			}
			s := n / nsSecond
			f := floorDiv(sec, s) * s
			if up && (f < sec || ns > 0) {
				f += s
			}
			return makeTime(f-off, 0, v.Digits())
		}
		day := floorDiv(sec, 86400)
		d := floorDays(day, unit, false)
		// Beyond days Flink goes by the date alone.
		if up && (d < day || unit == "DAY" && (sec != day*86400 || ns > 0)) {
			d = floorDays(day, unit, true)
		}
		return makeTime(d*86400-off, 0, v.Digits())
	}
	return null
}

func unitNanos(unit string) int64 {
	switch unit {
	case "NANOSECOND":
		return 1
	case "MICROSECOND":
		return 1e3
	case "MILLISECOND":
		return 1e6
	case "SECOND":
		return nsSecond
	case "MINUTE":
		return 60 * nsSecond
	case "HOUR":
		return 3600 * nsSecond
	case "DAY":
		return nsDay
	case "WEEK":
		return 7 * nsDay
	}
	return 0
}

// floorDays is the first day of the unit that day d is in, or of the next one.
func floorDays(d int64, unit string, next bool) int64 {
	k := int64(0)
	if next {
		k = 1
	}
	y, m, _ := civil(d)
	years := func(n, first int64) int64 { return daysOf(floorDiv(y-first, n)*n+first+k*n, 1, 1) }
	switch unit {
	case "WEEK":
		return d - isoWeekday(d)%7 + 7*k
	case "MONTH":
		return addMonths(daysOf(y, m, 1), k)
	case "QUARTER":
		return addMonths(daysOf(y, (m-1)/3*3+1, 1), 3*k)
	case "YEAR":
		return years(1, 0)
	case "DECADE":
		return years(10, 0)
	case "CENTURY":
		return years(100, 1)
	case "MILLENNIUM":
		return years(1000, 1)
	case "DAY":
		return d + k
	}
	return d
}

// extract gives a field of a time; ok is false where it has none of that name.
func extract(unit string, v record.Value, off int64) (int64, bool) {
	switch v.Kind() {
	case record.Months:
		switch unit {
		case "YEAR":
			return v.Int() / 12, true
		case "MONTH":
			return v.Int() % 12, true
		case "QUARTER":
			return v.Int()%12/3 + 1, true
		}
		return 0, false
	case record.Duration:
		n := v.Int()
		switch unit {
		case "DAY":
			return n / nsDay, true
		case "HOUR":
			return n % nsDay / (3600 * nsSecond), true
		case "MINUTE":
			return n % (3600 * nsSecond) / (60 * nsSecond), true
		case "SECOND":
			return n % (60 * nsSecond) / nsSecond, true
		case "MILLISECOND":
			return n % (60 * nsSecond) / 1e6, true
		case "EPOCH":
			return n / nsSecond, true
		}
		return 0, false
	}
	var day, s, ns int64
	switch v.Kind() {
	case record.Clock:
		s, ns = v.Int()/nsSecond, v.Int()%nsSecond
		switch unit {
		case "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "NANOSECOND", "EPOCH":
		default:
			return 0, false
		}
	case record.Date:
		day = v.Int()
	case record.Time:
		t := v.Sec() + off
		day = floorDiv(t, 86400)
		s, ns = t-day*86400, int64(v.Nsec())
	default:
		return 0, false
	}
	switch unit {
	case "HOUR":
		return s / 3600, true
	case "MINUTE":
		return s / 60 % 60, true
	case "SECOND":
		return s % 60, true
	case "MILLISECOND":
		return s%60*1e3 + ns/1e6, true
	case "MICROSECOND":
		return s%60*1e6 + ns/1e3, true
	case "NANOSECOND":
		return ns, true // Flink's answer, unlike the two above
	case "EPOCH":
		return day*86400 + s - off, true
	case "DOW":
		return isoWeekday(day)%7 + 1, true
	case "ISODOW":
		return isoWeekday(day), true
	case "DOY":
		return dayOfYear(day), true
	}
	y, m, d := civil(day)
	switch unit {
	case "YEAR":
		return y, true
	case "QUARTER":
		return (m + 2) / 3, true
	case "MONTH":
		return m, true
	case "DAY":
		return d, true
	case "WEEK":
		_, w := isoWeek(day)
		return w, true
	case "ISOYEAR":
		y, _ := isoWeek(day)
		return y, true
	case "DECADE":
		return floorDiv(y, 10), true
	case "CENTURY":
		return floorDiv(y-1, 100) + 1, true
	case "MILLENNIUM":
		return floorDiv(y-1, 1000) + 1, true
	}
	return 0, false
}

func extractFunc(c *Call, unit string, a int) (EvalFunc, error) {
	t := c.ArgType(a)
	k := t.Kind
	if k != TDate && k != TTime && !t.isTimestamp() && !t.isInterval() && !t.isText() && !t.isDynamic() {
		return nil, c.Errorf(a, "%s takes a time, not %s", c.fn.Name, t.nullable())
	}
	f, zone, ltz := c.Arg(a), c.Zone(), k == TTimestampLTZ
	return func(env *Env, i int) record.Value {
		v := f(env, i)
		if v.Kind() == record.String {
			s, ok := parseStamp(env.bytes(v))
			if !ok {
				return null
			}
			v = s.value(9)
		}
		off := int64(0)
		if ltz && v.Kind() == record.Time {
			off = offsetAt(zone, v.Sec())
		}
		n, ok := extract(unit, v, off)
		if !ok {
			return null
		}
		return record.MakeInt(n)
	}, nil
}

func part(name, unit, summary, example, result string, aliases ...string) Function {
	return Function{Name: name, Aliases: aliases, Signature: name + "(time)", Summary: summary, Example: example, ExampleResult: result, Args: "x", Result: bigintNN,
		Build: func(c *Call) (EvalFunc, error) { return extractFunc(c, unit, 0) }}
}

// patternArg gives argument i as a compiled pattern per record; def where it isn't there.
func patternArg(c *Call, i int, def *datePattern) (func(env *Env, rec int) *datePattern, error) {
	if i >= c.Len() {
		return func(*Env, int) *datePattern { return def }, nil
	}
	if s, ok := c.ConstText(i); ok {
		p, err := parseDatePattern(s)
		if err != nil {
			return nil, c.Errorf(i, "%v", err)
		}
		return func(*Env, int) *datePattern { return p }, nil
	}
	f := c.Arg(i)
	return func(env *Env, rec int) *datePattern {
		v := f(env, rec)
		if v.Kind() != record.String {
			return nil
		}
		return env.datePattern(env.bytes(v))
	}, nil
}

// parseTimeArg reads a text by the optional pattern in argument 1.
func parseTimeArg(c *Call, strict bool, use func(env *Env, sec, ns int64) record.Value) (EvalFunc, error) {
	f, zone := c.Arg(0), c.Zone()
	ltz := !strict
	if !ltz {
		zone = nil // TIMESTAMP and DATE are wall clocks
	}
	var pat func(*Env, int) *datePattern
	if c.Len() > 1 {
		var err error
		if pat, err = patternArg(c, 1, nil); err != nil {
			return nil, err
		}
	}
	return func(env *Env, i int) record.Value {
		v := f(env, i)
		if v.IsNull() {
			return null
		}
		if pat == nil {
			s, ok := parseStamp(env.bytes(v))
			if !ok {
				return null
			}
			sec := s.days*86400 + s.ns/nsSecond - s.offset
			if !s.hasZone {
				sec = localToUTC(zone, sec)
			}
			return use(env, sec, s.ns%nsSecond)
		}
		p := pat(env, i)
		if p == nil {
			return null
		}
		sec, ns, ok := p.parse(env.bytes(v), zone, strict)
		if !ok {
			return null
		}
		return use(env, sec, ns)
	}, nil
}

func makeMilli(_ *Env, sec, ns int64) record.Value { return makeTime(sec, cutNanos(ns, 3), 3) }

func appendPattern(env *Env, p *datePattern, sec, ns int64, zone *time.Location) record.Value {
	off := len(env.B.Buf)
	env.B.Buf = p.append(env.B.Buf, sec, ns, zone)
	return env.B.Since(off)
}

func clockFunc(name, summary, example string, t Type, f func(now time.Time, zone *time.Location) record.Value, aliases ...string) Function {
	return Function{Name: name, Aliases: aliases, Signature: name, Summary: summary, Example: example, ExampleResult: "TRUE", Result: t.notNull(), Volatile: true,
		Build: func(c *Call) (EvalFunc, error) {
			now, zone := c.Now(), c.Zone()
			return func(*Env, int) record.Value { return f(now(), zone) }, nil
		}}
}

func timeFuncs() []Function {
	const cat = "time"
	ltz3 := Type{Kind: TTimestampLTZ, Prec: 3}
	milli := func(n time.Time, _ *time.Location) record.Value {
		return record.MakeTime(n.Unix(), uint32(n.Nanosecond()/1e6*1e6), 3)
	}
	local := func(n time.Time, z *time.Location) int64 { return n.Unix() + offsetAt(z, n.Unix()) }
	fs := []Function{
		{Name: "EXTRACT", Signature: "EXTRACT(unit FROM time)", Summary: "a field of a time: YEAR, QUARTER, MONTH, WEEK (ISO), DAY, DOW (1 is Sunday), ISODOW, DOY, HOUR, MINUTE, SECOND, EPOCH ...", Example: "EXTRACT(HOUR FROM TIMESTAMP '2024-02-24 23:13:42')", ExampleResult: "23", Args: "ux",
			Type: func(c *Call) (Type, error) { return simple(TBigInt).null(c.ArgType(1).NotNull), nil },
			Build: func(c *Call) (EvalFunc, error) {
				unit, t := c.Node.Args[0].Name, c.ArgType(1)
				if t.Kind == TDate && (unit == "MILLISECOND" || unit == "MICROSECOND" || unit == "NANOSECOND") {
					return nil, c.Errorf(0, "a DATE has no %s", unit)
				}
				return extractFunc(c, unit, 1)
			}},
		part("YEAR", "YEAR", "the year", "YEAR(DATE '2024-02-24')", "2024"),
		part("QUARTER", "QUARTER", "the quarter, 1 to 4", "QUARTER(DATE '2024-02-24')", "1"),
		part("MONTH", "MONTH", "the month, 1 to 12", "MONTH(DATE '2024-02-24')", "2"),
		part("WEEK", "WEEK", "the ISO week, 1 to 53", "WEEK(DATE '2024-02-24')", "8", "WEEK_OF_YEAR", "WEEKOFYEAR"),
		part("DAYOFYEAR", "DOY", "the day of the year, from 1", "DAYOFYEAR(DATE '2024-02-24')", "55"),
		part("DAYOFMONTH", "DAY", "the day of the month, from 1", "DAYOFMONTH(DATE '2024-02-24')", "24", "DAY"),
		part("DAYOFWEEK", "DOW", "the day of the week, 1 is Sunday", "DAYOFWEEK(DATE '2024-02-24')", "7"),
		part("HOUR", "HOUR", "the hour, 0 to 23", "HOUR(TIMESTAMP '2024-02-24 23:13:42')", "23"),
		part("MINUTE", "MINUTE", "the minute, 0 to 59", "MINUTE(TIMESTAMP '2024-02-24 23:13:42')", "13"),
		part("SECOND", "SECOND", "the second, 0 to 59", "SECOND(TIMESTAMP '2024-02-24 23:13:42')", "42"),
		{Name: "DATE_FORMAT", Aliases: []string{"TO_CHAR"}, Signature: "DATE_FORMAT(time, pattern)", Summary: "a time, or a text that is one, by a Java pattern", Example: "DATE_FORMAT(TIMESTAMP '2024-02-24 23:13:42', 'yyyy.MM.dd')", ExampleResult: "2024.02.24", Args: "ts", Result: stringType(),
			Build: func(c *Call) (EvalFunc, error) {
				pat, err := patternArg(c, 1, nil)
				if err != nil {
					return nil, err
				}
				var zone *time.Location
				if c.ArgType(0).Kind == TTimestampLTZ {
					zone = c.Zone()
				}
				f := c.Arg(0)
				return func(env *Env, i int) record.Value {
					v, p := f(env, i), pat(env, i)
					if v.IsNull() || p == nil {
						return null
					}
					return appendPattern(env, p, v.Sec(), int64(v.Nsec()), zone)
				}, nil
			}},
		{Name: "TO_TIMESTAMP", Signature: "TO_TIMESTAMP(text[, pattern])", Summary: "a text as a timestamp, by a Java pattern; 'yyyy-MM-dd HH:mm:ss' with or without T, fraction and zone where none is given", Nulls: "NULL where an argument is, or the text doesn't fit", Example: "TO_TIMESTAMP('24/Feb/2024:23:13:42 +0100', 'dd/MMM/yyyy:HH:mm:ss Z')", ExampleResult: "2024-02-24 22:13:42.000", Args: "s?s", Result: timestampType(3),
			Build: func(c *Call) (EvalFunc, error) {
				if err := textOnly(c); err != nil {
					return nil, err
				}
				return parseTimeArg(c, true, makeMilli)
			}},
		{Name: "TO_TIMESTAMP_LTZ", Signature: "TO_TIMESTAMP_LTZ(number[, 0 or 3]) or TO_TIMESTAMP_LTZ(text[, pattern])", Summary: "an instant from seconds (0) or milliseconds (3, the default) since 1970, or from a text in the pipeline's zone", Nulls: "NULL where an argument is, or the text doesn't fit", Example: "TO_TIMESTAMP_LTZ(1708816422, 0)", ExampleResult: "2024-02-24 23:13:42.000", Args: "x?xs", Result: ltz3,
			Build: func(c *Call) (EvalFunc, error) {
				if c.ArgType(0).isText() {
					return parseTimeArg(c, false, makeMilli)
				}
				if t := c.ArgType(0); !t.isNumeric() && !t.isDynamic() {
					return nil, c.Errorf(0, "TO_TIMESTAMP_LTZ takes a number or text, not %s", t.nullable())
				}
				f := c.Arg(0)
				g := func(*Env, int) record.Value { return record.MakeInt(3) }
				if c.Len() > 1 {
					g = c.Arg(1)
				}
				return func(env *Env, i int) record.Value {
					n, ok := env.number(f(env, i))
					p := g(env, i)
					if !ok || p.Kind() != record.Int || p.Int() != 0 && p.Int() != 3 {
						return null
					}
					if n.Kind() == record.Float && p.Int() == 0 {
						n, p = record.MakeFloat(n.Float()*1000), record.MakeInt(3)
					}
					n = castInt(env, n, TBigInt)
					if n.IsNull() {
						return null
					}
					if p.Int() == 0 {
						return makeTime(n.Int(), 0, 3)
					}
					return makeTime(floorDiv(n.Int(), 1000), floorMod(n.Int(), 1000)*1e6, 3)
				}, nil
			}},
		{Name: "TO_DATE", Signature: "TO_DATE(text[, pattern])", Summary: "a text as a date, by a Java pattern; 'yyyy-MM-dd' where none is given", Nulls: "NULL where an argument is, or the text doesn't fit", Example: "TO_DATE('24/02/2024', 'dd/MM/yyyy')", ExampleResult: "2024-02-24", Args: "s?s", Result: simple(TDate),
			Build: func(c *Call) (EvalFunc, error) {
				if err := textOnly(c); err != nil {
					return nil, err
				}
				if c.Len() == 1 {
					f := c.Arg(0)
					return func(env *Env, i int) record.Value {
						v := f(env, i)
						if v.IsNull() {
							return null
						}
						d, ok := parseDateText(env.bytes(v))
						if !ok {
							return null
						}
						return makeDate(d)
					}, nil
				}
				// What follows the date is ignored, as in Flink; so is a weekday that doesn't fit, and the zone.
				pat, err := patternArg(c, 1, nil)
				if err != nil {
					return nil, err
				}
				f := c.Arg(0)
				return func(env *Env, i int) record.Value {
					v, p := f(env, i), pat(env, i)
					if v.IsNull() || p == nil || len(p.ops) == 0 {
						return null
					}
					sec, _, off, ok := p.parsePrefix(env.bytes(v), nil, false, true)
					if !ok {
						return null
					}
					return makeDate(floorDiv(sec+off, 86400))
				}, nil
			}},
		{Name: "UNIX_TIMESTAMP", Signature: "UNIX_TIMESTAMP([text[, pattern]])", Summary: "seconds since 1970: of now, or of a text in the pipeline's zone", Nulls: "NULL where an argument is, or the text doesn't fit", Example: "UNIX_TIMESTAMP('2024-02-24 23:13:42')", ExampleResult: "1708816422", Args: "?ss", Volatile: true,
			Type: func(c *Call) (Type, error) { return simple(TBigInt).null(c.NotNull()), nil },
			Build: func(c *Call) (EvalFunc, error) {
				if c.Len() == 0 {
					now := c.Now()
					return func(*Env, int) record.Value { return record.MakeInt(now().Unix()) }, nil
				}
				if err := textOnly(c); err != nil {
					return nil, err
				}
				return parseTimeArg(c, false, func(_ *Env, sec, _ int64) record.Value { return record.MakeInt(sec) })
			}},
		{Name: "FROM_UNIXTIME", Signature: "FROM_UNIXTIME(seconds[, pattern])", Summary: "seconds since 1970 as text in the pipeline's zone", Example: "FROM_UNIXTIME(1708816422, 'yyyy-MM-dd')", ExampleResult: "2024-02-24", Args: "i?s", Result: stringType(),
			Build: func(c *Call) (EvalFunc, error) {
				pat, err := patternArg(c, 1, patISO)
				if err != nil {
					return nil, err
				}
				f, zone := c.Arg(0), c.Zone()
				return func(env *Env, i int) record.Value {
					v, p := f(env, i), pat(env, i)
					if v.IsNull() || p == nil {
						return null
					}
					if n := v.Int(); n > 1<<38 || n < -(1<<36) { // beyond year 9999 or so
						return null
					}
					return appendPattern(env, p, v.Int(), 0, zone)
				}, nil
			}},
		{Name: "CONVERT_TZ", Signature: "CONVERT_TZ(text, from, to)", Summary: "the time 'yyyy-MM-dd HH:mm:ss' of one zone in another", Nulls: "NULL where an argument is, or the text is no such time", Example: "CONVERT_TZ('2024-07-01 12:00:00', 'UTC', 'America/New_York')", ExampleResult: "2024-07-01 08:00:00", Args: "sss", Result: stringType(),
			Fn: func(env *Env, a []record.Value) record.Value {
				s, ok := parseStamp(env.bytes(a[0]))
				if !ok || !s.hasTime || s.hasZone {
					return null
				}
				from, to := env.zone(env.bytes(a[1])), env.zone(env.bytes(a[2]))
				if from == nil || to == nil {
					return null
				}
				return appendPattern(env, patISO, localToUTC(from, s.days*86400+s.ns/nsSecond), 0, to)
			}},
		{Name: "TIMESTAMPADD", Signature: "TIMESTAMPADD(unit, n, time)", Summary: "a time moved by n units", Example: "TIMESTAMPADD(MONTH, 1, DATE '2024-01-31')", ExampleResult: "2024-02-29", Args: "uix",
			Type: func(c *Call) (Type, error) {
				t := c.ArgType(2)
				if n := unitNanos(c.Node.Args[0].Name); t.Kind == TDate && n > 0 && n < nsDay {
					t = timestampType(0)
					if n < nsSecond {
						t.Prec = 3
					}
				}
				if t.isText() {
					t = timestampType(3)
				}
				return t.null(c.ArgType(1).NotNull && c.ArgType(2).NotNull), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				unit := c.Node.Args[0].Name
				months := monthsOf(unit)
				nanos := unitNanos(unit)
				if months == 0 && nanos == 0 {
					return nil, c.Errorf(0, "TIMESTAMPADD doesn't know %s", unit)
				}
				f, g := c.Arg(1), c.Arg(2)
				return func(env *Env, i int) record.Value {
					n, v := f(env, i), g(env, i)
					if v.Kind() == record.String {
						s, ok := parseStamp(env.bytes(v))
						if !ok {
							return null
						}
						v = s.value(3)
					}
					if n.IsNull() || v.IsNull() {
						return null
					}
					if months > 0 {
						m, ok := mul64(n.Int(), months)
						if !ok {
							return env.overflow()
						}
						return addInterval(v, record.Months, m)
					}
					if v.Kind() == record.Date && nanos < nsDay {
						v = asTime(v)
						if nanos < nsSecond {
							v = record.MakeTime(v.Sec(), 0, 3)
						}
					}
					// In days and seconds, so that 100 000 days don't overflow.
					if nanos >= nsSecond && v.Kind() == record.Time {
						s, ok := mul64(n.Int(), nanos/nsSecond)
						if !ok || s > 1<<40 || s < -(1<<40) {
							return env.overflow()
						}
						return makeTime(v.Sec()+s, int64(v.Nsec()), v.Digits())
					}
					d, ok := mul64(n.Int(), nanos)
					if !ok {
						return env.overflow()
					}
					return addInterval(v, record.Duration, d)
				}, nil
			}},
		{Name: "TIMESTAMPDIFF", Signature: "TIMESTAMPDIFF(unit, from, to)", Summary: "the whole units from one time to another", Example: "TIMESTAMPDIFF(DAY, DATE '2024-01-31', DATE '2024-03-01')", ExampleResult: "30", Args: "utt",
			Type: func(c *Call) (Type, error) {
				return simple(TInt).null(c.ArgType(1).NotNull && c.ArgType(2).NotNull), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				unit := c.Node.Args[0].Name
				months, nanos := monthsOf(unit), unitNanos(unit)
				if months == 0 && nanos == 0 {
					return nil, c.Errorf(0, "TIMESTAMPDIFF doesn't know %s", unit)
				}
				f, g := c.Arg(1), c.Arg(2)
				return func(env *Env, i int) record.Value {
					a, b := f(env, i), g(env, i)
					if a.IsNull() || b.IsNull() {
						return null
					}
					if months > 0 {
						return fitInt(env, monthsBetween(a, b)/months, TInt)
					}
					if nanos < nsSecond {
						s, ok := mul64(b.Sec()-a.Sec(), nsSecond/nanos)
						if !ok {
							return env.overflow()
						}
						return fitInt(env, s+(int64(b.Nsec())-int64(a.Nsec()))/nanos, TInt)
					}
					s := b.Sec() - a.Sec()
					if d := int64(b.Nsec()) - int64(a.Nsec()); d < 0 && s > 0 {
						s--
					} else if d > 0 && s < 0 {
						s++
					}
					return fitInt(env, s/(nanos/nsSecond), TInt)
				}, nil
			}},
		clockFunc("NOW", "the current time", "NOW() > TIMESTAMP '2020-01-01 00:00:00'", ltz3, milli, "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP", "PROCTIME"),
		clockFunc("LOCALTIMESTAMP", "the current time in the pipeline's zone, as TIMESTAMP", "LOCALTIMESTAMP > TIMESTAMP '2020-01-01 00:00:00'", timestampType(3), func(n time.Time, z *time.Location) record.Value {
			return record.MakeTime(local(n, z), uint32(n.Nanosecond()/1e6*1e6), 3)
		}),
		clockFunc("CURRENT_DATE", "the current date in the pipeline's zone", "CURRENT_DATE > DATE '2020-01-01'", simple(TDate), func(n time.Time, z *time.Location) record.Value {
			return record.MakeDate(floorDiv(local(n, z), 86400))
		}),
		clockFunc("CURRENT_TIME", "the current time of day in the pipeline's zone", "CURRENT_TIME IS NOT NULL", Type{Kind: TTime}, func(n time.Time, z *time.Location) record.Value {
			return record.MakeClock(floorMod(local(n, z), 86400)*nsSecond, 0)
		}, "LOCALTIME"),
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}

func textOnly(c *Call) error {
	if t := c.ArgType(0); !t.isText() && !t.isDynamic() {
		return c.Errorf(0, "%s takes text, not %s", c.fn.Name, t.nullable())
	}
	return nil
}

func monthsOf(unit string) int64 {
	return map[string]int64{"MONTH": 1, "QUARTER": 3, "YEAR": 12, "DECADE": 120, "CENTURY": 1200, "MILLENNIUM": 12000}[unit]
}

// monthsBetween counts whole months from a to b. The last day of a shorter
// month completes one, as in Flink.
func monthsBetween(a, b record.Value) int64 {
	if cmpTime(a, b) > 0 {
		return -monthsBetween(b, a)
	}
	da, db := floorDiv(a.Sec(), 86400), floorDiv(b.Sec(), 86400)
	ya, ma, _ := civil(da)
	yb, mb, _ := civil(db)
	n := (yb-ya)*12 + mb - ma
	at := makeTime(addMonths(da, n)*86400+a.Sec()-da*86400, int64(a.Nsec()), 9)
	if n > 0 && cmpTime(at, b) > 0 {
		n--
	}
	return min(n, math.MaxInt32+1)
}

// zone finds a time zone by name, once for each.
func (env *Env) zone(name []byte) *time.Location {
	return cached(env, patternKey{kind: 'z'}, name, func(s string) *time.Location {
		if s == "" || s == "Local" {
			return nil
		}
		for _, prefix := range []string{"GMT", "UTC", ""} {
			if len(s) > len(prefix) && s[:len(prefix)] == prefix {
				if off, n, ok := parseOffset([]byte(s[len(prefix):])); ok && n == len(s)-len(prefix) {
					return time.FixedZone(s, int(off))
				}
			}
		}
		l, err := time.LoadLocation(s)
		if err != nil {
			return nil
		}
		return l
	})
}
