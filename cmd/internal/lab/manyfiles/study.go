// Package manyfiles is the study of many small files: a message of 12 bytes to 2, 25,
// 100 … 5000 new files. They are written by a loop, by pools of workers and by
// files.Set, with few and many workers and handles. They are written with retries and
// without, in batches and made durable.
//
// In the clock are the making of the pool or of the Set, all files, and its end;
// the directory, the paths are made before. Every file is read
// back after it. Each batch of files has a new directory, and no file is removed before
// the end of the run, see [trial.Task]. Only the published operation on two temporary
// files removes them, because its clock covers that.
//
// Start with [Study].
package manyfiles

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/internal/measure/result"
	"github.com/holdfast-go/holdfast/cmd/internal/measure/study"
)

// Study returns the study, with its arms and claims.
func Study() study.Study {
	many := study.Table{
		Title: "BenchmarkWriter-2 (2 files) and BenchmarkManyFiles, as published", Source: study.WriterBenchmarks,
		Head:  []string{"Files", "Runs", "Time per op (ns)", "Time per file (µs)", "B/op", "Allocs/op"},
		Notes: []string{"an operation on 2 files makes two temporary ones, writes, closes and removes them"},
	}
	for _, p := range publishedRuns {
		many.Rows = append(many.Rows, p.row())
	}
	return study.Study{
		Name:      "files",
		Question:  "what does a small file cost, among few and among many, and what does a pool of workers save",
		Source:    study.WriterBenchmarks,
		Takes:     []string{study.TakesCount},
		Published: []study.Table{many, publishedTimes("TestNoRetriesManyFilesBenchmark, as published", withoutRetriesTimes), publishedTimes("TestBatching, as published", batches)},
		Arms:      filesArms,
		Twin:      retriesOn,
		Show:      showFiles,
		Claims:    study.ClaimsOf(study.WriterBenchmarks, filesClaims),
	}
}

// message is the original's: 12 bytes.
const message = "hello world\n"

// block is the room that a small file takes.
const block = 4096

// filesArm is the name of the arm that makes n files in one way.
func filesArm(n int, way string) string { return fmt.Sprintf("%d files, %s", n, way) }

// The arms that claims take by name, besides the arms of [filesArm].
const (
	retriesOn  = "1000 files, " + byFiles
	retriesOff = "1000 files, " + withoutRetries

	// To open files, without retries and with them.
	openPlain   = "1000 files, " + openByFile
	openRetried = "1000 files, " + openByFiles
)

// A filesPlan says how many files the arms of a preset make.
type filesPlan struct {
	sizes   []int // by the ways that are compared at each size
	retries []int // also without retries
	open    []int // also into files that are open
	grown   []int // also by a bufio.Writer for each, and with the pool's own time apart
	batched []int // also in batches
	workers int   // files for each number of workers
	durable int
	apart   int
	append  appendLoad
	least   int // files of a trial: few take too little time, and are made several times over
}

// filesPlanOf is the plan of a preset, or of a count. A file takes the same time in each.
func filesPlanOf(c study.Choice) filesPlan {
	p := filesPlan{
		sizes: []int{2, 25, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1500, 3000, 5000}, batched: []int{1500, 3000, 5000}, grown: []int{few, many},
		workers: 1000, durable: 200, apart: temps, append: appendLoad{files: 400, lines: 25}, least: 300,
	}
	p.retries = p.sizes[2:12]
	p.open = slices.Concat(p.retries, []int{3000})
	switch {
	case c.Count > 0:
		n := int(min(c.Count, mostFiles))
		p = filesPlan{sizes: []int{n}, retries: []int{n}, open: []int{n}, grown: []int{n}, batched: []int{n}, workers: n, durable: n, apart: n, append: appendLoad{files: n, lines: 25}}
	case c.Preset.Name == study.PresetQuick:
		p.sizes, p.retries, p.batched = []int{2, 100, 1000, 3000}, []int{100, 1000}, []int{1500}
		p.open = []int{100, 1000}
	case c.Preset.Name == study.PresetAudit:
		p.sizes, p.retries, p.open, p.batched = []int{300, 1000, 3000}, []int{1000}, []int{300, 1000, 3000}, []int{5000}
	}
	return p
}

// passes is how often a trial makes n files.
func (p filesPlan) passes(n int) int { return max(1, p.least/n) }

// mostFiles is the most that can be chosen: a worker for each file takes a thread for
// each, and Go allows a program 10,000.
const mostFiles = 5000

// filesArms has each arm once: where it says the same of two questions it is of both.
func filesArms(c study.Choice) []study.Arm {
	p := filesPlanOf(c)
	arms := publishedOps()
	add := func(n int, ways ...fileWay) {
		for _, w := range ways {
			arms = append(arms, w.named(filesArm(n, w.name), fmt.Sprintf("%d files", n), n, p.passes(n)))
		}
	}
	for _, n := range p.sizes {
		add(n, poolWay(perCPU), filesWay())
	}
	for _, n := range p.retries {
		add(n, retriesOffWay())
	}
	for _, n := range p.open {
		arms = append(arms, byFileWay.arm(n, p.passes(n)), appendWay.arm(n, p.passes(n)))
	}
	for _, w := range fewerCPUs() {
		arms = append(arms, w.arm(p.workers, p.passes(p.workers)))
	}
	add(p.workers, loopWay, poolWay(sixtyFour), poolWay(perFile), workersWay(oneWorker), workersWay(sixtyFour), workersWay(perFile))
	for _, n := range p.batched {
		add(n, filesWay(), batchesWay())
	}
	arms = append(arms, apartArms(p.apart)...)
	for _, n := range p.grown {
		arms = append(arms, byBufioWay.arm(n, p.passes(n)), poolApartWay.named(filesArm(n, poolApart), fmt.Sprintf("apart, %d files", n), n, p.passes(n)))
	}
	arms = append(arms, durableArms(p.durable)...)
	arms = append(arms, p.append.arms()...)
	// An arm stands once, though several questions may name it.
	seen := map[string]bool{}
	var once []study.Arm
	for _, a := range arms {
		if !seen[a.Name] {
			once = append(once, a)
		}
		seen[a.Name] = true
	}
	// The files of all trials stay until the end of the run, with the files of the warm-up and of
	// the arm that is run twice. Each arm needs the room of them all.
	all, twin := int64(0), int64(0)
	for _, a := range once {
		if c.Only != nil && !slices.Contains(c.Only, a.Name) {
			continue
		}
		all += a.Bytes
		if twin == 0 || a.Name == retriesOn {
			twin = a.Bytes
		}
	}
	for i := range once {
		once[i].Room = (all + twin) * int64(c.RoundsToRun()+1)
		if c.Count > mostFiles {
			once[i].Missing = fmt.Sprintf("%d files are more than the %d that can have a worker each", c.Count, mostFiles)
		}
	}
	return once
}

// madeTime is about what n files take: one by one as long as each, the checking of
// each, and its removal at the end.
func madeTime(n int, each time.Duration) time.Duration {
	const checkedAndRemoved = 30 * time.Microsecond
	return 3*time.Millisecond + time.Duration(n)*(each+checkedAndRemoved)
}

// filesCell is an arm's cell of n files.
func filesCell(name, group, does string, n int) result.Cell {
	return result.Cell{Name: name, Group: group, Does: does, Records: int64(n), RecordBytes: int64(len(message))}
}

func batchesWay() fileWay {
	return fileWay{inBatches, fmt.Sprintf("one Files, a WriteAll for each %d paths", batchFiles), writeAll{each: batchFiles}.make}
}
