// Package syslog parses syslog messages: RFC 5424, RFC 3164, and what devices make of them.
package syslog

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rsetl/rsetl/config"
	"github.com/rsetl/rsetl/expr"
	"github.com/rsetl/rsetl/record"
	"github.com/rsetl/rsetl/steps"
)

func init() {
	steps.MustRegister("syslog", steps.Spec{
		Doc: config.Doc{
			Summary: "Parses a syslog message: RFC 5424, RFC 3164 and what devices send in its place.",
			Details: "The fields are `priority`, `facility` and `severity` (numbers), `hostname`, `appname`, `procid`, `message`, and of RFC 5424 `version`, `msgid` and `structured_data`, whose parameters are `structured_data.ID.NAME`. " +
				"What is `-`, empty or absent makes no field; `message` is the text that is left, without a byte order mark. The time goes to `@timestamp`, or where `timestamp` says.\n\n" +
				"With `format: auto` a message with a version behind its priority is RFC 5424. Of RFC 3164 are read: a message without a priority (as in /var/log/messages); times with a year before or behind the day's time, with a fraction, " +
				"a zone's offset, or as RFC 3339; days with one digit or two; Cisco's sequence numbers and `*` before the time; no hostname before `program:` or `program[pid]:`; any text where there is no time. " +
				"A time without a zone is in `zone`; one without a year is of the latest year that puts it at most a day ahead of now.\n\n" +
				"RFC 5424 is taken as it is written, and with `format: rfc3164` so is RFC 3164; a message that breaks it fails. With `best_effort` the fields up to the mistake are kept and the whole text stays in `message`.",
			Example: "- syslog: message\n- syslog: {field: message, target: log.syslog, zone: Europe/Berlin}",
		},
		New:     func() steps.Config { return &Config{} },
		CanFail: true,
	})
}

// Config is `syslog: FIELD` or the long form.
type Config struct {
	Field      steps.FieldPath `yaml:"field" doc:"The field to parse; message by default."`
	Target     steps.FieldPath `yaml:"target" doc:"The path below which the fields go, message and @timestamp excepted; the record itself by default."`
	Format     string          `yaml:"format" doc:"The format, where all messages have the same." enum:"auto,rfc5424,rfc3164" default:"auto"`
	RFC3339    bool            `yaml:"accept_rfc3339" doc:"With format rfc3164: times may be RFC 3339's, without a fraction."`
	Timestamp  steps.FieldPath `yaml:"timestamp" doc:"The field that gets the message's time; @timestamp by default."`
	Zone       string          `yaml:"zone" doc:"The zone of times without one, an IANA name; the pipeline's by default."`
	BestEffort bool            `yaml:"best_effort" doc:"A message that breaks off being syslog keeps what was read up to there, instead of failing."`
	KeepBOM    bool            `yaml:"keep_bom" doc:"Leave the byte order mark that RFC 5424 puts before a message in UTF-8."`
	Labels     bool            `yaml:"labels" doc:"Add facility_label and severity_label, such as auth and error."`

	loc *time.Location
}

var foreign = steps.Foreign{"source": "field", "use_labels": "labels", "timezone": "zone", "grok_pattern": "a step grok", "syslog_field": "field"}

var _ steps.Config = (*Config)(nil)

func (k *Config) UnmarshalConfig(c *config.Context, n *yaml.Node) {
	if r := config.Resolve(n); r.Kind == yaml.ScalarNode && r.Tag != "!!null" {
		config.Defaults(k)
		k.Field.UnmarshalConfig(c, n)
	} else if !foreign.Decode(c, n, k) {
		return
	}
	if k.Field.Name == "" {
		k.Field.Name, k.Field.Node = "message", n
	}
	if k.Timestamp.Name == "" {
		k.Timestamp.Name, k.Timestamp.Node = "@timestamp", n
	}
	for _, f := range []steps.FieldPath{k.Target, k.Timestamp} {
		if record.IsMeta(f.Name) {
			c.Errorf(f.Node, "%s is metadata and can't be set", f.Name)
		}
	}
	if k.Zone != "" {
		loc, err := time.LoadLocation(k.Zone)
		if err != nil {
			c.Errorf(n, "zone: unknown time zone %q; write an IANA name like Europe/Berlin", k.Zone)
		}
		k.loc = loc
	}
}

// JSONSchema describes both forms.
func (Config) JSONSchema() map[string]any {
	type long Config
	return map[string]any{"anyOf": []any{map[string]any{"type": "string"}, config.Schema(long{})}}
}

// The fields, by number.
const (
	fPriority = iota
	fFacility
	fSeverity
	fVersion
	fHostname
	fAppname
	fProcid
	fMsgid
	fFacilityLabel
	fSeverityLabel
	nFields
)

var fieldNames = [nFields]string{"priority", "facility", "severity", "version", "hostname", "appname", "procid", "msgid", "facility_label", "severity_label"}

func (k *Config) path(name string) string {
	if k.Target.Name != "" {
		return k.Target.Name + "." + name
	}
	return name
}

func (k *Config) Declare(d *steps.Decl) {
	d.Read(k.Field.Name, k.Field.Node)
	text := expr.Type{Kind: expr.TVarchar, Prec: 2147483647}
	for i, n := range fieldNames {
		t := text
		if i <= fVersion {
			t = expr.Type{Kind: expr.TBigInt}
		}
		if i < fFacilityLabel || k.Labels {
			d.Write(k.path(n), t)
		}
	}
	d.Write(k.path("structured_data"), expr.Type{})
	d.WriteUnder = append(d.WriteUnder, k.path("structured_data"))
	d.Write("message", text)
	d.Write(k.Timestamp.Name, expr.Type{Kind: expr.TTimestampLTZ, Prec: 9})
}

func (k *Config) Build(b *steps.Build) (steps.Maker, error) {
	m := &maker{field: b.Slot(k.Field.Name), message: -1, time: -1, format: k.Format, iso: k.RFC3339, effort: k.BestEffort, keepBOM: k.KeepBOM, labels: k.Labels, now: b.Now, zone: b.Zone}
	if k.loc != nil {
		m.zone = k.loc
	}
	slot := func(name string) int {
		if b.Live(name) {
			return b.Slot(name)
		}
		return -1
	}
	for i, n := range fieldNames {
		m.slots[i] = -1
		if i < fFacilityLabel || k.Labels {
			m.slots[i] = slot(k.path(n))
		}
	}
	m.message, m.time = slot("message"), slot(k.Timestamp.Name)
	m.data = b.Live(k.path("structured_data"))
	if m.data {
		b.Slot(k.path("structured_data"))
	}
	if k.Labels {
		for i, l := range severities {
			m.severity[i] = b.Table.Const(l)
		}
		for i, l := range facilities {
			m.facility[i] = b.Table.Const(l)
		}
	}
	return func() steps.Step {
		s := &step{maker: m}
		prefix := k.path("structured_data") + "."
		s.names = steps.NewNames(b.Table, b.Live, func(key []byte) string { return prefix + string(key) })
		s.below = steps.NewBelow(b.Table, k.path("structured_data"))
		s.each = s.one
		return s
	}, nil
}

var severities = [8]string{"emergency", "alert", "critical", "error", "warning", "notice", "informational", "debug"}
var facilities = [24]string{"kernel", "user-level", "mail", "system", "security/authorization", "syslogd", "line printer", "network news", "UUCP", "clock", "security/authorization", "FTP", "NTP", "log audit", "log alert", "clock",
	"local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"}
