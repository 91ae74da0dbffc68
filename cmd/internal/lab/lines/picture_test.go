package lines

import (
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
)

// TestPictureHasThePublishedTimesBesideOurs compares with the published numbers, divided by hand.
func TestPictureHasThePublishedTimesBesideOurs(t *testing.T) {
	d := linePicture(studytest.Planted(12, func(_ string, _ int, m *result.Measurement) {
		m.Records, m.Elapsed = 100_000, 90*time.Millisecond
	}, publishedUnbuffered, publishedBuffered, valuesWrite, valuesBufio, equalWrite))
	near := func(got, want float64) bool {
		return math.IsNaN(want) && math.IsNaN(got) || math.Abs(got-want) < want/1e6
	}
	found := map[string]bool{}
	for _, row := range d.Rows {
		found[row.Label] = true
		var value, low, high float64
		switch row.Label {
		case publishedUnbuffered: // 276.4 to 288.6 ms for 100,000 lines
			value, low, high = math.NaN(), 2764, 2886
		case publishedBuffered: // 13.6 to 14.6 ms
			value, low, high = math.NaN(), 136, 146
		case valuesWrite: // 23,672,792 ns for 10,000 records
			value, low, high = 2367.2792, math.NaN(), math.NaN()
		case valuesBufio: // 379,703 ns
			value, low, high = 37.9703, math.NaN(), math.NaN()
		default:
			if len(row.Points) != 1 || row.Points[0].Series != 0 {
				t.Errorf("%s has %v, and nothing was published of it", row.Label, row.Points)
			}
			continue
		}
		if len(row.Points) != 2 || row.Points[0].Series != 1 || row.Points[1].Series != 0 {
			t.Errorf("%s has %v", row.Label, row.Points)
			continue
		}
		if p := row.Points[0]; !near(p.Value, value) || !near(p.Low, low) || !near(p.High, high) {
			t.Errorf("%s: published %v, want %v from %v to %v", row.Label, p, value, low, high)
		}
	}
	if len(found) != 5 {
		t.Errorf("it has the rows %v", found)
	}
}
