package prometheus_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/adapters/prometheus"
	"github.com/holdfast-go/holdfast/files"
	"github.com/holdfast-go/holdfast/rotate"
	"github.com/holdfast-go/holdfast/stats"
	"github.com/holdfast-go/holdfast/wal"
	client "github.com/prometheus/client_golang/prometheus"
)

func Example() {
	dir, err := os.MkdirTemp("", "prometheus")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	w, err := holdfast.Create(filepath.Join(dir, "events.log"), holdfast.Durable())
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	registry := client.NewRegistry() // or the default one, and promhttp.Handler()
	if err := registry.Register(prometheus.NewCollector(client.Labels{"log": "events"}, w.Stats)); err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(w, "started")
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		fmt.Println(f.GetName(), f.GetType())
	}
	// Output:
	// holdfast_errors_total COUNTER
	// holdfast_flush_seconds HISTOGRAM
	// holdfast_flushes_total COUNTER
	// holdfast_not_durable_bytes GAUGE
	// holdfast_not_flushed_bytes GAUGE
	// holdfast_oldest_not_durable_seconds GAUGE
	// holdfast_sync_seconds HISTOGRAM
	// holdfast_syncs_total COUNTER
	// holdfast_system_calls_total COUNTER
	// holdfast_waits_total COUNTER
	// holdfast_writes_total COUNTER
}

// TestEachCountHasItsMetric, and the histograms count each sync once.
func TestEachCountHasItsMetric(t *testing.T) {
	s := stats.Counts{Writes: 5, Flushes: 6, SystemCalls: 7, Waits: 8, Errors: 9, NotFlushed: 30, NotDurable: 40, Oldest: 1500 * time.Millisecond}
	for _, took := range []time.Duration{100, time.Microsecond, time.Millisecond, 3 * time.Millisecond, time.Minute, time.Hour} {
		s.Synced(took)
	}
	registry := client.NewPedanticRegistry()
	for _, name := range []string{"a", "b"} { // two logs in one registry
		if err := registry.Register(prometheus.NewCollector(client.Labels{"log": name}, func() stats.Counts { return s })); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		if len(f.Metric) != 2 {
			t.Errorf("%s: %d logs", f.GetName(), len(f.Metric))
		}
		m := f.Metric[0]
		switch {
		case m.Histogram != nil:
			var below []string
			last := uint64(0)
			for _, b := range m.Histogram.Bucket {
				if n := b.GetCumulativeCount(); n != last {
					below = append(below, fmt.Sprintf("%d<%v", n, time.Duration(b.GetUpperBound()*1e9)))
					last = n
				}
			}
			got[f.GetName()] = fmt.Sprint(m.Histogram.GetSampleCount(), " ", strings.Join(below, " "))
			if sum := time.Duration(m.Histogram.GetSampleSum() * 1e9).Round(time.Second); sum != 0 && sum != time.Hour+time.Minute {
				t.Errorf("%s: %v in all", f.GetName(), sum)
			}
		case m.Gauge != nil:
			got[f.GetName()] = fmt.Sprint(m.Gauge.GetValue())
		default:
			got[f.GetName()] = fmt.Sprint(m.Counter.GetValue())
		}
	}
	for name, want := range map[string]string{
		"holdfast_sync_seconds":               "6 2<1.024µs 3<1.048576ms 4<4.194304ms 5<1m8.719476736s",
		"holdfast_flush_seconds":              "0 ",
		"holdfast_not_durable_bytes":          "40",
		"holdfast_oldest_not_durable_seconds": "1.5",
		"holdfast_writes_total":               "5",
		"holdfast_flushes_total":              "6",
		"holdfast_system_calls_total":         "7",
		"holdfast_waits_total":                "8",
		"holdfast_errors_total":               "9",
		"holdfast_not_flushed_bytes":          "30",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestEachKindHasItsMetrics: rotate, wal and files have their own beside the counts.
func TestEachKindHasItsMetrics(t *testing.T) {
	registry := client.NewPedanticRegistry()
	for name, c := range map[string]client.Collector{
		"rotate": prometheus.NewCollector(client.Labels{"log": "rotate"}, func() rotate.Stats {
			return rotate.Stats{Rotations: 1, Reopens: 2, Healed: 3, Compressed: 4, Removed: 9}
		}),
		"wal": prometheus.NewCollector(client.Labels{"log": "wal"}, func() wal.Stats { return wal.Stats{First: 10, Last: 30, Durable: 20} }),
		"files": prometheus.NewCollector(client.Labels{"log": "files"}, func() files.Stats {
			return files.Stats{Healed: 1, Files: 2, Retries: 3, Open: 4, Memory: 5}
		}),
	} {
		if err := registry.Register(c); err != nil {
			t.Fatal(name, err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			got[m.Label[0].GetValue()+" "+f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"rotate holdfast_rotations_total": 1, "rotate holdfast_reopens_total": 2, "rotate holdfast_healed_total": 3, "rotate holdfast_compressed_total": 4,
		"rotate holdfast_removed_total": 9, "wal holdfast_first_index": 10, "wal holdfast_last_index": 30, "wal holdfast_durable_index": 20,
		"files holdfast_healed_total": 1, "files holdfast_files_total": 2, "files holdfast_retries_total": 3, "files holdfast_open": 4, "files holdfast_memory_bytes": 5,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
