// Package metrics has what Prometheus gets to know of the roles in one process.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/joblife/joblife/examples/cluster/manager"
)

// A Set is the metrics of a process.
type Set struct {
	*prometheus.Registry

	// Of a reader.
	Archived, Purged, Snapshots prometheus.Counter

	active, epoch           *prometheus.GaugeVec
	seconds, records, bytes *prometheus.HistogramVec
	fenced, ended           *prometheus.CounterVec
}

// New returns a set with the metrics of the Go runtime and the process.
func New() *Set {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	auto := promauto.With(reg)
	by := []string{"manager"}
	counter := func(name, help string) prometheus.Counter {
		return auto.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, by)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, by)
	}
	return &Set{
		Registry:  reg,
		Archived:  counter("joblife_archived_total", "Jobs that this reader has stored in the archive."),
		Purged:    counter("joblife_purged_total", "Jobs that this reader has removed from the archive, since they were purged."),
		Snapshots: counter("joblife_snapshots_total", "Snapshots of the log that this reader has made."),
		active:    gauge("joblife_active", "1 if the manager is active, else 0."),
		epoch:     gauge("joblife_epoch", "The last epoch in which the manager was active."),
		seconds:   histogram("joblife_append_seconds", "How long an append to the log took.", prometheus.ExponentialBuckets(0.0005, 2, 15)),
		records:   histogram("joblife_append_records", "Records in one append: those of one Ready.", prometheus.ExponentialBuckets(1, 4, 9)),
		bytes:     histogram("joblife_append_bytes", "Bytes in one append.", prometheus.ExponentialBuckets(256, 4, 9)),
		fenced:    auto.NewCounterVec(prometheus.CounterOpts{Name: "joblife_fenced_appends_total", Help: "Appends that were refused, since another manager writes."}, by),
		ended:     auto.NewCounterVec(prometheus.CounterOpts{Name: "joblife_node_sessions_ended_total", Help: "Sessions that ended since a message did not come or was not understood."}, []string{"manager", "rank"}),
	}
}

// Handler serves them.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{Timeout: 10 * time.Second})
}

type counts struct {
	*Set
	name string
}

// Manager returns what counts for the manager of a name.
func (s *Set) Manager(name string) manager.Metrics {
	s.active.WithLabelValues(name).Set(0)
	s.fenced.WithLabelValues(name).Add(0)
	return counts{s, name}
}

// Active notes whether the manager is active.
func (c counts) Active(epoch uint64) {
	if epoch == 0 {
		c.active.WithLabelValues(c.name).Set(0)
		return
	}
	c.active.WithLabelValues(c.name).Set(1)
	c.epoch.WithLabelValues(c.name).Set(float64(epoch))
}

// Appended notes an append.
func (c counts) Appended(records, bytes int, took time.Duration) {
	c.seconds.WithLabelValues(c.name).Observe(took.Seconds())
	c.records.WithLabelValues(c.name).Observe(float64(records))
	c.bytes.WithLabelValues(c.name).Observe(float64(bytes))
}

// Fenced notes an append that was refused.
func (c counts) Fenced() { c.fenced.WithLabelValues(c.name).Inc() }

// Ended notes that a session of a node ended.
func (c counts) Ended(rank uint32) {
	c.ended.WithLabelValues(c.name, strconv.FormatUint(uint64(rank), 10)).Inc()
}
