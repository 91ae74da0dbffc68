package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/page"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/stat"
)

// curved is a run with known figures: the n-th buffer takes 10·n µs a record, and round 3 takes twice as long.
func curved(t *testing.T) sheet {
	t.Helper()
	h := result.NewHistogram()
	for n := range 10_000 {
		result.Record(h, time.Duration(n+1)*time.Microsecond)
	}
	latency, err := result.NewLatency(h, stat.Supports)
	if err != nil {
		t.Fatal(err)
	}
	run := result.Run{Header: result.Header{SchemaVersion: result.SchemaVersion, Plan: result.Plan{Rounds: 5}}}
	for n := 1; n <= 4; n++ {
		p := holdfast.Policy{Buffer: holdfast.Size(n) * 64 << 10}
		p.Sync.Mode, p.Sync.Every = holdfast.SyncPeriodic, 100*time.Millisecond
		run.Header.Cells = append(run.Header.Cells, result.Cell{Name: p.String(), Policy: p, RecordBytes: 128, Writers: 1, Records: 100_000})
	}
	for round := 1; round <= 5; round++ {
		for i, c := range run.Header.Cells {
			ms := time.Duration(i+1) * 1000
			if round == 3 {
				ms *= 2
			}
			m := result.Measurement{
				Records: c.Records, Size: c.Records * c.RecordBytes, Open: ms * 50 * time.Microsecond, Write: ms * time.Millisecond, Flush: ms * 300 * time.Microsecond,
				Sync: ms * 500 * time.Microsecond, Close: ms * 150 * time.Microsecond, Latency: latency, SyncsWriting: 9,
				Oldest: 130 * time.Millisecond, Writer: result.WriterCalls{LongestSync: 40 * time.Millisecond},
			}
			m.User, m.System = time.Duration(i+1)*25*time.Millisecond, time.Duration(i+1)*75*time.Millisecond
			m.Elapsed = m.Open + m.Write + m.Flush + m.Sync + m.Close
			run.Trials = append(run.Trials, &result.Trial{Cell: c.Name, Round: round, Measurement: m})
		}
	}
	s, err := newSheet(nil, run)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A drawn mark is the position of a mark in units of its picture, with its title. A bar has a width.
type drawnMark struct {
	says        string
	x, y, width float64
}

var (
	markPattern = regexp.MustCompile(`<g class="mark"[^>]*><title>([^<]*)</title><(?:circle class="point" cx="([0-9.]+)" cy="([0-9.]+)"|rect class="bar" x="([0-9.]+)" y="([0-9.]+)" width="([0-9.]+)"|path class="point")`)
	tickPattern = regexp.MustCompile(`<text class="tick" x="([0-9.]+)" y="([0-9.]+)" text-anchor="(middle|end)">([^<]*)</text>`)
)

// readPicture returns the marks of a picture, and the positions of both axes' ticks by their labels.
func readPicture(t *testing.T, charts []page.Chart) (marks []drawnMark, x, y map[string]float64) {
	t.Helper()
	if len(charts) == 0 {
		t.Fatal("nothing is drawn")
	}
	number := func(texts ...string) float64 {
		n, _ := strconv.ParseFloat(strings.Join(texts, ""), 64)
		return n
	}
	for _, m := range markPattern.FindAllStringSubmatch(charts[0].Picture, -1) {
		marks = append(marks, drawnMark{m[1], number(m[2], m[4]), number(m[3], m[5]), number(m[6])})
	}
	x, y = map[string]float64{}, map[string]float64{}
	for _, m := range tickPattern.FindAllStringSubmatch(charts[0].Picture, -1) {
		if m[3] == "middle" {
			x[m[4]] = number(m[1])
		} else {
			y[m[4]] = number(m[2]) - 4 // from the foot of its text to its line
		}
	}
	return marks, x, y
}

// near allows for the rounding of a picture.
func near(got, want float64) bool { return math.Abs(got-want) < 0.2 }

func TestRoundsLieAtTheirNumbers(t *testing.T) {
	sections := curved(t).overRounds()
	if len(sections) != 1 {
		t.Fatalf("%d sections", len(sections))
	}
	marks, x, y := readPicture(t, sections[0].Charts)
	if len(marks) != 5 {
		t.Fatalf("%d rounds are drawn: %v", len(marks), marks)
	}
	for i, m := range marks {
		ratio, at := "1.00", "1.0"
		if i+1 == 3 { // round 3 took twice as long
			ratio, at = "2.00", "2.0"
		}
		if want := fmt.Sprintf("round %d: %s times the median", i+1, ratio); m.says != want || !near(m.x, x[fmt.Sprint(i+1)]) || !near(m.y, y[at]) {
			t.Errorf("%v, want %q at %v, %v", m, want, x[fmt.Sprint(i+1)], y[at])
		}
	}
}

func TestStagesAreAsWideAsTheyTake(t *testing.T) {
	s := curved(t)
	marks, x, _ := readPicture(t, s.stages(s.Groups[0]))
	percent := (x["40"] - x["20"]) / 20
	began, cells := x["0"], 4
	for i, want := range []struct {
		name  string
		ms    int // of the first cell
		share float64
	}{{"write", 1000, 50}, {"flush", 300, 15}, {"sync", 500, 25}, {"open and close", 200, 10}} {
		for n := range cells {
			m := marks[i*cells+n]
			says := fmt.Sprintf("%s: %s, %.0f %% of a trial", want.name, nanoseconds(float64(want.ms*(n+1))*1e6), want.share)
			if m.says != says || !near(m.x, began) || !near(m.width, want.share*percent) {
				t.Errorf("%v, want %q at %v, %v wide", m, says, began, want.share*percent)
			}
		}
		began += want.share * percent
	}
}

func TestAgesAreThePeriodTheSyncAndWhatWasSeen(t *testing.T) {
	s := curved(t)
	marks, _, _ := readPicture(t, s.agesOf(s.Groups[0]))
	for i, want := range []string{"its period: 100ms", "and the longest sync: 140ms", "observed, at most: 130ms"} {
		if len(marks) != 12 || marks[4*i].says != want {
			t.Errorf("%d marks, and among them %v: want %q", len(marks), marks[min(4*i, len(marks)-1)], want)
		}
	}
}

// TestLatenciesLieAtTheirParts has times that are spread evenly up to 10 ms: the p-quantile is p times 10 ms.
func TestLatenciesLieAtTheirParts(t *testing.T) {
	s := curved(t)
	marks, x, y := readPicture(t, s.latencies(s.Groups[0]))
	decade := y["1.00ms"] - y["10.0ms"]
	found := 0
	for _, m := range marks {
		var part float64
		if _, err := fmt.Sscanf(m.says, "%g %%", &part); err != nil {
			t.Fatal(err)
		}
		if part == 0 {
			continue
		}
		if want := y["10.0ms"] - decade*math.Log10(part/100); math.Abs(m.y-want) > decade/50 {
			t.Errorf("%v, want y %v", m, want)
		}
		if at, ok := x[fmt.Sprintf("p%g", part)]; ok && part < 99.9 {
			found++
			if !near(m.x, at) {
				t.Errorf("%v, want x %v", m, at)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d of p50, p90 and p99 are drawn: %v", found, marks)
	}
}

func TestCurvesByBufferHaveTheirValues(t *testing.T) {
	s := curved(t)
	charts := s.byBuffer(s.Groups[0])
	if len(charts) != 2 {
		t.Fatalf("%d pictures", len(charts))
	}
	rates, _, _ := readPicture(t, charts[:1])
	cpu, _, y := readPicture(t, charts[1:])
	for n := 1; n <= 4; n++ {
		if want := tick(1e5/float64(n)) + " records/s"; rates[n-1].says != want {
			t.Errorf("%v, want %q", rates[n-1], want)
		}
		if want := fmt.Sprintf("%d.00µs CPU a record", n); cpu[n-1].says != want {
			t.Errorf("%v, want %q", cpu[n-1], want)
		}
	}
	if got, want := rates[1].x-rates[0].x, rates[3].x-rates[1].x; !near(got, want) {
		t.Errorf("a buffer twice as large lies %v units farther, and then %v", got, want)
	}
	if want := y["2.00µs"]; !near(cpu[1].y, want) {
		t.Errorf("%v, want y %v", cpu[1], want)
	}
}
