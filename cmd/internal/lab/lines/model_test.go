package lines

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
)

func TestClaimsOfWhatAWriteTouches(t *testing.T) {
	touched := func(atime, page, block float64) map[string]plantedArm {
		return map[string]plantedArm{touchedWrite: {perRecord: 1, values: map[string]float64{
			sizeChanged: 1, modifiedChanged: 1, accessedChanged: atime, pageBytes: page, blockBytes: block,
		}}}
	}
	checkLineClaim(t, "lines-metadata", study.NeverSo, touched(0, 4096, 4096))
	checkLineClaim(t, "lines-metadata", study.Holds, touched(1, 4096, 4096))
	checkLineClaim(t, "lines-page-4096", study.Holds, touched(0, 4096, 4096))
	checkLineClaim(t, "lines-page-4096", study.NotHere, touched(0, 16384, 4096))
	checkLineClaim(t, "lines-page-4096", study.NotHere, touched(0, 4096, 512))

	extents := func(small, large float64) map[string]plantedArm {
		return map[string]plantedArm{
			extentsSmall: {perRecord: 1, values: map[string]float64{extentsTold: small}},
			extentsLarge: {perRecord: 1, values: map[string]float64{extentsTold: large}},
		}
	}
	checkLineClaim(t, "lines-fragments", study.Holds, extents(3, 1))
	checkLineClaim(t, "lines-fragments", study.NotHere, extents(2, 2))
	checkLineClaim(t, "lines-fragments", study.NotChecked, map[string]plantedArm{extentsSmall: {perRecord: 1}, extentsLarge: {perRecord: 1}})

	write, even, burst := groupBursty+"/write", groupBursty+"/"+burstName(1), groupBursty+"/"+burstName(100)
	bursty := func(with float64) map[string]plantedArm {
		arms := twoTimes(even, 1000, burst, with)
		arms[write] = plantedArm{perRecord: 1000, wobble: 0.01}
		return arms
	}
	checkLineClaim(t, "lines-bursty", study.Holds, bursty(100))
	checkLineClaim(t, "lines-bursty", study.NotHere, bursty(2000))

	loaded := func(with float64) map[string]plantedArm {
		arms := twoTimes(equalWrite, 1000, equalBufio4, 100)
		arms[groupLoaded+"/write"] = plantedArm{perRecord: 3000, wobble: 0.011}
		arms[groupLoaded+"/bufio 4KiB"] = plantedArm{perRecord: with, wobble: 0.013}
		return arms
	}
	checkLineClaim(t, "lines-load", study.NotHere, loaded(300))
	checkLineClaim(t, "lines-load", study.Holds, loaded(600))
	checkLineClaim(t, "lines-load", study.Holds, loaded(150))
	edge := loaded(280)
	edge[groupLoaded+"/write"] = plantedArm{perRecord: 3000, wobble: 0.3}
	checkLineClaim(t, "lines-load", study.AtEdge, edge)

	responses := func(with float64) map[string]plantedArm {
		return twoTimes(groupHTTP+"/write", 1000, groupHTTP+"/bufio 4KiB", with)
	}
	checkLineClaim(t, "lines-http", study.Holds, responses(100))
	checkLineClaim(t, "lines-http", study.NotHere, responses(2000))

	memory := func(without, with float64) map[string]plantedArm {
		return map[string]plantedArm{
			valuesWrite: {perRecord: 1, values: map[string]float64{study.BytesPerOp: without}},
			valuesBufio: {perRecord: 1, values: map[string]float64{study.BytesPerOp: with}},
		}
	}
	checkLineClaim(t, "lines-memory", study.NeverSo, memory(53_773, 70_127))
	checkLineClaim(t, "lines-memory", study.Holds, memory(53_773, 50_000))
}

// TestOneWriteUpdatesSizeAndModificationTime asks a real file.
func TestOneWriteUpdatesSizeAndModificationTime(t *testing.T) {
	m, err := touchedArm().Task().Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m.Values[sizeChanged] != 1 || m.Values[modifiedChanged] != 1 || m.Values[pageBytes] < 4096 {
		t.Errorf("%v", m.Values)
	}
	if runtime.GOOS == "linux" && (m.Values[accessedChanged] != 0 || m.Values[blockBytes] < 512) {
		t.Errorf("%v", m.Values)
	}
}

// TestBurstsAndResponsesAreHandedOnWhole runs the arms: the calls are those predicted.
func TestBurstsAndResponsesAreHandedOnWhole(t *testing.T) {
	g := studytest.WorkDir(t)
	arms := burstArms(1000)
	if why := study.NoSocket(); why == "" {
		arms = append(arms, httpArms(20)...)
	}
	want := map[string]float64{
		groupBursty + "/write": 1000, groupBursty + "/" + burstName(1): 1000, groupBursty + "/" + burstName(10): 100, groupBursty + "/" + burstName(100): 10,
		groupHTTP + "/write": 500, groupHTTP + "/bufio 4KiB": 20,
	}
	for _, a := range arms {
		m, err := a.Task().Run(t.Context(), g, trial.NotCounting, a.Records, a.Records*a.RecordBytes)
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		if got := m.Values[predictedCalls]; got != want[a.Name] || m.Records != a.Records || m.IO != nil && float64(m.IO.Writes) < got {
			t.Errorf("%s: %v calls predicted, want %v; %v counted for %d records", a.Name, got, want[a.Name], m.IO, m.Records)
		}
		if m.Values[syncsMade] != 0 {
			t.Errorf("%s: %v syncs", a.Name, m.Values[syncsMade])
		}
	}
	for _, a := range extentArms() {
		if _, err := a.Task().Run(t.Context(), g, trial.NotCounting, 1, 1); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
	}
}

func TestWrongBytesOfResponsesAreNoTrial(t *testing.T) {
	task := sendResponses(3, study.Way{By: study.Golang}, func() (holdfast.File, io.ReadCloser, error) {
		to, from, err := connectPipe()
		return to, turning{from}, err
	})
	var wrong *trial.ContentError
	if _, err := task.Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 1, 1); !errors.As(err, &wrong) {
		t.Errorf("err = %v", err)
	}
}

// TestModelAddsUpWhatCallsBytesAndSyncsCost plants costs, and times that are their sums.
func TestModelAddsUpWhatCallsBytesAndSyncsCost(t *testing.T) {
	const line, call, copied, sync = 50, 1000, 0.5, 150_000
	planted := map[string]struct {
		records, calls, size, syncs float64
		inCall                      bool
	}{
		equalFormat: {records: 1000}, equalWrite: {1000, 1000, 40_000, 0, true}, equalBufio16: {1000, 3, 40_000, 0, false}, modelled[3]: {100, 100, 4000, 100, true},
		equalBufio4: {1000, 10, 40_000, 0, false}, equalSynced: {1000, 10, 40_000, 1, false}, groupEqual + "/twice as slow": {1000, 10, 40_000, 0, false},
	}
	var names []string
	for name := range planted {
		names = append(names, name)
	}
	e := studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
		p := planted[arm]
		ns := line*p.records + call*p.calls + sync*p.syncs
		if !p.inCall {
			ns += copied * p.size
		}
		if strings.HasSuffix(arm, "slow") {
			ns *= 2
		}
		m.Records, m.Size, m.Elapsed = int64(p.records), int64(p.size), time.Duration(ns)
		m.Values = map[string]float64{predictedCalls: p.calls, syncsMade: p.syncs}
	}, names...)
	table := lineModel(e)
	want := map[string][]string{
		"bufio 4KiB":                  {"1,000: 50µs", "10: 10µs", "40,000: 20µs", "0: 0ns", "80µs", "80µs", "1x"},
		"bufio 4KiB, sync at the end": {"1,000: 50µs", "10: 10µs", "40,000: 20µs", "1: 150µs", "230µs", "230µs", "1x"},
		"twice as slow":               {"1,000: 50µs", "10: 10µs", "40,000: 20µs", "0: 0ns", "80µs", "160µs", "2x"},
	}
	for _, row := range table.Rows {
		if w, ok := want[row[0]]; ok {
			for i, cell := range row[1:] {
				got, _, _ := strings.Cut(cell, " (")
				if got != w[i] {
					t.Errorf("%s: %q, want %q", row[0], row[1:], w)
					break
				}
			}
			delete(want, row[0])
		}
	}
	if len(want) > 0 {
		t.Errorf("no rows for %v in %v", want, table.Rows)
	}
	if n := table.Notes[0]; !strings.Contains(n, "making a line takes 50ns, a write call 1µs, a byte through a buffer 0.5ns, a sync 150µs") {
		t.Error(n)
	}
	if rows := lineModel(studytest.Planted(3, func(string, int, *result.Measurement) {}, equalWrite)).Rows; len(rows) > 0 {
		t.Errorf("a model without its costs: %v", rows)
	}
}

// TestSyncsAreCounted: what the model takes for the syncs of a way.
func TestSyncsAreCounted(t *testing.T) {
	check := func(r lineRun, want float64) {
		t.Helper()
		r.text, r.count, r.writers = lineText{format: bufferedLine}, 20, 1
		m, err := r.task().Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 20, 1)
		if err != nil || m.Values[syncsMade] != want {
			t.Errorf("%+v: %v syncs, want %v, %v", r, m.Values[syncsMade], want, err)
		}
	}
	check(lineRun{way: goBuffer(64, 0)}, 0)
	check(lineRun{way: goBuffer(64, 0), sync: true}, 1)
	check(lineRun{way: study.Way{By: study.Golang}, every: 5}, 4)
	check(lineRun{way: goBuffer(64, 0), every: 5, burst: true}, 0)
	check(lineRun{way: study.Way{By: study.Ours, Policy: holdfast.EachDurable()}}, 20)
}
