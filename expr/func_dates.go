package expr

import (
	"strings"

	"github.com/rsetl/rsetl/record"
)

// weekdays are the names that NEXT_DAY takes, by their first two letters, Monday first.
var weekdays = []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"}

// units are the names of units of time as texts, for functions that take them so.
var units = map[string]string{"MICROSECONDS": "MICROSECOND", "MILLISECONDS": "MILLISECOND", "SECONDS": "SECOND", "MINUTES": "MINUTE", "HOURS": "HOUR", "DAYS": "DAY",
	"WEEKS": "WEEK", "MONTHS": "MONTH", "QUARTERS": "QUARTER", "YEARS": "YEAR", "MON": "MONTH", "MI": "MINUTE", "HH": "HOUR", "SS": "SECOND", "DD": "DAY", "MM": "MONTH", "YYYY": "YEAR"}

// unitArg gives a constant unit's name.
func unitArg(c *Call, i int) (string, error) {
	s, ok := c.ConstText(i)
	if !ok {
		return "", c.Errorf(i, "the unit is a constant text: 'day'")
	}
	u := strings.ToUpper(s)
	if full, ok := units[u]; ok {
		u = full
	}
	if !intervalUnit[u] && u != "DECADE" && u != "CENTURY" && u != "MILLENNIUM" && u != "EPOCH" && u != "DOW" && u != "ISODOW" && u != "DOY" && u != "ISOYEAR" && u != "MILLISECOND" && u != "MICROSECOND" {
		return "", c.Errorf(i, "%q is no unit of time; there are year, quarter, month, week, day, hour, minute, second", s)
	}
	return u, nil
}

// timeIn gives argument i as a time, or as a date where it is one, and what to add for its wall clock.
func timeIn(c *Call, i int) func(env *Env, rec int) (v record.Value, off int64) {
	f, zone, ltz := c.Arg(i), c.Zone(), c.ArgType(i).Kind == TTimestampLTZ
	return func(env *Env, rec int) (record.Value, int64) {
		v := f(env, rec)
		if v.Kind() == record.String {
			s, ok := parseStamp(env.bytes(v))
			if !ok {
				return null, 0
			}
			v = s.value(3)
		}
		off := int64(0)
		if ltz && v.Kind() == record.Time {
			off = offsetAt(zone, v.Sec())
		}
		if v.Kind() != record.Time && v.Kind() != record.Date {
			return null, 0
		}
		return v, off
	}
}

// dayOf is the day of a time, in days since 1970.
func dayOf(v record.Value, off int64) int64 {
	if v.Kind() == record.Date {
		return v.Int()
	}
	return floorDiv(v.Sec()+off, 86400)
}

// sameKind is the type of argument 0 where it is a time, else TIMESTAMP(3).
func sameKind(c *Call) (Type, error) {
	t := c.ArgType(0)
	if t.Kind == TDate || t.isTimestamp() {
		return t.nullable(), nil
	}
	return timestampType(3), nil
}

func dateFuncs() []Function {
	const cat = "time"
	// shift adds to a time; one that has no time of day keeps none unless hours are added.
	shift := func(name, unit, summary, example, result string, aliases ...string) Function {
		return Function{Name: name, Aliases: aliases, Signature: name + "(time, count)", Summary: summary, Example: example, ExampleResult: result, Args: "xi", Type: sameKind,
			Build: func(c *Call) (EvalFunc, error) {
				get, n := timeIn(c, 0), c.Arg(1)
				return func(env *Env, i int) record.Value {
					v, off := get(env, i)
					k := n(env, i)
					if v.IsNull() || k.IsNull() {
						return null
					}
					count := k.Int()
					if count < -1e7 || count > 1e7 {
						return env.overflow()
					}
					if unit == "HOUR" {
						if v.Kind() == record.Date {
							return makeTime(v.Int()*86400+3600*count, 0, 3)
						}
						return makeTime(v.Sec()+3600*count, int64(v.Nsec()), v.Digits())
					}
					day := dayOf(v, off)
					to := day + count
					switch unit {
					case "MONTH":
						to = addMonths(day, count)
					case "YEAR":
						to = addMonths(day, 12*count)
					}
					if v.Kind() == record.Date {
						return makeDate(to)
					}
					return makeTime(v.Sec()+86400*(to-day), int64(v.Nsec()), v.Digits())
				}, nil
			}}
	}
	// day makes a date of a time's day.
	day := func(name, summary, example, result string, f func(day int64) int64) Function {
		return Function{Name: name, Signature: name + "(time)", Summary: summary, Example: example, ExampleResult: result, Args: "x", Result: simple(TDate),
			Build: func(c *Call) (EvalFunc, error) {
				get := timeIn(c, 0)
				return func(env *Env, i int) record.Value {
					v, off := get(env, i)
					if v.IsNull() {
						return null
					}
					return makeDate(f(dayOf(v, off)))
				}, nil
			}}
	}
	edge := func(name, summary, example, result string, end bool) Function {
		return Function{Name: name, Signature: name + "(time)", Summary: summary, Example: example, ExampleResult: result, Args: "x", Result: timestampType(3),
			Build: func(c *Call) (EvalFunc, error) {
				get := timeIn(c, 0)
				return func(env *Env, i int) record.Value {
					v, off := get(env, i)
					if v.IsNull() {
						return null
					}
					sec := dayOf(v, off)*86400 - off
					if end {
						return makeTime(sec+86399, 999e6, 3)
					}
					return makeTime(sec, 0, 3)
				}, nil
			}}
	}
	fs := []Function{
		shift("ADD_DAY", "DAY", "the time so many days later", "ADD_DAY(DATE '2024-02-28', 2)", "2024-03-01", "DATE_ADD", "ADD_DAYS"),
		shift("ADD_MONTH", "MONTH", "the time so many months later, at most the month's last day", "ADD_MONTH(DATE '2024-01-31', 1)", "2024-02-29", "ADD_MONTHS"),
		shift("ADD_YEAR", "YEAR", "the time so many years later", "ADD_YEAR(DATE '2024-02-29', 1)", "2025-02-28", "ADD_YEARS"),
		shift("ADD_HOUR", "HOUR", "the time so many hours later", "ADD_HOUR(TIMESTAMP '2024-02-24 23:13:42', 2)", "2024-02-25 01:13:42", "ADD_HOURS"),
		day("LAST_DAY", "the last day of the time's month", "LAST_DAY(DATE '2024-02-10')", "2024-02-29", func(d int64) int64 {
			y, m, _ := civil(d)
			return daysOf(y, m, monthDays(y, m))
		}),
		edge("DAY_BEGIN", "the first moment of the time's day", "DAY_BEGIN(TIMESTAMP '2024-02-24 23:13:42')", "2024-02-24 00:00:00.000", false),
		edge("DAY_END", "the last millisecond of the time's day", "DAY_END(TIMESTAMP '2024-02-24 23:13:42')", "2024-02-24 23:59:59.999", true),
		part("WEEKDAY", "ISODOW", "the day of the week, 1 is Monday", "WEEKDAY(DATE '2024-02-24')", "6"),
		{Name: "NEXT_DAY", Signature: "NEXT_DAY(time, weekday)", Summary: "the next day after the time that is that weekday: 'Mon', 'monday'", Nulls: "NULL for what is no weekday", Example: "NEXT_DAY(DATE '2024-02-24', 'Mon')", ExampleResult: "2024-02-26", Args: "xs", Result: simple(TDate),
			Build: func(c *Call) (EvalFunc, error) {
				get, name := timeIn(c, 0), c.Arg(1)
				return func(env *Env, i int) record.Value {
					v, off := get(env, i)
					w := name(env, i)
					if v.IsNull() || w.IsNull() || w.Len() < 2 {
						return null
					}
					head := strings.ToUpper(string(env.bytes(w)[:2]))
					for k, n := range weekdays {
						if n == head {
							d := dayOf(v, off)
							return makeDate(d + floorMod(int64(k+1)-isoWeekday(d)-1, 7) + 1)
						}
					}
					return null
				}, nil
			}},
		{Name: "DATE_DIFF", Aliases: []string{"DATEDIFF"}, Signature: "DATE_DIFF(end, start)", Summary: "the days from start to end", Example: "DATE_DIFF(DATE '2024-03-01', DATE '2024-02-28')", ExampleResult: "2", Args: "xx", Result: simple(TInt),
			Build: func(c *Call) (EvalFunc, error) {
				a, b := timeIn(c, 0), timeIn(c, 1)
				return func(env *Env, i int) record.Value {
					v, o := a(env, i)
					w, p := b(env, i)
					if v.IsNull() || w.IsNull() {
						return null
					}
					return record.MakeInt(dayOf(v, o) - dayOf(w, p))
				}, nil
			}},
		{Name: "DATE_TRUNC", Signature: "DATE_TRUNC(unit, time)", Summary: "the time cut to the unit, a constant text; weeks begin on Monday", Example: "DATE_TRUNC('hour', TIMESTAMP '2024-02-24 23:13:42')", ExampleResult: "2024-02-24 23:00:00", Args: "sx",
			Type: func(c *Call) (Type, error) {
				if t := c.ArgType(1); t.Kind == TDate || t.isTimestamp() {
					return t.nullable(), nil
				}
				return timestampType(3), nil
			},
			Build: func(c *Call) (EvalFunc, error) {
				unit, err := unitArg(c, 0)
				if err != nil {
					return nil, err
				}
				get := timeIn(c, 1)
				return func(env *Env, i int) record.Value {
					v, off := get(env, i)
					if v.IsNull() {
						return null
					}
					if unit == "WEEK" {
						d := dayOf(v, off)
						d -= isoWeekday(d) - 1
						if v.Kind() == record.Date {
							return makeDate(d)
						}
						return makeTime(d*86400-off, 0, v.Digits())
					}
					return roundTime(v, unit, false, off)
				}, nil
			}},
		{Name: "DATE_PART", Signature: "DATE_PART(unit, time)", Summary: "a field of the time; EXTRACT with the unit as a constant text", Example: "DATE_PART('month', DATE '2024-02-24')", ExampleResult: "2", Args: "sx", Result: simple(TBigInt),
			Build: func(c *Call) (EvalFunc, error) {
				unit, err := unitArg(c, 0)
				if err != nil {
					return nil, err
				}
				return extractFunc(c, unit, 1)
			}},
		{Name: "IS_DATE", Signature: "IS_DATE(text[, pattern])", Summary: "whether the text is a time, by a Java pattern where one is given", Example: "IS_DATE('2024-02-30')", ExampleResult: "FALSE", Args: "s?s", Result: booleanNN,
			Build: func(c *Call) (EvalFunc, error) {
				parse, err := parseTimeArg(c, true, func(*Env, int64, int64) record.Value { return record.MakeBool(true) })
				if err != nil {
					return nil, err
				}
				f := c.Arg(0)
				return func(env *Env, i int) record.Value {
					if f(env, i).IsNull() {
						return null
					}
					return record.MakeBool(!parse(env, i).IsNull())
				}, nil
			}},
	}
	for i := range fs {
		fs[i].Category = cat
	}
	return fs
}
