package geoip

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps/steptest"
)

// database writes a small one in which 203.0.113.0/24 is in that city.
func database(t testing.TB, path, city string) {
	t.Helper()
	w, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Test-City", RecordSize: 24, IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	s := func(s string) mmdbtype.String { return mmdbtype.String(s) }
	name := func(en, de string) mmdbtype.Map { return mmdbtype.Map{"en": s(en), "de": s(de)} }
	_, network, _ := net.ParseCIDR("203.0.113.0/24")
	_, six, _ := net.ParseCIDR("2001:db8::/32")
	for _, err := range []error{
		w.Insert(network, mmdbtype.Map{
			"continent": mmdbtype.Map{"code": s("EU"), "names": name("Europe", "Europa")}, "country": mmdbtype.Map{"iso_code": s("DE"), "names": name("Germany", "Deutschland")},
			"subdivisions": mmdbtype.Slice{mmdbtype.Map{"iso_code": s("BY"), "names": name("Bavaria", "Bayern")}}, "city": mmdbtype.Map{"names": mmdbtype.Map{"en": s(city)}},
			"postal": mmdbtype.Map{"code": s("80331")}, "location": mmdbtype.Map{"latitude": mmdbtype.Float64(48.137), "longitude": mmdbtype.Float64(11.575), "time_zone": s("Europe/Berlin")},
			"autonomous_system_number": mmdbtype.Uint32(64496), "autonomous_system_organization": s("Example Net"),
		}),
		w.Insert(six, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": s("JP")}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tmp := path + ".new"
	f, err := os.Create(tmp)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.WriteTo(f); err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestGeoIP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	database(t, path, "Munich")
	s := steptest.New(t, "geoip: {field: ip, target: s, database: "+path+", language: de}", steptest.Options{})
	const munich = `"s":{"geo":{"continent_code":"EU","continent_name":"Europa","country_iso_code":"DE","country_name":"Deutschland","region_iso_code":"DE-BY","region_name":"Bayern","city_name":"Munich","postal_code":"80331","timezone":"Europe/Berlin","location":{"lat":48.137,"lon":11.575}},"as":{"number":64496,"organization":{"name":"Example Net"}}}`
	for range 2 {
		s.Want(t, `{"ip":"203.0.113.7"}`, `{"ip":"203.0.113.7",`+munich+`}`)
		s.Want(t, `{"ip":"::ffff:203.0.113.7"}`, `{"ip":"::ffff:203.0.113.7",`+munich+`}`)
		s.Want(t, `{"ip":"2001:db8::1"}`, `{"ip":"2001:db8::1","s":{"geo":{"country_iso_code":"JP"}}}`)
		s.Want(t, `{"ip":"10.0.0.1","s":{"geo":{"city_name":"old"}}}`, `{"ip":"10.0.0.1"}`)
	}
	s.WantFail(t, `{"ip":"localhost"}`, `"localhost" is no IP address`)
	s.WantFail(t, `{"ip":"`+strings.Repeat("1", 1000)+`"}`, "is no IP address")
	s.WantFail(t, `{}`, "the field is missing")
	some := steptest.New(t, "geoip: {field: ip, database: "+path+", fields: [geo.country_iso_code]}", steptest.Options{})
	some.Want(t, `{"ip":"203.0.113.7"}`, `{"ip":"203.0.113.7","geo":{"country_iso_code":"DE"}}`)
	for step, want := range map[string]string{"geoip: {field: ip, database: x, fields: [geo.country]}": `there is no field "geo.country"`, "geoip: {source: ip, database: x}": "here it is `field`", "geoip: {field: ip}": `key "database" is missing`} {
		if _, err := steptest.Try(step, steptest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// A database that is missing fails the records until it is there; one that changes is taken.
func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	s := steptest.New(t, "geoip: {field: ip, database: "+path+", fields: [geo.city_name], refresh: 1s}", steptest.Options{})
	s.WantFail(t, `{"ip":"203.0.113.7"}`, "no such file")
	city := func(want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; {
			out, _ := s.One(t, `{"ip":"203.0.113.7"}`)
			if strings.Contains(out, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got %s, want %s", out, want)
			}
		}
	}
	database(t, path, "Munich")
	city("Munich")
	database(t, path, "Passau")
	city("Passau")
	if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	city("Passau")
}

func TestNoAllocs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "city.mmdb")
	database(t, path, "Munich")
	s := steptest.New(t, "geoip: {field: ip, database: "+path+"}", steptest.Options{})
	slot := s.Table.Slot("ip")
	s.NoAllocs(t, func(b *record.Batch) {
		for range 20 {
			v := b.PutString("203.0.113.7")
			b.Set(b.Add(record.Position{}, v), slot, v)
		}
	})
}

// Files that are no databases, or broken ones, never panic.
func FuzzDatabase(f *testing.F) {
	path := filepath.Join(f.TempDir(), "city.mmdb")
	database(f, path, "Munich")
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, "203.0.113.7")
	f.Add(good[:len(good)/2], "::1")
	f.Fuzz(func(t *testing.T, data []byte, ip string) {
		path := filepath.Join(t.TempDir(), "x.mmdb")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := steptest.New(t, "geoip: {field: ip, database: "+path+"}", steptest.Options{})
		v := record.NewBatch(s.Table)
		p := v.PutString(ip)
		v.Set(v.Add(record.Position{}, p), s.Table.Slot("ip"), p)
		s.Apply(v)
	})
}
