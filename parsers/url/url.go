// Package url takes URLs apart.
package url

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"
	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("url", steps.Spec{
		Doc: config.Doc{
			Summary: "Takes a URL, or a request's path with its query, apart.",
			Details: "The fields are ECS's: `scheme`, `username`, `password`, `domain`, `port` (a number), `path`, `extension`, `query`, `fragment`, and the text itself as `original`, below `url` unless `target` says otherwise. What the URL doesn't have makes no field. Nothing is decoded but the parameters; what isn't written as RFC 3986 demands is no failure, as logs have it.\n\n" +
				"With `params: true` the query's parameters are texts below `params`, decoded; one that comes several times is an array. With `registered_domain: true` there are `registered_domain`, `top_level_domain` and `subdomain`, by the public suffix list that this version of rsetl has. A text without a scheme, a host or a path, such as `-`, is a failure.",
			Example: "- url: {field: request, target: url, params: true}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `url: FIELD` or the long form.
type Config struct {
	Field      steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target     steps.FieldPath `yaml:"target" doc:"The path below which the fields go, in place of what was there; url by default."`
	Params     bool            `yaml:"params" doc:"Make fields of the query's parameters."`
	Registered bool            `yaml:"registered_domain" doc:"Tell the registered domain."`
	MaxFields  int             `yaml:"max_fields" doc:"The most fields that one URL may give." default:"10000" min:"1"`
}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !(steps.Foreign{"source": "field"}).Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if k.Target.Name == "" {
		k.Target.Name, k.Target.Node = "url", n
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

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	steps.DeclareTarget(d, k.Target.Name)
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	field := b.Slot(k.Field.Name)
	return func() steps.Step {
		s := &step{Config: k, field: field, found: steps.NewFound(b, k.Target.Name, k.MaxFields)}
		s.found.Arrays = true
		s.each = s.one
		return s
	}, nil
}

type step struct {
	*Config
	field int
	found *steps.Found
	each  func(int) record.Outcome
	b     *record.Batch
	key   []byte
	src   record.Value
	over  bool
}

func (s *step) Apply(b *record.Batch) {
	s.b = b
	s.found.Batch(b)
	b.Each(s.each)
	s.b = nil
}

func (s *step) one(i int) record.Outcome {
	src, msg := steps.Text(s.b, i, s.field, "url")
	if msg == "" {
		s.found.Begin()
		s.src, s.over = src, false
		if msg = s.parse(s.b.Bytes(src)); s.over {
			msg = "url: more than max_fields parameters"
		}
	}
	if msg != "" {
		s.b.Fail(i, msg)
		return record.Failed
	}
	s.found.Put(i)
	return record.Keep
}

// put gives the field a part of the URL.
func (s *step) put(name string, from, to int) {
	if from < to {
		s.add(name, s.src.Sub(from, to))
	}
}

func (s *step) add(name string, v record.Value) {
	s.key = append(s.key[:0], name...)
	s.over = !s.found.Add(s.key, v) || s.over
}

// schemeEnd is the place of the colon behind a scheme, -1 where there is none.
func schemeEnd(in []byte) int {
	for i, c := range in {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
		case i > 0 && (c-'0' <= 9 || c == '+' || c == '-' || c == '.'):
		case c == ':' && i > 0:
			return i
		default:
			return -1
		}
	}
	return -1
}

func (s *step) parse(in []byte) string {
	at, end := 0, len(in)
	s.put("original", at, end)
	if n := bytes.IndexByte(in, '#'); n >= 0 {
		s.put("fragment", n+1, end)
		end = n
	}
	query := -1
	if n := bytes.IndexByte(in[:end], '?'); n >= 0 {
		query = n + 1
		s.put("query", query, end)
		if s.Params {
			s.params(in, query, end)
		}
		end = n
	}
	scheme := schemeEnd(in[:end])
	host := false
	if scheme >= 0 && !(scheme+1 < end && in[scheme+1]-'0' <= 9) { // `host:80` is no scheme
		s.put("scheme", 0, scheme)
		at = scheme + 1
	} else {
		scheme = -1
	}
	if at+1 < end && in[at] == '/' && in[at+1] == '/' {
		at += 2
		stop := end
		if n := bytes.IndexByte(in[at:end], '/'); n >= 0 {
			stop = at + n
		}
		s.authority(in, at, stop)
		host, at = true, stop
	}
	if scheme < 0 && !host && (at == end || in[at] != '/') && query < 0 {
		return fmt.Sprintf("url: %.80q is no URL", in)
	}
	s.put("path", at, end)
	name := in[at:end]
	if n := bytes.LastIndexByte(name, '/'); n >= 0 {
		if dot := bytes.LastIndexByte(name[n:], '.'); dot > 1 {
			s.put("extension", at+n+dot+1, end)
		}
	}
	return ""
}

// authority reads user:password@host:port.
func (s *step) authority(in []byte, at, end int) {
	if n := bytes.LastIndexByte(in[at:end], '@'); n >= 0 {
		user := in[at : at+n]
		if c := bytes.IndexByte(user, ':'); c >= 0 {
			s.put("username", at, at+c)
			s.put("password", at+c+1, at+n)
		} else {
			s.put("username", at, at+n)
		}
		at += n + 1
	}
	from, to := at, end
	port := -1
	if at < end && in[at] == '[' { // IPv6
		n := bytes.IndexByte(in[at:end], ']')
		if n < 0 {
			n = end - at
		}
		from, to = at+1, at+n
		if at+n+1 < end && in[at+n+1] == ':' {
			port = at + n + 2
		}
	} else if n := bytes.LastIndexByte(in[at:end], ':'); n >= 0 {
		to, port = at+n, at+n+1
	}
	s.put("domain", from, to)
	if port >= 0 && port < end && end-port <= 5 {
		n := 0
		for _, c := range in[port:end] {
			if c-'0' > 9 {
				n = -1
				break
			}
			n = n*10 + int(c-'0')
		}
		if n >= 0 && n <= 65535 {
			s.add("port", record.MakeInt(int64(n)))
		}
	}
	if s.Registered && to > from {
		s.registered(strings.ToLower(string(in[from:to])))
	}
}

func (s *step) registered(host string) {
	host = strings.TrimSuffix(host, ".")
	if len(host) > 253 || strings.IndexByte(host, ':') >= 0 || host[max(0, len(host)-1):] < ":" { // no name but an address
		return
	}
	suffix, _ := publicsuffix.PublicSuffix(host)
	s.add("top_level_domain", s.b.PutString(suffix))
	if len(suffix) >= len(host) {
		return
	}
	rest := host[:len(host)-len(suffix)-1]
	dot := strings.LastIndexByte(rest, '.')
	s.add("registered_domain", s.b.PutString(host[dot+1:]))
	if dot > 0 {
		s.add("subdomain", s.b.PutString(host[:dot]))
	}
}

// params makes fields of a=b&c=d.
func (s *step) params(in []byte, at, end int) {
	for at <= end && !s.over {
		n := at
		for n < end && in[n] != '&' && in[n] != ';' {
			n++
		}
		if n > at {
			eq := bytes.IndexByte(in[at:n], '=')
			key, from := in[at:n], n
			if eq >= 0 {
				key, from = in[at:at+eq], at+eq+1
			}
			s.key = decode(append(s.key[:0], "params."...), key)
			if len(s.key) > len("params.") {
				v := s.src.Sub(from, n)
				if bytes.IndexByte(in[from:n], '%') >= 0 || bytes.IndexByte(in[from:n], '+') >= 0 {
					off := len(s.b.Buf)
					s.b.Buf = decode(s.b.Buf, in[from:n])
					v = s.b.Since(off)
				}
				s.over = !s.found.Add(s.key, v)
			}
		}
		at = n + 1
	}
}

// decode appends p with %XX and + resolved; what is no escape stays.
func decode(dst, p []byte) []byte {
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '+':
			dst = append(dst, ' ')
		case c == '%' && i+2 < len(p) && hex(p[i+1]) >= 0 && hex(p[i+2]) >= 0:
			dst = append(dst, byte(hex(p[i+1])<<4|hex(p[i+2])))
			i += 2
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func hex(c byte) int {
	switch {
	case c-'0' <= 9:
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
