// Package otel exports the counts of a holdfast.Writer, a rotate.File, a wal.Log or a files.Set to
// OpenTelemetry.
package otel

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/stats"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Register makes the meter observe the counts that read returns, with the attributes. Unregister of
// the Registration ends it. OpenTelemetry has no histogram that is read instead of recorded, so the
// latencies are gauges: the quantiles 0.5, 0.99 and 1 since the beginning.
func Register(meter metric.Meter, read func() stats.Counts, attributes ...attribute.KeyValue) (metric.Registration, error) {
	var errs []error
	counter := func(name, unit, help string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter("holdfast."+name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, help string) metric.Float64ObservableGauge {
		g, err := meter.Float64ObservableGauge("holdfast."+name, metric.WithUnit(unit), metric.WithDescription(help))
		errs = append(errs, err)
		return g
	}
	writes := counter("writes", "{record}", "Records that were accepted.")
	flushes := counter("flushes", "{call}", "Writes to files.")
	syncs := counter("syncs", "{call}", "Syncs of files.")
	waits := counter("waits", "{record}", "Writes that waited because memory was full.")
	failures := counter("errors", "{failure}", "Failures, each as OnError has it.")
	notFlushed := gauge("not_flushed", "By", "What the end of the process would take.")
	notDurable := gauge("not_durable", "By", "What the end of the machine would take at most.")
	oldest := gauge("oldest_not_durable", "s", "How long the oldest of these bytes has waited.")
	flush := gauge("flush.duration", "s", "How long writes to files took. A Writer times one of 16 of those of less than 4 KiB: see flushes.")
	sync := gauge("sync.duration", "s", "How long a sync took.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	same := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := read()
		o.ObserveInt64(writes, s.Writes, same)
		o.ObserveInt64(flushes, s.Flushes, same)
		o.ObserveInt64(syncs, s.Syncs, same)
		o.ObserveInt64(waits, s.Waits, same)
		o.ObserveInt64(failures, s.Errors, same)
		o.ObserveFloat64(notFlushed, float64(s.NotFlushed), same)
		o.ObserveFloat64(notDurable, float64(s.NotDurable), same)
		o.ObserveFloat64(oldest, s.Oldest.Seconds(), same)
		for _, q := range []float64{0.5, 0.99, 1} {
			quantile := metric.WithAttributes(attribute.Float64("quantile", q))
			o.ObserveFloat64(flush, s.Flush.Quantile(q).Seconds(), same, quantile)
			o.ObserveFloat64(sync, s.Sync.Quantile(q).Seconds(), same, quantile)
		}
		return nil
	}, writes, flushes, syncs, waits, failures, notFlushed, notDurable, oldest, flush, sync)
}
