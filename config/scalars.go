package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span: Go's form (`500ms`, `1m30s`) plus days (`7d`).
type Duration time.Duration

// ParseDuration reads a Duration.
func ParseDuration(s string) (Duration, error) {
	rest, neg := strings.CutPrefix(strings.TrimSpace(s), "-")
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, fmt.Errorf("%q is not a duration; write 500ms, 10s, 1m30s or 7d", s)
	}
	var days time.Duration
	if i := strings.IndexByte(rest, 'd'); i > 0 {
		n, err := strconv.ParseFloat(rest[:i], 64)
		if err != nil || !(n >= 0 && n <= 100_000) {
			return 0, fmt.Errorf("%q is not a duration; write 500ms, 10s, 1m30s or 7d", s)
		}
		days, rest = time.Duration(n*24*float64(time.Hour)), rest[i+1:]
	}
	var d time.Duration
	if rest != "" {
		var err error
		if d, err = time.ParseDuration(rest); err != nil {
			return 0, fmt.Errorf("%q is not a duration; write 500ms, 10s, 1m30s or 7d", s)
		}
	}
	if rest == "" && days == 0 && !strings.Contains(s, "d") {
		return 0, fmt.Errorf("%q is not a duration; write 500ms, 10s, 1m30s or 7d", s)
	}
	if d += days; neg {
		d = -d
	}
	return Duration(d), nil
}

func (d Duration) D() time.Duration { return time.Duration(d) }

func (d Duration) String() string {
	t := time.Duration(d)
	if t != 0 && t%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", t/(24*time.Hour))
	}
	s := t.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// Size is a number of bytes: 65536, 64KiB, 1MiB, 10MB.
type Size int64

var sizeUnits = []struct {
	name string
	n    float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// ParseSize reads a Size.
func ParseSize(s string) (Size, error) {
	num, unit := strings.TrimSpace(s), 1.0
	for _, u := range sizeUnits {
		if strings.HasSuffix(num, u.name) {
			num, unit = strings.TrimSpace(strings.TrimSuffix(num, u.name)), u.n
			break
		}
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || f < 0 || f*unit > math.MaxInt64/2 || f != f {
		return 0, fmt.Errorf("%q is not a size; write 65536, 64KiB or 10MB", s)
	}
	return Size(f * unit), nil
}

func (s Size) String() string {
	for i := 3; i >= 0; i-- {
		if n := int64(sizeUnits[i].n); s != 0 && int64(s)%n == 0 {
			return fmt.Sprintf("%d%s", int64(s)/n, sizeUnits[i].name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
