package manyfiles

import "github.com/holdfast-go/holdfast/cmd/internal/measure/study"

// The figures as they were printed.

// A publishedRun has the published figures of an operation on a number of files.
type publishedRun struct {
	files       int
	runs        float64
	ns          float64 // an operation
	bytes       float64
	allocations float64
}

// publishedRuns are with retries, by 64 workers; the first, of two temporary files,
// makes and removes them too.
var publishedRuns = []publishedRun{
	{2, 14_925, 82_486, 12_192, 60},
	{100, 1_274, 1_200_235, 459_443, 896},
	{200, 697, 2_112_088, 916_682, 1_778},
	{300, 324, 3_325_674, 1_374_534, 2_664},
	{400, 249, 5_329_995, 1_834_025, 3_565},
	{500, 241, 4_968_137, 2_293_018, 4_457},
	{600, 187, 7_827_777, 2_753_999, 5_368},
	{700, 156, 7_628_838, 3_214_415, 6_271},
	{800, 127, 9_030_962, 3_676_236, 7_204},
	{900, 108, 11_757_483, 4_139_196, 8_135},
	{1000, 96, 12_461_167, 4_595_667, 9_010},
}

// A publishedTime is the published time for a number of files, in seconds.
type publishedTime struct {
	files   int
	seconds float64
}

// withoutRetriesTimes are the times of the run without retries; publishedFiles and publishedSeconds
// are their printed total.
var withoutRetriesTimes = []publishedTime{
	{100, 0.001}, {200, 0.002}, {300, 0.003}, {400, 0.004}, {500, 0.005},
	{600, 0.007}, {700, 0.008}, {800, 0.010}, {900, 0.011}, {1000, 0.014},
}

const (
	publishedFiles   = 5500
	publishedSeconds = 0.065
)

// batches are the published times of batches.
var batches = []publishedTime{{1500, 0.025}, {3000, 0.110}, {5000, 0.336}}

// perFile is the time of one file.
func (p publishedTime) perFile() float64 { return p.seconds * 1e9 / float64(p.files) }

func (p publishedRun) row() []string {
	return []string{study.Whole(float64(p.files)), study.Whole(p.runs), study.Whole(p.ns), study.Digits(p.ns / float64(p.files) / 1e3), study.Whole(p.bytes), study.Whole(p.allocations)}
}

func publishedTimes(title string, times []publishedTime) study.Table {
	t := study.Table{Title: title, Source: study.WriterBenchmarks, Head: []string{"Files", "Time (s)", "Time per file (µs)"}}
	for _, p := range times {
		t.Rows = append(t.Rows, []string{study.Whole(float64(p.files)), seconds(p.seconds), study.Digits(p.perFile() / 1e3)})
	}
	return t
}
