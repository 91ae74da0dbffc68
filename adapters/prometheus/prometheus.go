// Package prometheus exports the counts of a holdfast.Writer, a rotate.File, a wal.Log or a
// files.Set to Prometheus.
package prometheus

import (
	"time"

	"github.com/holdfast-go/holdfast/stats"
	"github.com/prometheus/client_golang/prometheus"
)

// A collector reads the counts at each scrape, and stores nothing.
type collector struct {
	read              func() stats.Counts
	metrics           []metric
	flushes, syncings *prometheus.Desc
}

type metric struct {
	*prometheus.Desc
	kind  prometheus.ValueType
	value func(*stats.Counts) float64
}

// NewCollector returns a collector of the counts that read returns, for prometheus.Register. The
// labels distinguish several collectors. All metrics begin with holdfast_.
func NewCollector(labels prometheus.Labels, read func() stats.Counts) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("holdfast_"+name, help, nil, labels)
	}
	c := &collector{read: read,
		flushes:  desc("flush_seconds", "How long writes to files took. A Writer times one of 16 of those of less than 4 KiB: see flushes_total."),
		syncings: desc("sync_seconds", "How long each sync took.")}
	add := func(kind prometheus.ValueType, name, help string, value func(*stats.Counts) float64) {
		c.metrics = append(c.metrics, metric{desc(name, help), kind, value})
	}
	add(prometheus.CounterValue, "writes_total", "Records that were accepted.", func(s *stats.Counts) float64 { return float64(s.Writes) })
	add(prometheus.CounterValue, "errors_total", "Failures, each as OnError has it.", func(s *stats.Counts) float64 { return float64(s.Errors) })
	add(prometheus.CounterValue, "waits_total", "Writes that waited because memory was full.", func(s *stats.Counts) float64 { return float64(s.Waits) })
	add(prometheus.CounterValue, "flushes_total", "Writes to files.", func(s *stats.Counts) float64 { return float64(s.Flushes) })
	add(prometheus.CounterValue, "system_calls_total", "Of a Writer: flushes, syncs, Close, and the calls for the file's name.", func(s *stats.Counts) float64 { return float64(s.SystemCalls) })
	add(prometheus.GaugeValue, "not_flushed_bytes", "What the end of the process would take.", func(s *stats.Counts) float64 { return float64(s.NotFlushed) })
	add(prometheus.GaugeValue, "not_durable_bytes", "What the end of the machine would take at most.", func(s *stats.Counts) float64 { return float64(s.NotDurable) })
	add(prometheus.GaugeValue, "oldest_not_durable_seconds", "How long the oldest of these bytes has waited.", func(s *stats.Counts) float64 { return s.Oldest.Seconds() })
	return c
}

func (c *collector) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, to) }

func (c *collector) Collect(to chan<- prometheus.Metric) {
	s := c.read()
	for _, m := range c.metrics {
		to <- prometheus.MustNewConstMetric(m.Desc, m.kind, m.value(&s))
	}
	to <- histogram(c.flushes, &s.Flush)
	to <- histogram(c.syncings, &s.Sync)
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
