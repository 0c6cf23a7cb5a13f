package grok

import "strings"

// nagiosFields are the names that the schema has for the legacy set's.
var nagiosFields = strings.NewReplacer("nagios_type", "nagios.log.type", "nagios_hostname", "host.hostname", "nagios_service", "service.name", "nagios_statetype", "nagios.log.state_type",
	"nagios_statecode", "nagios.log.attempt:int", "nagios_statelevel", "nagios.log.state_type", "nagios_state", "service.state", "nagios_message", "message", "nagios_notifyname", "user.name",
	"nagios_contact", "nagios.log.notification_command", "nagios_attempt", "nagios.log.attempt:int", "nagios_comment", "nagios.log.comment", "nagios_event_handler_name", "nagios.log.event_handler_name",
	"nagios_unknown1", "nagios.log.period_from:int", "nagios_unknown2", "nagios.log.period_to:int", "nagios_command", "nagios.log.command", "nagios_check_result", "nagios.log.check_result",
	"nagios_start_time", "nagios.log.start_time", "nagios_end_time", "nagios.log.end_time", "nagios_fixed", "nagios.log.fixed", "nagios_trigger_id", "nagios.log.trigger_id",
	"nagios_duration", "nagios.log.duration:int", ":author}", ":user.name}", ":comment}", ":nagios.log.comment}", "nagios_epoch", "timestamp")

func nagiosECS() Dictionary {
	d := Dictionary{}
	for name, def := range legacyNagios {
		d[name] = nagiosFields.Replace(def)
	}
	return d
}

// moreECS are definitions that go-grok lacks, or that give other fields than Logstash's do.
var moreECS = Dictionary{
	"ZEEK_BOOL": `[TF]`,
	"ZEEK_DATA": `[^\t]+`,
	"ZEEK_HTTP": `%{NUMBER:timestamp}\t%{NOTSPACE:zeek.session_id}\t%{IP:source.ip}\t%{INT:source.port:int}\t%{IP:destination.ip}\t%{INT:destination.port:int}\t%{INT:zeek.http.trans_depth:int}\t` +
		`(?:-|%{WORD:http.request.method})\t(?:-|%{ZEEK_DATA:url.domain})\t(?:-|%{ZEEK_DATA:url.original})\t(?:-|%{ZEEK_DATA:http.request.referrer})\t(?:-|%{NUMBER:http.version})\t` +
		`(?:-|%{ZEEK_DATA:user_agent.original})\t(?:-|%{ZEEK_DATA:zeek.http.origin})\t(?:-|%{NUMBER:http.request.body.bytes:int})\t(?:-|%{NUMBER:http.response.body.bytes:int})\t` +
		`(?:-|%{POSINT:http.response.status_code:int})\t(?:-|%{DATA:zeek.http.status_msg})\t(?:-|%{POSINT:zeek.http.info_code:int})\t(?:-|%{DATA:zeek.http.info_msg})\t` +
		`(?:\(empty\)|%{ZEEK_DATA:zeek.http.tags})\t(?:-|%{ZEEK_DATA:url.username})\t(?:-|%{ZEEK_DATA:url.password})\t(?:-|%{ZEEK_DATA:zeek.http.proxied})\t(?:-|%{ZEEK_DATA:zeek.http.orig_fuids})\t` +
		`(?:-|%{ZEEK_DATA:zeek.http.orig_filenames})\t(?:-|%{ZEEK_DATA:http.request.mime_type})\t(?:-|%{ZEEK_DATA:zeek.http.resp_fuids})\t(?:-|%{ZEEK_DATA:zeek.http.resp_filenames})\t(?:-|%{ZEEK_DATA:http.response.mime_type})`,
	"ZEEK_DNS": `%{NUMBER:timestamp}\t%{NOTSPACE:zeek.session_id}\t%{IP:source.ip}\t%{INT:source.port:int}\t%{IP:destination.ip}\t%{INT:destination.port:int}\t%{WORD:network.transport}\t` +
		`(?:-|%{INT:dns.id:int})\t(?:-|%{NUMBER:zeek.dns.rtt:float})\t(?:-|%{ZEEK_DATA:dns.question.name})\t(?:-|%{INT:zeek.dns.qclass:int})\t(?:-|%{ZEEK_DATA:zeek.dns.qclass_name})\t` +
		`(?:-|%{INT:zeek.dns.qtype:int})\t(?:-|%{ZEEK_DATA:dns.question.type})\t(?:-|%{INT:zeek.dns.rcode:int})\t(?:-|%{ZEEK_DATA:dns.response_code})\t%{ZEEK_BOOL:zeek.dns.AA}\t%{ZEEK_BOOL:zeek.dns.TC}\t` +
		`%{ZEEK_BOOL:zeek.dns.RD}\t%{ZEEK_BOOL:zeek.dns.RA}\t%{NONNEGINT:zeek.dns.Z:int}\t(?:-|%{ZEEK_DATA:zeek.dns.answers})\t(?:-|%{DATA:zeek.dns.TTLs})\t(?:-|%{ZEEK_BOOL:zeek.dns.rejected})`,
	"ZEEK_CONN": `%{NUMBER:timestamp}\t%{NOTSPACE:zeek.session_id}\t%{IP:source.ip}\t%{INT:source.port:int}\t%{IP:destination.ip}\t%{INT:destination.port:int}\t%{WORD:network.transport}\t` +
		`(?:-|%{ZEEK_DATA:network.protocol})\t(?:-|%{NUMBER:zeek.connection.duration:float})\t(?:-|%{INT:zeek.connection.orig_bytes:int})\t(?:-|%{INT:zeek.connection.resp_bytes:int})\t` +
		`(?:-|%{ZEEK_DATA:zeek.connection.state})\t(?:-|%{ZEEK_BOOL:zeek.connection.local_orig})\t(?:-|%{ZEEK_BOOL:zeek.connection.local_resp})\t(?:-|%{INT:zeek.connection.missed_bytes:int})\t` +
		`(?:-|%{ZEEK_DATA:zeek.connection.history})\t(?:-|%{INT:source.packets:int})\t(?:-|%{INT:source.bytes:int})\t(?:-|%{INT:destination.packets:int})\t(?:-|%{INT:destination.bytes:int})\t` +
		`(?:-|%{ZEEK_DATA:zeek.connection.tunnel_parents})(?:\t(?:-|%{COMMONMAC:source.mac})\t(?:-|%{COMMONMAC:destination.mac}))?`,
	"ZEEK_FILES_TX_HOSTS": `(?:-|%{IP:server.ip})|(?<zeek.files.tx_hosts>%{IP:server.ip}(?:[\s,]%{IP})+)`,
	"ZEEK_FILES_RX_HOSTS": `(?:-|%{IP:client.ip})|(?<zeek.files.rx_hosts>%{IP:client.ip}(?:[\s,]%{IP})+)`,
	"ZEEK_FILES": `%{NUMBER:timestamp}\t%{NOTSPACE:zeek.files.fuid}\t%{ZEEK_FILES_TX_HOSTS}\t%{ZEEK_FILES_RX_HOSTS}\t(?:-|%{ZEEK_DATA:zeek.files.session_ids})\t(?:-|%{ZEEK_DATA:zeek.files.source})\t` +
		`(?:-|%{INT:zeek.files.depth:int})\t(?:-|%{ZEEK_DATA:zeek.files.analyzers})\t(?:-|%{ZEEK_DATA:file.mime_type})\t(?:-|%{ZEEK_DATA:file.name})\t(?:-|%{NUMBER:zeek.files.duration:float})\t` +
		`(?:-|%{ZEEK_DATA:zeek.files.local_orig})\t(?:-|%{ZEEK_BOOL:zeek.files.is_orig})\t(?:-|%{INT:zeek.files.seen_bytes:int})\t(?:-|%{INT:file.size:int})\t(?:-|%{INT:zeek.files.missing_bytes:int})\t` +
		`(?:-|%{INT:zeek.files.overflow_bytes:int})\t(?:-|%{ZEEK_BOOL:zeek.files.timedout})\t(?:-|%{ZEEK_DATA:zeek.files.parent_fuid})\t(?:-|%{ZEEK_DATA:file.hash.md5})\t(?:-|%{ZEEK_DATA:file.hash.sha1})\t` +
		`(?:-|%{ZEEK_DATA:file.hash.sha256})\t(?:-|%{ZEEK_DATA:zeek.files.extracted})(?:\t(?:-|%{ZEEK_BOOL:zeek.files.extracted_cutoff})\t(?:-|%{INT:zeek.files.extracted_size:int}))?`,

	"CISCOFW602303_602304": `%{WORD:cisco.asa.network.type}: An %{CISCO_DIRECTION:cisco.asa.network.direction} %{DATA:cisco.asa.ipsec.tunnel_type} SA \(SPI=\s?%{DATA:cisco.asa.ipsec.spi}\) ` +
		`between %{IP:source.ip} and %{IP:destination.ip} \(user=\s?%{DATA:source.user.name}\) has been %{CISCO_ACTION:cisco.asa.outcome}`,
	"IPTABLES6_PART": `SRC=%{IPV6:source.ip}\s+DST=%{IPV6:destination.ip}\s+LEN=(?:%{INT:iptables.length})?\s+TC=(?:0|0x%{BASE16NUM:iptables.tos})?\s+HOPLIMIT=(?:%{INT:iptables.ttl})?\s+FLOWLBL=(?:%{INT:iptables.flow_label})?`,
	"IPTABLES": `IN=(?:%{NOTSPACE:observer.ingress.interface.name})?\s+OUT=(?:%{NOTSPACE:observer.egress.interface.name})?\s+(?:MAC=(?:%{COMMONMAC:destination.mac})?(?::%{COMMONMAC:source.mac})?(?::[A-Fa-f0-9]{2}:[A-Fa-f0-9]{2})?\s+)?` +
		`(:?%{IPTABLES4_PART}|%{IPTABLES6_PART}).*?PROTO=(?:%{WORD:network.transport})?\s+SPT=(?:%{INT:source.port:int})?\s+DPT=(?:%{INT:destination.port:int})?\s+(?:%{IPTABLES_TCP_PART})?`,

	"MONGO_QUERY": `\{ .* \}(?= ntoreturn:)`,
	"MONGO_SLOWQUERY": `%{WORD:mongodb.profile.op} %{MONGO_WORDDASH:mongodb.database}\.%{MONGO_WORDDASH:mongodb.collection} %{WORD}: (?<mongodb.query.original>\{ .* \}) ntoreturn:%{NONNEGINT:mongodb.profile.ntoreturn:int} ` +
		`ntoskip:%{NONNEGINT:mongodb.profile.ntoskip:int} nscanned:%{NONNEGINT:mongodb.profile.nscanned:int}.*? nreturned:%{NONNEGINT:mongodb.profile.nreturned:int}.*? %{INT:mongodb.profile.duration:int}ms`,

	"EXIM_REMOTE_HOST": `(H=(%{NOTSPACE:source.address} )?(\(%{NOTSPACE:exim.log.remote_address}\) )?\[%{IP:source.ip}\](?::%{POSINT:source.port:int})?)`,
	"EXIM_MSG_SIZE":    `(S=%{NUMBER:exim.log.message.size:int})`,

	"SYSLOG5424BASE": `%{SYSLOG5424PRI}%{NONNEGINT:system.syslog.version} +(?:-|%{TIMESTAMP_ISO8601:timestamp}) +(?:-|%{IPORHOST:host.hostname}) +(?:-|%{SYSLOG5424PRINTASCII:process.name}) +` +
		`(?:-|%{POSINT:process.pid:int}) +(?:-|%{SYSLOG5424PRINTASCII:event.code}) +(?:-|%{SYSLOG5424SD:system.syslog.structured_data})?`,
	"SYSLOGPAMSESSION": `%{SYSLOGBASE} (?=%{GREEDYDATA:message})%{WORD:system.auth.pam.module}\(%{DATA:system.auth.pam.origin}\): session %{WORD:system.auth.pam.session_state} for user %{USERNAME:user.name}(?: by %{GREEDYDATA})?`,
}
