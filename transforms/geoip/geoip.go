// Package geoip tells where IP addresses are.
package geoip

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/reload"
	"github.com/rsetl/rsetl/internal/twogen"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("geoip", steps.Spec{
		Doc: config.Doc{
			Summary: "Tells country, city, place and network of an IP address, from a database in MaxMind's format.",
			Details: "The fields are ECS's, as far as the database has them: `geo.continent_code`, `geo.continent_name`, `geo.country_iso_code`, `geo.country_name`, `geo.region_iso_code`, `geo.region_name`, `geo.city_name`, `geo.postal_code`, `geo.timezone`, `geo.location.lat`, `geo.location.lon`, `as.number`, `as.organization.name`; " +
				"below `target`, in the record itself by default. An address that the database doesn't have gets none of them, and what was there before is taken away. A text that is no address is a failure.\n\n" +
				"The file is looked at every `refresh`; when it has changed the new one is used from the next batch on. It is held in memory. While there never was one that can be read, records fail.",
			Example: "- geoip: {field: source.ip, target: source, database: /var/lib/rsetl/GeoLite2-City.mmdb}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `geoip: {field, database, …}`.
type Config struct {
	Field    steps.FieldPath `yaml:"field,required" doc:"The field with the address."`
	Database string          `yaml:"database,required" doc:"The path of the database, such as GeoLite2-City.mmdb, GeoLite2-ASN.mmdb, or another provider's of this layout."`
	Target   steps.FieldPath `yaml:"target" doc:"The path below which the fields go; the record itself by default."`
	Fields   []string        `yaml:"fields" doc:"The fields that are wanted, such as geo.country_iso_code; all by default."`
	Language string          `yaml:"language" doc:"The language of names, where the database has it." default:"en"`
	Cache    int             `yaml:"cache_size" doc:"How many addresses each core remembers at most." default:"10000" min:"1"`
	Refresh  config.Duration `yaml:"refresh" doc:"How often to look whether the file has changed." default:"10s"`

	wanted []int
}

const (
	fContinentCode = iota
	fContinent
	fCountryCode
	fCountry
	fRegionCode
	fRegion
	fCity
	fPostal
	fZone
	fLat
	fLon
	fASN
	fOrganization
	nFields
)

var names = [nFields]string{"geo.continent_code", "geo.continent_name", "geo.country_iso_code", "geo.country_name", "geo.region_iso_code", "geo.region_name", "geo.city_name", "geo.postal_code", "geo.timezone",
	"geo.location.lat", "geo.location.lon", "as.number", "as.organization.name"}

var foreign = steps.Foreign{"source": "field", "default_database_type": "database", "cache_lru": "cache_size"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if !foreign.Decode(c, n, k) {
		return
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
	for i, f := range k.Fields {
		at := slices.Index(names[:], f)
		if at < 0 {
			c.In(fmt.Sprintf("fields[%d]", i), func() { c.Errorf(n, "there is no field %q%s", f, steps.OneOf(f, names[:])) })
		}
		k.wanted = append(k.wanted, at)
	}
	if len(k.Fields) == 0 {
		for i := range names {
			k.wanted = append(k.wanted, i)
		}
	}
	if k.Refresh.D() < time.Second {
		c.Errorf(n, "refresh: want at least 1s")
	}
}

// JSONSchema describes the options.
func (Config) JSONSchema() map[string]any {
	type long Config
	return config.Schema(long{})
}

func (k *Config) path(i int) string {
	if k.Target.Name == "" {
		return names[i]
	}
	return k.Target.Name + "." + names[i]
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	for _, i := range k.wanted {
		t := expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
		switch i {
		case fLat, fLon:
			t = expr.Type{Kind: expr.TDouble}
		case fASN:
			t = expr.Type{Kind: expr.TBigInt}
		}
		d.Write(k.path(i), t)
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{field: b.Slot(k.Field.Name), language: k.Language}
	for i := range m.slots {
		m.slots[i] = -1
	}
	for _, i := range k.wanted {
		if p := k.path(i); b.Live(p) {
			m.slots[i] = b.Slot(p)
		}
	}
	if _, err := os.Stat(k.Database); err != nil {
		b.Errs.Warnf(b.Node, b.Path+".database", "%v; records fail until it is there", err)
	}
	m.file = reload.New(k.Database, k.Refresh.D(), b.Log, open)
	return func() steps.Step {
		s := &step{maker: m, cache: twogen.New[place](k.Cache)}
		s.each = s.one
		return s
	}, nil
}

// open reads the database into memory: a mapped file that is written over in place would take the process down.
func open(path string) (*maxminddb.Reader, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return maxminddb.OpenBytes(data)
}

type maker struct {
	field    int
	slots    [nFields]int
	language string

	file *reload.File[maxminddb.Reader]
}

// place is what the database tells of an address.
type place struct {
	text [nFields]string
	vals [nFields]record.Value // numbers; texts of the batch gen
	gen  uint64
}

type step struct {
	*maker
	cache *twogen.Cache[place]
	each  func(int) record.Outcome
	b     *record.Batch
	db    *maxminddb.Reader
	gen   uint64
	msg   string
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.gen++
	db, err := s.file.Get()
	if s.msg = ""; err != nil {
		s.msg = "geoip: " + err.Error()
	} else if db != s.db {
		s.db = db
		s.cache.Clear()
	}
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	b := s.b
	src, msg := steps.Text(b, i, s.field, "geoip")
	if msg == "" {
		msg = s.msg
	}
	if msg != "" {
		b.Fail(i, msg)
		return record.Failed
	}
	key := b.Bytes(src)
	p := s.cache.Get(key)
	if p == nil {
		if len(key) > 64 {
			b.Fail(i, fmt.Sprintf("geoip: %.80q is no IP address", key))
			return record.Failed
		}
		addr, err := netip.ParseAddr(strings.TrimSpace(string(key)))
		if err != nil {
			b.Fail(i, fmt.Sprintf("geoip: %.80q is no IP address", key))
			return record.Failed
		}
		found, err := s.look(addr)
		if err != nil {
			b.Fail(i, "geoip: "+err.Error())
			return record.Failed
		}
		p = s.cache.Put(key, found)
	}
	if p.gen != s.gen {
		p.gen = s.gen
		for k, t := range p.text {
			if t != "" {
				p.vals[k] = b.PutString(t)
			}
		}
	}
	row := b.Row(i)
	for k, slot := range s.slots {
		if slot >= 0 {
			row[slot] = p.vals[k]
		}
	}
	return record.Keep
}

type texts map[string]string

// entry is the layout of MaxMind's databases, of all their kinds.
type entry struct {
	Continent struct {
		Code  string `maxminddb:"code"`
		Names texts  `maxminddb:"names"`
	} `maxminddb:"continent"`
	Country struct {
		Code  string `maxminddb:"iso_code"`
		Names texts  `maxminddb:"names"`
	} `maxminddb:"country"`
	Subdivisions []struct {
		Code  string `maxminddb:"iso_code"`
		Names texts  `maxminddb:"names"`
	} `maxminddb:"subdivisions"`
	City struct {
		Names texts `maxminddb:"names"`
	} `maxminddb:"city"`
	Postal struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"postal"`
	Location struct {
		Lat  *float64 `maxminddb:"latitude"`
		Lon  *float64 `maxminddb:"longitude"`
		Zone string   `maxminddb:"time_zone"`
	} `maxminddb:"location"`
	ASN          uint   `maxminddb:"autonomous_system_number"`
	Organization string `maxminddb:"autonomous_system_organization"`
}

func (s *step) look(addr netip.Addr) (p place, err error) {
	r := s.db.Lookup(addr.Unmap().WithZone(""))
	if !r.Found() {
		return p, r.Err()
	}
	var e entry
	if err := r.Decode(&e); err != nil {
		return p, fmt.Errorf("the database's entry of %s: %w", addr, err)
	}
	name := func(n texts) string {
		if t, ok := n[s.language]; ok {
			return t
		}
		return n["en"]
	}

	p.text[fContinentCode], p.text[fContinent] = e.Continent.Code, name(e.Continent.Names)
	p.text[fCountryCode], p.text[fCountry] = e.Country.Code, name(e.Country.Names)
	if len(e.Subdivisions) > 0 {
		first := e.Subdivisions[0]
		if p.text[fRegion] = name(first.Names); first.Code != "" && e.Country.Code != "" {
			p.text[fRegionCode] = e.Country.Code + "-" + first.Code
		}
	}
	p.text[fCity], p.text[fPostal], p.text[fZone], p.text[fOrganization] = name(e.City.Names), e.Postal.Code, e.Location.Zone, e.Organization
	if e.Location.Lat != nil && e.Location.Lon != nil {
		p.vals[fLat], p.vals[fLon] = record.MakeFloat(*e.Location.Lat), record.MakeFloat(*e.Location.Lon)
	}
	if e.ASN != 0 {
		p.vals[fASN] = record.MakeInt(int64(e.ASN))
	}
	return p, nil
}
