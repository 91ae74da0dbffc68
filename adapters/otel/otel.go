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

// Register makes the meter observe the counts that read returns, with the attributes: read is the
// method Stats of any of the four. Unregister of the Registration ends it. A count that may fall and is
// summed over several logs, such as the bytes at risk, is an UpDownCounter. OpenTelemetry has no
// histogram that is read instead of recorded, so the latencies are gauges: the quantiles 0.5, 0.99 and
// 1 since the beginning.
func Register[S stats.Source](meter metric.Meter, read func() S, attributes ...attribute.KeyValue) (metric.Registration, error) {
	var none S
	var all []metric.Observable
	var errs []error
	for _, m := range none.Metrics() {
		o, err := observable(meter, &m)
		all, errs = append(all, o), append(errs, err)
	}
	gauge := func(name, help string) metric.Float64Observable {
		g, err := meter.Float64ObservableGauge("holdfast."+name, metric.WithUnit("s"), metric.WithDescription(help))
		all, errs = append(all, g), append(errs, err)
		return g
	}
	flushes := gauge("flush.duration", "How long writes to files took. A Writer times one of 16 of those of less than 4 KiB: see flushes.")
	syncs := gauge("sync.duration", "How long a sync took.")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	same := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := read()
		for i, m := range s.Metrics() {
			switch to := all[i].(type) {
			case metric.Int64Observable:
				o.ObserveInt64(to, int64(m.Value), same)
			case metric.Float64Observable:
				o.ObserveFloat64(to, m.Value, same)
			}
		}
		flush, sync := s.Latencies()
		for _, q := range []float64{0.5, 0.99, 1} {
			quantile := metric.WithAttributes(attribute.Float64("quantile", q))
			o.ObserveFloat64(flushes, flush.Quantile(q).Seconds(), same, quantile)
			o.ObserveFloat64(syncs, sync.Quantile(q).Seconds(), same, quantile)
		}
		return nil
	}, all...)
}

// observable makes the instrument of a metric.
func observable(meter metric.Meter, m *stats.Metric) (metric.Observable, error) {
	name, unit, help := "holdfast."+m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Help)
	switch m.Kind {
	case stats.Counter:
		return meter.Int64ObservableCounter(name, unit, help)
	case stats.UpDown:
		return meter.Int64ObservableUpDownCounter(name, unit, help)
	default:
		return meter.Float64ObservableGauge(name, unit, help)
	}
}
