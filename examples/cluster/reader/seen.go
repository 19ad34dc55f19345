package reader

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A seen tells Prometheus what a reader sees, each time it is asked. Without an engine or a
// manager it sees less.
type seen struct{ *reader }

// Describe describes nothing: what there is changes.
func (seen) Describe(chan<- *prometheus.Desc) {}

// Collect collects what there is.
func (s seen) Collect(c chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	say := func(kind prometheus.ValueType, name, help string, v float64, pair ...string) {
		var labels []string
		if len(pair) > 0 {
			labels = pair[:1]
		}
		c <- prometheus.MustNewConstMetric(prometheus.NewDesc("joblife_"+name, help, labels, nil), kind, v, pair[len(labels):]...)
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	say(gauge, "reader_sequence", "The last message of the log that this reader has read.", float64(s.seq.Load()))
	say(gauge, "archive_jobs", "Jobs in the archive.", float64(s.Len()))
	if seq, size, err := s.Engine.Last(ctx); err == nil {
		say(gauge, "log_sequence", "The last message of the log.", float64(seq))
		say(gauge, "log_bytes", "The bytes of the log.", float64(size))
	}
	if l, revision, err := s.Engine.Active(ctx); err == nil && revision > 0 {
		say(gauge, "lease_age_seconds", "How long ago the lease was renewed, by the server's clock and that of this reader.", max(0, time.Since(l.Renewed).Seconds()))
	}
	a, err := s.ask(ctx, "status")
	if err != nil || a.Status == nil {
		return
	}
	say(gauge, "lease_epoch", "The epoch of the active manager.", float64(a.Status.Epoch), "manager", a.Status.Holder)
	for state, n := range a.Status.Jobs {
		say(gauge, "jobs", "Jobs by state.", float64(n), "state", state)
	}
	for state, n := range map[string]uint64{"up": a.Status.Up, "down": a.Status.Down, "drained": a.Status.Drained} {
		say(gauge, "nodes", "Nodes by state; one that is drained is also up or down.", float64(n), "state", state)
	}
	for _, standby := range a.Status.Standbys {
		say(gauge, "standby_sequence", "The last message of the log that a manager which stands by has read.", float64(standby.Seq), "manager", standby.Name)
	}
	say(counter, "inputs_total", "Inputs that the active manager has accepted in its epoch.", float64(a.Status.Inputs))
	say(counter, "refused_total", "Inputs that the active manager has refused in its epoch.", float64(a.Status.Refused))
	say(counter, "commits_total", "Appends of the active manager in its epoch.", float64(a.Status.Commits))
}
