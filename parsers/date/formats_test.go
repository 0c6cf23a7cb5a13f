package date

import (
	"strings"
	"testing"
	"time"

	"github.com/rsetl/rsetl/steps/steptest"
)

func TestISOForms(t *testing.T) {
	var cases []dateCase
	for text, want := range map[string]string{"2024": "2024-01-01T00:00:00Z", "2024-03": "2024-03-01T00:00:00Z", "2024-060": "2024-02-29T00:00:00Z", "2023-366": "", "2024-W01-1": "2024-01-01T00:00:00Z", "2020-W53-5T10:00Z": "2021-01-01T10:00:00Z", "2023-W53": "", "2024-W01-8": "",
		"-0001-01-01T00:00:00Z": "-0001-01-01T00:00:00Z", "+2024-01-02": "2024-01-02T00:00:00Z", "20240101": "", "T10:11:12Z": "", "2024-1": "", "2024-": "", "2024-000": "", "-": ""} {
		cases = append(cases, dateCase{"ISO8601", text, want})
	}
	run(t, steptest.Options{}, "", cases)
}

func TestStrftime(t *testing.T) {
	run(t, steptest.Options{}, "", []dateCase{
		{`'%d/%b/%Y:%H:%M:%S %z'`, "24/Feb/2026:23:13:42 +0130", "2026-02-24T21:43:42Z"}, {`'%Y-%m-%dT%H:%M:%S.%f%z'`, "2026-02-24T23:13:42.123456Z", "2026-02-24T23:13:42.123456Z"}, {`'%F %T,%L'`, "2026-02-24 23:13:42,005", "2026-02-24T23:13:42.005Z"},
		{`'%Y%m%d%H%M%S'`, "20260224231342", "2026-02-24T23:13:42Z"}, {`'%Y%m%d%H%M%S'`, "2026224231342", ""}, {`'%s'`, "1700000000", "2023-11-14T22:13:20Z"}, {`'%s'`, "-1", "1969-12-31T23:59:59Z"}, {`'%s.%N'`, "1700000000.5", "2023-11-14T22:13:20.5Z"},
		{`'%a %b %e %H:%M:%S %Y'`, "Tue Feb  4 23:13:42 2026", "2026-02-04T23:13:42Z"}, {`'%c'`, "Tue Feb 24 23:13:42 2026", "2026-02-24T23:13:42Z"}, {`'%I:%M %p %D'`, "01:05 PM 02/24/26", "2026-02-24T13:05:00Z"}, {`'%G-W%V-%u'`, "2020-W53-5", "2021-01-01T00:00:00Z"}, {`'%Y-%j'`, "2024-060", "2024-02-29T00:00:00Z"}, {`'100%% %Y'`, "100% 2026", "2026-01-01T00:00:00Z"},
	})
	for format, want := range map[string]string{"%Q": "none of strftime's conversions", "%Y %": "ends with a %", "%%": "no conversion"} {
		if _, err := compile(format, nil, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", format, err, want)
		}
	}
}

func TestOtherFormats(t *testing.T) {
	run(t, steptest.Options{}, "", []dateCase{
		{"TAI64N", "@4000000050d506482dbdf024", "2012-12-22T01:00:46.767422500Z"}, {"TAI64N", "400000005f5e0f8000000000", "2020-09-13T12:24:22.000000000Z"}, {"TAI64N", "@4000000050d50648", ""}, {"TAI64N", "4000000050d506482dbdf02g", ""}, {"TAI64N", "ffffffffffffffff00000000", ""},
		{"UNIX_NS", "1712312062676735437", "2024-04-05T10:14:22.676735437Z"}, {"UNIX", "1476680409.042", "2016-10-17T05:00:09.042Z"},
		{"'xxxx-ww-e'", "2024-01-1", "2024-01-01T00:00:00Z"}, {"'xxxx-ww-e'", "2020-53-5", "2021-01-01T00:00:00Z"}, {"'xxxx-ww-e'", "2021-53-5", ""}, {"'yyyy-MM-dd G'", "2024-01-01 AD", "2024-01-01T00:00:00Z"}, {"'yyyy-MM-dd G'", "0001-01-01 BC", "0000-01-01T00:00:00Z"},
	})
}

func TestLocales(t *testing.T) {
	for _, c := range []struct{ locale, format, text, want string }{
		{"fr", "dd MMMM yyyy", "14 juillet 2024", "2024-07-14"}, {"fr_FR", "d MMM yyyy", "1 août 2024", "2024-08-01"}, {"fr-FR", "d MMM yyyy", "3 Févr. 2013", "2013-02-03"}, {"fr", "d MMM yyyy", "3 jui 2013", ""}, {"fr", "d MMM yyyy", "3 juin 2013", "2013-06-03"}, {"fr", "d MMM yyyy", "3 juil. 2013", "2013-07-03"},
		{"de", "dd MMM yyyy", "01 Mär 2024", "2024-03-01"}, {"de", "EEEE, dd. MMMM yyyy", "Montag, 01. Januar 2024", "2024-01-01"}, {"de", "dd MMM yyyy", "01 Dez. 2024", "2024-12-01"}, {"es", "d 'de' MMMM 'de' yyyy", "5 de enero de 2024", "2024-01-05"}, {"es", "d MMM yyyy", "5 sept. 2024", "2024-09-05"},
		{"it", "d MMM yyyy", "5 mag 2024", "2024-05-05"}, {"pt-BR", "EEE dd MMM yyyy", "seg. 01 jan. 2024", "2024-01-01"}, {"pt", "dd MMM yyyy", "01 maio 2024", "2024-05-01"}, {"nl", "d MMM yyyy", "5 mrt. 2024", "2024-03-05"}, {"ru", "d MMM yyyy", "5 мая 2024", "2024-05-05"}, {"ru", "d MMMM yyyy", "5 Января 2024", "2024-01-05"},
		{"pl", "d MMM yyyy", "5 sty 2024", "2024-01-05"}, {"cs", "d. MMMM yyyy", "5. července 2024", "2024-07-05"}, {"tr", "d MMM yyyy", "5 Şub 2024", "2024-02-05"}, {"zh", "yyyy年MMMd日", "2024年12月5日", "2024-12-05"}, {"ja", "yyyy年M月d日 EEEE", "2024年1月5日 金曜日", "2024-01-05"}, {"en", "d MMM yyyy", "5 sept 2024", "2024-09-05"},
	} {
		want := c.want
		if want != "" {
			want += "T00:00:00Z"
		}
		run(t, steptest.Options{}, ", lenient: true, locale: "+c.locale, []dateCase{{`"` + c.format + `"`, c.text, want}})
	}
	if _, err := steptest.Try("date: {field: t, formats: [UNIX], locale: tlh}", steptest.Options{}); err == nil || !strings.Contains(err.Error(), `the language "tlh"`) {
		t.Error(err)
	}
}

func TestZoneOfRecord(t *testing.T) {
	s := steptest.New(t, `date: {field: t, formats: ['yyyy-MM-dd HH:mm:ss'], zone: '%{z}'}`, steptest.Options{})
	for range 2 {
		s.Want(t, `{"t":"2024-01-01 00:00:00","z":"Asia/Tokyo"}`, `{"t":"2024-01-01 00:00:00","z":"Asia/Tokyo","@timestamp":"2023-12-31T15:00:00Z"}`)
		s.Want(t, `{"t":"2024-01-01 00:00:00","z":"+05:30"}`, `{"t":"2024-01-01 00:00:00","z":"+05:30","@timestamp":"2023-12-31T18:30:00Z"}`)
	}
	s.WantFail(t, `{"t":"2024-01-01 00:00:00","z":"Bad/Zone"}`, `unknown time zone "Bad/Zone"`)
	s.WantFail(t, `{"t":"2024-01-01 00:00:00"}`, "the field that names the zone is missing")
}

// Cases that people ran into, with the right answer.
func TestYears(t *testing.T) {
	at := func(now, zone, format, text, want string) {
		t.Helper()
		n, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		run(t, steptest.Options{Now: n}, ", zone: "+zone, []dateCase{{"'" + format + "'", text, want}})
	}
	at("2026-01-02T08:00:00Z", "UTC", "MMM d HH:mm:ss", "Dec 31 23:58:00", "2025-12-31T23:58:00Z")
	at("2023-03-08T08:00:00Z", "UTC", "MMM d HH:mm:ss", "Oct  5 16:23:18", "2022-10-05T16:23:18Z")
	at("2025-12-31T17:00:00Z", "'+09:00'", "MMM d HH:mm:ss", "Jan 1 01:00:00", "2025-12-31T16:00:00Z")
	at("2020-01-01T03:13:15Z", "America/New_York", "MMM d HH:mm:ss.SSS z", "Jan  1 03:13:14.663 UTC", "2020-01-01T03:13:14.663Z")
	at("2026-03-01T08:00:00Z", "UTC", "HH:mm:ss,SSS", "11:31:06,491", "")
	at("2020-07-24T00:00:00Z", "Europe/Berlin", "%s", "1595492168", "2020-07-23T08:16:08Z")
}

// What strftime and the patterns write is read back.
func TestRoundTripFormats(t *testing.T) {
	for format, layout := range map[string]string{"%Y-%m-%d %H:%M:%S.%f": "2006-01-02 15:04:05.000000", "%d/%b/%Y:%H:%M:%S %z": "02/Jan/2006:15:04:05 -0700", "%A, %B %d %Y %I:%M:%S %p": "Monday, January 02 2006 03:04:05 PM", "yyyy-DDD HH:mm:ss": "2006-002 15:04:05"} {
		p, err := compile(format, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		c := &clock{now: time.Now, zone: time.UTC}
		for i := range 3000 {
			at := time.Unix(int64(i)*3_456_789, int64(i)%1_000_000*1000).UTC()
			v, ok := p([]byte(at.Format(layout)), c)
			if !ok || v.Sec() != at.Unix() {
				t.Fatalf("%s: %s is read as %d, %v", format, at.Format(layout), v.Sec(), ok)
			}
		}
	}
}

func FuzzFormats(f *testing.F) {
	f.Add("%Y-%m-%d %b", "2024-01-02 Jan", "fr")
	f.Add("EEE d MMM yyyy a", "seg. 5 jan 2024 PM", "pt")
	f.Add("ISO8601", "2024-W01-1T10Z", "en")
	f.Add("TAI64N", "@4000000050d506482dbdf024", "ja")
	f.Fuzz(func(t *testing.T, format, text, lang string) {
		l, err := localeOf(lang)
		if err != nil {
			return
		}
		p, err := compile(format, l, false)
		if err != nil {
			return
		}
		p([]byte(text), &clock{now: time.Now, zone: time.UTC, today: true})
	})
}
