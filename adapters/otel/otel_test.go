package otel_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/otel"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/holdfast-go/holdfast/stats"
	"github.com/holdfast-go/holdfast/wal"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func Example() {
	dir, err := os.MkdirTemp("", "otel")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := holdfast.Create(filepath.Join(dir, "events.log"), holdfast.Durable())
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	reader := metric.NewManualReader() // or the exporter of the program
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("example")
	registration, err := otel.Register(meter, w.Stats, attribute.String("log", "events"))
	if err != nil {
		log.Fatal(err)
	}
	defer registration.Unregister()
	fmt.Fprintln(w, "started")
	var got metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &got); err != nil {
		log.Fatal(err)
	}
	for _, m := range got.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, m.Unit)
	}
	// Output:
	// holdfast.writes {record}
	// holdfast.flushes {call}
	// holdfast.syncs {call}
	// holdfast.system_calls {call}
	// holdfast.waits {record}
	// holdfast.errors {failure}
	// holdfast.not_flushed By
	// holdfast.not_durable By
	// holdfast.oldest_not_durable s
	// holdfast.flush.duration s
	// holdfast.sync.duration s
}

// collect returns the values that a reader gets, by names; a sum that may fall has + before its name.
func collect[S stats.Source](t *testing.T, s S) map[string][]float64 {
	t.Helper()
	reader := metric.NewManualReader()
	meter := metric.NewMeterProvider(metric.WithReader(reader)).Meter("test")
	registration, err := otel.Register(meter, func() S { return s }, attribute.String("log", "a"))
	if err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string][]float64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			name := m.Name
			if !data.IsMonotonic {
				name = "+" + name
			}
			got[name] = []float64{float64(data.DataPoints[0].Value)}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				if v, ok := p.Attributes.Value("log"); !ok || v.AsString() != "a" {
					t.Errorf("%s has the attributes %v", m.Name, p.Attributes)
				}
				got[m.Name] = append(got[m.Name], p.Value)
			}
			slices.Sort(got[m.Name])
		}
	}
	if err := registration.Unregister(); err != nil {
		t.Error(err)
	}
	return got
}

func TestValuesAreThoseOfTheCounts(t *testing.T) {
	s := stats.Counts{Writes: 5, Flushes: 6, Waits: 7, Errors: 8, NotFlushed: 30, NotDurable: 40, Oldest: 1500 * time.Millisecond}
	s.Flush.Add(2 * time.Hour)
	s.Synced(time.Millisecond)
	s.Synced(time.Hour)
	check := func(got map[string][]float64, want map[string][]float64) {
		t.Helper()
		for name, want := range want {
			if !slices.Equal(got[name], want) {
				t.Errorf("%s is %v, want %v", name, got[name], want)
			}
		}
	}
	check(collect(t, s), map[string][]float64{
		"holdfast.writes":             {5},
		"holdfast.syncs":              {2},
		"holdfast.flushes":            {6},
		"holdfast.waits":              {7},
		"holdfast.errors":             {8},
		"+holdfast.not_flushed":       {30},
		"+holdfast.not_durable":       {40},
		"holdfast.oldest_not_durable": {1.5},
		"holdfast.sync.duration":      {0.001048576, 3600, 3600},
		"holdfast.flush.duration":     {7200, 7200, 7200},
	})
	check(collect(t, rotate.Stats{Counts: s, Rotations: 1, Reopens: 2, Healed: 3, Compressed: 4, Removed: 9}), map[string][]float64{
		"holdfast.writes":     {5},
		"holdfast.rotations":  {1},
		"holdfast.reopens":    {2},
		"holdfast.healed":     {3},
		"holdfast.compressed": {4},
		"holdfast.removed":    {9},
	})
	check(collect(t, wal.Stats{First: 10, Last: 30, Durable: 20}), map[string][]float64{
		"holdfast.first_index": {10}, "holdfast.last_index": {30}, "holdfast.durable_index": {20},
	})
	check(collect(t, files.Stats{Healed: 1, Files: 2, Retries: 3, Open: 4, Memory: 5}), map[string][]float64{
		"holdfast.healed": {1}, "holdfast.files": {2}, "holdfast.retries": {3}, "+holdfast.open": {4}, "+holdfast.memory": {5},
	})
}
