// Package prometheus exports the counts of a holdfast.Writer, a rotate.File, a wal.Log or a
// files.Set to Prometheus.
package prometheus

import (
	"time"

	"github.com/holdfast-go/holdfast/stats"
	"github.com/prometheus/client_golang/prometheus"
)

// A collector reads the counts at each scrape, and stores nothing.
type collector[S stats.Source] struct {
	read              func() S
	counts            []*prometheus.Desc // in the order of Metrics
	flushes, syncings *prometheus.Desc
}

// NewCollector returns a collector of the counts that read returns, for prometheus.Register: read is
// the method Stats of any of the four. The labels distinguish several collectors. All metrics begin
// with holdfast_.
func NewCollector[S stats.Source](labels prometheus.Labels, read func() S) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_"+name, help, nil, labels)
	}
	c := &collector[S]{read: read,
		flushes:  desc("flush_seconds", "How long writes to files took. A Writer times one of 16 of those of less than 4 KiB: see flushes_total."),
		syncings: desc("sync_seconds", "How long each sync took.")}
	var none S
	for _, m := range none.Metrics() {
		c.counts = append(c.counts, desc(m.Name+suffix(&m), m.Help))
	}
	return c
}

// suffix returns the end of a metric's name that Prometheus asks for.
func suffix(m *stats.Metric) string {
	switch {
	case m.Kind == stats.Counter:
		return "_total"
	case m.Unit == "By":
		return "_bytes"
	case m.Unit == "s":
		return "_seconds"
	}
	return ""
}

func (c *collector[S]) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

func (c *collector[S]) Collect(to chan<- prometheus.Metric) {
	s := c.read()
	for i, m := range s.Metrics() {
		kind := prometheus.GaugeValue
		if m.Kind == stats.Counter {
			kind = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(c.counts[i], kind, m.Value)
	}
	flush, sync := s.Latencies()
	to <- histogram(c.flushes, flush)
	to <- histogram(c.syncings, sync)
}

// histogram has cumulative buckets at the powers of two from 1 µs to 69 s.
func histogram(desc *prometheus.Desc, h *stats.Histogram) prometheus.Metric {
	all := map[float64]uint64{}
	for bound := time.Duration(1 << 10); bound <= 1<<36; bound *= 2 {
		below := uint64(0)
		for end, n := range h.Buckets() {
			if end <= bound {
				below += uint64(n)
			}
		}
		all[bound.Seconds()] = below
	}
	return prometheus.MustNewConstHistogram(desc, uint64(h.Count()), h.Sum().Seconds(), all)
}
