package date

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

func zone(t testing.TB, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skip(err)
	}
	return loc
}

// at is 2026-03-01T12:00:00Z where it is not given.
type dateCase struct{ formats, text, want string }

func run(t *testing.T, o steptest.Options, options string, cases []dateCase) {
	t.Helper()
	for _, c := range cases {
		s := steptest.New(t, "date: {field: t, target: at, formats: ["+c.formats+"]"+options+"}", o)
		q, _ := json.Marshal(c.text)
		in := `{"t":` + string(q) + `,"at":"old"}`
		if c.want == "" {
			s.WantFail(t, in, "date: the text has none of the formats")
			continue
		}
		for range 2 { // a cached zone gives the same
			s.Want(t, in, `{"t":`+string(q)+`,"at":"`+c.want+`"}`)
		}
	}
}

const (
	apache = `'dd/MMM/yyyy:HH:mm:ss Z'`
	syslog = `'MMM d HH:mm:ss'`
)

func TestDates(t *testing.T) {
	run(t, steptest.Options{}, ", lenient: true", []dateCase{
		{apache, "24/Feb/2026:23:13:42 +0000", "2026-02-24T23:13:42Z"}, {apache, "24/feb/2026:23:13:42 +0130", "2026-02-24T21:43:42Z"}, {apache, "01/Jan/1970:00:00:00 -0100", "1970-01-01T01:00:00Z"}, {apache, "01/Jan/0001:00:00:00 +0000", "0001-01-01T00:00:00Z"},
		{apache, "4/Feb/2026:23:13:42 Z", "2026-02-04T23:13:42Z"}, {apache, "29/Feb/2024:23:13:42 +0000", "2024-02-29T23:13:42Z"}, {apache, "29/Feb/2026:23:13:42 +0000", ""}, {apache, "29/Feb/1900:00:00:00 +0000", ""}, {apache, "29/Feb/2000:00:00:00 +0000", "2000-02-29T00:00:00Z"},
		{apache, "31/Apr/2026:00:00:00 +0000", ""}, {apache, "00/Apr/2026:00:00:00 +0000", ""}, {apache, "32/Jan/2026:00:00:00 +0000", ""}, {apache, "24/Fob/2026:23:13:42 +0000", ""}, {apache, "24/Feb/2026:25:13:42 +0000", ""}, {apache, "24/Feb/2026:23:60:42 +0000", ""}, {apache, "24/Feb/2026:23:13:61 +0000", ""},
		{apache, "24/Feb/2026:23:13:42", ""}, {apache, "24/Feb/2026:23:13:42 +0000x", ""}, {apache, " 24/Feb/2026:23:13:42 +0000", ""}, {apache, "24/Feb/2026:23:13:42 +1960", ""}, {apache, "24/Feb/2026:23:13:42 +9900", ""}, {apache, "", ""}, {apache, "24/Feb/2026:2x:13:42 +0000", ""}, {apache, "24/Feb/20x6:23:13:42 +0000", ""},
		{apache, "24/Feb/2026:24:00:00 +0000", "2026-02-25T00:00:00Z"}, {apache, "24/Feb/2026:24:00:01 +0000", ""}, {apache, "31/Dec/2016:23:59:60 +0000", "2017-01-01T00:00:00Z"}, // a leap second
		{`'yyyy-MM-dd HH:mm:ss.SSS'`, "2026-02-24 23:13:42.120", "2026-02-24T23:13:42.120Z"}, {`'yyyy-MM-dd HH:mm:ss.SSS'`, "2026-02-24 23:13:42.123456789", "2026-02-24T23:13:42.123456789Z"}, {`'yyyy-MM-dd HH:mm:ss.SSS'`, "2026-02-24 23:13:42.5", "2026-02-24T23:13:42.5Z"}, {`'yyyy-MM-dd HH:mm:ss.SSS'`, "2026-02-24 23:13:42.", ""},
		{`'yyyy-MM-dd HH:mm:ss.SSS'`, "2026-02-24 23:13:42.0000000001", ""},
		{`'yyyyMMddHHmmssSSS'`, "20260224231342007", "2026-02-24T23:13:42.007Z"}, {`'yyyyMMdd'`, "20260224", "2026-02-24T00:00:00Z"}, {`'yyyyMMdd'`, "2026022", ""}, {`'d MMM yyyy'`, "3 March 2026", "2026-03-03T00:00:00Z"}, {`'d MMMM yyyy'`, "3 Mar 2026", "2026-03-03T00:00:00Z"}, {`'d MMM yyyy'`, "3 Sept 2026", "2026-09-03T00:00:00Z"},
		{`'yy-MM-dd'`, "26-02-24", "2026-02-24T00:00:00Z"}, {`'yy-MM-dd'`, "45-12-31", "2045-12-31T00:00:00Z"}, {`'yy-MM-dd'`, "46-01-01", "1946-01-01T00:00:00Z"}, {`'yy-MM-dd'`, "99-01-01", "1999-01-01T00:00:00Z"}, {`'yy-MM-dd'`, "2026-01-01", "2026-01-01T00:00:00Z"},
		{`'yyyy-DDD'`, "2024-060", "2024-02-29T00:00:00Z"}, {`'yyyy-DDD'`, "2026-366", ""}, {`'yyyy-DDD'`, "2024-366", "2024-12-31T00:00:00Z"}, {`'yyyy'`, "1999", "1999-01-01T00:00:00Z"}, {`'yyyy年M月d日'`, "2026年2月4日", "2026-02-04T00:00:00Z"},
		{`'yyyy-MM-dd hh:mm a'`, "2026-02-24 12:05 AM", "2026-02-24T00:05:00Z"}, {`'yyyy-MM-dd hh:mm a'`, "2026-02-24 12:05 pm", "2026-02-24T12:05:00Z"}, {`'yyyy-MM-dd hh:mm a'`, "2026-02-24 1:05 PM", "2026-02-24T13:05:00Z"}, {`'yyyy-MM-dd hh:mm a'`, "2026-02-24 13:05 PM", ""}, {`'yyyy-MM-dd hh:mm a'`, "2026-02-24 0:05 PM", ""}, {`'yyyy-MM-dd hh:mm a'`, "2026-02-24 11:05 XM", ""},
		{`'yyyy-MM-dd KK:mm a'`, "2026-02-24 00:05 PM", "2026-02-24T12:05:00Z"}, {`'yyyy-MM-dd kk:mm'`, "2026-02-24 24:05", "2026-02-24T00:05:00Z"}, {`'yyyy-MM-dd kk:mm'`, "2026-02-24 00:05", ""},
		{`'EEE MMM dd HH:mm:ss yyyy'`, "Tue Feb 24 23:13:42 2026", "2026-02-24T23:13:42Z"}, {`'EEE MMM dd HH:mm:ss yyyy'`, "Friday Feb 24 23:13:42 2026", "2026-02-24T23:13:42Z"}, {`'EEE MMM dd HH:mm:ss yyyy'`, "Xyz Feb 24 23:13:42 2026", ""}, // a wrong day's name moves nothing
		{`"yyyy-MM-dd'T'HH:mm:ssZ"`, "2026-02-24T23:13:42+01:00", "2026-02-24T22:13:42Z"}, {`"'at' yyyy 'o''clock'"`, "at 2026 o'clock", "2026-01-01T00:00:00Z"}, {`'yyyy-MM-dd  HH'`, "2026-02-24    07", "2026-02-24T07:00:00Z"},
		{`'yyyy-MM-dd HH:mm:ss z'`, "2026-02-24 23:13:42 UTC", "2026-02-24T23:13:42Z"}, {`'yyyy-MM-dd HH:mm:ss z'`, "2026-02-24 23:13:42 PST", "2026-02-25T07:13:42Z"}, {`'yyyy-MM-dd HH:mm:ss z'`, "2026-07-24 23:13:42 CEST", "2026-07-24T21:13:42Z"}, {`'yyyy-MM-dd HH:mm:ss z'`, "2026-02-24 23:13:42 NOPE", ""}, {`'yyyy-MM-dd HH:mm:ss z'`, "2026-02-24 23:13:42 ../etc", ""},
		{`'yyyy-MM-dd HH:mm:ss ZZZ'`, "2026-07-24 23:13:42 Europe/Berlin", "2026-07-24T21:13:42Z"}, {`'yyyy-MM-dd HH:mm:ss ZZZ'`, "2026-01-24 23:13:42 America/New_York", "2026-01-25T04:13:42Z"}, {`'yyyy-MM-dd HH:mm:ss z'`, "2026-02-24 23:13:42 +02:00", "2026-02-24T21:13:42Z"},
		{`'yyyy-MM-dd HH:mm'`, "2026-02-24 23:13", "2026-02-24T23:13:00Z"}, {`'MM/dd/yyyy'`, "13/01/2026", ""}, {`'M/d/yyyy'`, "2/4/2026", "2026-02-04T00:00:00Z"}, {`'yyyy-MM-dd', 'dd.MM.yyyy'`, "24.02.2026", "2026-02-24T00:00:00Z"},

		{"ISO8601", "2026-02-24T23:13:42Z", "2026-02-24T23:13:42Z"}, {"ISO8601", "2026-02-24T23:13:42.123456789+02:00", "2026-02-24T21:13:42.123456789Z"}, {"ISO8601", "2026-02-24 23:13:42,5-0130", "2026-02-25T00:43:42.5Z"}, {"ISO8601", "2026-02-24 23:13:42", "2026-02-24T23:13:42Z"}, {"ISO8601", "2026-02-24T23:13", "2026-02-24T23:13:00Z"}, {"ISO8601", "2026-02-24T23", "2026-02-24T23:00:00Z"},
		{"ISO8601", "2026-02-24", "2026-02-24T00:00:00Z"}, {"ISO8601", "2026-02-24T23:13:42+01", "2026-02-24T22:13:42Z"}, {"ISO8601", "2026-02-24T23:13:42 +0100", "2026-02-24T22:13:42Z"}, {"ISO8601", "2026-02-24T23:13:42.1234567891Z", ""}, {"ISO8601", "2026-02-30T23:13:42Z", ""}, {"ISO8601", "2026-13-24T23:13:42Z", ""}, {"ISO8601", "2026-02-24T23:13:42.Z", ""}, {"ISO8601", "2026-02-24T23:13:4", ""},
		{"ISO8601", "2026-02-24T23:13:42X", ""}, {"ISO8601", "2026-2-24", ""}, {"ISO8601", "26-02-24", ""}, {"ISO8601", "2026-02-24T", ""}, {"ISO8601", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"}, {"ISO8601", "0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"}, {"ISO8601", "9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"}, {"ISO8601", "2026-02-24T23:13:42.000Z", "2026-02-24T23:13:42.000Z"},
		{"UNIX", "0", "1970-01-01T00:00:00Z"}, {"UNIX", "1476680409.042", "2016-10-17T05:00:09.042Z"}, {"UNIX", "-1", "1969-12-31T23:59:59Z"}, {"UNIX", "-1.5", "1969-12-31T23:59:58.5Z"}, {"UNIX", "4294967296", "2106-02-07T06:28:16Z"}, {"UNIX", "1.123456789", "1970-01-01T00:00:01.123456789Z"}, {"UNIX", "1.1234567891", "1970-01-01T00:00:01.123456789Z"}, {"UNIX", "1e3", ""}, {"UNIX", "x", ""}, {"UNIX", "", ""}, {"UNIX", "-", ""}, {"UNIX", "1.", ""}, {"UNIX", ".5", ""}, {"UNIX", "999999999999999999999", ""}, {"UNIX", "253402300800", ""},
		{"UNIX_MS", "1712312062676", "2024-04-05T10:14:22.676Z"}, {"UNIX_MS", "1712312062676.5", "2024-04-05T10:14:22.6765Z"}, {"UNIX_MS", "-1", "1969-12-31T23:59:59.999Z"}, {"UNIX_US", "1712312062676735", "2024-04-05T10:14:22.676735Z"}, {"UNIX_NS", "1712312062676735437", "2024-04-05T10:14:22.676735437Z"},
	})
}

// What people ran into with other tools; the values are those that are right.
func TestCases(t *testing.T) {
	now := func(s string) steptest.Options {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return steptest.Options{Now: at}
	}
	run(t, now("2026-01-02T08:00:00Z"), "", []dateCase{{`'MMM dd HH:mm:ss'`, "Dec 31 23:58:00", "2025-12-31T23:58:00Z"}, {syslog, "Jan  2 07:59:59", "2026-01-02T07:59:59Z"}})
	run(t, now("2023-03-08T10:00:00Z"), "", []dateCase{{syslog, "Oct  5 16:23:18", "2022-10-05T16:23:18Z"}, {syslog, "Mar  8 09:00:00", "2023-03-08T09:00:00Z"}, {syslog, "Mar  9 09:00:00", "2023-03-09T09:00:00Z"}, {syslog, "Mar 10 09:00:00", "2022-03-10T09:00:00Z"}})
	run(t, now("2019-12-31T16:30:00Z"), "", []dateCase{{`'MMM d HH:mm:ss Z'`, "Jan 1 01:00:00 +0900", "2019-12-31T16:00:00Z"}})
	run(t, steptest.Options{Now: now("2019-12-31T16:30:00Z").Now, Zone: zone(t, "Asia/Tokyo")}, "", []dateCase{{syslog, "Jan 1 01:00:00", "2019-12-31T16:00:00Z"}, {syslog, "Dec 31 23:00:00", "2019-12-31T14:00:00Z"}})
	run(t, steptest.Options{Now: now("2020-01-01T03:13:20Z").Now, Zone: zone(t, "America/New_York")}, "", []dateCase{{`'MMM d HH:mm:ss.SSS z'`, "Jan  1 03:13:14.663 UTC", "2020-01-01T03:13:14.663Z"}})
	run(t, now("2026-03-01T12:00:00Z"), "", []dateCase{{"UNIX_NS", "1712312062676735437", "2024-04-05T10:14:22.676735437Z"}, {"UNIX", "1476680409.042", "2016-10-17T05:00:09.042Z"}, {syslog, "Feb 29 10:00:00", "2024-02-29T10:00:00Z"}})
	run(t, steptest.Options{}, ", zone: Europe/Berlin", []dateCase{{`'yyyy-MM-dd HH:mm:ss,SSS'`, "2020-11-20 12:20:46,788", "2020-11-20T11:20:46.788Z"}, {`'yyyy-MM-dd HH:mm:ss,SSS'`, "2020-07-20 12:20:46,788", "2020-07-20T10:20:46.788Z"}, {"UNIX", "1595492168", "2020-07-23T08:16:08Z"}, {"ISO8601", "2020-07-20T12:20:46", "2020-07-20T10:20:46Z"}, {"ISO8601", "2020-07-20", "2020-07-19T22:00:00Z"}})
	run(t, steptest.Options{}, "", []dateCase{{`'HH:mm:ss,SSS'`, "11:31:06,491", ""}})
	run(t, now("2026-03-01T23:30:00Z"), ", today: true, zone: Europe/Berlin", []dateCase{{`'HH:mm:ss,SSS'`, "11:31:06,491", "2026-03-02T10:31:06.491Z"}})
	run(t, now("2026-03-01T23:30:00Z"), ", today: true", []dateCase{{`'HH:mm:ss'`, "11:31:06", "2026-03-01T11:31:06Z"}, {`'HH:mm:ss Z'`, "01:31:06 +0100", "2026-03-02T00:31:06Z"}})
}

// What only lenient reading takes, and what needs none.
func TestStrict(t *testing.T) {
	run(t, steptest.Options{}, "", []dateCase{
		{apache, "24/Feb/2026:23:13:42 +0000", "2026-02-24T23:13:42Z"}, {apache, "24/FEB/2026:23:13:42 +0000", "2026-02-24T23:13:42Z"}, {apache, "24/fEB/2026:23:13:42 +0000", ""}, {apache, "24/FEb/2026:23:13:42 +0000", ""}, {apache, "24/February/2026:23:13:42 +0000", "2026-02-24T23:13:42Z"},
		{apache, "24/Feb/2026:24:00:00 +0000", ""}, {apache, "31/Dec/2016:23:59:60 +0000", ""}, {"ISO8601", "2016-12-31T23:59:60Z", ""}, {"ISO8601", "2026-02-24T24:00:00Z", ""}, {"UNIX", "1,5", ""},
		{`'yyyy-MM-dd HH:mm:ss.S'`, "2026-02-24 23:13:42.12", ""}, {`'yyyy-MM-dd HH:mm:ss.SSSSSS'`, "2026-02-24 23:13:42.12", "2026-02-24T23:13:42.12Z"}, {`'%F %T.%L'`, "2026-02-24 23:13:42.123456", "2026-02-24T23:13:42.123456Z"},
		{`'d MMM yyyy'`, "3 Sept 2026", ""}, {`'yyyy-MM-dd  HH'`, "2026-02-24 07", ""}, {`'yyyy-MM-dd HH'`, "2026-02-24  07", ""}, {`'MMM  d yyyy'`, "Oct  5 2022", "2022-10-05T00:00:00Z"}, {`'MMM d yyyy'`, "Oct  5 2022", "2022-10-05T00:00:00Z"},
		{`'yyyy-MM-dd HH:mm z'`, "2026-07-01 00:00 EST", "2026-07-01T04:00:00Z"}, {`'yyyy-MM-dd HH:mm z'`, "2026-01-01 00:00 EDT", "2026-01-01T05:00:00Z"}, {`'yyyy-MM-dd HH:mm ZZZ'`, "2026-07-01 00:00 EST", "2026-07-01T05:00:00Z"},
		{`'yyyy-MM-dd HH:mm z'`, "2026-11-01 01:30 EDT", "2026-11-01T05:30:00Z"}, {`'yyyy-MM-dd HH:mm z'`, "2026-11-01 01:30 EST", "2026-11-01T06:30:00Z"}, // an hour that comes twice
	})
	for _, c := range [][3]string{{"fr", "14 Juillet 2024", ""}, {"fr", "14 JUILLET 2024", "2024-07-14T00:00:00Z"}, {"fr", "14 juil. 2024", "2024-07-14T00:00:00Z"}, {"fr", "14 juil 2024", ""}, {"de", "01 Dez. 2024", "2024-12-01T00:00:00Z"}, {"de", "01 Dez 2024", ""}, {"pt", "01 maio 2024", "2024-05-01T00:00:00Z"}, {"pt", "01 mai. 2024", "2024-05-01T00:00:00Z"}} {
		run(t, steptest.Options{}, ", locale: "+c[0], []dateCase{{`'dd MMM yyyy'`, c[1], c[2]}})
	}
}

// The year that Logstash gives a text without one.
func TestCalendarYear(t *testing.T) {
	at := func(now, format, text, want string) {
		t.Helper()
		n, _ := time.Parse(time.RFC3339, now)
		run(t, steptest.Options{Now: n}, ", without_year: calendar", []dateCase{{"'" + format + "'", text, want}})
	}
	at("2026-01-02T08:00:00Z", "MMM dd", "Dec 31", "2025-12-31T00:00:00Z")
	at("2026-12-01T08:00:00Z", "MMM dd", "Jan 01", "2027-01-01T00:00:00Z")
	at("2023-03-08T08:00:00Z", "MMM dd", "Oct 05", "2023-10-05T00:00:00Z")
	at("2026-03-08T08:00:00Z", "MMM dd", "Feb 29", "")
	at("2026-03-08T08:00:00Z", "HH:mm", "10:11", "2026-01-01T10:11:00Z")
	at("2026-03-08T08:00:00Z", "yyyy-MM-dd", "2020-12-31", "2020-12-31T00:00:00Z")
	at("2026-03-08T08:00:00Z", "%Y-%m-%d", "2020-12-31", "2020-12-31T00:00:00Z")
	at("2026-03-08T08:00:00Z", "%s", "1595492168", "2020-07-23T08:16:08Z")
}

// Where clocks change: Berlin's go forward on 2026-03-29 at 02:00 and back on 2026-10-25 at 03:00.
func TestClockChanges(t *testing.T) {
	f := `'yyyy-MM-dd HH:mm:ss'`
	cases := []dateCase{
		{f, "2026-03-29 01:59:59", "2026-03-29T00:59:59Z"}, {f, "2026-03-29 02:30:00", "2026-03-29T01:30:00Z"}, {f, "2026-03-29 03:00:00", "2026-03-29T01:00:00Z"},
		{f, "2026-10-25 01:59:59", "2026-10-24T23:59:59Z"}, {f, "2026-10-25 02:30:00", "2026-10-25T00:30:00Z"}, {f, "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
	}
	run(t, steptest.Options{Zone: zone(t, "Europe/Berlin")}, ", lenient: true", cases)
	cases[1].want = "" // not lenient: clocks never show it
	run(t, steptest.Options{Zone: zone(t, "Europe/Berlin")}, "", cases)
	// One worker reads all hours of five years, forwards and in leaps, as the time package does.
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"} {
		loc := zone(t, name)
		c := &clock{now: time.Now, zone: loc}
		for i := range 5 * 366 * 24 {
			h := i
			if i%3 == 0 {
				h = i * 7919 % (5 * 366 * 24)
			}
			at := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(h)*time.Hour + 1234*time.Second).In(loc)
			_, off := at.Zone()
			got, _ := c.utc(at.Unix()+int64(off), loc)
			if got != at.Unix() {
				// Only of an hour that comes twice the other may be meant, and then it is the first.
				if d := at.Unix() - got; d <= 0 || d > 3600 || time.Unix(got, 0).In(loc).Format(time.DateTime) != at.Format(time.DateTime) {
					t.Fatalf("%s: %s became %s", name, at, time.Unix(got, 0).In(loc))
				}
			}
		}
	}
}

func TestFields(t *testing.T) {
	s := steptest.New(t, `date: {field: a.t, formats: [UNIX, ISO8601]}`, steptest.Options{})
	s.Want(t, `{"a":{"t":"5"}}`, `{"a":{"t":"5"},"@timestamp":"1970-01-01T00:00:05Z"}`)
	s.Want(t, `{"a":{"t":5}}`, `{"a":{"t":5},"@timestamp":"1970-01-01T00:00:05Z"}`)
	s.Want(t, `{"a":{"t":1.25}}`, `{"a":{"t":1.25},"@timestamp":"1970-01-01T00:00:01.25Z"}`)
	s.Want(t, `{"a":{"t":{"$bytes":"7"}}}`, `{"a":{"t":"Nw=="},"@timestamp":"1970-01-01T00:00:07Z"}`)
	s.Want(t, `{"a":{"t":{"$time":"2026-01-02T03:04:05Z"}},"@timestamp":1}`, `{"a":{"t":"2026-01-02T03:04:05.000000000Z"},"@timestamp":"2026-01-02T03:04:05.000000000Z"}`)
	s.WantFail(t, `{"a":{"t":null},"@timestamp":1}`, "date: the field is missing")
	s.WantFail(t, `{"@timestamp":1}`, "date: the field is missing")
	s.WantFail(t, `{"a":{"t":["5"]}}`, `date: the text has none of the formats UNIX, ISO8601: "[\"5\"]"`)
	s.WantFail(t, `{"a":{"t":true}}`, "none of the formats")
	s.WantFail(t, `{"a":{"t":"`+strings.Repeat("x", 1000)+`"}}`, strings.Repeat("x", 70))
	same := steptest.New(t, `date: {field: t, target: t, formats: UNIX}`, steptest.Options{})
	same.Want(t, `{"t":"5"}`, `{"t":"1970-01-01T00:00:05Z"}`)
	fixed := steptest.New(t, `date: {field: t, formats: ISO8601, zone: '+05:30'}`, steptest.Options{})
	fixed.Want(t, `{"t":"2026-01-02 05:30:00"}`, `{"t":"2026-01-02 05:30:00","@timestamp":"2026-01-02T00:00:00Z"}`)
	// Now is taken anew for each batch.
	year := steptest.New(t, `date: {field: t, formats: ['MMM d']}`, steptest.Options{})
	w := year.Maker().(*step)
	for y := 2020; y < 2023; y++ {
		w.clock.now = func() time.Time { return time.Date(y, 7, 1, 0, 0, 0, 0, time.UTC) }
		b := year.Batch(t, `{"t":"Jun 1"}`)
		w.Apply(b)
		if got, want := b.Lookup(0, "@timestamp").Sec(), time.Date(y, 6, 1, 0, 0, 0, 0, time.UTC).Unix(); got != want {
			t.Errorf("in %d: %d, want %d", y, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for step, want := range map[string]string{
		`date: {formats: [UNIX]}`:                                `key "field" is missing`,
		`date: {field: t}`:                                       `key "formats" is missing`,
		`date: {field: t, formats: []}`:                          `want at least one`,
		`date: {field: t, formats: [UNIX, ISO8061]}`:             `formats[1]: the format "ISO8061" has the letter I, which means nothing; texts are written in single quotes; did you mean ISO8601?`,
		`date: {field: t, formats: ["yyyy-MM-dd'T"]}`:            `has a ' without its end`,
		`date: {field: t, formats: [1]}`:                         `no letter for a date or a time`,
		`date: {field: t, formats: ['']}`:                        `a format is empty`,
		`date: {field: t, formats: ['xxxx-qq-e']}`:               `the letter q`,
		`date: {field: t, formats: [UNIX], zone: Europe/Berlim}`: `unknown time zone "Europe/Berlim"`,
		`date: {field: t, formats: [UNIX], target: '@received'}`: `@received is metadata and can't be set`,
		`date: {field: t, formats: [UNIX], timezone: UTC}`:       `"timezone" is Logstash's name; here it is ` + "`zone`",
	} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
}

// The quick way gives what the parts of the format give.
func TestQuickAgrees(t *testing.T) {
	for _, f := range []string{"dd/MMM/yyyy:HH:mm:ss Z", "yyyy-MM-dd HH:mm:ss,SSS", "yyyyMMddHHmmss", "yyyy MMM dd HH:mm:ss"} {
		ops, err := parseFormat(f)
		if err != nil {
			t.Fatal(err)
		}
		q := fixedOf(ops)
		if q == nil {
			t.Fatalf("%s has no quick way", f)
		}
		goForm := strings.NewReplacer("dd", "02", "MMM", "Jan", "MM", "01", "yyyy", "2006", "HH", "15", "mm", "04", "ss", "05", ",SSS", ",000", "Z", "-0700").Replace(f)
		c := &clock{now: time.Now, zone: time.UTC}
		n := 0
		for i := range 20_000 {
			at := time.Unix(int64(i)*987_654_3, int64(i)*1_000_000%1_000_000_000).UTC()
			if strings.HasSuffix(f, "Z") {
				at = at.In(time.FixedZone("", (i%37-18)*1800))
			}
			if at.Year() > 9999 {
				break
			}
			text := []byte(at.Format(goForm))
			if i%5 == 0 {
				text[i%len(text)] = "x9-:0 "[i/5%6]
			}
			v, ok := q.read(text, c)
			if !ok {
				continue
			}
			n++
			st := stamp{month: 1, day: 1, zoneAt: noZone}
			p := 0
			for k := range ops {
				if p = ops[k].read(text, p, &st); p < 0 {
					t.Fatalf("%s takes %q, its parts don't", f, text)
				}
			}
			w, ok := st.value(c)
			if p != len(text) || !ok || v != w {
				t.Fatalf("%s of %q: %v, its parts %v %v", f, text, v, w, ok)
			}
			if want, err := time.Parse(goForm, string(text)); err == nil && want.Unix() != v.Sec() {
				t.Fatalf("%s of %q: %d, want %d", f, text, v.Sec(), want.Unix())
			}
		}
		if n < 16_000 {
			t.Errorf("%s: the quick way took %d", f, n)
		}
	}
}

func TestNoAllocs(t *testing.T) {
	for step, text := range map[string]string{
		`date: {field: t, formats: ['dd/MMM/yyyy:HH:mm:ss Z']}`:                            "24/Feb/2026:23:13:42 +0100",
		`date: {field: t, formats: ['MMM d HH:mm:ss']}`:                                    "Feb  4 23:13:42",
		`date: {field: t, zone: Europe/Berlin, formats: ['yyyy-MM-dd HH:mm:ss', ISO8601]}`: "2026-02-24T23:13:42.5",
		`date: {field: t, formats: ['yyyy-MM-dd HH:mm z']}`:                                "2026-02-24 23:13 Europe/Berlin",
	} {
		s := steptest.New(t, step, steptest.Options{})
		slot := s.Table.Slot("t")
		s.NoAllocs(t, func(b *record.Batch) {
			for range 50 {
				v := b.PutString(text)
				b.Set(b.Add(record.Position{}, v), slot, v)
			}
		})
	}
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{"dd/MMM/yyyy:HH:mm:ss Z", "MMM d HH:mm:ss", "yyyyMMddHHmmssSSS", "EEE, d MMM yy hh:mm a z", "ISO8601", "UNIX", "'x'yyyyDDD", "kk KK ZZZ"} {
		f.Add(s, "24/Feb/2026:23:13:42 +0000", int64(1_700_000_000), uint32(123_456_789))
	}
	f.Fuzz(func(t *testing.T, format, text string, sec int64, nsec uint32) {
		c := &clock{now: func() time.Time { return time.Unix(1_700_000_000, 0) }, zone: time.UTC}
		if p, err := compile(format, nil, false); err == nil {
			if v, ok := p([]byte(text), c); ok && (v.Nsec() > 999_999_999 || v.Digits() > 9) {
				t.Fatalf("%q of %q: %v", format, text, v)
			}
		}
		if sec %= 253402300800; sec < 0 {
			sec = -sec
		}
		at := time.Unix(sec, int64(nsec%1_000_000_000)).UTC()
		for format, layout := range map[string]string{"ISO8601": time.RFC3339Nano, "yyyy-MM-dd HH:mm:ss.SSSSSSSSS": "2006-01-02 15:04:05.000000000", "d MMMM yyyy hh:mm:ss,SSSSSSSSS a Z": "2 January 2006 03:04:05,000000000 PM -0700"} {
			p, err := compile(format, nil, false)
			if err != nil {
				t.Fatal(err)
			}
			text := at.Format(layout)
			if v, ok := p([]byte(text), c); !ok || v.Sec() != at.Unix() || int(v.Nsec()) != at.Nanosecond() {
				t.Fatalf("%s: %q became %v %v", format, text, v, ok)
			}
		}
	})
}
