package grok

import "strings"

// The lines of Nagios' log, by their kinds.
var legacyNagios = Dictionary{
	"NAGIOSTIME": `\[%{NUMBER:nagios_epoch}\]`,

	"NAGIOS_CURRENT_SERVICE_STATE": `%{NAGIOS_TYPE_CURRENT_SERVICE_STATE:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{DATA:nagios_statetype};%{DATA:nagios_statecode};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_CURRENT_HOST_STATE":    `%{NAGIOS_TYPE_CURRENT_HOST_STATE:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{DATA:nagios_statetype};%{DATA:nagios_statecode};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_SERVICE_NOTIFICATION":  `%{NAGIOS_TYPE_SERVICE_NOTIFICATION:nagios_type}: %{DATA:nagios_notifyname};%{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{DATA:nagios_contact};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_HOST_NOTIFICATION":     `%{NAGIOS_TYPE_HOST_NOTIFICATION:nagios_type}: %{DATA:nagios_notifyname};%{DATA:nagios_hostname};%{DATA:nagios_state};%{DATA:nagios_contact};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_SERVICE_ALERT":         `%{NAGIOS_TYPE_SERVICE_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{DATA:nagios_statelevel};%{NUMBER:nagios_attempt};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_HOST_ALERT":            `%{NAGIOS_TYPE_HOST_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{DATA:nagios_statelevel};%{NUMBER:nagios_attempt};%{GREEDYDATA:nagios_message}`,

	"NAGIOS_SERVICE_FLAPPING_ALERT":                 `%{NAGIOS_TYPE_SERVICE_FLAPPING_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_HOST_FLAPPING_ALERT":                    `%{NAGIOS_TYPE_HOST_FLAPPING_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{GREEDYDATA:nagios_message}`,
	"NAGIOS_SERVICE_DOWNTIME_ALERT":                 `%{NAGIOS_TYPE_SERVICE_DOWNTIME_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{GREEDYDATA:nagios_comment}`,
	"NAGIOS_HOST_DOWNTIME_ALERT":                    `%{NAGIOS_TYPE_HOST_DOWNTIME_ALERT:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{GREEDYDATA:nagios_comment}`,
	"NAGIOS_PASSIVE_SERVICE_CHECK":                  `%{NAGIOS_TYPE_PASSIVE_SERVICE_CHECK:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{GREEDYDATA:nagios_comment}`,
	"NAGIOS_PASSIVE_HOST_CHECK":                     `%{NAGIOS_TYPE_PASSIVE_HOST_CHECK:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{GREEDYDATA:nagios_comment}`,
	"NAGIOS_SERVICE_EVENT_HANDLER":                  `%{NAGIOS_TYPE_SERVICE_EVENT_HANDLER:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{DATA:nagios_statelevel};%{DATA:nagios_event_handler_name}`,
	"NAGIOS_HOST_EVENT_HANDLER":                     `%{NAGIOS_TYPE_HOST_EVENT_HANDLER:nagios_type}: %{DATA:nagios_hostname};%{DATA:nagios_state};%{DATA:nagios_statelevel};%{DATA:nagios_event_handler_name}`,
	"NAGIOS_TIMEPERIOD_TRANSITION":                  `%{NAGIOS_TYPE_TIMEPERIOD_TRANSITION:nagios_type}: %{DATA:nagios_service};%{NUMBER:nagios_unknown1};%{NUMBER:nagios_unknown2}`,
	"NAGIOS_EC_LINE_DISABLE_SVC_CHECK":              `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_DISABLE_SVC_CHECK:nagios_command};%{DATA:nagios_hostname};%{DATA:nagios_service}`,
	"NAGIOS_EC_LINE_DISABLE_HOST_CHECK":             `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_DISABLE_HOST_CHECK:nagios_command};%{DATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_ENABLE_SVC_CHECK":               `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_ENABLE_SVC_CHECK:nagios_command};%{DATA:nagios_hostname};%{DATA:nagios_service}`,
	"NAGIOS_EC_LINE_ENABLE_HOST_CHECK":              `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_ENABLE_HOST_CHECK:nagios_command};%{DATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_PROCESS_HOST_CHECK_RESULT":      `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_PROCESS_HOST_CHECK_RESULT:nagios_command};%{DATA:nagios_hostname};%{DATA:nagios_state};%{GREEDYDATA:nagios_check_result}`,
	"NAGIOS_EC_LINE_PROCESS_SERVICE_CHECK_RESULT":   `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_PROCESS_SERVICE_CHECK_RESULT:nagios_command};%{DATA:nagios_hostname};%{DATA:nagios_service};%{DATA:nagios_state};%{GREEDYDATA:nagios_check_result}`,
	"NAGIOS_EC_LINE_DISABLE_HOST_SVC_NOTIFICATIONS": `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_DISABLE_HOST_SVC_NOTIFICATIONS:nagios_command};%{GREEDYDATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_DISABLE_HOST_NOTIFICATIONS":     `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_DISABLE_HOST_NOTIFICATIONS:nagios_command};%{GREEDYDATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_DISABLE_SVC_NOTIFICATIONS":      `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_DISABLE_SVC_NOTIFICATIONS:nagios_command};%{DATA:nagios_hostname};%{GREEDYDATA:nagios_service}`,
	"NAGIOS_EC_LINE_ENABLE_HOST_SVC_NOTIFICATIONS":  `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_ENABLE_HOST_SVC_NOTIFICATIONS:nagios_command};%{GREEDYDATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_ENABLE_HOST_NOTIFICATIONS":      `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_ENABLE_HOST_NOTIFICATIONS:nagios_command};%{GREEDYDATA:nagios_hostname}`,
	"NAGIOS_EC_LINE_ENABLE_SVC_NOTIFICATIONS":       `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_ENABLE_SVC_NOTIFICATIONS:nagios_command};%{DATA:nagios_hostname};%{GREEDYDATA:nagios_service}`,
	"NAGIOS_EC_LINE_SCHEDULE_HOST_DOWNTIME": `%{NAGIOS_TYPE_EXTERNAL_COMMAND:nagios_type}: %{NAGIOS_EC_SCHEDULE_HOST_DOWNTIME:nagios_command};%{DATA:nagios_hostname};%{NUMBER:nagios_start_time};%{NUMBER:nagios_end_time};` +
		`%{NUMBER:nagios_fixed};%{NUMBER:nagios_trigger_id};%{NUMBER:nagios_duration};%{DATA:author};%{DATA:comment}`,
	"NAGIOS_WARNING": `Warning:%{SPACE}%{GREEDYDATA:nagios_message}`,
}

// The kinds' names, which both sets have.
var nagiosNames = Dictionary{
	"NAGIOS_TYPE_CURRENT_SERVICE_STATE":      `CURRENT SERVICE STATE`,
	"NAGIOS_TYPE_CURRENT_HOST_STATE":         `CURRENT HOST STATE`,
	"NAGIOS_TYPE_SERVICE_NOTIFICATION":       `SERVICE NOTIFICATION`,
	"NAGIOS_TYPE_HOST_NOTIFICATION":          `HOST NOTIFICATION`,
	"NAGIOS_TYPE_SERVICE_ALERT":              `SERVICE ALERT`,
	"NAGIOS_TYPE_HOST_ALERT":                 `HOST ALERT`,
	"NAGIOS_TYPE_SERVICE_FLAPPING_ALERT":     `SERVICE FLAPPING ALERT`,
	"NAGIOS_TYPE_HOST_FLAPPING_ALERT":        `HOST FLAPPING ALERT`,
	"NAGIOS_TYPE_SERVICE_DOWNTIME_ALERT":     `SERVICE DOWNTIME ALERT`,
	"NAGIOS_TYPE_HOST_DOWNTIME_ALERT":        `HOST DOWNTIME ALERT`,
	"NAGIOS_TYPE_PASSIVE_SERVICE_CHECK":      `PASSIVE SERVICE CHECK`,
	"NAGIOS_TYPE_PASSIVE_HOST_CHECK":         `PASSIVE HOST CHECK`,
	"NAGIOS_TYPE_SERVICE_EVENT_HANDLER":      `SERVICE EVENT HANDLER`,
	"NAGIOS_TYPE_HOST_EVENT_HANDLER":         `HOST EVENT HANDLER`,
	"NAGIOS_TYPE_EXTERNAL_COMMAND":           `EXTERNAL COMMAND`,
	"NAGIOS_TYPE_TIMEPERIOD_TRANSITION":      `TIMEPERIOD TRANSITION`,
	"NAGIOS_EC_DISABLE_SVC_CHECK":            `DISABLE_SVC_CHECK`,
	"NAGIOS_EC_ENABLE_SVC_CHECK":             `ENABLE_SVC_CHECK`,
	"NAGIOS_EC_DISABLE_HOST_CHECK":           `DISABLE_HOST_CHECK`,
	"NAGIOS_EC_ENABLE_HOST_CHECK":            `ENABLE_HOST_CHECK`,
	"NAGIOS_EC_PROCESS_SERVICE_CHECK_RESULT": `PROCESS_SERVICE_CHECK_RESULT`,
	"NAGIOS_EC_PROCESS_HOST_CHECK_RESULT":    `PROCESS_HOST_CHECK_RESULT`,
	"NAGIOS_EC_SCHEDULE_SERVICE_DOWNTIME":    `SCHEDULE_SERVICE_DOWNTIME`,
	"NAGIOS_EC_SCHEDULE_HOST_DOWNTIME":       `SCHEDULE_HOST_DOWNTIME`,

	"NAGIOS_EC_DISABLE_HOST_SVC_NOTIFICATIONS": `DISABLE_HOST_SVC_NOTIFICATIONS`,
	"NAGIOS_EC_ENABLE_HOST_SVC_NOTIFICATIONS":  `ENABLE_HOST_SVC_NOTIFICATIONS`,
	"NAGIOS_EC_DISABLE_HOST_NOTIFICATIONS":     `DISABLE_HOST_NOTIFICATIONS`,
	"NAGIOS_EC_ENABLE_HOST_NOTIFICATIONS":      `ENABLE_HOST_NOTIFICATIONS`,
	"NAGIOS_EC_DISABLE_SVC_NOTIFICATIONS":      `DISABLE_SVC_NOTIFICATIONS`,
	"NAGIOS_EC_ENABLE_SVC_NOTIFICATIONS":       `ENABLE_SVC_NOTIFICATIONS`,

	"NAGIOSLOGLINE": `%{NAGIOSTIME} (?:%{NAGIOS_WARNING}|%{NAGIOS_CURRENT_SERVICE_STATE}|%{NAGIOS_CURRENT_HOST_STATE}|%{NAGIOS_SERVICE_NOTIFICATION}|%{NAGIOS_HOST_NOTIFICATION}|%{NAGIOS_SERVICE_ALERT}|` +
		`%{NAGIOS_HOST_ALERT}|%{NAGIOS_SERVICE_FLAPPING_ALERT}|%{NAGIOS_HOST_FLAPPING_ALERT}|%{NAGIOS_SERVICE_DOWNTIME_ALERT}|%{NAGIOS_HOST_DOWNTIME_ALERT}|%{NAGIOS_PASSIVE_SERVICE_CHECK}|` +
		`%{NAGIOS_PASSIVE_HOST_CHECK}|%{NAGIOS_SERVICE_EVENT_HANDLER}|%{NAGIOS_HOST_EVENT_HANDLER}|%{NAGIOS_TIMEPERIOD_TRANSITION}|%{NAGIOS_EC_LINE_DISABLE_SVC_CHECK}|%{NAGIOS_EC_LINE_ENABLE_SVC_CHECK}|` +
		`%{NAGIOS_EC_LINE_DISABLE_HOST_CHECK}|%{NAGIOS_EC_LINE_ENABLE_HOST_CHECK}|%{NAGIOS_EC_LINE_PROCESS_HOST_CHECK_RESULT}|%{NAGIOS_EC_LINE_PROCESS_SERVICE_CHECK_RESULT}|` +
		`%{NAGIOS_EC_LINE_SCHEDULE_HOST_DOWNTIME}|%{NAGIOS_EC_LINE_DISABLE_HOST_SVC_NOTIFICATIONS}|%{NAGIOS_EC_LINE_ENABLE_HOST_SVC_NOTIFICATIONS}|%{NAGIOS_EC_LINE_DISABLE_HOST_NOTIFICATIONS}|` +
		`%{NAGIOS_EC_LINE_ENABLE_HOST_NOTIFICATIONS}|%{NAGIOS_EC_LINE_DISABLE_SVC_NOTIFICATIONS}|%{NAGIOS_EC_LINE_ENABLE_SVC_NOTIFICATIONS})`,
}

// bacula are the lines of Bacula's log; the field names of both sets stand in the tables below.
func bacula(f map[string]string) Dictionary {
	sub := func(pattern string) string { return expandFields(pattern, f) }
	d := Dictionary{
		"BACULA_TIMESTAMP":  `%{MONTHDAY}-%{MONTH}(?:-%{YEAR})? %{HOUR}:%{MINUTE}`,
		"BACULA_HOST":       `%{HOSTNAME}`,
		"BACULA_VOLUME":     `%{USER}`,
		"BACULA_DEVICE":     `%{USER}`,
		"BACULA_DEVICEPATH": `%{UNIXPATH}`,
		"BACULA_CAPACITY":   `%{INT}{1,3}(?:,%{INT}{3})*`,
		"BACULA_VERSION":    `%{USER}`,
		"BACULA_JOB":        `%{USER}`,

		"BACULA_LOG_MAX_CAPACITY":       sub(`User defined maximum volume capacity %{BACULA_CAPACITY:{capacity}} exceeded on device "%{BACULA_DEVICE:{device}}" \(%{BACULA_DEVICEPATH:{path}}\)\.?`),
		"BACULA_LOG_END_VOLUME":         sub(`End of medium on Volume "%{BACULA_VOLUME:{volume}}" Bytes=%{BACULA_CAPACITY:{bytes}} Blocks=%{BACULA_CAPACITY:{blocks}} at %{BACULA_TIMESTAMP:{end}}\.`),
		"BACULA_LOG_NEW_VOLUME":         sub(`Created new Volume "%{BACULA_VOLUME:{volume}}" in catalog\.`),
		"BACULA_LOG_NEW_LABEL":          sub(`Labeled new Volume "%{BACULA_VOLUME:{volume}}" on (?:file )?device "%{BACULA_DEVICE:{device}}" \(%{BACULA_DEVICEPATH:{path}}\)\.?`),
		"BACULA_LOG_WROTE_LABEL":        sub(`Wrote label to prelabeled Volume "%{BACULA_VOLUME:{volume}}" on device "%{BACULA_DEVICE:{wdevice}}" \(%{BACULA_DEVICEPATH:{wpath}}\)\.?`),
		"BACULA_LOG_NEW_MOUNT":          sub(`New volume "%{BACULA_VOLUME:{volume}}" mounted on device "%{BACULA_DEVICE:{device}}" \(%{BACULA_DEVICEPATH:{path}}\) at %{BACULA_TIMESTAMP:{end}}\.`),
		"BACULA_LOG_NOOPEN":             sub(`\s*Cannot open %{DATA}: ERR=%{GREEDYDATA:{error}}`),
		"BACULA_LOG_NOOPENDIR":          sub(`\s*Could not open directory "?%{DATA:{file}}"?: ERR=%{GREEDYDATA:{error}}`),
		"BACULA_LOG_NOSTAT":             sub(`\s*Could not stat %{DATA:{file}}: ERR=%{GREEDYDATA:{error}}`),
		"BACULA_LOG_NOJOBS":             sub(`There are no more Jobs associated with Volume "%{BACULA_VOLUME:{volume}}"\. Marking it purged\.`),
		"BACULA_LOG_ALL_RECORDS_PRUNED": sub(`.*?All records pruned from Volume "%{BACULA_VOLUME:{volume}}"; marking it "Purged"`),
		"BACULA_LOG_BEGIN_PRUNE_JOBS":   `Begin pruning Jobs older than %{INT} month %{INT} days \.`,
		"BACULA_LOG_BEGIN_PRUNE_FILES":  `Begin pruning Files\.`,
		"BACULA_LOG_PRUNED_JOBS":        sub(`Pruned %{INT} Jobs* for client %{BACULA_HOST:{client}} from catalog\.`),
		"BACULA_LOG_PRUNED_FILES":       sub(`Pruned Files from %{INT} Jobs* for client %{BACULA_HOST:{client}} from catalog\.`),
		"BACULA_LOG_ENDPRUNE":           `End auto prune\.`,
		"BACULA_LOG_STARTJOB":           sub(`Start Backup JobId %{INT}, Job=%{BACULA_JOB:{job}}`),
		"BACULA_LOG_STARTRESTORE":       sub(`Start Restore Job %{BACULA_JOB:{job}}`),
		"BACULA_LOG_USEDEVICE":          sub(`Using Device "%{BACULA_DEVICE:{device}}"`),
		"BACULA_LOG_DIFF_FS":            `\s*%{UNIXPATH} is a different filesystem\. Will not descend from %{UNIXPATH} into it\.`,
		"BACULA_LOG_JOBEND":             sub(`Job write elapsed time = %{DATA:{elapsed}}, Transfer rate = %{NUMBER} (?:K|M|G)? Bytes/second`),
		"BACULA_LOG_NOPRUNE_JOBS":       `No Jobs found to prune\.`,
		"BACULA_LOG_NOPRUNE_FILES":      `No Files found to prune\.`,
		"BACULA_LOG_VOLUME_PREVWRITTEN": sub(`Volume "?%{BACULA_VOLUME:{volume}}"? previously written, moving to end of data\.`),
		"BACULA_LOG_READYAPPEND":        sub(`Ready to append to end of Volume "%{BACULA_VOLUME:{volume}}" size=%{INT{size}}`),
		"BACULA_LOG_CANCELLING":         sub(`Cancelling duplicate JobId=%{INT:{other}}\.`),
		"BACULA_LOG_MARKCANCEL":         sub(`JobId %{INT:{marked}}, Job %{BACULA_JOB:{job}} marked to be canceled\.`),
		"BACULA_LOG_CLIENT_RBJ":         `shell command: run ClientRunBeforeJob "%{GREEDYDATA:{runjob}}"`,
		"BACULA_LOG_VSS":                `(?:Generate )?VSS (?:Writer)?`,
		"BACULA_LOG_MAXSTART":           sub(`Fatal [eE]rror: Job canceled because max start delay time exceeded\.`),
		"BACULA_LOG_DUPLICATE":          sub(`Fatal [eE]rror: JobId %{INT:{duplicate}} already running\. Duplicate job not allowed\.`),
		"BACULA_LOG_NOJOBSTAT":          `Fatal [eE]rror: No Job status returned from FD\.`,
		"BACULA_LOG_FATAL_CONN":         sub(`Fatal [eE]rror: bsock\.c:133 Unable to connect to (?:Client: %{BACULA_HOST:{client}}|Storage daemon) on %{IPORHOST:{conn}}:%{POSINT{port}}\. ERR=%{GREEDYDATA:{error}}`),
		"BACULA_LOG_NO_CONNECT":         sub(`Warning: bsock\.c:127 Could not connect to (?:Client: %{BACULA_HOST:{client}}|Storage daemon) on %{IPORHOST:{conn}}:%{POSINT{port}}\. ERR=%{GREEDYDATA:{error}}`),
		"BACULA_LOG_NO_AUTH":            sub(`Fatal error: Unable to authenticate with File daemon at "?%{IPORHOST:{conn}}(?::%{POSINT{port}})?"?\. Possible causes:`),
		"BACULA_LOG_NOSUIT":             `No prior or suitable Full backup found in catalog\. Doing FULL backup\.`,
		"BACULA_LOG_NOPRIOR":            `No prior Full backup Job record found\.`,
		"BACULA_LOG_JOB":                `(?:Error: )?Bacula %{BACULA_HOST} %{BACULA_VERSION} \(%{BACULA_VERSION}\):`,
	}
	d["BACULA_LOG_CLIENT_RBJ"] = sub(d["BACULA_LOG_CLIENT_RBJ"])
	d["BACULA_LOG"] = `%{BACULA_LOG_MAX_CAPACITY}|%{BACULA_LOG_END_VOLUME}|%{BACULA_LOG_NEW_VOLUME}|%{BACULA_LOG_NEW_LABEL}|%{BACULA_LOG_WROTE_LABEL}|%{BACULA_LOG_NEW_MOUNT}|%{BACULA_LOG_NOOPEN}|%{BACULA_LOG_NOOPENDIR}|` +
		`%{BACULA_LOG_NOSTAT}|%{BACULA_LOG_NOJOBS}|%{BACULA_LOG_ALL_RECORDS_PRUNED}|%{BACULA_LOG_BEGIN_PRUNE_JOBS}|%{BACULA_LOG_BEGIN_PRUNE_FILES}|%{BACULA_LOG_PRUNED_JOBS}|%{BACULA_LOG_PRUNED_FILES}|` +
		`%{BACULA_LOG_ENDPRUNE}|%{BACULA_LOG_STARTJOB}|%{BACULA_LOG_STARTRESTORE}|%{BACULA_LOG_USEDEVICE}|%{BACULA_LOG_DIFF_FS}|%{BACULA_LOG_JOBEND}|%{BACULA_LOG_NOPRUNE_JOBS}|%{BACULA_LOG_NOPRUNE_FILES}|` +
		`%{BACULA_LOG_VOLUME_PREVWRITTEN}|%{BACULA_LOG_READYAPPEND}|%{BACULA_LOG_CANCELLING}|%{BACULA_LOG_MARKCANCEL}|%{BACULA_LOG_CLIENT_RBJ}|%{BACULA_LOG_VSS}|%{BACULA_LOG_MAXSTART}|%{BACULA_LOG_DUPLICATE}|` +
		`%{BACULA_LOG_NOJOBSTAT}|%{BACULA_LOG_FATAL_CONN}|%{BACULA_LOG_NO_CONNECT}|%{BACULA_LOG_NO_AUTH}|%{BACULA_LOG_NOSUIT}|%{BACULA_LOG_JOB}|%{BACULA_LOG_NOPRIOR}`
	d["BACULA_LOGLINE"] = sub(`%{BACULA_TIMESTAMP:{time}} %{BACULA_HOST:{host}}(?: JobId %{INT:{jobid}})?:? (?:%{BACULA_LOG})`)
	return d
}

// expandFields puts field names in: %{NAME:{key}}, and %{NAME{key}} where the name may have a type or be left out.
func expandFields(pattern string, f map[string]string) string {
	var pairs []string
	for k, v := range f {
		if v == "" {
			pairs = append(pairs, ":{"+k+"}", "", "{"+k+"}", "")
			continue
		}
		pairs = append(pairs, ":{"+k+"}", ":"+v, "{"+k+"}", ":"+v)
	}
	return strings.NewReplacer(pairs...).Replace(pattern)
}

var baculaLegacy = map[string]string{"capacity": "", "device": "device", "path": "", "volume": "volume", "bytes": "", "blocks": "", "end": "", "wdevice": "", "wpath": "",
	"error": "berror", "file": "", "client": "client", "job": "job", "elapsed": "elapsed", "size": "", "other": "", "duplicate": "duplicate", "runjob": "runjob", "conn": "", "port": "",
	"time": "bts", "host": "hostname", "jobid": "jobid", "marked": ""}

var baculaECS = map[string]string{"capacity": "bacula.volume.max_capacity", "device": "bacula.volume.device", "path": "bacula.volume.path", "volume": "bacula.volume.name", "bytes": "bacula.volume.bytes",
	"blocks": "bacula.volume.blocks", "end": "bacula.timestamp", "wdevice": "bacula.volume.device", "wpath": "bacula.volume.path", "error": "error.message", "file": "file.path", "client": "bacula.client.name",
	"job": "bacula.job.name", "elapsed": "bacula.job.elapsed_time", "size": "bacula.volume.size:int", "other": "bacula.job.other_id", "duplicate": "bacula.job.other_id", "runjob": "bacula.job.client_run_before_command",
	"conn": "client.address", "port": "client.port:int", "time": "timestamp", "host": "host.hostname", "jobid": "bacula.job.id", "marked": "bacula.job.id"}

var legacyBacula = bacula(baculaLegacy)
