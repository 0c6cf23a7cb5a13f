package csv

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// to converts a column; what can't be converted stays as it is.
func (s *step) to(v record.Value, t target) record.Value {
	if v.Kind() != record.String {
		return v
	}
	text := string(s.b.Bytes(v))
	switch t {
	case "integer":
		if x, ok := new(big.Int).SetString(strings.TrimSpace(text), 0); ok {
			if x.IsInt64() {
				return record.MakeInt(x.Int64())
			}
			if len(text) <= 1000 {
				return s.b.BigDecimal(x, 0)
			}
		}
	case "float":
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && f-f == 0 {
			return record.MakeFloat(f)
		}
	case "boolean":
		switch strings.ToLower(text) {
		case "true":
			return record.MakeBool(true)
		case "false":
			return record.MakeBool(false)
		}
	case "date", "date_time":
		if at, ok := parseTime(text, t, s.zone); ok {
			return at
		}
	}
	return v
}

var isoTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,](\d{1,9}))?)?(?: ?Z|[+-]\d\d:?\d\d| UTC| GMT)?)?$`)

var namedLayouts = map[target][]string{
	"date":      {"2006-01-02", "January 2, 2006", "January 2 2006", "Jan 2, 2006", "Jan 2 2006", "Monday, January 2, 2006", "Mon, Jan 2, 2006", "Mon Jan 2 2006"},
	"date_time": {"Jan 2 15:04:05 2006", "Jan 2 15:04:05, 2006", "January 2 15:04:05 2006", "Mon Jan 2 15:04:05 2006", "Mon, Jan 2 15:04:05 2006"},
}

func parseTime(text string, t target, zone *time.Location) (record.Value, bool) {
	for _, l := range namedLayouts[t] {
		if at, err := time.ParseInLocation(l, text, zone); err == nil {
			return record.MakeTime(at.Unix(), 0, 0), true
		}
	}
	m := isoTime.FindStringSubmatch(text)
	if t != "date_time" || m == nil {
		return record.Value{}, false
	}
	clean := strings.NewReplacer("T", " ", ",", ".", " UTC", "Z", " GMT", "Z", " Z", "Z").Replace(text)
	for _, l := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04Z07:00", "2006-01-02 15:04Z0700", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(l, clean, zone); err == nil {
			return record.MakeTime(at.Unix(), uint32(at.Nanosecond()), len(m[1])), true
		}
	}
	return record.Value{}, false
}
