package stats_test

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/stats"
)

func ExampleHistogram() {
	var h stats.Histogram
	for ms := range 100 {
		h.Add(time.Duration(ms+1) * time.Millisecond)
	}
	fmt.Println(h.Count(), "calls, the longest", h.Max())
	fmt.Println("half of them within 51ms:", h.Quantile(0.5) < 55*time.Millisecond)
	// Output:
	// 100 calls, the longest 100ms
	// half of them within 51ms: true
}
