//go:build go1.25

package slow

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestACallIsReportedWhileItRuns, once, and one that ends in time is not.
func TestACallIsReportedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		type report struct {
			name  string
			heard time.Duration
		}
		var w Watch[report]
		var got []report
		call := func(name string, takes time.Duration) {
			end := w.Begin(report{name: name})
			time.Sleep(takes)
			end()
		}
		call("nobody listens", time.Hour)
		w.To(time.Second, func(r report) {
			r.heard = time.Since(start)
			got = append(got, r)
			time.Sleep(time.Minute) // holds up no call
		})
		call("in time", time.Second-1)
		call("slow", time.Hour)
		call("slow too", 2*time.Second)
		w.To(0, func(report) { t.Error("reported with no threshold") })
		call("nobody asks", time.Hour)
		synctest.Wait()
		began := time.Hour + time.Second - 1
		next := began + time.Hour
		want := []report{{"slow", began + time.Second}, {"slow too", next + time.Second}}
		if !slices.Equal(got, want) {
			t.Errorf("reports %v, want %v", got, want)
		}
	})
}
