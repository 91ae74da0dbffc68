package manyfiles

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/studytest"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/trial"
	"github.com/holdfast-go/holdfast/files"
)

func TestFilesClaimsFollowTheEvidence(t *testing.T) {
	var (
		fewByPool, manyByPool   = filesArm(few, byPool(perCPU)), filesArm(many, byPool(perCPU))
		fewByFiles, manyByFiles = filesArm(few, byFiles), filesArm(many, byFiles)
		fewOpen, manyOpen       = filesArm(few, openByFile), filesArm(many, openByFile)
		fewByBufio, manyByBufio = filesArm(few, openByBufio), filesArm(many, openByBufio)
		fewApart, manyApart     = filesArm(few, poolApart), filesArm(many, poolApart)
		openOneCPU              = filesArm(1000, openOn(1))
	)
	records := map[string]int64{
		fewByPool: 300, manyByPool: 3000, fewByFiles: 300, manyByFiles: 3000, retriesOff: 1000, retriesOn: 1000, createTemp: 200,
		fewOpen: 300, manyOpen: 3000, openPlain: 1000, openRetried: 1000, openOneCPU: 1000, fewApart: 300, manyApart: 3000, twoByBufio: 20, fewByBufio: 300, manyByBufio: 3000,
	}
	// plant gives each arm the time and the bytes of a file, and the part of the time that is not its write.
	plant := func(ns, bytes map[string]float64, openShare float64) study.Evidence {
		return studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
			m.Records = records[arm]
			m.Elapsed = studytest.Wiggle(ns[arm]*float64(m.Records), round)
			m.Open = time.Duration(openShare * float64(m.Elapsed))
			m.Work = m.Elapsed / 10
			m.Allocated = int64(bytes[arm] * float64(m.Records))
			m.Values = map[string]float64{study.BytesPerOp: float64(m.Allocated)}
		}, slices.Sorted(maps.Keys(records))...)
	}
	check := func(claim string, e study.Evidence, want study.Verdict) study.Finding {
		t.Helper()
		return studytest.Judge(t, Study(), claim, e, want)
	}
	// Files that are made cost the same in both: what the published clock covers decides.
	flat := plant(map[string]float64{
		fewByPool: 2e4, manyByPool: 2e4, fewByFiles: 2e4, manyByFiles: 2e4, retriesOff: 1.2e4, retriesOn: 1.2e4, createTemp: 1e4,
		fewOpen: 1e4, manyOpen: 1e4, openPlain: 2e4, openRetried: 1.2e4, openOneCPU: 2e4, fewApart: 1e4, manyApart: 1e4, twoByBufio: 1e4,
	}, map[string]float64{fewByBufio: 4500, manyByBufio: 4500, twoByBufio: 6000}, 0.8)
	steep := plant(map[string]float64{
		fewByPool: 2e4, manyByPool: 2e4, fewByFiles: 2e4, manyByFiles: 8e4, retriesOff: 1.9e3, retriesOn: 1.6e4, createTemp: 1e4,
		fewOpen: 1e4, manyOpen: 4e4, openPlain: 1e3, openRetried: 2e4, openOneCPU: 8e4, fewApart: 1e4, manyApart: 4e4, twoByBufio: 1e4,
	}, map[string]float64{fewByBufio: 500, manyByBufio: 5000, twoByBufio: 500}, 0.2)
	check("files-8x-retries", flat, study.NeverSo)
	check("files-8x-retries", steep, study.Holds)
	check("files-500k", flat, study.NotHere)
	for _, text := range []string{"990,099/s (980,392/s–1,000,000/s) to open files; 521,105/s (515,996/s–526,316/s) made, written and closed"} {
		if f := check("files-500k", steep, study.Holds); !strings.Contains(f.Measured, text) || !strings.Contains(f.Why, "84,600") {
			t.Errorf("%+v, want %q", f, text)
		}
	}
	check("files-80k", flat, study.Holds)
	check("files-80k", steep, study.NotHere)
	check("files-contention", flat, study.NotHere)
	check("files-contention", steep, study.Holds)
	check("files-create", flat, study.Holds)
	check("files-create", steep, study.NotHere)
	check("files-memory", flat, study.Holds)
	check("files-memory", steep, study.NotHere)
	check("files-memory", plant(nil, map[string]float64{fewByBufio: 500, manyByBufio: 500}, 1), study.NotHere)
	check("files-2-memory", flat, study.Holds)
	check("files-2-memory", steep, study.NotHere)
	check("files-coordination", flat, study.NotHere)
	check("files-coordination", steep, study.Holds)
	// A claim that only its document decides gets the same verdict with any evidence.
	for _, e := range []study.Evidence{flat, steep} {
		check("files-batching", e, study.NeverSo)
		check("files-64-cores", e, study.NeverSo)
		check("files-64-workers", e, study.NeverSo)
		check("files-backoff", e, study.NeverSo)
		check("files-40x", e, study.NeverSo)
	}
}

// TestFilesClaimsThatTheDocumentDecides turn with its own figures.
func TestFilesClaimsThatTheDocumentDecides(t *testing.T) {
	check := func(f study.Finding, want study.Verdict) {
		t.Helper()
		if f.Verdict != want {
			t.Errorf("%+v, want %s", f, want)
		}
	}
	check(judgeCores("BenchmarkWriter-2", 64), study.NeverSo)
	check(judgeCores("BenchmarkWriter-64", 64), study.Holds)
	rate := func(claim string, each float64) study.Finding {
		c := studytest.ClaimOf(t, Study(), claim)
		return c.Judge(studytest.Planted(10, func(_ string, round int, m *result.Measurement) { m.Elapsed = studytest.Wiggle(each, round) }, c.Takes()...))
	}
	const itsTable = "its own table is 84,600 writes a second"
	for _, claim := range []string{"files-500k", "files-80k"} {
		check(rate(claim, 1600), study.Holds)
		slow := rate(claim, 14_000)
		check(slow, study.NotHere)
		if strings.Contains(slow.Why, itsTable) != (claim == "files-500k") {
			t.Errorf("%s: %s", claim, slow.Why)
		}
	}
	check(judgeWorkers("BenchmarkWriter-64", 64), study.Holds)
	check(judgeCap(125*time.Millisecond, time.Second), study.Holds)
	check(judgeCap(100*time.Millisecond, time.Second), study.NeverSo)
	one := study.Measured{Value: 1, Low: 0.9, High: 1.1, Text: study.Times}
	check(judgeScaling(one, 4), study.NeverSo)
	check(judgeScaling(one, 1.1), study.Holds)
}

// TestFilesRunsSmall runs every arm on a few files, and shows it.
func TestFilesRunsSmall(t *testing.T) {
	t.Parallel()
	s := Study()
	e := study.EvidenceOf(studytest.RunStudy(t, s, study.Choice{Preset: study.Quick(), Count: 3, Rounds: 1, Seed: 1}))
	if got, want := len(e.Arms()), len(s.Arms(study.Choice{Preset: study.Quick(), Count: 3})); got != want || e.Rounds() != 1 {
		t.Errorf("%d arms in %d rounds, want %d in 1", got, e.Rounds(), want)
	}
	for _, arm := range []string{createTemp, openFile} {
		for _, trial := range e.Trials(arm) {
			if trial.Open <= 0 || trial.Write <= 0 || trial.Close <= 0 {
				t.Errorf("%s: open %v, write %v, close %v", arm, trial.Open, trial.Write, trial.Close)
			}
		}
	}
	for _, arm := range []string{poolApart, filesApart} {
		for _, trial := range e.Trials(arm) {
			if trial.Write <= 0 || trial.Work < 0 || trial.Elapsed != trial.Write+trial.Work {
				t.Errorf("%s: %v in the files, %v besides, %v in all", arm, trial.Write, trial.Work, trial.Elapsed)
			}
		}
	}
	studytest.LooksFilled(t, s.Show(e))
}

// plantedFiles is ten rounds of a preset's arms, in which every file takes as long
// as its arm's name says.
func plantedFiles(c study.Choice, each func(arm string) float64) study.Evidence {
	arms := filesArms(c.OfStudy())
	var names []string
	for _, a := range arms {
		names = append(names, a.Name)
	}
	cellOf := func(name string) result.Cell {
		return arms[slices.Index(names, name)].Cell
	}
	e := studytest.Planted(10, func(arm string, round int, m *result.Measurement) {
		m.Records = cellOf(arm).Records
		m.Elapsed = studytest.Wiggle(each(arm)*float64(m.Records), round)
		m.Allocated, m.Allocations = 100*m.Records, m.Records
	}, names...)
	for i, name := range names {
		e.Run.Header.Cells[i] = cellOf(name)
	}
	return e
}

// rowOf is the table's row that begins with these texts.
func rowOf(t *testing.T, table study.Table, begin ...string) []string {
	t.Helper()
	for _, row := range table.Rows {
		if len(row) >= len(begin) && slices.Equal(row[:len(begin)], begin) {
			return row
		}
	}
	t.Errorf("%s has no row %q:\n%q", table.Title, begin, table.Rows)
	return make([]string, len(table.Head))
}

func TestFilesShowThePublishedBesideOurs(t *testing.T) {
	e := plantedFiles(study.Choice{Preset: study.Full()}, func(arm string) float64 {
		if strings.Contains(arm, byPool(perCPU)) {
			return 30e3
		}
		return 20e3
	})
	table := filesBySize(e)
	for _, p := range publishedRuns {
		row := rowOf(t, table, study.Whole(float64(p.files)), "published")
		if got, want := row[2:7], p.row()[1:]; !slices.Equal(got, want) {
			t.Errorf("%d files as published: %q, want %q", p.files, got, want)
		}
	}
	row := rowOf(t, table, "1,000", byFiles)
	if row[2] != "10" || row[5] != "100,000" || row[6] != "1,000" || !strings.HasPrefix(row[9], "0.667x") {
		t.Errorf("1000 files: %q", row)
	}
	if row := rowOf(t, table, "100", byFiles); row[2] != "30" {
		t.Errorf("three operations in each of ten rounds are %s runs", row[2])
	}
	studytest.LooksFilled(t, showFiles(e))
}

// TestFilesTotalsAddUp over the ten published sizes: 5500 files.
func TestFilesTotalsAddUp(t *testing.T) {
	e := plantedFiles(study.Choice{Preset: study.Full()}, func(string) float64 { return 20e3 })
	totals := filesTotals(e)
	ns := 0.0
	for _, p := range publishedRuns[1:] {
		ns += p.ns
	}
	if row := rowOf(t, totals, "published"); row[2] != "5,500" || row[3] != study.Digits(ns/1e6) {
		t.Errorf("published: %q", row)
	}
	// Ten rounds that wiggle by up to 2 % have their median 1 % above the plant.
	if row := rowOf(t, totals, byFiles); row[1] != "10" || row[3] != "111" {
		t.Errorf("5500 files of 20.2 µs: %q", row)
	}
	retries := filesRetriesTable(e)
	if row := rowOf(t, retries, "5,500 in all"); row[1] != "0.065" || row[6] != "1x" {
		t.Errorf("without retries: %q", row)
	}
}

func TestFilesShowsWhatIsMissing(t *testing.T) {
	studytest.LooksRight(t, showFiles(studytest.Planted(0, nil)))
	studytest.LooksFilled(t, showFiles(plantedFiles(study.Choice{Preset: study.Audit()}, func(string) float64 { return 20e3 })))
}

// TestFilesCountsCallsOfOneFile takes the calls of the warm-up, and of as many files as were
// written meanwhile.
func TestFilesCountsCallsOfOneFile(t *testing.T) {
	e := plantedFiles(study.Choice{Preset: study.Quick()}, func(string) float64 { return 20e3 })
	warm := &result.Trial{Cell: filesGroup, Measurement: result.Measurement{Records: 200, SystemCalls: &result.SystemCalls{Total: 800, Syncs: 20}}}
	e.Run.Trials = append(e.Run.Trials, warm)
	e.Run = e.Run.Run.Indexed()
	if row := rowOf(t, filesDurable(e), filesGroup); row[4] != "4" || row[5] != "0.1" {
		t.Errorf("%q", row)
	}
	if row := rowOf(t, filesDurable(e), syncedEach); row[4] != study.Dash || row[7] != study.Dash {
		t.Errorf("not counted: %q", row)
	}
}

// TestFilesOfAllTrialsHaveRoom: they stay until the end.
func TestFilesOfAllTrialsHaveRoom(t *testing.T) {
	for _, c := range []study.Choice{{Preset: study.Audit(), Rounds: 30}, {Preset: study.Quick()}, {Preset: study.Full()}, {Preset: study.Audit(), Only: Study().ClaimedArms()}} {
		cells, plan := Study().Outline(c)
		all := int64(0)
		for _, cell := range cells {
			switch cell.Group {
			case "lines":
			case "2 temporary files": // the others are removed
				all += 2 * block * int64(plan.Rounds+1)
			default:
				all += cell.Records * block * int64(plan.Rounds+1)
			}
		}
		if plan.Files < all/block || plan.Files > all/block*5/4 {
			t.Errorf("a plan of %d rounds makes %d files, and is said to make %d", plan.Rounds, all/block, plan.Files)
		}
		if plan.Room < all || plan.Room > all*5/4 {
			t.Errorf("a plan of %d rounds has room for %d bytes, and its files take about %d", plan.Rounds, plan.Room, all)
		}
	}
}

func TestFilesIsDoneInItsTime(t *testing.T) {
	check := func(c study.Choice, most time.Duration) {
		t.Helper()
		if _, plan := Study().Outline(c); plan.Estimate > most || plan.Estimate < time.Second {
			t.Errorf("%s: about %v, want at most %v", c.Preset.Name, plan.Estimate, most)
		}
	}
	check(study.Choice{Preset: study.Quick()}, 36*time.Second)
	check(study.Choice{Preset: study.Default()}, 75*time.Second)
	check(study.Choice{Preset: study.Audit(), Only: Study().ClaimedArms()}, 18*time.Second)
}

// TestTooManyFilesAreNotRun: with a worker for each they would end the program.
func TestTooManyFilesAreNotRun(t *testing.T) {
	check := func(count int64, ok bool) {
		t.Helper()
		if err := Study().Check(study.Choice{Preset: study.Quick(), Count: count}); errors.Is(err, study.ErrNoArm) == ok || (err == nil) != ok {
			t.Errorf("%d files: %v", count, err)
		}
	}
	check(1, true)
	check(mostFiles, true)
	check(mostFiles+1, false)
	check(1e9, false)
}

func TestFullHasAllPublishedSizes(t *testing.T) {
	p := filesPlanOf(study.Choice{Preset: study.Full()})
	for _, published := range publishedRuns {
		if !slices.Contains(p.sizes, published.files) {
			t.Errorf("%d files are not run", published.files)
		}
	}
	for _, published := range withoutRetriesTimes {
		if !slices.Contains(p.retries, published.files) {
			t.Errorf("%d files are not run without retries", published.files)
		}
	}
	for _, published := range batches {
		if !slices.Contains(p.batched, published.files) || !slices.Contains(p.sizes, published.files) {
			t.Errorf("%d files are not run in batches", published.files)
		}
	}
}

// TestFilesThatAreNotDurableAreNoTrial of an arm whose files are to be.
func TestFilesThatAreNotDurableAreNoTrial(t *testing.T) {
	check := func(s holdfast.SyncMode, ok bool) {
		t.Helper()
		way := fileWay{make: filesSynced(s, holdfast.OutcomeDurable).make}
		_, err := way.task(2, 1).Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 2, 2)
		var wrong *trial.ContentError
		if errors.As(err, &wrong) == ok || (err == nil) != ok {
			t.Errorf("sync=%v: %v", holdfast.Sync{Mode: s}, err)
		}
	}
	check(holdfast.SyncEach, true)
	check(holdfast.SyncGroup, true)
	check(holdfast.SyncNever, false)
}

// TestFilesWrittenInPlaceAreNotReplaced: the old file is there under its second name
// and shows it.
func TestFilesWrittenInPlaceAreNotReplaced(t *testing.T) {
	check := func(mode files.Mode, ok bool) {
		t.Helper()
		way := filesSynced(holdfast.SyncGroup, holdfast.OutcomeDurable)
		way.mode = mode
		_, err := durableWay{fileWay{make: way.make}, true}.task(2).Run(t.Context(), studytest.WorkDir(t), trial.NotCounting, 2, 2)
		var wrong *trial.ContentError
		if errors.As(err, &wrong) == ok || (err == nil) != ok {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	check(files.Replace, true)
	check(files.Truncate, false)
}
