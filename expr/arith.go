package expr

import (
	"math"

	"github.com/rsetl/rsetl/record"
)

// arithType is the static type of a op b.
func arithType(op byte, a, b Type) (Type, bool) {
	nn := a.NotNull && b.NotNull
	if a.isDynamic() || b.isDynamic() {
		if a.Kind == TNull && !b.isDynamic() {
			return b.nullable(), true
		}
		if b.Kind == TNull && !a.isDynamic() {
			return a.nullable(), true
		}
		return Any, true
	}
	if a.isNumeric() && b.isNumeric() {
		switch {
		case a.isFloat() || b.isFloat():
			k := TDouble
			if (a.Kind == TFloat || a.isInt()) && (b.Kind == TFloat || b.isInt()) {
				k = TFloat
			}
			return simple(k).null(nn), true
		case a.isInt() && b.isInt():
			return simple(max(a.Kind, b.Kind)).null(nn), true
		}
		p1, s1 := a.asDecimal()
		p2, s2 := b.asDecimal()
		var p, s int
		switch op {
		case '+', '-':
			s = max(s1, s2)
			p = max(p1-s1, p2-s2) + s + 1
		case '*':
			p, s = p1+p2+1, s1+s2
		case '/':
			s = max(6, s1+p2+1)
			p = p1 - s1 + s2 + s
		default:
			s = max(s1, s2)
			p = min(p1-s1, p2-s2) + s
		}
		if p > 38 {
			s = max(38-(p-s), min(s, 6))
			p = 38
		}
		return decimalType(p, s).null(nn), true
	}
	// Text in arithmetic is read as a number when it is one.
	if op != 0 && (a.isText() && (b.isNumeric() || b.isText()) || b.isText() && a.isNumeric()) {
		return Any, true
	}
	timeLike := func(t Type) bool { return t.isTimestamp() || t.Kind == TDate || t.Kind == TTime }
	switch op {
	case '+':
		if timeLike(a) && b.isInterval() {
			return a.null(nn), true
		}
		if timeLike(b) && a.isInterval() {
			return b.null(nn), true
		}
		if a.Kind == b.Kind && a.isInterval() {
			return a.null(nn), true
		}
	case '-':
		if timeLike(a) && b.isInterval() {
			return a.null(nn), true
		}
		if a.Kind == b.Kind && a.isInterval() {
			return a.null(nn), true
		}
		if timeLike(a) && timeLike(b) && (a.Kind == TTime) == (b.Kind == TTime) {
			return intervalType("SECOND", "", -1).null(nn), true
		}
	case '*':
		if a.isInterval() && b.isNumeric() {
			return a.null(nn), true
		}
		if b.isInterval() && a.isNumeric() {
			return b.null(nn), true
		}
	case '/':
		if a.isInterval() && b.isNumeric() {
			return a.null(nn), true
		}
	}
	return Any, false
}

var intMax = [...]int64{TTinyInt: math.MaxInt8, TSmallInt: math.MaxInt16, TInt: math.MaxInt32, TBigInt: math.MaxInt64}
var intMin = [...]int64{TTinyInt: math.MinInt8, TSmallInt: math.MinInt16, TInt: math.MinInt32, TBigInt: math.MinInt64}

// fitInt makes an integer of kind k; NULL, counted, where it doesn't fit.
func fitInt(env *Env, n int64, k TypeKind) record.Value {
	if k >= TTinyInt && k <= TInt && (n > intMax[k] || n < intMin[k]) {
		return env.overflow()
	}
	return record.MakeInt(n)
}

// arith computes a op b; t is its static type. NULL where one is NULL, is no
// number, or where the divisor is zero (integers and decimals).
func arith(env *Env, op byte, a, b record.Value, t *Type) record.Value {
	ka, kb := a.Kind(), b.Kind()
	if ka <= record.Null || kb <= record.Null {
		return null
	}
	if ka == record.Int && kb == record.Int && (t.Kind <= TBigInt) {
		return arithInt(env, op, a.Int(), b.Int(), t.Kind)
	}
	if ka == record.String && !isInterval(kb) && kb < record.Date {
		n, ok := env.number(a)
		if !ok {
			return null
		}
		a, ka = n, n.Kind()
	}
	if kb == record.String && isNum(ka) {
		n, ok := env.number(b)
		if !ok {
			return null
		}
		b, kb = n, n.Kind()
	}
	if ka == record.Int && kb == record.Int && t.Kind <= TBigInt {
		return arithInt(env, op, a.Int(), b.Int(), t.Kind)
	}
	if isNum(ka) && isNum(kb) {
		if ka == record.Float || kb == record.Float || t.isFloat() {
			x, y := env.float(a), env.float(b)
			if t.Kind == TFloat {
				return record.MakeFloat(float64(float32(arithFloat(op, x, y))))
			}
			return record.MakeFloat(arithFloat(op, x, y))
		}
		if t.Kind == TDecimal {
			return decArith(env, op, a, b, t.Prec, t.Scale)
		}
		return decArith(env, op, a, b, 38, -1)
	}
	return arithTime(env, op, a, b)
}

func arithFloat(op byte, x, y float64) float64 {
	switch op {
	case '+':
		return x + y
	case '-':
		return x - y
	case '*':
		return x * y
	case '/':
		return x / y
	}
	return math.Mod(x, y)
}

func arithInt(env *Env, op byte, x, y int64, k TypeKind) record.Value {
	var r int64
	ok := true
	switch op {
	case '+':
		r = x + y
		ok = (r > x) == (y > 0)
	case '-':
		r = x - y
		ok = (r < x) == (y > 0)
	case '*':
		r, ok = mul64(x, y)
	case '/':
		if y == 0 {
			return null
		}
		if y == -1 {
			r, ok = -x, x != math.MinInt64
		} else {
			r = x / y
		}
	default:
		if y == 0 {
			return null
		}
		if y != -1 {
			r = x % y
		}
	}
	if !ok {
		return env.overflow()
	}
	return fitInt(env, r, k)
}

func isInterval(k record.Kind) bool { return k == record.Months || k == record.Duration }

func arithTime(env *Env, op byte, a, b record.Value) record.Value {
	ka, kb := a.Kind(), b.Kind()
	switch op {
	case '+', '-':
		if isInterval(ka) && ka == kb {
			x, y := a.Int(), b.Int()
			if op == '-' {
				y = -y
			}
			r, ok := add64(x, y)
			if !ok {
				return env.overflow()
			}
			return makeInterval(ka, r)
		}
		if isInterval(ka) && op == '+' {
			a, b, ka, kb = b, a, kb, ka
		}
		if ka == record.String { // a time as text
			st, ok := parseStamp(env.bytes(a))
			if !ok {
				return null
			}
			a, ka = st.value(st.digits), record.Time
		}
		if isInterval(kb) {
			n := b.Int()
			if op == '-' {
				n = -n
			}
			return addInterval(a, kb, n)
		}
		if op == '-' && ka == record.Clock && kb == record.Clock {
			return record.MakeDuration(a.Int() - b.Int())
		}
		if op == '-' && (ka == record.Time || ka == record.Date) && (kb == record.Time || kb == record.Date) {
			x, y := asTime(a), asTime(b)
			ds := x.Sec() - y.Sec()
			ns, ok := mul64(ds, nsSecond)
			if !ok {
				return env.overflow()
			}
			return record.MakeDuration(ns + int64(x.Nsec()) - int64(y.Nsec()))
		}
	case '*', '/':
		if isInterval(kb) && op == '*' {
			a, b, ka, kb = b, a, kb, ka
		}
		if !isInterval(ka) || !isNum(kb) {
			return null
		}
		if kb == record.Int && op == '*' {
			r, ok := mul64(a.Int(), b.Int())
			if !ok {
				return env.overflow()
			}
			return makeInterval(ka, r)
		}
		f := arithFloat(op, float64(a.Int()), env.float(b))
		if !(f > -9.2e18 && f < 9.2e18) {
			return env.overflow()
		}
		return makeInterval(ka, int64(f))
	}
	return null
}

func makeInterval(k record.Kind, n int64) record.Value {
	if k == record.Months {
		return record.MakeMonths(n)
	}
	return record.MakeDuration(n)
}

func asTime(v record.Value) record.Value {
	if v.Kind() == record.Date {
		return record.MakeTime(v.Int()*86400, 0, 0)
	}
	return v
}

// addInterval moves a date, time of day or timestamp; k is the interval's kind.
func addInterval(a record.Value, k record.Kind, n int64) record.Value {
	const limit = 12 * 20000
	if k == record.Months && (n > limit || n < -limit) {
		return null
	}
	switch a.Kind() {
	case record.Date:
		if k == record.Months {
			return makeDate(addMonths(a.Int(), n))
		}
		return makeDate(a.Int() + floorDiv(n, nsDay))
	case record.Time:
		if k == record.Months {
			d := floorDiv(a.Sec(), 86400)
			return makeTime(addMonths(d, n)*86400+a.Sec()-d*86400, int64(a.Nsec()), a.Digits())
		}
		digits := a.Digits()
		if digits < 3 && n%nsSecond != 0 { // so that what is added shows
			digits = 3
		}
		return makeTime(a.Sec()+n/nsSecond, int64(a.Nsec())+n%nsSecond, digits)
	case record.Clock:
		if k == record.Months {
			return a
		}
		return record.MakeClock(floorMod(a.Int()+n%nsDay, nsDay), a.Digits())
	}
	return null
}
