package expr

import (
	"bytes"

	"github.com/rsetl/rsetl/record"
)

func isNum(k record.Kind) bool {
	return k == record.Int || k == record.Float || k == record.Decimal
}

// compare orders two values; ok is false where the answer is NULL: one is
// NULL, or the kinds can't be compared. A text against another kind is read as
// that kind. NaN equals itself and is larger than everything, as in Java.
func compare(env *Env, a, b record.Value) (c int, ok bool) {
	ka, kb := a.Kind(), b.Kind()
	if ka == kb {
		switch ka {
		case record.Missing, record.Null:
			return 0, false
		case record.Int, record.Bool, record.Date, record.Clock, record.Months, record.Duration:
			return cmpInt(a.Int(), b.Int()), true
		case record.Float:
			return cmpFloat(a.Float(), b.Float()), true
		case record.String, record.Bytes:
			return bytes.Compare(env.bytes(a), env.bytes(b)), true
		case record.Decimal:
			return decCompare(env.B, a, b), true
		case record.Time:
			return cmpTime(a, b), true
		case record.Array:
			x, y := env.B.Items(a), env.B.Items(b)
			for i := range min(len(x), len(y)) {
				if x[i].IsNull() || y[i].IsNull() {
					if x[i].IsNull() && y[i].IsNull() {
						continue
					}
					return 1, true
				}
				if c, ok := compare(env, x[i], y[i]); !ok || c != 0 {
					return c, ok
				}
			}
			return cmpInt(int64(len(x)), int64(len(y))), true
		case record.Map:
			return cmpMap(env, a, b)
		}
		return 0, false
	}
	if ka <= record.Null || kb <= record.Null {
		return 0, false
	}
	if isNum(ka) && isNum(kb) {
		if ka == record.Float || kb == record.Float {
			return cmpFloat(env.float(a), env.float(b)), true
		}
		return decCompare(env.B, a, b), true
	}
	if ka == record.String {
		c, ok = compare2(env, b, a)
		return -c, ok
	}
	if kb == record.String {
		return compare2(env, a, b)
	}
	if ka == record.Date && kb == record.Time {
		return cmpTime(record.MakeTime(a.Int()*86400, 0, 0), b), true
	}
	if ka == record.Time && kb == record.Date {
		return cmpTime(a, record.MakeTime(b.Int()*86400, 0, 0)), true
	}
	return 0, false
}

// compare2 compares a, which is no text, with the text s.
func compare2(env *Env, a, s record.Value) (int, bool) {
	switch a.Kind() {
	case record.Int, record.Float, record.Decimal:
		n, ok := env.number(s)
		if !ok {
			return 0, false
		}
		return compare(env, a, n)
	case record.Time:
		st, ok := parseStamp(env.bytes(s))
		if !ok {
			return 0, false
		}
		return compare(env, a, st.value(9))
	case record.Date:
		st, ok := parseStamp(env.bytes(s))
		if !ok {
			return 0, false
		}
		return compare(env, a, st.value(9))
	case record.Clock:
		ns, ok := parseClockText(env.bytes(s))
		if !ok {
			return 0, false
		}
		return cmpInt(a.Int(), ns), true
	case record.Bool:
		// As Flink: the boolean's text is what is compared.
		t := "FALSE"
		if a.Bool() {
			t = "TRUE"
		}
		return bytes.Compare([]byte(t), env.bytes(s)), true
	}
	return 0, false
}

func cmpInt(a, b int64) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	}
	return -1
}

func cmpTime(a, b record.Value) int {
	if a.Sec() != b.Sec() {
		return cmpInt(a.Sec(), b.Sec())
	}
	return cmpInt(int64(a.Nsec()), int64(b.Nsec()))
}

func cmpMap(env *Env, a, b record.Value) (int, bool) {
	if a.Len() != b.Len() {
		return 1, true
	}
	x := env.B.Items(a)
	for i := 0; i+1 < len(x); i += 2 {
		v, found := mapGet(env, b, x[i])
		if !found || !same(env, v, x[i+1]) {
			return 1, true
		}
	}
	return 0, true
}

// same is IS NOT DISTINCT FROM.
func same(env *Env, a, b record.Value) bool {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() && b.IsNull()
	}
	c, ok := compare(env, a, b)
	return ok && c == 0
}

func mapGet(env *Env, m, key record.Value) (record.Value, bool) {
	it := env.B.Items(m)
	for i := 0; i+1 < len(it); i += 2 {
		if same(env, it[i], key) {
			return it[i+1], true
		}
	}
	return null, false
}
