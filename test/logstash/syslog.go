package logstash

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rsetl/rsetl/record"
)

// runSyslog takes a case of the syslog library through the step syslog and compares.
func runSyslog(c *Case) ([]string, error) {
	year, _ := strconv.Atoi(textOf(c.Options.Get("year")))
	now := time.Date(max(year, 2024), 12, 31, 12, 0, 0, 0, time.UTC)
	r, _, err := runSteps([]step{{kind: "syslog", body: m("field", "message", "format", c.Format, "timestamp", "timestamp", "best_effort", !c.Strict, "keep_bom", true, "accept_rfc3339", truth(c.Options.Get("accept_rfc3339")))}}, now,
		func(b *record.Batch) {
			b.SetNamed(b.Add(record.Position{}, record.Value{}), b.PutString("message"), b.PutString(c.Text))
		})
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return []string{r.Err.Error()}, nil
	}
	if len(c.Want) == 0 || string(c.Want) == "null" {
		if !r.Failed {
			return []string{fmt.Sprintf("the library says %q, rsetl has %s", c.Mistake, showAll(r.Out))}, nil
		}
		return nil, nil
	}
	v, err := parse(c.Want)
	if err != nil {
		return nil, err
	}
	want := flatten(v)
	if r.Failed {
		return []string{"it failed: " + r.Reason + "; want " + show(v)}, nil
	}
	got := r.Out[0]
	if c.Mistake != "" { // what was read before the mistake; the text is kept whole
		delete(want, "message")
		delete(got, "message")
	}
	if year == 0 && c.Format == "rfc3164" {
		for _, m := range []map[string]any{want, got} {
			if s, ok := m["timestamp"].(string); ok {
				m["timestamp"] = s[strings.IndexByte(s, '-'):]
			}
		}
	}
	for _, k := range []string{"timestamp"} { // the library's times keep their offset
		w, ok1 := want[k].(string)
		g, ok2 := got[k].(string)
		a, err1 := time.Parse(time.RFC3339Nano, w)
		b, err2 := time.Parse(time.RFC3339Nano, g)
		if ok1 && ok2 && err1 == nil && err2 == nil && a.Equal(b) {
			delete(want, k)
			delete(got, k)
		}
	}
	return diff(want, got), nil
}
