package locks

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lab/chart"
	"github.com/holdfast-go/holdfast/internal/lab/result"
	"github.com/holdfast-go/holdfast/internal/lab/study"
)

func showLocks(e study.Evidence) study.Shown {
	return study.Shown{
		Tables:  []study.Table{trilogyHere(e), countersHere(e), mapsHere(e)},
		Picture: mapPicture(e),
		Learnt:  locksLearnt(e),
	}
}

// trilogyHere is the published summary with our figures.
func trilogyHere(e study.Evidence) study.Table {
	t := study.Table{Title: "The trilogy here", Head: trilogy.Head}
	results := []string{
		study.SpeedUp(e, counterName("mutex"), counterName("batched")),
		study.SpeedUp(e, mapName(withMutex, 95), mapName(withRWMutex, 95)) + " at 95 % reads",
		study.SpeedUp(e, fileEach, fileBuffered),
	}
	for i, row := range trilogy.Rows {
		t.Rows = append(t.Rows, append(slices.Clone(row[:len(row)-1]), results[i]))
	}
	t.Notes = []string{
		"A result is how many times as long the way without the strategy took, with its 95 % interval.",
		"A lock for readers batches nothing: the second row is a strategy of another kind.",
		"The lines of the file are made before the clock starts; the study lines has the published form, which makes them in it.",
		study.OnCPUs(e),
	}
	return t
}

func countersHere(e study.Evidence) study.Table {
	t := study.Table{
		Title: "A counter",
		Head:  []string{"Way", "Goroutines", "Increments", "Time of 1000 each", "Per increment", "CPUs used", "Lost", "Against the mutex"},
		Notes: []string{
			"Each way starts its goroutines in the clock; \"" + onlyStart + "\" is what that takes.",
			"The racy way is an atomic load and an atomic store, which loses increments as count++ does but is no data race; its time is not that of count++.",
		},
	}
	for _, c := range append(e.InGroups("counter"), e.InGroups("goroutines")...) {
		mutex := counterName("mutex") + strings.TrimPrefix(strings.TrimPrefix(c.Group, "counter"), "goroutines")
		against := study.Dash
		if c.Name != mutex && strings.HasPrefix(c.Group, "counter") {
			against = study.Compared(e.Ratio(c.Name, mutex, study.PerRecord))
		}
		lost := study.Dash
		if strings.HasPrefix(c.Group, "counter") {
			lost = study.Median(e.Summary(c.Name, func(t result.Trial) float64 { return study.Value(lostIncrements)(t) / float64(t.Records) }), study.Percent)
		}
		t.Rows = append(t.Rows, []string{
			strings.TrimPrefix(c.Name, counterName("")), study.Whole(float64(c.Writers)), study.Whole(float64(c.Records)),
			study.Duration(e.Median(c.Name, study.PerRecord) * float64(c.Writers) * stepsEach), study.Median(e.Summary(c.Name, study.PerRecord), study.Duration),
			study.Digits(e.Median(c.Name, study.CPUsUsed)), lost, against,
		})
	}
	return t
}

func mapsHere(e study.Evidence) study.Table {
	t := study.Table{
		Title: "A map, time of one operation",
		Head:  []string{"Reads", "Goroutines", withMutex, withRWMutex, withSyncMap, "RWMutex against Mutex", "sync.Map against Mutex", "CPUs used by RWMutex"},
		Notes: []string{
			"Against: the time as a multiple of the Mutex's, so below 1 is faster, with a 95 % interval for each ratio alone.",
			"CPUs used: with about 1, because there is no more or other programs have the rest, no two readers read at once.",
			"The map has all its keys before the clock starts; a sync.Map keeps its values as interfaces, and allocates one for each write.",
			heldHere(e),
		},
	}
	for _, c := range e.InGroups("map") {
		if strings.Contains(c.Name, " "+withMutex) {
			// A row has all ways of the group, whose mutex arm is c.
			name := func(way string) string { return strings.Replace(c.Name, " "+withMutex, " "+way, 1) }
			each := func(way string) string { return study.Median(e.Summary(name(way), study.PerRecord), study.Duration) }
			reads, _, _ := strings.Cut(strings.TrimPrefix(c.Group, "map, "), " reads")
			t.Rows = append(t.Rows, []string{
				reads, study.Whole(float64(c.Writers)), each(withMutex), each(withRWMutex), each(withSyncMap),
				study.Compared(e.Ratio(name(withRWMutex), c.Name, study.PerRecord)), study.Compared(e.Ratio(name(withSyncMap), c.Name, study.PerRecord)),
				study.Digits(e.Median(name(withRWMutex), study.CPUsUsed)),
			})
		}
	}
	return t
}

func heldHere(e study.Evidence) string {
	n := e.Median(heldLock, study.Value(admittedWhileHeld))
	if math.IsNaN(n) {
		return "Whether a held write lock lets readers in was not tried."
	}
	return fmt.Sprintf("While one goroutine held the write lock, %s of %d readers were let in.", study.Whole(n), mapGoroutines)
}

// mapPicture has a row for each share of reads, and a dot for each way.
func mapPicture(e study.Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of one operation on a shared map, by the share of reads", Scale: study.Duration}
	for _, w := range mapWays() {
		d.Series = append(d.Series, w.name)
	}
	for _, reads := range readShares {
		row := chart.Row{Label: fmt.Sprintf("%d %% reads", reads)}
		for i, way := range d.Series {
			s := e.Summary(mapName(way, reads), study.PerRecord)
			row.Points = append(row.Points, chart.Point{Series: i, Value: s.Median, Low: s.Low, High: s.High})
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func locksLearnt(e study.Evidence) string {
	var parts []string
	each := func(way string) string { return study.Duration(e.Median(counterName(way), study.PerRecord)) }
	for _, p := range []struct{ text, slow, fast, more string }{
		{"batches made a counter %s as fast", counterName("mutex"), counterName("batched"), fmt.Sprintf(" (%s an increment, %s under a mutex for each, %s as an atomic addition)", each("batched"), each("mutex"), each("atomic"))},
		{"a lock that readers share made a map %s as fast at 95 %% reads", mapName(withMutex, 95), mapName(withRWMutex, 95), ""},
		{"a buffer made a file take lines %s as fast", fileEach, fileBuffered, ""},
	} {
		if text := study.SpeedUp(e, p.slow, p.fast); text != study.Dash {
			parts = append(parts, fmt.Sprintf(p.text, text)+p.more)
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("on %s CPUs %s", e.Fact("GOMAXPROCS"), strings.Join(parts, ", "))
}
