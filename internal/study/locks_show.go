package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/chart"
	"github.com/holdfast-go/holdfast/internal/result"
)

func showLocks(e Evidence) Shown {
	return Shown{
		Tables:  []Table{trilogyHere(e), countersHere(e), mapsHere(e)},
		Picture: mapPicture(e),
		Learnt:  locksLearnt(e),
	}
}

// trilogyHere is the published summary with our figures.
func trilogyHere(e Evidence) Table {
	t := Table{Title: "The trilogy here", Head: trilogy.Head}
	results := []string{
		speedUp(e, counterName("mutex"), counterName("batched")),
		speedUp(e, mapName(withMutex, 95), mapName(withRWMutex, 95)) + " at 95 % reads",
		speedUp(e, fileEach, fileBuffered),
	}
	for i, row := range trilogy.Rows {
		t.Rows = append(t.Rows, append(slices.Clone(row[:len(row)-1]), results[i]))
	}
	t.Notes = []string{
		"A result is how many times as long the way without the strategy took, with its 95 % interval.",
		"A lock for readers batches nothing: the second row is a strategy of another kind.",
		"The lines of the file are made before the clock starts; the study lines has the published form, which makes them in it.",
		onCPUs(e),
	}
	return t
}

// speedUp says how many times as long one arm takes as the other.
func speedUp(e Evidence, slow, fast string) string {
	return ratio(e.Ratio(slow, fast, PerRecord)).orDash()
}

func onCPUs(e Evidence) string {
	return fmt.Sprintf("Go ran goroutines on %s CPUs at once (GOMAXPROCS): locks that many share cost more, and readers gain more, where there are many.", e.Fact("GOMAXPROCS"))
}

func countersHere(e Evidence) Table {
	t := Table{
		Title: "A counter",
		Head:  []string{"Way", "Goroutines", "Increments", "Time of 1000 each", "Per increment", "CPUs used", "Lost", "Against the mutex"},
		Notes: []string{
			"Each way starts its goroutines in the clock; \"" + onlyStart + "\" is what that takes.",
			"The racy way is an atomic load and an atomic store, which loses increments as count++ does but is no data race; its time is not that of count++.",
		},
	}
	for _, c := range append(e.inGroups("counter"), e.inGroups("goroutines")...) {
		t.Rows = append(t.Rows, counterRow(e, c))
	}
	return t
}

func counterRow(e Evidence, c result.Cell) []string {
	mutex := counterName("mutex") + strings.TrimPrefix(strings.TrimPrefix(c.Group, "counter"), "goroutines")
	against := dash
	if c.Name != mutex && strings.HasPrefix(c.Group, "counter") {
		against = compared(e.Ratio(c.Name, mutex, PerRecord))
	}
	lost := dash
	if strings.HasPrefix(c.Group, "counter") {
		lost = median(e.Summary(c.Name, lostShare), percent)
	}
	return []string{
		strings.TrimPrefix(c.Name, counterName("")), whole(float64(c.Writers)), whole(float64(c.Records)),
		duration(e.Median(c.Name, PerRecord) * float64(c.Writers) * stepsEach), median(e.Summary(c.Name, PerRecord), duration),
		digits(e.Median(c.Name, cpusUsed)), lost, against,
	}
}

func lostShare(t result.Trial) float64 { return Value(lostIncrements)(t) / float64(t.Records) }

func mapsHere(e Evidence) Table {
	t := Table{
		Title: "A map, time of one operation",
		Head:  []string{"Reads", "Goroutines", withMutex, withRWMutex, withSyncMap, "RWMutex against Mutex", "sync.Map against Mutex", "CPUs used by RWMutex"},
		Notes: []string{
			"Against: the time as a multiple of the Mutex's, so below 1 is faster, with a 95 % interval for each ratio alone.",
			"CPUs used: with about 1, because there is no more or other programs have the rest, no two readers read at once.",
			"The map has all its keys before the clock starts; a sync.Map keeps its values as interfaces, and allocates one for each write.",
			heldHere(e),
		},
	}
	for _, c := range e.inGroups("map") {
		if strings.Contains(c.Name, " "+withMutex) {
			t.Rows = append(t.Rows, mapRow(e, c))
		}
	}
	return t
}

// mapRow has all ways of the group whose mutex arm is given.
func mapRow(e Evidence, mutex result.Cell) []string {
	name := func(way string) string { return strings.Replace(mutex.Name, " "+withMutex, " "+way, 1) }
	each := func(way string) string { return median(e.Summary(name(way), PerRecord), duration) }
	reads, _, _ := strings.Cut(strings.TrimPrefix(mutex.Group, "map, "), " reads")
	return []string{
		reads, whole(float64(mutex.Writers)), each(withMutex), each(withRWMutex), each(withSyncMap),
		compared(e.Ratio(name(withRWMutex), mutex.Name, PerRecord)), compared(e.Ratio(name(withSyncMap), mutex.Name, PerRecord)),
		digits(e.Median(name(withRWMutex), cpusUsed)),
	}
}

func heldHere(e Evidence) string {
	n := e.Median(heldLock, Value(admittedWhileHeld))
	if math.IsNaN(n) {
		return "Whether a held write lock lets readers in was not tried."
	}
	return fmt.Sprintf("While one goroutine held the write lock, %s of %d readers were let in.", whole(n), mapGoroutines)
}

// mapPicture has a row for each share of reads, and a dot for each way.
func mapPicture(e Evidence) *chart.Dots {
	d := &chart.Dots{Title: "Time of one operation on a shared map, by the share of reads", Scale: duration}
	for _, w := range mapWays() {
		d.Series = append(d.Series, w.name)
	}
	for _, reads := range readShares {
		row := chart.Row{Label: fmt.Sprintf("%d %% reads", reads)}
		for i, way := range d.Series {
			s := e.Summary(mapName(way, reads), PerRecord)
			row.Points = append(row.Points, chart.Point{Series: i, Value: s.Median, Low: s.Low, High: s.High})
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func locksLearnt(e Evidence) string {
	var parts []string
	for _, p := range []struct{ text, slow, fast, more string }{
		{"batches made a counter %s as fast", counterName("mutex"), counterName("batched"), counterCosts(e)},
		{"a lock that readers share made a map %s as fast at 95 %% reads", mapName(withMutex, 95), mapName(withRWMutex, 95), ""},
		{"a buffer made a file take lines %s as fast", fileEach, fileBuffered, ""},
	} {
		if text := speedUp(e, p.slow, p.fast); text != dash {
			parts = append(parts, fmt.Sprintf(p.text, text)+p.more)
		}
	}
	if parts == nil {
		return ""
	}
	return fmt.Sprintf("on %s CPUs %s", e.Fact("GOMAXPROCS"), strings.Join(parts, ", "))
}

// counterCosts says what an increment takes.
func counterCosts(e Evidence) string {
	each := func(way string) string { return duration(e.Median(counterName(way), PerRecord)) }
	return fmt.Sprintf(" (%s an increment, %s under a mutex for each, %s as an atomic addition)", each("batched"), each("mutex"), each("atomic"))
}
