package expr

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rsetl/rsetl/record"
)

// castable tells whether a cast can be meant at all; the others are load errors.
func castable(from, to Type) bool {
	if from.isDynamic() || to.IsAny() || to.isText() {
		return true
	}
	switch {
	case to.isBytes():
		return from.isText() || from.isBytes()
	case to.isNumeric():
		return from.isNumeric() || from.isText() || from.Kind == TBoolean
	case to.Kind == TBoolean:
		return from.isNumeric() || from.isText() || from.Kind == TBoolean
	case to.Kind == TDate:
		return from.Kind == TDate || from.isTimestamp() || from.isText()
	case to.Kind == TTime:
		return from.Kind == TTime || from.isTimestamp() || from.isText()
	case to.isTimestamp():
		return from.Kind == TTime || from.Kind == TDate || from.isTimestamp() || from.isText()
	case to.isInterval():
		return from.Kind == to.Kind || from.isInt()
	case to.Kind == TArray:
		return from.Kind == TArray && castable(*from.Elem, *to.Elem)
	case to.Kind == TMap:
		return from.Kind == TMap && castable(*from.Key, *to.Key) && castable(*from.Elem, *to.Elem)
	case to.Kind == TRow:
		if from.Kind != TRow || len(from.Cols) != len(to.Cols) {
			return false
		}
		for i := range to.Cols {
			if !castable(from.Cols[i].Type, to.Cols[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// caster converts values of type from to type to; NULL where one can't be.
type caster struct {
	from, to Type
	zone     *time.Location
}

func (c *caster) cast(env *Env, v record.Value) record.Value {
	if v.IsNull() {
		return null
	}
	return castValue(env, v, &c.from, &c.to, c.zone)
}

func castValue(env *Env, v record.Value, from, to *Type, zone *time.Location) record.Value {
	if v.IsNull() {
		return null
	}
	k := v.Kind()
	switch to.Kind {
	case TBoolean:
		switch k {
		case record.Bool:
			return v
		case record.Int:
			return record.MakeBool(v.Int() != 0)
		case record.Float:
			return record.MakeBool(v.Float() != 0)
		case record.Decimal:
			return record.MakeBool(v.IsBig() || v.Int() != 0)
		case record.String:
			if b, ok := parseBool(env.bytes(v)); ok {
				return record.MakeBool(b)
			}
		}
		return null
	case TTinyInt, TSmallInt, TInt, TBigInt:
		return castInt(env, v, to.Kind)
	case TFloat, TDouble:
		var f float64
		switch k {
		case record.Bool:
			if v.Bool() {
				f = 1
			}
		case record.Int, record.Float, record.Decimal:
			f = env.float(v)
		case record.String:
			var ok bool
			if f, ok = castFloat(env, v); !ok {
				return null
			}
		default:
			return null
		}
		if to.Kind == TFloat {
			f = float64(float32(f))
		}
		return record.MakeFloat(f)
	case TDecimal:
		switch k {
		case record.Bool:
			n := int64(0)
			if v.Bool() {
				n = 1
			}
			return fitDecimal(env, record.MakeInt(n), to.Prec, to.Scale)
		case record.Int, record.Decimal:
			return fitDecimal(env, v, to.Prec, to.Scale)
		case record.Float:
			if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
				return null
			}
			var tmp [40]byte
			u, s, ok := parseDecimal(appendText(tmp[:0], env.B, v, from))
			if !ok {
				return null
			}
			return fitBig(env, rescaleBig(u, s, to.Scale), to.Prec, to.Scale)
		case record.String:
			p := trimSpace(env.bytes(v))
			if n, ok := ParseNumber(p); ok && n.Kind() != record.Float {
				return fitDecimal(env, n, to.Prec, to.Scale)
			}
			u, s, ok := parseDecimal(p)
			if !ok {
				return null
			}
			return fitBig(env, rescaleBig(u, s, to.Scale), to.Prec, to.Scale)
		}
		return null
	case TChar, TVarchar:
		return castText(env, v, from, to, zone)
	case TBinary, TVarbinary:
		if k != record.String && k != record.Bytes {
			return null
		}
		if v.Len() > to.Prec {
			v = v.Sub(0, to.Prec)
		}
		if to.Kind == TBinary && v.Len() < to.Prec && to.Prec < 1<<20 {
			off := len(env.B.Buf)
			env.B.Buf = append(env.B.Buf, env.bytes(v)...)
			for n := v.Len(); n < to.Prec; n++ {
				env.B.Buf = append(env.B.Buf, 0)
			}
			v = env.B.Since(off)
		}
		return v.As(record.Bytes)
	case TDate:
		switch k {
		case record.Date:
			return v
		case record.Time:
			return record.MakeDate(floorDiv(v.Sec()+zoneOffset(from, zone, v), 86400))
		case record.String:
			if d, ok := parseDateText(env.bytes(v)); ok {
				return record.MakeDate(d)
			}
		}
		return null
	case TTime:
		switch k {
		case record.Clock:
			return record.MakeClock(v.Int()/nsSecond*nsSecond, 0)
		case record.Time:
			return record.MakeClock(floorMod(v.Sec()+zoneOffset(from, zone, v), 86400)*nsSecond, 0)
		case record.String:
			if ns, ok := parseClockText(env.bytes(v)); ok {
				return record.MakeClock(ns/nsSecond*nsSecond, 0)
			}
		}
		return null
	case TTimestamp, TTimestampLTZ:
		return castTime(env, v, from, to, zone)
	case TIntervalMonth:
		if k == record.Months {
			return v
		}
		if k == record.Int {
			return record.MakeMonths(v.Int())
		}
		return null
	case TIntervalSecond:
		if k == record.Duration {
			return v
		}
		if k == record.Int {
			if ns, ok := mul64(v.Int(), 1e6); ok {
				return record.MakeDuration(ns)
			}
		}
		return null
	case TArray, TRow:
		if k != record.Array {
			return null
		}
		n := v.Len()
		base := len(env.items)
		for i := range n {
			e := env.B.Items(v)[i]
			var ft, tt *Type
			if ft, tt = elemType(from, i), elemType(to, i); ft == nil {
				ft = &Any
			}
			if tt == nil {
				tt = &Any
			}
			c := castValue(env, e, ft, tt, zone)
			if c.IsNull() && !e.IsNull() { // one bad element fails the whole cast
				env.items = env.items[:base]
				return null
			}
			env.items = append(env.items, c)
		}
		out := env.B.PutItems(record.Array, env.items[base:])
		env.items = env.items[:base]
		return out
	case TMap:
		if k != record.Map {
			return null
		}
		base := len(env.items)
		for i := range 2 * v.Len() {
			e := env.B.Items(v)[i]
			ft, tt := keyType(from), keyType(to)
			if i%2 == 1 {
				ft, tt = elemType(from, 0), elemType(to, 0)
			}
			if ft == nil {
				ft = &Any
			}
			c := castValue(env, e, ft, tt, zone)
			if c.IsNull() && !e.IsNull() {
				env.items = env.items[:base]
				return null
			}
			env.items = append(env.items, c)
		}
		out := env.B.PutItems(record.Map, env.items[base:])
		env.items = env.items[:base]
		return out
	}
	return v
}

// zoneOffset is what to add to an instant to get the wall clock of its type.
func zoneOffset(t *Type, zone *time.Location, v record.Value) int64 {
	if t.Kind != TTimestampLTZ {
		return 0
	}
	return offsetAt(zone, v.Sec())
}

func castTime(env *Env, v record.Value, from, to *Type, zone *time.Location) record.Value {
	ltz := to.Kind == TTimestampLTZ
	switch v.Kind() {
	case record.Time:
		sec := v.Sec()
		if ltz && from.Kind == TTimestamp {
			sec = localToUTC(zone, sec)
		} else if !ltz {
			sec += zoneOffset(from, zone, v)
		}
		return makeTime(sec, cutNanos(int64(v.Nsec()), to.Prec), to.Prec)
	case record.Date:
		sec := v.Int() * 86400
		if ltz {
			sec = localToUTC(zone, sec)
		}
		return makeTime(sec, 0, to.Prec)
	case record.Clock:
		return makeTime(v.Int()/nsSecond, cutNanos(v.Int()%nsSecond, to.Prec), to.Prec)
	case record.String:
		p := env.bytes(v)
		if len(p) == 0 || isSpace(p[0]) || isSpace(p[len(p)-1]) { // as Flink, here only
			return null
		}
		s, ok := parseStamp(p)
		if !ok {
			return null
		}
		sec := s.days*86400 + s.ns/nsSecond - s.offset
		if ltz && !s.hasZone {
			sec = localToUTC(zone, sec)
		}
		return makeTime(sec, cutNanos(s.ns%nsSecond, to.Prec), to.Prec)
	}
	return null
}

func cutNanos(ns int64, digits int) int64 {
	u := int64(1)
	for k := digits; k < 9; k++ {
		u *= 10
	}
	return ns / u * u
}

func castInt(env *Env, v record.Value, k TypeKind) record.Value {
	switch v.Kind() {
	case record.Int:
		return fitInt(env, v.Int(), k)
	case record.Bool:
		if v.Bool() {
			return record.MakeInt(1)
		}
		return record.MakeInt(0)
	case record.Float:
		f := math.Trunc(v.Float())
		if f != f {
			return record.MakeInt(0)
		}
		if f < -(1<<63) || f >= 1<<63 {
			return env.overflow()
		}
		return fitInt(env, int64(f), k)
	case record.Decimal:
		n, ok := decInt(env.B, v)
		if !ok {
			return env.overflow()
		}
		return fitInt(env, n, k)
	case record.String:
		n, ok := parseInt(trimSpace(env.bytes(v)))
		if !ok || k != TAny && (n > intMax[k] || n < intMin[k]) {
			return null
		}
		return record.MakeInt(n)
	}
	return null
}

// parseInt reads digits with an optional sign and a fraction, which is cut off.
func parseInt(p []byte) (int64, bool) {
	for i, c := range p {
		if c == '.' {
			for _, d := range p[i+1:] {
				if d < '0' || d > '9' {
					return 0, false
				}
			}
			if i == 0 || i == 1 && (p[0] == '-' || p[0] == '+') {
				return 0, len(p) > i+1
			}
			p = p[:i]
			break
		}
	}
	neg := false
	if len(p) > 0 && (p[0] == '-' || p[0] == '+') {
		neg = p[0] == '-'
		p = p[1:]
	}
	if len(p) == 0 {
		return 0, false
	}
	var n int64 // negative, so that the smallest fits
	for _, c := range p {
		if c < '0' || c > '9' || n < math.MinInt64/10 {
			return 0, false
		}
		n *= 10
		d := int64(c - '0')
		if n < math.MinInt64+d {
			return 0, false
		}
		n -= d
	}
	if neg {
		return n, true
	}
	if n == math.MinInt64 {
		return 0, false
	}
	return -n, true
}

func castFloat(env *Env, v record.Value) (float64, bool) {
	if n, ok := env.number(v); ok {
		if n.Kind() == record.Float {
			return n.Float(), true
		}
		if n.Kind() == record.Decimal {
			return parseFloat(trimSpace(env.bytes(v)))
		}
		return env.float(n), true
	}
	p := trimSpace(env.bytes(v))
	if n := len(p); n > 1 && (p[n-1]|0x20 == 'f' || p[n-1]|0x20 == 'd') { // Java's suffixes
		if n, ok := ParseNumber(p[:n-1]); ok {
			return env.float(n), true
		}
	}
	return 0, false
}

func parseBool(p []byte) (bool, bool) {
	if len(p) > 5 {
		return false, false
	}
	switch strings.ToLower(string(p)) {
	case "true", "t", "yes", "y", "1":
		return true, true
	case "false", "f", "no", "n", "0":
		return false, true
	}
	return false, false
}

func castText(env *Env, v record.Value, from, to *Type, zone *time.Location) record.Value {
	if v.Kind() != record.String {
		if from.Kind == TTimestampLTZ && v.Kind() == record.Time {
			v = makeTime(v.Sec()+offsetAt(zone, v.Sec()), int64(v.Nsec()), v.Digits())
		}
		off := len(env.B.Buf)
		env.B.Buf = appendText(env.B.Buf, env.B, v, from)
		v = env.B.Since(off)
	}
	if to.Prec >= maxLen {
		return v
	}
	p := env.bytes(v)
	n := utf8.RuneCount(p)
	if n > to.Prec {
		i := 0
		for range to.Prec {
			_, w := utf8.DecodeRune(p[i:])
			i += w
		}
		return v.Sub(0, i)
	}
	if to.Kind == TChar && n < to.Prec && to.Prec < 1<<20 {
		off := len(env.B.Buf)
		env.B.Buf = append(env.B.Buf, p...)
		for ; n < to.Prec; n++ {
			env.B.Buf = append(env.B.Buf, ' ')
		}
		return env.B.Since(off)
	}
	return v
}

// literalDecimal reads a number with a point, or beyond 64 bits.
func literalDecimal(b *record.Batch, text string) (record.Value, Type, bool) {
	u, s, ok := parseDecimal([]byte(text))
	if !ok {
		return null, Any, false
	}
	p := 0 // the digits as written, leading zeros too, as in Calcite
	for _, c := range text {
		if c >= '0' && c <= '9' {
			p++
		}
	}
	if p > 38 {
		return null, Any, false
	}
	return b.BigDecimal(u, s), decimalType(p, s).notNull(), true
}
