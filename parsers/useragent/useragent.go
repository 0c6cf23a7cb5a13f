// Package useragent tells browsers, systems and devices by the User-Agent header.
package useragent

import (
	"strings"

	"github.com/ua-parser/uap-go/uaparser"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/internal/twogen"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("useragent", steps.Spec{
		Doc: config.Doc{
			Summary: "Tells browser, system and device by a User-Agent header.",
			Details: "The fields are ECS's: `name`, `version`, `os.name`, `os.version`, `os.full` and `device.name`, all texts, below `user_agent` unless `target` says otherwise; the header itself is `original`. What isn't known is named `Other`, a version that isn't known makes no field. " +
				"The rules are those of the uap-core project, as this version of rsetl has them. A header that is not in the cache takes a tenth of a millisecond or more; one longer than `max_length` is looked at up to there.",
			Example: "- useragent: {field: user_agent.original, target: user_agent}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `useragent: FIELD` or the long form.
type Config struct {
	Field     steps.FieldPath `yaml:"field,required" doc:"The field with the header."`
	Target    steps.FieldPath `yaml:"target" doc:"The path below which the fields go; user_agent by default."`
	Cache     int             `yaml:"cache_size" doc:"How many headers each core remembers at most." default:"10000" min:"1"`
	MaxLength int             `yaml:"max_length" doc:"How many bytes of a header are looked at." default:"1024" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !(steps.Foreign{"source": "field", "lru_cache_size": "cache_size", "regexes": "nothing: the rules are built in", "prefix": "target"}).Decode(c, n, k) {
		return
	}
	if k.Target.Name == "" {
		k.Target.Name, k.Target.Node = "user_agent", n
	}
	if record.IsMeta(k.Target.Name) {
		c.Errorf(k.Target.Node, "target: %s is metadata and can't be set", k.Target.Name)
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

// names are the fields, in the order of agent.
var names = [...]string{"name", "version", "os.name", "os.version", "os.full", "device.name", "original"}

const nNames = len(names)

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	for _, n := range names {
		d.Write(k.Target.Name+"."+n, expr.Type{Kind: expr.TVarchar, Prec: 2147483647})
	}
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field := b.Slot(k.Field.Name)
	var slots [nNames]int
	var mode uaparser.LookupMode
	for i, n := range names {
		slots[i] = -1
		if path := k.Target.Name + "." + n; b.Live(path) {
			slots[i] = b.Slot(path)
			mode |= [nNames]uaparser.LookupMode{uaparser.EUserAgentLookUpMode, uaparser.EUserAgentLookUpMode, uaparser.EOsLookUpMode, uaparser.EOsLookUpMode, uaparser.EOsLookUpMode, uaparser.EDeviceLookUpMode, 0}[i]
		}
	}
	var whole []string // what has these names is replaced
	for _, n := range names {
		whole = append(whole, k.Target.Name+"."+n)
	}
	return func() steps.Step {
		s := &step{Config: k, field: field, slots: slots, mode: mode, cache: twogen.New[agent](k.Cache), over: steps.NewOverwriter(b.Table, whole)}
		s.each = s.one
		return s
	}, nil
}

// agent is what a header tells, in the order of names; the original is left out.
type agent struct {
	text [nNames - 1]string
	// at is where the texts are in the batch's buffer, of the batch gen.
	at  [nNames - 1]record.Value
	gen uint64
}

type step struct {
	*Config
	field int
	slots [nNames]int
	mode  uaparser.LookupMode
	cache *twogen.Cache[agent]
	over  *steps.Overwriter
	each  func(int) record.Outcome
	b     *record.Batch
	gen   uint64
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.gen++
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "useragent")
	if msg != "" {
		s.b.Fail(i, msg)
		return record.Failed
	}
	key := s.b.Bytes(src)
	key = key[:min(len(key), s.MaxLength)]
	a := s.cache.Get(key)
	if a == nil {
		p, err := rules()
		if err != nil {
			s.b.Fail(i, "useragent: "+err.Error())
			return record.Failed
		}
		a = s.cache.Put(key, s.look(p, string(key)))
	}
	if a.gen != s.gen {
		a.gen = s.gen
		for k, t := range a.text {
			if a.at[k] = (record.Value{}); t != "" {
				a.at[k] = s.b.PutString(t)
			}
		}
	}
	for k, slot := range s.slots {
		if slot < 0 {
			continue
		}
		v := src
		if k < len(a.at) {
			v = a.at[k]
		}
		s.over.Clear(s.b, i, k)
		s.b.Set(i, slot, v)
	}
	return record.Keep
}

// look asks the rules for what is wanted.
func (s *step) look(r *ruleSet, text string) (a agent) {
	h := newHeader(text)
	if s.mode&uaparser.EUserAgentLookUpMode != 0 {
		ua := r.agentOf(h)
		a.text[0], a.text[1] = ua.Family, ua.ToVersionString()
	}
	if s.mode&uaparser.EOsLookUpMode != 0 {
		os := r.osOf(h)
		a.text[2], a.text[3], a.text[4] = os.Family, os.ToVersionString(), os.ToString()
	}
	if s.mode&uaparser.EDeviceLookUpMode != 0 {
		a.text[5] = r.deviceOf(h).Family
	}
	for k := range a.text {
		a.text[k] = strings.TrimSpace(a.text[k])
	}
	return a
}
