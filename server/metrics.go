package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rsetl/rsetl/pipeline/manager"
)

// maxSeries bounds the pipelines that get metrics of their own; those beyond, by name, have none.
const maxSeries = 1000

// collector reads the pipelines' ledgers when it is asked, so that nothing is counted twice. The labels are the
// names of pipelines and sinks, which files give, and states.
type collector struct{ p Pipelines }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("rsetl_"+name, help, labels, nil)
}

var (
	descState      = desc("pipeline_state", "1 for the state that the pipeline is in, 0 for the others.", "pipeline", "state")
	descRejected   = desc("pipeline_version_rejected", "1 where the file's newest version does not run.", "pipeline")
	descStarted    = desc("pipeline_start_time_seconds", "When the run began, in seconds since 1970.", "pipeline")
	descCheckpoint = desc("pipeline_last_checkpoint_timestamp_seconds", "When a checkpoint was last committed, in seconds since 1970.", "pipeline")
	descLag        = desc("pipeline_lag", "Bytes (of brokers: messages) that are not committed, where the source knows.", "pipeline")
	descLagTime    = desc("pipeline_lag_seconds", "How long ago the first record that is not committed got to the broker, where the source knows.", "pipeline")
	descErrors     = desc("source_errors_total", "Requests of the source to its servers that failed, by kind: connect, lost, timeout, refused.", "pipeline", "kind")
	descInFlight   = desc("pipeline_in_flight", "Records that were read and have no fate yet.", "pipeline")
	descRestarts   = desc("pipeline_restarts_total", "Starts after a failure.", "pipeline")
	descHeld       = desc("sink_held", "Records that the sink holds, not delivered yet.", "pipeline", "sink")
	descReloads    = desc("reloads_total", "Versions of pipelines that were taken up, by what became of them.", "result")
	descPipelines  = desc("pipelines", "Pipelines that have a file.")
	descProblems   = desc("config_problems", "Files and folders that can't be used and are no pipeline's.")

	descKeys       = desc("step_keys", "Groups or keys that a stateful step holds.", "pipeline", "step")
	descWindows    = desc("window_open", "Windows, or slices of windows that overlap, that are open.", "pipeline", "step")
	descWindowSize = desc("window_bytes", "Memory that windows take, about.", "pipeline", "step")
	descWaterLag   = desc("window_watermark_lag_seconds", "How far the watermark is behind the clock.", "pipeline", "step")
	descLate       = desc("window_late_total", "Records that came too late for their windows.", "pipeline", "step")

	ledgerDescs = []struct {
		d *prometheus.Desc
		v func(s *manager.Status) int64
	}{
		{desc("pipeline_in_total", "Records read.", "pipeline"), func(s *manager.Status) int64 { return s.In }},
		{desc("pipeline_made_total", "Records made: firings, records unnested.", "pipeline"), func(s *manager.Status) int64 { return s.Made }},
		{desc("pipeline_out_total", "Records that reached the end and went to a sink.", "pipeline"), func(s *manager.Status) int64 { return s.Out }},
		{desc("pipeline_filtered_total", "Records that were filtered.", "pipeline"), func(s *manager.Status) int64 { return s.Filtered }},
		{desc("pipeline_absorbed_total", "Records taken into windows or unnested.", "pipeline"), func(s *manager.Status) int64 { return s.Absorbed }},
		{desc("pipeline_dead_total", "Records that source or steps could not process.", "pipeline"), func(s *manager.Status) int64 { return s.Dead }},
		{desc("pipeline_dead_let_go_total", "Dead letters that were let go since there were too many or they were too old.", "pipeline"), func(s *manager.Status) int64 { return s.DeadLetGo }},
		{desc("pipeline_lost_bytes_total", "Bytes that were gone before they could be read.", "pipeline"), func(s *manager.Status) int64 { return s.LostBytes }},
	}
	sinkDescs = [4]*prometheus.Desc{
		desc("sink_received_total", "Records handed to the sink.", "pipeline", "sink"),
		desc("sink_delivered_total", "Records delivered.", "pipeline", "sink"),
		desc("sink_rejected_total", "Records that the sink could not take: dead letters.", "pipeline", "sink"),
		desc("sink_skipped_total", "Records known to be there already.", "pipeline", "sink"),
	}
	states = []string{manager.Running, manager.Blocked, manager.Paused, manager.Draining, manager.Failed, manager.Finished, manager.Standby}
)

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descState, descRejected, descStarted, descCheckpoint, descLag, descLagTime, descErrors, descInFlight, descRestarts, descHeld,
		descReloads, descPipelines, descProblems, descKeys, descWindows, descWindowSize, descWaterLag, descLate} {
		ch <- d
	}
	for _, l := range ledgerDescs {
		ch <- l.d
	}
	for _, d := range sinkDescs {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	all := c.p.Status()
	gauge(descPipelines, float64(len(all)))
	gauge(descProblems, float64(len(c.p.Problems())))
	reloads := c.p.Reloads()
	for _, r := range []string{"ok", "rejected", "start_failed"} {
		counter(descReloads, reloads[r], r)
	}
	for i := range all[:min(len(all), maxSeries)] {
		s := &all[i]
		for _, st := range states {
			gauge(descState, truth(s.State == st), s.Pipeline, st)
		}
		gauge(descRejected, truth(s.Rejected != nil), s.Pipeline)
		counter(descRestarts, s.Restarts, s.Pipeline)
		if s.StartedAt != nil {
			gauge(descStarted, float64(s.StartedAt.UnixMilli())/1000, s.Pipeline)
		}
		if s.LastCheckpoint != nil {
			gauge(descCheckpoint, float64(s.LastCheckpoint.UnixMilli())/1000, s.Pipeline)
		}
		if s.Lag != nil {
			gauge(descLag, float64(*s.Lag), s.Pipeline)
		}
		if s.LagMillis != nil {
			gauge(descLagTime, float64(*s.LagMillis)/1000, s.Pipeline)
		}
		for kind, n := range s.SourceErrors {
			counter(descErrors, n, s.Pipeline, kind)
		}
		if !s.Known() { // a zero would count as a reset
			continue
		}
		gauge(descInFlight, float64(s.InFlight), s.Pipeline)
		for _, l := range ledgerDescs {
			counter(l.d, l.v(s), s.Pipeline)
		}
		for name, h := range s.Stages {
			gauge(descKeys, float64(h.Keys), s.Pipeline, name)
			if h.Bytes == 0 && h.Watermark == "" {
				continue
			}
			gauge(descWindows, float64(h.Windows), s.Pipeline, name)
			gauge(descWindowSize, float64(h.Bytes), s.Pipeline, name)
			counter(descLate, h.Late, s.Pipeline, name)
			if h.Watermark != "" {
				gauge(descWaterLag, float64(h.LagMillis)/1000, s.Pipeline, name)
			}
		}
		for _, k := range s.Sinks {
			for j, n := range [4]int64{k.Received, k.Delivered, k.Rejected, k.Skipped} {
				counter(sinkDescs[j], n, s.Pipeline, k.Name)
			}
			gauge(descHeld, float64(k.Held), s.Pipeline, k.Name)
		}
	}
}
