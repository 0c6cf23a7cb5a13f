package date

import (
	"fmt"
	"strings"
)

// conversions are strftime's, as parts of a pattern. Digits behind a letter are how many the number has at most.
var conversions = map[byte][]op{
	'Y': {{kind: 'y', n: 4, max: 4}}, 'y': {{kind: 'y', n: 2, max: 2, min: 2}}, 'm': {{kind: 'M', n: 2, max: 2}}, 'd': {{kind: 'd', n: 2, max: 2}}, 'e': {{kind: 'd', n: 1, max: 2}},
	'H': {{kind: 'H', n: 2, max: 2}}, 'k': {{kind: 'H', n: 1, max: 2}}, 'I': {{kind: 'h', n: 2, max: 2}}, 'l': {{kind: 'h', n: 1, max: 2}}, 'M': {{kind: 'm', n: 2, max: 2}}, 'S': {{kind: 's', n: 2, max: 2}},
	'L': {{kind: 'S', n: 3, max: 9}}, 'f': {{kind: 'S', n: 6, max: 9}}, 'N': {{kind: 'S', n: 9, max: 9}}, 'p': {{kind: 'a', n: 1}}, 'P': {{kind: 'a', n: 1}},
	'b': {{kind: 'M', n: 3}}, 'h': {{kind: 'M', n: 3}}, 'B': {{kind: 'M', n: 4}}, 'a': {{kind: 'E', n: 3}}, 'A': {{kind: 'E', n: 4}}, 'j': {{kind: 'D', n: 3, max: 3}},
	'z': {{kind: 'Z', n: 1}}, 'Z': {{kind: 'z', n: 1}}, 's': {{kind: 'U', n: 1}}, 'G': {{kind: 'x', n: 4, max: 4}}, 'V': {{kind: 'w', n: 2, max: 2}}, 'u': {{kind: 'e', n: 1, max: 1}},
}

// composed are conversions that stand for several.
var composed = map[byte]string{'T': "%H:%M:%S", 'D': "%m/%d/%y", 'F': "%Y-%m-%d", 'R': "%H:%M", 'r': "%I:%M:%S %p", 'c': "%a %b %e %H:%M:%S %Y", 'x': "%m/%d/%y", 'X': "%H:%M:%S", 'n': " ", 't': " "}

// isStrftime tells whether a format is one of strftime's.
func isStrftime(f string) bool {
	for i := 0; i+1 < len(f); i++ {
		if f[i] == '%' {
			return true
		}
	}
	return false
}

func parseStrftime(f string) ([]op, error) {
	var ops []op
	lit := func(s string) {
		if n := len(ops); n > 0 && ops[n-1].kind == 0 {
			ops[n-1].lit += s
			return
		}
		ops = append(ops, op{lit: s})
	}
	some := false
	var walk func(f string) error
	walk = func(f string) error {
		for i := 0; i < len(f); i++ {
			if f[i] != '%' {
				lit(f[i : i+1])
				continue
			}
			if i++; i < len(f) && strings.IndexByte("-_0^#:", f[i]) >= 0 { // how to fill
				i++
			}
			if i >= len(f) {
				return fmt.Errorf("the format %q ends with a %%", f)
			}
			if c := f[i]; c == '%' {
				lit("%")
			} else if long, ok := composed[c]; ok {
				if err := walk(long); err != nil {
					return err
				}
			} else if o, ok := conversions[c]; ok {
				ops = append(ops, o...)
				some = true
			} else {
				return fmt.Errorf("the format %q has %%%c, which is none of strftime's conversions", f, c)
			}
		}
		return nil
	}
	if err := walk(f); err != nil {
		return nil, err
	}
	if !some {
		return nil, fmt.Errorf("the format %q has no conversion such as %%Y", f)
	}
	for i := range ops {
		// Numbers without anything between them have all their digits.
		if o := &ops[i]; numeric(*o) && o.kind != 'S' && (i > 0 && numeric(ops[i-1]) || i+1 < len(ops) && numeric(ops[i+1])) {
			o.min = o.max
		}
		if o := &ops[i]; o.kind == 'S' && i+1 < len(ops) && numeric(ops[i+1]) {
			o.max = o.n
		}
	}
	return ops, nil
}
