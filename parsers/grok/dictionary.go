// Package grok parses text with named patterns: `%{IPORHOST:source.address}`.
package grok

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/elastic/go-grok/patterns"
)

// Dictionary is a set of pattern definitions by name.
type Dictionary map[string]string

// fileMaps are go-grok's maps. Its names are those of the Elastic Common Schema.
var fileMaps = []map[string]string{
	patterns.Default, patterns.AWS, patterns.Bind9, patterns.Bro, patterns.Exim, patterns.Firewalls, patterns.HAProxy, patterns.Httpd,
	patterns.Java, patterns.Junos, patterns.Maven, patterns.MCollective, patterns.MongoDB, patterns.PostgreSQL, patterns.Rails,
	patterns.Redis, patterns.Ruby, patterns.Squid, patterns.Syslog,
}

// addresses are what is known to be an IP address: `.ip` in the schema, where `.address` may be a host's name.
var addresses = regexp.MustCompile(`%\{(IP|IPV4|IPV6):([a-z_.]+)\.address\b`)

var renames = strings.NewReplacer("body.size", "body.bytes", "network.protocol.name", "network.protocol", "bing.log", "bind.log", "db.mongodb.", "mongodb.", `long})\t%{IPORHOST:source.address}\t`, `long})\t%{IPORHOST:source.ip}\t`, "%{IPORHOST:host.name}", "%{IPORHOST:host.hostname}", "%{SYSLOGHOST:host.name}", "%{SYSLOGHOST:host.hostname}",
	"%{DATA:metadata.cisco.asa.remote_nat}", "%{DATA}", "%{DATA:metadata.cisco.asa.local_nat}", "%{DATA}",
	"%{DATA:metadata.cisco.asa.hashcode1}", "%{DATA}", "%{DATA:metadata.cisco.asa.hashcode2}", "%{DATA}", // not shipped by Logstash
	`%{IP:source.ip}:%{INT:source.port:int} \[%{HAPROXYDATE`, `%{HAPROXYCLIENT} \[%{HAPROXYDATE`)

// Set gives the definitions of a set, ecs or legacy. The caller must not change them.
func Set(name string) (Dictionary, bool) {
	switch name {
	case "ecs":
		return ecsSet(), true
	case "legacy":
		return legacySet(), true
	}
	return nil, false
}

// Sets are the names that Set knows.
var Sets = []string{"ecs", "legacy"}

var ecsSet = sync.OnceValue(func() Dictionary {
	d := Dictionary{}
	for _, m := range fileMaps {
		for name, def := range m {
			// Its groups have Go's syntax, with ___ for the dots of a path; the rest are fields that the schema and Logstash name otherwise.
			d[name] = renames.Replace(strings.ReplaceAll(addresses.ReplaceAllString(def, "%{$1:$2.ip"), "(?P<", "(?<"))
		}
	}
	for _, more := range []Dictionary{core, corrections, nagiosNames, nagiosECS(), bacula(baculaECS), moreECS} {
		maps.Copy(d, more)
	}
	return d
})

var legacySet = sync.OnceValue(func() Dictionary {
	return buildLegacy()
})

// corrections bring go-grok's definitions to what Logstash's give.
var corrections = Dictionary{

	"HTTPD_COMMONLOG": `%{IPORHOST:source.address} (?:-|%{HTTPDUSER:apache.access.user.identity}) (?:-|%{HTTPDUSER:user.name}) \[%{HTTPDATE:timestamp}\] ` +
		`"(?:%{WORD:http.request.method} %{NOTSPACE:url.original}(?: HTTP/%{NUMBER:http.version})?|%{DATA})" ` +
		`(?:-|%{INT:http.response.status_code:int}) (?:-|%{INT:http.response.body.bytes:int})`,

	"CISCOFW733100": `\[\s*%{DATA:cisco.asa.burst.object}\s*\] drop %{DATA:cisco.asa.burst.id} exceeded\. ` +
		`Current burst rate is %{INT:cisco.asa.burst.current_rate:int} per second, max configured rate is %{INT:cisco.asa.burst.configured_rate:int}; ` +
		`Current average rate is %{INT:cisco.asa.burst.avg_rate:int} per second, max configured rate is %{INT:cisco.asa.burst.configured_avg_rate:int}; ` +
		`Cumulative total count is %{INT:cisco.asa.burst.cumulative_count:int}`,
	"CISCOFW106023": `%{CISCO_ACTION:cisco.asa.outcome}(?: protocol)? %{WORD:cisco.asa.network.transport} ` +
		`src %{DATA:observer.ingress.interface.name}:%{DATA:source.ip}(?:/%{INT:source.port:int})?(?:\(%{DATA:source.user.name}\))? ` +
		`dst %{DATA:observer.egress.interface.name}:%{DATA:destination.ip}(?:/%{INT:destination.port:int})?(?:\(%{DATA:destination.user.name}\))?` +
		`(?: \(type %{INT:cisco.asa.icmp_type:int}, code %{INT:cisco.asa.icmp_code:int}\))? by access-group "?%{DATA:cisco.asa.rule_name}"? \[%{DATA}, %{DATA}\]`,

	// A client on a unix socket has no address; a line cut off by UDP has no closing quote.
	"HAPROXYCLIENT": `(?:%{IP:source.address}:%{INT:source.port:int}|unix:%{INT})`,
	"HAPROXYERROR":  `%{HAPROXYCLIENT} \[%{HAPROXYDATE:haproxy.request_date}\] (?<haproxy.frontend_name>[^\s/]+)/(?<haproxy.bind_name>[^\s:]+):\s+%{GREEDYDATA:error.message}`,

	"SYSLOGPROG":     `%{PROG:process.name}(?:\[%{POSINT:process.pid:int}\])?`,
	"SYSLOGFACILITY": `<%{NONNEGINT:log.syslog.facility.code:int}.%{NONNEGINT:log.syslog.priority:int}>`,
	"SYSLOGBASE":     `%{SYSLOGTIMESTAMP:timestamp} (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:host.hostname} %{SYSLOGPROG}:`,
	"SYSLOGBASE2":    `(?:%{SYSLOGTIMESTAMP:timestamp}|%{TIMESTAMP_ISO8601:timestamp}) (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:host.hostname}+(?: %{SYSLOGPROG}:|)`,
}

// Names are a dictionary's names, sorted.
func (d Dictionary) Names() []string { return slices.Sorted(maps.Keys(d)) }
