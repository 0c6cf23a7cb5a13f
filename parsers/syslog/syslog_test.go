package syslog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// The clock is 2026-03-01T12:00:00Z.
func TestMessages(t *testing.T) {
	for _, c := range []struct{ options, text, want string }{
		{"", `<165>1 2003-10-11T22:14:15.003Z host app 12 ID47 [a@1 x="1" y="q\"\]\\"][b] ` + "\xEF\xBB\xBF" + `hi`, `{"priority":165,"facility":20,"severity":5,"version":1,"@timestamp":"2003-10-11T22:14:15.003Z","hostname":"host","appname":"app","procid":"12","msgid":"ID47","structured_data":{"a@1":{"x":"1","y":"q\"]\\"},"b":{}},"message":"hi"}`},
		{"", `<34>1 2003-08-24T05:14:15.000003-07:00 - - - - -`, `{"priority":34,"facility":4,"severity":2,"version":1,"@timestamp":"2003-08-24T12:14:15.000003Z"}`},
		{"", `<34>Oct 11 22:14:15 mymachine su: 'su root' failed`, `{"priority":34,"facility":4,"severity":2,"@timestamp":"2025-10-11T22:14:15Z","hostname":"mymachine","appname":"su","message":"'su root' failed"}`},
		{"", `Mar  1 11:00:00 host CRON[77]: (root) CMD`, `{"@timestamp":"2026-03-01T11:00:00Z","hostname":"host","appname":"CRON","procid":"77","message":"(root) CMD"}`},
		{"", `<30>Mar 1 11:00:00.250 host app[1]:x`, `{"priority":30,"facility":3,"severity":6,"@timestamp":"2026-03-01T11:00:00.250Z","hostname":"host","appname":"app","procid":"1","message":"x"}`},
		{"", `<30>2026-02-03T04:05:06.123456+01:00 host app: x`, `{"priority":30,"facility":3,"severity":6,"@timestamp":"2026-02-03T03:05:06.123456Z","hostname":"host","appname":"app","message":"x"}`},
		{"", `<189>29: *Feb  1 18:46:11.123 UTC: %SYS-5-CONFIG_I: Configured`, `{"priority":189,"facility":23,"severity":5,"@timestamp":"2026-02-01T18:46:11.123Z","appname":"%SYS-5-CONFIG_I","message":"Configured"}`},
		{"", `<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's`, `{"priority":165,"facility":20,"severity":5,"@timestamp":"1987-08-24T11:34:00Z","hostname":"mymachine","appname":"myproc","procid":"10","message":"%% It's"}`},
		{"", `<13>Feb  5 2024 17:32:18 10.0.0.99 Use the BFG!`, `{"priority":13,"facility":1,"severity":5,"@timestamp":"2024-02-05T17:32:18Z","hostname":"10.0.0.99","message":"Use the BFG!"}`},
		{"", `<13>Feb  5 17:32:18 sshd[4]: no host`, `{"priority":13,"facility":1,"severity":5,"@timestamp":"2026-02-05T17:32:18Z","appname":"sshd","procid":"4","message":"no host"}`},
		{"", `<13>just text`, `{"priority":13,"facility":1,"severity":5,"message":"just text"}`},
		{"zone: Europe/Berlin", `<13>Feb  5 17:32:18 h app: x`, `{"priority":13,"facility":1,"severity":5,"@timestamp":"2026-02-05T16:32:18Z","hostname":"h","appname":"app","message":"x"}`},
		{"target: log.syslog, timestamp: seen, labels: true", `<34>Feb 11 22:14:15 m su: x`, `{"log":{"syslog":{"priority":34,"facility":4,"severity":2,"facility_label":"security/authorization","severity_label":"critical","hostname":"m","appname":"su"}},"seen":"2026-02-11T22:14:15Z","message":"x"}`},
	} {
		s := steptest.New(t, "syslog: {field: message, "+c.options+"}", steptest.Options{})
		s.Want(t, `{"message":`+quote(c.text)+`}`, c.want)
	}
}

func TestFailures(t *testing.T) {
	s := steptest.New(t, "syslog: message", steptest.Options{})
	for text, want := range map[string]string{`<192>1 - - - - - -`: "a priority from 0 to 191", `<34`: "a > is expected", ``: "a priority or a time", `no syslog`: "a priority or a time", `<1>1 - h a p m [x y]`: "a parameter is written", `<1>1 - h a p m [x y="1]`: "written \\]",
		`<1>1 2024-13-01T00:00:00Z - - - - -`: "a time such as", `<1>1 - h a p m [i][i]`: "comes twice", `<13>Feb 30 10:00:00 h a: x`: "no such day", `<13>Feb 5 10:00:00 h `: "a message is expected"} {
		s.WantFail(t, `{"message":`+quote(text)+`}`, want)
	}
	s.WantFail(t, `{"message":null}`, "the field is missing")
	strict := steptest.New(t, "syslog: {format: rfc3164}", steptest.Options{})
	for _, text := range []string{`<30>Nov 03 10:00:00 h a: x`, `<30>Nov 3 10:00:00 h a: x`, `<30>nov  3 10:00:00 h a: x`, `<30>Nov  3 10:00:60 h a: x`, `<30>2024-01-01T00:00:00Z h a: x`, `Nov  3 10:00:00 h a: x`} {
		strict.WantFail(t, `{"message":`+quote(text)+`}`, "is expected")
	}
	effort := steptest.New(t, "syslog: {best_effort: true}", steptest.Options{})
	effort.Want(t, `{"message":"<34>1 2003-10-11T22:14:15Z host app - - [x"}`, `{"message":"<34>1 2003-10-11T22:14:15Z host app - - [x","priority":34,"facility":4,"severity":2,"version":1,"@timestamp":"2003-10-11T22:14:15Z","hostname":"host","appname":"app","structured_data":{"x":{}}}`)
}

func TestNoAllocs(t *testing.T) {
	s := steptest.New(t, "syslog: message", steptest.Options{})
	slot := s.Table.Slot("message")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 50 {
			for _, line := range []string{new5424, old3164} {
				v := b.PutString(line)
				b.Set(b.Add(record.Position{}, v), slot, v)
			}
		}
	})
}

func TestHostile(t *testing.T) {
	many := strings.Builder{}
	for i := range 50_000 {
		many.WriteString("[" + strings.Repeat("i", i%20+1) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + "]")
	}
	s := steptest.New(t, "syslog: message", steptest.Options{})
	const head = "<1>1 - h a p m "
	for name, text := range map[string]string{"elements": head + many.String(), "parameters": head + "[x" + strings.Repeat(` a="1"`, 200_000) + "]", "backslashes": head + `[x a="` + strings.Repeat(`\\`, 1<<19), "blanks": "<1>" + strings.Repeat(" ", 1<<20), "digits": strings.Repeat("1", 1<<20), "tag": "<1>Feb  5 10:00:00 h " + strings.Repeat("a", 1<<20)} {
		start := time.Now()
		s.One(t, `{"message":`+quote(text)+`}`)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%s took %s", name, d)
		}
	}
}

func FuzzSyslog(f *testing.F) {
	for _, s := range []string{new5424, old3164, `<189>29: *Feb  1 18:46:11.123 UTC: %SYS-5: x`, `<1>1 - - - - - [a b="c\"d"] x`, `Fri Oct 11 2024 22:14:15 h a[1] x`, `<1>2024 Oct 1 1:00:00+01:00 h`} {
		f.Add(s)
	}
	var ss []*steptest.S
	for _, o := range []string{"", "format: rfc3164, accept_rfc3339: true", "format: rfc5424, best_effort: true", "best_effort: true, zone: Europe/Berlin, labels: true"} {
		ss = append(ss, steptest.New(f, "syslog: {field: message, "+o+"}", steptest.Options{}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range ss {
			b := record.NewBatch(s.Table)
			v := b.PutString(text)
			b.Set(b.Add(record.Position{}, v), s.Table.Slot("message"), v)
			s.Apply(b)
			if len(b.Sel)+len(b.Fails) != 1 {
				t.Fatalf("%q is gone", text)
			}
			s.JSON(b, 0)
		}
	})
}
