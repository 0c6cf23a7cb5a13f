// Package elasticsearch is the sink that writes documents to Elasticsearch with its bulk API.
package elasticsearch

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/sinks"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	sinks.MustRegister("elasticsearch", sinks.Spec{
		Doc: config.Doc{
			Summary: "Writes documents to Elasticsearch (7.x, 8.x) with its bulk API.",
			Details: "Without `id` a document's id is made from pipeline, sink, split and position, and it is sent as `create`: what comes again after a restart is refused " +
				"by Elasticsearch and counted as skipped. With an `id` of your own the default is `op: index`, and the last write wins; `version` makes that safe against any delay.\n\n" +
				"Each item is looked at by itself: 429 and 503 are tried again, with backoff and Retry-After, in order for each id; what Elasticsearch refuses (400, 404: a mapping, a missing document) goes to the dead " +
				"letters with its reason; 401 and 403 stop the sink, visibly, until they are mended. A request that is too large (413) is cut in halves, and so is one that is refused as a whole (400), down to the document that causes it.\n\n" +
				"The index is a template: `web-%{+yyyy.MM.dd}` is the day of `@timestamp`. Dotted fields are nested objects. A data stream takes `op: create` only, and needs `@timestamp`.",
			Example: "- elasticsearch: {hosts: ['http://127.0.0.1:9200'], index: 'web-%{+yyyy.MM.dd}', user: rsetl, password: '${file:/run/secrets/es}'}",
		},
		New:       func() sinks.Config { return &Config{} },
		Guarantee: func(c sinks.Config) string { return c.(*Config).guarantee() },
		Batch:     &sinks.BatchConfig{Size: 5000, Bytes: 5 << 20, Memory: 32 << 20, InFlight: 2},
	})
}

// Config is `elasticsearch:`.
type Config struct {
	Hosts    []config.Text      `yaml:"hosts,required" doc:"URLs of the nodes, as http://10.0.0.1:9200; they are taken in turn, those that don't answer are left out for a while."`
	Index    steps.Template     `yaml:"index,required" doc:"The index, alias or data stream; may be a template."`
	ID       *steps.Template    `yaml:"id" doc:"The document's id, a template; made from pipeline, sink, split and position where absent."`
	Op       string             `yaml:"op" doc:"create: a document that is there already stays as it is; index: it is replaced; update: the fields are merged into it, it is made where missing. create by default, index where id is set." enum:"create,index,update"`
	Routing  *steps.Template    `yaml:"routing" doc:"The routing value, a template."`
	Pipeline *steps.Template    `yaml:"pipeline" doc:"The ingest pipeline, a template."`
	Version  *steps.Expr        `yaml:"version" doc:"An expression that gives the document's version, an integer: an older one never replaces a newer one (external_gte). For op: index with an id."`
	User     string             `yaml:"user" doc:"For basic authentication."`
	Password string             `yaml:"password" doc:"For basic authentication."`
	APIKey   string             `yaml:"api_key" doc:"An API key: id:key, or its base64 form."`
	TLS      TLS                `yaml:"tls" doc:"For https hosts."`
	Headers  config.Map[string] `yaml:"headers" doc:"Headers of every request."`
	Gzip     bool               `yaml:"gzip" doc:"Compress requests: less network for more CPU."`
	Timeout  config.Duration    `yaml:"timeout" doc:"How long to wait for the answer to a request." default:"2m"`
	Compat   int                `yaml:"compatible_with" doc:"Ask a newer Elasticsearch to behave as this major version (7 or 8); 0: don't ask." default:"0"`

	headers http.Header
}

// TLS is `tls:`.
type TLS struct {
	CA         string `yaml:"ca" doc:"File of the PEM certificates that sign the servers' certificates; the system's where absent."`
	Cert       string `yaml:"cert" doc:"File of the client's PEM certificate."`
	Key        string `yaml:"key" doc:"File of its key."`
	ServerName string `yaml:"server_name" doc:"The name in the server's certificate, where it isn't the host's."`
	Insecure   bool   `yaml:"insecure" doc:"Don't verify the server's certificate."`
}

var _ sinks.Config = (*Config)(nil)

func (c *Config) op() string {
	switch {
	case c.Op != "":
		return c.Op
	case c.ID != nil:
		return "index"
	}
	return "create"
}

func (c *Config) guarantee() string {
	void := "; void where the index is rolled over (an alias or a data stream) or its documents are deleted between a crash and the restart, and where the pipeline or sink is renamed meanwhile"
	switch {
	case c.ID == nil:
		return "exactly once in effect: ids are made from the position, and one that is there already is not written again" + void
	case c.Version != nil:
		return "at least once; the last version of an id stays, whatever is sent again or late"
	case c.op() == "create":
		return "exactly once in effect for records whose ids differ: one that is there already is not written again" + void
	}
	return "at least once; sent again, a document is the same under its id; a request that Elasticsearch works on after its time-out may put an older state of an id over a newer one: set `version` against that"
}

// Declare tells what is read and checks what needs no server.
func (c *Config) Declare(d *steps.Decl) {
	d.ReadAll = true
	d.ReadTemplate(&c.Index)
	for _, t := range []*steps.Template{c.ID, c.Routing, c.Pipeline} {
		d.ReadTemplate(t)
	}
	d.ReadExpr(c.Version)
	if len(c.Hosts) == 0 {
		d.Errorf(nil, "hosts", "want at least one URL, as in ['http://127.0.0.1:9200']")
	}
	for _, host := range c.Hosts {
		if host.Unknown {
			continue
		}
		h := host.Value
		u, err := url.Parse(h)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			d.Errorf(host.Node, "hosts", "%q is no URL of a node; write http://host:9200 or https://host:9200", h)
			continue
		}
		if p, ok := u.User.Password(); ok {
			d.Errs.Hide(p)
		}
	}
	if c.Index.Template != nil && c.Index.Source() == "" {
		d.Errorf(c.Index.Node, "index", "index is empty")
	}
	switch {
	case c.Op == "update" && c.ID == nil:
		d.Errorf(nil, "op", "update needs `id`: which document to update")
	case c.Version != nil && (c.op() != "index" || c.ID == nil):
		d.Errorf(c.Version.Node, "version", "version needs `id` and op: index")
	}
	if c.APIKey != "" && c.User != "" {
		d.Errorf(nil, "api_key", "give user and password, or api_key, not both")
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		d.Errorf(nil, "tls", "cert and key go together")
	}
	if c.Compat != 0 && c.Compat != 7 && c.Compat != 8 {
		d.Errorf(nil, "compatible_with", "want 7 or 8")
	}
	for _, s := range []string{c.Password, c.APIKey} {
		if s != "" {
			d.Errs.Hide(s)
		}
	}
	c.headers = http.Header{}
	for _, h := range c.Headers {
		c.headers.Set(h.Key, h.Value)
		if strings.EqualFold(h.Key, "Authorization") {
			d.Errs.Hide(h.Value)
		}
	}
	if c.APIKey != "" {
		key := c.APIKey
		if strings.Contains(key, ":") {
			key = base64.StdEncoding.EncodeToString([]byte(key))
			d.Errs.Hide(key)
		}
		c.headers.Set("Authorization", "ApiKey "+key)
	}
}

// Build makes the sink; nothing is connected yet.
func (c *Config) Build(b *steps.Build) (sinks.Sink, error) {
	s := &Sink{c: c, pipeline: b.Pipeline, name: b.Name, op: c.op(), running: map[*sinks.Chunk]*progress{}}
	s.enc = record.NewEncoder(b.Table, append([]string{}, b.Ship...), b.OpenEnded) // never nil: that means all
	s.index, s.daySlot = b.Template(&c.Index), -1
	if c.Index.Template != nil && c.Index.HasDate() && byDay(c.Index.Source()) {
		if f := c.Index.FieldsFor(b.Compiler.EventTime); len(f) == 1 {
			s.daySlot = b.Slot(f[0])
		}
	}
	s.id, s.routing, s.ingest = b.Template(c.ID), b.Template(c.Routing), b.Template(c.Pipeline)
	if s.version = b.Expr(c.Version); s.version != nil {
		switch s.version.Type().Kind {
		case expr.TAny, expr.TTinyInt, expr.TSmallInt, expr.TInt, expr.TBigInt:
		default:
			b.Errorf(c.Version.Node, "version", "a version is an integer, this is a %s", s.version.Type().String())
		}
	}
	s.scratch.New = func() any { return &scratch{env: new(expr.Env)} }
	return s, nil
}

// urls are the hosts.
func (c *Config) urls() (out []string) {
	for _, h := range c.Hosts {
		out = append(out, h.Value)
	}
	return out
}

// tlsConfig reads the files, at each start: they may have been renewed.
func (c *Config) tlsConfig() (*tls.Config, error) {
	t := &tls.Config{ServerName: c.TLS.ServerName, InsecureSkipVerify: c.TLS.Insecure}
	if c.TLS.CA != "" {
		pem, err := os.ReadFile(c.TLS.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", c.TLS.CA)
		}
	}
	if c.TLS.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.cert: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

// foreign are names that users know from Logstash's output, with what to write instead.
var foreign = map[string]string{
	"document_id": "`id`", "action": "`op`", "doc_as_upsert": "`op: update`, which makes a document that is missing", "upsert": "`op: update`", "scripted_upsert": "nothing: there are no scripts",
	"document_type": "nothing: indexes have no types any more", "template": "nothing: put the index template into Elasticsearch", "manage_template": "nothing", "ilm_enabled": "nothing: give the alias or data stream as `index`",
	"ssl": "https in `hosts`", "ssl_enabled": "https in `hosts`", "cacert": "`tls: {ca: FILE}`", "ssl_certificate_authorities": "`tls: {ca: FILE}`", "ssl_certificate": "`tls: {cert: FILE}`", "ssl_key": "`tls: {key: FILE}`",
	"ssl_certificate_verification": "`tls: {insecure: true}`", "ssl_verification_mode": "`tls: {insecure: true}`", "http_compression": "`gzip`", "compression_level": "`gzip`", "custom_headers": "`headers`",
	"flush_size": "`batch: {size: N}` beside the sink", "idle_flush_time": "`batch: {interval: 1s}` beside the sink", "max_in_flight": "`batch: {in_flight: N}` beside the sink", "workers": "`batch: {in_flight: N}` beside the sink",
	"retry_initial_interval": "nothing: the pauses grow from 100ms to 30s", "retry_max_interval": "nothing: the pauses grow from 100ms to 30s", "retry_on_conflict": "nothing: a conflict of an update is tried again",
	"sniffing": "nothing: list the nodes in `hosts`", "dlq_custom_codes": "nothing: what can't go is always a dead letter", "data_stream": "`index`, the data stream's name", "version_type": "nothing: `version` is external_gte",
	"cloud_id": "`hosts`", "cloud_auth": "`user` and `password`, or `api_key`",
}

// UnmarshalConfig reads the options, and knows what Logstash calls them.
func (c *Config) UnmarshalConfig(x *config.Context, n *yaml.Node) {
	r := config.Resolve(n)
	if r == nil || r.Kind != yaml.MappingNode {
		x.DecodeStruct(n, c)
		return
	}
	own := *r
	own.Content = nil
	for i := 0; i+1 < len(r.Content); i += 2 {
		if what, ok := foreign[r.Content[i].Value]; ok {
			x.Errorf(r.Content[i], "%q is Logstash's name; here it is %s", r.Content[i].Value, what)
			continue
		}
		own.Content = append(own.Content, r.Content[i], r.Content[i+1])
	}
	x.DecodeStruct(&own, c)
}
