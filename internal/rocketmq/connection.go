package rocketmq

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/steps"
)

// Connection is what source and sink have in common.
type Connection struct {
	NameServers []config.Text `yaml:"name_servers,required" doc:"The name servers, as host:port; names, IPv4 and IPv6 addresses. They are asked in turn."`
	AccessKey   string        `yaml:"access_key" doc:"The access key, where the cluster has access control."`
	SecretKey   string        `yaml:"secret_key" doc:"Its secret."`
	Token       string        `yaml:"token" doc:"A security token, with temporary keys."`
	Namespace   string        `yaml:"namespace" doc:"Topics and groups are those of this namespace: their names at the broker begin with it and %."`
	TLS         *TLS          `yaml:"tls" doc:"Use TLS; {} for the system's certificates."`
}

// TLS is `tls:`.
type TLS struct {
	CA         string `yaml:"ca" doc:"File of the PEM certificates that sign the servers' certificates; the system's where absent."`
	Cert       string `yaml:"cert" doc:"File of the client's PEM certificate."`
	Key        string `yaml:"key" doc:"File of its key."`
	ServerName string `yaml:"server_name" doc:"The name in the servers' certificates, where it isn't the host's."`
	Insecure   bool   `yaml:"insecure" doc:"Don't verify the servers' certificates."`
}

// Declare checks what needs no server.
func (c *Connection) Declare(d *steps.Decl) {
	if len(c.NameServers) == 0 {
		d.Errorf(nil, "name_servers", "give at least one name server, as in ['127.0.0.1:9876']")
	}
	for _, a := range c.NameServers {
		if err := CheckAddress(a.Value); err != nil && !a.Unknown {
			d.Errorf(a.Node, "name_servers", "%v", err)
		}
	}
	if (c.AccessKey == "") != (c.SecretKey == "") {
		d.Errorf(nil, "access_key", "access_key and secret_key go together")
	}
	for _, s := range []string{c.SecretKey, c.Token} {
		if s != "" {
			d.Errs.Hide(s)
		}
	}
	if t := c.TLS; t != nil && (t.Cert == "") != (t.Key == "") {
		d.Errorf(nil, "tls", "cert and key go together")
	}
}

// Client makes a client. Files of certificates are read now.
func (c *Connection) Client(changed func()) (*Client, error) {
	o := Options{AccessKey: c.AccessKey, SecretKey: c.SecretKey, Token: c.Token, Namespace: c.Namespace, Changed: changed}
	for _, a := range c.NameServers {
		o.NameServers = append(o.NameServers, a.Value)
	}
	if t := c.TLS; t != nil {
		o.TLS = &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
		if t.CA != "" {
			pem, err := os.ReadFile(t.CA)
			if err != nil {
				return nil, fmt.Errorf("tls.ca: %w", err)
			}
			o.TLS.RootCAs = x509.NewCertPool()
			if !o.TLS.RootCAs.AppendCertsFromPEM(pem) {
				return nil, fmt.Errorf("tls.ca: %s holds no PEM certificate", t.CA)
			}
		}
		if t.Cert != "" {
			cert, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			if err != nil {
				return nil, fmt.Errorf("tls.cert: %w", err)
			}
			o.TLS.Certificates = []tls.Certificate{cert}
		}
	}
	return New(o), nil
}

// Foreign reports names of options that other tools use, with what they are called here, and takes them out of n.
func Foreign(c *config.Context, n *yaml.Node, names map[string]string) *yaml.Node {
	r := config.Resolve(n)
	if r.Kind != yaml.MappingNode {
		return n
	}
	out := *r
	out.Content = nil
	for i := 0; i+1 < len(r.Content); i += 2 {
		if what, ok := names[r.Content[i].Value]; ok {
			c.Errorf(r.Content[i], "%q is another tool's name; here it is %s", r.Content[i].Value, what)
			continue
		}
		out.Content = append(out.Content, r.Content[i], r.Content[i+1])
	}
	return &out
}

// OriginProp is the property that tells where rsetl's sink had a message from: pipeline and sink, split, epoch, offset and
// index, with | between them. A source drops a message whose origin isn't behind the last one of its split in that queue.
const OriginProp = "rsetl_origin"
