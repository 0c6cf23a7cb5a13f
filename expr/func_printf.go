package expr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rsetl/rsetl/record"
)

// maxWidth bounds what a width or precision in PRINTF can ask for.
const maxWidth = 10000

// formatOne appends one value as Java's %spec+c formats it.
func formatOne(env *Env, dst []byte, spec string, c byte, v record.Value) ([]byte, bool) {
	for _, part := range strings.FieldsFunc(spec, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(part); err != nil || n > maxWidth {
			return dst, false
		}
	}
	if strings.ContainsAny(spec, "$(,") {
		return dst, false
	}
	s := "%" + spec
	if v.IsNull() {
		if c == 'b' || c == 'B' {
			return fmt.Appendf(dst, s+"s", "false"), true
		}
		return fmt.Appendf(dst, "%"+strings.Trim(spec, "0+ #")+"s", "null"), true
	}
	switch c {
	case 's', 'S':
		t := string(AppendText(nil, env.B, v))
		if v.Kind() == record.Bool {
			t = strings.ToLower(t)
		}
		if c == 'S' {
			t = strings.ToUpper(t)
		}
		return fmt.Appendf(dst, s+"s", t), true
	case 'd', 'x', 'X', 'o':
		if v.Kind() != record.Int {
			return dst, false
		}
		if c == 'd' {
			return fmt.Appendf(dst, s+"d", v.Int()), true
		}
		return fmt.Appendf(dst, s+string(c), uint64(v.Int())), true
	case 'f', 'e', 'E', 'g':
		if v.Kind() != record.Float {
			return dst, false // as Java, where an integer or decimal here is refused or depends on its class
		}
		return fmt.Appendf(dst, s+string(c), v.Float()), true
	case 'b', 'B':
		t := "true"
		if v.Kind() == record.Bool && !v.Bool() {
			t = "false"
		}
		return fmt.Appendf(dst, s+"s", t), true
	case 'c':
		if v.Kind() != record.Int {
			return dst, false
		}
		return fmt.Appendf(dst, s+"c", rune(v.Int())), true
	}
	return dst, false
}
